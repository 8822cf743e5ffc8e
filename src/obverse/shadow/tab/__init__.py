"""Two tabs of the explorer: a net's shadow, and the theory beside simulations."""

from . import _bench, _ways

TABS = (_ways.TAB, _bench.TAB)
