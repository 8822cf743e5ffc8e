"""Memorization: each test against its definition, its false alarms by simulation, copiers caught."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.diversity._memorization import (
    SHOWN,
    authentic,
    cell_of,
    centres,
    close_share,
    compare_authentic,
    data_copying,
    memorization,
    sides,
)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def normal(generator, *shape):
    return torch.randn(*shape, generator=generator)


def too_many(alarms, trials, level):
    """More false alarms than the level has in all but 1 of 10,000 such simulations."""
    return alarms > stats.binom.ppf(0.9999, trials, level)


# --- AuthPct


def test_authentic_against_plain_loops():
    training = normal(seeded(0), 40, 3)
    training[30:34] = training[0]  # equal ones: their nearest other is at distance 0
    samples = torch.cat([normal(seeded(1), 60, 3), training[:10] + 1e-3, training[:2]])
    x, t = samples.double().numpy(), training.double().numpy()
    wanted, index = [], []
    for point in x:
        away = [np.linalg.norm(point - other) for other in t]
        near = int(np.argmin(away))
        own = min(np.linalg.norm(t[near] - t[j]) for j in range(len(t)) if j != near)
        wanted.append(away[near] > own)
        index.append(near)
    distance = torch.tensor([np.linalg.norm(a - t[i]) for a, i in zip(x, index, strict=True)])
    assert authentic(distance, torch.tensor(index), training).tolist() == wanted
    assert 10 < sum(wanted) < 65


def test_authentic_p_is_fishers():
    mine, theirs = torch.arange(30) < 8, torch.arange(50) < 25
    found = compare_authentic(mine, theirs)
    wanted = stats.fisher_exact([[8, 22], [25, 25]], alternative="less").pvalue
    assert found.p == pytest.approx(wanted, rel=1e-9)
    assert (found.share, found.held_out) == (8 / 30, 0.5)


# --- very close samples


@pytest.mark.parametrize(("samples", "held_out", "rank"), [(4, 5, 1), (5, 4, 2), (3, 6, 6)])
def test_close_share_p_is_a_count_of_orders(samples, held_out, rank):
    """All ways to deal places in a row to samples and held-out points are as likely."""
    total = samples + held_out
    before = []
    for places in combinations(range(total), held_out):
        border = places[rank - 1]
        before.append(sum(place not in places for place in range(border)))
    assert np.mean(before) / samples == pytest.approx(rank / (held_out + 1))
    for count in range(samples + 1):
        near = torch.cat([torch.zeros(count), torch.full((samples - count,), 99.0)])
        found = close_share(near, torch.arange(1, held_out + 1), (rank + 0.5) / (held_out + 1))
        assert found.rank == rank
        assert found.share == count / samples
        assert found.expected == rank / (held_out + 1)
        assert found.p == pytest.approx(np.mean(np.array(before) >= count), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [None, 7])
def test_close_share_has_no_more_false_alarms_than_it_says(levels):
    """2,000 times 80 samples and 150 held-out distances of one law; of 7 different values there are ties."""
    random = np.random.default_rng(0)
    p, share = [], []
    for _ in range(2000):
        values = random.exponential(size=230) if levels is None else random.integers(levels, size=230)
        found = close_share(torch.from_numpy(values[:80]), torch.from_numpy(values[80:]), 0.05)
        p.append(found.p)
        share.append(found.share)
    for level in (0.01, 0.05, 0.2):
        assert not too_many(sum(one <= level for one in p), 2000, level)
    if levels is None:
        # nor far fewer: the p-value has steps, no larger than these; four standard errors of the mean
        assert sum(one <= 0.2 for one in p) > 200
        assert np.mean(share) == pytest.approx(7 / 151, abs=4 * np.std(share) / 2000**0.5)


def test_equal_distances_are_no_evidence():
    found = close_share(torch.zeros(50), torch.zeros(50))
    assert (found.share, found.p) == (0, 1)


# --- C_T


def plain_ct(samples, held_out, cell, other, least=20):
    """Z of scipy's Mann–Whitney in each cell, weighted by held-out mass."""
    total, weight = 0.0, 0.0
    for number in set(cell.tolist()):
        a, b = samples[cell == number].numpy(), held_out[other == number].numpy()
        if min(len(a), len(b)) < least:
            continue
        found = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False, alternative="less")
        total += len(b) / len(held_out) * stats.norm.ppf(found.pvalue)
        weight += len(b) / len(held_out)
    return total / weight, weight


