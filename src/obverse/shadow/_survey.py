"""How far up can a net still draw its input? Every layer's shadow, beside that of the net with its weights
shuffled, and for the fitted reverse that of the net with fresh weights. Not for showing it: see report.

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
from torch import Tensor, fx, nn

from .._core import BadInput, Progress, as_inputs, as_tensor, output_of, versions
from ._controls import Shuffled
from ._graph import evaluation
from ._level import found_again
from ._shadow import Reverse, Shadow
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
    found: int = 0
    found_pixels: int = 0
    unrelated: float = 0.0
    blank: float = 0.0
    apart: float = 0.0
    around: float = 0.0
    drawn: bool = False
    each: list[Tensor] = field(default_factory=list)  # ‖ĥ − h‖², ‖h‖² and the centred cosine of each input

    def add(self, x: Tensor, twin: Tensor, h: Tensor, recovered: Tensor) -> None:
        self.inputs += len(x)
        wrong, size = ((one.double().flatten(1).square().sum(1)) for one in (recovered - h, h))
        self.difference += float(wrong.sum())
        self.size += float(size.sum())
        self.each.append(torch.stack((wrong, size, torch.zeros_like(size))).cpu())
        total = h.double().sum(0)
        self.total = total if self.total is None else self.total + total
        cosines = nn.functional.cosine_similarity(x.double().flatten(1), twin.double().flatten(1))
        self.cosine += float(cosines.sum())
        self.silent += int((~twin.flatten(1).any(1)).sum())

    def add_kept(
        self, x: Tensor, twin: Tensor, h: Tensor, recovered: Tensor, mean: Tensor, blank: Tensor
    ) -> None:
        """What is kept of each input of a batch; `mean` is an input, `blank` its h."""
        self.found += found_again(recovered, h)
        self.found_pixels += found_again(twin, x)
        self.unrelated += float((h.roll(1, 0) - h).double().square().sum())
        self.blank += float((blank - h).double().square().sum())
        ours, theirs = ((one - mean).double().flatten(1) for one in (twin, x))
        self.around += float(theirs.square().sum())
        self.each[-1][2] = nn.functional.cosine_similarity(ours, theirs).cpu()

    def add_second(self, twin: Tensor, again: Tensor) -> None:
        """Two samples of the same h."""
        self.drawn = True
        self.apart += float((twin - again).double().square().sum())

    def _kept(self) -> dict[str, float | None]:
        count = self.inputs
        wrong, size, cosines = torch.cat(self.each, 1)
        known = self.size > 0 and isfinite(self.difference)
        ratio = self.difference / self.size if known else 0.0
        several = count > 1
        return {
            "found": self.found / count,
            "found_pixels": self.found_pixels / count,
            "centred": _finite(float(cosines.mean())),
            # of a ratio of sums over inputs, by its linear part
            "error_se": _finite(float((wrong - ratio * size).square().sum().sqrt()) / self.size)
            if known and several
            else None,
            "centred_se": _finite(float(cosines.std()) / count**0.5) if several else None,
            "spread": _finite((self.apart / (2 * self.around)) ** 0.5)
            if self.drawn and self.around > 0
            else None,
            "unrelated": _finite(self.unrelated / self.size) if known and several else None,
            "blank": _finite(self.blank / self.size) if known else None,
        }

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
            **self._kept(),
        )


def _labels_in(found: Any, x: Tensor) -> Tensor | None:
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != len(x) or found.shape[1] < 2:
        return None
    return found.argmax(1)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


QUICK_INPUTS = 40  # of a first look


class Surveyor:
    """The shadow of a net and that of its shuffled copy, calibrated alike on x; makes shadows of both.

    With reverse="fitted" also that of an untrained copy, `untrained`: None where a module of the net with
    weights has no `reset_parameters`.

    Args:
        net: any net that `Shadow` takes; it is run in evaluation mode and left as it was.
        x: inputs to calibrate on; best not those that are surveyed.
        keep, refine, smooth, match_norm, switches: as for `Shadow.of`.
        calibrate: False for the theory's scales; the rest of what calibration finds out is used all the same.
        seed: of the shuffling, of the untrained weights and of what `keep` drops.
        reverse: "transpose" or "fitted", as for `Shadow`.
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
        reverse: Reverse = "transpose",
    ) -> None:
        began = time.perf_counter()
        if refine < 0:
            raise BadInput("refine ≥ 0 steps", got=refine, do="use 0 for the shadow itself")
        x = as_inputs(x, net)
        if len(x) == 0:
            raise BadInput("inputs to survey", got="an empty batch", do="pass some test data")
        self.net, self.keep, self.refine, self.smooth = net, keep, refine, smooth
        self.match_norm, self.switches, self.calibrated, self.seed = match_norm, switches, calibrate, seed
        self.reverse, self.mean, self.inputs = reverse, x.mean(0, keepdim=True), x
        if reverse == "fitted" and not calibrate:
            raise BadInput("calibration for the fitted reverse", got="none", do="leave out --no-calibrate")
        if reverse == "fitted" and switches:
            raise BadInput("no switches with the fitted reverse", got="--switches", do="leave one out")
        fresh = untrained(net, seed) if reverse == "fitted" else None
        self.own, self.shuffled = (
            Shadow(one, input_shape=x.shape[1:], reverse=reverse)
            for one in (net, estimate_norms(Shuffled(net, seed).refresh(), x))
        )
        self.untrained = (
            None
            if fresh is None
            else Shadow(estimate_norms(fresh, x), input_shape=x.shape[1:], reverse=reverse)
        )
        self.own.check_keep(keep)
        self.calibration = self.own.calibrate(x)
        others = (self.shuffled,) if self.untrained is None else (self.shuffled, self.untrained)
        for shadow in others:
            shadow.calibrate(x)
        if not calibrate:  # then what stands at the input, and statistics of norms, are all that is used
            for shadow in (self.own, *others):
                shadow.scale = "theory"
        self.seconds = time.perf_counter() - began

    def like(self, reverse: Reverse) -> Surveyor:
        """That of another reverse, calibrated on the same inputs; refinement and switches are left out."""
        return Surveyor(
            self.net,
            self.inputs,
            keep=self.keep,
            smooth=self.smooth,
            match_norm=self.match_norm,
            seed=self.seed,
            reverse=reverse,
        )

    def shadows(
        self, shadow: Shadow, x: Tensor, h: Tensor, layer: str, place: int = 0, refine: int | None = None
    ) -> Tensor:
        """Shadows of x from a layer; what is dropped depends on the seed, the layer and the place alone.

        `refine` in place of the survey's own steps.
        """
        generator = torch.Generator(x.device).manual_seed(zlib.crc32(f"{self.seed}/{layer}/{place}".encode()))
        steps = self.refine if refine is None else refine
        how: Any = {"smooth": self.smooth, "match_norm": self.match_norm, "refine": steps}
        if self.switches:
            return shadow.of(x, layer, self.keep, generator, switches=True, **how)
        return shadow.from_hidden(x, h, layer, self.keep, generator, **how)

    @torch.no_grad()
    def labels(self, x: Tensor) -> Tensor | None:
        """The net's label of each x; None where its output is not a row of numbers an input."""
        with evaluation(self.net, in_place=True):
            found = output_of(self.net(x.clone()))  # a net may work in place
        return _labels_in(found, x)

    def _up(self, shadow: Shadow, twin: Tensor, layer: str) -> tuple[Tensor, Tensor | None]:
        """(h of shadows, the net's labels of them); of the net's own from one pass, where that is enough."""
        node, results = shadow.layer(layer).output.node, shadow.graph.nodes[-1].args[0]
        if shadow is not self.own or not isinstance(results, fx.Node):
            return shadow.infer(twin, layer), self.labels(twin)
        found = shadow.graph.infer(twin, {node, results})
        return found[node], _labels_in(output_of(found[results]), twin)

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
        batches = batches_of(x)
        sides = [one for one in (self.own, self.shuffled, self.untrained) if one is not None]
        tallies = {name: tuple(_Tally() for _ in sides) for name in names}
        shapes: dict[str, tuple[int, ...]] = {}
        blanks = [shadow.hidden(self.mean, names) for shadow in sides]
        for place, batch in enumerate(batches):
            label = self.labels(batch)
            hidden = [shadow.hidden(batch, names) for shadow in sides]
            for index, name in enumerate(names):
                if progress:
                    progress(place * len(names) + index, len(batches) * len(names), name)
                shapes[name] = tuple(hidden[0][name].shape[1:])
                for side, (tally, shadow) in enumerate(zip(tallies[name], sides, strict=True)):
                    h = hidden[side][name]
                    twin = self.shadows(shadow, batch, h, name, place)
                    recovered, twin_label = self._up(shadow, twin, name)
                    tally.add(batch, twin, h, recovered)
                    tally.add_kept(batch, twin, h, recovered, self.mean, blanks[side][name])
                    if self.keep < 1:
                        tally.add_second(twin, self.shadows(shadow, batch, h, name, -1 - place))
                    tally.add_labels(label, twin_label if label is not None else None)
        if progress:
            progress(len(batches) * len(names), len(batches) * len(names), "")
        maps = {one.layer: one for one in self.calibration.layers}
        return tuple(
            LayerSurvey(
                name,
                shapes[name],
                maps[name].scale if name in maps else None,
                maps[name].theory_scale if name in maps else None,
                self.own.level(name).factor if self.calibrated and self.reverse == "transpose" else None,
                *(tally.reading() for tally in tallies[name]),
            )
            for name in names
        )


