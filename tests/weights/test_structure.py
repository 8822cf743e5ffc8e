"""Norms, correlations and blocks: numpy and scipy for the numbers, simulation for their nulls."""

from math import sqrt

import numpy as np
import pytest
import torch
from scipy.linalg import svdvals
from scipy.stats import beta, kstest

from obverse.weights import decompose
from obverse.weights._decomposition.marchenko_pastur import edge_probability
from obverse.weights._structure import (
    COMPARED,
    arranged_values,
    arrangement,
    block_contrast,
    correlations,
    equalize_,
    fourth_moment,
    norm_spread,
    without_signal,
)
from weights.exact_spectra import not_above, not_below

LEVEL = 0.001


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(kind: str, rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Independent entries of mean 0."""
    normal = torch.randn(rows, columns, generator=generator)
    uniform = torch.rand(rows, columns, generator=generator)
    if kind == "sign":
        return torch.where(normal < 0, -1.0, 1.0)  # not sign(): about one float32 in a million is 0
    if kind == "laplace":
        return normal.sign() * -uniform.clamp_min(1e-9).log()
    if kind == "sparse":
        return normal * (uniform < 0.3)
    assert kind == "normal"
    return normal


def excess_kurtosis(matrix: torch.Tensor) -> float:
    z = (matrix - matrix.mean()).double()
    return float((z**4).mean() / (z**2).mean() ** 2) - 3


def chances(matrix: torch.Tensor, generator: torch.Generator) -> dict[str, float | None]:
    """The p-values that findings rest on, as the audit takes them."""
    kurtosis = excess_kurtosis(matrix)
    rows, columns = norm_spread(matrix, 1, kurtosis), norm_spread(matrix, 0, kurtosis)
    even = equalize_(matrix.clone())
    kurtosis = fourth_moment(even) - 3
    found = {"row norms": rows.p, "column norms": columns.p, "blocks": block_contrast(even, kurtosis).p}
    for side in ("rows", "columns"):
        found[side] = correlations(even, side, kurtosis, generator).rms.p
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "sign", "laplace", "sparse"])
@pytest.mark.parametrize(("rows", "columns", "draws"), [(64, 64, 120), (150, 33, 60), (40, 2000, 8)])
def test_independent_entries_raise_no_alarm(kind, rows, columns, draws):
    generator = seeded(rows)
    found = [chances(drawn(kind, rows, columns, generator), generator) for _ in range(draws)]
    for name in found[0]:
        p = np.array([one[name] for one in found])
        assert not_above(int((p < LEVEL).sum()), draws, LEVEL), name
        assert not_above(int((p < 0.05).sum()), draws, 0.05), name


@pytest.mark.slow
def test_the_levels_are_kept_and_used_by_small_normal_matrices():
    """At side 32 chance is wide: findings rest on the level alone, sizes of effects are no guard."""
    generator, draws = seeded(1), 1000
    found = [chances(torch.randn(32, 40, generator=generator), generator) for _ in range(draws)]
    for name in found[0]:
        p = np.array([one[name] for one in found])
        for level in (0.05, 0.01, 0.001):
            assert not_above(int((p < level).sum()), draws, level), name
        assert not_below(int((p < 0.05).sum()), draws, 0.03), name


def test_the_spread_of_norms_is_numpy_s():
    matrix = drawn("laplace", 70, 45, seeded())
    squares = (matrix.double().numpy() ** 2).sum(1)
    number = norm_spread(matrix, 1, 3.0)
    assert number.value == pytest.approx(squares.std(ddof=1) / squares.mean(), rel=1e-5)  # float32 norms
    # Var(x²) = (2 + kurtosis)·E[x²]², over 45 of them
    assert number.null == pytest.approx(sqrt(5 / 45))
    assert norm_spread(matrix.T, 0, 3.0).value == pytest.approx(number.value, rel=1e-5)


@pytest.mark.parametrize(("kind", "kurtosis"), [("normal", 0.0), ("laplace", 3.0), ("sign", -2.0)])
def test_the_null_of_the_norms_is_that_of_chance(kind, kurtosis):
    generator, draws = seeded(3), 800
    found = [norm_spread(drawn(kind, 60, 16, generator), 1, kurtosis) for _ in range(draws)]
    values, first = np.array([one.value for one in found]), found[0]
    if kind == "sign":  # rows of ±1 have equal norms, up to float32
        assert values.max() < 1e-6
        assert min(one.p for one in found) > 0.5
        return
    # standard errors; a standard deviation of n values is (1 + excess)/4n too small, and Laplace rows of 16
    # still have their own kurtosis: 5 % and 15 % for it
    heavy = 0.05 if kind == "laplace" else 0.01
    assert abs(values.mean() - first.null) < 4 * values.std() / sqrt(draws) + heavy * first.null
    assert values.std(ddof=1) == pytest.approx(first.spread, rel=4 / sqrt(2 * draws) + 3 * heavy)


def test_norms_of_zeros_are_no_alarm():
    assert norm_spread(torch.zeros(5, 6), 1, 0.0).value == 0
    assert norm_spread(torch.zeros(5, 6), 1, 0.0).p is None


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (40, 600), (600, 40)])
def test_unequal_norms_are_found_on_their_side(rows, columns):
    generator = seeded(5)
    matrix = torch.randn(rows, columns, generator=generator)
    scales = torch.exp(0.3 * torch.randn(rows, 1, generator=generator))
    assert norm_spread(matrix * scales, 1, 0.0).p < 1e-6
    assert norm_spread(matrix * scales, 0, 3 * 0.43).p > LEVEL  # scales e^{0.3z}: E s⁴/(E s²)² = e^{0.36}
    # Var of a squared lognormal scale: e^{4·0.09} − 1, the spread beyond chance; scattered over `rows` draws
    beyond = norm_spread(matrix * scales, 1, 0.0)
    assert sqrt(beyond.value**2 - beyond.null**2) == pytest.approx(0.66, abs=0.35)


def test_equalizing_gives_every_row_and_column_mean_square_one():
    matrix = torch.randn(60, 90, generator=seeded(2)) * torch.linspace(0.1, 3, 60)[:, None]
    matrix *= torch.linspace(2, 0.5, 90)
    matrix[7] = 0
    matrix[:, 11] = 0
    given = matrix.clone()
    even = equalize_(matrix)
    assert even is matrix
    squares = (even.double() ** 2).numpy()
    rows, columns = np.delete(squares.mean(1), 7), np.delete(squares.mean(0), 11)
    # columns last, so exact to float32; rows to the second order of the spread of a column's squares, √(2/60)
    assert columns == pytest.approx(np.ones(89), rel=1e-5)
    assert rows == pytest.approx(np.full(59, rows.mean()), rel=2 / 60)
    assert rows.mean() == pytest.approx(60 / 59 * 89 / 90, rel=1e-3)
    assert not even[7].any()
    assert not even[:, 11].any()
    # scales of rows and columns and nothing else: what is left of each entry has rank one
    ratio = np.delete(np.delete((even / given).double().numpy(), 7, 0), 11, 1)
    assert svdvals(ratio)[1] < 1e-5 * svdvals(ratio)[0]


def test_fourth_moments_are_numpy_s_also_in_bands():
    small, tall = torch.randn(30, 40, generator=seeded()), torch.randn(3000, 500, generator=seeded(1))
    for matrix in (small, tall):
        expected = (matrix.double().numpy() ** 4).mean()
        assert fourth_moment(matrix) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("side", ["rows", "columns"])
def test_cosines_are_numpy_s(side):
    matrix = torch.randn(30, 50, generator=seeded(4)) + 0.2
    found = correlations(matrix, side, 0.0, seeded())
    vectors = matrix.double().numpy() if side == "rows" else matrix.double().numpy().T
    count, length = vectors.shape
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(count, 1)]
    scaled = cosines * sqrt(length)
    assert (found.side, found.used, found.length) == (side, count, length)
    assert found.rms.value == pytest.approx(sqrt((scaled**2).mean()), rel=1e-5)
    assert found.largest.value == pytest.approx(np.abs(cosines).max(), rel=1e-5)
    assert found.ks.value == pytest.approx(kstest(scaled, "norm").statistic, abs=1e-5)
    counts, _ = np.histogram(scaled, found.histogram.edges)
    assert np.abs(np.array(found.histogram.counts) - counts).max() <= 1  # a value at an edge
    assert sum(found.histogram.counts) == count * (count - 1) // 2
    # cosine² ~ Beta(½, (length − 1)/2); independent pairs
    tail = beta.sf(found.largest.value**2, 0.5, (length - 1) / 2)
    assert found.largest.p == pytest.approx(1 - (1 - tail) ** len(cosines), rel=1e-4)


def test_the_nulls_of_the_cosines_are_those_of_chance():
    generator, draws = seeded(6), 400
    found = [
        correlations(equalize_(torch.randn(36, 50, generator=generator)), "rows", 0.0, generator)
        for _ in range(draws)
    ]
    squares = np.array([one.rms.value**2 for one in found])
    assert abs(squares.mean() - found[0].rms.null ** 2) < 4 * squares.std() / sqrt(draws) + 0.002
    assert squares.std() == pytest.approx(2 * found[0].rms.spread, rel=4 / sqrt(2 * draws) + 0.05)
    # equal norms of columns make the cosines smaller; the largest and the distance are those of raw vectors
    raw = [
        correlations(torch.randn(36, 50, generator=generator), "rows", 0.0, generator) for _ in range(draws)
    ]
    below = sum(one.largest.value < one.largest.null for one in raw)
    assert not_above(below, draws, 0.5)  # `null` is the median
    assert not_below(below, draws, 0.5)
    p = np.array([one.largest.p for one in raw])
    assert kstest(p, "uniform").pvalue > 0.001  # pairs are nearly independent in their largest
    ks = np.array([one.ks.value for one in raw])
    # 36 vectors make 630 dependent pairs, and a cosine of length 50 is not quite normal
    assert ks.mean() == pytest.approx(raw[0].ks.null, rel=0.15)


@pytest.mark.parametrize(("rows", "columns"), [(40, 70), (700, 33)])
def test_the_numbers_alone_are_those_that_stand_beside_their_nulls(rows, columns):
    matrix = torch.randn(rows, columns, generator=torch.Generator().manual_seed(8)) ** 3
    found = arrangement(matrix.clone(), 1.0, torch.Generator().manual_seed(9))
    alone = arranged_values(matrix.clone(), 1.0, torch.Generator().manual_seed(9))
    # the cosines are summed in another order: float32 rounding of each, 2⁻²⁴, of which most cancels
    of_rows, of_columns = found.cosines
    assert alone == pytest.approx(
        {
            "row_norms": found.row_norms.value,
            "column_norms": found.column_norms.value,
            "rows": of_rows.rms.value,
            "columns": of_columns.rms.value,
            "blocks": found.blocks.value,
        },
        rel=1e-6,
    )


def test_of_many_vectors_a_random_part_is_compared():
    matrix = torch.randn(COMPARED + 300, 20, generator=seeded(7))
    one, again, other = (correlations(matrix, "rows", 0.0, seeded(s)) for s in (1, 1, 2))
    assert one.used == COMPARED
    assert one == again
    assert one.rms != other.rms
    assert sum(one.histogram.counts) == COMPARED * (COMPARED - 1) // 2


def test_vectors_of_zeros_have_no_cosine():
    matrix = torch.randn(20, 30, generator=seeded(8))
    matrix[3] = 0
    found = correlations(matrix, "rows", 0.0, seeded())
    assert np.isfinite(found.rms.value)
    assert found.histogram.counts[20] >= 19  # 0 is where the bin from 0 on begins


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (40, 600), (600, 40), (200, 150)])
def test_correlated_columns_are_found_and_their_largest_cosine_with_them(rows, columns):
    matrix = torch.randn(rows, columns + 2, generator=seeded(9))
    matrix = equalize_(matrix[:, :-2] + matrix[:, 1:-1] + matrix[:, 2:])  # neighbours share 2/3
    kurtosis = fourth_moment(matrix) - 3
    columns_, rows_ = (correlations(matrix, side, kurtosis, seeded()) for side in ("columns", "rows"))
    assert columns_.rms.p < LEVEL
    assert rows_.rms.p < LEVEL  # the same squares, seen from the other side
    assert columns_.largest.value > 0.6
    assert columns_.largest.p < LEVEL


def test_orthogonal_rows_have_smaller_cosines_than_chance():
    matrix = torch.linalg.qr(torch.randn(64, 64, generator=seeded(1))).Q * 8
    found = correlations(matrix, "rows", 0.0, seeded())
    assert found.rms.value < 0.01
    assert found.rms.p < 1e-6


def by_hand(matrix: np.ndarray, grid: tuple[int, int]) -> float:
    energies = np.array(
        [
            [(part**2).mean() for part in np.array_split(band, grid[1], axis=1)]
            for band in np.array_split(matrix, grid[0], axis=0)
        ]
    )
    energies /= energies.mean()
    return sqrt(((energies - 1) ** 2).sum() / ((grid[0] - 1) * (grid[1] - 1)))


@pytest.mark.parametrize(
    ("rows", "columns", "grid"), [(64, 96, (8, 8)), (33, 130, (4, 8)), (200, 16, (8, 2))]
)
def test_the_contrast_of_blocks_is_that_of_loops(rows, columns, grid):
    matrix = drawn("laplace", rows, columns, seeded(rows))
    assert block_contrast(matrix, 0.0).value == pytest.approx(
        by_hand(matrix.double().numpy(), grid), rel=1e-5
    )


def test_blocks_of_different_scale_are_found_and_too_small_a_matrix_has_none():
    matrix = torch.randn(80, 120, generator=seeded(2))
    matrix[:40, :60] *= 1.3
    matrix[40:, 60:] *= 1.3
    even = equalize_(matrix)
    assert block_contrast(even, fourth_moment(even) - 3).p < 1e-6
    assert block_contrast(torch.randn(15, 200, generator=seeded()), 0.0).value == 0
    assert block_contrast(torch.zeros(64, 64), 0.0).p is None


def test_row_and_column_scales_are_no_blocks():
    matrix = torch.randn(80, 120, generator=seeded(3))
    matrix[:40] *= 3
    matrix[:, :50] *= 0.4
    even = equalize_(matrix)
    assert block_contrast(even, fourth_moment(even) - 3).p > LEVEL


def with_spikes(rows: int, columns: int, strengths: list[float], seed: int) -> torch.Tensor:
    generator = seeded(seed)
    left = torch.linalg.qr(torch.randn(rows, len(strengths), generator=generator)).Q
    right = torch.linalg.qr(torch.randn(columns, len(strengths), generator=generator)).Q
    noise = torch.randn(rows, columns, generator=generator)
    return noise + left @ torch.diag(torch.tensor(strengths)) @ right.T


@pytest.mark.parametrize(("rows", "columns"), [(60, 60), (40, 900), (900, 40)])
def test_spikes_are_taken_off_and_nothing_else_is(rows, columns):
    matrix = with_spikes(rows, columns, [300.0, 200.0], 1)
    given = matrix.clone()
    parts = decompose(matrix)
    assert parts.rank == 2
    rest = without_signal(matrix, parts, seeded(2))
    assert (matrix == given).all()
    change = (rest - matrix).double() / parts.row_scales[:, None] / parts.column_scales
    left, right = (one.double() for one in parts.directions())
    outside = change - left @ (left.T @ change)
    outside -= (outside @ right) @ right.T
    # the noise put in has a profile without what chance made of it: a few hundredths of it lie outside
    assert float(outside.square().mean().sqrt()) < 0.05 * parts.summary.scale
    # what stands in their place is noise of the same scale: chi variables of that many degrees of freedom
    rest = (rest.double() / parts.row_scales[:, None] / parts.column_scales / parts.summary.scale).numpy()
    left, right = left.numpy(), right.numpy()
    assert np.linalg.norm(left.T @ rest) == pytest.approx(sqrt(2 * columns), rel=4 / sqrt(4 * columns) + 0.05)
    assert np.linalg.norm(rest @ right) == pytest.approx(sqrt(2 * rows), rel=4 / sqrt(4 * rows) + 0.05)
    assert edge_probability(float(svdvals(rest)[0]), rows, columns, 1.0) > LEVEL


def test_without_signal_a_copy_of_the_matrix_is_given():
    matrix = torch.randn(40, 50, generator=seeded())
    rest = without_signal(matrix, decompose(matrix), seeded())
    assert rest is not matrix
    assert (rest == matrix).all()


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (40, 1000), (1000, 40)])
def test_what_a_signal_leaves_raises_no_alarm(rows, columns):
    """Directions that are left out rather than replaced correlate what remains of a short side."""
    draws, generator = 12, seeded(columns)
    alarms = dict.fromkeys(("row norms", "column norms", "blocks", "rows", "columns"), 0)
    for seed in range(draws):
        matrix = with_spikes(rows, columns, [80.0, 60.0], seed)
        found = chances(without_signal(matrix, decompose(matrix), generator), generator)
        for name, p in found.items():
            alarms[name] += p < LEVEL
    for name, count in alarms.items():
        assert not_above(count, draws, LEVEL), name
