"""Which singular values are signal: the rule that Spectrum prints, and that of `decompose`.

Both look at the same kind of matrix: normal entries, alone or with a few directions planted in them. Not for
what is done with the answer: a tool that only orders layers of one shape by it needs less.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor

from ..._core import BadInput
from ...weights import decompose
from .._claim import Claim, grid, measurement, per_trial
from .._registry import register
from .._rules import Equal
from ..results import Setting

NORMAL_IQR = 1.349  # of a standard normal distribution, as printed
TIMES = 2.0  # strength of the planted directions over the threshold below which noise hides them


def check_shape(setting: Setting) -> None:
    for name in ("rows", "columns"):
        if setting[name] < 32:
            raise BadInput(f"{name} ≥ 32", got=setting[name], do=f"raise {name}")
    if not 0 <= setting["rank"] < min(setting["rows"], setting["columns"]) // 4:
        raise BadInput("a rank below a quarter of the shorter side", got=setting["rank"], do="lower it")


def draw(setting: Setting, generator: torch.Generator) -> Tensor:
    """Normal entries of variance 1, with `rank` directions of equal strength planted in them."""
    check_shape(setting)
    rows, columns, rank = setting["rows"], setting["columns"], setting["rank"]
    matrix = torch.randn(rows, columns, generator=generator)
    if rank:
        left = torch.linalg.qr(torch.randn(rows, rank, generator=generator)).Q
        right = torch.linalg.qr(torch.randn(columns, rank, generator=generator)).Q
        matrix += TIMES * (rows * columns) ** 0.25 * left @ right.T
    return matrix


def above_printed_threshold(matrix: Tensor) -> int:
    """Singular values above σ(1 + √y), σ the interquartile range of all of them over 1.349."""
    values = torch.linalg.svdvals(matrix.double())
    low, high = torch.quantile(values, torch.tensor([0.25, 0.75], dtype=torch.float64))
    ratio = min(matrix.shape) / max(matrix.shape)
    return int((values > (high - low) / NORMAL_IQR * (1 + sqrt(ratio))).sum())


def left_alone(matrix: Tensor, found: int) -> float:
    return 1 - found / min(matrix.shape)


@measurement("tools.spectrum.noise.measure")
@per_trial
def measure_noise_printed(setting: Setting, generator: torch.Generator) -> float:
    """The share of the singular values that is not called signal."""
    matrix = draw(setting, generator)
    return left_alone(matrix, above_printed_threshold(matrix))


@measurement("tools.decompose.noise.measure")
@per_trial
def measure_noise_ours(setting: Setting, generator: torch.Generator) -> float:
    matrix = draw(setting, generator)
    return left_alone(matrix, decompose(matrix, generator=generator).rank)


@measurement("tools.spectrum.rank.measure")
@per_trial
def measure_rank_printed(setting: Setting, generator: torch.Generator) -> float:
    return above_printed_threshold(draw(setting, generator))


@measurement("tools.decompose.rank.measure")
@per_trial
def measure_rank_ours(setting: Setting, generator: torch.Generator) -> float:
    return decompose(draw(setting, generator), generator=generator).rank


def predict_all(setting: Setting) -> float:
    """All of noise."""
    check_shape(setting)
    return 1.0


def predict_rank(setting: Setting) -> float:
    check_shape(setting)
    return float(setting["rank"])


SHAPES = ((256, 256), (256, 512), (256, 896), (256, 1024))
SPECTRUM = "Spectrum (Hartford et al. 2024), Section 4"
PRINTED = (
    "“threshold ← σ × sqrt((1 + sqrt(β))^2)”, with “σ ← IQR / 1.349”, Section 4, line 3 of the first and "
    "line 3 of the second function"
)


def shapes(rank: int, trials: int) -> tuple[Setting, ...]:
    return tuple(
        one for rows, columns in SHAPES for one in grid(rows=rows, columns=columns, rank=rank, trials=trials)
    )


def small(rank: int, trials: int) -> tuple[Setting, ...]:
    return grid(rows=128, columns=(128, 512), rank=rank, trials=trials)


NOISE = register(
    Claim(
        id="tools.spectrum.noise",
        title="Spectrum's threshold on noise",
        statement="Singular values above σ(1 + √y), with σ the interquartile range of all singular values "
        "over 1.349 and y the ratio of the sides, are signal: of a matrix of independent normal numbers, "
        "none is.",
        source=SPECTRUM,
        place=PRINTED,
        grid=shapes(0, 60),
        quick=small(0, 20),
        predict=predict_all,
        measure=measure_noise_printed,
        # The edge (1 + √y) is that of infinite size: of a few hundred values one or two may lie above.
        rule=Equal(tolerance=0.01),
        quantity="singular values not called signal",
        axis="columns",
        twin="tools.decompose.noise",
        expected="failed",
        remark="The edge is σ√n(1 + √y) with σ the spread of the entries; the interquartile range of the "
        "singular values is not σ√n, and the further off the less square the matrix is: a quarter of noise "
        "counts as signal at 1:1, all of it at 1:4. Spectrum only orders layers of one kind by it, mostly of "
        "one shape: what such an order finds is another question (docs/selection.md).",
    )
)
register(
    NOISE.other(
        title="The threshold of decompose on noise",
        statement="Of a matrix of independent normal numbers `decompose` calls no singular value signal.",
        source="Tracy–Widom at the level 0.001, as in obverse.weights.decompose",
        measure=measure_noise_ours,
        reading="beyond the paper",
        remark="One matrix of a thousand is allowed to show a direction: one value of a few hundred.",
    )
)
RANK = register(
    NOISE.also(
        id="tools.spectrum.rank",
        title="Spectrum's count of planted directions",
        statement="Of normal numbers with five directions planted in them, at twice the strength below "
        "which noise hides them, as many singular values are above σ(1 + √y), σ the interquartile range "
        "over 1.349, as were planted.",
        place=PRINTED,
        grid=shapes(5, 60),
        quick=small(5, 20),
        predict=predict_rank,
        measure=measure_rank_printed,
        # One direction too many, or too few, in one of ten matrices.
        rule=Equal(tolerance=0.02),
        quantity="directions called signal",
        twin="tools.decompose.rank",
        expected="failed",
        remark="The count is that of noise, and hardly depends on what was planted.",
    )
)
register(
    RANK.other(
        title="The count of planted directions by decompose",
        statement="Of normal numbers with five directions planted in them, at twice the strength below "
        "which noise hides them, `decompose` counts five.",
        source="Tracy–Widom at the level 0.001, as in obverse.weights.decompose",
        measure=measure_rank_ours,
        reading="beyond the paper",
    )
)
