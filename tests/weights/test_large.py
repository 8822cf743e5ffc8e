"""A layer too large for memory: its parts are those of the whole matrix, and the rest says what it is of."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from obverse.weights import audit, decompose, open_weights
from obverse.weights._large import scan
from obverse.weights._verdict import Thresholds
from weights.test_resume import bits

SHAPES = [(1500, 90), (90, 1500)]


@pytest.fixture
def small_limits(monkeypatch):
    """What is large from 100,000 entries, read in bands of 7,000, with a sample of 300 lines."""
    monkeypatch.setattr("obverse.weights._layer.LARGE", 100_000)
    monkeypatch.setattr("obverse.weights._large.SAMPLE", 27_000)
    monkeypatch.setattr("obverse.weights._readers.stored.BAND", 7000)


def planted(shape, rank=3, dtype=torch.float32, seed=0):
    """Log-normal profile × (signal of 2 to 3 times the threshold + noise)."""
    generator = torch.Generator().manual_seed(seed)
    left, right = (torch.linalg.qr(torch.randn(side, rank, generator=generator)).Q for side in shape)
    strengths = torch.linspace(3, 2, rank) * (shape[0] * shape[1]) ** 0.25
    matrix = torch.randn(shape, generator=generator) + (left * strengths) @ right.T
    for side, view in ((shape[0], (-1, 1)), (shape[1], (1, -1))):
        matrix *= (0.3 * torch.randn(side, generator=generator)).exp().view(view)
    return (0.02 * matrix).to(dtype)


def stored(tmp_path, matrix):
    save_file({"w.weight": matrix.contiguous()}, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def audited(path, seed=0, **options):
    (layer,) = audit(path, samples=4, generator=torch.Generator().manual_seed(seed), **options).layers
    return layer


def same_parts(found, whole):
    """Products are summed in another order: float32's 6e-8, beside the tolerance of the profile, 1e-3."""
    assert found.grade == whole.grade
    assert (found.rank, found.rank_interval, found.settled) == (
        whole.rank,
        whole.rank_interval,
        whole.settled,
    )
    assert (found.rows, found.columns, found.empty_rows, found.empty_columns) == (
        whole.rows,
        whole.columns,
        whole.empty_rows,
        whole.empty_columns,
    )
    for one, other in zip(found.directions, whole.directions, strict=True):
        assert one.value / found.scale == pytest.approx(other.value / whole.scale, rel=2e-3)
    assert found.profile_share.value == pytest.approx(whole.profile_share.value, abs=2e-3)
    assert found.random_share.value == pytest.approx(whole.random_share.value, abs=2e-3)
    assert found.kurtosis == pytest.approx(whole.kurtosis, abs=0.01)
    assert found.distance.value == pytest.approx(whole.distance.value, abs=2e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_parts_are_those_of_the_whole_matrix(small_limits, tmp_path, shape, rank, dtype):
    matrix = planted(shape, rank, dtype)
    path = stored(tmp_path, matrix)
    layer, whole = audited(path), decompose(matrix.float(), exact=True)
    same_parts(layer.parts, whole.summary)
    assert layer.parts.rank == rank
    assert layer.verdict == ("signal in a random bulk" if rank else "untouched")
    side = "rows" if shape[0] > shape[1] else "columns"
    note = f"recovery are those of 300 of 1,500 {side}, chosen at random"
    assert note in layer.sentence
    assert note in layer.findings[-1].sentence
    assert layer.entries.count == 300 * 90
    assert {one.side: one.length for one in layer.correlations} == (
        {"rows": 90, "columns": 300} if side == "rows" else {"rows": 300, "columns": 90}
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_empty_lines_are_counted_and_left_out(small_limits, tmp_path, shape):
    matrix = planted(shape, 2)
    matrix[[3, 40, 41]] = 0
    matrix[:, [0, 77]] = 0
    layer = audited(stored(tmp_path, matrix))
    same_parts(layer.parts, decompose(matrix, exact=True).summary)
    assert (layer.dead_rows, layer.dead_columns) == (3, 2)
    assert "3 of " in layer.sentence


def test_a_mean_is_taken_off_first(small_limits, tmp_path):
    matrix = planted((1500, 90), 1) + 0.01
    layer = audited(stored(tmp_path, matrix))
    share = float(matrix.double().mean() ** 2 / matrix.double().square().mean())
    assert layer.mean_share == pytest.approx(share, rel=1e-5)
    whole = decompose(matrix - matrix.mean(), exact=True).summary
    left = 1 - layer.mean_share
    random = replace(layer.parts.random_share, value=layer.parts.random_share.value / left)
    same_parts(replace(layer.parts, random_share=random), whole)


def test_what_has_few_entries_or_one_value_is_read_whole(small_limits, tmp_path):
    for name, matrix in (
        ("sparse", torch.where(torch.rand(1500, 90) < 0.1, torch.randn(1500, 90), torch.zeros(()))),
        ("equal", torch.ones(1500, 90)),
        ("tiny", 1e-12 * torch.randn(1500, 90)),
        ("zeros", torch.zeros(1500, 90)),
    ):
        layer = audited(stored(tmp_path, matrix))
        assert "chosen at random" not in layer.sentence, name


def test_a_matrix_that_is_not_finite_is_refused_in_bands_too(small_limits, tmp_path):
    matrix = planted((1500, 90))
    matrix[1400, 7] = torch.nan
    with pytest.raises(ValueError, match=r"finite float32 values in w of .*; got 1 NaN"):
        audited(stored(tmp_path, matrix))


def test_one_process_and_a_resumed_audit_agree_to_the_bit(small_limits, tmp_path):
    path = stored(tmp_path, planted((1500, 90)))
    found = [
        audit(path, samples=4, generator=torch.Generator().manual_seed(0), **options)
        for options in ({"jobs": 1}, {"record": tmp_path / "r"}, {"record": tmp_path / "r"})
    ]
    assert len({bits(one) for one in found}) == 1


def test_a_scan_counts_what_is_there(small_limits, tmp_path):
    matrix = planted((90, 1500))
    matrix[:, 5] = 0
    (weight,) = open_weights(stored(tmp_path, matrix))
    found = scan(weight)
    assert found.total == pytest.approx(float(matrix.double().sum()), rel=1e-9)
    assert found.squares == pytest.approx(float(matrix.double().square().sum()), rel=1e-6)  # float32 rows
    assert (found.smallest, found.largest) == (float(matrix.min()), float(matrix.max()))
    assert found.filled == int((matrix != 0).sum())
    assert int((~found.long).sum()) == 1
    assert Thresholds().min_side < int(found.short.sum()) == 90


def with_unused_tokens(shape, seed=0):
    """Most lines of the longer side are one vector but for 1e-6; the others spread over 1.5 decades."""
    generator = torch.Generator().manual_seed(seed)
    length, width = max(shape), min(shape)
    common = 0.05 * torch.randn(width, generator=generator)
    turn = torch.linalg.qr(torch.randn(width, width, generator=generator)).Q
    used = torch.randn(length, width, generator=generator) * torch.logspace(0, -1.5, width) @ turn
    used *= torch.rand(length, 1, generator=generator) > 0.6
    matrix = common + 0.03 * used + 1e-6 * torch.randn(length, width, generator=generator)
    return matrix if shape[0] > shape[1] else matrix.T.contiguous()


@pytest.mark.parametrize("shape", SHAPES)
def test_directions_are_not_called_empty_where_lines_differ_too_much_in_scale(small_limits, tmp_path, shape):
    matrix = with_unused_tokens(shape)
    values = torch.linalg.svdvals(matrix.double())
    assert (
        float(values[min(shape) // 2] / values[0]) > 1e-3
    )  # far from empty: rounding is 1e-7 of the largest
    layer = audited(stored(tmp_path, matrix))
    assert layer.verdict == "cannot tell"
    assert "differ too much in scale" in layer.deciding
    assert "empty" not in layer.sentence
    assert "chosen at random" in layer.sentence  # it was read in bands
    assert layer.parts.sentence == decompose(matrix).sentence


def test_directions_that_are_empty_are_still_called_so_in_bands(small_limits, tmp_path):
    generator = torch.Generator().manual_seed(1)
    matrix = torch.randn(1500, 5, generator=generator) @ torch.randn(5, 90, generator=generator)
    layer = audited(stored(tmp_path, matrix))
    assert "5 of 90 directions carry everything; the others are empty" in layer.sentence
