"""Random changes of images that keep their label, as tensor code. Not for loading them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .._core import BadInput, Streams

PAD = 4  # pixels on each side, the usual number for images of 32 × 32


def pad_crop_flip(x: Tensor, generator: torch.Generator | Streams, pad: int = PAD) -> Tensor:
    """Each image with `pad` zeros around it, cut to its old size at a random place, half of them mirrored.

    `x` is N × C × H × W; every image has a place and a side of its own, from `generator`.
    """
    if x.dim() != 4:
        raise BadInput(
            "images, N × C × H × W",
            got=f"a tensor of shape {tuple(x.shape)}",
            do="leave flat inputs as they are",
        )
    if pad < 0:
        raise BadInput("pad ≥ 0", got=pad, do="use 0 to mirror alone")
    count, _, height, width = x.shape
    if isinstance(generator, Streams):
        top, left = generator.integers(2 * pad + 1, (2, 1)).unbind(1)
        mirrored = generator.bernoulli(0.5, (1,))
    else:
        top, left = torch.randint(2 * pad + 1, (2, count, 1), generator=generator).to(x.device)
        mirrored = torch.randint(2, (count, 1), generator=generator).to(x.device).bool()
    rows = top + torch.arange(height, device=x.device)
    columns = torch.arange(width, device=x.device)
    columns = left + torch.where(mirrored, columns.flip(0), columns)
    images = torch.arange(count, device=x.device)
    padded = F.pad(x, (pad, pad, pad, pad)).movedim(1, -1)
    taken = padded[images[:, None, None], rows[:, :, None], columns[:, None, :]]
    return taken.movedim(-1, 1).contiguous()
