"""What the claims about exact ladders rest on: their ladders and both sides of Theorem 1, by dictionaries."""

from collections import defaultdict

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.ladder import _boundary as boundary
from obverse.claims.ladder import _exact as exact
from obverse.claims.ladder import _ladders as ladders
from obverse.ladder._compare import compare_pass
from obverse.ladder._passes import propagate

NOISY = {"spread": 0.1, "activation": "relu", "loss": "square", "contents": 2, "nodes": 2}


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def law(keys, p):
    found: defaultdict = defaultdict(float)
    for key, chance in zip(keys, p, strict=True):
        found[key] += chance
    return found


def contents(teacher, region):
    at = teacher.graph.positions[region]
    return [tuple(x[position] for position in at) for x in teacher.inputs.tolist()]


@pytest.mark.parametrize("shape", ladders.SHAPES)
def test_both_sides_of_theorem_1_by_hand(shape):
    setting = {"shape": shape, "norm": "none", "classes": 3, "trials": 1}
    teacher = ladders.labelled_teacher(setting, seeded())
    seen = propagate(teacher, ladders.drawn_student(teacher.model, setting, seeded()))
    sides = exact._projections(teacher, seen)
    edges = [edge for edge in teacher.graph.edges if edge[0] != teacher.graph.top]
    assert len(sides) == len(edges)
    assert len(set(teacher.labels.tolist())) == 3
    p = teacher.p.tolist()
    for (parent, child), (at_once, in_two_steps) in zip(edges, sides, strict=True):
        seen_above, seen_below = contents(teacher, parent), contents(teacher, child)
        names = sorted(set(seen_below))
        for j in range(at_once.shape[1]):
            pulled = seen.gradient[parent][:, j].tolist()  # p(x)g(x)
            given_above, above = law(seen_above, pulled), law(seen_above, p)
            given_below, below = law(seen_below, pulled), law(seen_below, p)
            both = law(zip(seen_below, seen_above, strict=True), p)
            for place, content in enumerate(names):
                expected = given_below[content] / below[content]
                assert float(at_once[place, j]) == pytest.approx(expected, abs=1e-12)
                steps = sum(
                    chance / below[content] * given_above[wider] / above[wider]
                    for (narrow, wider), chance in both.items()
                    if narrow == content
                )
                assert float(in_two_steps[place, j]) == pytest.approx(steps, abs=1e-12)


@pytest.mark.parametrize("shape", ladders.NOISY)
def test_ladders_with_the_conditions_of_theorem_2_and_without_deltas(shape):
    teacher = ladders.noisy_teacher({**NOISY, "shape": shape, "noise": "independent"}, seeded())
    p = teacher.p.tolist()
    for region in teacher.graph.order:
        events = teacher.events[region].tolist()
        alone, joint = law(events, p), law(zip(events, contents(teacher, region), strict=True), p)
        assert max(chance / alone[z] for (z, _), chance in joint.items()) < 1  # no delta
    for parent, child in teacher.graph.edges:
        above, below = teacher.events[parent].tolist(), teacher.events[child].tolist()
        inside = contents(teacher, child)
        told, both = law(below, p), law(zip(above, below, strict=True), p)
        assert len(both) == len(set(above))  # broadness: one z_β for each z_α
        content = law(zip(below, inside, strict=True), p)
        for (a, b, x), chance in law(zip(above, below, inside, strict=True), p).items():
            assert chance / both[a, b] == pytest.approx(content[b, x] / told[b], abs=1e-12)  # focus


def test_contents_that_hang_together_break_focus():
    setting = {**NOISY, "shape": "tree", "noise": "shared", "activation": "linear"}
    teacher, student, seen, lowest = ladders.noisy_pass(setting, seeded())
    compared = compare_pass(teacher, student, seen, lowest)
    with pytest.raises(BadInput, match="the conditions of Theorem 2"):
        exact._check_conditions(teacher, compared)


def test_gates_that_are_not_settled_are_not_taken():
    found, student, seen, _ = ladders.noisy_pass({**NOISY, "shape": "tree", "noise": "independent"}, seeded())
    for region in student.inner:
        for node in range(student.nodes[region]):
            by_event = defaultdict(set)
            for event, gate in zip(
                found.events[region].tolist(), seen.gate[region][:, node].tolist(), strict=True
            ):
                by_event[event].add(gate)
            assert all(len(gates) == 1 for gates in by_event.values())
        # while activations do differ within events: nothing here is a delta
        spread = seen.active[region] - found.mean(seen.active[region], region)[found.events[region]]
        assert float(spread.abs().max()) > 1e-3


def test_the_gap_of_many_matrices_is_relative_to_the_largest_number():
    one, other = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.5]])
    assert ladders.apart([(one, other), (4 * one, 4 * one)]) == 0.5 / 8


def test_a_small_net_starts_with_the_two_numbers_of_the_boundary_condition():
    setting = {"shape": "tree", "classes": 4, "loss": "softmax", "scale": 1e-6, "trials": 1}
    top = boundary._top(setting, seeded())
    expected = torch.full((4, 4), -1 / 4, dtype=torch.float64) + torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(top, expected, rtol=0, atol=1e-5)
