"""What the claims about the birthday test are measured with: laws, batches, collisions, by brute force."""

from __future__ import annotations

from itertools import combinations, product
from math import comb, exp, prod, sqrt

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.gan import _birthday_confidence as birthday_confidence
from obverse.claims.gan import _birthday_inverse as birthday_inverse
from obverse.claims.gan import _hoeffding as hoeffding
from obverse.claims.gan import _points as points


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


LAWS = [
    {"points": 4, "samples": 3},
    {"points": 4, "samples": 3, "rho": 0.5},
    {"points": 4, "samples": 3, "law": "zipf", "rho": 0.8},
    {"points": 5, "samples": 4, "law": "atom", "heavy": 0.4},
    {"points": 3, "samples": 3, "rho": 0.7, "rest": "atom"},
]


@pytest.mark.parametrize("setting", LAWS)
def test_no_collision_by_going_through_all_outcomes(setting):
    """A diffuse rest is one more outcome, which never collides with itself."""
    chances = points.masses(setting).tolist()
    rest = 1 - sum(chances)
    true = 0.0
    for outcome in product(range(len(chances) + 1), repeat=setting["samples"]):
        on = [one for one in outcome if one < len(chances)]
        if len(set(on)) == len(on):
            true += prod([*chances, rest][one] for one in outcome)
    assert points.all_different(setting) == pytest.approx(true, rel=1e-12)  # sums of a thousand terms


@pytest.mark.parametrize("setting", LAWS)
def test_what_is_drawn_follows_the_masses(setting):
    chances = points.masses(setting)
    drawn = points.draw(chances, (200, 100), seeded())
    for number, chance in enumerate(chances.tolist()):
        share = float((drawn == number).double().mean())
        assert share == pytest.approx(chance, abs=4 * sqrt(chance * (1 - chance) / 20_000) + 1e-12)
    diffuse = drawn[drawn < 0]
    assert len(diffuse.unique()) == len(diffuse)
    assert int(drawn.max()) < len(chances)


def test_collisions_and_pairs_of_each_row():
    batches = torch.randint(12, (300, 6), generator=seeded())
    batches[0] = 5
    pairs = [sum(a == b for a, b in combinations(row, 2)) for row in batches.tolist()]
    assert points.equal_pairs(batches).tolist() == pairs
    assert points.collided(batches).tolist() == [count > 0 for count in pairs]
    assert pairs[0] == comb(6, 2)


def test_batches_are_counted_in_parts(monkeypatch):
    monkeypatch.setattr(points, "AT_ONCE", 50)
    chances = points.masses({"points": 20, "samples": 7})
    generator = seeded(3)
    parts = [points.draw(chances, (rows, 7), generator) for rows in (7, 7, 6)]
    expected = sum(int(points.collided(part).sum()) for part in parts)
    assert points.count_collided(chances, 7, 20, seeded(3)) == expected


def test_the_mistakes_are_the_mistakes():
    setting = {"points": 10**6, "samples": 10, "batches": 40, "pool": 2}
    chances = points.masses(setting)
    fresh, replacement, reused = (
        birthday_confidence.drawn_batches({**setting, "source": source}, chances, seeded())
        for source in ("fresh", "replacement", "reused")
    )
    assert fresh.shape == replacement.shape == reused.shape == (40, 10)
    assert len(fresh.unique()) > 390
    assert len(replacement.unique()) <= 20
    assert len(reused.unique()) <= 20
    assert points.collided(replacement).sum() > 30  # 1 − Π(1 − k/20) = 0.93
    assert not points.collided(reused).any()


def test_the_laws_for_no_collision_seen():
    setting = {"points": 64, "samples": 20, "batches": 2}
    atom = birthday_confidence.none_seen_law({**setting, "law": "one atom"})
    assert len(atom) == 1
    assert float(1 / atom.square().sum()) == pytest.approx(64)
    uniform = birthday_confidence.none_seen_law({**setting, "law": "uniform"})
    assert uniform.tolist() == pytest.approx([1 / 64] * 64)


@pytest.mark.parametrize(("size", "samples", "batches"), [(60, 20, 1), (300, 20, 5), (90, 10, 7)])
def test_no_collision_in_any_batch(size, samples, batches):
    """What the limit is solved for, as a product; and how many tests pass, by drawing."""
    setting = {"points": size, "samples": samples, "batches": batches, "tests": 4000, "trials": 1}
    true = float(np.prod(1 - np.arange(samples) / size)) ** batches
    assert birthday_confidence.doubt(setting) == pytest.approx(true, rel=1e-9)  # two bisections to rounding
    (share,) = birthday_confidence.measure_none_seen({**setting, "law": "uniform"}, seeded())
    assert share == pytest.approx(true, abs=4 * sqrt(true * (1 - true) / 4000))


