"""The Ladder tab against the ladder itself."""

from __future__ import annotations

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.ladder import compare, enumerate_teacher, propagate, random_student, tree
from obverse.ladder.tab import EXACT, MOST_STEPS, PRESETS, ladder_answer, preset_answer
from obverse.present.fields import Fields

BODY = {
    "summary": "full",
    "values": 2,
    "nodes": 3,
    "seed": 0,
    "steps": 0,
    "lr": 0.3,
    "linear": False,
    "message": "recursive",
}


def preset(subject, kind="tree", leaves=4):
    return preset_answer(subject, Fields({"kind": kind, "leaves": leaves}))


def ask(subject, graph=None, **changes):
    return ladder_answer(subject, Fields(BODY | (graph or preset(subject)) | changes))


def test_a_tree_that_tells_everything_is_exact(subject):
    found = ask(subject)
    assert found["exact"]
    assert found["inputs"] == 16
    for edge in found["edges"]:
        assert edge["gap"] < EXACT
        assert torch.allclose(torch.tensor(edge["exact"]), torch.tensor(edge["reformulated"]), atol=1e-4)


def test_a_teacher_that_forgets_is_not(subject):
    assert not ask(subject, preset(subject, "windows", 5), summary="xor")["exact"]


def test_the_numbers_are_those_of_compare(subject):
    """The page's tree and the library's, whose regions have other names but the same order."""
    found = ask(subject, summary="majority", preset=None, **preset(subject, "threes", 6))
    teacher = enumerate_teacher(tree(6, 3), "majority")
    student = random_student(teacher.model, 3, generator=torch.Generator().manual_seed(0))
    expected = compare(teacher, student)
    gaps = sorted(edge.recursive.gap.relative for edge in expected.edges.values())
    assert sorted(edge["gap"] for edge in found["edges"]) == pytest.approx(gaps, rel=1e-9)
    assert found["worst"]["recursive"] == pytest.approx(expected.worst_recursive, rel=1e-9)


def test_steps_are_gradient_descent_on_inputs(subject):
    teacher = enumerate_teacher(tree(4), "full")
    student = random_student(teacher.model, 3, generator=torch.Generator().manual_seed(0))
    losses = []
    for _ in range(6):
        seen = propagate(teacher, student)
        losses.append(seen.loss)
        student = student.stepped(seen.step, 0.3)
    found = ask(subject, steps=5)["losses"]
    assert [pair[0] for pair in found] == pytest.approx(losses, rel=1e-9)
    assert ask(subject, steps=2)["losses"] == found[:3]  # going back begins nothing anew


def test_edge_by_edge_is_another_number(subject):
    graph = preset(subject, "windows", 5)
    whole, single = (ask(subject, graph, summary="majority", message=way) for way in ("recursive", "weight"))
    assert whole["worst"] == single["worst"]
    assert [edge["gap"] for edge in whole["edges"]] != [edge["gap"] for edge in single["edges"]]


@pytest.mark.parametrize("kind", PRESETS)
@pytest.mark.parametrize("leaves", [2, 3, 5, 6, 8])
def test_every_beginning_can_be_looked_at(subject, kind, leaves):
    for summary in ("full", "xor") if leaves < 8 else ("xor",):
        assert ask(subject, preset(subject, kind, leaves), summary=summary)["edges"]


def test_three_values_of_an_input(subject):
    assert ask(subject, preset(subject, "tree", 3), values=3)["inputs"] == 27
    with pytest.raises(BadInput, match="two events in each child"):
        ask(subject, preset(subject, "tree", 3), values=3, summary="xor")


def test_a_graph_of_ones_own(subject):
    regions = [
        {"name": "a", "children": ["x1", "x2"]},
        {"name": "b", "children": ["x2", "x3"]},
        {"name": "top", "children": ["a", "b", "x3"]},
    ]
    found = ask(subject, {"leaves": 3, "regions": regions})
    assert found["events"] == {"x1": 2, "x2": 2, "x3": 2, "a": 4, "b": 4, "top": 8}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"regions": []}, "1 to"),
        ({"regions": "x"}, "1 to"),
        ({"regions": [{"name": "a", "children": ["x1"]}]}, "one top region"),
        ({"regions": [{"name": "a", "children": ["nobody"]}]}, "children of 'a' that are regions"),
        ({"regions": [{"name": "a", "children": ["a"]}]}, "cycle"),
        ({"regions": [{"name": "x1", "children": ["x2"]}]}, "a name of its own"),
        ({"regions": [{"name": "", "children": ["x2"]}]}, "a name of its own"),
        ({"regions": [{"name": "a", "children": []}]}, "regions that a joins"),
        ({"regions": [{"name": "a", "children": [1]}]}, "regions that a joins"),
        ({"regions": [{"name": "a", "children": ["x1"] * 1000}]}, "regions that a joins"),
        ({"regions": [{"name": "a", "children": ["x" * 1000]}]}, "regions that a joins"),
        ({"regions": [5]}, "a name of its own"),
        ({"leaves": 100}, "leaves from"),
        ({"values": 9}, "values from"),
        ({"nodes": 0}, "nodes from"),
        ({"summary": "mean"}, "summary out of"),
        ({"steps": MOST_STEPS + 1}, "steps from"),
        ({"message": "x"}, "message out of"),
    ],
)
def test_what_is_wrong_is_told(subject, wrong, told):
    with pytest.raises(BadInput, match=told):
        ask(subject, preset(subject) | wrong, **{k: v for k, v in wrong.items() if k not in ("regions",)})


def test_too_many_labels_are_told_with_a_way_out(subject):
    with pytest.raises(BadInput, match="a teacher that sums up"):
        ask(subject, preset(subject, "tree", 8))


def test_a_descent_that_diverges_says_so_each_time(subject):
    for _ in range(2):
        with pytest.raises(BadInput, match="lower the lr"):
            ask(subject, lr=10.0, steps=60, linear=True)
    assert ask(subject, lr=10.0, steps=0, linear=True)["losses"]