def batches_of(x: Tensor) -> tuple[Tensor, ...]:
    """Batches of equal size, up to one: inputs are found again within their batch."""
    return x.tensor_split(-(-len(x) // BATCH))


def untrained(net: nn.Module, seed: int) -> nn.Module | None:
    """A copy with the weights that its modules begin with; None where one cannot begin anew."""
    copy = Shuffled(net, seed).copy
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in copy.modules():
            own = next(module.parameters(recurse=False), None)
            reset = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()
            elif own is not None:
                return None
    return copy


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
    quick: bool = False,
    progress: Progress | None = None,
    **how: Any,
) -> Survey:
    """Measure the shadows of inputs x from every layer of a net; `y` are their labels, if known.

    `how` are the arguments of `Surveyor`; that made here calibrates on x, so pass one to calibrate elsewhere.
    `quick` looks at the first 40 inputs only.
    """
    x = as_inputs(x, net.net if isinstance(net, Surveyor) else net)
    y = None if y is None else as_tensor(y, "labels y")
    if quick:
        x, y = x[:QUICK_INPUTS], None if y is None else y[:QUICK_INPUTS]
    tool = net if isinstance(net, Surveyor) else Surveyor(net, x, **how)
    began = time.perf_counter()
    found = tool.measure(x, layers, progress)
    wrong = None
    if y is not None:
        labels = [tool.labels(batch) for batch in batches_of(x)]
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
        reverse=tool.reverse,
        among=len(batches_of(x)[0]),
    )
