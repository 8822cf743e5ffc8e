"""What the numbers of every layer depend on besides the layer."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch

from ._verdict import Thresholds


@dataclass(frozen=True)
class Settings:
    """Everything but the layer itself that its numbers depend on."""

    seed: int
    thresholds: Thresholds
    keep: float
    samples: int
    exact: bool | None

    def generator(self, name: str) -> torch.Generator:
        """Of one layer, whatever others there are and in whatever order they are measured."""
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed}/{name}".encode()))
