"""Streams: a row is a function of its own seed; and the numbers are as random as torch's."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch
from scipy import stats

from obverse import BadInput
from obverse._core.random import (
    Streams,
    current_streams,
    mask_like,
    mix,
    noise_like,
    seed_global,
    use_streams,
)

# Everything here is fixed by its seeds, so a test passes or fails for good. The p-values of a good generator
# are uniform: the smallest of the some hundred in this file is below 1e-5 once in a thousand such files,
# while a real fault gives numbers like 1e-50.
SMALLEST_P = 1e-5
DRAWS = {
    "bits": lambda streams: streams.bits(7),
    "bernoulli": lambda streams: streams.bernoulli(0.3, (3, 5)),
    "one mask": lambda streams: streams.bernoulli(0.5, (8, 1)),
    "uniform": lambda streams: streams.uniform((2, 4)),
    "uniform, double": lambda streams: streams.uniform((5,), torch.float64),
    "integers": lambda streams: streams.integers(9, (2, 1)),
    "normal": lambda streams: streams.normal((3, 3)),
    "normal, double": lambda streams: streams.normal((7,), torch.float64),
}
SHAPES = dict(zip(DRAWS, [(7,), (3, 5), (8, 1), (2, 4), (5,), (2, 1), (3, 3), (7,)], strict=True))


def some(count: int, first: int = 0) -> Streams:
    return Streams(first + torch.arange(count))


# What a row depends on


@pytest.mark.parametrize("kind", DRAWS)
def test_a_row_depends_on_its_seed_and_the_number_of_draws_alone(kind):
    draw = DRAWS[kind]
    seeds = torch.tensor([5, -3, 2**62, 0, 5, 11])
    whole = Streams(seeds)
    first, second = draw(whole), draw(whole)
    assert first.shape == (6, *SHAPES[kind])
    assert torch.equal(first[0], first[4])  # the same seed
    assert not torch.equal(first, second)
    for rows in ([0], [3, 1], [5, 4, 3, 2, 1, 0], []):
        part = Streams(seeds[rows])
        assert torch.equal(draw(part), first[rows])
        assert torch.equal(draw(part), second[rows])
    # What the draw before was, and of what shape, does not matter.
    other = Streams(seeds)
    other.normal((100,))
    assert torch.equal(draw(other), second)


def test_the_first_numbers_of_a_row_do_not_depend_on_how_many_follow():
    assert torch.equal(some(3).bits(5), some(3).bits(50)[:, :5])
    assert torch.equal(some(3).normal((5,)), some(3).normal((51,))[:, :5])


def test_the_seeds_stay_as_they_are_and_torchs_own_numbers_are_not_used():
    seeds = torch.arange(4)
    state = torch.random.get_rng_state()
    for draw in DRAWS.values():
        draw(Streams(seeds))
    assert torch.equal(seeds, torch.arange(4))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_mixing_is_splitmix64():
    """Against the same in Python's unbounded integers; the first output of seed 0 is well known."""
    bound, gamma = 1 << 64, 0x9E3779B97F4A7C15

    def expected(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % bound
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % bound
        return z ^ (z >> 31)

    assert expected(gamma) == 0xE220A8397B1DCDAF
    inputs = [0, 1, gamma, bound - 1, 1 << 63, *(gamma * k % bound for k in range(200))]
    as_signed = torch.tensor([z - bound if z >= 1 << 63 else z for z in inputs])
    assert [z % bound for z in mix(as_signed).tolist()] == [expected(z) for z in inputs]


# Quality


def p_of_counts(counts: np.ndarray) -> float:
    return float(stats.chisquare(counts.ravel()).pvalue)


def p_of_correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Two-sided p of Pearson's correlation of independent numbers: its error is 1/√n."""
    a, b = ((z.double() - z.double().mean()) / z.double().std() for z in (a.flatten(), b.flatten()))
    return float(2 * stats.norm.sf(abs(float((a * b).mean())) * sqrt(len(a))))


@pytest.fixture(params=["neighbours", "multiples of 2^32", "random"])
def seeds(request: pytest.FixtureRequest) -> torch.Tensor:
    """Seeds of a thousand rows: as training has them, and such as weak hashes fail on."""
    rows = torch.arange(1000)
    if request.param == "multiples of 2^32":
        return rows << 32
    if request.param == "random":
        return torch.randint(2**62, (1000,), generator=torch.Generator().manual_seed(0))
    return rows


@pytest.mark.slow
def test_every_bit_is_fair_and_independent_of_the_others(seeds):
    bits = Streams(seeds).bits(200)
    planes = torch.stack([(bits >> place) & 1 for place in range(64)]).double().flatten(1)
    n = planes.shape[1]
    ones = planes.sum(1).numpy()
    assert stats.chi2.sf((((ones - n / 2) ** 2) / (n / 4)).sum(), 64) > SMALLEST_P
    correlation = ((2 * planes - 1) @ (2 * planes - 1).T / n).numpy()
    pairs = correlation[np.triu_indices(64, 1)]
    assert stats.chi2.sf(n * (pairs**2).sum(), len(pairs)) > SMALLEST_P


@pytest.mark.slow
def test_bits_of_neighbouring_rows_places_and_draws_are_independent(seeds):
    streams = Streams(seeds)
    first, second = streams.bits(200), streams.bits(200)
    for one, other in (
        (first[:-1], first[1:]),
        (first[:, :-1], first[:, 1:]),
        (first, second),
        (first[:, 1:], second[:, :-1]),
        (first[1:], second[:-1]),
    ):
        # How many of the 64 bits differ: binomial, so its sum has the error √(64 n / 4).
        differing = torch.stack([((one ^ other) >> place) & 1 for place in range(64)]).sum()
        n = 64 * one.numel()
        assert 2 * stats.norm.sf(abs(float(differing) - n / 2) / sqrt(n / 4)) > SMALLEST_P
        assert p_of_correlation(one, other) > SMALLEST_P


def test_uniform_numbers_fill_the_square_evenly(seeds):
    streams = Streams(seeds)
    u, v = streams.uniform((200,)), streams.uniform((200,))
    assert float(u.min()) >= 0
    assert float(u.max()) < 1
    for a, b in ((u[:, :-1], u[:, 1:]), (u[:-1], u[1:]), (u, v)):
        counts = np.histogram2d(a.flatten().numpy(), b.flatten().numpy(), 30, [[0, 1], [0, 1]])[0]
        assert p_of_counts(counts) > SMALLEST_P


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distributions_are_those_of_torch(dtype):
    generator = torch.Generator().manual_seed(1)
    streams = some(1000)
    for own, theirs, name in (
        (streams.uniform((200,), dtype), torch.rand(200_000, dtype=dtype, generator=generator), "uniform"),
        (streams.normal((201,), dtype), torch.randn(200_000, dtype=dtype, generator=generator), "norm"),
    ):
        assert own.dtype == dtype
        assert stats.kstest(own.flatten().numpy(), name).pvalue > SMALLEST_P
        assert stats.ks_2samp(own.flatten().numpy(), theirs.numpy()).pvalue > SMALLEST_P


def test_moments_of_normal_numbers():
    z = some(2000).normal((500,), torch.float64).flatten()
    n = len(z)
    # Standard errors of the mean of z, z², z³ and z⁴ under N(0, 1): √(1, 2, 15, 96)/√n; 4.5 are p = 7e-6.
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(float((z**power).mean()) - mean) < 4.5 * sqrt(variance / n)
    assert p_of_correlation(z[::2], z[1::2]) > SMALLEST_P  # cosine and sine of one angle
    assert p_of_correlation(z[::2] ** 2, z[1::2] ** 2) > SMALLEST_P
    # Once in 2³² the radius is as large as it gets; it must never be infinite.
    assert float(z.abs().max()) < sqrt(2 * 33 * np.log(2))


@pytest.mark.parametrize("keep", [0.5, 0.1, 0.9, 1 / 3, 1e-3])
def test_masks_keep_the_share_asked_for_in_rows_and_columns(keep):
    mask = some(1000).bernoulli(keep, (20, 25)).flatten(1).double()
    variance = keep * (1 - keep)
    for dimension, n in ((0, 1000), (1, 500)):
        shares = mask.mean(dimension).numpy()
        chi2 = ((shares - keep) ** 2).sum() / (variance / n)
        p = stats.chi2.cdf(chi2, len(shares))
        assert SMALLEST_P < p < 1 - SMALLEST_P


def test_masks_that_leave_nothing_to_chance(monkeypatch):
    assert bool(some(50).bernoulli(1.0, (999,)).all())
    most = (2**31 - 1) * (2**32 + 1)
    monkeypatch.setattr(Streams, "bits", lambda self, count: torch.full((2, count), most))
    assert bool(some(2).bernoulli(1.0, (8,)).all())  # the largest number there is
    assert not bool(some(2).bernoulli(0.999, (8,)).any())
    monkeypatch.undo()
    assert not bool(some(50).bernoulli(0.0, (999,)).any())


@pytest.mark.parametrize("high", [1, 2, 9, 1000])
def test_whole_numbers_are_equally_likely(high):
    found = some(1000).integers(high, (50,))
    counts = np.bincount(found.flatten().numpy(), minlength=high)
    assert len(counts) == high
    assert high == 1 or p_of_counts(counts) > SMALLEST_P


# Where they are used


def test_tensors_get_numbers_from_streams_a_generator_or_torch():
    x = torch.zeros(4, 3)
    state = torch.random.get_rng_state()
    for like, plain, own in (
        (mask_like, lambda: torch.empty_like(x).bernoulli_(0.5), some(4).bernoulli(0.5, (3,))),
        (noise_like, lambda: torch.empty_like(x).normal_(std=0.5), some(4).normal((3,)) * 0.5),
    ):
        assert torch.equal(like(x, 0.5, some(4)), own)
        generator = torch.Generator()
        generator.set_state(state)
        torch.random.set_rng_state(state)
        expected = plain()
        torch.random.set_rng_state(state)
        assert torch.equal(like(x, 0.5, generator), expected)
        assert torch.equal(like(x, 0.5), expected)
        with use_streams(some(4)):
            assert torch.equal(like(x, 0.5), own)
            generator.set_state(state)
            assert torch.equal(like(x, 0.5, generator), expected)


def test_streams_are_current_inside_alone():
    first, second = some(1), some(2)
    assert current_streams() is None
    with use_streams(first):
        with use_streams(second):
            assert current_streams() is second
        assert current_streams() is first
        with pytest.raises(KeyError), use_streams(second):
            raise KeyError
        assert current_streams() is first
    assert current_streams() is None


@pytest.mark.parametrize("seeds", [torch.zeros(2, 2, dtype=torch.int64), torch.zeros(2), torch.tensor(3)])
def test_seeds_of_another_kind_are_refused(seeds):
    with pytest.raises(BadInput, match="seeds as an int64 tensor with one dimension"):
        Streams(seeds)


def test_what_cannot_be_drawn_is_refused():
    for high in (0, 2**31):
        with pytest.raises(BadInput, match="high from 1"):
            some(2).integers(high, (1,))
    with pytest.raises(BadInput, match=r"float32 or float64; got torch\.float16"):
        some(2).uniform((1,), torch.float16)
    with pytest.raises(
        BadInput, match=r"a batch of 3, one for each stream .* got a tensor of shape \(4, 2\)"
    ):
        mask_like(torch.zeros(4, 2), 0.5, some(3))


def test_draws_stay_on_the_device_of_the_seeds():
    for draw in DRAWS.values():
        assert draw(Streams(torch.arange(3, device="meta"))).device.type == "meta"


@pytest.mark.parametrize("available", [False, True])
@pytest.mark.parametrize("seed", [0, 7, 2**63 + 5])
def test_a_seed_of_the_global_generator_is_torch_s_own(monkeypatch, available, seed):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: available)
    torch.manual_seed(seed)
    expected = torch.rand(3), torch.initial_seed()
    seed_global(seed)
    assert torch.equal(torch.rand(3), expected[0])
    assert torch.initial_seed() == expected[1]
