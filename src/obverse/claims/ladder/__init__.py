"""A theoretical framework for deep locally connected ReLU network, an ICLR 2019 submission."""

# In the paper's order, which is the order in which claims are listed.
from . import _exact
from . import _boundary
from . import _lossy
from . import _conditions
from . import _sampled
from . import _normalized
from . import _energy
from . import _expressive
from . import _vertices
from . import _disentangled
from . import _backward
from . import _steps
from . import _spurious
