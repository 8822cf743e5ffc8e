"""The reformulation against dense matrices, and, where events tell everything, against loops over inputs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ladder.plain_ladder import (
    GRAPHS,
    SUMMED,
    assert_same,
    assert_same_step,
    listed,
    plain_conditional,
    plain_mean,
    plain_pass,
    plain_prior,
    plain_reformulation,
    plain_total,
    student_of,
    teacher_of,
    weights_of,
)
from ladder.test_passes import KINDS, SOME, said, targets_of
from obverse._core.errors import BadInput
from obverse.ladder._model import EventModel
from obverse.ladder._reformulation import reformulate
from obverse.ladder._regions import RegionGraph, tree, windows
from obverse.ladder._student import random_student
from obverse.ladder._teacher import enumerate_teacher


def model_by_hand(teacher):
    p, graph = weights_of(teacher), teacher.graph
    priors = {name: plain_prior(listed(teacher, name), p, teacher.sizes[name]) for name in graph.order}
    links = {
        (parent, child): plain_conditional(
            listed(teacher, parent), listed(teacher, child), p, (teacher.sizes[parent], teacher.sizes[child])
        )
        for parent, child in graph.edges
    }
    return priors, links


def near(student) -> float:
    return 100 * SUMMED if student.norm else SUMMED  # batch norm divides by a σ of some hundredths at least


def check_matrices(teacher, student, gates=None, lowest=None) -> None:
    found = reformulate(teacher.model, student, gates=gates, lowest=lowest)
    by_hand = plain_reformulation(teacher.graph, *model_by_hand(teacher), student, gates, lowest)  # type: ignore[call-arg]
    for kind in ("active", "before", "gate", "gradient"):
        assert_same(getattr(found, kind), by_hand[kind], near(student))
    assert found.loss == pytest.approx(by_hand["loss"], rel=near(student), abs=near(student))
    assert_same_step(found.step, by_hand["step"], near(student))
    for parent, child in teacher.graph.edges:
        shown = np.eye(teacher.sizes[child]) if lowest is None else lowest.get(child)
        shown = by_hand["active"][child] if teacher.graph.children[child] else np.asarray(shown)
        expected = model_by_hand(teacher)[1][parent, child] @ shown
        np.testing.assert_allclose(found.messages[parent, child].numpy(), expected, atol=near(student))


def check_exact(teacher, student, lowest=None, lowest_events=None) -> None:
    """Averages over inputs, by hand, are what events give: Theorems 3 and 4."""
    found = reformulate(teacher.model, student, lowest=lowest_events)
    by_hand = plain_pass(teacher, student, lowest)
    p = weights_of(teacher)
    for name in student.inner:
        events, size = listed(teacher, name), teacher.sizes[name]
        happens = plain_prior(events, p, size) > 0
        active = plain_mean(by_hand["active"][name], events, p, size)
        np.testing.assert_allclose(found.active[name].numpy()[happens], active[happens], atol=near(student))
        gate = plain_mean(by_hand["gate"][name], events, p, size)
        np.testing.assert_allclose(found.gate[name].numpy()[happens], gate[happens], atol=near(student))
        for kind in ("gradient", "arriving"):
            expected = plain_total(by_hand[kind][name], events, size)
            np.testing.assert_allclose(getattr(found, kind)[name].numpy(), expected, atol=near(student))
    assert found.loss == pytest.approx(by_hand["loss"], rel=near(student), abs=near(student))
    assert_same_step(found.step, by_hand["step"], near(student))


@pytest.mark.parametrize("kind", KINDS[::4], ids=said)
def test_it_is_the_matrix_form_for_every_kind_of_student(kind):
    """On a ladder that loses information: the formulas, not whether they are true.

    Three events and more: between two of them batch norm leaves no gradient, and rounding is all there is.
    """
    teacher = teacher_of("overlap", lambda z: z.sum(1) % 5, seed=1)
    check_matrices(teacher, student_of(teacher, 2, seed=2, **kind))


@pytest.mark.parametrize("rule", ["full", "parity"])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_the_matrix_form_on_every_graph(name, rule):
    teacher = teacher_of(name, "full" if rule == "full" else lambda z: z.sum(1) % 2, seed=3)
    check_matrices(teacher, student_of(teacher, 3, seed=4, norm="before", loss="softmax"))


@pytest.mark.parametrize("norm", [None, "before", "after"])
def test_gates_and_lowest_activations_can_be_given(norm):
    teacher = teacher_of("dag", lambda z: z.sum(1) % 3, seed=5)
    student = student_of(teacher, 2, seed=6, norm=norm)
    generator = torch.Generator().manual_seed(7)
    gates = {
        name: torch.rand(teacher.sizes[name], student.nodes[name], generator=generator, dtype=torch.float64)
        for name in student.inner
    }
    lowest = {
        name: torch.randn(teacher.sizes[name], student.nodes[name], generator=generator, dtype=torch.float64)
        for name in teacher.graph.lowest
    }
    check_matrices(teacher, student, gates, lowest)


@pytest.mark.parametrize("kind", KINDS, ids=said)
def test_it_is_exact_for_every_kind_of_student_where_events_tell_all(kind):
    teacher = teacher_of("tree3", seed=8)
    check_exact(teacher, student_of(teacher, 2, seed=9, targets=targets_of(teacher), **kind))


@pytest.mark.parametrize("kind", SOME, ids=said)
@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_exact_on_every_graph_where_events_tell_all(name, kind):
    """In the hand-made graph a position is read by no child: x_α is more than z_α, and no node sees it."""
    teacher = teacher_of(name, seed=10)
    check_exact(teacher, student_of(teacher, 2, seed=11, targets=targets_of(teacher), **kind))


@pytest.mark.parametrize("nodes", [1, 3, 5])
@pytest.mark.parametrize("norm", [None, "before", "after"])
def test_it_is_exact_for_any_number_of_nodes(nodes, norm):
    teacher = teacher_of("overlap", seed=12)
    check_exact(teacher, student_of(teacher, nodes, seed=13, norm=norm))


def test_it_is_exact_for_any_numbers_that_the_lowest_regions_show():
    teacher = teacher_of("overlap3", seed=14)
    generator = torch.Generator().manual_seed(15)
    by_event = {
        name: torch.randn(3, 3, generator=generator, dtype=torch.float64) for name in teacher.graph.lowest
    }
    shown = {name: by_event[name][teacher.events[name]] for name in by_event}
    check_exact(teacher, student_of(teacher, 2, seed=16, norm="after"), shown, by_event)


def test_names_of_events_do_not_matter():
    """A ladder that tells all by another numbering of its events."""
    order = torch.randperm(9, generator=torch.Generator().manual_seed(3))
    teacher = enumerate_teacher(windows(3, 2), {"1.0": order, "1.1": order.flip(0)}, values=3)
    check_exact(teacher, student_of(teacher, 2, seed=17, norm="before"))


def test_events_that_never_happen_do_not_matter():
    """A table that leaves numbers out, and inputs that never come."""
    table = torch.tensor([7, 2, 0, 5])
    p = torch.zeros(16, dtype=torch.float64)
    p[[1, 4, 6, 11, 12]] = torch.tensor([0.1, 0.2, 0.3, 0.15, 0.25], dtype=torch.float64)
    teacher = enumerate_teacher(tree(4), {"1.0": table}, p=p)
    assert teacher.sizes["1.0"] == 8
    for norm in (None, "before", "after"):
        check_exact(teacher, student_of(teacher, 3, seed=18, norm=norm))


def test_it_is_exact_where_a_lowest_event_stands_for_several_contents():
    """P(x|z) is no delta, but no node sees more than the event."""
    full = enumerate_teacher(windows(3, 2), values=4)
    events = {"0.0": full.events["0.0"] // 2, "0.1": full.events["0.1"] % 2, "0.2": full.events["0.2"] // 3}
    sizes = {"0.0": 2, "0.1": 2, "0.2": 2}
    for name in ("1.0", "1.1", "2.0"):
        first, second = (events[child] for child in full.graph.children[name])
        pairs, events[name] = torch.unique(first * 8 + second, return_inverse=True)
        sizes[name] = len(pairs)
    p = torch.rand(64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    teacher = replace(full, events=events, sizes=sizes, p=p / p.sum())
    for norm in (None, "before", "after"):
        check_exact(teacher, student_of(teacher, 3, seed=19, norm=norm))


def test_the_top_gradient_is_the_identity_minus_the_activations():
    teacher = teacher_of("tree4", seed=20)
    found = reformulate(teacher.model, student_of(teacher, 2, seed=21))
    prior = teacher.prior("2.0").numpy()
    expected = prior[:, None] * (np.eye(16) - found.active["2.0"].numpy())
    np.testing.assert_allclose(found.gradient["2.0"].numpy(), expected, atol=SUMMED)


def test_a_model_without_inputs():
    """Any P and priors, as Theorems 6 to 9 take them; two steps by hand in numbers."""
    graph = tree(2)
    model = EventModel.of(
        graph, [0.25, 0.75], {("1.0", "0.0"): [[0.5, 0.5], [0, 1]], ("1.0", "0.1"): [[1, 0], [0.2, 0.8]]}
    )
    student = random_student(model, 1, generator=torch.Generator().manual_seed(0), bias=False)
    weights = {
        ("1.0", "0.0"): torch.tensor([[1.0, -1.0], [2.0, 0.5]], dtype=torch.float64),
        ("1.0", "0.1"): torch.tensor([[0.0, 1.0], [-1.0, 1.0]], dtype=torch.float64),
    }
    found = reformulate(model, replace(student, weights=weights))
    # P F W: rows (0.5·1 + 0.5·2, 0.5·(−1) + 0.5·0.5) = (1.5, −0.25) and (2, 0.5), plus (0, 1) and (−0.8, 1)
    np.testing.assert_allclose(found.active["1.0"].numpy(), [[1.5, 0.75], [1.2, 1.5]], atol=SUMMED)
    np.testing.assert_allclose(
        found.gradient["1.0"].numpy(), [[-0.125, -0.1875], [-0.9, -0.375]], atol=SUMMED
    )
    assert found.loss == pytest.approx(0.25 * 0.5 * (0.25 + 0.5625) + 0.75 * 0.5 * (1.44 + 0.25))
    expected = np.array([[0.5, 0.5], [0, 1]]).T @ np.array([[-0.125, -0.1875], [-0.9, -0.375]])
    np.testing.assert_allclose(found.step.weights["1.0", "0.0"].numpy(), expected, atol=SUMMED)


TEACHER = enumerate_teacher(tree(4))
STUDENT = random_student(TEACHER.model, 2, generator=torch.Generator().manual_seed(0))
GATES = {
    name: torch.ones(TEACHER.sizes[name], STUDENT.nodes[name], dtype=torch.float64) for name in STUDENT.inner
}
LOWEST = {name: torch.eye(2, dtype=torch.float64) for name in TEACHER.graph.lowest}


@pytest.mark.parametrize(
    "given",
    [
        {"gates": {}},
        {"gates": {**GATES, "1.0": torch.ones(1, dtype=torch.float64)}},
        {"gates": {**GATES, "zz": GATES["1.0"]}},
        {"gates": {**GATES, "1.0": GATES["1.0"][:1]}},
        {"gates": {**GATES, "1.0": GATES["1.0"] * float("nan")}},
        {"gates": {**GATES, "1.0": GATES["1.0"].tolist()}},
        {"gates": 1.0},
        {"lowest": {}},
        {"lowest": {**LOWEST, "0.0": torch.ones(3, 2, dtype=torch.float64)}},
        {"lowest": {**LOWEST, "0.0": torch.ones(2, 3, dtype=torch.float64)}},
        {"lowest": {**LOWEST, "0.0": LOWEST["0.0"] * float("nan")}},
        {"lowest": {**LOWEST, "0.0": LOWEST["0.0"].float()}},
    ],
)
def test_matrices_that_do_not_fit_are_refused(given):
    with pytest.raises(BadInput):
        reformulate(TEACHER.model, STUDENT, **given)


def test_a_student_of_other_regions_or_events_is_refused():
    with pytest.raises(BadInput, match="another graph"):
        reformulate(enumerate_teacher(windows(4, 2)).model, STUDENT)
    with pytest.raises(BadInput, match="targets for 2 events"):
        reformulate(enumerate_teacher(tree(4), "xor").model, STUDENT)
    alone = RegionGraph.of({"a": []}, {"a": [0]})
    model = EventModel.of(alone, [1.0], {})
    with pytest.raises(BadInput, match="a region above the lowest"):
        reformulate(model, random_student(model, 1, generator=torch.Generator()))
