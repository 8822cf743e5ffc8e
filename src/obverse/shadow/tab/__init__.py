"""Two tabs of the explorer: a net's shadow, and the theory beside simulations."""

from . import _bench, _shadow

TABS = (_shadow.TAB, _bench.TAB)
