"""Theory of Deep Learning: Generative Models (2018), the part on variational autoencoders."""

from . import inverse_cdf, elbo, divergence  # noqa: F401, I001  the order of the notes
