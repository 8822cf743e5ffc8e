"""Where a run computes, and with how many bits. Not for what it computes."""

from __future__ import annotations

import os

import torch

from .._core import BadInput, Precision

TYPES: dict[Precision, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}


def choose_device(name: str) -> torch.device:
    """The device of this process: "auto" is the GPU where there is one, else the processor.

    Of several processes on one machine each takes the GPU of its own number, unless one is named.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and count == 0):
        return torch.device("cpu")
    own = name.partition(":")[2]
    if own and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        raise BadInput(
            "device cuda for several processes: each takes the GPU of its own number",
            got=name,
            do="use device cuda, and choose GPUs with CUDA_VISIBLE_DEVICES",
        )
    index = int(own or os.environ.get("LOCAL_RANK", "0"))
    if index >= count:
        raise BadInput(
            f"a GPU with the number {index}, as device {name!r} asks for",
            got=f"{count} that torch can use",
            do="use device cpu, or fewer processes, or a build of torch for your GPU",
        )
    return torch.device("cuda", index)


def autocast(device: torch.device, precision: Precision) -> torch.autocast:
    """Inside, torch computes products in half the bits and keeps sums and weights in float32."""
    return torch.autocast(device.type, dtype=TYPES.get(precision), enabled=precision in TYPES)


def gradient_scaler(device: torch.device, precision: Precision) -> torch.amp.GradScaler:
    """What keeps small gradients out of the underflow of fp16; does nothing for the other types."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
