"""One seed for everything: independent streams from (seed, stream, number). No state."""

from __future__ import annotations

import numpy as np
import torch

INITIAL, BATCHES, STEPS, EVALUATION, SPLIT, SAMPLES, UNLABELLED = range(7)  # the streams of a run


def derive_seed(*path: int) -> int:
    """A 63-bit seed that depends on every number of the path."""
    return int(np.random.SeedSequence(path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def derive_generator(*path: int) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(*path))
