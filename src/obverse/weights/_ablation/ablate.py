"""`ablate`: what does a network need of its layers' signal and bulk? Every treatment, layer by layer."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..._core import BadInput, Progress, as_inputs, as_tensor, or_global, versions
from .._decomposition.grade import nothing_to_tell
from .._decomposition.parts import Parts, decompose
from .._readers.module import weights_of
from .._readers.stored import Weight, finite
from ..results import ALPHA, Number
from .bend import bend, counts, rank_correlation
from .place import matrix_of, replaced
from .results import Ablation, Effect, Kept, LayerAblation, Score, Treatment
from .scores import BATCH, Loss, Test, batch_norms, evaluating, reestimated, test_of
from .treatments import TREATMENTS, Directions, bits, directions_of

QUICK_INPUTS = 200  # of a first look
MULTIPLES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # of each layer's rank


def ablate(
    net: nn.Module,
    x: Tensor,
    y: Tensor | None = None,
    *,
    loss: Loss | None = None,
    layers: Collection[str] | None = None,
    treatments: Sequence[Treatment] = tuple(TREATMENTS),
    curve: bool = True,
    recalibrate: Tensor | None = None,
    batch_size: int = BATCH,
    alpha: float = ALPHA,
    model: str = "",
    quick: bool = False,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Ablation:
    """Does the network need it? Its score with each layer treated, and with all layers at once.

    With labels `y` the score is accuracy; with `loss`, that of (outputs, y), or of the outputs alone without
    y, which must give one number per input; with neither, agreement with the untreated net's own answers.
    `layers` names those to treat [all]. `curve` also keeps the 0, 1, 2, 3, 4, 6, … largest directions. With
    `recalibrate` (inputs without labels) each treatment is also measured with the statistics of batch norms
    estimated anew on them. `quick` looks at the first 200 inputs only. The net is in evaluation mode,
    and afterwards in its own again.
    """
    began = time.perf_counter()
    chosen = _chosen(treatments)
    weights = _named(net, layers)
    x, y = as_inputs(x, net), None if y is None else as_tensor(y, "labels y")
    recalibrate = None if recalibrate is None else as_inputs(recalibrate, net)
    if quick:
        x, y = x[:QUICK_INPUTS], None if y is None else y[:QUICK_INPUTS]
    if recalibrate is not None:
        _check_recalibration(net, recalibrate)
    seed = int(torch.randint(2**31, (1,), generator=or_global(generator)))
    with evaluating(net):
        test = test_of(net, x, y, loss, batch_size)
        bench = Bench(net, test, recalibrate, seed)
        taken = [_taken_apart(net, weight, alpha, seed) for weight in weights]
        able = [one for one in taken if one.parts.grade != "cannot tell"]
        total = len(able) + bool(able)
        found: list[LayerAblation] = []
        for one in taken:
            if progress:
                progress(len([two for two in found if two.effects]), total, one.weight.name)
            found.append(bench.layer(one, chosen if one in able else (), curve=curve and one in able))
        if progress and able:
            progress(total - 1, total, "all layers at once")
        together = bench.effects(able, chosen) if able else ()
        together_curve = bench.joint_curve(able) if able and curve else ()
        again = None
        if recalibrate is not None:
            with reestimated(net, recalibrate, batch_size):
                again = test.score(net)
        if progress:
            progress(total, total, "")
    return Ablation(
        model=model or type(net).__name__,
        measure=test.measure,
        inputs=len(x),
        untreated=Number(float(test.untreated.mean()), float(test.untreated.std() / math.sqrt(len(x)))),
        recalibrated=again,
        recalibration_inputs=0 if recalibrate is None else len(recalibrate),
        layers=tuple(found),
        together=together,
        together_curve=together_curve,
        correlation=rank_correlation(found),
        settings={"alpha": alpha, "seed": seed, "batch_size": batch_size, "treatments": chosen},
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


@dataclass(frozen=True, eq=False)
class TakenApart:
    weight: Weight
    parts: Parts


def _taken_apart(net: nn.Module, weight: Weight, alpha: float, seed: int) -> TakenApart:
    matrix = finite(matrix_of(net, weight), weight.name)
    if weight.groups > 1:
        rows, columns = matrix.shape
        nothing = nothing_to_tell(rows, columns, (0, 0), alpha, weight.in_groups)
        return TakenApart(weight, Parts(matrix, nothing, torch.zeros(rows), torch.zeros(columns)))
    return TakenApart(weight, decompose(matrix, alpha=alpha, generator=_generator(seed, weight.name)))


def _generator(seed: int, *names: str) -> torch.Generator:
    """Random numbers of one layer and treatment: the same whatever else is measured."""
    return torch.Generator().manual_seed(zlib.crc32("/".join([str(seed), *names]).encode()))


@dataclass(frozen=True, eq=False)
class Bench:
    """A net on the bench: treats it, measures, and puts it back."""

    net: nn.Module
    test: Test
    recalibrate: Tensor | None
    seed: int

    def layer(self, one: TakenApart, treatments: Iterable[Treatment], *, curve: bool) -> LayerAblation:
        weight, parts, share = one.weight, one.parts, one.parts.summary.signal_share
        points: tuple[Kept, ...] = ()
        if curve:
            side, directions = min(weight.rows, weight.columns), directions_of(parts)
            points = tuple(
                Kept(count, self._score([(weight, directions.keep(count))]))
                for count in counts(parts.rank, side)
            )
        effects = self.effects([one], treatments)
        rounded = any(effect.treatment == "rounded" for effect in effects)
        return LayerAblation(
            name=weight.name,
            kind=weight.kind,
            rows=weight.rows,
            columns=weight.columns,
            rank=parts.rank,
            signal_share=None if share is None else share.value,
            sentence=parts.sentence,
            bits=bits(parts) if rounded else None,
            effects=effects,
            curve=points,
            needed=bend(points, float(self.test.untreated.mean()), self.test.measure),
        )

    def effects(self, layers: Sequence[TakenApart], treatments: Iterable[Treatment]) -> tuple[Effect, ...]:
        return tuple(self._effect(layers, treatment) for treatment in treatments)

    def _effect(self, layers: Sequence[TakenApart], treatment: Treatment) -> Effect:
        make = TREATMENTS[treatment]
        matrices = (
            (one.weight, make(one.parts, _generator(self.seed, one.weight.name, treatment))) for one in layers
        )
        with replaced(self.net, matrices):
            score, again = self.test.score(self.net), None
            if self.recalibrate is not None:
                with reestimated(self.net, self.recalibrate, self.test.batch_size):
                    again = self.test.score(self.net)
        return Effect(treatment, score, again)

    def joint_curve(self, layers: Sequence[TakenApart]) -> tuple[Kept, ...]:
        """All layers, each with the same multiple of its rank."""
        every = [(one, directions_of(one.parts)) for one in layers]
        return tuple(Kept(multiple, self._score(_multiples(every, multiple))) for multiple in MULTIPLES)

    def _score(self, matrices: Iterable[tuple[Weight, Tensor]]) -> Score:
        with replaced(self.net, matrices):
            return self.test.score(self.net)


def _multiples(
    layers: Sequence[tuple[TakenApart, Directions]], multiple: float
) -> Iterable[tuple[Weight, Tensor]]:
    for one, directions in layers:
        yield one.weight, directions.keep(math.ceil(multiple * one.parts.rank))


def _chosen(treatments: Sequence[Treatment]) -> tuple[Treatment, ...]:
    wrong = [one for one in treatments if one not in TREATMENTS]
    if wrong:
        raise BadInput(f"treatments out of {', '.join(TREATMENTS)}", got=repr(wrong[0]), do="correct it")
    return tuple(dict.fromkeys(treatments))


def _named(net: nn.Module, layers: Collection[str] | None) -> list[Weight]:
    if not isinstance(net, nn.Module):
        raise BadInput("an nn.Module", got=type(net).__name__, do="weights alone cannot be run: pass the net")
    weights = weights_of(net)
    names = [weight.name for weight in weights]
    wrong = [name for name in layers or () if name not in names]
    if wrong:
        raise BadInput(
            f"names of layers: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}",
            got=repr(wrong[0]),
            do="correct it; obverse.weights.weights_of(net) lists them",
        )
    return [weight for weight in weights if layers is None or weight.name in layers]


def _check_recalibration(net: nn.Module, x: Tensor) -> None:
    if not batch_norms(net):
        raise BadInput(
            "a batch norm with running statistics, for recalibrate", got="none in the net", do="leave it out"
        )
    if not isinstance(x, Tensor) or x.ndim < 1 or len(x) < 2:
        got = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise BadInput("recalibrate as a tensor of at least 2 inputs", got=got, do="pass training inputs")
