"""Hardt, Ma: Identity matters in deep learning (as reviewed in 2018)."""

# In the paper's order, which is the order in which claims are listed.
from importlib import import_module
from importlib.util import find_spec

for _name in ("landscape", "factorization", "gradients", "memorizing"):
    if find_spec(f"{__name__}.{_name}"):
        import_module(f"{__name__}.{_name}")
