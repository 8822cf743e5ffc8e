"""The Wasserstein GAN: its losses against critics with known slopes, and a game with a known end."""

import pytest
import torch
from torch import nn

from obverse._core.errors import BadInput
from obverse.generative._wgan import WGAN, gap, gradient_penalty, interpolates


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_gap_is_a_difference_of_means():
    assert float(gap(torch.tensor([1.0, 2.0]), torch.tensor([5.0, 3.0, 1.0]))) == -1.5


def test_interpolates_stand_between_row_by_row():
    real, fake = torch.ones(3, 1, 2, 2), torch.zeros(3, 1, 2, 2)
    found = interpolates(real, fake, torch.tensor([0.0, 0.25, 1.0]))
    assert found.flatten(1).tolist() == [[0.0] * 4, [0.25] * 4, [1.0] * 4]


def test_the_penalty_of_known_slopes():
    weight = torch.tensor([3.0, 4.0], requires_grad=True)  # slope 5 everywhere
    x = torch.randn(6, 2, generator=seeded())
    found = gradient_penalty(lambda z: z @ weight, x)
    found.backward()
    assert float(found.detach()) == pytest.approx(16)
    assert weight.grad.tolist() == pytest.approx([8 * 0.6, 8 * 0.8])  # 2(‖w‖ − 1) w/‖w‖
    flat = gradient_penalty(lambda z: 0 * z.sum(1), x)
    assert float(flat) == 1  # from both sides: no slope costs too
    bowl = gradient_penalty(lambda z: z.square().sum(1) / 2, x)  # slope ‖x‖ at x
    assert float(bowl.detach()) == pytest.approx(float((x.norm(dim=1) - 1).square().mean()))


def test_the_penalty_is_of_pictures_of_any_shape_and_leaves_x_alone():
    x = torch.rand(3, 1, 4, 4, generator=seeded())
    assert float(gradient_penalty(lambda z: z.flatten(1).sum(1), x)) == pytest.approx(9)  # slope √16 = 4
    assert not x.requires_grad


def test_the_losses_by_hand():
    wgan = WGAN((1, 4, 4), latent=3, hidden=(8,), penalty=7.0, generator=seeded())
    x = torch.rand(5, 1, 4, 4, generator=seeded(1))
    loss, found, slope = wgan.critic_loss(x, seeded(2))
    generator = seeded(2)
    fake = wgan.decoder(torch.randn(5, 3, generator=generator)).detach()
    share = torch.rand(5, generator=generator).reshape(5, 1, 1, 1)
    between = (share * x + (1 - share) * fake).requires_grad_()
    slopes = torch.stack(
        [torch.autograd.grad(wgan.critic(between)[row], between)[0][row].norm() for row in range(5)]
    )
    expected = wgan.critic(x).mean() - wgan.critic(fake).mean()
    # float32 sums in another order: the default tolerance of assert_close
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(slope, (slopes - 1).square().mean())
    torch.testing.assert_close(loss, 7 * slope - found)
    fake = wgan.decoder(torch.randn(6, 3, generator=seeded(3)))
    torch.testing.assert_close(wgan.generator_loss(6, seeded(3)), -wgan.critic(fake).mean())


def test_the_critics_loss_moves_the_critic_alone():
    wgan = WGAN((5,), latent=3, hidden=(8,), generator=seeded())
    wgan.critic_loss(torch.rand(4, 5, generator=seeded()), seeded())[0].backward()
    assert all(one.grad is None for one in wgan.generator_parameters())
    # A critic's last bias shifts real and fake alike: it alone gets no gradient, or one of zero.
    assert all(one.grad is not None and one.grad.any() for one in list(wgan.critic_parameters())[:-1])
    wgan.zero_grad(set_to_none=True)
    wgan.generator_loss(4, seeded()).backward()
    assert all(one.grad is not None and one.grad.any() for one in wgan.generator_parameters())
    assert len(list(wgan.parameters())) == len([*wgan.generator_parameters(), *wgan.critic_parameters()])


class Point(nn.Module):
    """A generator that makes one point of the plane."""

    def __init__(self, *place: float) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.tensor(place))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.place.expand(len(z), 2)


