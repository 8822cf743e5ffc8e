"""Rules that tools in use apply to trained weights, held against weights whose parts are known."""

# In the order in which claims are listed.
from . import _spectrum
