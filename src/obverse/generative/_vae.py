"""The variational autoencoder of the notes: images from Gaussian seeds, trained by a bound of log p(x).

Formulas first, each on tensors; then the net. How it is trained is not said here; log p(x) itself, which the
bound only reaches from below, is in likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log, pi

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._core import BadInput, Body, Decoder, OneLine, or_global
from . import _networks as networks


def kl_to_standard(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL[N(μ, diag σ²) ‖ N(0, I)] = ½ Σ (σ² + μ² − 1 − log σ²), row by row."""
    result: Tensor = (log_variance.exp() + mean.square() - 1 - log_variance).sum(-1) / 2
    return result


def kl_to_standard_full(mean: Tensor, covariance: Tensor) -> Tensor:
    """KL[N(μ, Σ) ‖ N(0, I)] = ½(tr Σ + μᵀμ − d − log det Σ); μ (…, d), Σ (…, d, d) positive definite.

    The notes write k for the dimension d of the latent space.
    """
    factor, wrong = torch.linalg.cholesky_ex(covariance)
    if bool((wrong != 0).any()):
        raise BadInput("a positive definite Σ", got="one that is not", do="use a covariance of full rank")
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    trace = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
    result: Tensor = (trace + mean.square().sum(-1) - mean.shape[-1] - log_det) / 2
    return result


def reparametrize(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """z = μ + Σ^½ ε for ε ~ N(0, I) and a diagonal Σ: a function of μ and Σ that gradients pass through."""
    return mean + (log_variance / 2).exp() * noise


def log_normal(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """log N(z; μ, diag σ²), row by row."""
    squares = (z - mean).square() * (-log_variance).exp()
    result: Tensor = -(squares + log_variance + log(2 * pi)).sum(-1) / 2
    return result


def gaussian_log_likelihood(x: Tensor, mean: Tensor, sigma: float) -> Tensor:
    """log N(x; f(z), σ²I) with its constant, one number a row: −‖x − f‖²/2σ² − (d/2) log 2πσ²."""
    rows = (x - mean).flatten(1)
    result: Tensor = -rows.square().sum(1) / (2 * sigma**2) - rows.shape[1] / 2 * log(2 * pi * sigma**2)
    return result


def bernoulli_log_likelihood(x: Tensor, logits: Tensor) -> Tensor:
    """Σ x log p + (1 − x) log(1 − p), p = sigmoid(logits), one number a row.

    For x of 0 and 1 this is a log-probability. For grey pixels in [0, 1] it is the cross entropy that is
    usual in its place: no density, as the constant that would make it one is left out.
    """
    each = F.binary_cross_entropy_with_logits(logits, x, reduction="none")
    result: Tensor = -each.flatten(1).sum(1)
    return result


@dataclass(frozen=True)
class Elbo(OneLine):
    """The bound of log p(x), one a row, in nats: log p(x|z) for one z ~ q, less KL[q(z|x) ‖ N(0, I)]."""

    reconstruction: Tensor
    kl: Tensor

    @property
    def total(self) -> Tensor:
        return self.reconstruction - self.kl


class VAE(nn.Module):
    """q(z|x) = N(μ(x), diag σ²(x)), p(z) = N(0, I), and p(x|z) around f(z) in [0, 1].

    Args:
        input_shape: of one image; or (d,).
        latent: dimension of z.
        hidden: widths of the fully connected layers, from the image to the code; back in reverse.
        body: "mlp" or "conv" (see networks).
        decoder: "gaussian", p(x|z) = N(f(z), σ²I) as in the notes; "bernoulli", one coin a pixel.
        sigma: σ of the Gaussian decoder. It weighs the two parts of the bound: at 1 the seeds tell little of
            pixels in [0, 1]; the distance from x to f(z) per pixel, once trained, is the best choice.
        generator: draws the first weights; torch's global one if None.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        latent: int = 20,
        hidden: Sequence[int] = (400,),
        body: Body = "mlp",
        decoder: Decoder = "bernoulli",
        sigma: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        networks.check_sizes(input_shape, latent, hidden, body)
        if decoder not in ("bernoulli", "gaussian"):
            raise BadInput("decoder 'bernoulli' or 'gaussian'", got=repr(decoder), do="choose one of them")
        if not (sigma > 0 and isfinite(sigma)):
            raise BadInput("sigma > 0", got=sigma, do="use a standard deviation of pixels, such as 0.1")
        generator = or_global(generator)
        self.input_shape, self.latent = tuple(input_shape), latent
        self.likelihood, self.sigma = decoder, sigma
        self.encoder = networks.encoder(input_shape, 2 * latent, hidden, body, generator=generator)
        back = tuple(reversed(hidden))
        self.decoder = networks.decoder(latent, input_shape, back, body, generator=generator)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(μ(x), log σ²(x)), each (n, latent)."""
        if tuple(x.shape[1:]) != self.input_shape:
            raise BadInput(
                f"images of shape (n, {', '.join(map(str, self.input_shape))})",
                got=tuple(x.shape),
                do="reshape them",
            )
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        return mean, log_variance

    def decode(self, z: Tensor) -> Tensor:
        """f(z) in [0, 1]: (n, latent) → (n, *input_shape)."""
        return torch.sigmoid(self.decoder(z))

    def log_conditional(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x|z), one number a row."""
        logits = self.decoder(z)
        if self.likelihood == "bernoulli":
            return bernoulli_log_likelihood(x, logits)
        return gaussian_log_likelihood(x, torch.sigmoid(logits), self.sigma)

    def elbo(self, x: Tensor, generator: torch.Generator | None = None) -> Elbo:
        """The bound for each row of x, by one draw of z a row: unbiased, and differentiable."""
        check_pixels(x)
        mean, log_variance = self.encode(x)
        z = reparametrize(mean, log_variance, networks.draw(mean.shape, mean, generator))
        return Elbo(self.log_conditional(x, z), kl_to_standard(mean, log_variance))

    def forward(self, x: Tensor) -> Tensor:
        """The reconstruction of x: f(μ(x))."""
        return self.decode(self.encode(x)[0])

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n images X' = f(z), z ~ N(0, I): the means of p(x|z), without the noise around them."""
        z = networks.draw((n, self.latent), next(self.parameters()), generator)
        return networks.decode_in_blocks(self.decode, z, self.input_shape)


def check_pixels(x: Tensor) -> None:
    """Pixels in [0, 1], where f(z) and samples lie; NaN is none."""
    if not x.is_floating_point():
        raise BadInput("floating pixels in [0, 1]", got=x.dtype, do="convert them: x.float() / 255 for bytes")
    if x.numel() == 0 or not (bool(x.min() >= 0) and bool(x.max() <= 1)):
        got = "none" if x.numel() == 0 else f"values from {float(x.min()):.3g} to {float(x.max()):.3g}"
        raise BadInput("pixels in [0, 1]", got=got, do="scale them, or look for what is not a number")