def test_the_best_critic_between_two_points():
    """At distance d, a slope s towards the data earns s·d − λ(s − 1)²: best at s = 1 + d/2λ.

    In a plane: on a line a critic that starts with the wrong sign stays there, as a slope of 0 costs λ.
    """
    wgan = WGAN((2,), latent=1, hidden=(16,), penalty=2.0, generator=seeded())
    wgan.decoder = Point(0.2, 0.5)
    optimizer = torch.optim.Adam(wgan.critic_parameters(), 0.01)
    generator, x = seeded(1), torch.tensor([[0.9, 0.5]]).expand(64, 2)
    gaps = []
    for _ in range(300):
        loss, found, _ = wgan.critic_loss(x, generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gaps.append(float(found.detach()))
    # 2 %: what the steps of Adam and batches of 64 interpolates leave; −gap or no penalty is far off.
    assert sum(gaps[-50:]) / 50 == pytest.approx(0.7 * (1 + 0.7 / 4), rel=0.02)
    wgan.generator_loss(4, generator).backward()
    assert float(wgan.decoder.place.grad[0]) == pytest.approx(-(1 + 0.7 / 4), rel=0.05)


def test_a_generator_finds_the_data():
    from sklearn.datasets import load_digits

    data = torch.from_numpy(load_digits().images[:500]).float()[:, None] / 16
    wgan = WGAN((1, 8, 8), latent=8, hidden=(32,), generator=seeded())
    generator = seeded(1)
    critics = torch.optim.Adam(wgan.critic_parameters(), 0.003, betas=(0.5, 0.9))
    makers = torch.optim.Adam(wgan.generator_parameters(), 0.003, betas=(0.5, 0.9))
    first = wgan.sample(500, seeded(2))
    for _ in range(100):
        x = data[torch.randint(500, (64,), generator=generator)]
        for _ in range(3):
            critics.zero_grad()
            wgan.critic_loss(x, generator)[0].backward()
            critics.step()
        makers.zero_grad()
        wgan.generator_loss(64, generator).backward()
        makers.step()
    last = wgan.sample(500, seeded(2))
    # The mean of 500 digits has a standard error of 0.1 in this norm; a generator of noise is 2.7 off.
    assert float((first.mean(0) - data.mean(0)).norm()) > 2
    assert float((last.mean(0) - data.mean(0)).norm()) < 0.5
    assert float(last.std(0).mean()) > 0.5 * float(data.std(0).mean())  # it is no mean image


@pytest.mark.parametrize("body", ["mlp", "conv"])
def test_samples_are_pictures(body):
    wgan = WGAN((1, 8, 8), latent=3, hidden=(8,), body=body, generator=seeded())
    before = torch.get_rng_state()
    found = wgan.sample(5, seeded(1))
    loss, _, _ = wgan.critic_loss(found, seeded(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert found.shape == (5, 1, 8, 8)
    assert not found.requires_grad
    assert bool(((found > 0) & (found < 1)).all())
    assert torch.equal(found, wgan.decode(torch.randn(5, 3, generator=seeded(1))))
    assert loss.isfinite()


def test_generator_is_a_random_generator_and_no_network():
    """One name, one thing: the network is the decoder."""
    wgan = WGAN((5,), latent=3, hidden=(8,), generator=seeded())
    assert not hasattr(wgan, "generator")
    torch.testing.assert_close(wgan.decoder(torch.ones(1, 3)), wgan.decode(torch.ones(1, 3)))


def test_what_does_not_fit_is_refused():
    wgan = WGAN((5,), latent=3, hidden=(8,))
    for x in (torch.rand(2, 6), torch.full((2, 5), float("nan")), torch.full((2, 5), 1.1), torch.rand(0, 5)):
        with pytest.raises(BadInput):
            wgan.critic_loss(x, seeded())
    for wrong in [{"penalty": -1.0}, {"penalty": float("inf")}, {"latent": 0}, {"body": "conv"}]:
        with pytest.raises(BadInput):
            WGAN((5,), **wrong)
