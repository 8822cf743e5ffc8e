"""Treatments and controls, each against what its words say, computed here another way."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from obverse.weights import Parts, decompose
from obverse.weights._ablation.bend import bend, counts, rank_correlation
from obverse.weights._ablation.results import Kept, LayerAblation, Score
from obverse.weights._ablation.treatments import (
    TREATMENTS,
    bits,
    directions_of,
    random_directions,
    rounding_step,
)

RANK, ROWS, COLUMNS = 4, 96, 160


def planted() -> Parts:
    """Four strong directions in normal noise, with uneven rows and columns."""
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(ROWS, COLUMNS, generator=generator)
    left = torch.linalg.qr(torch.randn(ROWS, RANK, generator=generator)).Q
    right = torch.linalg.qr(torch.randn(COLUMNS, RANK, generator=generator)).Q
    scaled = noise + (left * torch.tensor([80.0, 70.0, 60.0, 50.0])) @ right.T
    rows, columns = (torch.exp(0.3 * torch.randn(n, generator=generator)) for n in (ROWS, COLUMNS))
    parts = decompose(0.05 * scaled * rows[:, None] * columns, generator=generator)
    assert parts.rank == RANK
    return parts


PARTS = planted()
WHOLE = PARTS.matrix


def treated(name: str, seed: int = 0) -> Tensor:
    return TREATMENTS[name](PARTS, torch.Generator().manual_seed(seed))  # type: ignore[index]


def energy(matrix: Tensor) -> float:
    return float(matrix.double().square().sum())


@pytest.mark.parametrize("name", TREATMENTS)
def test_every_treatment_gives_a_finite_matrix_of_the_same_shape_that_the_seed_decides(name):
    found = treated(name)
    assert found.shape == WHOLE.shape
    assert bool(torch.isfinite(found).all())
    assert torch.equal(found, treated(name))


def test_signal_only_and_signal_removed_add_up():
    torch.testing.assert_close(treated("signal only") + treated("signal removed"), WHOLE)
    assert torch.equal(treated("signal removed"), PARTS.without_signal())
    assert torch.linalg.matrix_rank(treated("signal only"), rtol=1e-4) == RANK


def test_a_resampled_and_a_shuffled_bulk_keep_the_signal_and_the_energy():
    for name in ("bulk resampled", "bulk shuffled"):
        bulk, own = treated(name) - treated("signal only"), PARTS.without_signal()
        # the signal's directions take k(m + n)/mn = 7 % of the noise with them, which a fresh bulk has again;
        # and energies of 15,360 entries have a relative standard error of √(2/15360) = 1.1 %: four of them
        assert 0.95 < energy(bulk) / energy(own) < 1.07 + 0.05
        cosine = float((bulk * own).sum()) / energy(own)
        assert abs(cosine) < 5 / math.sqrt(bulk.numel() / 10)  # unrelated; profiles cost some of the entries


def test_random_directions_have_the_signals_singular_values_but_not_its_place():
    rows, columns = PARTS.row_scales.float(), PARTS.column_scales.float()
    bare = (treated("directions random") - PARTS.without_signal()) / rows[:, None] / columns
    values = torch.linalg.svdvals(bare)
    expected = torch.tensor([one.value for one in PARTS.summary.directions])
    torch.testing.assert_close(values[:RANK], expected, rtol=1e-4, atol=0)
    assert float(values[RANK]) < 1e-3
    overlap = torch.linalg.svdvals(PARTS.left.float().T @ torch.linalg.svd(bare)[0][:, :RANK])
    assert float(overlap[0]) < 0.75  # of random 4-dimensional subspaces of 96; the signal's own has 1


def test_as_many_random_directions_are_removed_as_the_signal_has():
    rest = treated("random directions removed")
    assert int(torch.linalg.matrix_rank(rest)) == min(WHOLE.shape) - RANK
    assert energy(rest) < energy(WHOLE)
    tall = decompose(WHOLE.T.contiguous())
    found = TREATMENTS["random directions removed"](tall, torch.Generator().manual_seed(0))
    assert int(torch.linalg.matrix_rank(found)) == min(WHOLE.shape) - tall.rank


def test_noise_has_the_energy_that_goes_with_the_signal():
    added = treated("noise added") - WHOLE
    assert energy(added) == pytest.approx(energy(WHOLE - PARTS.without_signal()), rel=1e-4)
    lines = added.square().sum(1)
    assert float(lines.std() / lines.mean()) < 3 * math.sqrt(2 / COLUMNS)  # on all rows alike


def test_rounding_errors_have_the_bulks_energy():
    found, step = treated("rounded"), rounding_step(PARTS)
    assert energy(found - WHOLE) == pytest.approx(energy(PARTS.without_signal()), rel=0.01)
    levels = (found / step).round()
    torch.testing.assert_close(found, levels * step, rtol=1e-5, atol=1e-7)
    assert bits(PARTS) == pytest.approx(math.log2(int(levels.max() - levels.min()) + 1))


def test_without_a_signal_nothing_is_removed_and_all_is_bulk():
    parts = decompose(torch.randn(64, 64, generator=torch.Generator().manual_seed(0)))
    assert parts.rank == 0
    generator = torch.Generator()
    for name in ("signal removed", "directions random", "random directions removed", "noise added"):
        torch.testing.assert_close(TREATMENTS[name](parts, generator), parts.matrix)  # type: ignore[index]
    for name in ("signal only", "rounded"):
        assert not TREATMENTS[name](parts, generator).any()  # type: ignore[index]


def test_random_directions_are_uniform():
    """The mean of one direction is 0 and its entries' mean square is 1/n: QR alone would fix a sign."""
    drawn = torch.stack(
        [random_directions(5, 2, torch.Generator().manual_seed(seed))[:, 0] for seed in range(2000)]
    )
    torch.testing.assert_close(drawn[0].norm(), torch.tensor(1.0))
    assert float(drawn.mean(0).abs().max()) < 5 * math.sqrt(1 / 5 / 2000)
    assert float((drawn.square().mean(0) - 0.2).abs().max()) < 5 * 0.24 / math.sqrt(2000)


