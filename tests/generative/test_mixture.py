"""MIX+GAN: payoffs in plain loops, gradients through the weights, and a game whose best weights are known."""

from math import log

import pytest
import torch
from torch import distributions, nn

from obverse._core.errors import BadInput
from obverse.generative._mixture import Mixture, component_of, mixed_payoff, payoff_matrix, unevenness


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(components: int = 3, **more) -> Mixture:
    return Mixture((1, 4, 4), components, latent=2, hidden=(6,), generator=seeded(), **more)


def test_the_payoff_matrix_in_loops():
    mixture = small()
    x, fake = torch.rand(5, 1, 4, 4, generator=seeded(1)), mixture.fakes(6, seeded(2))
    assert fake.shape == (3, 2, 1, 4, 4)
    found = mixture.payoff(x, fake)
    for i in range(3):
        for j in range(3):
            real = sum(mixture.critics[j](one[None])[0] for one in x) / 5
            made = sum(mixture.critics[j](one[None])[0] for one in fake[i]) / 2
            torch.testing.assert_close(found[i, j], real - made)  # float32 sums in another order


def test_payoff_from_scores_and_its_mixture():
    real = torch.tensor([[1.0, 3.0], [0.0, 0.0]])  # critics × images
    fake = torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]])  # generators × critics × images
    payoff = payoff_matrix(real, fake)
    assert payoff.tolist() == [[1.0, -2.0], [-1.0, -4.0], [-3.0, -6.0]]
    weights, critics = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.9, 0.1])
    expected = sum(weights[i] * critics[j] * payoff[i, j] for i in range(3) for j in range(2))
    assert float(mixed_payoff(payoff, weights, critics)) == pytest.approx(float(expected))


def test_the_gradient_through_the_weights():
    """∂/∂u_i of Σ w_i P_ij v_j at w = softmax(u) is w_i((Pv)_i − wᵀPv)."""
    payoff = torch.randn(4, 4, generator=seeded(), dtype=torch.float64)
    logits = torch.randn(4, generator=seeded(1), dtype=torch.float64, requires_grad=True)
    critics = torch.randn(4, generator=seeded(2), dtype=torch.float64).softmax(0)
    weights = logits.softmax(0)
    mixed_payoff(payoff, weights, critics).backward()
    w, each = weights.detach(), payoff @ critics
    torch.testing.assert_close(logits.grad, w * (each - w @ each))


def test_unevenness_is_the_divergence_of_even_weights():
    assert float(unevenness(torch.zeros(5))) == pytest.approx(0, abs=1e-6)  # float32 rounding of log 5
    logits = torch.randn(5, generator=seeded(), dtype=torch.float64)
    even = distributions.Categorical(torch.full((5,), 0.2).double())
    expected = distributions.kl_divergence(even, distributions.Categorical(logits=logits))
    torch.testing.assert_close(unevenness(logits), expected)
    w = logits.softmax(0).tolist()
    assert float(unevenness(logits)) == pytest.approx(-sum(map(log, w)) / 5 - log(5))


def test_components_have_their_weights():
    weights = torch.tensor([0.2, 0.5, 0.3])
    found = component_of(torch.randn(40_000, generator=seeded()), weights).bincount(minlength=3) / 40_000
    assert ((found - weights).abs() < 5 * (weights * (1 - weights) / 40_000).sqrt()).all()  # binomial
    # Φ(z) = 0.2 at −0.84 and 0.7 at 0.52; the ends belong to the outer ones, whatever the sum rounds to.
    ends = torch.tensor([-40.0, -0.9, -0.8, 0.5, 0.6, 40.0])
    assert component_of(ends, weights).tolist() == [0, 0, 1, 1, 2, 2]
    assert component_of(torch.tensor([-9.0, 9.0]), torch.ones(1)).tolist() == [0, 0]


def test_seeds_go_to_the_generator_that_their_last_number_chooses():
    mixture = small()
    with torch.no_grad():
        mixture.generator_logits.copy_(torch.tensor([0.5, 0.3, 0.2]).log())
    z = torch.randn(50, mixture.latent, generator=seeded(3))
    assert mixture.latent == 3
    found, seen = mixture.decode(z), set()
    for row in range(50):
        share = float(distributions.Normal(0.0, 1.0).cdf(z[row, -1]))
        index = 0 if share < 0.5 else 1 if share < 0.8 else 2
        seen.add(index)
        torch.testing.assert_close(found[row], mixture.generators[index](z[row : row + 1, :-1])[0])
    assert seen == {0, 1, 2}
    z.requires_grad_()
    mixture.decode(z).sum().backward()
    assert z.grad[:, :-1].any()
    assert not z.grad[:, -1].any()


CORNERS = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]


class Point(nn.Module):
    def __init__(self, place: tuple[float, float]) -> None:
        super().__init__()
        self.place = torch.tensor(place)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.place.expand(len(z), 2)


def fixed(count: int = 3, **more) -> Mixture:
    """A mixture in the plane whose generators make one corner each."""
    mixture = Mixture((2,), count, latent=1, hidden=(24,), generator=seeded(), **more)
    mixture.generators = nn.ModuleList(map(Point, CORNERS[:count]))
    return mixture


def corners(*counts: int) -> torch.Tensor:
    return torch.tensor([place for place, count in zip(CORNERS, counts, strict=False) for _ in range(count)])


