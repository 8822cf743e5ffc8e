"""How much a node tells of hidden events: every number by plain loops, planted nodes, and what is refused."""

from __future__ import annotations

from itertools import permutations
from math import sqrt

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.ladder._passes import propagate
from obverse.ladder._regions import tree
from obverse.ladder._selectivity import Selectivity, chance, chance_of_region, of_region, selectivity
from obverse.ladder._student import random_student
from obverse.ladder._teacher import enumerate_teacher

ROUNDING = 1e-12  # sums of a few dozen float64 of size 1


def problem(seed: int):
    """24 inputs, 8 contents, 4 events of which one never happens and one only with probability 0; 5 nodes."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    contents = torch.arange(24) % 8
    event_of = torch.tensor([0, 1, 0, 2, 1, 2, 0, 4])
    p = torch.rand(24, generator=generator, dtype=torch.float64)
    p[contents == 7] = 0  # the only contents of event 4
    p[contents == 3] *= 3
    return values, p / p.sum(), contents, event_of[contents], 5


def by_loops(values, p, contents, events, size) -> dict[str, list[float]]:
    """Everything from its definition, one node, one content, one event at a time."""
    found: dict[str, list[float]] = {
        name: [] for name in ("explained", "correlation", "event", "sign", "told")
    }
    chances, c, z = p.tolist(), contents.tolist(), events.tolist()
    inputs = range(len(c))
    for j in range(values.shape[1]):
        v = values[:, j].tolist()
        centre = sum(chances[i] * v[i] for i in inputs)
        total = sum(chances[i] * (v[i] - centre) ** 2 for i in inputs)

        def mean_where(names, wanted, v=v):
            weight = sum(chances[i] for i in inputs if names[i] == wanted)
            total = sum(chances[i] * v[i] for i in inputs if names[i] == wanted)
            return weight, total / weight if weight else 0.0

        at_content = {k: mean_where(c, k) for k in set(c)}
        at_event = {a: mean_where(z, a) for a in range(size)}
        at_event = {a: pair for a, pair in at_event.items() if pair[0] > 0}
        spread = sum(w * (m - centre) ** 2 for w, m in at_content.values())
        between = sum(w * (m - centre) ** 2 for w, m in at_event.values())
        best, name = -2.0, -1
        for a in at_event:
            is_a = {k: float(any(z[i] == a for i in inputs if c[i] == k)) for k in at_content}
            rate = sum(w * is_a[k] for k, (w, _) in at_content.items())
            covariance = sum(w * (is_a[k] - rate) * (m - centre) for k, (w, m) in at_content.items())
            correlation = covariance / sqrt(rate * (1 - rate) * spread)
            if correlation > best:
                best, name = correlation, a
        means = [m for _, m in at_event.values()]
        alone = any(m > 0 and all(o < 0 for o in means if o is not m) for m in means)
        found["explained"].append(between / spread)
        found["correlation"].append(best)
        found["event"].append(name)
        found["sign"].append(float(alone))
        found["told"].append(spread / total)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_against_loops(seed):
    given = problem(seed)
    found, expected = selectivity(*given), by_loops(*given)
    assert bool(found.alive.all())
    for name, values in expected.items():
        assert getattr(found, name).double().tolist() == pytest.approx(values, abs=ROUNDING), name


def test_the_paper_s_criterion_is_met_now_and_then():
    """Neither never nor always among random nodes: the test above sees both."""
    signs = torch.cat([selectivity(*problem(seed)).sign for seed in range(20)])
    assert 0 < int(signs.sum()) < len(signs)


def test_planted_nodes():
    """1[z = 2] less a half is all event, what differs within one event is none, and the third is constant."""
    _, p, contents, events, size = problem(0)
    told = (events == 2).double() - 0.5
    within = torch.zeros(24, dtype=torch.float64)  # two contents of event 0, weighed to a mean of 0
    within[contents == 0], within[contents == 2] = 1 / p[contents == 0].sum(), -1 / p[contents == 2].sum()
    constant = torch.full((24,), 0.1, dtype=torch.float64)
    found = selectivity(torch.stack([told, within, constant], 1), p, contents, events, size)
    assert found.explained.tolist() == pytest.approx([1, 0, 0], abs=ROUNDING)
    assert found.correlation.tolist() == pytest.approx([1, 0, 0], abs=1e-6)  # √ of rounding
    assert found.event[0] == 2
    assert found.sign.tolist() == [True, False, False]
    assert found.alive.tolist() == [True, True, False]
    assert found.mean("explained") == pytest.approx(0.5, abs=ROUNDING)  # of the two that are alive
    assert found.mean("sign") == 0.5


def test_nothing_alive():
    _, p, contents, events, size = problem(0)
    found = selectivity(torch.zeros(24, 3, dtype=torch.float64), p, contents, events, size)
    assert not found.alive.any()
    assert found.mean("explained") == found.mean("told") == 0


def test_a_single_event_tells_nothing():
    values, p, contents, _, _ = problem(0)
    found = selectivity(values, p, contents, torch.zeros(24, dtype=torch.long), 1)
    assert found.explained.tolist() == found.correlation.tolist() == [0] * 5
    assert not found.sign.any()
    assert bool(found.alive.all())


def test_chance_is_the_mean_over_all_shuffles():
    """All 120 orders of five equally likely contents; for `explained` it is (m − 1)/(C − 1) = 2/4."""
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(5, 2, generator=generator, dtype=torch.float64)
    p, contents = torch.full((5,), 0.2, dtype=torch.float64), torch.arange(5)
    events = torch.tensor([0, 0, 1, 2, 2])
    every = [selectivity(values, p, contents, events[list(order)], 3) for order in permutations(range(5))]
    draws = 3000
    found = chance(values, p, contents, events, 3, generator=generator, draws=draws)
    for name in ("explained", "correlation", "sign"):
        exact = torch.stack([getattr(one, name).double() for one in every])
        # 5 standard errors of a mean over as many draws
        limit = 5 * exact.std(0) / sqrt(draws) + ROUNDING
        assert bool(((getattr(found, name) - exact.mean(0)).abs() <= limit).all()), name
    assert torch.stack([one.explained for one in every]).mean(0).tolist() == pytest.approx(
        [0.5, 0.5], abs=ROUNDING
    )
    assert found.event.tolist() == [-1, -1]


def test_shuffles_come_from_the_generator():
    given = problem(2)
    one, other = (chance(*given, generator=torch.Generator().manual_seed(5), draws=3) for _ in range(2))
    assert torch.equal(one.explained, other.explained)
    another = chance(*given, generator=torch.Generator().manual_seed(6), draws=3)
    assert not torch.equal(one.explained, another.explained)


def test_events_that_tell_all_explain_all_and_so_would_shuffled_ones():
    teacher = enumerate_teacher(tree(4), "full")
    student = random_student(teacher.model, 3, generator=torch.Generator().manual_seed(0))
    seen = propagate(teacher, student)
    for side in ("gradient", "active"):
        own = of_region(teacher, seen, "1.0", side)
        lot = chance_of_region(teacher, seen, "1.0", side, generator=torch.Generator().manual_seed(0))
        for found in (own, lot):
            assert found.explained[found.alive].tolist() == pytest.approx(
                [1.0] * int(found.alive.sum()), abs=ROUNDING
            )
        assert bool(own.alive.any())


def test_a_region_s_gradients_and_activations():
    """By hand: g(x) = W(t − f) where the node answers; an input that never comes is left out."""
    p = torch.ones(16, dtype=torch.float64)
    p[3] = 0
    teacher = enumerate_teacher(tree(4), "and", p=p / 15)
    student = random_student(teacher.model, 3, generator=torch.Generator().manual_seed(1))
    seen = propagate(teacher, student)
    f = seen.active["1.1"]
    pull = student.targets[teacher.labels] - seen.active["2.0"]
    g = (f > 0) * (pull @ student.weights["2.0", "1.1"].T)
    rest = (teacher.p, teacher.contents("1.1"), teacher.events["1.1"], 2)
    for values, side in ((g, "gradient"), (f, "active")):
        found = of_region(teacher, seen, "1.1", side)
        assert bool(found.alive.any())
        assert torch.equal(found.alive, values.std(0) > 0)
        for name, expected in by_loops(values[:, found.alive], *rest).items():
            one = getattr(found, name)[found.alive].double().tolist()
            assert one == pytest.approx(expected, abs=ROUNDING), (side, name)


def test_the_top_tells_its_label_by_the_boundary_condition():
    """Eq. 7: a fixed gradient, positive for its own class and negative for others."""
    teacher = enumerate_teacher(tree(4), {"1.0": "xor", "1.1": "and", "2.0": "full"})
    goal = 2 * torch.eye(4, dtype=torch.float64) - 0.5
    student = random_student(
        teacher.model, 3, generator=torch.Generator().manual_seed(1), targets=goal, loss="fixed"
    )
    found = of_region(teacher, propagate(teacher, student), "2.0")
    assert found.sign.tolist() == [True] * 4
    assert found.event.tolist() == [0, 1, 2, 3]
    assert found.explained.tolist() == pytest.approx([1] * 4, abs=ROUNDING)
    assert found.correlation.tolist() == pytest.approx([1] * 4, abs=ROUNDING)


def test_two_events_under_batch_norm_meet_the_criterion_whatever_they_are():
    """Batch norm before the ReLU centres g: of two means one is above 0 and one below, shuffled or not."""
    teacher = enumerate_teacher(tree(6, 3), "majority")
    student = random_student(teacher.model, 6, generator=torch.Generator().manual_seed(3), norm="before")
    seen = propagate(teacher, student)
    lot = chance_of_region(teacher, seen, "1.0", generator=torch.Generator().manual_seed(0))
    assert lot.mean("sign") == of_region(teacher, seen, "1.0").mean("sign") == 1
    assert lot.mean("explained") < 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"values": torch.full((24, 2), torch.nan, dtype=torch.float64)}, "finite values"),
        ({"values": torch.zeros(24, dtype=torch.float64)}, "inputs × nodes"),
        ({"values": torch.zeros(24, 2, dtype=torch.long)}, "finite values"),
        ({"events": torch.arange(24)}, "the same event for the same contents"),
        ({"events": torch.zeros(23, dtype=torch.long)}, "of 24 inputs"),
    ],
)
def test_refusals(change, said):
    given = dict(zip(("values", "p", "contents", "events", "size"), problem(0), strict=True))
    with pytest.raises(BadInput, match=said):
        selectivity(**(given | change))


def test_more_refusals():
    teacher = enumerate_teacher(tree(4), "and")
    seen = propagate(teacher, random_student(teacher.model, 3, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(BadInput, match="a region with children"):
        of_region(teacher, seen, "0.1")
    with pytest.raises(BadInput, match="gradient or active"):
        of_region(teacher, seen, "1.0", "both")
    with pytest.raises(BadInput, match="a number of draws between 1"):
        chance(*problem(0), generator=torch.Generator(), draws=0)
    with pytest.raises(BadInput, match=r"a torch\.Generator"):
        chance(*problem(0), generator=0)
    with pytest.raises(BadInput, match="a number of Selectivity"):
        of_region(teacher, seen, "1.0").mean("mood")
    assert isinstance(of_region(teacher, seen, "1.0"), Selectivity)