@pytest.mark.parametrize("digits", [12, 1])  # many ties with one digit
def test_ct_against_mann_whitney(digits):
    random = seeded(0)
    samples = torch.rand(300, generator=random, dtype=torch.float64).round(decimals=digits) * 0.95
    held_out = torch.rand(200, generator=random, dtype=torch.float64).round(decimals=digits)
    cell, other = torch.randint(5, (300,), generator=random), torch.randint(6, (200,), generator=random)
    other[other == 3] = 5  # cell 3 has no held-out points, cell 5 no samples
    found = data_copying(samples, held_out, cell, other, 199)
    value, mass = plain_ct(samples, held_out, cell, other)
    # scipy's p-value and its inverse
    assert found.value == pytest.approx(value, rel=1e-6)
    assert found.mass == pytest.approx(mass)
    assert found.cells == 4
    assert found.p_normal == pytest.approx(stats.norm.cdf(value / found.deviation))


def test_ct_by_permutation_agrees_with_the_normal_law_and_with_itself():
    random = seeded(0)
    samples, held_out = torch.rand(400, generator=random) * 0.93, torch.rand(400, generator=random)
    cell, other = torch.arange(400) % 4, torch.arange(400) % 4
    found = data_copying(samples, held_out, cell, other, 4000)
    # four standard errors of a share of 4,000 shuffles
    assert found.p_closer == pytest.approx(found.p_normal, abs=4 * (found.p_normal / 4000) ** 0.5 + 1e-3)
    assert found.p_closer + found.p_farther == pytest.approx(1, abs=1e-2)
    assert found.deviation == pytest.approx(0.5)


@pytest.mark.slow
def test_ct_has_no_more_false_alarms_than_it_says_and_ignores_shares_of_cells():
    """300 times: each cell has a law of distances, and samples fill cells in other shares than real data."""
    random = seeded(0)
    alarms = np.zeros(2)
    for _ in range(300):
        cell = (torch.rand(150, generator=random) < 0.3).long()
        other = (torch.rand(150, generator=random) < 0.7).long()
        samples, held_out = (torch.rand(150, generator=random) + 3 * one for one in (cell, other))
        found = data_copying(samples, held_out, cell, other, 99, random)
        alarms += [found.p_closer <= 0.05, found.p_farther <= 0.05]
    assert not too_many(alarms[0], 300, 0.05)
    assert not too_many(alarms[1], 300, 0.05)
    assert alarms.min() >= 3  # nor idle: fewer than 3 of 15 expected have a chance below 1 in 10,000


def test_ct_reads_both_sides():
    random = seeded(0)
    held_out, cell = torch.rand(100, generator=random), torch.zeros(100, dtype=torch.long)
    closer, farther, same = (
        data_copying(factor * torch.rand(100, generator=random), held_out, cell, cell)
        for factor in (0.5, 2, 1)
    )
    assert closer.value < -3
    assert farther.value > 3
    readings = [one.reading() for one in (closer, farther, same)]
    assert readings == ["closer than real data", "farther than real data", "as real data"]


def test_ct_needs_cells_of_some_size():
    few, many = torch.rand(19), torch.rand(100)
    zero = torch.zeros(100, dtype=torch.long)
    assert data_copying(few, many, zero[:19], zero) is None
    assert data_copying(many, few, zero, zero[:19]) is None
    assert data_copying(torch.ones(30), torch.ones(30), zero[:30], zero[:30]) is None


def test_cells_are_those_of_the_nearest_centre():
    training = torch.cat([normal(seeded(0), 50, 2), normal(seeded(1), 50, 2) + 100])
    middles = centres(training, 2, seeded(0))
    found = cell_of(training, middles)
    assert len(set(found[:50].tolist())) == len(set(found[50:].tolist())) == 1
    assert found[0] != found[50]
    assert len(centres(training, 1, seeded(0))) == 1
    assert cell_of(training, centres(training, 1, seeded(0))).tolist() == [0] * 100
    assert len(centres(training[:2].repeat(10, 1), 5, seeded(0))) == 5  # without a warning


# --- which side


