"""The bound that a VAE maximizes, on a linear model with Gaussian noise, where every term has a closed form.

x = Wz + σε with z ~ N(0, I), so that p(x) and p(z|x) are Gaussian; q(z|x) = N(m, S) is any Gaussian. Not for
trained nets: their log p(x) is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import torch
from torch import Tensor, distributions

from ..._core import BadInput
from ...generative import kl_to_standard_full
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._inverse_cdf import NOTES

ROUNDING = 1e-12  # of sums of a hundred terms in float64, relative to the largest of them


@dataclass(frozen=True)
class Linear:
    """p(x|z) = N(Wz, σ²I) and p(z) = N(0, I), with one x and a q(z|x) = N(m, S)."""

    weight: Tensor  # W: D × d
    sigma: float
    x: Tensor
    mean: Tensor  # m
    covariance: Tensor  # S

    @property
    def evidence(self) -> Tensor:
        """log p(x) = log N(x; 0, WWᵀ + σ²I)."""
        size = len(self.x)
        whole = self.weight @ self.weight.T + self.sigma**2 * torch.eye(size, dtype=torch.float64)
        found: Tensor = distributions.MultivariateNormal(torch.zeros_like(self.x), whole).log_prob(self.x)
        return found

    @property
    def precision(self) -> Tensor:
        """Of p(z|x): I + WᵀW/σ²."""
        d = self.weight.shape[1]
        return torch.eye(d, dtype=torch.float64) + self.weight.T @ self.weight / self.sigma**2

    @property
    def posterior(self) -> distributions.MultivariateNormal:
        """p(z|x)."""
        covariance = torch.linalg.inv(self.precision)
        covariance = (covariance + covariance.T) / 2
        return distributions.MultivariateNormal(
            covariance @ (self.weight.T @ self.x) / self.sigma**2, covariance
        )

    @property
    def q(self) -> distributions.MultivariateNormal:
        return distributions.MultivariateNormal(self.mean, self.covariance)

    @property
    def reconstruction(self) -> Tensor:
        """E_q log p(x|z) = −(‖x − Wm‖² + tr WSWᵀ)/2σ² − (D/2) log 2πσ²."""
        square = (self.x - self.weight @ self.mean).square().sum()
        spread = (self.weight @ self.covariance @ self.weight.T).trace()
        return -(square + spread) / (2 * self.sigma**2) - len(self.x) / 2 * log(2 * pi * self.sigma**2)

    @property
    def bound(self) -> Tensor:
        """The right-hand side: E_q log p(x|z) − KL[q ‖ N(0, I)]."""
        return self.reconstruction - kl_to_standard_full(self.mean, self.covariance)

    def log_conditional(self, z: Tensor) -> Tensor:
        """log p(x|z) for z (…, d)."""
        square = (self.x - z @ self.weight.T).square().sum(-1)
        return -square / (2 * self.sigma**2) - len(self.x) / 2 * log(2 * pi * self.sigma**2)


def check_linear(setting: Setting) -> None:
    for name in ("d", "D", "n", "k", "trials"):
        if not setting.get(name, 1) >= 1:
            raise BadInput(f"{name} ≥ 1", got=setting[name], do=f"raise {name}")
    for name in ("sigma", "wide", "omega"):
        if not setting.get(name, 1.0) > 0:
            raise BadInput(f"{name} > 0", got=setting[name], do=f"raise {name}")


def normals(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def draw_model(setting: Setting, generator: torch.Generator) -> Linear:
    """W with entries N(0, 1/d), x from the model, q at random: m near 0, S with variances around ½."""
    check_linear(setting)
    d, size, sigma = setting["d"], setting["D"], setting["sigma"]
    weight = normals((size, d), generator) / d**0.5
    x = weight @ normals((d,), generator) + sigma * normals((size,), generator)
    factor = normals((d, d), generator) / (2 * d) ** 0.5
    covariance = factor @ factor.T + 0.1 * torch.eye(d, dtype=torch.float64)
    return Linear(weight, sigma, x, 0.5 * normals((d,), generator), covariance)


def the_model(setting: Setting) -> Linear:
    """One model, x and q for each setting, the same in every trial."""
    return draw_model(setting, torch.Generator().manual_seed(10 * setting["d"] + setting["D"]))


def with_posterior(model: Linear, wide: float = 1.0) -> Linear:
    """The same model with q = p(z|x), its covariance `wide` times as large."""
    true = model.posterior
    return Linear(model.weight, model.sigma, model.x, true.mean, wide * true.covariance_matrix)


def rounding(setting: Setting) -> float:
    check_linear(setting)
    return ROUNDING


@measurement("vae.elbo.measure_identity")
@per_trial
def measure_identity(setting: Setting, generator: torch.Generator) -> float:
    """|left − right| of the identity by the largest of its terms; a model, an x and a q a trial."""
    model = draw_model(setting, generator)
    apart = distributions.kl_divergence(model.q, model.posterior)
    terms = torch.stack([model.evidence, apart, model.reconstruction, model.bound])
    return float((model.evidence - apart - model.bound).abs() / terms.abs().max())


register(
    Claim(
        id="vae.elbo.identity",
        title="Evidence, divergence and the bound",
        statement="log p(x) − KL[q(z|x) ‖ p(z|x)] = E_q log p(x|z) − KL[q(z|x) ‖ p(z)], for any Gaussian q.",
        source=f"{NOTES}, how ∫dz is dealt with",
        place=(
            "“log P(X) − D_KL[Q(z|X)||P(z|X)] = E_{z∼Q}[log P(X|z)] − D_KL[Q(z|X)||P(z)]”, How do we deal "
            "with ∫dz?, line 96"
        ),
        grid=grid(d=(1, 3, 10), D=(2, 20), sigma=(0.3, 1.0), trials=100),
        quick=grid(d=(1, 3), D=5, sigma=1.0, trials=100),
        predict=rounding,
        measure=measure_identity,
        rule=MeanBelow(),
        quantity="difference of the two sides by the largest term",
        axis="d",
        series="D",
        remark="Each term from a closed form of its own; the bound 10⁻¹² is for rounding in float64.",
    )
)


@measurement("vae.elbo.measure_gap")
def measure_gap(setting: Setting, generator: torch.Generator) -> list[float]:
    """log p(x) less the mean of log p(x|z) + log p(z) − log q(z) over n draws z ~ q, one a trial."""
    model = the_model(setting)
    d = setting["d"]
    prior = distributions.MultivariateNormal(torch.zeros(d).double(), torch.eye(d, dtype=torch.float64))
    z = _draws(model, (setting["trials"], setting["n"]), generator)
    each = model.log_conditional(z) + prior.log_prob(z) - model.q.log_prob(z)
    values: list[float] = (model.evidence - each.mean(1)).tolist()
    return values


def _draws(model: Linear, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    root = torch.linalg.cholesky(model.covariance)
    z: Tensor = model.mean + normals((*shape, len(model.mean)), generator) @ root.T
    return z


def divergence(setting: Setting) -> float:
    """KL[q ‖ p(z|x)]."""
    model = the_model(setting)
    return float(distributions.kl_divergence(model.q, model.posterior))


register(
    Claim(
        id="vae.elbo.gap",
        title="How far the bound is below log p(x)",
        statement="The bound lies KL[q(z|x) ‖ p(z|x)] below log p(x).",
        source=f"{NOTES}, how ∫dz is dealt with: the left-hand side",
        place=(
            "“log P(X) − D_KL[Q(z|X)||P(z|X)]”, How do we deal with ∫dz?, the left-hand side, lines 96 to 98"
        ),
        grid=grid(d=(1, 3, 10), D=(2, 20), sigma=1.0, n=1000, trials=200),
        quick=grid(d=(1, 3), D=5, sigma=1.0, n=500, trials=100),
        predict=divergence,
        measure=measure_gap,
        rule=Equal(),
        quantity="log p(x) − simulated bound, in nats",
        axis="d",
        series="D",
    )
)


@measurement("vae.elbo.measure_single")
def measure_single(setting: Setting, generator: torch.Generator) -> list[float]:
    """J = log p(x|z) − KL[q ‖ p(z)] with one z ~ q a trial."""
    model = the_model(setting)
    z = _draws(model, (setting["trials"],), generator)
    values: list[float] = (
        model.log_conditional(z) - kl_to_standard_full(model.mean, model.covariance)
    ).tolist()
    return values


def bound(setting: Setting) -> float:
    return float(the_model(setting).bound)


register(
    Claim(
        id="vae.elbo.single",
        title="One draw is enough on average",
        statement="J = log p(x|z) − KL[q(z|x) ‖ p(z)] with a single z ~ q(z|x) has the bound as its mean.",
        source=f"{NOTES}, the objective J for a single sample (line 106); what its mean is, is not in it",
        reading="exact",
        grid=grid(d=(1, 3, 10), D=(2, 20), sigma=1.0, trials=50_000),
        quick=grid(d=(1, 3), D=5, sigma=1.0, trials=10_000),
        predict=bound,
        measure=measure_single,
        rule=Equal(),
        quantity="J, in nats",
        axis="d",
        series="D",
    )
)


@measurement("vae.elbo.measure_tight")
@per_trial
def measure_tight(setting: Setting, generator: torch.Generator) -> float:
    """The largest |log p(x|z) + log p(z) − log q(z) − log p(x)| of n draws with q = p(z|x), relative."""
    model = with_posterior(draw_model(setting, generator))
    d = setting["d"]
    prior = distributions.MultivariateNormal(torch.zeros(d).double(), torch.eye(d, dtype=torch.float64))
    z = _draws(model, (setting["n"],), generator)
    terms = torch.stack([model.log_conditional(z), prior.log_prob(z), -model.q.log_prob(z)])
    off = (terms.sum(0) - model.evidence).abs().max()
    return float(off / terms.abs().max())


register(
    Claim(
        id="vae.elbo.tight",
        title="With the true posterior the bound is log p(x)",
        statement="If q(z|x) = p(z|x), every draw of log p(x|z) + log p(z) − log q(z|x) is log p(x).",
        source=f"{NOTES}, how ∫dz is dealt with: a Q of high capacity",
        grid=grid(d=(1, 3, 10), D=(2, 20), sigma=(0.3, 1.0), n=10, trials=100),
        quick=grid(d=(1, 3), D=5, sigma=1.0, n=10, trials=100),
        predict=rounding,
        measure=measure_tight,
        rule=MeanBelow(),
        quantity="largest deviation from log p(x) by the largest term",
        axis="d",
        series="D",
        reading="exact",
    )
)


@measurement("vae.elbo.measure_diagonal")
@per_trial
def measure_diagonal(setting: Setting, generator: torch.Generator) -> float:
    """log p(x) less the largest bound that a q with diagonal covariance reaches; a random start a trial."""
    model = the_model(setting)
    return float(model.evidence) - _best_diagonal(model, normals((2, setting["d"]), generator))


def _best_diagonal(model: Linear, start: Tensor) -> float:
    """The largest bound over m and log-variances, by LBFGS."""
    mean, logs = (row.clone().requires_grad_() for row in start)
    search = torch.optim.LBFGS(
        [mean, logs], max_iter=200, tolerance_grad=1e-10, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        value = -Linear(model.weight, model.sigma, model.x, mean, logs.exp().diag()).bound
        value.backward()
        return value

    search.step(loss)
    return -float(loss().detach())


def mean_field(setting: Setting) -> float:
    """½(Σ log Λ_ii − log det Λ), Λ = I + WᵀW/σ²: the best variances are 1/Λ_ii, and the mean is right."""
    precision = the_model(setting).precision
    return float((precision.diagonal().log().sum() - torch.logdet(precision)) / 2)


register(
    Claim(
        id="vae.elbo.diagonal",
        title="What a diagonal covariance costs",
        statement=(
            "The best q with diagonal covariance leaves log p(x) − bound = ½(Σ log Λ_ii − log det Λ), Λ the "
            "precision of p(z|x): 0 only if the coordinates of z are independent given x."
        ),
        source="Not in the notes, which allow any Σ(X); VAEs take it diagonal",
        grid=grid(d=(2, 3, 10), D=(2, 20), sigma=(0.3, 1.0), trials=3),
        quick=grid(d=(2, 3), D=5, sigma=1.0, trials=2),
        predict=mean_field,
        measure=measure_diagonal,
        rule=Equal(tolerance=1e-6),  # what the search leaves: it ends where steps are below 10⁻⁹
        quantity="log p(x) − best bound, in nats",
        axis="d",
        series="D",
        reading="beyond the paper",
    )
)
