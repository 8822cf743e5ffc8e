"""What may be done to a shadow after it was generated: norm and smoothness. Pure functions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .._core import BadInput


def match_norm(shadow: Tensor, original: Tensor) -> Tensor:
    """Each shadow rescaled to its original's Euclidean norm; a shadow that is all zero stays zero.

    The ReLU is positively homogeneous, so the overall scale of a shadow is free; this is the natural
    choice (theory §1).
    """
    rows = shadow.flatten(1)
    have = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    want = torch.linalg.vector_norm(original.flatten(1), dim=1, keepdim=True)
    ratio = torch.where(have > 0, want / have, torch.zeros_like(have))
    return (rows * ratio).reshape(shadow.shape)


@torch.no_grad()
def unit_peak(x: Tensor) -> Tensor:
    """The factor that brings each row's largest |entry| to 1 (1 for a row of zeros), shaped to multiply x.

    For generation whose scale will be divided out: without any scale, deep nets over- or underflow. For
    gradients it is a constant, which is right where what follows does not see the scale.
    """
    peak = x.flatten(1).abs().amax(1)
    if x.dtype == torch.float16:  # whose largest number is 65,504
        peak = peak.float()
    factor = torch.where(peak > 0, 1 / peak, torch.ones_like(peak))
    return factor.reshape(-1, *[1] * (x.dim() - 1))


def smooth(x: Tensor) -> Tensor:
    """Each pixel replaced by the mean of its 3×3 neighbourhood (eq. 28); N×C×H×W.

    At the border the mean is over the neighbours that exist.
    """
    if x.dim() != 4:
        raise BadInput(
            "images of shape N×C×H×W to smooth",
            got=f"a tensor of shape {tuple(x.shape)}",
            do="give Shadow the image shape: Shadow(net, input_shape=(1, 28, 28)), or leave smooth off",
        )
    return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)