def around(samples, training, held_out, k=10):
    """Neighbours on both sides, by plain distances."""
    found = []
    for other in (training, held_out):
        distance = torch.linalg.vector_norm(samples[:, None].double() - other[None].double(), dim=2)
        found.append(distance.topk(min(k, len(other)), largest=False))
    return [(one.values, one.indices) for one in found]


def test_sides_p_is_a_count_of_deals():
    """All ways to choose which 4 of 7 real points are training ones are as likely."""
    real, samples = normal(seeded(1), 7, 2), normal(seeded(2), 30, 2)

    def statistic(training):
        """The share of weight whose nearest is a training point, in plain loops."""
        total, own = 0.0, 0.0
        for point in samples.double():
            away = sorted((float((point - other).norm()), i) for i, other in enumerate(real.double()))
            weight = np.log(max(0.1, away[0][0] / away[-1][0])) ** 2  # the last of 7: there is no tenth
            total += weight
            own += weight * (away[0][1] in training)
        return own / total

    mine = (0, 1, 2, 3)
    every = [statistic(set(one)) for one in combinations(range(7), 4)]
    exact = np.mean(np.array(every) >= statistic(set(mine)) - 1e-12)
    found = sides(*around(samples, real[:4], real[4:]), (4, 3), 5000, seeded(0))  # type: ignore[call-arg]
    assert found.weighted == pytest.approx(statistic(set(mine)))
    assert found.expected == 4 / 7
    assert 0.1 < exact < 0.9
    # four standard errors of a share of 5,000 shuffles
    assert found.p == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 5000) ** 0.5)


def test_equally_near_points_share_a_sample():
    """Real data that is in the training set and held out: neither side has it first."""
    real = normal(seeded(0), 30, 3)
    found = sides(*around(real, real, real), (30, 30), 199, seeded(0))  # type: ignore[call-arg]
    assert (found.share, found.weighted) == (0.5, 0.5)
    nowhere = sides(  # type: ignore[call-arg]
        *around(torch.zeros(5, 3), torch.zeros(20, 3), torch.zeros(20, 3)), (20, 20), 199, seeded(0)
    )
    assert nowhere.p == 1


def smooth(fresh, random):
    return 0.6 * fresh


def collapsed(fresh, random):
    return fresh[torch.randint(8, (len(fresh),), generator=random)] + 0.01 * normal(random, *fresh.shape)


def noisy(fresh, random):
    return fresh + normal(random, *fresh.shape)


def honest(fresh, random):
    return fresh


@pytest.mark.slow
@pytest.mark.parametrize("generator", [honest, smooth, collapsed, noisy])
def test_sides_have_no_false_alarms_whatever_the_samples_are_like(generator):
    """200 times: none of these has seen the training set."""
    random = seeded(0)
    alarms = 0
    for _ in range(200):
        training, held_out, fresh = (normal(random, count, 6) for count in (60, 40, 80))
        found = sides(*around(generator(fresh, random), training, held_out), (60, 40), 99, random)  # type: ignore[call-arg]
        alarms += found.p <= 0.05
    assert not too_many(alarms, 200, 0.05)
    assert alarms >= 1  # nor idle: none of 10 expected has a chance of 1 in 28,000


# --- all together


def split(x, random, *counts):
    return x[torch.randperm(len(x), generator=random)[: sum(counts)]].split(counts)


@pytest.fixture(scope="module")
def digits():
    found = load("digits")
    return torch.cat([found.train_x, found.test_x]).flatten(1)


def test_a_memorizer_is_caught_on_real_pictures(digits):
    random = seeded(0)
    training, held_out = split(digits, random, 800, 400)
    samples = training[torch.randint(800, (400,), generator=random)]
    samples = samples + 0.05 * normal(random, *samples.shape)
    found = memorization(samples, training, held_out)
    assert found.copied
    assert found.closer
    assert found.sides.p == 1 / 1000
    assert found.close.share > 0.9
    assert found.authentic.share < 0.05 < found.authentic.held_out
    assert found.copying.value < -3
    assert found.copying.reading() == "closer than real data"
    assert str(found).startswith("training images come back")


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_tenth_of_copies_is_caught_on_real_pictures(digits, noise):
    for seed in range(5):
        random = seeded(seed)
        training, held_out, samples = split(digits, random, 800, 400, 400)
        samples[:40] = training[:40] + noise * normal(random, 40, 64)
        found = memorization(samples, training, held_out, shuffles=199)
        assert found.copied
        assert found.closer
        assert found.close.p < 1e-4
        # the closest that are kept are copies, with the pictures they copy; two may be equal in the data
        assert sum(one.sample == one.training < 40 for one in found.closest) >= 14


