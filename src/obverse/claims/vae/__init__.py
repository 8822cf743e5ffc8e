"""Theory of Deep Learning: Generative Models (2018), the part on variational autoencoders."""

# In the order of the notes, which is the order in which claims are listed.
from . import _inverse_cdf
from . import _elbo
from . import _capacity
from . import _importance
from . import _gradient
from . import _divergence
from . import _images
