"""The VAE against torch.distributions, scipy, plain loops, and integrals over a latent line."""

from math import exp, log

import pytest
import torch
from torch import distributions

from obverse._core.errors import BadInput
from obverse.generative._vae import (
    VAE,
    Elbo,
    bernoulli_log_likelihood,
    gaussian_log_likelihood,
    kl_to_standard,
    kl_to_standard_full,
    log_normal,
    reparametrize,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def test_kl_is_that_of_torch_distributions():
    mean, log_variance = normal(40, 6), normal(40, 6, seed=1)
    q = distributions.Independent(distributions.Normal(mean, (log_variance / 2).exp()), 1)
    p = distributions.Independent(distributions.Normal(torch.zeros(6).double(), torch.ones(6).double()), 1)
    expected = distributions.kl_divergence(q, p)
    torch.testing.assert_close(kl_to_standard(mean, log_variance), expected)  # float64: 1e-7 relative


def test_kl_of_a_full_covariance_is_that_of_torch_distributions_and_of_the_diagonal_one():
    mean, factor = normal(10, 4), normal(10, 4, 4, seed=1)
    covariance = factor @ factor.mT + 0.1 * torch.eye(4).double()
    q = distributions.MultivariateNormal(mean, covariance)
    p = distributions.MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double())
    expected = distributions.kl_divergence(q, p)
    torch.testing.assert_close(kl_to_standard_full(mean, covariance), expected)
    logs = normal(10, 4, seed=2)
    torch.testing.assert_close(kl_to_standard_full(mean, logs.exp().diag_embed()), kl_to_standard(mean, logs))


def test_kl_is_zero_for_the_prior_alone():
    zero = torch.zeros(1, 5).double()
    assert float(kl_to_standard(zero, zero)) == 0
    assert float(kl_to_standard(zero + 0.1, zero)) == pytest.approx(0.025)
    assert float(kl_to_standard_full(zero, torch.eye(5).double())) == 0


def test_a_covariance_that_is_none_is_refused():
    with pytest.raises(BadInput, match="positive definite"):
        kl_to_standard_full(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]]))


def test_log_normal_is_scipys():
    from scipy import stats

    z, mean, logs = normal(5, 3), normal(5, 3, seed=1), normal(5, 3, seed=2)
    expected = stats.norm.logpdf(z.numpy(), mean.numpy(), (logs / 2).exp().numpy()).sum(1)
    torch.testing.assert_close(log_normal(z, mean, logs), torch.from_numpy(expected))


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_the_gaussian_decoder_has_its_constant(sigma):
    from scipy import stats

    x, mean = normal(5, 1, 2, 3), normal(5, 1, 2, 3, seed=1)
    expected = stats.norm.logpdf(x.numpy(), mean.numpy(), sigma).reshape(5, -1).sum(1)
    torch.testing.assert_close(gaussian_log_likelihood(x, mean, sigma), torch.from_numpy(expected))


def test_the_bernoulli_decoder_is_a_probability_on_binary_data_and_cross_entropy_on_grey():
    logits = normal(3, 1, 2, 2)
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 4).reshape(16, 1, 2, 2)
    for one in logits:
        total = bernoulli_log_likelihood(corners, one.expand(16, -1, -1, -1)).exp().sum()
        assert float(total) == pytest.approx(1)
    x = torch.rand(3, 1, 2, 2, generator=seeded(), dtype=torch.float64)
    for row in range(3):
        expected = 0.0
        for pixel, logit in zip(x[row].flatten().tolist(), logits[row].flatten().tolist(), strict=True):
            p = 1 / (1 + exp(-logit))
            expected += pixel * log(p) + (1 - pixel) * log(1 - p)
        found = bernoulli_log_likelihood(x, logits)[row]
        assert float(found) == pytest.approx(expected)


def test_large_logits_do_not_overflow():
    found = bernoulli_log_likelihood(torch.tensor([[1.0], [0.0]]), torch.tensor([[-500.0], [-500.0]]))
    assert found.tolist() == [-500.0, 0.0]


def test_reparametrized_draws_have_the_law():
    mean, logs = torch.tensor([1.0, -2.0]).double(), torch.tensor([0.5, -1.0]).double()
    z = reparametrize(mean, logs, normal(100_000, 2))
    # Standard errors over n draws: mean √(var/n), variance var·√(2/n).
    assert ((z.mean(0) - mean).abs() < 5 * (logs.exp() / 1e5).sqrt()).all()
    assert ((z.var(0) - logs.exp()).abs() < 5 * logs.exp() * (2 / 1e5) ** 0.5).all()


LINE = torch.linspace(-9, 9, 20_001, dtype=torch.float64)  # z; steps of 0.0009, tails beyond 9 below 1e-18


def line_model(decoder: str) -> tuple[VAE, torch.Tensor]:
    vae = VAE((1, 2, 2), latent=1, hidden=(5,), decoder=decoder, sigma=0.4, generator=seeded(2)).double()
    x = torch.rand(3, 1, 2, 2, generator=seeded(3), dtype=torch.float64)
    return vae, x.round() if decoder == "bernoulli" else x


