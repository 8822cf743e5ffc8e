"""How well h → x̃ → ĥ gives h back: measured on a net, and in closed form for one layer of random weights.

Not for choosing scales: see calibrate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, pi, sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._core import BadInput, Result, Source, as_inputs

if TYPE_CHECKING:
    from ._shadow import Keep, Shadow


@torch.no_grad()
def relative_error(recovered: Tensor, h: Tensor) -> float:
    """Σ‖ĥ − h‖² / Σ‖h‖² over a batch (the left side of eq. 9 over ‖h‖²); 0/0 counts as 0."""
    if h.dtype.itemsize < 4:  # sums of squares overflow in half
        recovered, h = recovered.float(), h.float()
    size = float(h.square().sum())
    error = float((recovered - h).square().sum())
    return error / size if size > 0 else (0.0 if error == 0 else float("inf"))


@dataclass(frozen=True)
class Recovery(Result):
    """Relative squared recovery error of each layer, Σ‖ĥ − h‖² / Σ‖h‖², over `samples` inputs."""

    errors: dict[str, float]
    samples: int

    def to_dict(self) -> dict[str, Any]:
        return {"errors": dict(self.errors), "samples": self.samples}

    def __str__(self) -> str:
        return ", ".join(f"{layer} {error:.3f}" for layer, error in self.errors.items())


@torch.no_grad()
def recovery(
    shadow: Shadow,
    x: Tensor,
    *,
    layers: Sequence[str] | None = None,
    keep: Keep = 1.0,
    generator: Source = None,
    smooth: bool = False,
    match_norm: bool = False,
) -> Recovery:
    """Generate from each layer (or some) all the way down to the input, infer back up, compare."""
    x = as_inputs(x, shadow.net)
    if len(x) == 0:
        raise BadInput("inputs to recover", got="an empty batch", do="pass some test data")
    errors = {}
    for layer, h in shadow.hidden(x, layers).items():
        twin = shadow.from_hidden(x, h, layer, keep, generator, smooth=smooth, match_norm=match_norm)
        errors[layer] = relative_error(shadow.infer(twin, layer), h)
    return Recovery(errors, len(x))


@torch.no_grad()
def recovery_error(h: Tensor, kept: float, threshold: float | Tensor, inputs: int | None = None) -> Tensor:
    """Expected ‖r(Wᵀx − θ) − h‖² / ‖h‖² for x = r(αWh) ⊙ mask and a random normal W, in closed form.

    Each ĥ_i = (Wᵀx)_i has mean h_i and variance v_i = (2/t)(‖h‖² + 2h_i²) − h_i²/n exactly; approximate is
    only that ĥ_i is taken as normal: good to 3 % from t = 500 on, to 4 % at 200 and 8 % at 100. Below that it
    says too little, by up to 14 % at t = 60 and 41 % at 30, most where m is large. Theorem 2.4, where
    half of x is dropped, is t → t/2.

    Args:
        h: hidden vectors ≥ 0, of shape (m,) or (batch, m), none of them zero.
        kept: t = ρn, the inputs that the mask leaves.
        threshold: θ, a number or what broadcasts with one number a row.
        inputs: n, which matters little where t ≪ n; by default infinite.

    Returns:
        One float64 value a row.

    >>> h = torch.tensor([1.0, 0.0, 0.0, 0.0])
    >>> round(float(recovery_error(h, kept=1000, threshold=0.0)), 6)  # 6/t, and 1/t for each zero
    0.009
    """
    noise = _Noise.of(h, kept, inputs)
    cut = torch.as_tensor(threshold, dtype=torch.float64, device=h.device)
    if not bool(cut.isfinite().all()):
        raise BadInput("a finite threshold", got=threshold, do="to silence every unit, pass a large one")
    return noise.error(cut / noise.size)


@torch.no_grad()
def best_threshold(h: Tensor, kept: float, inputs: int | None = None, *, shared: bool = False) -> Tensor:
    """The θ ≥ 0 with the least `recovery_error`, one for each row of h.

    With `shared` all rows have one θ/‖h‖, that with the least mean error. Where noise buries h (t ≪ k)
    silence is best, and any θ beyond the noise is as good as another.
    """
    noise = _Noise.of(h, kept, inputs)
    # θ matters on the scale of the noise off the support, √(2/t)‖h‖, and 20 of these silence everything.
    # The error can have two minima: take the lowest point of a grid, then bisect the slope around it.
    steps = torch.cat((torch.arange(0, 8, 0.5), torch.arange(8, 21)))
    grid = sqrt(2 / kept) * steps.to(noise.size)

    def together(rows: Tensor) -> Tensor:
        return rows.mean() if shared else rows

    lowest = torch.stack([together(noise.error(cut)) for cut in grid]).argmin(0)
    low, high = grid[(lowest - 1).clamp(min=0)], grid[(lowest + 1).clamp(max=len(grid) - 1)]
    for _ in range(24):  # to 2⁻²⁴ of a step, about 1e-8 of the noise
        middle = (low + high) / 2
        rises = together(noise.slope(middle)) > 0
        low, high = torch.where(rises, low, middle), torch.where(rises, middle, high)
    return (low + high) / 2 * noise.size


@dataclass(frozen=True)
class _Noise:
    """ĥ ~ N(h, s²) entry by entry, for rows scaled to ‖h‖ = 1.

    All zeros of h are alike: `h` holds the largest entries of each row, as many as are non-zero in any, and
    a last zero that counts for the rest.
    """

    h: Tensor
    deviation: Tensor  # s = √v
    counts: Tensor
    size: Tensor  # ‖h‖ of each row

    @staticmethod
    def of(h: Tensor, kept: float, inputs: int | None) -> _Noise:
        if h.dim() not in (1, 2) or not bool((h.isfinite() & (h >= 0)).all()) or not bool(h.any(-1).all()):
            raise BadInput(
                "h as one vector or a batch of them, finite, ≥ 0 and none of them zero",
                got=f"shape {tuple(h.shape)}, values {_range(h)}",
                do="pass activations behind the ReLU, without rows that are silent",
            )
        most = inf if inputs is None else inputs
        if not 0 < kept <= most or kept == inf:
            limit = "" if inputs is None else f" and at most the {inputs} inputs"
            raise BadInput(f"finite kept > 0{limit}", got=kept, do="it is the mean number of inputs kept")
        exact = h.double()
        peak = exact.amax(-1, keepdim=True)  # first, so that squares neither overflow nor vanish
        size = peak.squeeze(-1) * torch.linalg.vector_norm(exact / peak, dim=-1)
        count = int((h > 0).sum(-1).max())
        largest = torch.topk(exact / size.unsqueeze(-1), count, dim=-1).values
        values = torch.nn.functional.pad(largest, (0, 1))
        counts = torch.ones(count + 1, dtype=torch.float64, device=h.device)
        counts[-1] = h.shape[-1] - count
        square = values.square()
        variance = 2 / kept * (1 + 2 * square) - (0 if inputs is None else square / inputs)
        return _Noise(values, variance.sqrt(), counts, size)

    def error(self, cut: Tensor) -> Tensor:
        """Σ E[(r(h − θ + sg) − h)²], which is P2 − 2hP1 + h² rearranged so that nothing cancels."""
        cut, above, density = self._at(cut)
        noisy = (cut**2 + self.deviation**2) * above - (self.h + cut) * self.deviation * density
        return (noisy + self.h**2 * (1 - above)).clamp(min=0) @ self.counts

    def slope(self, cut: Tensor) -> Tensor:
        """Half the derivative of `error` by θ."""
        cut, above, density = self._at(cut)
        return (cut * above - self.deviation * density) @ self.counts

    def _at(self, cut: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """θ with a last dimension, Φ(z) and φ(z) for z = (h − θ)/s."""
        cut = cut.unsqueeze(-1)
        z = (self.h - cut) / self.deviation
        return cut, torch.special.ndtr(z), torch.exp(-z.square() / 2) / sqrt(2 * pi)


def _range(h: Tensor) -> str:
    return f"{float(h.min()):.3g} to {float(h.max()):.3g}" if h.numel() else "none"
