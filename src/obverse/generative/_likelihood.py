"""log p(x) of a model with latent variables by importance sampling, in blocks. Not for training.

log p̂ = log (1/k) Σ p(x|z_i) p(z_i)/q(z_i|x) with z_i ~ q(z|x). Its mean is a lower bound of log p(x) that is
the ELBO for k = 1 and rises to log p(x) with k.
"""

from __future__ import annotations

from math import log
from typing import Protocol

import torch
from torch import Tensor

from .._core import BadInput, Progress, or_global
from ._networks import draw
from ._vae import VAE, check_pixels, log_normal, reparametrize


class LatentModel(Protocol):
    """What is asked of a model: p(z) = N(0, I), q(z|x) = N(μ, diag σ²) and p(x|z)."""

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]: ...

    def log_conditional(self, x: Tensor, z: Tensor) -> Tensor: ...


def log_weights(model: LatentModel, x: Tensor, noise: Tensor) -> Tensor:
    """log p(x|z) p(z)/q(z|x) at z = μ(x) + σ(x)ε; x (n, …), ε (k, n, latent) → (k, n)."""
    mean, log_variance = model.encode(x)
    return _weights(model, x, mean, log_variance, noise)


def _weights(model: LatentModel, x: Tensor, mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    count = len(noise)
    z = reparametrize(mean, log_variance, noise)
    inside = log_normal(z, mean, log_variance)
    prior = log_normal(z, torch.zeros_like(mean), torch.zeros_like(mean))
    rows = x.expand(count, *x.shape).flatten(0, 1)
    return model.log_conditional(rows, z.flatten(0, 1)).reshape(count, len(x)) + prior - inside


@torch.no_grad()
def log_likelihood(
    vae: LatentModel,
    x: Tensor,
    samples: int = 1000,
    batch_size: int = 10_000,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """log p(x) in nats for each row of x, float64, from `samples` draws a row.

    `batch_size` is how many pairs (x, z) are decoded at a time; `progress` counts them.
    """
    if samples < 1 or batch_size < 1:
        raise BadInput("samples ≥ 1 and batch_size ≥ 1", got=f"{samples} and {batch_size}", do="raise them")
    if len(x) == 0:
        raise BadInput("rows of x", got="none", do="pass some data")
    if isinstance(vae, VAE):  # it makes images; another model may have any numbers
        check_pixels(x)
    elif not bool(torch.isfinite(x).all()):
        raise BadInput("finite values of x", got="NaN or infinity", do="leave these rows out")
    generator = or_global(generator)
    found = torch.empty(len(x), dtype=torch.float64, device=x.device)
    done, total = 0, len(x) * samples
    rows = min(batch_size, 1000)
    for start in range(0, len(x), rows):
        part = x[start : start + rows]
        mean, log_variance = vae.encode(part)
        sums = torch.full((len(part),), -torch.inf, dtype=torch.float64, device=x.device)
        left = samples
        while left:
            count = min(left, max(1, batch_size // len(part)))
            noise = draw((count, *mean.shape), mean, generator)
            weights = _weights(vae, part, mean, log_variance, noise).double()
            sums = torch.logaddexp(sums, weights.logsumexp(0))
            left -= count
            done += count * len(part)
            if progress:
                progress(done, total, "log-likelihood")
        found[start : start + rows] = sums - log(samples)
    return found
