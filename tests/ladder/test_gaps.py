"""Gaps of the conditions against total variation distances summed over every content, with dictionaries."""

from collections import defaultdict
from math import sqrt

import numpy as np
import pytest
import torch

from ladder.plain_ladder import GRAPHS, SUMMED, chances, listed, teacher_of, weights_of
from obverse.ladder._gaps import broadness_gap, focus_gap, gap, inverse
from obverse.ladder._regions import RegionGraph, tree, windows
from obverse.ladder._summaries import random_table
from obverse.ladder._teacher import enumerate_teacher, sample_teacher

RULES = {
    "full": "full",
    "parity": lambda z: z.sum(1) % 2,
    "sum": lambda z: z.sum(1),
    "largest": lambda z: z.amax(1),
    "constant": lambda z: 0 * z[:, 0],
}


def law(keys, p):
    """P of each key, as a dictionary."""
    found: defaultdict = defaultdict(float)
    for key, chance in zip(keys, p, strict=True):
        found[key] += chance
    return found


def distance(contents, given, also, p) -> float:
    """E of the total variation distance between P(content | given, also) and P(content | given)."""
    both, alone = law(zip(given, also, strict=True), p), law(given, p)
    joint = law(zip(given, also, contents, strict=True), p)
    marginal = law(zip(given, contents, strict=True), p)
    total = 0.0
    for (z, other), chance in both.items():
        if chance > 0:
            halves = sum(
                abs(joint.get((z, other, x), 0.0) / chance - share / alone[z])
                for (at, x), share in marginal.items()
                if at == z
            )
            total += chance * halves / 2
    return total


def contents_of(teacher, region):
    at = teacher.graph.positions[region]
    return [tuple(x[position] for position in at) for x in teacher.inputs.tolist()]


def check(teacher) -> None:
    p = weights_of(teacher)
    for parent, child in teacher.graph.edges:
        above, below = listed(teacher, parent), listed(teacher, child)
        focus = distance(contents_of(teacher, child), below, above, p)
        found = focus_gap(teacher, parent, child, teacher.contents(child))
        assert found == pytest.approx(focus, abs=SUMMED)
        broadness = distance(contents_of(teacher, parent), above, below, p)
        assert broadness_gap(teacher, parent, child) == pytest.approx(broadness, abs=SUMMED)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", GRAPHS)
def test_focus_and_broadness_by_brute_force(name, rule):
    check(teacher_of(name, RULES[rule], seed=1))


@pytest.mark.parametrize("seed", range(8))
def test_random_tables_on_correlated_inputs(seed):
    generator = torch.Generator().manual_seed(seed)
    graph = tree(4)
    tables = {
        "1.0": random_table(9, 3, generator),
        "1.1": random_table(9, 4, generator),
        "2.0": random_table(12, 3, generator),
    }
    check(enumerate_teacher(graph, tables, values=3, p=chances(81, seed)))


def test_drawn_inputs_have_the_gaps_of_their_frequencies():
    check(sample_teacher(windows(4, 2), "majority", count=37, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("name", GRAPHS)
def test_full_events_leave_no_gap(name):
    """Of broadness none at all, of focus none but rounding."""
    teacher = teacher_of(name, seed=2)
    for parent, child in teacher.graph.edges:
        assert broadness_gap(teacher, parent, child) == 0
        if name != "dag":  # whose region m covers a position that no event tells of
            assert focus_gap(teacher, parent, child, teacher.contents(child)) <= SUMMED


def test_what_no_child_reads_is_outside_of_knowledge():
    """m covers a position that is tied to another region: given m's own event, the top says more of it."""
    graph = RegionGraph.of({"t": ["m", "b"], "m": ["a"], "a": [], "b": []}, {"a": [0], "b": [1], "m": [0, 2]})
    p = torch.zeros(8, dtype=torch.float64)
    p[[0b000, 0b011, 0b100, 0b111]] = 0.25  # the last position repeats that of b
    teacher = enumerate_teacher(graph, p=p)
    # P(x_m | z_m) is two halves, P(x_m | z_t, z_m) is one content
    assert focus_gap(teacher, "t", "m", teacher.contents("m")) == pytest.approx(0.5, abs=SUMMED)
    check(teacher)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("rule", ["and", "or", "xor", "majority"])
def test_independent_inputs_have_focus_in_a_tree(rule, count):
    """z_α tells of x_β through z_β alone."""
    graph = tree(2 * count, count)
    bits = torch.rand(2 * count, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    p = torch.ones(1, dtype=torch.float64)
    for bit in bits:
        p = torch.kron(p, torch.stack([1 - bit, bit]))
    teacher = enumerate_teacher(graph, rule, p=p)
    for child in graph.children[graph.top]:
        assert focus_gap(teacher, graph.top, child, teacher.contents(child)) <= SUMMED
        assert broadness_gap(teacher, graph.top, child) > 1e-3


def test_xor_of_even_bits_tells_nothing_of_one_of_them():
    teacher = enumerate_teacher(tree(2), "xor")
    assert broadness_gap(teacher, "1.0", "0.0") == pytest.approx(0.5, abs=SUMMED)


# The gap of two matrices


@pytest.mark.parametrize("rows", [None, [0.5, 0.0, 2.0]])
def test_a_gap_is_a_norm_over_the_larger_norm(rows):
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(3, 2)), generator.normal(size=(3, 2))
    weight = [1.0] * 3 if rows is None else rows

    def norm(matrix):
        return sqrt(sum(weight[i] * matrix[i][j] ** 2 for i in range(3) for j in range(2)))

    found = gap(
        torch.tensor(one),
        torch.tensor(other),
        None if rows is None else torch.tensor(rows, dtype=torch.float64),
    )
    assert found.relative == pytest.approx(norm(one - other) / max(norm(one), norm(other)), rel=1e-12)
    assert found.largest == pytest.approx(abs(one - other).max(), rel=1e-12)
    assert found.to_dict() == {"largest": found.largest, "relative": found.relative}


def test_gaps_at_their_ends():
    zero, one = torch.zeros(2, 2, dtype=torch.float64), torch.ones(2, 2, dtype=torch.float64)
    assert gap(one, one).relative == gap(zero, zero).relative == 0
    assert gap(one, zero).relative == gap(zero, one).relative == 1
    assert gap(one, -one).relative == 2


def test_two_roundings_of_zero_are_compared_with_what_they_come_from():
    tiny = torch.full((2, 2), 1e-17, dtype=torch.float64)
    assert gap(tiny, -tiny).relative == 2
    assert gap(tiny, -tiny, scale=1.0).relative == pytest.approx(4e-17)
    # but not what is small and no rounding
    small = torch.full((2, 2), 1e-9, dtype=torch.float64)
    assert gap(small, -small, scale=1.0).relative == pytest.approx(2)


def test_the_inverse_of_a_prior():
    assert inverse(torch.tensor([0.5, 0.0, 0.25], dtype=torch.float64)).tolist() == [2, 0, 4]
