"""A theoretical framework for deep locally connected ReLU network, an ICLR 2019 submission."""

# In the paper's order, which is the order in which claims are listed.
# isort: off
from . import exact, lossy  # noqa: F401
from . import normalized  # noqa: F401
from . import expressive, disentangled  # noqa: F401
# isort: on
