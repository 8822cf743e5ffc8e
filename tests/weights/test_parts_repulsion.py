"""What a signal does to the noise beside it, and whether it ends where it is cut off: against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.linalg import svdvals
from scipy.stats import binom

from obverse.weights import decompose
from obverse.weights._decomposition.crowding import crowd, is_open
from obverse.weights._decomposition.edges import bulk_scale, scale_of_energy
from obverse.weights._decomposition.marchenko_pastur import edge_probability, edges
from obverse.weights._decomposition.repulsion import (
    cdf,
    cosines,
    distances,
    energy_lost,
    inwards,
    missing,
    quantiles,
)


def planted(rows, columns, rank, times, random):
    """Noise of scale 1 with equal strengths at `times` the threshold, in random directions."""
    left = np.linalg.qr(random.standard_normal((rows, rank)))[0]
    right = np.linalg.qr(random.standard_normal((columns, rank)))[0]
    return times * (rows * columns) ** 0.25 * left @ right.T + random.standard_normal((rows, columns))


def correlated(rows, columns, rho, random):
    """Neighbouring rows have the correlation rho."""
    noise = random.standard_normal((rows, columns))
    for row in range(1, rows):
        noise[row] = rho * noise[row - 1] + math.sqrt(1 - rho**2) * noise[row]
    return noise


def test_a_distance_is_the_squared_strength_over_the_threshold():
    theta = np.array([30.0, 4.0, 2.0])  # planted, in units of the threshold
    rows, columns = 3000, 7000
    y, strong = rows / columns, theta * (rows / columns) ** 0.25
    seen = np.sqrt(columns * (1 + strong**2) * (y + strong**2)) / strong
    # the push of these three is small beside what is between them and the edge
    assert distances(0.1 * seen, rows, columns, 0.1) == pytest.approx(theta**2, rel=0.01)
    at_the_edge = distances(np.array([edges(rows, columns)[1]]), rows, columns, 1.0)
    assert at_the_edge[0] > 1


def test_what_is_missing_above_is_the_energy_that_is_lost():
    """∫ missing dλ over the bulk is the first moment of what changed: σ² √(rows · columns) / ζ."""
    low, high = edges(60, 150)
    for zeta in (1.2, 3.0, 40.0):
        many = np.array([zeta])

        def missing_at(squared, many=many):
            return float(missing(cosines(np.sqrt(np.array([squared])), 60, 150), many)[0])

        total = quad(missing_at, low**2, high**2, limit=200)[0]
        assert total == pytest.approx(math.sqrt(60 * 150) / zeta, rel=1e-3)
        # near the edge the values are moved down by their shift: fewer = density × shift
        near = high**2 - 1e-4
        density = 60 * (1 - cdf(np.array([math.sqrt(near)]), 60, 150, 1.0, np.zeros(0))[0])
        fewer = missing_at(near)
        # N ∝ distance^(3/2), so that the density is 3/2 · N / distance
        assert fewer == pytest.approx(1.5 * density / 1e-4 * inwards(many, 60, 150), rel=0.01)


def test_quantiles_beside_a_signal_are_the_inverse_of_the_shares():
    zetas = np.array([1.5, 2.0, 9.0])
    shares = np.linspace(0.05, 0.95, 19)
    found = cdf(quantiles(shares, 200, 500, zetas), 200, 500, 1.0, zetas)
    assert found == pytest.approx(shares, abs=1e-4)  # second order in 3 values of 200
    assert (quantiles(shares, 200, 500, zetas) <= quantiles(shares, 200, 500, np.zeros(0))).all()


@pytest.mark.parametrize(("rows", "columns"), [(120, 120), (100, 400)])
def test_noise_beside_many_weak_directions_is_pushed_as_far_as_it_says(rows, columns):
    random = np.random.default_rng(rows)
    rank, draws = rows // 12, 60
    pushed, plain, scales, energies = [], [], [], []
    for _ in range(draws):
        matrix = planted(rows, columns, rank, 1.8, random)
        values = svdvals(matrix)
        top, bulk = values[:rank], values[rank:][::-1]
        size = (rows - rank, columns - rank)
        push = inwards(distances(top, *size, 1.0), *size)
        pushed.append(edge_probability(values[rank], *size, 1.0, inwards=push))
        plain.append(edge_probability(values[rank], *size, 1.0))
        scales.append(bulk_scale(bulk, *size, top))
        energies.append(scale_of_energy(float(bulk @ bulk), top, rows, columns))
    # uniform, but for the error of a scale that is known here: the median of 60 is good to 1 / √240
    assert np.median(pushed) == pytest.approx(0.5, abs=4 / math.sqrt(4 * draws))
    assert np.median(plain) > 0.8  # as before: far too safe
    error = 4 * 0.74 / math.sqrt(rows * columns * draws)  # of the mean scale
    finite = 1 / rows / columns**0.5  # second order, measured: at most half of it
    assert np.mean(scales) == pytest.approx(1, abs=error + finite)
    assert np.mean(energies) == pytest.approx(1, abs=error + finite)


def test_without_a_signal_nothing_is_pushed():
    nothing = np.zeros(0)
    assert len(distances(nothing, 50, 80, 1.0)) == inwards(nothing, 50, 80) == 0
    assert energy_lost(nothing, 50, 80, 1.0) == 0
    assert scale_of_energy(4.0 * 50 * 80, nothing, 50, 80) == pytest.approx(2.0)


def crowds(make, count):
    found = []
    for _ in range(count):
        matrix = make()
        for _ in range(20):  # the profile is off: the rows' squares all sum to the same, and the columns'
            matrix /= np.sqrt((matrix**2).mean(1, keepdims=True))
            matrix /= np.sqrt((matrix**2).mean(0, keepdims=True))
        values = svdvals(matrix)[::-1]
        size = (100, 160)
        found.append(crowd(values, np.ones(100), size, bulk_scale(values, *size), 0.0, np.zeros(0)))
    return found


def test_values_crowd_below_the_edge_where_directions_are_too_weak_to_be_seen():
    random = np.random.default_rng(4)
    noise = crowds(lambda: random.standard_normal((100, 160)), 80)
    assert sum(one.p < 0.05 for one in noise) <= binom.isf(1e-4, 80, 0.05)
    assert abs(np.mean([one.more for one in noise])) < 0.5
    hidden = crowds(lambda: planted(100, 160, 10, 1.0, random), 20)
    assert np.median([one.p for one in hidden]) < 0.05
    alike = crowds(lambda: correlated(100, 160, 0.3, random), 10)
    assert np.median([one.p for one in alike]) < 0.001


def test_a_signal_is_open_where_many_are_at_the_limit():
    values = np.sort(svdvals(np.random.default_rng(0).standard_normal((100, 160))))
    usual = crowd(values, np.ones(100), (100, 160), bulk_scale(values, 100, 160), 0.0, np.zeros(0))
    assert not is_open((1e-9, 1e-8, 0.5), 2, usual, 0.01)
    assert not is_open((1e-9, 5e-3, 0.5), 2, usual, 0.01)
    assert is_open((1e-9, 4e-3, 5e-3, 0.5), 3, usual, 0.01)


@pytest.mark.parametrize("exact", [True, False])
def test_correlated_rows_are_no_signal_of_low_rank(exact):
    """A smooth covariance has no number of directions: what is said must not be a number, nor of the rest."""
    matrix = torch.from_numpy(correlated(200, 800, 0.3, np.random.default_rng(6))).float()
    found = decompose(matrix, exact=exact, generator=torch.Generator().manual_seed(0)).summary
    assert found.rank_is_bound
    assert found.sentence.startswith(f"at least {found.rank} of 200 directions ")
    assert "carry the signal" not in found.sentence or "--exact" in found.sentence
    assert "the rest is" not in found.sentence


@pytest.mark.parametrize(("rank", "times"), [(1, 3.0), (10, 2.5), (60, None)])
def test_a_signal_that_ends_is_counted(rank, times):
    random = np.random.default_rng(rank)
    strengths = np.full(rank, times) if times else np.linspace(2.5, 10, rank)
    left = np.linalg.qr(random.standard_normal((200, rank)))[0]
    right = np.linalg.qr(random.standard_normal((400, rank)))[0]
    signal = (left * strengths * (200 * 400) ** 0.25) @ right.T
    profile = np.exp(0.5 * (random.standard_normal((200, 1)) + random.standard_normal((1, 400))))
    matrix = profile * (signal + random.standard_normal((200, 400)))
    found = decompose(torch.from_numpy(matrix).float()).summary
    assert found.rank == rank
    assert found.grade == ("mostly signal" if rank == 60 else "signal in a random bulk")
    assert not found.rank_is_bound
    assert "the signal" in found.sentence
    assert found.rank_interval[0] <= rank <= found.rank_interval[1]


@pytest.mark.slow
def test_directions_that_a_distorted_profile_shows_are_not_kept():
    """Beside 10 % of directions, matrices with one too many are no more than alpha allows."""
    random = np.random.default_rng(11)
    draws, too_many, held = 300, 0, 0
    for _ in range(draws):
        profile = np.exp(0.5 * (random.standard_normal((128, 1)) + random.standard_normal((1, 128))))
        matrix = profile * planted(128, 128, 13, 2.2, random)
        found = decompose(torch.from_numpy(matrix).float(), alpha=0.05).summary
        too_many += found.rank > 13
        low, high = found.rank_interval
        held += low <= 13 and (high >= 13 or found.rank_is_bound)
    assert too_many <= binom.isf(1e-4, draws, 0.05)
    assert held >= draws - binom.isf(1e-4, draws, 0.05)
