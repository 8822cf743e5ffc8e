"""Two public generators, rebuilt from their tensors. Not for reading weights of other nets.

The progressive GAN comes with its graph, which says all of it. The DCGAN comes with tensors alone: kernel,
stride and the order of normalization and rectifier follow from names and shapes; that seeds are normal, that
all 108 of their values are, and the tanh at the end are what such nets have, and nothing in the file says so.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

LARGEST = 2**28  # bytes of all shards


class DCGAN(nn.Module):
    """Transposed convolutions with stride 2, batch norm by its running averages and rectifiers, to a tanh."""

    latent: int

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        self.latent = len(state["main.0.weight"])
        at = sorted({int(name.split(".")[1]) for name in state})
        layers: list[nn.Module] = []
        for place in at:
            weight = state[f"main.{place}.weight"]
            if weight.ndim == 4:
                first = not layers
                step, edge = (1, 0) if first else (2, 1)
                inputs, outputs = weight.shape[:2]
                layers.append(nn.ConvTranspose2d(inputs, outputs, 4, step, edge, bias=False))
            else:
                layers += [nn.BatchNorm2d(len(weight)), nn.ReLU()]
        self.main = nn.Sequential(*layers, nn.Tanh())
        parts = [one for one in self.main if isinstance(one, nn.ConvTranspose2d | nn.BatchNorm2d)]
        for place, layer in zip(at, parts, strict=True):
            prefix = f"main.{place}."
            own = {name.removeprefix(prefix): x for name, x in state.items() if name.startswith(prefix)}
            layer.load_state_dict(own)
        self.requires_grad_(False).eval()

    def forward(self, seeds: Tensor) -> Tensor:
        """Images in [0, 1]."""
        found: Tensor = (self.main(seeds[:, :, None, None]) + 1) / 2
        return found


class ProgressiveGAN(nn.Module):
    """As its graph has it: pixel norm, convolutions, leaky rectifiers, nearest upsampling, values cut off."""

    latent = 512

    def __init__(self, folder: Path) -> None:
        super().__init__()
        weights = {name.removeprefix("module_apply_default/"): x for name, x in tensors(folder).items()}
        self.kernels, self.biases, self.slopes, self.small = [], [], [], []
        for number in range(13):
            end = f"_{number}" if number else ""
            # height × width × in × out, as TensorFlow has it
            self.kernels.append(weights[f"Conv2D{end}/merged_input"].permute(3, 2, 0, 1).contiguous())
            self.small.append(float(weights[f"add_{2 * number + 1}/y"]))
            if number < 12:
                self.biases.append(weights[f"module/g_model/res_{number // 2}/conv{number % 2}/bias"])
                self.slopes.append(float(weights[f"LeakyRelu{end}/alpha"]))
        self.last = weights["add_26"].reshape(-1)
        self.ends = float(weights["clip_by_value_1/y"]), float(weights["clip_by_value_1/Minimum/y"])

    def forward(self, seeds: Tensor) -> Tensor:
        """Images in [0, 1]."""
        x = seeds[:, :, None, None]
        for number, kernel in enumerate(self.kernels):
            x = x * torch.rsqrt(x.square().mean(1, keepdim=True) + self.small[number])
            if number and number % 2 == 0 and number < 12:
                x = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
            edge = 3 if number == 0 else kernel.shape[-1] // 2
            x = functional.conv2d(x, kernel, padding=edge)
            if number < 12:
                x = functional.leaky_relu(x + self.biases[number][:, None, None], self.slopes[number])
        low, high = self.ends
        return ((x + self.last[:, None, None]).clamp(low, high) - low) / (high - low)


def tensors(folder: Path) -> dict[str, Tensor]:
    """Of a graph of TensorFlow.js, float32 and int32, from its shards, whose sizes are checked first."""
    told: Any = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    found: dict[str, Tensor] = {}
    for group in told["weightsManifest"]:
        paths = [folder / Path(name).name for name in group["paths"]]
        sizes = [prod(one["shape"]) * 4 for one in group["weights"]]
        if sum(path.stat().st_size for path in paths) != sum(sizes) or sum(sizes) > LARGEST:
            raise ValueError(f"the shards in {folder} are not of the size that model.json says")
        whole = b"".join(path.read_bytes() for path in paths)
        start = 0
        for one, size in zip(group["weights"], sizes, strict=True):
            kind = {"float32": "<f4", "int32": "<i4"}[one["dtype"]]
            array = np.frombuffer(whole, kind, size // 4, start).reshape(one["shape"])
            found[one["name"]] = torch.from_numpy(array.copy())
            start += size
    return found


def dcgan(folder: Path) -> DCGAN:
    state = torch.load(folder / "generator_model_state.pth", map_location="cpu", weights_only=True)
    return DCGAN({name: x.float() if x.is_floating_point() else x for name, x in state.items()})
