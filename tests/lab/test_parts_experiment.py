"""The experiment on matrices whose parts are known: its matrices, its counts and its page."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import binomtest

from experiments.parts import page, run
from experiments.parts.matrices import NOISE, noise, planted


@pytest.mark.parametrize("kind", NOISE)
def test_noise_is_centred_and_its_tails_are_those_of_its_name(kind):
    drawn = noise(kind, 300, 300, 0.0, torch.Generator().manual_seed(0)).double()
    assert float(drawn.mean() / drawn.std()) == pytest.approx(0, abs=4 / 300)
    kurtosis = float((drawn**4).mean() / (drawn**2).mean() ** 2) - 3
    known = {"normal": 0, "uniform": -1.2, "Laplace": 3, "±1": -2, "50 % pruned": 3, "90 % pruned": 27}
    if (
        kind in known
    ):  # a fourth moment of 90,000 entries is good to a few per cent; those of t₅ and t₃ are not
        assert kurtosis == pytest.approx(known[kind], abs=0.1 + 0.07 * (3 + known[kind]))
    else:
        assert kurtosis > (2 if kind in ("t5", "t3") else -0.1)


def test_what_is_planted_is_there():
    truth = planted(40, 60, 3, 2.0, 0.5, torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(truth.signal)
    assert values[:3].numpy() == pytest.approx(2.0 * (40 * 60) ** 0.25, rel=1e-5)
    assert float(values[3]) < 1e-4
    rest = truth.matrix / truth.profile - truth.signal
    assert float(rest.std()) == pytest.approx(1, abs=4 / (2 * 2400) ** 0.5)


def test_counts_and_power_of_a_few_matrices():
    counted = run.false_alarms("name", "normal", 40, 40, 0.5, 3)
    assert counted["matrices"] == sum(counted["grades"].values()) == 3
    assert counted == run.false_alarms("name", "normal", 40, 40, 0.5, 3)  # the name is the seed
    found = run.power("name", 64, 64, 2, 6.0, 0.5, 3)
    assert found["directions"] == 1
    assert found["exact"] >= 2
    assert found["strength"] == pytest.approx(1, abs=0.1)
    assert found["error"] < 1.2


def test_the_interval_is_that_of_clopper_and_pearson():
    for count in (0, 1, 9, 30):
        low = binomtest(count, 400).proportion_ci(0.98, "exact").low
        assert page.surely_above(count, 400, 0.02) == (low > 0.02)


def test_a_share_has_the_interval_of_clopper_and_pearson():
    for count in (0, 3, 40):
        low, high = binomtest(count, 40).proportion_ci(0.95, "exact")
        assert page.share(count, 40) == f"{100 * count / 40:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def test_an_oracle_counts_what_noise_would_not_have_and_the_best_threshold_is_between():
    # noise of 100 × 100 ends near √100 + √100 = 20
    assert run.seen_by_oracle([40.0, 25.0, 19.0], 100, 100) == 2
    assert run.seen_by_oracle([19.0, 18.0], 100, 100) == 0
    seen = [[30.0, 22.0, 20.0], [30.0, 21.0, 19.5], [30.0, 20.1, 20.0], [30.0, 19.7, 19.0]]
    assert run.best_threshold(seen, 2) == 3  # 20 to 20.1: the last one's second value is below it


def test_the_page_has_a_row_per_kind_and_per_planted_signal():
    rows = page.pooled()
    for part in page.NAMES:
        lines = page.noise_table(part, rows).splitlines()
        assert {line.split(" | ")[0].removeprefix("| ") for line in lines[2:]} == set(NOISE)
    assert len(page.matrices_table(rows).splitlines()) == 2 + len({size for _, size in rows})
    assert len(page.planted_table().splitlines()) == 2 + len(list(page.cells("planted")))
    exceeded, compared = page.above()
    assert compared == 9 * len(list(page.cells("noise")))
    assert len(exceeded) <= compared / 50  # of rates at the level, 1 of 100 is surely above it
