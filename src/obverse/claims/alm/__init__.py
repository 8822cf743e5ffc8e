"""Arora, Liang, Ma: Why are deep nets reversible."""

# In the paper's order, which is the order in which claims are listed.
# isort: off
from . import linear, infinity  # noqa: F401
from . import reversibility, closed_form, proof, dropout, offsets, likelihood  # noqa: F401
from . import tail, moments, lemma_b1, lemma_b23  # noqa: F401
from . import slips  # noqa: F401
from . import two_layers, three_layers, depth  # noqa: F401
from . import trained, appendix_e  # noqa: F401
from . import universality  # noqa: F401
# isort: on
