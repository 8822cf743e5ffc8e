"""Matrices about which the audit once said something false; NumPy's singular values are the oracle."""

import re

import numpy as np
import pytest
import torch

from obverse.weights import LayerAudit, audit, decompose
from obverse.weights._structure import block_contrast, equalize_
from obverse.weights._verdict import Thresholds
from weights.exact_spectra import not_above

FINE, SIGNAL, MOSTLY, OTHERWISE, UNSURE = (
    "untouched",
    "signal in a random bulk",
    "mostly signal",
    "structured otherwise",
    "cannot tell",
)
NOTHING = "no direction stands out from noise; the spectrum is like that of random numbers"


def normal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def planted(rows: int, columns: int, spikes: int, times: float, seed: int = 0) -> torch.Tensor:
    left, right = (torch.linalg.qr(normal(side, spikes, seed + side)).Q for side in (rows, columns + 1))
    return normal(rows, columns, seed) + times * (rows * columns) ** 0.25 * left @ right[:columns].T


def without_directions(matrix: torch.Tensor, missing: int) -> torch.Tensor:
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    values[-missing:] = 0
    return ((left * values) @ right).float()


def correlated(rows: int, columns: int) -> torch.Tensor:
    apart = (torch.arange(rows)[:, None] - torch.arange(rows)).abs()
    return torch.linalg.cholesky(0.5 ** apart.float()) @ normal(rows, columns)


def exact_values(matrix: torch.Tensor) -> np.ndarray:
    return np.linalg.svd(matrix.double().numpy(), compute_uv=False)


def looked_at(matrix: torch.Tensor, exact: bool | None = None) -> LayerAudit:
    return audit({"w": matrix}, exact=exact, samples=8).layers[0]


@pytest.mark.parametrize("exact", [True, False])
def test_equal_singular_values_do_not_follow_the_law(exact):
    layer = looked_at(torch.linalg.qr(normal(300, 300)).Q, exact)
    assert layer.verdict == OTHERWISE
    assert layer.sentence.startswith(
        "no direction stands out from noise; the spectrum is not like that of random"
    )
    assert layer.parts.rank == 0
    assert layer.parts.distance.value > 0.4
    assert layer.parts.random_share.low == 0


@pytest.mark.parametrize("exact", [True, False])
def test_correlated_rows_are_never_untouched(exact):
    matrix = correlated(300, 450)
    layer = looked_at(matrix, exact)
    assert layer.verdict != FINE
    beyond = int((exact_values(matrix) > np.sqrt(300) + np.sqrt(450)).sum())
    assert layer.parts.rank > beyond / 2
    assert ("at least" in layer.sentence) == layer.parts.rank_is_bound


def test_a_search_cut_short_says_so_and_by_default_all_singular_values_answer(monkeypatch):
    matrix = planted(1000, 1200, 200, 1.6)  # the search looks for an eighth of the directions
    every, few = (looked_at(matrix, exact=exact) for exact in (True, False))
    assert every.verdict == SIGNAL
    assert few.verdict == UNSURE
    assert few.parts.rank_is_bound
    assert few.parts.rank <= every.parts.rank
    assert few.sentence.startswith(f"at least {few.parts.rank} of 1000 directions stand out from noise")
    assert few.sentence.endswith("whether more do, only all singular values tell (--exact)")
    assert few.parts.random_share.low == 0
    monkeypatch.setattr("obverse.weights._decomposition.parts.EXACT_UP_TO", 100)
    assert looked_at(matrix).sentence == every.sentence
    assert looked_at(normal(300, 500)).parts.method == "krylov"


def test_few_values_find_as_many_directions_as_all_do_or_say_at_least():
    matrix = planted(300, 300, 18, 1.5)
    exact, few = (looked_at(matrix, exact=exact) for exact in (True, False))
    assert exact.verdict == few.verdict == SIGNAL
    assert abs(few.parts.rank - exact.parts.rank) <= 1
    assert exact.parts.rank <= 18