def test_kept_directions_are_those_of_the_scaled_matrix():
    directions = directions_of(PARTS)
    torch.testing.assert_close(directions.keep(min(WHOLE.shape)), WHOLE, rtol=1e-3, atol=1e-4)
    assert not directions.keep(0).any()
    # the first k are the signal's: what they hold is what "signal removed" takes out
    torch.testing.assert_close(
        directions.keep(RANK), WHOLE - PARTS.without_signal(), rtol=1e-2, atol=1e-3 * float(WHOLE.abs().max())
    )


def test_empty_rows_and_columns_stay_empty():
    matrix = WHOLE.clone()
    matrix[3], matrix[:, 7] = 0, 0
    parts = decompose(matrix)
    for name in ("signal only", "bulk resampled", "bulk shuffled", "signal removed", "directions random"):
        found = TREATMENTS[name](parts, torch.Generator().manual_seed(0))  # type: ignore[index]
        assert not found[3].any(), name
        assert not found[:, 7].any(), name
    torch.testing.assert_close(directions_of(parts).keep(96), matrix, rtol=1e-3, atol=1e-4)


def curve(*points: tuple[float, float], error: float = 0.01) -> list[Kept]:
    return [Kept(count, Score(value, value - 0.9, error)) for count, value in points]


def test_the_bend_is_where_the_curve_reaches_95_percent_of_its_rise():
    steep = curve((0, 0.1), (1, 0.1), (3, 0.1), (7, 0.9), (15, 0.9))
    # between 3 and 7 directions, 2² and 2³ less 1: 95 % of the way
    assert bend(steep, 0.9, "accuracy") == pytest.approx(2**2.95 - 1)
    falling = [Kept(one.directions, Score(1 - one.score.value, 0.0, 0.01)) for one in steep]
    assert bend(falling, 0.1, "loss") == pytest.approx(2**2.95 - 1)


def test_a_dip_after_the_rise_moves_the_bend_behind_it():
    assert bend(curve((0, 0.1), (1, 0.9), (3, 0.5), (7, 0.9)), 0.9, "accuracy") > 3


def test_a_layer_that_is_not_needed_has_no_bend():
    assert bend(curve((0, 0.88), (1, 0.9), (2, 0.9)), 0.9, "accuracy") is None
    assert bend([], 0.9, "accuracy") is None
    assert bend([Kept(0, Score(None, None, None)), *curve((1, 0.9))], 0.9, "loss") is None


def test_counts_have_the_rank_and_both_ends():
    assert counts(5, 16) == [0, 1, 2, 3, 4, 5, 6, 8, 12, 16]
    assert counts(0, 1) == [0, 1]


def layer(rank: int, needed: float | None) -> LayerAblation:
    return LayerAblation("a", "linear", 64, 64, rank, 0.5, "", None, (), (), needed)


def test_the_rank_correlation_is_spearmans():
    found = rank_correlation([layer(1, 1.5), layer(2, 2.5), layer(9, 20.0), layer(4, 3.0), layer(5, None)])
    assert found is not None
    assert found.value == pytest.approx(1.0)
    turned = rank_correlation([layer(1, 4.0), layer(2, 3.0), layer(3, 2.0), layer(4, 1.0)])
    assert turned is not None
    assert turned.value == pytest.approx(-1.0)
    assert rank_correlation([layer(1, 4.0), layer(2, 3.0), layer(3, 2.0)]) is None
    assert rank_correlation([layer(1, float(n)) for n in range(1, 6)]) is None
