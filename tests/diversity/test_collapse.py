"""A GAN that was made to collapse is told from a healthy one, by the birthday test alone."""

from __future__ import annotations

import pytest
import torch

from obverse.data import load
from obverse.diversity._birthday import birthday_test
from obverse.diversity._sources import Sampler
from obverse.generative._wgan import WGAN

DATA = load("digits")
ADAM = {"lr": 3e-4, "betas": (0.0, 0.9)}  # as `obverse generate` trains


def trained(steps: int, critic_steps: int, generator_steps: int) -> Sampler:
    """A WGAN on the digits. A generator that moves five times for one step of the critic runs after the one
    picture that the critic likes best; a critic that moves five times keeps it apart."""
    net = WGAN(DATA.input_shape, 16, (128, 128), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    critic = torch.optim.Adam(net.critic_parameters(), **ADAM)
    maker = torch.optim.Adam(net.generator_parameters(), **ADAM)
    for _ in range(steps):
        for _ in range(critic_steps):
            critic.zero_grad()
            rows = torch.randint(len(DATA.train_x), (100,), generator=generator)
            net.critic_loss(DATA.train_x[rows], generator)[0].backward()
            critic.step()
        for _ in range(generator_steps):
            maker.zero_grad()
            net.generator_loss(100, generator).backward()
            maker.step()
    return net.eval().sample


@pytest.fixture(scope="module")
def healthy() -> Sampler:
    return trained(steps=400, critic_steps=5, generator_steps=1)


@pytest.fixture(scope="module")
def collapsed() -> Sampler:
    return trained(steps=400, critic_steps=1, generator_steps=5)


@pytest.mark.slow
def test_the_collapsed_one_is_caught(collapsed: Sampler) -> None:
    found = birthday_test(collapsed, batches=20, real=DATA.test_x, budget=4000)
    # As diverse as real digits it would collide in at most a twentieth of the batches.
    assert found.p_real is not None
    assert found.p_real < 1e-6
    assert found.support_bound is not None
    assert found.threshold.real_support is not None
    assert found.support_bound < found.threshold.real_support / 20


@pytest.mark.slow
def test_the_healthy_one_is_not(healthy: Sampler) -> None:
    found = birthday_test(healthy, batches=20, real=DATA.test_x, budget=4000)
    assert found.p_real is not None
    assert found.p_real > 0.05


def test_pictures_show_what_was_found(collapsed: Sampler) -> None:
    found = birthday_test(collapsed, 50, 5, real=DATA.test_x)
    distances = (found.pictures[:, 0] - found.pictures[:, 1]).flatten(1).double().norm(dim=1)
    expected = torch.tensor([pair.distance for pair in found.closest], dtype=torch.float64)
    torch.testing.assert_close(distances, expected, rtol=1e-6, atol=1e-6)  # differences of float32 pictures
    assert float(distances.max()) <= found.threshold.distance
