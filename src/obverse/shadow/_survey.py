"""How far up can a net still draw its input? Every layer's shadow, beside that of the net with its weights
shuffled. Not for showing it: see report.

The control draws for itself: x goes up and down the shuffled copy, calibrated like the net, the statistics
of its batch norms estimated anew. Its recovery error is its own; the labels of its shadows are those that the
*net* gives them, because labels of a shuffled net mean nothing.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from .._core import BadInput, Progress, versions
from ._controls import Shuffled
from ._graph import evaluation
from ._shadow import Shadow
from .results import LayerSurvey, Reading, Survey

BATCH = 50  # inputs at a time: the h of all layers are held at once


@dataclass
class _Tally:
    """Sums over batches; see Reading for what they are sums of."""

    inputs: int = 0
    agreeing: int = 0
    labels: Counter[int] = field(default_factory=Counter)
    twin_labels: Counter[int] = field(default_factory=Counter)
    difference: float = 0.0
    size: float = 0.0
    total: Tensor | None = None
    cosine: float = 0.0
    silent: int = 0

    def add(self, x: Tensor, twin: Tensor, h: Tensor, recovered: Tensor) -> None:
        self.inputs += len(x)
        self.difference += float((recovered - h).double().square().sum())
        self.size += float(h.double().square().sum())
        total = h.double().sum(0)
        self.total = total if self.total is None else self.total + total
        cosines = nn.functional.cosine_similarity(x.double().flatten(1), twin.double().flatten(1))
        self.cosine += float(cosines.sum())
        self.silent += int((~twin.flatten(1).any(1)).sum())

    def add_labels(self, label: Tensor | None, twin_label: Tensor | None) -> None:
        if label is not None and twin_label is not None:
            self.agreeing += int((label == twin_label).sum())
            self.labels.update(label.tolist())
            self.twin_labels.update(twin_label.tolist())

    def reading(self) -> Reading:
        count = self.inputs
        labelled = bool(self.labels)
        assert self.total is not None
        mean_size = min(float(self.total.square().sum()) / count, self.size)  # min: rounding
        chance = sum(self.labels[one] * self.twin_labels[one] for one in self.labels) / count**2
        return Reading(
            agreement=self.agreeing / count if labelled else None,
            chance=chance if labelled else None,
            error=_finite(self.difference / self.size) if self.size > 0 else None,
            varying=_finite(1 - mean_size / self.size) if self.size > 0 else None,
            cosine=_finite(self.cosine / count),
            silent=self.silent / count,
        )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


class Surveyor:
    """The shadow of a net and that of its shuffled copy, calibrated alike on x; makes shadows of both.

    Args:
        net: any net that `Shadow` takes; it is run in evaluation mode and left as it was.
        x: inputs to calibrate on; best not those that are surveyed.
        keep, refine, smooth, match_norm, switches: as for `Shadow.of`.
        calibrate: False for the theory's scales; the rest of what calibration finds out is used all the same.
        seed: of the shuffling and of what `keep` drops.
    """

    def __init__(
        self,
        net: nn.Module,
        x: Tensor,
        *,
        keep: float = 1.0,
        refine: int = 0,
        smooth: bool = False,
        match_norm: bool = False,
        switches: bool = False,
        calibrate: bool = True,
        seed: int = 0,
    ) -> None:
        began = time.perf_counter()
        if refine < 0:
            raise BadInput("refine ≥ 0 steps", got=refine, do="use 0 for the shadow itself")
        if len(x) == 0:
            raise BadInput("inputs to survey", got="an empty batch", do="pass some test data")
        self.net, self.keep, self.refine, self.smooth = net, keep, refine, smooth
        self.match_norm, self.switches, self.calibrated, self.seed = match_norm, switches, calibrate, seed
        self.own, self.shuffled = (
            Shadow(one, input_shape=x.shape[1:])
            for one in (net, estimate_norms(Shuffled(net, seed).refresh(), x))
        )
        self.own.check_keep(keep)
        self.calibration = self.own.calibrate(x)
        self.shuffled.calibrate(x)
        if not calibrate:  # then what stands at the input, and statistics of norms, are all that is used
            for shadow in (self.own, self.shuffled):
                shadow.scale = "theory"
        self.seconds = time.perf_counter() - began

    def shadows(self, shadow: Shadow, x: Tensor, h: Tensor, layer: str, place: int = 0) -> Tensor:
        """Shadows of x from a layer; what is dropped depends on the seed, the layer and the place alone."""
        generator = torch.Generator(x.device).manual_seed(zlib.crc32(f"{self.seed}/{layer}/{place}".encode()))
        how: Any = {"smooth": self.smooth, "match_norm": self.match_norm, "refine": self.refine}
        if self.switches:
            return shadow.of(x, layer, self.keep, generator, switches=True, **how)
        return shadow.from_hidden(x, h, layer, self.keep, generator, **how)

    @torch.no_grad()
    def labels(self, x: Tensor) -> Tensor | None:
        """The net's label of each x; None where its output is not a row of numbers an input."""
        with evaluation(self.net, in_place=True):
            found = self.net(x.clone())  # a net may work in place
        if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != len(x) or found.shape[1] < 2:
            return None
        return found.argmax(1)

    @torch.no_grad()
    def draw(self, x: Tensor, layers: Sequence[str]) -> Iterator[tuple[str, Tensor, Tensor]]:
        """(layer, shadows of x by the net, those by its shuffled copy), layer by layer."""
        for layer in layers:
            own, other = (
                self.shadows(shadow, x, shadow.infer(x, layer), layer) for shadow in (self.own, self.shuffled)
            )
            yield layer, own, other

    @torch.no_grad()
    def measure(
        self, x: Tensor, layers: Sequence[str] | None = None, progress: Progress | None = None
    ) -> tuple[LayerSurvey, ...]:
        """Every layer, or those named; `progress(done, total, name)` is called before each piece of work."""
        names = self.own.layers if layers is None else tuple(layers)
        batches = x.split(BATCH)
        tallies = {name: (_Tally(), _Tally()) for name in names}
        shapes: dict[str, tuple[int, ...]] = {}
        for place, batch in enumerate(batches):
            label = self.labels(batch)
            h_own, h_shuffled = self.own.hidden(batch, names), self.shuffled.hidden(batch, names)
            for index, name in enumerate(names):
                if progress:
                    progress(place * len(names) + index, len(batches) * len(names), name)
                shapes[name] = tuple(h_own[name].shape[1:])
                pairs = ((self.own, h_own[name]), (self.shuffled, h_shuffled[name]))
                for tally, (shadow, h) in zip(tallies[name], pairs, strict=True):
                    twin = self.shadows(shadow, batch, h, name, place)
                    tally.add(batch, twin, h, shadow.infer(twin, name))
                    tally.add_labels(label, self.labels(twin))
        if progress:
            progress(len(batches) * len(names), len(batches) * len(names), "")
        maps = {one.layer: one for one in self.calibration.layers}
        return tuple(
            LayerSurvey(
                name,
                shapes[name],
                maps[name].scale if name in maps else None,
                maps[name].theory_scale if name in maps else None,
                self.own.level(name).factor if self.calibrated else None,
                *(tally.reading() for tally in tallies[name]),
            )
            for name in names
        )


