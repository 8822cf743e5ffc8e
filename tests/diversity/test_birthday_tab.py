"""The birthday room against counting by hand."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from obverse._core.errors import BadInput
from obverse.diversity.tab import LAWS, birthday_answer, chances, collision_chance
from obverse.present.fields import Fields

BODY = {
    "support": 365,
    "size": 23,
    "law": "uniform",
    "seed": 0,
    "first": 0,
    "count": 20,
    "confidence": 0.95,
    "collisions": 0,
    "pairs": 0,
    "chains": 0,
}


def ask(subject, **changes):
    return birthday_answer(subject, Fields(BODY | changes))


def run(subject, batches, **changes):
    found = ask(subject, count=0, **changes)
    while found["done"] < batches:
        totals = {name: found[name] for name in ("collisions", "pairs", "chains")}
        found = ask(subject, first=found["done"], **totals, **changes)
    return found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("support", "size"), [(1, 2), (4, 3), (6, 4), (5, 5), (3, 4)])
def test_the_chance_of_a_collision_is_that_of_all_draws_listed(law, support, size):
    p = chances(law, support)
    apart = sum(
        prod(p[day] for day in days)
        for days in product(range(support), repeat=size)
        if len(set(days)) == size
    )
    assert collision_chance(law, support, size) == pytest.approx(1 - apart, abs=1e-12)  # float64 sums


def test_the_birthday_paradox():
    assert collision_chance("uniform", 365, 23) == pytest.approx(0.5073, abs=5e-5)


def test_probabilities_are_what_they_say():
    assert chances("a favourite", 1000)[0] == pytest.approx(0.1)
    assert chances("zipf", 10)[0] == pytest.approx(10 * chances("zipf", 10)[9])
    for law in LAWS:
        assert chances(law, 777).sum() == pytest.approx(1)


@pytest.mark.parametrize("law", LAWS)
def test_collisions_come_as_often_as_they_should(subject, law):
    found = run(subject, 1000, law=law, size=10)
    truth = found["truth"]["collision"]
    assert abs(found["told"]["chance"] - truth) < 4 * np.sqrt(truth * (1 - truth) / 1000)
    # pairs: mean C(M,2)/N_eff a batch; 10 % is some 4 standard errors of a thousand batches or more
    assert found["pairs"] / 1000 == pytest.approx(45 / found["truth"]["effective"], rel=0.35)


def test_groups_are_those_who_share_a_day(subject):
    for batch in ask(subject, support=10, size=12)["batches"]:
        places = [who for group in batch["groups"] for who in group["who"]]
        assert len(places) == len(set(places))
        assert all(len(group["who"]) > 1 for group in batch["groups"])
        sizes = [len(group["who"]) for group in batch["groups"]]
        assert batch["pairs"] == sum(size * (size - 1) // 2 for size in sizes)
        assert batch["chains"] == sum(size * (size - 1) * (size - 2) for size in sizes)
        assert len({group["day"] for group in batch["groups"]}) == len(batch["groups"])


def test_the_bound_holds_as_often_as_it_says(subject):
    """95 % of a hundred tests, minus 4 standard deviations of such a count; the bound errs to be safe."""
    holds = 0
    for seed in range(100):
        found = run(subject, 40, seed=seed, law="zipf", support=500, size=8)
        bound = found["told"]["bound"]
        holds += bound is None or bound >= found["truth"]["effective"]
    assert holds >= 95 - 4 * np.sqrt(100 * 0.95 * 0.05)


def test_batches_are_the_same_whoever_asks(subject):
    whole = ask(subject)["batches"]
    assert ask(subject, first=10, count=10)["batches"] == whole[10:]
    assert ask(subject, seed=1)["batches"] != whole


def test_before_the_first_batch_nothing_is_told(subject):
    assert ask(subject, count=0)["told"] is None


def test_without_a_collision_there_is_no_bound(subject):
    told = ask(subject, support=100_000, size=2)["told"]
    assert told["bound"] is None
    assert told["counted"] is None
    assert told["low"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"support": 10**9},
        {"size": 1},
        {"size": 10**6},
        {"law": "x"},
        {"count": 21},
        {"first": 999},
        {"collisions": 5},
        {"pairs": 10**9},
        {"confidence": 1},
    ],
)
def test_what_is_out_of_bounds_is_refused(subject, wrong):
    with pytest.raises(BadInput):
        ask(subject, **wrong)
