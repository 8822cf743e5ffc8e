"""Theory of Deep Learning: Generative Models (2018), the part on generative adversarial nets."""

# In the paper's order, which is the order in which claims are listed.
from . import _generalization
from . import _hoeffding
from . import _mixtures
from . import _equilibrium
from . import _birthday
from . import _rule_of_thumb
from . import _birthday_inverse
from . import _birthday_confidence
