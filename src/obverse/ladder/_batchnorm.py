"""Batch norm under any probabilities of its rows: forward, and backward as a projection (Theorem 5, eq. 12).

Rows are inputs with p(x) or events with P(z), columns are nodes, each normalized by itself. The scale c₁ and
the shift c₀ are left to the caller: they act on what `normalize` gives. Not for running averages: there is no
test mode here.
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from .._core import BadInput
from ._checks import SUM_TOLERANCE

# A column whose entries differ by less than so many roundings of the largest is constant: what is left of
# sums that cancel to a thousandth, several of them, one over the other.
CONSTANT = 2**16


def normalize(raw: Tensor, p: Tensor, eps: float = 0.0) -> tuple[Tensor, Tensor]:
    """f̃ = (f − μ)/σ of every column and its σ = √(var + eps), with mean and variance under p (eq. 10).

    A constant column has no direction left: with eps = 0 its f̃ and its σ are 0, and so is what comes back.
    Autograd can follow.

    >>> raw = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    >>> standard, sigma = normalize(raw, torch.tensor([0.5, 0.5], dtype=torch.float64))
    >>> standard.flatten().tolist(), float(sigma)
    ([-1.0, 1.0], 1.0)
    """
    _check_rows("activations", raw)
    _check_chances(p, raw)
    if isinstance(eps, bool) or not isinstance(eps, int | float) or not 0 <= eps < inf:
        raise BadInput("a finite eps ≥ 0", got=repr(eps), do="use 0 for the exact theorem")
    # From a row that occurs, so that a constant is exactly 0 whatever its size.
    moved = raw - raw[p.argmax()].detach()
    centred = moved - p @ moved
    variance = p @ centred.square()
    if eps > 0:
        sigma = (variance + eps).sqrt()
        return centred / sigma, sigma
    spread = _largest(moved.detach(), p)
    rounding = CONSTANT * torch.finfo(raw.dtype).eps * _largest(raw.detach(), p)
    constant = (spread <= rounding) | (variance == 0)
    safe = torch.where(constant, torch.ones_like(variance), variance).sqrt()
    sigma = torch.where(constant, torch.zeros_like(safe), safe)
    return torch.where(constant, torch.zeros_like(centred), centred / safe), sigma


def _largest(values: Tensor, p: Tensor) -> Tensor:
    """The largest size of each column, among the rows that occur."""
    occurring = p > 0
    low, high = torch.aminmax(values if bool(occurring.all()) else values[occurring], dim=0)
    return torch.maximum(low.abs(), high.abs())


def project(values: Tensor, standard: Tensor, p: Tensor) -> Tensor:
    """(I − SSᵀΛ)g for a gradient g for each row, S = [f̃, 1] and Λ = diag p: what Theorem 5 calls P_{f,1} g.

    With eps = 0 this is the projection to what is orthogonal to f and 1 under ⟨a, b⟩ = Σ p a b. The gradient
    that leaves the layer is c₁/σ times that.
    """
    _check_pair(values, standard, p)
    weighted = p.unsqueeze(1) * values
    return values - weighted.sum(0) - standard * (standard * weighted).sum(0)


def normalize_back(gradient: Tensor, standard: Tensor, sigma: Tensor, p: Tensor) -> Tensor:
    """(1/σ)(G̃ − Λ1(1ᵀG̃) − Λf̃(f̃ᵀG̃)) for a gradient whose rows carry their probability, G̃ = ΛG.

    For `standard` and `sigma` of `normalize`, whatever eps was. The caller multiplies by c₁. 0 where σ = 0.
    """
    _check_pair(gradient, standard, p)
    if not isinstance(sigma, Tensor) or sigma.shape != gradient.shape[1:]:
        raise BadInput(
            f"one σ for each of {gradient.shape[1]} nodes",
            got=_kind(sigma),
            do="give what normalize returned",
        )
    weights = p.unsqueeze(1)
    left = gradient - weights * gradient.sum(0) - weights * standard * (standard * gradient).sum(0)
    alive = sigma > 0
    return torch.where(
        alive, left / torch.where(alive, sigma, torch.ones_like(sigma)), torch.zeros_like(left)
    )


def affine_gradients(gradient: Tensor, standard: Tensor) -> tuple[Tensor, Tensor]:
    """Sᵀg: the gradients of c₁ and c₀ of every node, from G̃ at the output c₁f̃ + c₀."""
    _check_rows("gradients", gradient)
    _check_same("normalized activations", standard, gradient)
    return (standard * gradient).sum(0), gradient.sum(0)


def _check_rows(name: str, given: Tensor) -> None:
    if not isinstance(given, Tensor) or given.dtype not in (torch.float32, torch.float64):
        raise BadInput(f"{name} as a tensor of float32 or float64", got=_kind(given), do="convert them")
    if given.ndim != 2 or given.shape[0] == 0:
        raise BadInput(
            f"{name} of shape rows × nodes, with rows",
            got=tuple(given.shape),
            do="one row an event or input",
        )
    if not bool(given.detach().isfinite().all()):
        raise BadInput(f"finite {name}", got="NaN or infinity", do="lower the lr that led to them")


def _check_same(name: str, given: Tensor, like: Tensor) -> None:
    _check_rows(name, given)
    if given.shape != like.shape or given.dtype != like.dtype:
        raise BadInput(
            f"{name} of shape {tuple(like.shape)} in {like.dtype}",
            got=_kind(given),
            do="give those of one layer",
        )


def _check_chances(p: Tensor, rows: Tensor) -> None:
    if not isinstance(p, Tensor) or p.dtype != rows.dtype or p.shape != rows.shape[:1]:
        raise BadInput(
            f"{rows.shape[0]} probabilities in {rows.dtype}, one a row",
            got=_kind(p),
            do="convert them",
        )
    p = p.detach()
    tolerance = max(SUM_TOLERANCE, 100 * torch.finfo(p.dtype).eps)
    total = float(p.sum())
    if not bool((p >= 0).all()) or not abs(total - 1) <= tolerance:
        raise BadInput(
            "probabilities ≥ 0 that sum to one",
            got=f"sum {total:.6g}, smallest {float(p.min()):.3g}",
            do="divide them by their sum",
        )


def _check_pair(values: Tensor, standard: Tensor, p: Tensor) -> None:
    _check_rows("gradients", values)
    _check_same("normalized activations", standard, values)
    _check_chances(p, values)


def _kind(given: object) -> str:
    if isinstance(given, Tensor):
        return f"shape {tuple(given.shape)}, {given.dtype}"
    return type(given).__name__
