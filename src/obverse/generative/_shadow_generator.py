"""A net's shadow as a generator of images: h of a real input drawn at random, and down again from there.

The paper's generative twin starts from an h; here h has the empirical law of a layer over given data. Not for
other laws of h: `Shadow.sample` takes any.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from .._core import BadInput
from ..shadow import Shadow
from ._vae import check_pixels

Level = Literal["clamp", "norm"]
CALIBRATE_ROWS = 1000  # inputs on which the scales are found: a few numbers a layer
AT_A_TIME = 500  # images: a convolutional net's feature maps take a hundred times their memory


class ShadowGenerator:
    """x̃ = r(α₁W₁ r(α₂W₂ ⋯ h)), h = h(x) for x drawn from `data` with replacement; in [0, 1].

    With keep = 1 each x has one x̃, so there are at most as many images as data; with keep < 1 the masks
    make more of each.

    Args:
        net: any net that `Shadow` takes. It is read at every draw.
        data: images (n, …) in [0, 1] in the shape that the net takes; kept, not copied.
        layer: where h comes from; by default the highest hidden layer.
        keep: ρ of the masks on the way down.
        level: what sets the brightness, as the ReLU leaves the scale of x̃ free. "clamp": the scales that
            make the net give h back, found on the data by `Shadow.calibrate`. "norm": each x̃ gets the norm of
            its x; more is used of x than h then. Both end with a clamp to [0, 1], where pixels lie.
    """

    def __init__(
        self,
        net: nn.Module,
        data: Tensor,
        *,
        layer: str | None = None,
        keep: float = 1.0,
        level: Level = "clamp",
    ) -> None:
        if level not in ("clamp", "norm"):
            raise BadInput("level 'clamp' or 'norm'", got=repr(level), do="choose one of them")
        if data.dim() < 2 or len(data) < 2:
            raise BadInput("two images or more", got=f"shape {tuple(data.shape)}", do="pass a batch")
        check_pixels(data)
        self.data, self.keep, self.level = data, keep, level
        self.shadow = Shadow(net, input_shape=tuple(data.shape[1:]), signed=False)
        self.shadow.check_keep(keep)
        self.layer = self.shadow.layer(layer).name
        if level == "clamp":
            step = max(1, len(data) // CALIBRATE_ROWS)  # spread: data may be in the order of its classes
            self.shadow.calibrate(data[::step][:CALIBRATE_ROWS])

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape[1:])

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n images (n, *input_shape)."""
        rows = torch.randint(len(self.data), (n,), generator=generator)
        pictures = self.data.new_empty(n, *self.input_shape)
        for start in range(0, n, AT_A_TIME):
            some = slice(start, start + AT_A_TIME)
            pictures[some] = self._shadow_of(self.data[rows[some]], generator)
        return pictures

    def _shadow_of(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        made = self.shadow.of(x, self.layer, self.keep, generator, match_norm=self.level == "norm")
        return made.clamp(0, 1)
