"""Teachers against Python's itertools and dictionaries."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from ladder.plain_ladder import (
    GRAPHS,
    SUMMED,
    chances,
    listed,
    plain_conditional,
    plain_events,
    plain_inputs,
    plain_mean,
    plain_prior,
    plain_total,
    same_partition,
    teacher_of,
    weights_of,
)
from obverse._core.errors import BadInput
from obverse.ladder._regions import RegionGraph, grid, tree, windows
from obverse.ladder._summaries import random_table
from obverse.ladder._teacher import Teacher, enumerate_teacher, sample_teacher

SUMMARIES = {
    "full": ("full", lambda below: below),
    "parity": (lambda z: z.sum(1) % 2, None),
    "largest": (lambda z: z.amax(1), None),
}


def values_of(name: str) -> list[int]:
    graph, values = GRAPHS[name]
    return [values] * graph.inputs if isinstance(values, int) else list(values)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_input_comes_once_with_the_last_position_fastest(name):
    teacher = teacher_of(name, seed=None)
    assert [tuple(row) for row in teacher.inputs.tolist()] == plain_inputs(values_of(name))
    assert teacher.p.tolist() == pytest.approx([1 / len(teacher.p)] * len(teacher.p), rel=1e-15)
    assert not teacher.sampled


@pytest.mark.parametrize("name", GRAPHS)
def test_full_events_are_what_a_region_sees_through_its_children(name):
    graph, _ = GRAPHS[name]
    teacher = teacher_of(name)
    inputs = plain_inputs(values_of(name))
    by_hand = plain_events(graph, inputs, values_of(name), dict.fromkeys(graph.order, tuple))
    for region in graph.order:
        assert same_partition(listed(teacher, region), by_hand[region])
        assert max(listed(teacher, region)) < teacher.sizes[region]
        if graph.children[region]:
            assert teacher.sizes[region] == len(set(by_hand[region]))
        else:
            assert teacher.sizes[region] == np.prod([values_of(name)[at] for at in graph.positions[region]])
    assert listed(teacher, graph.top) == teacher.labels.tolist()


@pytest.mark.parametrize("name", GRAPHS)
def test_lossy_events_by_a_function_of_the_children(name):
    graph, _ = GRAPHS[name]
    inputs, values = plain_inputs(values_of(name)), values_of(name)
    teacher = teacher_of(name, lambda z: z.sum(1) % 3)
    lows = {
        region: {
            content: place
            for place, content in enumerate(product(*[range(values[at]) for at in graph.positions[region]]))
        }
        for region in graph.lowest
    }

    def event(region, i):
        if region in lows:
            return lows[region][tuple(inputs[i][at] for at in graph.positions[region])]
        return sum(event(child, i) for child in graph.children[region]) % 3

    for region in graph.order:
        assert listed(teacher, region) == [event(region, i) for i in range(len(inputs))]


def test_summaries_by_region_leave_the_others_full():
    teacher = enumerate_teacher(tree(4), {"1.0": "xor", "2.0": torch.tensor([0, 1, 2, 0, 2, 1, 0, 0])})
    for (a, b, c, d), pair, other, label in zip(
        plain_inputs([2] * 4),
        listed(teacher, "1.0"),
        listed(teacher, "1.1"),
        listed(teacher, "2.0"),
        strict=True,
    ):
        assert pair == (a + b) % 2
        assert other == 2 * c + d
        assert label == [0, 1, 2, 0, 2, 1, 0, 0][4 * pair + other]
    assert teacher.sizes == {"0.0": 2, "0.1": 2, "0.2": 2, "0.3": 2, "1.0": 2, "1.1": 4, "2.0": 3}


@pytest.mark.parametrize("rule", ["and", "or", "xor", "majority"])
def test_the_same_named_summary_everywhere(rule):
    """Over windows, where a leaf counts more than once."""
    python = {
        "and": lambda bits: int(all(bits)),
        "or": lambda bits: int(any(bits)),
        "xor": lambda bits: sum(bits) % 2,
        "majority": lambda bits: int(2 * sum(bits) > len(bits)),
    }[rule]
    graph = windows(5, 3)
    teacher = enumerate_teacher(graph, rule)
    for region in graph.order:
        for i, x in enumerate(plain_inputs([2] * 5)):

            def event(name, x=x):
                below = graph.children[name]
                return python([event(child) for child in below]) if below else x[graph.positions[name][0]]

            assert int(teacher.events[region][i]) == event(region)


@pytest.mark.parametrize("name", GRAPHS)
def test_averages_are_sums_over_inputs(name):
    graph, _ = GRAPHS[name]
    teacher = teacher_of(name, lambda z: z.sum(1) % 2, seed=3)
    p = weights_of(teacher)
    values = torch.randn(len(p), 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for region in graph.order:
        events, size = listed(teacher, region), teacher.sizes[region]
        np.testing.assert_allclose(teacher.prior(region).numpy(), plain_prior(events, p, size), atol=SUMMED)
        expected = plain_mean(values.numpy(), events, p, size)
        np.testing.assert_allclose(teacher.mean(values, region).numpy(), expected, atol=SUMMED)
        expected = plain_total(values.numpy(), events, size)
        np.testing.assert_allclose(teacher.total(values, region).numpy(), expected, atol=SUMMED)
    for parent, child in graph.edges:
        expected = plain_conditional(
            listed(teacher, parent), listed(teacher, child), p, (teacher.sizes[parent], teacher.sizes[child])
        )
        np.testing.assert_allclose(teacher.conditional(parent, child).dense().numpy(), expected, atol=SUMMED)


def test_an_event_that_never_happens_has_the_mean_0():
    p = torch.tensor([0.0, 0.25, 0.75, 0.0], dtype=torch.float64)
    teacher = enumerate_teacher(tree(2), p=p)
    values = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    assert teacher.mean(values, "1.0").flatten().tolist() == [0, 2, 3, 0]
    assert teacher.prior("1.0").tolist() == p.tolist()


def test_the_mean_of_a_rare_event_is_as_sharp_as_any():
    p = torch.tensor([1 - 3e-200, 0, 1e-200, 2e-200], dtype=torch.float64)
    teacher = enumerate_teacher(tree(2), p=p)
    values = torch.tensor([[1.0], [2.0], [3.0], [6.0]], dtype=torch.float64)
    assert float(teacher.mean(values, "0.0")[1, 0]) == pytest.approx(5, rel=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_contents_are_numbered_by_what_the_region_covers(name):
    """Positions that no child reads count too."""
    graph, _ = GRAPHS[name]
    teacher = teacher_of(name)
    inputs = plain_inputs(values_of(name))
    for region in graph.order:
        seen = [tuple(x[at] for at in graph.positions[region]) for x in inputs]
        found = teacher.contents(region).tolist()
        assert same_partition(found, seen)
        assert set(found) == set(range(len(set(seen))))


def test_other_probabilities_leave_events_as_they_are():
    teacher = teacher_of("overlap", "xor", seed=1)
    p = chances(16, 2)
    other = teacher.weighted(p)
    assert other.events is teacher.events
    assert torch.equal(other.p, p)
    expected = plain_conditional(listed(teacher, "1.0"), listed(teacher, "0.0"), p.tolist(), (2, 2))
    np.testing.assert_allclose(other.conditional("1.0", "0.0").dense().numpy(), expected, atol=SUMMED)
    with pytest.raises(BadInput, match="sum to one"):
        teacher.weighted(2 * p)


def test_positions_with_one_value_and_a_lowest_region_of_several():
    graph = RegionGraph.of({"t": ["a", "b"], "a": [], "b": []}, {"a": [0, 2], "b": [1]})
    teacher = enumerate_teacher(graph, values=[2, 1, 3])
    assert teacher.sizes == {"a": 6, "b": 1, "t": 6}
    assert listed(teacher, "a") == [3 * x + z for x, _, z in plain_inputs([2, 1, 3])]


def test_a_large_tree_is_enumerated_without_a_loop_over_inputs():
    teacher = enumerate_teacher(tree(12), "xor")
    parity = torch.tensor([bin(i).count("1") % 2 for i in range(2**12)])
    assert torch.equal(teacher.labels, parity)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"p": torch.full((16,), 1 / 8)}, "sum to one; got 2"),
        ({"p": torch.full((15,), 1 / 15)}, "16 probabilities"),
        ({"p": torch.full((4, 4), 1 / 16)}, "16 probabilities"),
        ({"p": torch.full((16,), float("nan"))}, "none negative and all finite"),
        ({"p": torch.tensor([1.5, -0.5] + [0.0] * 14)}, "none negative"),
        ({"p": torch.tensor([float("inf")] + [0.0] * 15)}, "finite"),
        ({"p": torch.zeros(16)}, "sum to one"),
        ({"p": "abc"}, "probabilities"),
        ({"p": torch.full((16,), 1 / 16, dtype=torch.complex128)}, "probabilities"),
        ({"values": 0}, "values"),
        ({"values": -2}, "values"),
        ({"values": True}, "values"),
        ({"values": [True, 2, 2, 2]}, "values"),
        ({"values": 2.0}, "values"),
        ({"values": None}, "values"),
        ({"values": "2222"}, "values"),
        ({"values": [2, 2, 2]}, "4 positions"),
        ({"values": [2, 2, 2, 2.5]}, "values"),
        ({"values": 2**15}, "values"),
        ({"values": 100}, "at most 16,777,216 inputs to enumerate; got 100,000,000"),
        ({"summaries": {"0.0": "and"}}, "'0.0'"),
        ({"summaries": {"zz": "and"}}, "'zz'"),
        ({"summaries": "nand"}, "'1.0'"),
        ({"summaries": {"1.0": torch.tensor([0, 1])}}, "a table of 4 whole numbers for '1.0'"),
        ({"summaries": None}, "a summary for '1.0'"),
    ],
)
def test_a_teacher_that_is_none_is_refused(changes, said):
    with pytest.raises(BadInput, match=said):
        enumerate_teacher(tree(4), **changes)


def test_too_many_inputs_are_counted_without_writing_them_out():
    graph = RegionGraph.of({"t": ["a"], "a": []}, {"a": range(60_000)})
    with pytest.raises(BadInput, match="sample_teacher"):
        enumerate_teacher(graph)


def test_events_are_refused_where_a_teacher_is_made_by_hand():
    """What would otherwise be an index error, or nothing at all, later."""
    good = enumerate_teacher(tree(2))

    def made(**changes):
        parts = {
            "graph": good.graph,
            "inputs": good.inputs,
            "p": good.p,
            "events": good.events,
            "sizes": good.sizes,
        }
        return Teacher(**(parts | changes))

    assert made().model.sizes == good.sizes
    for changes in (
        {"events": {**good.events, "1.0": torch.zeros(3, dtype=torch.long)}},
        {"events": {**good.events, "1.0": good.events["1.0"] + 1}},
        {"events": {**good.events, "1.0": good.events["1.0"] - 1}},
        {"events": {**good.events, "1.0": good.events["1.0"].double()}},
        {"events": {"1.0": good.events["1.0"]}},
        {"p": good.p * float("nan")},
        {"p": good.p * 2},
    ):
        with pytest.raises(BadInput):
            made(**changes)


# Drawn inputs


def test_drawn_inputs_are_even_and_independent():
    """χ² of 24 contents, at one in 10⁶."""
    from scipy import stats

    teacher = sample_teacher(
        windows(3, 2), count=24_000, values=[2, 3, 4], generator=torch.Generator().manual_seed(0)
    )
    counts = Counter(map(tuple, teacher.inputs.tolist()))
    statistic = sum((counts[x] - 1000) ** 2 / 1000 for x in plain_inputs([2, 3, 4]))
    assert statistic < stats.chi2.isf(1e-6, 23)
    assert teacher.sampled
    assert float(teacher.p.sum()) == pytest.approx(1, abs=SUMMED)


def test_drawn_events_are_functions_of_drawn_inputs():
    graph = grid(2, 3, 2, 1)
    table = random_table(16, 3, torch.Generator().manual_seed(1))
    teacher = sample_teacher(
        graph, {"1.0.0": table, "1.0.1": "xor"}, count=300, generator=torch.Generator().manual_seed(2)
    )
    for i, x in enumerate(teacher.inputs.tolist()):
        first = int(table[8 * x[0] + 4 * x[1] + 2 * x[3] + x[4]])
        assert int(teacher.events["1.0.0"][i]) == first
        assert int(teacher.events["1.0.1"][i]) == (x[1] + x[2] + x[4] + x[5]) % 2
    assert same_partition(
        listed(teacher, graph.top),
        list(zip(listed(teacher, "1.0.0"), listed(teacher, "1.0.1"), strict=True)),
    )


def test_the_same_generator_gives_the_same_draws_and_leaves_the_global_one_alone():
    before = torch.random.get_rng_state()
    one, two = (
        sample_teacher(tree(30), "and", count=20, generator=torch.Generator().manual_seed(7))
        for _ in range(2)
    )
    assert torch.equal(one.inputs, two.inputs)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_inputs_can_be_drawn_by_any_law():
    def draw(count, generator):
        first = torch.randint(3, (count, 1), generator=generator)
        return first.expand(count, 4)

    teacher = sample_teacher(
        tree(4), values=3, count=50, draw=draw, generator=torch.Generator().manual_seed(0)
    )
    assert teacher.sizes["2.0"] == 3
    assert bool((teacher.inputs == teacher.inputs[:, :1]).all())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"count": 0}, "inputs to draw .*; got 0"),
        ({"count": -1}, "inputs to draw"),
        ({"count": 2**25}, "inputs to draw"),
        ({"count": True}, "inputs to draw"),
        ({"count": 2.5}, "inputs to draw"),
        ({"count": 10.0}, "inputs to draw"),
        ({"count": float("nan")}, "inputs to draw"),
        ({"count": "10"}, "inputs to draw"),
        ({"generator": 0}, "Generator"),
        ({"generator": 1}, "Generator"),
        ({"values": 0}, "values"),
        ({"draw": lambda count, generator: torch.zeros(count, 4)}, "whole numbers from `draw`"),
        ({"draw": lambda count, generator: torch.zeros(count, 3, dtype=torch.long)}, "10 × 4 whole numbers"),
        ({"draw": lambda count, generator: torch.full((count, 4), 2)}, "below `values`"),
        ({"draw": lambda count, generator: torch.full((count, 4), -1)}, "values from 0"),
        ({"draw": lambda count, generator: None}, "got NoneType"),
        ({"draw": 3}, "draw"),
    ],
)
def test_draws_that_are_none_are_refused(changes, said):
    given = {"count": 10, "generator": torch.Generator()} | changes
    with pytest.raises(BadInput, match=said):
        sample_teacher(tree(4), **given)
