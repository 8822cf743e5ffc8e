"""`decompose`: against a slow implementation in NumPy, planted matrices, and noise of many kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.linalg import svd
from scipy.stats import binom

from obverse._core import BadInput
from obverse.weights import Parts, decompose
from obverse.weights._decomposition.edges import upper_p


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def plant(rows, columns, rank, times, spread, seed, noise=None):
    """profile × (signal + noise): the matrix, the signal, the profile; strengths at `times` the threshold."""
    generator = seeded(seed)
    left = torch.linalg.qr(torch.randn(rows, rank, generator=generator)).Q
    right = torch.linalg.qr(torch.randn(columns, rank, generator=generator)).Q
    signal = times * (rows * columns) ** 0.25 * left @ right.T
    noise = torch.randn(rows, columns, generator=generator) if noise is None else noise
    logs = torch.randn(rows, 1, generator=generator) + torch.randn(1, columns, generator=generator)
    profile = (spread * logs).exp()
    return profile * (signal + noise), signal, profile


def slow_rank(matrix: np.ndarray, alpha: float) -> tuple[int, np.ndarray]:
    """The same idea written plainly: whole singular value decompositions, Sinkhorn entry by entry.

    The scale is that of the median singular value over the median of a large matrix of noise of this shape.
    """
    rows, columns = matrix.shape
    r, c = np.ones(rows), np.ones(columns)
    rest, count = matrix, 0
    reference = np.random.default_rng(0).standard_normal((2 * rows, 2 * columns))
    typical = np.median(svd(reference, compute_uv=False)) / math.sqrt(2)
    for _ in range(6):
        squares = rest**2
        for _ in range(300):
            r = np.array([columns / sum(squares[i] * c) for i in range(rows)])
            c = np.array([rows / sum(squares[:, j] * r) for j in range(columns)])
        scaled = matrix * np.sqrt(np.outer(r, c))
        left, values, right = svd(scaled, full_matrices=False)
        scale = np.median(values[count:]) / typical
        before, count = count, 0
        while upper_p(values[count], rows - count, columns - count, scale, 0.0) < alpha:
            count += 1
        if count == before:
            return count, values
        scaled_rest = scaled - (left[:, :count] * values[:count]) @ right[:count]
        scaled_rest /= np.sqrt(1 - (left[:, :count] ** 2).sum(1))[:, None]
        scaled_rest /= np.sqrt(1 - (right[:count] ** 2).sum(0))
        rest = scaled_rest / np.sqrt(np.outer(r, c))
    raise AssertionError("did not settle")


@pytest.mark.parametrize(("rank", "seed"), [(0, 1), (4, 2)])
def test_a_slow_implementation_finds_the_same(rank, seed):
    matrix, _, _ = plant(60, 90, max(rank, 1), 3.0 if rank else 0.0, 0.5, seed)
    parts = decompose(matrix)
    count, values = slow_rank(matrix.double().numpy(), 0.01)
    assert parts.rank == count == rank
    # one more round of profile and signal moves the profile by a quarter of its own sampling error, √(2 / 90)
    found = np.array([one.value for one in parts.summary.directions])
    assert found == pytest.approx(values[:rank], rel=math.sqrt(2 / 90) / 4)


@pytest.mark.parametrize(("rows", "columns"), [(256, 256), (300, 800)])
def test_planted_directions_are_found_with_their_strengths(rows, columns):
    ratios, ranks = [], []
    for seed in range(4):
        matrix, signal, _ = plant(rows, columns, 5, 2.0, 1.0, seed)
        parts = decompose(matrix)
        ranks.append(parts.rank)
        strengths = [one.strength / parts.summary.scale for one in parts.summary.directions]
        ratios.append(np.mean(strengths) / (2.0 * (rows * columns) ** 0.25))
        energy = float(signal.square().sum())
        share = parts.summary.signal_share
        assert share.value == pytest.approx(energy / (energy + rows * columns), rel=0.15)
        assert parts.random_share.low <= 1 - share.value <= parts.random_share.high
        assert parts.grade == "signal in a random bulk"
    assert ranks == [5] * 4
    # 20 strengths, each with the standard error 1 / strength ≤ 1 / 32, and a bias below 2 %
    assert np.mean(ratios) == pytest.approx(1, abs=0.02 + 4 / 32 / math.sqrt(20))


def test_the_signal_is_rebuilt_nearly_as_well_as_an_oracle_could():
    """It knows the profile and the best values for the seen directions."""
    matrix, signal, profile = plant(256, 512, 5, 1.7, 0.5, 3)
    parts = decompose(matrix)
    left, _, right = torch.linalg.svd(matrix / profile, full_matrices=False)
    best = torch.einsum("ik,ij,kj->k", left[:, :5], signal, right[:5])
    oracle = (left[:, :5] * best) @ right[:5]
    error = float((parts.signal() / profile - signal).norm() / (oracle - signal).norm())
    assert error < 1.05


def test_signal_and_bulk_are_the_matrix_again():
    matrix, _, _ = plant(90, 60, 3, 3.0, 1.0, 4)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        given = matrix.to(dtype)
        parts = decompose(given)
        whole = given.to(torch.promote_types(dtype, torch.float32))
        rounding = torch.finfo(whole.dtype).eps * (parts.signal().abs() + whole.abs())
        assert bool(((parts.signal() + parts.bulk() - whole).abs() <= rounding).all())
        assert parts.signal().dtype == whole.dtype
    assert torch.linalg.matrix_rank(parts.signal()) == parts.rank == 3


def test_without_signal_its_directions_are_gone():
    matrix, _, _ = plant(64, 100, 3, 4.0, 0.5, 5)
    parts = decompose(matrix)
    left, right = parts.directions()
    scaled = parts.without_signal() / parts.row_scales[:, None] / parts.column_scales
    assert float((left.T @ scaled.float()).abs().max()) < 1e-3
    assert torch.allclose(left.T @ left, torch.eye(3), atol=1e-4)
    assert torch.allclose(right.T @ right, torch.eye(3), atol=1e-4)
    assert decompose(parts.without_signal()).rank == 0


def test_the_bulk_is_replaced_or_shuffled_and_the_signal_stays():
    matrix, _, _ = plant(100, 160, 2, 4.0, 0.5, 6)
    matrix[7] = 0
    parts = decompose(matrix)
    fresh, moved = parts.resample(seeded(1)), parts.shuffled(seeded(1))
    assert torch.equal(fresh, parts.resample(seeded(1)))
    assert not torch.equal(fresh, parts.resample(seeded(2)))
    scales = parts.row_scales[:, None] * parts.column_scales

    def entries(rebuilt):
        inner = ((rebuilt - parts.signal()) / scales).double()[parts.row_scales > 0]
        return inner.flatten().sort().values

    assert torch.allclose(entries(moved), entries(matrix), atol=1e-4)
    assert not torch.allclose(moved, matrix, atol=1e-2)
    assert float(entries(fresh).std()) == pytest.approx(parts.summary.scale, rel=4 / math.sqrt(2 * 99 * 160))
    for rebuilt in (fresh, moved):
        assert float(rebuilt[7].abs().max()) == 0
        assert decompose(rebuilt).rank == 2


def test_it_does_not_matter_how_the_matrix_lies_or_what_its_unit_is():
    matrix, _, _ = plant(64, 128, 3, 3.0, 0.7, 7)
    usual = decompose(matrix).summary
    for other in (matrix.T, 1e-20 * matrix, -1e15 * matrix, matrix[torch.randperm(64, generator=seeded(0))]):
        found = decompose(other).summary
        assert found.rank == usual.rank
        # the profile stops at 1e-4 wherever it comes from
        assert found.random_share.value == pytest.approx(usual.random_share.value, abs=1e-3)
        assert found.profile_share.value == pytest.approx(usual.profile_share.value, abs=1e-3)


def families(rows, columns, generator):
    normal = torch.randn(rows, columns, generator=generator)
    kept = torch.rand(rows, columns, generator=generator)
    yield "normal", normal
    yield "±1", normal.sign()
    yield "cubed", normal**3  # excess kurtosis 43
    yield "90 % pruned", normal * (kept < 0.1)


def test_noise_is_untouched_whatever_its_entries():
    """The full calibration is an experiment; here 4 × 60 matrices with log-normal rows and columns."""
    generator = seeded(8)
    above, below, off, matrices = 0, 0, 0, 0
    for _ in range(60):
        for _, noise in families(48, 96, generator):
            logs = torch.randn(48, 1, generator=generator) + torch.randn(1, 96, generator=generator)
            found = decompose(logs.exp() * noise, alpha=0.05, generator=generator).summary
            matrices += 1
            above += found.rank > 0
            below += len(found.below) > 0
            assert found.distance is not None
            assert found.distance.p is not None
            off += found.distance.p < 0.05
    most = binom.isf(1e-4, matrices, 0.05)
    assert above <= most
    assert below <= most
    assert off <= most


def test_probabilities_are_those_before_the_profile_made_room():
    """A direction that was found is kept out of the profile; its probability must not profit from that."""
    generator = seeded(9)
    first = [decompose(torch.randn(40, 40, generator=generator), alpha=0.5).summary for _ in range(150)]
    p = np.array([one.directions[0].p if one.directions else one.upper_p for one in first])
    for level in (0.1, 0.01):
        assert (p < level).sum() <= binom.isf(1e-4, len(p), level)


@pytest.mark.parametrize(
    ("matrix", "grade", "words"),
    [
        (torch.zeros(40, 50), "cannot tell", "cannot tell: all entries are 0"),
        (torch.ones(1, 50), "cannot tell", "one row or column"),
        (torch.randn(10, 500, generator=seeded(0)), "cannot tell", "10 rows and 500 columns"),
        (torch.full((64, 80), 0.5), "mostly signal", "1 of 64 directions carries everything"),
        (
            torch.randn(64, 5, generator=seeded(1)) @ torch.randn(5, 100, generator=seeded(2)),
            "mostly signal",
            "5 of 64 directions carry everything",
        ),
        (
            torch.linalg.qr(torch.randn(100, 100, generator=seeded(3))).Q,
            "structured otherwise",
            "not like that of random numbers",
        ),
        (torch.randn(64, 80, generator=seeded(4)), "untouched", "no direction stands out from noise"),
        (plant(64, 80, 6, 6.0, 0.5, 5)[0], "mostly signal", "6 of 64 directions carry the signal"),
    ],
)
def test_every_kind_of_matrix_has_a_grade_and_a_sentence(matrix, grade, words):
    parts = decompose(matrix)
    assert parts.grade == grade
    assert words in parts.sentence
    assert torch.allclose(parts.signal() + parts.bulk(), matrix, atol=1e-6)
    for rebuilt in (parts.resample(), parts.shuffled(), parts.without_signal()):
        assert rebuilt.shape == matrix.shape
        assert bool(rebuilt.isfinite().all())
    share = parts.random_share
    assert (share is None) == (grade == "cannot tell")
    assert share is None or 0 <= share.low <= share.value <= share.high <= 1
    assert "\n" not in repr(parts)


def test_empty_lines_are_left_out_and_dependent_rows_show_below():
    matrix = torch.randn(80, 100, generator=seeded(10))
    matrix[3], matrix[:, 7], matrix[5] = 0, 0, matrix[6]
    found = decompose(matrix).summary
    assert (found.empty_rows, found.empty_columns, found.null_directions) == (1, 1, 1)
    assert found.lower_p is not None
    assert found.lower_p < 1e-100
    assert found.grade == "signal in a random bulk"
    assert "1 row and 1 column of zeros left out" in found.sentence


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (torch.full((40, 40), float("nan")), "1,600 NaN or infinite of 1,600"),
        (torch.zeros(4, 4, 3), "of shape (4, 4, 3)"),
        (torch.zeros(40, 40, dtype=torch.int64), "int64"),
        (np.array([["a"]]), "<U1"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix, words):
    with pytest.raises(BadInput, match=words.replace("(", r"\(").replace(")", r"\)")):
        decompose(matrix)


def test_heavy_tails_are_said():
    generator = seeded(14)
    sparse = torch.randn(80, 100, generator=generator) * (torch.rand(80, 100, generator=generator) < 0.1)
    found = decompose(sparse).summary
    assert found.heavy_tails
    assert "weak directions can be missed" in found.sentence
    assert not decompose(torch.randn(80, 100, generator=generator)).summary.heavy_tails


def test_alpha_is_a_share():
    with pytest.raises(BadInput, match="alpha between 0 and 1"):
        decompose(torch.zeros(40, 40), alpha=0.0)


def test_the_summary_is_plain_values():
    summary = decompose(plant(64, 80, 2, 4.0, 0.5, 11)[0]).summary.to_dict()
    assert summary["rank"] == 2
    assert summary["directions"][0]["p"] < 1e-6
    assert isinstance(decompose(torch.zeros(2, 2)), Parts)


def agreement(rows, columns, rank, times, seed):
    matrix, _, _ = plant(rows, columns, rank, times, 0.5, seed)
    exactly, fast = (
        decompose(matrix, exact=exact, generator=seeded(seed)).summary for exact in (True, False)
    )
    assert (exactly.method, fast.method) == ("exact", "krylov")
    return exactly, fast


@pytest.mark.parametrize(("rank", "times"), [(1, 0.0), (3, 2.5), (30, 3.0)])
def test_few_products_find_what_all_singular_values_show(rank, times):
    exactly, fast = agreement(300, 400, rank, times, 12)
    assert fast.rank == exactly.rank == (rank if times else 0)
    assert fast.grade == exactly.grade
    for one, other in zip(fast.directions, exactly.directions, strict=True):
        assert one.strength / fast.scale == pytest.approx(other.strength / exactly.scale, rel=0.01)
    # the energy's scale and that of the middle of the spectrum: each with 0.74 / √(rows · columns), and a
    # bend of the spectrum by equal rows of a few in a thousand
    assert fast.scale == pytest.approx(exactly.scale, rel=0.01)
    assert not fast.rank_is_bound


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rank", "times"), [(1600, 5, 1.3), (2400, 80, 1.7), (1600, 320, 4.0)])
def test_few_products_find_the_same_in_large_matrices(columns, rank, times):
    exactly, fast = agreement(1600, columns, rank, times, 13)
    assert fast.rank == exactly.rank
    assert fast.grade == exactly.grade
    # Squared strengths move 4 / (times² − 1) times as far as the scale that they are measured by, which both
    # know to 1 % (above): of ℓ = θ + 1/θ and a given value, d ln(θσ) = −2 / (θ² − 1) · d ln σ.
    allowed = max(0.02, 0.01 * 4 / (times**2 - 1))
    assert fast.scale == pytest.approx(exactly.scale, rel=0.01)
    assert fast.signal_share.value == pytest.approx(exactly.signal_share.value, rel=allowed)


@pytest.mark.parametrize("entries", [1, 5])
def test_a_matrix_with_one_row_that_is_not_empty_has_too_little_to_tell(entries):
    matrix = torch.zeros(40, 50)
    matrix[3, :entries] = 1.0
    for one in (matrix, matrix.T.contiguous()):
        assert decompose(one).grade == "cannot tell"


@pytest.mark.parametrize("matrix", [torch.full((48, 70), 0.5), torch.full((200, 300), 0.5)])
def test_equal_entries_are_one_direction_in_a_quick_look_too(matrix):
    found = decompose(matrix, exact=False)
    assert found.sentence == f"1 of {len(matrix)} directions carries everything; the others are empty"


@pytest.mark.parametrize("rank", [2, 5])
def test_a_small_matrix_is_not_searched(rank):
    """A block of the search has 32 directions; beside two of them there would be no room."""
    torch.manual_seed(rank)
    found = decompose(torch.randn(48, rank) @ torch.randn(rank, 60), exact=False)
    assert found.sentence == f"{rank} of 48 directions carry everything; the others are empty"
