"""Dropout whose masks can be drawn sample by sample. Not a new kind of noise."""

from __future__ import annotations

from torch import Tensor, nn

from .._core import current_streams, mask_like


class SampleDropout(nn.Dropout):
    """nn.Dropout that draws from the current streams (`obverse._core.random.use_streams`), if there are any.

    The mask of a sample then depends on its own seed and not on the rest of the batch.
    """

    def forward(self, input: Tensor) -> Tensor:
        # p of 0 and 1 leave nothing to chance.
        if not self.training or not 0 < self.p < 1 or current_streams() is None:
            return super().forward(input)
        factor = mask_like(input, 1 - self.p).to(input.dtype).mul_(1 / (1 - self.p))
        return input.mul_(factor) if self.inplace else input * factor
