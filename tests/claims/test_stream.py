"""The streamed W: its law, its independence of threads and blocks, and the memory that it takes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats

from obverse.claims.alm import _stream as stream
from obverse.claims.alm._stream import Weights, draw_seed, normal, share


def dense(weights: Weights) -> np.ndarray:
    return torch.cat([block for block, _ in weights.blocks()]).numpy()


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "HELD", 2**12)
    monkeypatch.setattr(stream, "ALONE", 2**10)
    monkeypatch.setattr(stream, "DRAWN", 2**8)


def test_entries_are_standard_normal():
    found = dense(Weights(1000, 500, seed=3)).ravel()
    # Kolmogorov–Smirnov at 5·10⁵ entries; a seed that fails by chance has p below 10⁻³.
    assert stats.kstest(found, "norm").pvalue > 1e-3
    # Moments within 4 standard errors: Var g^k is 1, 2, 15, 96 for k = 1…4.
    for power, variance in enumerate((1, 2, 15, 96), start=1):
        expected = 0 if power % 2 else (1 if power == 2 else 3)
        error = (variance / len(found)) ** 0.5
        assert abs((found.astype(np.float64) ** power).mean() - expected) < 4 * error


def test_the_tails_are_there():
    """Counts beyond 4 and 4.5 standard deviations are Poisson; within 4 of their deviations."""
    found = dense(Weights(8000, 1000, seed=4))
    for beyond in (4.0, 4.5):
        expected = 2 * stats.norm.sf(beyond) * found.size
        assert abs((np.abs(found) > beyond).sum() - expected) < 4 * expected**0.5


def test_box_muller_against_its_formula():
    """The same words through the textbook's formula, in float64."""
    words = np.random.Generator(np.random.Philox(5)).integers(0, 2**64, 500, dtype=np.uint64).view(np.uint32)
    radius = np.sqrt(-2 * np.log((words[:500].astype(np.float64) + 0.5) / 2**32))
    angle = 2 * np.pi * words[500:].view(np.int32) / 2**32
    expected = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)]).reshape(100, 10)
    found = normal(np.random.Generator(np.random.Philox(5)), 100, 10)
    # float32: an angle up to π is rounded to 2⁻²³, times a radius up to 6.7.
    assert np.abs(found - expected).max() < 6.7 * 4 * 2**-23


def test_shares_are_never_zero_and_fine_near_it():
    found = share(np.array([0, 1, 2**31, 2**32 - 1], dtype=np.uint32))
    assert found.tolist() == [2.0**-33, 1.5 * 2**-32, 0.5, 1.0]


def test_blocks_are_the_rows_in_order_whatever_their_size(small_blocks, monkeypatch):
    weights = Weights(701, 30, seed=5)
    found = dense(weights)
    assert found.shape == (701, 30)
    monkeypatch.setattr(stream, "HELD", 2**20)
    assert np.array_equal(found, dense(weights))


def test_bits_do_not_depend_on_threads(small_blocks, threads):
    weights = Weights(2000, 30, seed=6)
    threads(1)
    alone = dense(weights)
    threads(4)
    assert np.array_equal(alone, dense(weights))


def test_a_group_of_rows_does_not_depend_on_those_before(small_blocks):
    """Whole groups of a longer W are those of a shorter one."""
    short, long = Weights(400, 30, seed=7), Weights(4000, 30, seed=7)
    whole = 400 // short.rows * short.rows
    assert np.array_equal(dense(short)[:whole], dense(long)[:whole])


def test_same_seed_same_rows_and_other_seed_others():
    assert np.array_equal(dense(Weights(300, 20, seed=8)), dense(Weights(300, 20, seed=8)))
    one, two = (dense(Weights(300, 20, seed=seed)).ravel() for seed in (8, 9))
    assert abs(np.corrcoef(one, two)[0, 1]) < 4 / 6000**0.5  # about normal with variance 1/entries


def test_no_group_or_stream_repeats_the_words_of_another(small_blocks):
    """Philox words of 64 bits: among 10⁵ of them even two alike have a chance below 10⁻⁹."""
    weights = Weights(500, 30, seed=10)
    drawn = [weights._random(first, 0) for first in range(0, 500, weights.rows)]
    for number in range(3):
        drawn += [random for _, generators in weights.blocks(number) for random in generators]
    words = np.concatenate([random.integers(0, 2**64, 1000, dtype=np.uint64) for random in drawn])
    assert len(words) >= 4 * 15 * 1000
    assert len(np.unique(words)) == len(words)


def test_counters_leave_each_group_its_own_range():
    """The counter's low two words belong to the drawing; the group and the stream stand above them."""
    weights = Weights(10**6, 10**4, seed=11)
    state = weights._random(5 * weights.rows, 2).bit_generator.state["state"]
    assert state["counter"].tolist() == [0, 0, 5, 2]
    assert state["key"].tolist() == [11, 0]
    # One group draws at most so many 64-bit words, four a step of the counter: far from carrying over.
    assert weights.rows * weights.units < 2**64


def test_groups_are_independent(small_blocks):
    """Correlations between rows of neighbouring groups have the spread of chance."""
    weights = Weights(1000, 100, seed=12)
    groups = dense(weights)[: 1000 // weights.rows * weights.rows].reshape(-1, weights.rows * 100)
    between = np.corrcoef(groups)[np.triu_indices(len(groups), 1)]
    # Each is about normal with variance 1/entries: their χ² within 4 of its deviations.
    total = (between**2).sum() * groups.shape[1]
    assert abs(total - len(between)) < 4 * (2 * len(between)) ** 0.5


@pytest.mark.parametrize("units", [1, 7, 100, 4097, 10_000, 10**6])
def test_blocks_stay_small(units):
    """HELD entries, or what the rows of one generator take."""
    weights = Weights(10**9, units, seed=0)
    assert weights.rows > 0
    assert weights.rows % 8 == 0
    block, generators = next(weights.blocks())
    assert block.numel() <= max(stream.HELD, 8 * units)
    assert len(block) == len(generators) * weights.rows


def test_seeds_come_from_the_generator():
    one, two = (draw_seed(torch.Generator().manual_seed(seed)) for seed in (1, 2))
    assert one != two
    assert one == draw_seed(torch.Generator().manual_seed(1))
    assert 0 <= one < 2**62


PEAK = """
import sys, torch
from pathlib import Path
from obverse.claims.alm._layer import reverse_and_infer
from obverse.claims.alm._stream import Weights
torch.set_num_threads(1)
reverse_and_infer(Weights(int(sys.argv[1]), 4000, seed=1), torch.rand(8, 4000), 0.5)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_inputs():
    """W of 2 000 to 64 000 × 4 000: 32 MB to 1 GB."""

    def peak(inputs: int) -> float:
        command = [sys.executable, "-c", PEAK, str(inputs)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1000

    # 2,000 rows are two blocks of 16 MB. The allocator holds on to up to six more, now and then, whatever the
    # number of rows (four runs each: 18 to 98 MB more at 8,000, 16,000, 64,000 and 128,000 rows): 8 blocks.
    assert peak(64_000) - peak(2000) < 8 * 16.8
