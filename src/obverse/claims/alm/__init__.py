"""Arora, Liang, Ma: Why are deep nets reversible."""

# In the paper's order, which is the order in which claims are listed.
from . import _linear
from . import _infinity
from . import _reversibility
from . import _closed_form
from . import _proof
from . import _high_probability
from . import _dropout
from . import _offsets
from . import _likelihood
from . import _tail
from . import _orlicz
from . import _moments
from . import _linearized
from . import _lemma_b1
from . import _lemma_b23
from . import _slips
from . import _notes
from . import _boltzmann
from . import _two_layers
from . import _two_layer_steps
from . import _three_layers
from . import _depth
from . import _trained
from . import _hypothesis
from . import _appendix_e
from . import _universality