def test_samples_have_the_shares_of_the_weights():
    mixture = fixed()
    with torch.no_grad():
        mixture.generator_logits.copy_(torch.tensor([0.6, 0.1, 0.3]).log())
    found = mixture.sample(20_000, seeded(1))
    for place, share in zip(CORNERS, (0.6, 0.1, 0.3), strict=True):
        there = float((found == torch.tensor(place)).all(1).double().mean())
        assert abs(there - share) < 5 * (share * (1 - share) / 20_000) ** 0.5  # binomial


def test_each_loss_moves_its_own_weights():
    mixture = small(entropy=0.1)
    with torch.no_grad():
        mixture.generator_logits.copy_(torch.tensor([0.3, 0.0, -0.3]))
        mixture.critic_logits.copy_(torch.tensor([0.2, 0.0, -0.2]))
    loss, found, slope = mixture.critic_loss(torch.rand(6, 1, 4, 4, generator=seeded(1)), seeded(2))
    loss.backward()
    assert all(one.grad is None for one in mixture.generator_parameters())
    assert mixture.critic_logits.grad.any()
    assert all(one.grad is not None for one in list(mixture.critics[0].parameters())[:-1])
    expected = 10 * slope - found + 0.1 * unevenness(mixture.critic_logits)
    torch.testing.assert_close(loss, expected)
    mixture.zero_grad(set_to_none=True)
    mixture.generator_loss(6, seeded(2)).backward()
    assert mixture.critic_logits.grad is None
    assert all(one.grad is not None and one.grad.any() for one in mixture.generator_parameters())
    assert len(list(mixture.parameters())) == len(
        [*mixture.generator_parameters(), *mixture.critic_parameters()]
    )


def test_the_generators_loss_is_the_gap_without_its_real_part():
    mixture = small(entropy=0.0)
    x, fake = torch.rand(6, 1, 4, 4, generator=seeded(1)), mixture.fakes(6, seeded(2))
    weights, critics = mixture.weights()
    gap = mixed_payoff(mixture.payoff(x, fake), weights, critics)
    torch.testing.assert_close(
        mixture.generator_loss(6, seeded(2)), gap - mixture.scores(x).mean(1) @ critics
    )


def test_one_component_is_a_wgan():
    mixture = small(1)
    x = torch.rand(6, 1, 4, 4, generator=seeded(1))
    loss, found, slope = mixture.critic_loss(x, seeded(2))
    critic = mixture.critics[0]
    fake = mixture.fakes(6, seeded(2))[0]  # the first draws of the loss
    torch.testing.assert_close(found, critic(x).mean() - critic(fake).mean())
    torch.testing.assert_close(loss, 10 * slope - found)


def play(mixture: Mixture, x: torch.Tensor, rounds: int) -> torch.Tensor:
    """The generators' weights, averaged over the second half of the rounds."""
    generator = seeded(5)
    critics = torch.optim.Adam(mixture.critic_parameters(), 0.01, betas=(0.5, 0.9))
    makers = torch.optim.Adam([mixture.generator_logits], 0.02, betas=(0.5, 0.9))
    seen = []
    for _ in range(rounds):
        for _ in range(2):
            critics.zero_grad()
            mixture.critic_loss(x, generator)[0].backward()
            critics.step()
        makers.zero_grad()
        mixture.generator_loss(2, generator).backward()
        makers.step()
        seen.append(mixture.weights()[0].detach())
    return torch.stack(seen[rounds // 2 :]).mean(0)


def test_trained_weights_approach_the_masses_of_the_modes():
    """Generators that stand at the modes: the critics can gain nothing at w = masses, and only there."""
    masses = torch.tensor([0.6, 0.3, 0.1])
    mixture = fixed(entropy=0.0, penalty=0.5)
    x = corners(18, 9, 3)
    found = play(mixture, x, 100)
    # The weights circle around the masses, so that their average is closer (0.02 at worst over three seeds)
    # than they are at any time; they start at ⅓ each, 0.27 off.
    assert float((found - masses).abs().max()) < 0.05


def test_a_strong_entropy_term_keeps_weights_even():
    x = corners(18, 2)
    free, held = fixed(2, entropy=0.0, penalty=0.5), fixed(2, entropy=100.0, penalty=0.5)
    assert float(play(free, x, 50)[0]) > 0.75
    assert float(play(held, x, 50)[0]) < 0.55


@pytest.mark.parametrize("body", ["mlp", "conv"])
def test_pictures_from_a_mixture_of_nets(body):
    mixture = Mixture((1, 8, 8), 2, latent=3, hidden=(8,), body=body, generator=seeded())
    before = torch.get_rng_state()
    found = mixture.sample(5, seeded(1))
    mixture.critic_loss(found, seeded(1))
    mixture.generator_loss(5, seeded(1))
    assert torch.equal(torch.get_rng_state(), before)
    assert found.shape == (5, 1, 8, 8)
    assert not found.requires_grad
    assert bool(((found > 0) & (found < 1)).all())
    assert torch.equal(found, mixture.sample(5, seeded(1)))


def test_what_does_not_fit_is_refused():
    for wrong in [{"components": 0}, {"entropy": -0.1}, {"penalty": float("nan")}, {"body": "conv"}]:
        with pytest.raises(BadInput):
            Mixture((5,), **wrong)
    with pytest.raises(BadInput):
        small().critic_loss(torch.full((2, 1, 4, 4), float("nan")), seeded())
