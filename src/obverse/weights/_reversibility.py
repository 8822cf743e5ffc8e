"""Does a layer give h back as random weights would? The property itself, measured against controls.

h → x = r(αWh) ⊙ mask → ĥ = r(Wᵀx − θ) (eqs 1 and 9) through the layer, through its entries in random order
and through fresh normal ones. Not for whole nets (see shadow.recovery), nor for saying why it fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .._core import BadInput
from ..shadow import best_threshold, check_keep, recovery_error, theory_scale
from ._controls import gaussian, root_mean_square, shuffled
from .results import Number, Recovered, Reversal

_SHARES = (0.01, 0.05, 0.2)
_SHUFFLES = 8  # of a small layer, whose own draw of entries matters most and where they cost least
_SMALL = 2**18  # rows × (columns or draws of h)


def sparsities(rows: int, columns: int) -> tuple[int, ...]:
    """The k to try: 1, 5 and 20 % of the shorter side, at least 2 (where there are 2 rows).

    The theorem wants k < t < k². Of the shorter side, so that k < t holds unless most inputs are dropped;
    beyond that recovery fails for random weights too, and the ratio says nothing. t < k² fails at 1 % in
    most layers, where by the exact moments it is not needed: ĥ has no bias.
    """
    short = min(rows, columns)
    return tuple(sorted({min(rows, max(2, round(share * short))) for share in _SHARES}))


def random_hidden(rows: int, sparsity: int, samples: int, generator: torch.Generator) -> Tensor:
    """h of shape samples × rows, with half-normal non-zeros in random places and ‖h‖ = 1."""
    keys = torch.rand(samples, rows, generator=generator, device=generator.device)
    places = keys.topk(sparsity, dim=1).indices
    values = torch.randn(samples, sparsity, generator=generator, device=generator.device).abs()
    return torch.nn.functional.normalize(torch.zeros_like(keys).scatter_(1, places, values), dim=1)


@dataclass(frozen=True)
class _Draws:
    """Some h of norm 1 that are judged together."""

    source: Literal["random", "data"]
    h: Tensor
    sizes: Tensor  # ‖h‖ as it was: n × 1


@dataclass(frozen=True)
class _Measured:
    """One matrix on one set of draws."""

    squares: Tensor  # (ĥ − h)² of each draw and unit, at the best threshold
    threshold: float
    deviations: Tensor  # ‖Wᵀx − h‖∞ of each draw

    @property
    def errors(self) -> Tensor:
        return self.squares.sum(1)


@torch.no_grad()
def reversals(
    matrix: Tensor,
    bias: Tensor | None,
    *,
    keep: float = 1.0,
    samples: int = 32,
    own: Tensor | None = None,
    generator: torch.Generator,
) -> tuple[Reversal, ...]:
    """One Reversal for each of `sparsities`, on random h, and one more on the layer's own activations.

    Each matrix has its own best threshold, in units of ‖h‖ and the same for all draws; α is the theory's.
    `own_bias` is the error with the layer's offsets for thresholds: times the best factor for random h,
    since the ReLU is homogeneous and the size of these h is free; as they are for data. A layer of zeros
    gives nothing back, like its controls: error 1, ratio 1.

    The ratio tells of the order of the entries alone: shuffling keeps their mean and their tails, whose
    effect stands between `shuffled` and `gaussian`. Its interval is that of a layer which is itself a draw
    of random entries: 95 % of Gaussian layers have 1 in it.

    Args:
        matrix: out × in, the transpose of the paper's W: m × n in its letters.
        bias: the layer's offsets b, one for each row.
        keep: ρ, the share of inputs kept; t = ρn.
        samples: draws of random h at each sparsity.
        own: activations h ≥ 0 of this layer, draws × rows. Silent ones are left out; at least two must stay.
    """
    check_keep(keep)
    matrix = _checked(matrix, bias, samples)
    rows, columns = matrix.shape
    ones = matrix.new_ones(samples, 1)
    draws = [
        _Draws("random", random_hidden(rows, k, samples, generator).to(matrix), ones)
        for k in sparsities(rows, columns)
    ]
    if own is not None:
        draws += _own_draws(own, matrix)
    h = torch.cat([one.h for one in draws])
    mask = None
    if keep < 1:
        mask = torch.rand(len(h), columns, generator=generator, device=generator.device).to(h.device) < keep

    def measure(weights: Tensor) -> tuple[list[Tensor], list[_Measured]]:
        responses = list(_response(weights, h, mask, keep).split([len(one.h) for one in draws]))
        return responses, [_measured(y, one.h) for y, one in zip(responses, draws, strict=True)]

    responses, layer = measure(matrix)
    _, normal = measure(gaussian(matrix, generator))
    repeats = _SHUFFLES if rows * max(columns, len(h)) <= _SMALL else 1
    shuffles = [measure(shuffled(matrix, generator))[1] for _ in range(repeats)]
    return tuple(
        _reversal(
            one,
            keep * columns,
            columns,
            layer[index],
            [shuffle[index] for shuffle in shuffles],
            normal[index],
            None if bias is None else _at_own_bias(responses[index], one, bias.to(matrix)),
        )
        for index, one in enumerate(draws)
    )


def _checked(matrix: Tensor, bias: Tensor | None, samples: int) -> Tensor:
    if matrix.dim() != 2 or 0 in matrix.shape or not matrix.is_floating_point():
        got = f"{matrix.dtype} of shape {tuple(matrix.shape)}"
        raise BadInput("a matrix of floating-point weights, out × in", got=got, do="flatten the inputs")
    if bias is not None and bias.shape != matrix.shape[:1]:
        raise BadInput(f"{len(matrix)} offsets", got=f"shape {tuple(bias.shape)}", do="pass the layer's bias")
    if samples < 2:
        raise BadInput("at least 2 samples", got=samples, do="a standard error needs them")
    peak = max(map(abs, map(float, matrix.aminmax())))
    if not peak < float("inf"):
        raise BadInput("finite weights", got="NaN or infinity", do="look for where training diverged")
    # The scale of the weights drops out; squares of extreme ones would leave the range of float32.
    return matrix if 1e-12 < peak < 1e12 or peak == 0 else matrix / peak


def _own_draws(own: Tensor, matrix: Tensor) -> list[_Draws]:
    if own.dim() != 2 or own.shape[1] != len(matrix) or not bool((own.isfinite() & (own >= 0)).all()):
        raise BadInput(
            f"finite activations ≥ 0 of shape draws × {len(matrix)}",
            got=f"shape {tuple(own.shape)}",
            do="take them behind the layer's ReLU",
        )
    own = own[own.any(1)].double()
    if len(own) < 2:
        return []
    sizes = own.amax(1, keepdim=True)
    sizes = sizes * torch.linalg.vector_norm(own / sizes, dim=1, keepdim=True)
    return [_Draws("data", (own / sizes).to(matrix), sizes.to(matrix))]


def _response(weights: Tensor, h: Tensor, mask: Tensor | None, keep: float) -> Tensor:
    """Wᵀx for x = r(αWh) ⊙ mask and weights brought to mean square 1, where α = 2/(ρn)."""
    inverse = 1 / (root_mean_square(weights) or 1.0)
    x = (h @ weights).mul_(inverse * float(theory_scale(weights.shape[1], keep))).relu_()
    if mask is not None:
        x *= mask
    return (x @ weights.T).mul_(inverse)


def _measured(response: Tensor, h: Tensor) -> _Measured:
    threshold = best_multiple(response, h, torch.ones_like(h[0]))
    squares = (response - threshold).relu_().sub_(h).square_()
    return _Measured(squares, threshold, (response - h).abs().amax(1))


def _at_own_bias(response: Tensor, draws: _Draws, bias: Tensor) -> Number:
    if draws.source == "data":
        thresholds = -bias / draws.sizes
    else:
        thresholds = -bias * best_multiple(response, draws.h, -bias)
    return _mean((response - thresholds).relu_().sub_(draws.h).square_().sum(1))


def best_multiple(response: Tensor, h: Tensor, profile: Tensor) -> float:
    """The c ≥ 0 with the least Σ(r(y − cτ) − h)², where the profile τ is one number a unit.

    Exactly: between the places c = y/τ where units fall silent (y > 0) or wake up (y < 0), the sum is a
    parabola in c. In NumPy, whose sort is several times faster than torch's.
    """
    y, target, tau = (one.expand_as(response).cpu().numpy() for one in (response, h, profile))
    used = (y > 0) | (y * tau > 0)  # the others are silent at every c
    y, target, tau = y[used], target[used], tau[used]
    changes = y * tau > 0
    places = np.divide(y, tau, out=np.full_like(y, np.inf), where=changes)
    order = np.argsort(places)
    y, target, tau, places = (one[order].astype(np.float64) for one in (y, target, tau, places))
    # what an active unit adds to Σh²: (y − cτ − h)² − h² = c²·τ² − 2c·τ(y − h) + y(y − 2h)
    parabolas = np.stack((tau**2, tau * (y - target), y * (y - 2 * target)))
    start = parabolas[:, y > 0].sum(1, keepdims=True)
    steps = (parabolas * -np.sign(y))[:, : np.count_nonzero(changes)]
    a, b, constant = np.cumsum(np.concatenate((start, steps), axis=1), axis=1)
    low = np.concatenate(([0.0], places[: len(a) - 1]))
    high = np.concatenate((places[: len(a) - 1], [np.inf]))
    # where almost nothing is active, a is what rounding left of a sum: stay at the end of the interval
    vertex = np.divide(b, a, out=low.copy(), where=a > 1e-9 * a.max()).clip(low, high)
    return float(vertex[np.argmin(vertex**2 * a - 2 * vertex * b + constant)])


def _reversal(
    draws: _Draws,
    kept: float,
    inputs: int,
    layer: _Measured,
    shuffles: list[_Measured],
    normal: _Measured,
    own_bias: Number | None,
) -> Reversal:
    h = draws.h
    sparsity = float((h > 0).sum(1).double().mean())
    ratio, interval = error_ratio(layer.squares, [one.squares for one in shuffles], normal.squares)
    return Reversal(
        source=draws.source,
        sparsity=sparsity,
        kept=kept,
        samples=len(h),
        layer=_recovered([layer]),
        shuffled=_recovered(shuffles),
        gaussian=_recovered([normal]),
        predicted=_predicted(h, kept, inputs),
        own_bias=own_bias,
        ratio=ratio,
        interval=interval,
        peak=float(h.amax(1).mean()),
        peak_bound=sqrt(log(max(sparsity, 2)) / max(sparsity, 2)),  # at k = 1 the formula gives 0
        sparse_enough=sparsity < kept,
        dense_enough=kept < sparsity**2,
    )


def _recovered(measured: list[_Measured]) -> Recovered:
    count = len(measured)
    return Recovered(
        error=_mean(torch.stack([one.errors for one in measured]).mean(0)),
        threshold=sum(one.threshold for one in measured) / count,
        deviation=_mean(torch.stack([one.deviations for one in measured]).mean(0)),
    )


def _predicted(h: Tensor, kept: float, inputs: int) -> Recovered:
    threshold = best_threshold(h, kept, inputs, shared=True)
    error = float(recovery_error(h, kept, threshold, inputs).mean())
    deviation = sqrt(2 / kept) * sqrt(2 * log(h.shape[1]))  # Lemma 2.5 with the constant of a normal maximum
    return Recovered(Number(error), float(threshold.mean()), Number(deviation))


def _mean(values: Tensor) -> Number:
    return Number(float(values.double().mean()), float(values.double().std()) / sqrt(len(values)))


_NOTHING = 1e-12  # below what float32 rounding leaves: where neither errs at all, the ratio is 1


def error_ratio(layer: Tensor, shuffles: list[Tensor], normal: Tensor) -> tuple[Number, tuple[float, float]]:
    """Layer ÷ shuffled and its 95 % interval, from the squared error of each draw of h (rows) in each unit.

    The interval is that of a layer which is itself a draw of random entries: it must cover 1 for 95 % of
    those. On the log scale, by the delta method, there are two parts:

    - the draws of h, which layer and controls share: the variance of paired differences;
    - the draw of the matrix, which all h share. Given x the units err independently of each other, so that
      the sum over units varies, from one control to another, by the sum of each unit's variance. (What
      varies draw by draw within a unit is in the first part already.)

    In small layers units are few and not so independent, but there the shuffles suffice to see how their
    totals vary. The wider of the two intervals counts.
    """
    from scipy.special import stdtr, stdtrit

    draws, repeats = len(layer), len(shuffles)
    total = float(layer.double().sum()) + _NOTHING
    totals = torch.stack([one.double().sum() for one in shuffles]) + _NOTHING
    expected = float(totals.mean())
    share = torch.stack([one.double().sum(1) for one in shuffles]).mean(0) / expected
    paired = float((layer.double().sum(1) / total - share).square().sum()) * draws / (draws - 1)
    controls = torch.stack([one / (one.double().sum() + _NOTHING) for one in (*shuffles, normal)])
    shared = _variance(controls.sum(1)) - _variance(controls)
    both = 1 + 1 / repeats  # the layer is one draw of a matrix, the shuffles are `repeats`
    spreads = [(sqrt(paired + both * max(shared, 0.0)), draws - 1)]
    if repeats > 1:
        spreads.append((sqrt(both) * float(totals.log().std()), repeats - 1))
    logarithm = log(total / expected)
    ratio = exp(logarithm)
    half = max(spread * float(stdtrit(freedom, 0.975)) for spread, freedom in spreads)
    p = max(2 * float(stdtr(freedom, -abs(logarithm) / max(spread, 1e-300))) for spread, freedom in spreads)
    number = Number(ratio, ratio * max(spread for spread, _ in spreads), null=1.0, p=p)
    return number, (exp(logarithm - half), exp(logarithm + half))


def _variance(values: Tensor) -> float:
    """Σ of the variances along the first dimension; torch's own is slow across few long rows."""
    count = len(values)
    scatter = values.square().sum() - values.sum(0).square().sum() / count
    return float(scatter) / (count - 1)
