"""Settings that every test shares."""

import torch
from hypothesis import settings

# The same examples at every run, and no time limit for one: CI machines are slow now and then.
settings.register_profile("obverse", derandomize=True, deadline=None)
settings.load_profile("obverse")

# The tests' tensors are tiny: threads only wait for each other, badly so beside other jobs (or xdist).
torch.set_num_threads(1)
