"""Hardt & Ma: Identity matters in deep learning, as a review of 2018 has it."""

# In the paper's order, which is the order in which claims are listed.
# isort: off
from . import landscape, saddles, gradients  # noqa: F401
from . import factorization  # noqa: F401
from . import memorizing  # noqa: F401
# isort: on
