"""The Wasserstein GAN: a generator and a critic whose slope a penalty holds near 1. Not for training them.

The notes' objective is |E_real D − E_synth D|. As −D is a critic when D is one, the critic may as well raise
E_real D − E_synth D, its gap, and the generator lower it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite

import torch
from torch import Tensor, nn

from .._core import BadInput, Body, or_global
from . import _networks as networks
from ._vae import check_pixels

Critic = Callable[[Tensor], Tensor]  # images (n, …) → scores (n,)


def gap(real: Tensor, fake: Tensor) -> Tensor:
    """E_real D − E_synth D from scores."""
    return real.mean() - fake.mean()


def interpolates(real: Tensor, fake: Tensor, share: Tensor) -> Tensor:
    """Points between the rows of two batches: share·real + (1 − share)·fake, one share in [0, 1] a row."""
    at = share.reshape(-1, *[1] * (real.dim() - 1))
    return at * real + (1 - at) * fake


def draw_shares(x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Uniform in [0, 1], one a row of x."""
    generator = or_global(generator)
    return torch.rand(len(x), generator=generator, dtype=x.dtype, device=generator.device).to(x.device)


def gradient_penalty(critic: Critic, x: Tensor) -> Tensor:
    """E (‖∇D(x)‖ − 1)²: from both sides, a slope below 1 costs as one above. Differentiable."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    result: Tensor = (slope.flatten(1).norm(dim=1) - 1).square().mean()
    return result


class WGAN(nn.Module):
    """`decoder`, the generator of the game, makes images in [0, 1] of Gaussian seeds; `critic` scores them.

    Args:
        input_shape: of one image; or (d,).
        latent: dimension of a seed.
        hidden: widths of the fully connected layers of the critic; the generator has them in reverse.
        body: "mlp" or "conv" (see networks).
        penalty: weight of the gradient penalty.
        generator: draws the first weights; torch's global one if None.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        latent: int = 64,
        hidden: Sequence[int] = (256, 256),
        body: Body = "mlp",
        penalty: float = 10.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_weight("penalty", penalty)
        generator = or_global(generator)
        self.input_shape, self.latent, self.penalty = tuple(input_shape), latent, penalty
        self.decoder = picture_maker(latent, input_shape, hidden, body, generator)
        self.critic = networks.critic(input_shape, hidden, body, generator=generator)

    def generator_parameters(self) -> Iterator[nn.Parameter]:
        return self.decoder.parameters()

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        return self.critic.parameters()

    def decode(self, z: Tensor) -> Tensor:
        """Seeds (n, latent) → images (n, *input_shape) in [0, 1]."""
        result: Tensor = self.decoder(z)
        return result

    def critic_loss(
        self, x: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(loss, gap, penalty) for a batch of real images: loss = −gap + weight · penalty.

        Nothing flows to the generator's weights.
        """
        check_batch(x, self.input_shape)
        fake, share = self.sample(len(x), generator), draw_shares(x, generator)
        found = gap(self.critic(x), self.critic(fake))
        slope = gradient_penalty(self.critic, interpolates(x, fake, share))
        return self.penalty * slope - found, found, slope

    def generator_loss(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """−E_synth D over n images: the part of the gap that is the generator's.

        The critic's weights get a gradient too: clear it before the critic's next step.
        """
        score: Tensor = self.critic(self.decode(self._seeds(n, generator)))
        return -score.mean()

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n images from seeds z ~ N(0, I)."""
        return networks.decode_in_blocks(self.decode, self._seeds(n, generator), self.input_shape)

    def _seeds(self, n: int, generator: torch.Generator | None) -> Tensor:
        return networks.draw((n, self.latent), next(self.parameters()), generator)


def picture_maker(
    latent: int,
    shape: Sequence[int],
    hidden: Sequence[int],
    body: Body,
    generator: torch.Generator | None,
) -> nn.Sequential:
    """A decoder with a sigmoid behind it."""
    net = networks.decoder(latent, shape, tuple(reversed(hidden)), body, generator=generator)
    return net.append(nn.Sigmoid())


def check_weight(name: str, value: float) -> None:
    if not (value >= 0 and isfinite(value)):
        raise BadInput(f"{name} ≥ 0", got=value, do="use 0 to leave it out")


def check_batch(x: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(x.shape[1:]) != shape:
        raise BadInput(
            f"images of shape (n, {', '.join(map(str, shape))})", got=tuple(x.shape), do="reshape them"
        )
    check_pixels(x)
