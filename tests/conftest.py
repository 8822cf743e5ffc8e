"""Settings that every test shares."""

import pytest
import torch
from hypothesis import settings

# The same examples at every run, and no time limit for one: CI machines are slow now and then.
settings.register_profile("obverse", derandomize=True, deadline=None)
settings.load_profile("obverse")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Tiny tensors gain nothing from threads, and bits are compared with processes that have one."""
    torch.set_num_threads(1)  # and again for the next test: `train --resume` sets the run's own number


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Nets draw their first weights from torch's own generator: the same ones in every run, in any order."""
    torch.manual_seed(0)