@pytest.mark.parametrize("rho", [1.0, 0.99, 0.8])
@pytest.mark.parametrize(("size", "samples"), [(8, 8), (100, 12), (365, 23)])
def test_where_the_bounds_are_the_number_of_points(size, samples, rho):
    """The printed bound solved by hand: ln 1/(1 − γ) = M²r/2 + M³r²/6, r = ρ²/N + (1 − ρ)²."""
    setting = {"points": size, "samples": samples, "rho": rho}
    r = rho**2 / size + (1 - rho) ** 2
    by_hand = samples**2 * r / 2 + samples**3 * r**2 / 6
    # Digits are lost in 1 − γ, of size e^{−5}, and in a denominator that ρ makes the difference of two.
    assert birthday_inverse.at_printed(setting) == pytest.approx(by_hand, rel=1e-10)
    pairs = samples * (samples - 1) / 2
    assert birthday_inverse.at_popular(setting) == pytest.approx(pairs / size, rel=1e-10)
    whole = {**setting, "rho": 1.0}
    assert birthday_inverse.different_at_exact(whole) == pytest.approx(points.all_different(whole), rel=1e-10)


def test_a_bound_that_says_nothing_allows_every_collision_probability():
    assert birthday_inverse.where_equal(lambda gamma: -1.0, 5) == pytest.approx(birthday_inverse.WHOLE)


def test_the_bound_from_batches_and_what_it_must_cover():
    setting = {"points": 50, "samples": 4, "law": "zipf", "batches": 20, "trials": 5}
    chances = points.masses(setting).tolist()
    assert birthday_confidence.equal_pair(setting) == pytest.approx(sum(chance**2 for chance in chances))
    way = {**setting, "source": "fresh", "limit": "observed"}
    found = birthday_confidence.measure_coverage(way, seeded())
    generator = seeded()
    for value in found:
        rows = points.draw(points.masses(setting), (20, 4), generator).tolist()
        share = sum(len(set(row)) < 4 for row in rows) / 20
        assert 0 < share < 1
        kept = float(np.prod(1 - np.arange(4) * value))
        assert kept == pytest.approx(1 - share, rel=1e-9)  # the bound is found to rounding


def test_points_seen_are_counted_once():
    setting = {"points": 30, "samples": 5, "draws": 3000, "trials": 2, "rho": 0.5}
    assert birthday_inverse.measure_seen(setting, seeded()) == [30.0, 30.0]


@pytest.mark.parametrize("values", ["coin", "rare", "uniform"])
def test_the_discriminators_have_their_means(values):
    setting = {"values": values, "runs": 5000, "m": 9, "epsilon": 1.0, "trials": 1}
    drawn = hoeffding.mean_values(setting, seeded())
    assert bool(((drawn >= 0) & (drawn <= 1)).all())
    # at most ½ is the deviation of a number in [0, 1]
    assert float(drawn.mean()) == pytest.approx(hoeffding.MEAN[values], abs=4 * 0.5 / sqrt(5000 * 9))


def test_a_coin_in_sixteen_throws():
    """P(|S − 8| ≥ 4) = 2·Σ_{k ≤ 4} C(16, k)/2¹⁶ = 0.0768, where 2e⁻⁸ = 0.0007 is printed."""
    setting = {"values": "coin", "runs": 100_000, "m": 16, "epsilon": 1.0, "trials": 1}
    true = 2 * sum(comb(16, k) for k in range(5)) / 2**16
    (share,) = hoeffding.measure_deviation(setting, seeded())
    assert share == pytest.approx(true, abs=4 * sqrt(true / 100_000))
    assert round(true, 3) == 0.077
    assert hoeffding.printed(setting) == pytest.approx(2 * exp(-8))
    assert true < hoeffding.corrected(setting) == pytest.approx(2 * exp(-2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: points.masses({"points": 0, "samples": 2}),
        lambda: points.masses({"points": 3, "samples": 1}),
        lambda: points.masses({"points": 3, "samples": 2, "rho": 0.0}),
        lambda: points.masses({"points": 3, "samples": 2, "law": "other"}),
        lambda: hoeffding.check({"epsilon": 0.0, "m": 5}),
    ],
)
def test_settings_are_checked(call):
    with pytest.raises(BadInput):
        call()
