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
from ...generative import kl_to_standard_full, log_likelihood
from .._claim import Claim, grid, measurement, per_trial
from .._rates import Along, Exponent
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


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def draw_model(setting: Setting, generator: torch.Generator) -> Linear:
    """W with entries N(0, 1/d), x from the model, q at random: m near 0, S with variances around ½."""
    check_linear(setting)
    d, size, sigma = setting["d"], setting["D"], setting["sigma"]
    weight = _normal((size, d), generator) / d**0.5
    x = weight @ _normal((d,), generator) + sigma * _normal((size,), generator)
    factor = _normal((d, d), generator) / (2 * d) ** 0.5
    covariance = factor @ factor.T + 0.1 * torch.eye(d, dtype=torch.float64)
    return Linear(weight, sigma, x, 0.5 * _normal((d,), generator), covariance)


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
    z: Tensor = model.mean + _normal((*shape, len(model.mean)), generator) @ root.T
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
def measure_diagonal(setting: Setting, generator: torch.Generator) -> list[float]:
    """log p(x) less the largest bound that a q with diagonal covariance reaches; a random start a trial."""
    model = the_model(setting)
    starts = [_normal((2, setting["d"]), generator) for _ in range(setting["trials"])]
    return [float(model.evidence) - _best_diagonal(model, start) for start in starts]


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


class _Wide:
    """A model with q = N(true mean, `wide`·true variance) for d = 1, as `log_likelihood` asks for it."""

    def __init__(self, model: Linear, wide: float) -> None:
        self.model, true = model, model.posterior
        self.mean, self.logs = true.mean, (wide * true.covariance_matrix).diagonal().log()

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean.expand(len(x), -1), self.logs.expand(len(x), -1)

    def log_conditional(self, x: Tensor, z: Tensor) -> Tensor:
        return self.model.log_conditional(z)


def _ratios(setting: Setting, generator: torch.Generator) -> Tensor:
    """log p̂(x) − log p(x) by importance sampling with k draws, one a trial."""
    model = the_model(setting)
    rows = model.x.expand(setting["trials"], -1)
    wide = _Wide(model, setting["wide"])
    found = log_likelihood(wide, rows, samples=setting["k"], batch_size=100_000, generator=generator)
    return found - model.evidence


@measurement("vae.elbo.measure_ratio")
def measure_ratio(setting: Setting, generator: torch.Generator) -> list[float]:
    """p̂(x)/p(x) with k draws, one a trial."""
    values: list[float] = _ratios(setting, generator).exp().tolist()
    return values


def one(setting: Setting) -> float:
    check_linear(setting)
    return 1.0


register(
    Claim(
        id="vae.importance.unbiased",
        title="Importance sampling of p(x)",
        statement="The mean of p(x|z)p(z)/q(z|x) over k draws z ~ q(z|x) is p(x) on average, for every k.",
        source="Not in the notes: what the log-likelihood of a VAE is measured by",
        grid=grid(d=1, D=3, sigma=1.0, wide=(1.5, 3.0), k=(1, 10, 100), trials=5000),
        quick=grid(d=1, D=3, sigma=1.0, wide=2.0, k=(1, 10), trials=2000),
        predict=one,
        measure=measure_ratio,
        rule=Equal(),
        quantity="estimate ÷ p(x)",
        axis="k",
        series="wide",
        reading="beyond the paper",
    )
)


@measurement("vae.elbo.measure_bias")
def measure_bias(setting: Setting, generator: torch.Generator) -> list[float]:
    """r − 1 − log r with r = p̂(x)/p(x), one a trial: its mean is log p(x) − E log p̂(x), as that of r is 1
    (vae.importance.unbiased), and it scatters far less than log r."""
    logs = _ratios(setting, generator)
    values: list[float] = (torch.expm1(logs) - logs).tolist()
    return values


def inverse(setting: Setting) -> float:
    check_linear(setting)
    return float(1 / setting["k"])


register(
    Claim(
        id="vae.importance.rate",
        title="The importance-weighted bound rises to log p(x)",
        statement="E log p̂(x) is below log p(x), which it nears as 1/k with k draws.",
        source="Not in the notes: what the log-likelihood of a VAE is measured by",
        grid=grid(d=1, D=3, sigma=1.0, wide=2.0, k=(16, 32, 64, 128, 256), trials=20_000),
        quick=grid(d=1, D=3, sigma=1.0, wide=2.0, k=(16, 24, 32, 48, 64, 96), trials=4000),
        predict=inverse,
        measure=measure_bias,
        rule=Exponent(Along("k")),
        quantity="log p(x) − E log p̂(x), in nats",
        axis="k",
        series="wide",
        reading="beyond the paper",
        remark=(
            "For k = 1 it is the bound of the notes (vae.elbo.gap). q is wider than p(z|x) here: the weights "
            "of one that is much narrower have infinite variance, and the rate is another."
        ),
    )
)


def weight_variance(setting: Setting) -> float:
    """(E r² − 1)/2k to first order, for q with the right mean and c times the variance, d = 1:
    E r² = E_p p/q = c/√(2c − 1)."""
    check_linear(setting)
    wide = setting["wide"]
    if not wide > 0.5:
        raise BadInput("wide > ½, for weights of finite variance", got=wide, do="raise wide")
    return float((wide / (2 * wide - 1) ** 0.5 - 1) / 2 / setting["k"])


register(
    Claim(
        id="vae.importance.bias",
        title="The size of the bias",
        statement="log p(x) − E log p̂(x) = Var(w)/2k to first order, w = p(x|z)p(z)/(q(z|x)p(x)).",
        source="Not in the notes: what the log-likelihood of a VAE is measured by",
        grid=grid(d=1, D=3, sigma=1.0, wide=(1.5, 3.0), k=(100, 300), trials=60_000),
        quick=grid(d=1, D=3, sigma=1.0, wide=2.0, k=100, trials=8000),
        predict=weight_variance,
        measure=measure_bias,
        rule=Equal(tolerance=0.02),  # the next term is of order 1/k, relative
        quantity="log p(x) − E log p̂(x), in nats",
        axis="k",
        series="wide",
        reading="beyond the paper",
    )
)


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
    z = mean + logs.exp() * _normal(tuple(mean.shape), generator)
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
    z = _normal((setting["trials"], setting["n"]), generator)
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
    centre = _normal((setting["trials"],), generator).requires_grad_()
    value = seed_to_gumbel(centre)
    (slope,) = torch.autograd.grad(value.sum(), centre)
    x = value.detach() + sigma * _normal((setting["trials"],), generator)
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
