"""`compress`: a copy of a net in which every layer whose signal pays is replaced by two thin ones."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn

from ..._core import BadInput, Progress, versions
from .._ablation.scores import BATCH, Loss, batch_norms, evaluating, reestimated, test_of
from .._decomposition.parts import Parts, decompose
from .._readers.module import weights_of
from .._readers.stored import Weight, finite
from ..results import ALPHA, Number
from .ranks import check_ranks, factors_of_rank
from .results import Compression, LayerCompression
from .thin import fill, pays, put, thin_layers, why_not

Factors = tuple[Tensor, Tensor]  # rows × rank and rank × columns
Factorizing = Callable[[Tensor], Factors | None]  # a matrix → its factors, or None where it shall stay


@torch.no_grad()
def compress(
    net: nn.Module,
    x: Tensor | None = None,
    y: Tensor | None = None,
    *,
    loss: Loss | None = None,
    layers: Collection[str] | None = None,
    ranks: Mapping[str, int] | None = None,
    rule: Factorizing | None = None,
    shrink: bool = False,
    recalibrate: Tensor | None = None,
    batch_size: int = BATCH,
    alpha: float = ALPHA,
    model: str = "",
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> tuple[nn.Module, Compression]:
    """A smaller copy of the net, and what was done: (net, compression). The net itself stays as it is.

    Linear layers, Conv1d and Conv2d whose signal of rank k pays, k (rows + columns) < rows · columns, become
    two thin layers that compute the signal alone; all others stay. `layers` names those that may be replaced
    [all]. `ranks` names them with the rank of each, as `decide` writes it: of the matrix without its profile
    so many of the largest singular values stay, whether they are signal or not. `rule` gives the factors of a
    matrix in place of its signal's. With `shrink` the singular values are those of the best estimate of the
    signal, without what noise added to them, and not its own. With inputs `x` both nets are measured as
    `ablate` does it: accuracy with labels `y`, a `loss` per input, or agreement. With `recalibrate` the
    statistics of the copy's batch norms are estimated anew on these inputs.
    """
    began = time.perf_counter()
    small = copied(net)
    weights, reasons = weights_of(net), why_not(net)
    whole = Counter(weight.tensor for weight in weights)
    _check(net, weights, layers if ranks is None else ranks, recalibrate)
    if ranks is not None:
        check_ranks(ranks, alone=layers is None and rule is None and not shrink)
    before = sum(one.numel() for one in net.parameters())
    chosen = partial(_factors, rule=rule, shrink=shrink, alpha=alpha, generator=generator)
    done = []
    for at, weight in enumerate(weights):
        if progress:
            progress(at, len(weights), weight.name)
        name = weight.tensor.rpartition(".")[0]
        reason = reasons.get(name) if weight.tensor == f"{name}.weight".lstrip(".") else None
        if any(asked is not None and weight.name not in asked for asked in (layers, ranks)):
            reason = "not asked for"
        elif reason is None:
            reason = "only Linear, Conv1d and Conv2d are replaced"
        elif not reason and whole[weight.tensor] > 1:
            reason = "one of several matrices of its layer"
        rank = None if ranks is None else ranks.get(weight.name)
        small, one = _layer(small, name, weight, reason, partial(chosen, rank=rank))
        done.append(one)
    if progress:
        progress(len(weights), len(weights), "")
    if recalibrate is not None:
        _recalibrated(small, recalibrate, batch_size)
    measure, score, own = None, None, None
    if x is not None:
        with evaluating(net), evaluating(small):
            test = test_of(net, x, y, loss, batch_size)
            score, measure = test.score(small), test.measure
        own = Number(float(test.untreated.mean()), float(test.untreated.std() / math.sqrt(len(x))))
    return small, Compression(
        model=model or type(net).__name__,
        layers=tuple(done),
        parameters_before=before,
        parameters_after=sum(one.numel() for one in small.parameters()),
        measure=measure,
        inputs=0 if x is None else len(x),
        before=own,
        after=score,
        recalibration_inputs=0 if recalibrate is None else len(recalibrate),
        settings={
            "alpha": alpha,
            "rule": _name(rule, ranks),
            "shrink": shrink,
        },
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


def _layer(
    small: nn.Module,
    name: str,
    weight: Weight,
    reason: str,
    chosen: Callable[[Tensor], tuple[Factors | None, str]],
) -> tuple[nn.Module, LayerCompression]:
    size = weight.rows * weight.columns
    rank, after, note = None, size, reason
    if not reason:
        matrix = finite(weight.load(), weight.name)
        factors, note = chosen(matrix)
        if factors is not None:
            left, right = factors
            count = left.shape[1]
            if pays(count, weight.rows, weight.columns):
                layer = small.get_submodule(name)
                made = thin_layers(layer, count)
                fill(made, left, right, layer.bias)  # type: ignore[arg-type]
                small = put(small, name, made)
                rank, after = count, count * (weight.rows + weight.columns)
            elif count:
                note = f"rank {count} does not pay: {note}" if note else f"rank {count} does not pay"
    about = (weight.name, weight.kind, weight.rows, weight.columns)
    return small, LayerCompression(*about, rank=rank, before=size, after=after, note=note)


def _name(rule: Factorizing | None, ranks: Mapping[str, int] | None) -> str:
    if rule is not None:
        return getattr(rule, "__name__", "own")
    return "signal" if ranks is None else "ranks"


def _factors(
    matrix: Tensor,
    *,
    rank: int | None,
    rule: Factorizing | None,
    shrink: bool,
    alpha: float,
    generator: torch.Generator | None,
) -> tuple[Factors | None, str]:
    """The factors and what is to be said about them."""
    if rank is not None:
        parts = decompose(matrix, alpha=alpha, generator=generator)
        return factors_of_rank(parts, rank), parts.sentence
    if rule is None:
        parts = decompose(matrix, alpha=alpha, generator=generator)
        return signal_factors(parts, shrink=shrink), parts.sentence
    factors = rule(matrix)
    if factors is None:
        return None, "stays by the rule"
    left, right = factors
    if left.shape != (matrix.shape[0], right.shape[0]) or right.shape != (left.shape[-1], matrix.shape[1]):
        raise BadInput(
            f"factors of {matrix.shape[0]} × rank and rank × {matrix.shape[1]}",
            got=f"{tuple(left.shape)} and {tuple(right.shape)}",
            do="correct the rule",
        )
    return factors, ""


def signal_factors(parts: Parts, *, shrink: bool = False) -> Factors | None:
    """left @ right is the signal with its profile; None where there is none."""
    if not parts.rank:
        return None
    values = [one.shrunk if shrink else one.value for one in parts.summary.directions]
    roots = torch.tensor(values).sqrt()
    dtype = torch.promote_types(parts.matrix.dtype, torch.float32)
    left = parts.left * parts.row_scales[:, None] * roots.to(parts.left)
    right = (parts.right * parts.column_scales[:, None] * roots.to(parts.right)).T
    return left.to(dtype), right.to(dtype)


def copied(net: nn.Module) -> nn.Module:
    if not isinstance(net, nn.Module):
        raise BadInput("an nn.Module", got=type(net).__name__, do="pass the net")
    try:
        return deepcopy(net)
    except RuntimeError as error:  # weights that a hook computes cannot be copied
        raise BadInput(
            "a net that can be copied",
            got=str(error).split(".")[0],
            do="make pruning permanent with prune.remove, and use torch.nn.utils.parametrizations",
        ) from error


def _recalibrated(net: nn.Module, x: Tensor, batch_size: int) -> None:
    """Batch norms get the statistics of these inputs, for good."""
    with evaluating(net), reestimated(net, x, batch_size):
        found = [
            (norm, norm.running_mean.clone(), norm.running_var.clone())
            for norm in batch_norms(net)
            if norm.running_mean is not None and norm.running_var is not None
        ]
    for norm, mean, variance in found:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)


def _check(
    net: nn.Module, weights: tuple[Weight, ...], layers: Collection[str] | None, recalibrate: Tensor | None
) -> None:
    names = [weight.name for weight in weights]
    wrong = [name for name in layers or () if name not in names]
    if wrong:
        raise BadInput(
            f"names of layers: {', '.join(names[:5])}{', …' if len(names) > 5 else ''}",
            got=repr(wrong[0]),
            do="correct it; obverse.weights.weights_of(net) lists them",
        )
    if recalibrate is not None and not batch_norms(net):
        raise BadInput(
            "a batch norm with running statistics, for recalibrate", got="none in the net", do="leave it out"
        )
