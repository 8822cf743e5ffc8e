"""Generators to test and to compare with: VAE, Wasserstein GAN, a mixture of them, a net's own shadow."""

from .likelihood import log_likelihood
from .mixture import Mixture
from .shadow_generator import ShadowGenerator
from .vae import VAE, Elbo
from .wgan import WGAN

__all__ = ["VAE", "WGAN", "Elbo", "Mixture", "ShadowGenerator", "log_likelihood"]