@torch.no_grad()
def integrals(vae: VAE, row: torch.Tensor) -> tuple[float, float, float]:
    """E_q log p(x|z), KL[q ‖ p] and log p(x) as sums over the line, with densities written out here."""
    mean, logs = vae.encode(row[None])
    z = LINE[:, None]
    prob = torch.sigmoid(vae.decoder(z)).flatten(1)
    pixels = row.flatten()
    if vae.likelihood == "bernoulli":
        inside = torch.where(pixels > 0.5, prob, 1 - prob).log().sum(1)
    else:
        inside = distributions.Normal(prob, vae.sigma).log_prob(pixels).sum(1)
    q = distributions.Normal(mean[0, 0], (logs[0, 0] / 2).exp()).log_prob(LINE)
    p = distributions.Normal(0.0, 1.0).log_prob(LINE)
    step = LINE[1] - LINE[0]
    return (
        float((q.exp() * inside).sum() * step),
        float((q.exp() * (q - p)).sum() * step),
        float((inside + p).logsumexp(0) + step.log()),
    )


@pytest.mark.parametrize("decoder", ["bernoulli", "gaussian"])
@torch.no_grad()
def test_the_elbo_is_unbiased_for_the_integral_and_below_log_p(decoder):
    vae, x = line_model(decoder)
    for row in x:
        expected, kl, log_p = integrals(vae, row)
        found = vae.elbo(row.expand(20_000, -1, -1, -1), seeded(4))
        error = float(found.reconstruction.std()) / 20_000**0.5
        assert abs(float(found.reconstruction.mean()) - expected) < 5 * error
        torch.testing.assert_close(found.kl, torch.full_like(found.kl, kl))
        torch.testing.assert_close(found.total, found.reconstruction - found.kl)
        assert expected - kl < log_p


@torch.no_grad()
def test_the_elbo_by_hand():
    vae, x = line_model("gaussian")
    found = vae.elbo(x, seeded(7))
    mean, logs = vae.encoder(x).split(1, dim=1)
    z = mean + logs.exp().sqrt() * torch.randn(3, 1, generator=seeded(7), dtype=torch.float64)
    picture = vae.decode(z)
    expected = [float(distributions.Normal(picture[i], 0.4).log_prob(x[i]).sum()) for i in range(3)]
    assert isinstance(found, Elbo)
    assert found.reconstruction.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("body", ["mlp", "conv"])
@pytest.mark.parametrize("decoder", ["bernoulli", "gaussian"])
def test_every_weight_learns_and_the_bound_rises(body, decoder):
    pictures = digits()
    vae = VAE((1, 8, 8), latent=4, hidden=(32,), body=body, decoder=decoder, sigma=0.3, generator=seeded())
    optimizer = torch.optim.Adam(vae.parameters(), 3e-3)
    generator = seeded(1)
    bounds = []
    for _ in range(30):
        bound = vae.elbo(pictures, generator).total.mean()
        optimizer.zero_grad()
        (-bound).backward()
        assert all(one.grad is not None and one.grad.any() for one in vae.parameters())
        optimizer.step()
        bounds.append(float(bound.detach()))
    # The mean over 128 images of one draw each scatters by a few tenths of a nat.
    assert bounds[-1] > bounds[0] + 3


def digits(count: int = 128) -> torch.Tensor:
    from sklearn.datasets import load_digits

    return torch.from_numpy(load_digits().images[:count]).float()[:, None] / 16


def test_samples_are_means_of_gaussian_seeds():
    vae = VAE((1, 8, 8), latent=3, hidden=(9,), generator=seeded())
    before = torch.get_rng_state()
    found = vae.sample(5, seeded(1))
    assert torch.equal(torch.get_rng_state(), before)
    assert found.shape == (5, 1, 8, 8)
    assert not found.requires_grad
    z = torch.randn(5, 3, generator=seeded(1))
    torch.testing.assert_close(found, 1 / (1 + (-vae.decoder(z)).exp()))
    assert torch.equal(found, vae.sample(5, seeded(1)))
    assert not torch.equal(found, vae.sample(5, seeded(2)))


def test_decode_is_differentiable_and_forward_reconstructs():
    vae = VAE((6,), latent=3, hidden=(9,), generator=seeded())
    z = torch.ones(2, 3, requires_grad=True)
    vae.decode(z).sum().backward()
    assert z.grad.any()
    x = torch.rand(2, 6, generator=seeded())
    torch.testing.assert_close(vae(x), vae.decode(vae.encode(x)[0]))


def test_the_usual_example_has_its_sizes():
    weights = [one.weight.shape for one in VAE((1, 28, 28)).modules() if isinstance(one, torch.nn.Linear)]
    assert weights == [(400, 784), (40, 400), (400, 20), (784, 400)]


@pytest.mark.parametrize(
    "x",
    [torch.full((2, 6), 1.5), torch.full((2, 6), -0.1), torch.full((2, 6), float("nan")), torch.zeros(0, 6)],
    ids=["above", "below", "nan", "empty"],
)
def test_what_is_no_pixel_is_refused(x):
    with pytest.raises(BadInput, match=r"\[0, 1\]"):
        VAE((6,), latent=2, hidden=(3,)).elbo(x, seeded())


def test_other_shapes_and_settings_are_refused():
    vae = VAE((6,), latent=2, hidden=(3,))
    with pytest.raises(BadInput, match=r"shape \(n, 6\)"):
        vae.elbo(torch.zeros(2, 1, 6), seeded())
    for wrong in [{"sigma": 0.0}, {"sigma": float("nan")}, {"decoder": "poisson"}, {"latent": 0}]:
        with pytest.raises(BadInput):
            VAE((6,), **wrong)


def test_bytes_are_refused_with_the_way_out():
    pixels = torch.zeros(3, 1, 4, 4, dtype=torch.uint8)
    with pytest.raises(BadInput, match=r"floating pixels in \[0, 1\]; got torch.uint8; convert them"):
        VAE((1, 4, 4), 2, (5,)).elbo(pixels, torch.Generator().manual_seed(0))