@pytest.mark.slow
def test_real_pictures_are_not_called_copies(digits):
    """Held-out data in the place of samples, 60 times."""
    copied = closer = 0
    for seed in range(60):
        training, held_out, samples = split(digits, seeded(seed), 300, 250, 250)
        found = memorization(samples, training, held_out, shuffles=99, generator=seeded(seed))
        copied += found.copied
        closer += found.closer
    assert not too_many(copied, 60, 0.05)
    assert not too_many(closer, 60, 0.05)


def test_smooth_samples_are_close_to_everything_and_no_copies():
    random = seeded(0)
    training, held_out, fresh = (normal(random, count, 10) for count in (600, 300, 300))
    found = memorization(0.5 * fresh, training, held_out)
    assert found.closer
    assert not found.copied
    assert "closer to everything" in str(found)
    noisy = memorization(fresh + 2 * normal(random, 300, 10), training, held_out)
    assert not noisy.closer
    assert noisy.copying.reading() == "farther than real data"


def test_without_held_out_data_there_are_distances_and_authpct():
    training = normal(seeded(0), 50, 3)
    found = memorization(training[5:25] + 1e-4, training)
    assert (found.copied, found.closer, found.close, found.sides) == (None, None, None, None)
    assert found.authentic.share == 0
    assert {(one.sample + 5) == one.training for one in found.closest} == {True}
    assert len(found.closest) == SHOWN
    distances = [one.distance for one in found.closest]
    assert distances == sorted(distances)
    assert "no held-out data" in str(found)


def test_the_record_is_plain_settled_by_the_generator_and_progress_ends():
    random, seen = seeded(0), []
    training, held_out, fresh = (normal(random, count, 3) for count in (60, 60, 60))
    state = torch.get_rng_state()
    one, other = (
        memorization(
            fresh,
            training,
            held_out,
            generator=seeded(3),
            shuffles=50,
            progress=lambda done, total, what: seen.append((done, total)),
        )
        for _ in range(2)
    )
    assert one == other
    assert torch.equal(torch.get_rng_state(), state)
    assert one.to_dict()["sides"]["p"] == one.sides.p
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    ("samples", "training", "held_out", "settings"),
    [
        (torch.rand(30, 3), torch.rand(30, 4), None, {}),
        (torch.rand(30, 3), torch.rand(30, 3), torch.rand(30, 4), {}),
        (torch.rand(1, 3), torch.rand(30, 3), None, {}),
        (torch.full((30, 3), torch.nan), torch.rand(30, 3), None, {}),
        (torch.rand(30, 3), torch.ones(30, 3), None, {}),
        (torch.rand(30, 3), torch.rand(30, 3), None, {"confidence": 1.5}),
        (torch.rand(30, 3), torch.rand(30, 3), torch.rand(30, 3), {"level": 0.0}),
        (torch.rand(30, 3), torch.rand(30, 3), torch.rand(30, 3), {"cells": 0}),
        (torch.rand(30, 3), torch.rand(30, 3), torch.rand(30, 3), {"shuffles": 0}),
    ],
)
def test_bad_input(samples, training, held_out, settings):
    with pytest.raises(BadInput):
        memorization(samples, training, held_out, **settings)


@pytest.mark.slow
def test_false_alarms_on_digits_are_at_their_level():
    """600 draws of real digits as samples, training set and held-out data: `copied` in 5 % of them at most.

    45 of 600 is what a rate of 5 % exceeds once in 300 (binomial). A run of 2,000 draws had 97 (4.85 %).
    """
    from sklearn.datasets import load_digits

    x = torch.from_numpy(load_digits().data)
    distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    alarms = 0
    for seed in range(600):
        generator = torch.Generator().manual_seed(seed)
        own, train, held = torch.randperm(len(x), generator=generator).split(599)
        to_train, to_held = (distance[own][:, one].topk(10, largest=False) for one in (train, held))
        found = sides(
            (to_train.values, to_train.indices),
            (to_held.values, to_held.indices),
            (len(train), len(held)),
            generator=generator,
        )
        alarms += found.p <= 0.05
    assert alarms <= 45
