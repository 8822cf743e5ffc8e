"""Theory of Deep Learning: Generative Models (2018), the part on generative adversarial nets."""

# In the order of the notes, which is the order in which claims are listed.
# isort: off
from . import generalization, hoeffding  # noqa: F401
from . import mixtures, equilibrium  # noqa: F401
from . import birthday, birthday_inverse, birthday_confidence  # noqa: F401
# isort: on
