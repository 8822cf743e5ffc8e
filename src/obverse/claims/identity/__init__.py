"""Hardt & Ma: Identity matters in deep learning, as a review of 2018 has it."""

# In the paper's order, which is the order in which claims are listed.
from . import _landscape
from . import _saddles
from . import _gradients
from . import _factorization
from . import _memorizing
from . import _depth
