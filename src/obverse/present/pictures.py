"""Inputs as bytes that a browser's canvas can draw. Not for files: see report.images."""

from __future__ import annotations

import base64
from typing import Any

import torch
from torch import Tensor


def picture(x: Tensor) -> dict[str, Any]:
    """One input as {width, height, channels, bytes}: grey or RGB, rows first, base64.

    Pixels from 0 to 1 as they are; what is brighter than 1 makes the whole picture darker, so that nothing is
    cut off, and what is negative is black. A flat input is one row.
    """
    image = x.detach().float().cpu()
    image = image if image.dim() == 3 else image.reshape(1, 1, -1)
    if image.shape[0] not in (1, 3):
        image = image.mean(0, keepdim=True)
    image = torch.nan_to_num(image, nan=0.0, posinf=1.0, neginf=0.0)
    levels = (image / image.max().clamp(min=1.0)).clamp(0, 1).mul(255).round().to(torch.uint8)
    channels, height, width = levels.shape
    flat = levels.permute(1, 2, 0).contiguous().numpy().tobytes()
    return {
        "width": width,
        "height": height,
        "channels": channels,
        "bytes": base64.b64encode(flat).decode("ascii"),
    }
