"""What the notes say of images: few dimensions, few z that matter, and means that are fuzzy. On the digits.

The digits are embedded (1,797 images of 8 × 8), so that nothing is downloaded. Not for trained VAEs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from ..._core import BadInput
from ...data import load
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal, MeanBelow
from ..results import Setting
from ._inverse_cdf import NOTES

SIDE = 8


@cache
def _digits() -> Tensor:
    """The 1,297 images to train on, as rows in float64."""
    return load("digits").train_x.flatten(1).double()


def check_cloud(setting: Setting) -> None:
    if not (1 <= setting.get("d", 1) <= setting.get("D", 64) and setting.get("points", 10) >= 10):
        raise BadInput("1 ≤ d ≤ D and 10 points or more", got=dict(setting), do="change one of them")


def two_neighbours(points: Tensor) -> float:
    """The dimension d with P(second ÷ first neighbour's distance > r) = r^(−d): N/Σ ln r."""
    near = torch.cdist(points, points).sort(1).values[:, 1:3]
    near = near[near[:, 0] > 0]
    return float(len(near) / (near[:, 1] / near[:, 0]).log().sum())


@measurement("vae.images.measure_dimension")
@per_trial
def measure_dimension(setting: Setting, generator: torch.Generator) -> float:
    """Dimension by the two nearest neighbours, of so many digits drawn from all."""
    check_cloud(setting)
    all_of_them = _digits()
    chosen = torch.randperm(len(all_of_them), generator=generator)[: setting["points"]]
    return two_neighbours(all_of_them[chosen])


@measurement("vae.images.measure_known")
@per_trial
def measure_known(setting: Setting, generator: torch.Generator) -> float:
    """The same of points on a curved surface of d dimensions in D: sines of so many directions at random."""
    check_cloud(setting)
    low = torch.rand(setting["points"], setting["d"], generator=generator, dtype=torch.float64)
    axes = torch.linalg.qr(
        torch.randn(setting["D"], setting["d"], generator=generator, dtype=torch.float64)
    ).Q
    return two_neighbours((low @ axes.T).sin())


def a_quarter(setting: Setting) -> float:
    check_cloud(setting)
    return SIDE * SIDE / 4


def known(setting: Setting) -> float:
    check_cloud(setting)
    return float(setting["d"])


register(
    Claim(
        id="vae.manifold",
        title="Images have few dimensions",
        statement=(
            "The intrinsic dimension of images is much smaller than the number of pixels: that of the "
            "digits, by the two nearest neighbours, is below a quarter of their 64."
        ),
        source=f"{NOTES}, the manifold assumption",
        place=(
            "“the intrinsic dimensionality of the data is much smaller than the ambient space”, notes, The "
            "manifold assumption, line 49"
        ),
        grid=grid(points=(300, 600, 1000), trials=30),
        quick=grid(points=300, trials=15),
        predict=a_quarter,
        measure=measure_dimension,
        rule=MeanBelow(),
        quantity="intrinsic dimension",
        axis="points",
        remark="That the estimate is right on surfaces whose dimension is known: vae.manifold.known.",
    )
)

register(
    Claim(
        id="vae.manifold.known",
        title="Dimension by two neighbours",
        statement=(
            "On curved surfaces of one or two dimensions in 20 or 64, the dimension by the two nearest "
            "neighbours is right within 2 %."
        ),
        source="Facco et al. 2017; not in the notes: what vae.manifold is measured by",
        grid=grid(d=(1, 2), D=(20, 64), points=1500, trials=120),
        quick=grid(d=(1, 2), D=20, points=300, trials=60),
        predict=known,
        measure=measure_known,
        rule=Equal(tolerance=0.02),  # the surfaces have edges, which lower it: by 2 % at d = 3, by less here
        quantity="intrinsic dimension",
        axis="d",
        series="D",
        reading="beyond the paper",
    )
)


def check_prior(setting: Setting) -> None:
    if not (setting["d"] >= 1 and setting["sigma"] > 0):
        raise BadInput("d ≥ 1 and σ > 0", got=dict(setting), do="raise them")


@measurement("vae.images.measure_share")
@per_trial
def measure_share(setting: Setting, generator: torch.Generator) -> float:
    """(E_z p(x|z))² ÷ E_z p(x|z)², z ~ N(0, I): the share of z that matter; x = z + σε, its mean over x."""
    check_prior(setting)
    d, sigma = setting["d"], setting["sigma"]
    z, others = torch.randn(2, setting["draws"], d, generator=generator, dtype=torch.float64)
    x = torch.randn(d, generator=generator, dtype=torch.float64) * 0  # at x = 0, where most z matter
    logs = -(x - torch.cat([z, others])).square().sum(1) / (2 * sigma**2)
    weights = (logs - logs.max()).exp()
    return float(weights.mean() ** 2 / weights.square().mean())


def share_of_prior(setting: Setting) -> float:
    """((s² (2 + s²))^½/(1 + s²))^d at x = 0, s = σ: each dimension by itself."""
    check_prior(setting)
    s = float(setting["sigma"] ** 2)
    return float(((s * (2 + s)) ** 0.5 / (1 + s)) ** setting["d"])


register(
    Claim(
        id="vae.few",
        title="Few z matter for an x",
        statement=(
            "Of z ~ N(0, I) only the share (√(σ²(2 + σ²))/(1 + σ²))^d matters for x = 0 under p(x|z) = N(z, "
            "σ²I), counted as (E p)²/E p²: it falls exponentially with the dimension of z."
        ),
        source=f"{NOTES}, how ∫dz is dealt with: “only few z which generate realistic X”",
        grid=grid(d=(1, 2, 4), sigma=(0.3, 0.6), draws=40_000, trials=60),
        quick=grid(d=(1, 2), sigma=0.6, draws=10_000, trials=60),
        predict=share_of_prior,
        measure=measure_share,
        rule=Equal(tolerance=0.01),  # a ratio of means: off by their relative variances, below 1 % here
        quantity="share of z that matter",
        axis="d",
        series="sigma",
        reading="exact",
    )
)


def check_codes(setting: Setting) -> None:
    if not 1 <= setting["codes"] <= 500:
        raise BadInput("1 to 500 codes", got=setting["codes"], do="change codes")


def sharpness(images: Tensor) -> float:
    """Mean squared difference of neighbouring pixels."""
    pictures = images.view(-1, SIDE, SIDE)
    return float(pictures.diff(dim=1).square().mean() + pictures.diff(dim=2).square().mean())


def _codes(setting: Setting, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images, and for each the code out of so many whose image under the decoder is nearest: k-means."""
    check_codes(setting)
    images = _digits()
    centres = images[torch.randperm(len(images), generator=generator)[: setting["codes"]]]
    for _ in range(15):
        code = torch.cdist(images, centres).argmin(1)
        counts = torch.bincount(code, minlength=len(centres)).unsqueeze(1)
        sums = torch.zeros_like(centres).index_add_(0, code, images)
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return images, torch.cdist(images, centres).argmin(1)


@measurement("vae.images.measure_sharpness")
@per_trial
def measure_sharpness(setting: Setting, generator: torch.Generator) -> float:
    """Sharpness of what the likeliest decoder makes of each image's code ÷ that of the images."""
    images, code = _codes(setting, generator)
    counts = torch.bincount(code, minlength=setting["codes"]).clamp(min=1).unsqueeze(1)
    means = torch.zeros(setting["codes"], images.shape[1], dtype=torch.float64)
    means = means.index_add_(0, code, images) / counts
    return sharpness(means[code]) / sharpness(images)


@measurement("vae.images.measure_likelihood")
@per_trial
def measure_likelihood(setting: Setting, generator: torch.Generator) -> float:
    """By how much moving the decoder's image of a code off its mean raises Σ‖x − f(z)‖², over what it should.

    The images of a random code, moved by a random vector v: N_z‖v‖² is what it should be.
    """
    images, code = _codes(setting, generator)
    used = code.unique()
    own = images[code == used[int(torch.randint(len(used), (), generator=generator))]]
    moved = torch.randn(images.shape[1], generator=generator, dtype=torch.float64)
    mean = own.mean(0)
    rise = (own - mean - moved).square().sum() - (own - mean).square().sum()
    return float(rise / (len(own) * moved.square().sum()))


def at_most(setting: Setting) -> float:
    check_codes(setting)
    return 1.0


CODES = grid(codes=(1, 10, 100), trials=8)
register(
    Claim(
        id="vae.fuzzy",
        title="The likeliest images are fuzzy",
        statement=(
            "A decoder of highest Gaussian likelihood makes fuzzy images: of 1 to 100 codes for the digits "
            "it gives images less sharp than they are, by the mean squared difference of neighbouring "
            "pixels."
        ),
        source=f"{NOTES}, end of the part on VAEs",
        place=(
            "“the loss function used for training is log-likelihood, which ultimately leads to fuzzy face "
            "images”, notes, How do we deal with ∫dz?, line 118"
        ),
        grid=CODES,
        quick=CODES[:2],
        predict=at_most,
        measure=measure_sharpness,
        rule=MeanBelow(),
        quantity="sharpness ÷ that of the images",
        axis="codes",
        remark=(
            "By Jensen's inequality it holds for any images and codes: the likeliest image of a code is the "
            "mean of its images (vae.fuzzy.mean)."
        ),
    )
)

register(
    Claim(
        id="vae.fuzzy.mean",
        title="The likeliest image is a mean",
        statement=(
            "Under p(x|z) = N(f(z), σ²I) the likeliest f(z) is the mean of the images with that z: any other "
            "loses N_z‖v‖²/2σ² of log-likelihood, v what it is off."
        ),
        source=f"{NOTES}, end of the part on VAEs; the reason is not in it",
        grid=CODES,
        quick=CODES[:2],
        predict=at_most,
        measure=measure_likelihood,
        rule=Equal(tolerance=1e-9),  # rounding
        quantity="loss ÷ N_z‖v‖²/2σ²",
        axis="codes",
        reading="exact",
    )
)
