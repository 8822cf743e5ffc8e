"""Generators to test and to compare with: VAE, Wasserstein GAN, a mixture of them, a net's own shadow."""

from ._likelihood import log_likelihood
from ._mixture import Mixture
from ._shadow_generator import ShadowGenerator
from ._vae import VAE, Elbo
from ._wgan import WGAN

__all__ = ["VAE", "WGAN", "Elbo", "Mixture", "ShadowGenerator", "log_likelihood"]
