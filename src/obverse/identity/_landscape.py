"""The risk of a deep linear net over its weights: value, gradient, Hessian, and the region near the identity.

Closed forms, from the target R and the covariance Σ of the inputs: nothing is sampled. Not for moving on the
landscape: see descent.

Data are y = Rx + ζ with Σ = E[xxᵀ] and noise ζ ~ N(0, noise·I). `weights` are the stacked A_1 to A_l, layers
× d × d. The net is M = (I + A_l)⋯(I + A_1) or, with `residual=False`, the plain A_l⋯A_1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from .._core import BadInput
from ._decompositions import svd

LARGEST_HESSIAN = 4096  # rows: 128 MB in float64


def risk(
    weights: Tensor, target: Tensor, covariance: Tensor, noise: float = 0.0, residual: bool = True
) -> Tensor:
    """f = E‖y − Mx‖² = tr((M − R)Σ(M − R)ᵀ) + d·noise (eq. 4), a scalar that autograd can follow.

    The second term is E‖ζ‖²: the least risk there is, f_opt, which M = R has. The paper's ζ ~ N(0, I) is
    noise = 1. Without noise the risk is the excess f − f_opt.

    >>> zero, identity = torch.zeros(5, 3, 3), torch.eye(3)
    >>> float(risk(zero, 2 * identity, 10 * identity)), float(risk(zero, identity, identity, noise=1.0))
    (30.0, 3.0)
    """
    _check(weights, target, covariance)
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise < inf:
        raise BadInput("a finite variance of the noise, ≥ 0", got=repr(noise), do="use 0 for the excess risk")
    layers = _layers(weights, residual)
    _, after = _products(layers)
    error = after[0] @ layers[0] - target
    return (error @ covariance * error).sum() + len(target) * noise


def gradient(weights: Tensor, target: Tensor, covariance: Tensor, residual: bool = True) -> Tensor:
    """∂f/∂A_i = 2 S_iᵀ(M − R)Σ P_iᵀ for all layers, in the shape of `weights`.

    P_i is the product of the layers before i and S_i of those after it, each found from the one beside it:
    O(l·d³) for all layers together.
    """
    _check(weights, target, covariance)
    layers = _layers(weights, residual)
    before, after = _products(layers)
    error = after[0] @ layers[0] - target
    return 2 * after.mT @ (error @ covariance) @ before.mT


def hessian(weights: Tensor, target: Tensor, covariance: Tensor, residual: bool = True) -> Tensor:
    """All second derivatives of the risk, l·d² × l·d², in the order of `weights.flatten()`; for small nets.

    f''[D, D] = 2‖M'[D]Σ^½‖² + 2⟨(M − R)Σ, M''[D, D]⟩.
    """
    _check(weights, target, covariance)
    count, dim, _ = weights.shape
    if weights.numel() > LARGEST_HESSIAN:
        raise BadInput(
            f"at most {LARGEST_HESSIAN} weights for a Hessian", got=weights.numel(), do="take a smaller net"
        )
    layers = _layers(weights, residual)
    before, after = _products(layers)
    pull = (after[0] @ layers[0] - target) @ covariance
    # M'[D] = Σ S_i D_i P_i; with rows laid end to end, D → SDP is the Kronecker product of S and Pᵀ.
    slopes = torch.cat([torch.kron(s, p.mT.contiguous()) for s, p in zip(after, before, strict=True)], dim=1)
    weighted = torch.kron(torch.eye(dim).to(weights), covariance) @ slopes
    blocks = (2 * slopes.mT @ weighted).view(count, dim**2, count, dim**2)
    # M''[D, D] = 2 Σ_{i<j} S_j D_j Q D_i P_i, Q the product of the layers between i and j.
    for i in range(count):
        between = torch.eye(dim).to(weights)
        for j in range(i + 1, count):
            bend = before[i] @ pull.mT @ after[j]
            block = 2 * torch.einsum("ab,ce->bcea", bend, between).reshape(dim**2, dim**2)
            blocks[j, :, i] += block
            blocks[i, :, j] += block.mT
            between = layers[j] @ between
    return blocks.reshape(weights.numel(), weights.numel())


def spectral_norms(weights: Tensor) -> Tensor:
    """‖A_i‖ of every layer; the largest is the ‖A‖ of eq. 3."""
    _check_weights(weights)
    norms: Tensor = torch.linalg.matrix_norm(weights, 2)
    return norms


def project(weights: Tensor, tau: float) -> Tensor:
    """The nearest weights with ‖A‖ ≤ τ: singular values above τ become τ. Layers that are inside stay."""
    _check_weights(weights)
    _check_radius(tau)
    return torch.stack([_clipped(layer, tau) for layer in weights])


def _clipped(layer: Tensor, tau: float) -> Tensor:
    left, values, right = svd(layer.double())
    if values[0] <= tau:
        return layer
    clipped: Tensor = (left * values.clamp(max=tau) @ right).to(layer)
    return clipped


def gradient_bound(weights: Tensor, target: Tensor, covariance: Tensor, *, printed: bool = False) -> Tensor:
    """What ‖∇f‖²_F of the residual net is at least: 4l(1 − τ)^{2l−2} σ_min(Σ)(f − f_opt), τ = ‖A‖ (eq. 6).

    It says nothing from τ = 1 on (and is 0 there, but for one layer). `printed` has σ_min² as in print, which
    has the wrong unit and is no bound: A = 0, Σ = 10I, R = 2I, d = 3, l = 5 has ‖∇f‖² = 6000.

    >>> at = torch.zeros(5, 3, 3), 2 * torch.eye(3), 10 * torch.eye(3)
    >>> [float(gradient(*at).square().sum()), float(gradient_bound(*at))]
    [6000.0, 6000.0]
    >>> float(gradient_bound(*at, printed=True))
    60000.0
    """
    excess = risk(weights, target, covariance)
    smallest = torch.linalg.eigvalsh(covariance)[0].clamp(min=0)
    room = (1 - spectral_norms(weights).max()).clamp(min=0)
    power = 2 if printed else 1
    bound: Tensor = 4 * len(weights) * room ** (2 * len(weights) - 2) * smallest**power * excess
    return bound


@dataclass(frozen=True, eq=False, repr=False)
class Landscape:
    """The risk of deep linear nets on y = Rx + ζ, as a function of their weights: residual or plain ones.

    >>> at = Landscape(2 * torch.eye(3), 10 * torch.eye(3))
    >>> zero = torch.zeros(5, 3, 3)
    >>> float(at.risk(zero)), float(at.gradient(zero).square().sum()), float(at.gradient_bound(zero))
    (30.0, 6000.0, 6000.0)
    """

    target: Tensor  # R
    covariance: Tensor  # Σ
    residual: bool = True

    def __repr__(self) -> str:
        return f"Landscape(d={len(self.target)}, residual={self.residual})"

    def risk(self, weights: Tensor, noise: float = 0.0) -> Tensor:
        """E‖y − Mx‖², of which `noise` adds d·noise: without it the excess over the least risk there is."""
        return risk(weights, self.target, self.covariance, noise, self.residual)

    def gradient(self, weights: Tensor) -> Tensor:
        """Of the risk, in the shape of `weights`."""
        return gradient(weights, self.target, self.covariance, self.residual)

    def hessian(self, weights: Tensor) -> Tensor:
        """All second derivatives of the risk, in the order of `weights.flatten()`; for small nets."""
        return hessian(weights, self.target, self.covariance, self.residual)

    def gradient_bound(self, weights: Tensor, *, printed: bool = False) -> Tensor:
        """What ‖∇f‖²_F of a residual net is at least (eq. 6); `printed` has it as in print: no bound."""
        if not self.residual:
            raise BadInput("residual nets for the gradient bound", got="plain ones", do="use residual=True")
        return gradient_bound(weights, self.target, self.covariance, printed=printed)

    @staticmethod
    def project(weights: Tensor, tau: float) -> Tensor:
        """The nearest weights with ‖A_i‖ ≤ τ in every layer: for τ < 1 the region that Theorem 1 is about."""
        return project(weights, tau)


def _check_radius(tau: float) -> None:
    """τ is the radius of the region ‖A‖ ≤ τ."""
    if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 < tau < inf:
        raise BadInput("a finite τ > 0", got=repr(tau), do="use one below 1, where Theorem 1 speaks")


def _layers(weights: Tensor, residual: bool) -> Tensor:
    return weights + torch.eye(weights.shape[1]).to(weights) if residual else weights


def _products(layers: Tensor) -> tuple[Tensor, Tensor]:
    """P_i = L_{i−1}⋯L_1 and S_i = L_l⋯L_{i+1} for every layer i."""
    identity = torch.eye(layers.shape[1]).to(layers)
    before, after = [identity], [identity]
    for layer in layers[:-1]:
        before.append(layer @ before[-1])
    for layer in layers[1:].flip(0):
        after.append(after[-1] @ layer)
    return torch.stack(before), torch.stack(after[::-1])


def _check_weights(weights: Tensor) -> None:
    if not isinstance(weights, Tensor) or weights.dtype not in (torch.float32, torch.float64):
        raise BadInput("weights as a tensor of float32 or float64", got=_kind(weights), do="stack A_1 to A_l")
    if weights.dim() != 3 or weights.shape[1] != weights.shape[2] or 0 in weights.shape:
        raise BadInput(
            "weights of shape layers × d × d, not empty", got=tuple(weights.shape), do="stack A_1 to A_l"
        )
    if not bool(weights.isfinite().all()):
        raise BadInput("finite weights", got="NaN or infinity", do="lower the lr that led to them")


def _check(weights: Tensor, target: Tensor, covariance: Tensor) -> None:
    _check_weights(weights)
    dim = weights.shape[1]
    for name, matrix in (("target", target), ("covariance", covariance)):
        if not isinstance(matrix, Tensor) or matrix.dtype != weights.dtype or matrix.device != weights.device:
            raise BadInput(
                f"the {name} as a tensor of {weights.dtype} on {weights.device}, as the weights",
                got=_kind(matrix),
                do="convert it",
            )
        if matrix.shape != (dim, dim):
            raise BadInput(
                f"the {name} of shape {dim} × {dim}, as the layers", got=tuple(matrix.shape), do="check it"
            )
        if not bool(matrix.isfinite().all()):
            raise BadInput(f"a finite {name}", got="NaN or infinity", do="look for 0/0 or overflow")
    # What rounding alone makes of a symmetric matrix and of its zero eigenvalues.
    covariance = covariance.detach()
    rounding = 10 * dim * torch.finfo(weights.dtype).eps * float(covariance.abs().max())
    apart = float((covariance - covariance.mT).abs().max())
    if apart > rounding:
        raise BadInput(
            "a symmetric covariance", got=f"entries that differ by {apart:.3g}", do="use (Σ + Σᵀ)/2"
        )
    smallest = float(torch.linalg.eigvalsh(covariance)[0])
    if smallest < -rounding:
        raise BadInput(
            "a covariance without negative eigenvalues", got=f"{smallest:.3g}", do="use E[xxᵀ] of some data"
        )


def _kind(given: object) -> str:
    return f"{given.dtype} on {given.device}" if isinstance(given, Tensor) else type(given).__name__