@torch.no_grad()
def estimate_norms(net: nn.Module, x: Tensor) -> nn.Module:
    """Replace the running statistics of batch norms, which belong to other weights, by those over x."""
    norms = [module for module in net.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    with evaluation(net, in_place=True):
        for norm in norms:
            norm.training, norm.momentum = True, 1.0  # the statistics of this batch and of no other
        if norms and len(x) > 1:
            net(x.clone())
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
    return net


def survey(
    net: nn.Module | Surveyor,
    x: Tensor,
    y: Tensor | None = None,
    *,
    layers: Sequence[str] | None = None,
    model: str = "",
    weights: str = "",
    random_weights: bool = False,
    data: str = "",
    progress: Progress | None = None,
    **how: Any,
) -> Survey:
    """Measure the shadows of inputs x from every layer of a net; `y` are their labels, if known.

    `how` are the arguments of `Surveyor`; that made here calibrates on x, so pass one to calibrate elsewhere.
    """
    tool = net if isinstance(net, Surveyor) else Surveyor(net, x, **how)
    began = time.perf_counter()
    found = tool.measure(x, layers, progress)
    wrong = None
    if y is not None:
        labels = [tool.labels(batch) for batch in x.split(BATCH)]
        if all(one is not None for one in labels):
            wrong = float((torch.cat([one for one in labels if one is not None]) != y).double().mean())
    return Survey(
        model=model or type(tool.net).__name__,
        weights=weights,
        random_weights=random_weights,
        data=data,
        samples=len(x),
        input_shape=tuple(x.shape[1:]),
        test_error=wrong,
        calibrated=tool.calibrated,
        keep=tool.keep,
        refine=tool.refine,
        smooth=tool.smooth,
        match_norm=tool.match_norm,
        switches=tool.switches,
        seed=tool.seed,
        layers=found,
        versions=versions(),
        seconds=tool.seconds + time.perf_counter() - began,
    )
