"""Generators to test and to compare with: VAE, Wasserstein GAN, a mixture of them, a net's own shadow."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._likelihood import log_likelihood
    from ._mixture import Mixture
    from ._shadow_generator import ShadowGenerator
    from ._vae import VAE, Elbo, kl_to_standard, kl_to_standard_full
    from ._wgan import WGAN

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "VAE",
    "WGAN",
    "Elbo",
    "Mixture",
    "ShadowGenerator",
    "kl_to_standard",
    "kl_to_standard_full",
    "log_likelihood",
]
