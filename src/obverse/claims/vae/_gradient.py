"""The reparametrization trick beside the score, and an f whose posterior is a Gaussian. Not for the bound."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor

from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._elbo import Linear, check_linear, normals, the_model
from ._importance import one
from ._inverse_cdf import NOTES


@measurement("vae.elbo.measure_gradient")
def measure_gradient(setting: Setting, generator: torch.Generator) -> list[float]:
    """The mean of n draws of the derivative, one a trial."""
    shape = (setting["trials"], setting["n"])
    drawn = _derivatives(setting, setting["way"], shape[0] * shape[1], generator)
    values: list[float] = drawn.reshape(shape).mean(1).tolist()
    return values


def _derivatives(setting: Setting, way: str, count: int, generator: torch.Generator) -> Tensor:
    """Draws of ∂ log p(x|z)/∂m · u + ∂ log p(x|z)/∂ log s · v, q = N(m, diag s²), by backpropagation through
    z = m + sε or by the score log p(x|z) ∇log q(z)."""
    model, (along, across) = _diagonal(setting)
    mean, logs = model.mean.clone(), model.covariance.diagonal().log() / 2
    mean, logs = mean.expand(count, -1), logs.expand(count, -1)
    mean, logs = mean.clone().requires_grad_(), logs.clone().requires_grad_()
    z = mean + logs.exp() * normals(tuple(mean.shape), generator)
    if way == "reparametrized":
        value = model.log_conditional(z).sum()
    else:
        fixed = z.detach()
        inside = (-((fixed - mean) / logs.exp()).square() / 2 - logs).sum(1)
        value = (model.log_conditional(fixed) * inside).sum()
    slope, stretch = torch.autograd.grad(value, [mean, logs])
    drawn: Tensor = slope @ along + stretch @ across
    return drawn


def _diagonal(setting: Setting) -> tuple[Linear, Tensor]:
    """The model of a setting with a diagonal q, and a direction for m and one for log s that go uphill."""
    found = the_model(setting)
    model = Linear(found.weight, found.sigma, found.x, found.mean, found.covariance.diagonal().diag())
    slope, stretch = _gradient(model)
    return model, torch.stack([slope / slope.norm(), stretch / stretch.norm()])


def _gradient(model: Linear) -> tuple[Tensor, Tensor]:
    """Of E_q log p(x|z): Wᵀ(x − Wm)/σ² by m, and −s_i²‖w_i‖²/σ² by log s_i."""
    slope = model.weight.T @ (model.x - model.weight @ model.mean) / model.sigma**2
    stretch = -model.covariance.diagonal() * model.weight.square().sum(0) / model.sigma**2
    return slope, stretch


def gradient(setting: Setting) -> float:
    model, directions = _diagonal(setting)
    slope, stretch = _gradient(model)
    return float(slope @ directions[0] + stretch @ directions[1])


register(
    Claim(
        id="vae.gradient",
        title="The reparametrization trick",
        statement=(
            "The gradient of log p(x|μ + Σ^½ε) by μ and Σ is on average that of E_q log p(x|z); so is "
            "log p(x|z) times that of log q(z)."
        ),
        source=f"{NOTES}, the reparametrization trick (line 114); what it does to the mean is not in it",
        reading="exact",
        grid=grid(way=("reparametrized", "score"), d=(1, 3, 10), D=(2, 5), sigma=1.0, n=1000, trials=200),
        quick=grid(way="reparametrized", d=(1, 3), D=5, sigma=1.0, n=100, trials=100),
        predict=gradient,
        measure=measure_gradient,
        rule=Equal(),
        quantity="derivative along a direction",
        axis="d",
        series="way",
        remark="Both are right on average; how much they scatter differs (vae.gradient.variance).",
    )
)


@measurement("vae.elbo.measure_variances")
@per_trial
def measure_variances(setting: Setting, generator: torch.Generator) -> float:
    """Variance of the reparametrized derivative by that of the score's, over n draws each, one a trial."""
    path, score = (
        _derivatives(setting, way, setting["n"], generator).var() for way in ("reparametrized", "score")
    )
    return float(path / score)


register(
    Claim(
        id="vae.gradient.variance",
        title="Why the trick is used",
        statement="In the linear model the reparametrized gradient scatters less than the score's.",
        source=f"{NOTES}, the reparametrization trick; the comparison is not in it",
        grid=grid(d=(1, 3, 10), D=(2, 5), sigma=1.0, n=5000, trials=20),
        quick=grid(d=(1, 3), D=5, sigma=1.0, n=1000, trials=10),
        predict=one,
        measure=measure_variances,
        rule=MeanBelow(),
        quantity="variance of the reparametrized gradient ÷ that of the score's",
        axis="d",
        series="D",
        reading="beyond the paper",
        remark="Not so for every function of z: see vae.gradient.wave.",
    )
)


