"""Importance-weighted log p(x) against a linear-Gaussian model, where it is exact, and an integral."""

from math import log

import pytest
import torch
from torch import distributions

from obverse._core.errors import BadInput
from obverse.generative._likelihood import log_likelihood, log_weights
from obverse.generative._vae import VAE


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Linear:
    """x = Wz + σε with orthogonal columns of W, so that the true posterior is a diagonal Gaussian.

    `widen` is added to the log-variance of q: 0 for the true posterior.
    """

    def __init__(self, d: int = 5, latent: int = 3, sigma: float = 0.5, widen: float = 0.0) -> None:
        axes = torch.linalg.qr(torch.randn(d, latent, generator=seeded(), dtype=torch.float64)).Q
        self.weight = axes * torch.linspace(0.5, 2.0, latent, dtype=torch.float64)
        self.sigma, self.widen = sigma, widen

    def draw(self, n: int) -> torch.Tensor:
        z = torch.randn(n, self.weight.shape[1], generator=seeded(1), dtype=torch.float64)
        noise = torch.randn(n, len(self.weight), generator=seeded(2), dtype=torch.float64)
        return z @ self.weight.T + self.sigma * noise

    def exact(self, x: torch.Tensor) -> torch.Tensor:
        covariance = self.weight @ self.weight.T + self.sigma**2 * torch.eye(len(self.weight)).double()
        zero = torch.zeros(len(self.weight)).double()
        return distributions.MultivariateNormal(zero, covariance).log_prob(x)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        precision = 1 + self.weight.square().sum(0) / self.sigma**2
        mean = x @ self.weight / self.sigma**2 / precision
        return mean, (self.widen - precision.log()).expand_as(mean)

    def log_conditional(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return distributions.Normal(z @ self.weight.T, self.sigma).log_prob(x).sum(1)


@pytest.mark.parametrize(("rows", "samples", "batch"), [(1, 1, 1), (7, 5, 3), (7, 5, 16), (2500, 3, 10_000)])
def test_with_the_true_posterior_every_draw_gives_log_p(rows, samples, batch):
    model = Linear()
    x = model.draw(rows)
    found = log_likelihood(model, x, samples=samples, batch_size=batch, generator=seeded(3))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, model.exact(x))  # float64: 1e-7 relative


def test_with_a_wider_q_it_converges():
    model = Linear(widen=0.7)
    x = model.draw(20)
    found = log_likelihood(model, x, samples=20_000, batch_size=5000, generator=seeded(3))
    w = log_weights(model, x, torch.randn(20_000, 20, 3, generator=seeded(4), dtype=torch.float64)).exp()
    error = w.std(0) / w.mean(0) / 20_000**0.5  # of log of a mean, to first order
    assert ((found - model.exact(x)).abs() < 5 * error).all()
    assert float(error.max()) < 0.02


def test_chunks_of_samples_are_put_together():
    """The same draws as `log_likelihood` makes in chunks of 2, 2 and 1, averaged by hand."""
    model = Linear(widen=0.7)
    x, generator = model.draw(4), seeded(5)
    found = log_likelihood(model, x, samples=5, batch_size=9, generator=seeded(5))
    drawn = [torch.randn(count, 4, 3, generator=generator, dtype=torch.float64) for count in (2, 2, 1)]
    weights = torch.cat([log_weights(model, x, noise) for noise in drawn])
    torch.testing.assert_close(found, weights.exp().mean(0).log())


def test_one_sample_is_the_elbo_on_average_and_more_are_above():
    model = Linear(widen=0.7)
    x = model.draw(1).expand(40_000, -1)
    means = [float(log_likelihood(model, x, samples=k, generator=seeded(k)).mean()) for k in (1, 4)]
    mean, logs = model.encode(x[:1])
    # ELBO = log p − KL[q ‖ posterior], the two with the same mean and variances apart by a factor e^0.7.
    kl = 3 * (2.718281828459045**0.7 - 1 - 0.7) / 2
    spread = float(log_likelihood(model, x, samples=1, generator=seeded(9)).std()) / 200
    assert abs(means[0] - (float(model.exact(x[:1])) - kl)) < 5 * spread
    assert means[0] + 5 * spread < means[1] < float(model.exact(x[:1])) + 5 * spread
    assert mean.shape == logs.shape == (1, 3)


@torch.no_grad()
def test_a_vae_against_an_integral_over_its_latent_line():
    vae = VAE((4,), latent=1, hidden=(5,), decoder="gaussian", sigma=0.3, generator=seeded(2)).double()
    x = torch.rand(6, 4, generator=seeded(3), dtype=torch.float64)
    line = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
    inside = distributions.Normal(vae.decode(line[:, None])[:, None], 0.3).log_prob(x).sum(-1)
    prior = distributions.Normal(0.0, 1.0).log_prob(line)
    expected = (inside + prior[:, None]).logsumexp(0) + log(float(line[1] - line[0]))
    found = log_likelihood(vae, x, samples=4000, generator=seeded(4))
    weights = log_weights(vae, x, torch.randn(4000, 6, 1, generator=seeded(5), dtype=torch.float64)).exp()
    error = weights.std(0) / weights.mean(0) / 4000**0.5
    assert ((found - expected).abs() < 5 * error).all()
    assert float(error.max()) < 0.1


def test_very_small_probabilities_do_not_vanish():
    model = Linear(d=5, sigma=1e-3)
    x = model.draw(3) + 10.0
    found = log_likelihood(model, x, samples=3, generator=seeded())
    assert float(found.max()) < -1e5  # exp of it is 0 in any floating-point number
    torch.testing.assert_close(found, model.exact(x), rtol=1e-6, atol=0.0)  # squares of 1e4 with rounding


def test_progress_counts_every_pair_and_the_global_generator_is_left_alone():
    seen = []
    model, before = Linear(), torch.get_rng_state()
    log_likelihood(
        model,
        model.draw(7),
        samples=5,
        batch_size=3,
        generator=seeded(),
        progress=lambda done, total, what: seen.append((done, total)),
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert seen[-1] == (35, 35)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_nothing_to_do_is_refused():
    model = Linear()
    for x, samples, batch in [(model.draw(1)[:0], 1, 1), (model.draw(1), 0, 1), (model.draw(1), 1, 0)]:
        with pytest.raises(BadInput):
            log_likelihood(model, x, samples=samples, batch_size=batch)


@pytest.mark.parametrize("decoder", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("wrong", [-0.1, 1.1, 255.0, float("nan"), float("inf")])
def test_what_is_no_pixel_is_refused_as_by_the_bound(decoder, wrong):
    vae = VAE((4,), latent=1, hidden=(5,), decoder=decoder)
    x = torch.rand(3, 4, generator=seeded())
    assert bool(torch.isfinite(log_likelihood(vae, x, samples=2)).all())
    x[1, 2] = wrong
    with pytest.raises(BadInput, match=r"pixels in \[0, 1\]"):
        log_likelihood(vae, x, samples=2)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_other_models_may_have_any_finite_numbers(wrong):
    model = Linear()
    x = 10 * model.draw(3)
    assert bool(torch.isfinite(log_likelihood(model, x, samples=2)).all())
    x[1, 2] = wrong
    with pytest.raises(BadInput, match="finite values of x"):
        log_likelihood(model, x, samples=2)
