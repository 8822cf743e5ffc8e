"""From which size on a deviation counts; each can be set by name. Not for measuring."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from .._core import BadInput

# Of an audit, besides what counts as a deviation.
KEEP, SAMPLES, BUDGET, SEED = 1.0, 32, 120.0, 0


@dataclass(frozen=True)
class Thresholds:
    """A finding needs both: too unlikely for random entries (`level`), and large enough to mean something."""

    level: float = 0.001  # chance of a false alarm, for each test of each layer
    min_side: int = 32  # smaller layers are listed, not judged: their nulls are too wide
    normal_distance: float = 0.02  # Kolmogorov–Smirnov distance of the entries to a normal law
    offset_ratio: float = 5.0  # |mean| / std of the offsets; the paper's line for nearly constant
    spectrum_distance: float = 0.03  # of the bulk to the Marchenko–Pastur law
    norm_spread: float = 0.2  # coefficient of variation of squared norms, beyond what chance gives
    correlation: float = 0.1  # excess of the rms cosine over 1/√length
    block_contrast: float = 0.2  # relative differences of scale between blocks
    spike_share: float = 0.5  # of the energy: from there on the spikes are the layer
    recovery_ratio: float = 1.2  # error of the layer ÷ error of its shuffled entries

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise BadInput(f"a number > 0 for the threshold {field.name}", got=value, do="set it so")
        if self.level >= 1 or self.spike_share > 1:
            raise BadInput("level < 1 and spike_share ≤ 1", got=self, do="they are fractions")