@measurement("vae.elbo.measure_wave")
def measure_wave(setting: Setting, generator: torch.Generator) -> list[float]:
    """The same ratio for the derivative of E cos(ωz) by the mean of z ~ N(0, 1): mean squares of −ω sin ωz
    and z cos ωz, as both have mean 0."""
    check_linear(setting)
    z = normals((setting["trials"], setting["n"]), generator)
    omega = setting["omega"]
    path = (omega * (omega * z).sin()).square().mean(1)
    score = (z * (omega * z).cos()).square().mean(1)
    values: list[float] = (path / score).tolist()
    return values


def wave_ratio(setting: Setting) -> float:
    """ω²(1 − e^{−2ω²})/(1 + (1 − 4ω²)e^{−2ω²})."""
    check_linear(setting)
    omega = torch.tensor(setting["omega"], dtype=torch.float64)
    fall = (-2 * omega.square()).exp()
    return float(omega.square() * (1 - fall) / (1 + (1 - 4 * omega.square()) * fall))


register(
    Claim(
        id="vae.gradient.wave",
        title="Where the trick is the worse way",
        statement=(
            "For E cos(ωz) the variance of the reparametrized derivative by that of the score's is "
            "ω²(1 − e^{−2ω²})/(1 + (1 − 4ω²)e^{−2ω²}): below 1 for slow waves, about ω² for fast ones."
        ),
        source="Not in the notes: the other side of vae.gradient.variance",
        grid=grid(omega=(0.25, 0.5, 1.0, 2.0, 4.0), n=100_000, trials=20),
        quick=grid(omega=(0.5, 2.0), n=50_000, trials=10),
        predict=wave_ratio,
        measure=measure_wave,
        rule=Equal(),
        quantity="variance of the reparametrized derivative ÷ that of the score's",
        axis="omega",
        reading="beyond the paper",
    )
)


def seed_to_gumbel(z: Tensor) -> Tensor:
    """f(z) = F⁻¹(Φ(z)) of Gumbel's law, F(x) = exp(−e^{−x}): skewed, and on the whole line."""
    found: Tensor = -(-torch.special.log_ndtr(z)).log()
    return found


@measurement("vae.elbo.measure_posterior")
def measure_posterior(setting: Setting, generator: torch.Generator) -> list[float]:
    """KL[q ‖ p(z|x)] for an x of the model N(f(z), σ²) a trial, q the Gaussian with the posterior's mean and
    variance; by sums over a line of z."""
    check_linear(setting)
    sigma = setting["sigma"]
    centre = normals((setting["trials"],), generator).requires_grad_()
    value = seed_to_gumbel(centre)
    (slope,) = torch.autograd.grad(value.sum(), centre)
    x = value.detach() + sigma * normals((setting["trials"],), generator)
    width = (1 + (slope / sigma).square()).rsqrt()  # of a Gaussian posterior for an f of this slope
    z = centre.detach() + width * torch.linspace(-12, 12, 1201, dtype=torch.float64)[:, None]
    step = width * 24 / 1200
    prior = -(z.square() + log(2 * pi)) / 2
    weights = prior - (x - seed_to_gumbel(z)).square() / (2 * sigma**2)
    posterior = weights - weights.logsumexp(0) - step.log()
    mass = posterior.exp() * step
    mean = (mass * z).sum(0)
    variance = (mass * (z - mean).square()).sum(0)
    q = -(z - mean).square() / (2 * variance) - (2 * pi * variance).log() / 2
    values: list[float] = (q.exp() * (q - posterior) * step).sum(0).tolist()
    return values


def square(setting: Setting) -> float:
    check_linear(setting)
    return float(setting["sigma"] ** 2)


register(
    Claim(
        id="vae.gaussian-posterior",
        title="A function whose posterior is Gaussian",
        statement=(
            "There is an f that gives x its law and for which p(z|x) is a Gaussian: f = F⁻¹∘Φ, in the limit "
            "of a narrow decoder; KL[q ‖ p(z|x)] for the best Gaussian q vanishes as σ²."
        ),
        source=f"{NOTES}, such a function “provably exists” (line 116); the rate is not in it",
        reading="exact",
        grid=grid(sigma=(0.005, 0.01, 0.02, 0.04, 0.08), trials=1500),
        quick=grid(sigma=(0.005, 0.01, 0.02, 0.04, 0.08), trials=400),
        predict=square,
        measure=measure_posterior,
        rule=Exponent(Along("sigma")),
        quantity="KL[q ‖ p(z|x)], in nats",
        axis="sigma",
        remark=(
            "In one dimension, for Gumbel's law. At a fixed σ only a linear f has a Gaussian posterior for "
            "every x: the statement is about a limit."
        ),
    )
)
