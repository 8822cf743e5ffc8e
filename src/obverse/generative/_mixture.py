"""MIX+GAN: several generators and critics, and how much each counts is trained with them.

The theory's equilibrium is one of mixtures: the payoff is Σ w_i v_j P_ij with P_ij = E_real D_j − E D_j(G_i);
the weights w of the generators and v of the critics are softmaxes of logits. Not for training them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from .._core import BadInput, Body, or_global
from . import _networks as networks
from ._wgan import check_batch, check_weight, draw_shares, gradient_penalty, interpolates, picture_maker


def payoff_matrix(real: Tensor, fake: Tensor) -> Tensor:
    """P_ij = E_real D_j − E D_j(G_i) from scores: real (critics, n), fake (generators, critics, m)."""
    return real.mean(-1) - fake.mean(-1)


def mixed_payoff(payoff: Tensor, generators: Tensor, critics: Tensor) -> Tensor:
    """Σ_ij w_i P_ij v_j: what generator i meets critic j with, by the weights of both sides."""
    return generators @ payoff @ critics


def unevenness(logits: Tensor) -> Tensor:
    """−(1/T) Σ log w_i − log T = KL[uniform ‖ w], w = softmax(logits): 0 for even weights.

    The entropy term: it grows without limit as a weight goes to 0, so that none dies.
    """
    count = logits.new_tensor(float(len(logits)))
    return -torch.log_softmax(logits, 0).mean() - count.log()


def component_of(z: Tensor, weights: Tensor) -> Tensor:
    """Component i with probability w_i, out of a Gaussian number: the inverse CDF of the weights at Φ(z)."""
    edges = weights.cumsum(0)[:-1].contiguous()
    return torch.bucketize(torch.special.ndtr(z.detach()), edges.detach())


class Mixture(nn.Module):
    """T generators and T critics of a WGAN, with trained weights on both sides.

    A seed has one number more than a generator takes: the last chooses the component, by `component_of`, so
    that Gaussian seeds give the mixture. The images jump where it passes from one to the next.

    Args:
        input_shape, hidden, body, penalty, generator: as for WGAN.
        components: T.
        entropy: weight of `unevenness` in the loss of either side.
        latent: what one generator takes; `.latent` is one more.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        components: int = 5,
        entropy: float = 0.1,
        latent: int = 64,
        hidden: Sequence[int] = (256, 256),
        body: Body = "mlp",
        penalty: float = 10.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_weight("penalty", penalty)
        check_weight("entropy", entropy)
        if components < 1:
            raise BadInput("components ≥ 1", got=components, do="use 5")
        generator = or_global(generator)
        self.input_shape, self.latent = tuple(input_shape), latent + 1
        self.penalty, self.entropy = penalty, entropy
        self.generators = nn.ModuleList(
            picture_maker(latent, input_shape, hidden, body, generator) for _ in range(components)
        )
        self.critics = nn.ModuleList(
            networks.critic(input_shape, hidden, body, generator=generator) for _ in range(components)
        )
        self.generator_logits = nn.Parameter(torch.zeros(components))
        self.critic_logits = nn.Parameter(torch.zeros(components))

    def generator_parameters(self) -> Iterator[nn.Parameter]:
        yield self.generator_logits
        yield from self.generators.parameters()

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        yield self.critic_logits
        yield from self.critics.parameters()

    def weights(self) -> tuple[Tensor, Tensor]:
        """(w of the generators, v of the critics), each T numbers that sum to 1; differentiable."""
        return self.generator_logits.softmax(0), self.critic_logits.softmax(0)

    def decode(self, z: Tensor) -> Tensor:
        """Seeds (n, latent) → images (n, *input_shape) in [0, 1]."""
        chosen = component_of(z[:, -1], self.weights()[0])
        pictures = z.new_empty(len(z), *self.input_shape)
        for index, maker in enumerate(self.generators):
            rows = chosen == index
            if bool(rows.any()):
                pictures[rows] = maker(z[rows, :-1])
        return pictures

    def scores(self, x: Tensor) -> Tensor:
        """D_j(x): (critics, n)."""
        return torch.stack([critic(x) for critic in self.critics])

    def fakes(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """About n images, as many from each generator: (T, n/T, *input_shape)."""
        each = -(-n // len(self.generators))
        seeds = networks.draw((len(self.generators), each, self.latent - 1), self.generator_logits, generator)
        return torch.stack([maker(z) for maker, z in zip(self.generators, seeds, strict=True)])

    def payoff(self, x: Tensor, fake: Tensor) -> Tensor:
        """P for real images (n, …) and generated ones (T, m, …): generators × critics."""
        return payoff_matrix(self.scores(x), self._fake_scores(fake))

    def _fake_scores(self, fake: Tensor) -> Tensor:
        """(T, m, …) → (generators, critics, m)."""
        scores = self.scores(fake.flatten(0, 1)).reshape(len(self.critics), *fake.shape[:2])
        return scores.transpose(0, 1)

    def critic_loss(
        self, x: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(loss, gap, penalty): the gap is the mixed payoff; every critic pays for its slope, whatever its
        weight, between real images and those of the mixture."""
        check_batch(x, self.input_shape)
        with torch.no_grad():
            fake = self.fakes(len(x), generator)
            mixed = self.sample(len(x), generator)
        generators, critics = self.weights()
        gap = mixed_payoff(self.payoff(x, fake), generators.detach(), critics)
        between = interpolates(x, mixed, draw_shares(x, generator))
        slope = torch.stack([gradient_penalty(critic, between) for critic in self.critics]).mean()
        loss = self.penalty * slope - gap + self.entropy * unevenness(self.critic_logits)
        return loss, gap, slope

    def generator_loss(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """−Σ w_i v_j E D_j(G_i) over about n images, and the entropy term.

        Real images would add a constant. Clear the critics' gradient before their next step.
        """
        generators, critics = self.weights()
        payoff = -self._fake_scores(self.fakes(n, generator)).mean(-1)
        mixed = mixed_payoff(payoff, generators, critics.detach())
        return mixed + self.entropy * unevenness(self.generator_logits)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n images, each from a generator drawn by the weights."""
        z = networks.draw((n, self.latent), self.generator_logits, generator)
        return networks.decode_in_blocks(self.decode, z, self.input_shape)