def test_missing_rank_is_found():
    matrix = without_directions(normal(128, 512), 8)
    assert int((exact_values(matrix) > 1e-3).sum()) == 120
    for exact in (True, False):
        assert looked_at(matrix, exact).verdict == OTHERWISE
    layer = looked_at(matrix, True)
    assert layer.parts.null_directions == len(layer.parts.below) == 8
    assert (
        "8 singular values are smaller than those of random numbers (all 0 to float32 precision)"
        in layer.sentence
    )


def test_a_few_missing_directions_are_counted():
    layer = looked_at(without_directions(normal(256, 256), 5))
    assert layer.sentence.startswith(
        "no direction stands out from noise; 5 singular values are smaller than those of random numbers "
        "(all 0 to float32 precision); the rest of the spectrum is like that of random numbers"
    )
    assert layer.verdict == SIGNAL
    assert layer.random_share.value == layer.random_share.high == 1 - 5 / 256


@pytest.mark.parametrize("rows", [64, 300])
def test_not_exact_is_obeyed(rows, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("all singular values were computed")

    monkeypatch.setattr("obverse.weights._decomposition.parts.split_exactly", never)
    layer = looked_at(normal(rows, rows), exact=False)
    assert layer.parts.method == "krylov"
    assert layer.verdict == FINE


@pytest.mark.parametrize("dead", [26, 128])
def test_dead_rows_are_counted_and_left_out(dead):
    matrix = normal(256, 512)
    matrix[:dead] = 0
    live = matrix[dead:].double().numpy()
    live /= np.linalg.norm(live, axis=1, keepdims=True)
    cosines = (live @ live.T)[np.triu_indices(len(live), 1)]
    layer = looked_at(matrix)
    assert layer.sentence.startswith(f"{NOTHING}; a direction with ")
    assert layer.sentence.endswith(f" would have shown; {dead} of 256 rows are all 0 and left out")
    assert (layer.dead_rows, layer.dead_columns) == (dead, 0)
    assert layer.parts.null_directions == 0
    rows = layer.correlations[0]
    # the columns have equal norms in the audit and not here: 1 in 512 of the squares
    assert rows.rms.value == pytest.approx(np.sqrt((cosines**2).mean() * 512), abs=0.02)
    assert rows.largest.value == pytest.approx(np.abs(cosines).max(), abs=0.02)
    assert layer.entries.zeros == 0


def test_dead_columns_are_left_out_and_too_many_leave_nothing_to_judge():
    matrix = normal(64, 300)
    matrix[:, ::3] = 0
    assert looked_at(matrix).sentence.endswith("; 100 of 300 columns are all 0 and left out")
    matrix[:40] = 0
    layer = looked_at(matrix)
    assert layer.verdict == "not judged"
    assert "40 of 64 rows, 100 of 300 columns" in layer.sentence
    assert "a side of 24 is left, at least 32 needed" in layer.sentence
    constant = torch.zeros(64, 64)
    constant[:50] = 0.5
    assert "that are not in a row or column of zeros are 0.5" in looked_at(constant).sentence


@pytest.mark.parametrize("spikes", [11, 12, 13, 14, 20])
def test_there_is_no_cliff_in_the_number_of_directions(spikes):
    layer = looked_at(planted(256, 256, spikes, 2.0))
    assert layer.verdict == SIGNAL
    assert abs(layer.parts.rank - spikes) <= 1
    assert f"{layer.parts.rank} of 256 directions carry the signal" in layer.sentence
    remarks = {one.aspect for one in layer.findings if one.random_like is False and not one.decides}
    assert {"correlations", "norms", "blocks"}.isdisjoint(remarks)


def test_a_mean_is_no_direction():
    layer = looked_at(normal(256, 256) + 0.1)
    assert layer.parts.rank == 0
    held = "holds 0.9\u00a0% of the energy and was taken off first"
    words = f"the mean of the entries (0.0964 standard deviations) {held}"
    assert layer.sentence.startswith(f"{words}; without it, {NOTHING}")
    assert layer.verdict == SIGNAL  # 0.0964: of this draw, by NumPy
    assert layer.random_share.value == pytest.approx(1 / 1.01, abs=0.002)
    far = looked_at(normal(64, 64) + 3)
    assert far.verdict == MOSTLY
    assert re.match(r"the mean of the entries \(\d\.\d\d standard deviations\) holds 9", far.sentence)
    assert far.random_share.value == pytest.approx(0.1, abs=0.02)


def test_a_mean_and_directions_that_carry_most_together_are_mostly_signal():
    layer = looked_at(planted(128, 128, 1, 9.0) + 0.7)
    assert layer.mean_share < 0.5
    assert layer.parts.signal_share.value < 0.5
    assert layer.random_share.high < 0.5
    assert layer.verdict == MOSTLY
    assert "was taken off first" in layer.sentence


@pytest.mark.parametrize("scale", [1.0, -0.3])
def test_a_permutation_is_not_like_random_numbers_and_has_no_zero_singular_value(scale):
    order = torch.randperm(96, generator=torch.Generator().manual_seed(4))
    for matrix in (torch.eye(96)[order], torch.diag(normal(96, 1)[:, 0])[order]):
        layer = looked_at(scale * matrix)
        assert layer.verdict == OTHERWISE
        assert layer.parts.null_directions == 0
        assert "singular value" not in layer.sentence
        assert "is not like that of random numbers" in layer.sentence
        assert "99 % of the entries are exactly 0".replace(" %", "\u00a0%") not in layer.sentence  # 98.958 %
        assert "99.0\u00a0% of the entries are exactly 0" in layer.sentence


def test_the_rows_of_noise_with_a_profile_are_not_called_correlated():
    generator = torch.Generator().manual_seed(8)
    for seed in range(3):
        rows, columns = (torch.randn(*side, generator=generator).exp() for side in ((128, 1), (1, 256)))
        layer = looked_at(normal(128, 256, seed) * rows * columns)
        assert layer.verdict == FINE
        remarks = {one.aspect for one in layer.findings if one.random_like is False}
        assert remarks.isdisjoint({"correlations", "blocks"})
        assert "norms" in remarks


def test_signs_with_a_profile_are_measured():
    """Without the profile their excess kurtosis is −2 but for rounding, to either side."""
    for seed in range(6):
        profile = (0.5 * normal(192, 1, seed + 50)).exp() * (0.5 * normal(1, 192, seed + 90)).exp()
        signs = normal(192, 192, seed).sign()
        assert block_contrast(equalize_(signs * profile), -2 - 1e-7).value < 0.01  # rounding alone
    layer = looked_at(signs * profile)
    assert layer.verdict == FINE
    assert "blocks" not in {one.aspect for one in layer.findings if one.random_like is False}


def test_of_blocks_of_different_scale_no_share_is_surely_random():
    layer = looked_at(torch.block_diag(normal(96, 96), normal(96, 96, 1)))
    assert layer.verdict == OTHERWISE
    assert layer.random_share.low == 0


def family(name: str, rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    noise = torch.randn(rows, columns, generator=generator)
    uniform = torch.rand(rows, columns, generator=generator)
    if name == "uniform":
        return uniform - 0.5
    if name == "t6":
        squares = torch.randn(6, rows, columns, generator=generator).square().sum(0)
        return noise / (squares / 6).sqrt()
    if name == "mean":
        return noise + MEAN
    return noise * (uniform >= float(name)) if name != "normal" else noise


MEAN = 0.1
FAMILIES = ["normal", "uniform", "t6", "mean", "0.5", "0.9", "0.95"]


def false_alarms(name: str, rows: int, columns: int, matrices: int) -> int:
    generator = torch.Generator().manual_seed(rows)
    nets = {f"{at}": family(name, rows, columns, generator) for at in range(matrices)}
    layers = audit(nets, samples=8).layers
    if name == "mean":  # told where it is as strong as a signal that can be seen; what it leaves is noise
        told = sum("the mean of the entries" in layer.sentence for layer in layers)
        # sampling error: 0.1 of the threshold, 2.8 times of which lie between this mean and the line at 0.7
        assert told >= 0.95 * matrices or MEAN * (rows * columns) ** 0.25 < 0.9
        return sum(layer.parts.grade != FINE for layer in layers)
    return sum(layer.verdict != FINE for layer in layers)


# of a direction above the law, of a value below it, and of the distance to the law, each at the level 0.001
TESTS = 3


@pytest.mark.parametrize(("name", "rows", "columns"), [("0.95", 64, 288), ("t6", 64, 64)])
def test_independent_entries_of_any_tails_are_untouched(name, rows, columns):
    assert not_above(false_alarms(name, rows, columns, 4), 4, TESTS * Thresholds().level)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        pytest.param(
            name,
            shape,
            marks=pytest.mark.xfail(
                (name, shape) == ("0.95", (48, 48)),
                reason="two entries a row: 17 of 100 are called structured otherwise (docs/decompose.md)",
                strict=True,
            ),
        )
        for name in FAMILIES
        for shape in ((64, 144), (48, 48))
    ],
)
def test_false_alarms_of_each_family_are_as_seldom_as_the_level_says(name, shape):
    """Clopper–Pearson at 1 % doubt against the sum of the levels of all tests."""
    rows, columns = shape
    assert not_above(false_alarms(name, rows, columns, 100), 100, TESTS * Thresholds().level, doubt=0.01)


