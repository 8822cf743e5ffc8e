"""Importance sampling of p(x): its mean, its rate, the size of its bias."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from ...generative import log_likelihood
from .._claim import Claim, grid, measurement
from .._rates import Along, Exponent
from .._registry import register
from .._rules import Equal
from ..results import Setting
from ._elbo import Linear, check_linear, the_model


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


importance_rate = register(
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
    importance_rate.also(
        id="vae.importance.bias",
        title="The size of the bias",
        statement="log p(x) − E log p̂(x) = Var(w)/2k to first order, w = p(x|z)p(z)/(q(z|x)p(x)).",
        grid=grid(d=1, D=3, sigma=1.0, wide=(1.5, 3.0), k=(100, 300), trials=60_000),
        quick=grid(d=1, D=3, sigma=1.0, wide=2.0, k=100, trials=8000),
        predict=weight_variance,
        rule=Equal(tolerance=0.02),  # the next term is of order 1/k, relative
    )
)
