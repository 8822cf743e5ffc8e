"""The shadow of a single layer as an exact torch distribution (eq. 1). Not for stacked layers.

Coordinate j of x given h is r(αWh)_j with probability ρ and 0 otherwise, independently; so moments,
probabilities and entropy are exact. (The paper's eq. 2 leaves out the factor (1 − ρ)^{zeros}.)
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property

from ._reversal import theory_scale, weight_energy


class _Positive(constraints.Constraint):
    """(0, ∞): unlike torch's `positive`, finite."""

    def __repr__(self) -> str:
        return "a finite number > 0 (leave scale out for the theory's)"

    def check(self, value: Tensor) -> Tensor:
        return (value > 0) & value.isfinite()


class _ZeroOr(constraints.Constraint):
    """Vectors whose coordinates are 0 or a given value each."""

    is_discrete = True
    event_dim = 1

    def __init__(self, value: Tensor, rounding: Tensor) -> None:
        self.value, self.rounding = value, rounding
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        near = (value - self.value).abs() <= self.rounding
        result: Tensor = ((value == 0) | near).all(-1)
        return result


class _HalfOpenUnit(constraints.Constraint):
    """(0, 1]; its name appears in the sentence of a validation error."""

    def __repr__(self) -> str:
        return "a number in (0, 1] (1 for no sampling)"

    def check(self, value: Tensor) -> Tensor:
        return (value > 0) & (value <= 1)


class ShadowLayer(Distribution):
    r"""Distribution of x = r(αWh) ⊙ mask, mask ~ Bernoulli(ρ)ⁿ (eq. 1).

    Args:
        weight: out × in as in nn.Linear (the transpose of the paper's W), m × n in the paper's letters.
        h: hidden vectors, batch_shape × out.
        keep: ρ in (0, 1], a number or a tensor that broadcasts with the batch.
        scale: α > 0; by default the theory's 2/(ρ n s²) with s² the mean square of the weights.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {
        "weight": constraints.independent(constraints.real, 2),
        "h": constraints.real_vector,
        "keep": _HalfOpenUnit(),
        "scale": _Positive(),
    }
    has_rsample = False

    def __init__(
        self,
        weight: Tensor,
        h: Tensor,
        keep: float | Tensor = 1.0,
        scale: float | Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if weight.dim() != 2 or h.dim() < 1 or h.shape[-1] != weight.shape[0]:
            raise ValueError(
                f"expected weight of shape out × in and h of shape … × out; got {tuple(weight.shape)} and "
                f"{tuple(h.shape)}; pass the weight as nn.Linear stores it"
            )
        if weight.dtype != h.dtype or not h.is_floating_point():
            raise ValueError(
                f"expected weight and h of one floating-point dtype; got {weight.dtype} and {h.dtype}; "
                f"convert one: h.to(weight.dtype)"
            )
        keep = torch.as_tensor(keep, dtype=h.dtype, device=h.device)
        if scale is None:
            scale = theory_scale(weight_energy(weight)) / keep
        scale = torch.as_tensor(scale, dtype=h.dtype, device=h.device)
        batch_shape = torch.broadcast_shapes(h.shape[:-1], keep.shape, scale.shape)
        self.weight = weight
        self.h = h.expand(*batch_shape, h.shape[-1])
        self.keep = keep.expand(batch_shape)
        self.scale = scale.expand(batch_shape)
        super().__init__(batch_shape, torch.Size([weight.shape[1]]), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ShadowLayer:
        new: ShadowLayer = cast(Any, self)._get_checked_instance(ShadowLayer, _instance)
        batch_shape = torch.Size(batch_shape)
        new.weight = self.weight
        new.h = self.h.expand(*batch_shape, self.h.shape[-1])
        new.keep = self.keep.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        super(ShadowLayer, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def value(self) -> Tensor:
        """r(αWh): what a coordinate is when it is not dropped; batch_shape × in."""
        result: Tensor = torch.relu(self.scale.unsqueeze(-1) * (self.h @ self.weight))
        return result

    @lazy_property
    def _rounding(self) -> Tensor:
        """How far two computations of `value` may differ: the dot product's rounding, eps · Σ|terms|."""
        terms = self.scale.unsqueeze(-1) * (self.h.abs() @ self.weight.abs())
        return 8 * torch.finfo(terms.dtype).eps * terms

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return _ZeroOr(self.value, self._rounding)

    @property
    def mean(self) -> Tensor:
        return self.keep.unsqueeze(-1) * self.value

    @property
    def variance(self) -> Tensor:
        keep = self.keep.unsqueeze(-1)
        result: Tensor = keep * (1 - keep) * self.value.square()
        return result

    @property
    def mode(self) -> Tensor:
        return torch.where(self.keep.unsqueeze(-1) >= 0.5, self.value, torch.zeros_like(self.value))

    def sample(self, sample_shape: Any = (), *, generator: torch.Generator | None = None) -> Tensor:
        """Draws of shape sample_shape × batch_shape × in; `generator` makes them repeatable."""
        shape = self._extended_shape(torch.Size(sample_shape))
        with torch.no_grad():
            keep = self.keep.unsqueeze(-1).expand(shape)
            return self.value * torch.bernoulli(keep, generator=generator)

    def log_prob(self, value: Tensor) -> Tensor:
        """log P(x = value): exact, for values that are 0 or r(αWh)_j up to rounding."""
        if self._validate_args:
            self._validate_sample(value)
        keep = self.keep.unsqueeze(-1)
        near = (value - self.value).abs() <= self._rounding
        impossible = value.new_full((), -torch.inf)
        alive = torch.where(value == 0, torch.log1p(-keep), torch.where(near, keep.log(), impossible))
        dead = torch.where(near, value.new_zeros(()), impossible)
        return torch.where(self.value > 0, alive, dead).sum(-1)

    def entropy(self) -> Tensor:
        keep = self.keep
        each = -(torch.xlogy(keep, keep) + torch.xlogy(1 - keep, 1 - keep))
        return each * (self.value > 0).sum(-1)
