"""The Kullback–Leibler divergence of the notes: from any Gaussian to the standard one, in closed form.

Not for divergences between other laws.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributions

from ..._core import BadInput
from ...generative import kl_to_standard, kl_to_standard_full
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._inverse_cdf import NOTES

FORMULA = f"{NOTES}, KL-divergence of N(μ(X), Σ(X)) to N(0, I)"
ROUNDING = 1e-12  # of sums of up to 50 terms of size 1 to 100, relative: eps is 2·10⁻¹⁶


def check_gaussian(setting: Setting) -> None:
    if not (setting["d"] >= 1 and setting["size"] > 0 and setting["trials"] >= 1):
        raise BadInput("d ≥ 1, a size above 0, trials ≥ 1", got=dict(setting), do="raise them")
    if setting["kind"] not in ("diagonal", "full"):
        raise BadInput("kind 'diagonal' or 'full'", got=setting["kind"], do="choose one of them")


def draw_gaussian(setting: Setting, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(μ, Σ): entries of μ of about `size`, variances from 0.3 to 3 along random axes or along those of z."""
    check_gaussian(setting)
    d = setting["d"]
    mean = setting["size"] * torch.randn(d, generator=generator, dtype=torch.float64)
    variances = 0.3 * 10 ** torch.rand(d, generator=generator, dtype=torch.float64)
    if setting["kind"] == "diagonal":
        return mean, variances.diag()
    axes = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    return mean, (axes * variances) @ axes.T


def the_gaussian(setting: Setting) -> tuple[Tensor, Tensor]:
    """One μ and Σ for each setting, the same in every trial."""
    return draw_gaussian(setting, torch.Generator().manual_seed(setting["d"]))


def _standard(d: int) -> distributions.MultivariateNormal:
    return distributions.MultivariateNormal(torch.zeros(d).double(), torch.eye(d, dtype=torch.float64))


@measurement("vae.divergence.measure_divergence")
def measure_divergence(setting: Setting, generator: torch.Generator) -> list[float]:
    """Means of log q(z) − log p(z) over n draws z ~ q, one a trial; densities by torch.distributions."""
    mean, covariance = the_gaussian(setting)
    q, p = distributions.MultivariateNormal(mean, covariance), _standard(setting["d"])
    root = torch.linalg.cholesky(covariance)
    noise = torch.randn(
        setting["trials"], setting["n"], setting["d"], generator=generator, dtype=torch.float64
    )
    z = mean + noise @ root.T
    values: list[float] = (q.log_prob(z) - p.log_prob(z)).mean(1).tolist()
    return values


def closed_form(setting: Setting) -> float:
    """½(tr Σ + μᵀμ − d − log det Σ), as the notes print it."""
    mean, covariance = the_gaussian(setting)
    eigenvalues = torch.linalg.eigvalsh(covariance)
    return float((eigenvalues.sum() + mean @ mean - setting["d"] - eigenvalues.log().sum()) / 2)


register(
    Claim(
        id="vae.kl",
        title="Divergence to the standard Gaussian",
        statement="KL[N(μ, Σ) ‖ N(0, I)] = ½(tr Σ + μᵀμ − d − log det Σ), for diagonal and for full Σ.",
        source=FORMULA,
        place="“½(tr(Σ(X)) + (µ(X))ᵀ(µ(X)) − k − log det(Σ(X)))”, How do we deal with ∫dz?, line 102",
        grid=grid(kind=("diagonal", "full"), d=(1, 2, 10, 20), size=(0.5, 2.0), n=1000, trials=200),
        quick=grid(kind=("diagonal", "full"), d=(2, 10), size=1.0, n=500, trials=100),
        predict=closed_form,
        measure=measure_divergence,
        rule=Equal(),
        quantity="mean of log q(z) − log p(z), z ~ q, in nats",
        axis="d",
        series="kind",
        remark=(
            "The notes print a summation sign for Σ on the left and k for the dimension d of z; the formula "
            "is right."
        ),
    )
)


@measurement("vae.divergence.measure_code")
@per_trial
def measure_code(setting: Setting, generator: torch.Generator) -> float:
    """Relative difference between the library's KL and that of torch.distributions, one Gaussian a trial."""
    p = _standard(setting["d"])
    mean, covariance = draw_gaussian(setting, generator)
    expected = distributions.kl_divergence(distributions.MultivariateNormal(mean, covariance), p)
    if setting["kind"] == "diagonal":
        ours = kl_to_standard(mean, covariance.diagonal().log())
    else:
        ours = kl_to_standard_full(mean, covariance)
    return float((ours - expected).abs() / expected)


def rounding(setting: Setting) -> float:
    check_gaussian(setting)
    return ROUNDING


register(
    Claim(
        id="vae.kl.code",
        title="The divergence as VAE computes it",
        statement="What VAE adds to its loss is the divergence of torch.distributions, to rounding.",
        source=FORMULA,
        grid=grid(kind=("diagonal", "full"), d=(2, 10, 50), size=(0.5, 2.0), trials=200),
        quick=grid(kind=("diagonal", "full"), d=(2, 10), size=1.0, trials=100),
        predict=rounding,
        measure=measure_code,
        rule=MeanBelow(),
        quantity="relative difference",
        axis="d",
        series="kind",
        reading="exact",
    )
)
