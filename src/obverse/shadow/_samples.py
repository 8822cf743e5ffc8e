"""Which rows of a net's tensors a fit sees, and those rows. Not for fitting (see fitted, regression).

Chosen by shapes alone, before the net runs, so that no more of the tensors than these is ever held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor, fx

from ._graph import Graph
from ._reversal import Reach, Shape
from ._route import Edge, Route
from ._windows import cell_of, cells, cut, here, views_of

FEWEST, MOST = 512, 8192  # rows of a fit, where there are so many
LEAST_WORK, WORK = (
    3 * 10**8,
    2 * 10**9,
)  # multiplications for the products of a fit: half of what the map takes
BATCH = 32  # inputs at a time


@dataclass(frozen=True)
class Sample:
    """Some rows of a tensor of so many inputs.

    `layout` "windows": `most` cells of images, each with all of its channels, in groups; "rows": along the
    last dimension; "whole": all of each input.
    """

    layout: str
    shape: Shape
    inputs: int
    most: int
    cell: tuple[int, ...] = ()
    groups: int = 1

    @cached_property
    def cells(self) -> tuple[Tensor, Tensor]:
        """(image, place) of each row of windows, by image; cells that the border cuts only where there are no
        others."""
        inside = [max(1, length // side) for length, side in zip(self.shape[1:], self.cell, strict=True)]
        index = _some(self.inputs * prod(inside), self.most)
        places = []
        image = index
        for length in reversed(inside):
            places.append(image % length)
            image = image // length
        order = image.argsort(stable=True)
        return image[order], torch.stack(places[::-1], 1)[order]

    @cached_property
    def index(self) -> Tensor:
        """Which rows, where there are more than `most`."""
        return _some(self.inputs * self.each, self.most).sort().values

    @property
    def each(self) -> int:
        """Rows of one input."""
        return 1 if self.layout == "whole" else prod(self.shape[:-1])

    @property
    def size(self) -> int:
        """Numbers in it."""
        if self.layout == "windows":
            return len(self.cells[0]) * self.shape[0] * prod(self.cell)
        return min(self.most, self.inputs * self.each) * prod(self.shape) // self.each

    @property
    def image(self) -> Tensor:
        """The input of each row."""
        return self.cells[0] if self.layout == "windows" else self.index // self.each

    def take(self, x: Tensor, first: int = 0) -> Tensor:
        """These rows of the tensor of some inputs, of which the first has this number."""
        if self.layout == "windows":
            image, places = self.cells
            mine = (image >= first) & (image < first + len(x))
            places = places[mine].to(x.device)
            return cut(self._padded(x), self.cell, (image[mine] - first).to(x.device), places)
        flat = x.flatten(1) if self.layout == "whole" else x.reshape(-1, x.shape[-1])
        begin = first * self.each
        mine = (self.index >= begin) & (self.index < begin + len(flat))
        return flat[(self.index[mine] - begin).to(x.device)]

    def _padded(self, x: Tensor) -> Tensor:
        """x with its border repeated up to whole cells; what is beyond is cut off again."""
        for dimension, (side, number) in enumerate(zip(self.cell, self.count, strict=True), start=2):
            length = x.shape[dimension]
            if side * number > length:
                places = torch.arange(side * number, device=x.device).clamp(max=length - 1)
                x = x.index_select(dimension, places)
        return x

    @property
    def count(self) -> tuple[int, ...]:
        """How many cells an image has."""
        return cells(self.shape[1:], self.cell)


def _some(total: int, most: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.arange(total) if total <= most else torch.randperm(total, generator=generator)[:most]


def sample_of(
    layout: str, edges: Sequence[Edge], shape: Shape, inputs: int, shapes: Mapping[int, Shape]
) -> Sample:
    """The rows for a fit of a tensor of a shape to what comes down by some edges; what lies otherwise was
    fitted to the tensor first, and has its shape."""
    as_they_lie = [len(edges) == 1 or fits(edge, layout) for edge in edges]
    sources = [
        shapes[edge.stage] if lies and edge.form != "same" else shape
        for edge, lies in zip(edges, as_they_lie, strict=True)
    ]
    if layout == "windows":
        flat = here(len(shape) - 1)
        reaches = [edge.form if isinstance(edge.form, Reach) else flat for edge in edges]
        return window_sample(reaches, [source[0] for source in sources], shape, inputs)
    width = sum(prod(source) if layout == "whole" else source[-1] for source in sources)
    applied = inputs * prod(shape) * width
    return Sample(layout, shape, inputs, affordable(width, applied // 2))


def window_sample(reaches: Sequence[Reach], channels: Sequence[int], shape: Shape, inputs: int) -> Sample:
    cell = cell_of(reaches)
    groups = reaches[0].groups if len(reaches) == 1 else 1
    taps = [prod(view.count for view in views_of(reach, cell)) for reach in reaches]
    width = sum(number * k for number, k in zip(channels, taps, strict=True))
    applied = inputs * prod(shape) * width // groups
    return Sample("windows", shape, inputs, affordable(width, applied // 2), cell, groups)


def affordable(width: int, work: int = WORK) -> int:
    """How many rows a fit of so many features takes, at most: moments cost rows · width², products of rows
    rows² · width, and the less is done."""
    work = max(LEAST_WORK, min(WORK, work))
    rows = work // width**2 if width**3 <= work else int((work / width) ** 0.5)
    return max(FEWEST, min(MOST, rows))


class Targets:
    """Rows of the tensors of a net on calibration inputs; one sweep finds all that are asked for at once."""

    def __init__(self, graph: Graph, x: Tensor) -> None:
        self.graph, self.x = graph, x
        self._found: dict[tuple[int, Sample], Tensor] = {}
        self._whole: dict[int, Tensor] = {}

    def prepare(self, wanted: Iterable[tuple[int, Sample]]) -> None:
        missing = [one for one in dict.fromkeys(wanted) if one not in self._found]
        parts: dict[tuple[int, Sample], list[Tensor]] = {one: [] for one in missing}
        by_node: dict[fx.Node, list[tuple[int, Sample]]] = {}
        for one in missing:
            by_node.setdefault(self.graph.stages[one[0]].node, []).append(one)
        for first in range(0, len(self.x) if missing else 0, BATCH):

            def see(node: fx.Node, value: Tensor, first: int = first) -> None:
                for one in by_node.get(node, ()):
                    parts[one].append(one[1].take(value, first))

            with torch.no_grad():
                self.graph.run(self.x[first : first + BATCH], set(by_node), see)
        self._found |= {one: torch.cat(found) for one, found in parts.items()}

    def of(self, index: int, sample: Sample) -> Tensor:
        return self._found[index, sample]

    def values(self, index: int) -> Tensor:
        """All of a tensor."""
        if index in self._whole:
            return self._whole[index]
        return self._values({index})[index]

    def keep(self, indices: Iterable[int]) -> None:
        """Find all of some tensors in one sweep, and keep them."""
        self._whole |= self._values(set(indices) - set(self._whole))

    def _values(self, indices: set[int]) -> dict[int, Tensor]:
        nodes = {index: self.graph.stages[index].node for index in indices}
        parts = [self.graph.infer(part, set(nodes.values())) for part in self.x.split(BATCH)] if nodes else []
        return {index: torch.cat([part[node] for part in parts]) for index, node in nodes.items()}


def samples_of(route: Route, inputs: int) -> dict[tuple[int, int], Sample]:
    """The rows for each fit on a way down, by tensor and place of what comes down to it, −1 for all of it."""
    found = {}
    for index in route.fitted:
        edges, shape = route.edges[index], route.shapes[index]
        layout = layout_of(edges, shape)
        for place, edge in enumerate(edges):
            if len(edges) > 1 and not fits(edge, layout):
                found[index, place] = sample_of(layout_of([edge], shape), [edge], shape, inputs, route.shapes)
        found[index, -1] = sample_of(layout, edges, shape, inputs, route.shapes)
    return found


def layout_of(edges: Sequence[Edge], shape: Shape) -> str:
    """How one fit takes what comes down to a tensor: "windows", "rows" or "whole"."""
    forms = [edge.form for edge in edges]
    if any(isinstance(form, Reach) for form in forms):
        return "windows"
    if len(forms) == 1 and forms[0] == "whole":
        return "whole"
    return "rows" if "rows" in forms or len(shape) < 3 else "windows"


def fits(edge: Edge, layout: str) -> bool:
    """Whether what comes down by an edge lies to the tensor as the fit takes it."""
    return edge.form in ("same", layout) or (layout == "windows" and isinstance(edge.form, Reach))