def test_what_is_marked_decides():
    """Uniform entries and unequal offsets of a fresh layer are remarks beside its verdict."""
    layer = audit(torch.nn.Linear(128, 96)).layers[0]
    assert layer.verdict == FINE
    assert layer.off == ()
    off = {one.aspect for one in layer.findings if one.random_like is False}
    assert off == {"entries", "offsets"}


def fourier(size: int) -> torch.Tensor:
    """Sines and cosines, as a layer that computes a Fourier transform has them."""
    angles = 2 * torch.pi * torch.outer(torch.arange(1, size // 2), torch.arange(size)) / size
    return torch.cat([angles.cos(), angles.sin()])


@pytest.mark.parametrize("matrix", [torch.linalg.qr(normal(200, 200)).Q, fourier(128)])
def test_of_what_is_structured_otherwise_the_random_share_is_only_bounded(matrix):
    layer = looked_at(matrix)
    assert layer.verdict == OTHERWISE
    share, distance = layer.random_share, layer.parts.distance
    assert share.is_bound
    assert share.low == 0
    # of numbers at this distance from a law at most the others follow it
    assert share.value == share.high == pytest.approx(1 - distance.excess, abs=2 * distance.spread)


def test_one_small_singular_value_is_named_and_no_other_structure():
    left, values, right = torch.linalg.svd(normal(64, 192), full_matrices=False)
    values[-1] *= 0.5
    layer = looked_at((left * values) @ right)
    assert layer.verdict == SIGNAL
    assert layer.sentence.startswith(
        "no direction stands out from noise; 1 singular value is smaller than those of random numbers; "
        "the rest of the spectrum is like that of random numbers"
    )
    assert layer.random_share.high == 1 - 1 / 64


@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (32, 192), (64, 64)])
def test_a_direction_that_would_have_shown_does(rows, columns):
    (share,) = re.findall(r"a direction with ([\d.]+)\D", looked_at(normal(rows, columns, 3)).sentence)
    strength = np.sqrt(float(share) / (100 - float(share)) * rows * columns)
    seen = 0
    for seed in range(20):
        left, right = normal(rows, 1, 100 + seed), normal(1, columns, 200 + seed)
        spike = strength * left @ right / left.norm() / right.norm()
        seen += decompose(normal(rows, columns, 300 + seed) + spike).rank > 0
    assert seen >= 18  # nearly always: below 0.9 of 20 with a chance of 8 % were the rate 0.95 only


def test_what_lies_far_below_the_first_direction_is_not_called_empty():
    """An embedding of tokens most of which were never seen: alike but for a ten thousandth."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(1, 64, generator=generator).repeat(2000, 1)
    matrix[:1500] += 1e-4 * torch.randn(1500, 64, generator=generator)
    matrix[1500:] = torch.randn(500, 64, generator=generator)
    values = torch.linalg.svdvals(matrix)
    assert float(values[-1] / values[0]) > 0.01  # so no direction is empty
    for exact in (None, True, False):
        parts = decompose(matrix, exact=exact, generator=generator)
        assert "empty" not in parts.sentence
        assert parts.grade == "cannot tell"
