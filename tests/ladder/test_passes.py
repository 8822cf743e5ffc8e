"""The pass over inputs against loops with the chain rule written out, and against differences of the loss."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from ladder.plain_ladder import (
    GRAPHS,
    SUMMED,
    assert_same,
    assert_same_step,
    numbers_of,
    plain_pass,
    student_of,
    teacher_of,
)
from obverse._core.errors import BadInput
from obverse.ladder._passes import one_hot, propagate
from obverse.ladder._regions import tree, windows
from obverse.ladder._student import random_student
from obverse.ladder._teacher import Teacher, enumerate_teacher, sample_teacher

KINDS = [
    {"activation": activation, "norm": norm, "top": top, "loss": loss, "bias": bias}
    for activation, norm, top, loss, bias in product(
        ("relu", "linear"),
        (None, "before", "after"),
        ("linear", "relu"),
        ("square", "softmax", "fixed"),
        (True, False),
    )
]
SOME = [
    {"activation": "relu", "norm": None, "loss": "square"},
    {"activation": "relu", "norm": "before", "loss": "softmax", "top": "relu"},
    {"activation": "relu", "norm": "after", "loss": "softmax", "bias": False},
    {"activation": "relu", "norm": "before", "loss": "square", "eps": 1e-3},
    {"activation": "linear", "norm": "after", "loss": "fixed", "eps": 0.5},
]


def said(kind) -> str:
    return "-".join(str(value) for value in kind.values())


def targets_of(teacher: Teacher, seed: int = 0, columns: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(teacher.sizes[teacher.graph.top], columns, generator=generator, dtype=torch.float64)


def check(teacher, student, lowest=None) -> None:
    found, by_hand = propagate(teacher, student, lowest), plain_pass(teacher, student, lowest)
    # Batch norm divides by σ, which is as small as some hundredth here: hundred times the rounding of sums.
    tolerance = 100 * SUMMED if student.norm else SUMMED
    for kind in ("active", "before", "gate", "arriving", "gradient"):
        assert set(getattr(found, kind)) == set(student.inner)
        group = {name: value.double() for name, value in getattr(found, kind).items()}
        assert_same(group, by_hand[kind], tolerance)
    assert found.loss == pytest.approx(by_hand["loss"], rel=tolerance, abs=tolerance)
    assert_same_step(found.step, by_hand["step"], tolerance)


@pytest.mark.parametrize("kind", KINDS, ids=said)
def test_every_kind_of_student_on_a_small_graph(kind):
    """Overlapping windows with zero probabilities; the hand-made graph has the rest of the shapes."""
    teacher = teacher_of("overlap", lambda z: z.sum(1) % 2, seed=1)
    check(teacher, student_of(teacher, 2, seed=2, targets=targets_of(teacher), **kind))


@pytest.mark.parametrize("kind", SOME, ids=said)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph(name, kind):
    teacher = teacher_of(name, seed=2)
    check(teacher, student_of(teacher, 2, seed=3, targets=targets_of(teacher), **kind))


@pytest.mark.parametrize("nodes", [1, 3, 5, {"1.0": 4, "1.1": 1, "1.2": 2, "2.0": 5, "2.1": 1}])
@pytest.mark.parametrize("norm", [None, "before", "after"])
def test_any_number_of_nodes(nodes, norm):
    teacher = teacher_of("overlap", seed=4)
    check(teacher, student_of(teacher, nodes, seed=5, norm=norm))  # and the identity as targets


@pytest.mark.parametrize("kind", SOME, ids=said)
def test_what_the_lowest_regions_show_can_be_given(kind):
    """Real numbers that differ from input to input, whatever the event, and as many as one likes."""
    teacher = teacher_of("tree3", "xor", seed=6)
    generator = torch.Generator().manual_seed(7)
    student = student_of(teacher, 2, seed=8, targets=targets_of(teacher), **kind)
    weights = {
        (parent, child): weight
        if teacher.graph.children[child]
        else torch.randn(4, weight.shape[1], generator=generator, dtype=torch.float64)
        for (parent, child), weight in student.weights.items()
    }
    lowest = {
        name: torch.randn(8, 4, generator=generator, dtype=torch.float64) for name in teacher.graph.lowest
    }
    check(teacher, replace(student, weights=weights), lowest)


@pytest.mark.parametrize("kind", KINDS[::13] + SOME[1:4], ids=said)
@pytest.mark.parametrize("name", ["dag", "deep"])
def test_steps_are_differences_of_the_loss(name, kind):
    """Of each parameter in a random direction; central differences of width 1e-5 are off by some 1e-9."""
    teacher = teacher_of(name, lambda z: z.sum(1) % 3, seed=8)
    student = student_of(teacher, 2, seed=9, targets=targets_of(teacher), **kind)
    found, width = propagate(teacher, student), 1e-5
    happens = teacher.p > 0
    if student.activation == "relu":
        # else the difference is across a kink, and says nothing
        assert min(float(found.before[name][happens].abs().min()) for name in student.inner[:-1]) > 1e-3
    generator = torch.Generator().manual_seed(10)
    for field in ("weights", "biases", "scales", "shifts"):
        old, steps = getattr(student, field), getattr(found.step, field)
        assert set(steps) == set(old)
        for key in old:
            way = torch.randn(old[key].shape, generator=generator, dtype=torch.float64)
            ahead, back = (
                propagate(
                    teacher, replace(student, **{field: {**old, key: old[key] + sign * width * way}})
                ).loss
                for sign in (1, -1)
            )
            slope = float((steps[key] * way).sum())
            assert -(ahead - back) / (2 * width) == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_the_oracle_knows_batch_norm():
    """The Jacobian written out above, against differences of (f − μ)/σ."""
    from ladder.plain_ladder import plain_norm, plain_norm_back

    generator = np.random.default_rng(0)
    raw, p = generator.normal(size=(6, 2)), np.array([0.1, 0.3, 0.0, 0.2, 0.15, 0.25])
    down = generator.normal(size=(6, 2))
    for eps in (0.0, 0.3):
        back = plain_norm_back(down, *plain_norm(raw, p, eps), p)  # type: ignore[call-arg]
        for place in np.ndindex(6, 2):
            value = []
            for sign in (1, -1):
                moved = raw.copy()
                moved[place] += sign * 1e-6
                value.append((down * plain_norm(moved, p, eps)[0]).sum())
            assert (value[0] - value[1]) / 2e-6 == pytest.approx(back[place], abs=1e-8)


@pytest.mark.parametrize("norm", ["before", "after"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_node_that_never_changes_has_no_direction_under_batch_norm(norm, sign):
    """Constant through its bias, or dead behind the ReLU: it shows its shift and sends nothing back."""
    teacher = teacher_of("tree4", seed=10)
    student = student_of(teacher, 2, seed=11, norm=norm, targets=targets_of(teacher))
    edges = [("1.0", "0.0"), ("1.0", "0.1")]
    weights = dict(student.weights)
    for edge in edges:
        weights[edge] = weights[edge].clone()
        weights[edge][:, 0] = 0.0 if sign > 0 else -1.0
    biases = {**student.biases, "1.0": torch.tensor([sign * 0.7, 0.3], dtype=torch.float64)}
    student = replace(student, weights=weights, biases=biases)
    check(teacher, student)
    found = propagate(teacher, student)
    assert not found.gradient["1.0"][:, 0].any()
    assert all(not found.step.weights[edge][:, 0].any() for edge in edges)
    if norm == "after" or sign > 0:
        expected = float(student.shifts["1.0"][0])
        if norm == "before":
            expected = max(expected, 0.0)
        assert found.active["1.0"][:, 0].tolist() == pytest.approx([expected] * 16, abs=1e-15)


def test_an_input_of_probability_zero_has_no_gradient_and_changes_no_step():
    teacher = teacher_of("dag", seed=12)
    student = student_of(teacher, 3, seed=13, norm="before")
    found = propagate(teacher, student)
    never = teacher.p == 0
    assert int(never.sum()) > 5
    for gradient in found.gradient.values():
        assert not gradient[never].any()
    # the same without these inputs
    fewer = Teacher(
        teacher.graph,
        teacher.inputs[~never],
        teacher.p[~never],
        {name: events[~never] for name, events in teacher.events.items()},
        teacher.sizes,
    )
    again = propagate(fewer, student)
    assert again.loss == pytest.approx(found.loss, rel=SUMMED)
    for one, other in zip(again.step.tensors(), found.step.tensors(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=100 * SUMMED)


def test_a_relu_at_its_kink_is_shut():
    teacher = enumerate_teacher(tree(2))
    student = random_student(teacher.model, 1, generator=torch.Generator().manual_seed(0), top="relu")
    zero = replace(student, weights={edge: 0 * weight for edge, weight in student.weights.items()})
    found = propagate(teacher, zero)
    assert not found.gate["1.0"].any()
    assert not found.gradient["1.0"].any()
    assert found.loss == pytest.approx(0.5)


def test_drawn_inputs_are_averaged_like_any_others():
    teacher = sample_teacher(windows(4, 2), "majority", count=23, generator=torch.Generator().manual_seed(1))
    check(teacher, student_of(teacher, 3, seed=2, norm="after"))


def test_nothing_is_left_behind():
    """No gradient on the student, no history on what comes back."""
    teacher = teacher_of("tree4")
    student = student_of(teacher, 2, norm="before")
    with torch.no_grad():
        quiet = propagate(teacher, student)
    found = propagate(teacher, student)
    assert found.loss == quiet.loss
    assert all(not tensor.requires_grad for tensor in student.parameters().tensors())
    for group in (found.active, found.before, found.arriving, found.gradient, found.gate):
        assert all(not value.requires_grad for value in group.values())
    assert all(not tensor.requires_grad for tensor in found.step.tensors())
    assert all(value.dtype == torch.bool for value in found.gate.values())


def test_the_lowest_regions_show_their_events():
    teacher = teacher_of("dag", seed=None)
    for name in teacher.graph.lowest:
        shown = one_hot(teacher, name)
        assert shown.dtype == torch.float64
        for row, event in zip(shown.tolist(), teacher.events[name].tolist(), strict=True):
            assert row == [float(node == event) for node in range(teacher.sizes[name])]


def test_the_oracle_sees_a_wrong_weight():
    teacher = teacher_of("tree3", seed=1)
    student = student_of(teacher, 2)
    numbers = numbers_of(student)
    numbers["W"]["1.0", "0.0"] = numbers["W"]["1.0", "0.0"] + 1e-6
    with pytest.raises(AssertionError):
        assert_same_step(
            propagate(teacher, student).step, plain_pass(teacher, student, numbers=numbers)["step"]
        )


TEACHER = enumerate_teacher(tree(4))
STUDENT = random_student(TEACHER.model, 2, generator=torch.Generator().manual_seed(0))
SHOWN = {name: one_hot(TEACHER, name) for name in TEACHER.graph.lowest}


@pytest.mark.parametrize(
    "lowest",
    [
        {},
        {"0.0": SHOWN["0.0"]},
        {**SHOWN, "zz": SHOWN["0.0"]},
        {**SHOWN, "0.0": SHOWN["0.0"][:3]},
        {**SHOWN, "0.0": SHOWN["0.0"][:1]},
        {**SHOWN, "0.0": torch.ones(16, 3, dtype=torch.float64)},
        {**SHOWN, "0.0": torch.ones(16, dtype=torch.float64)},
        {**SHOWN, "0.0": SHOWN["0.0"] * float("nan")},
        {**SHOWN, "0.0": SHOWN["0.0"].float()},
        {**SHOWN, "0.0": SHOWN["0.0"].tolist()},
        "lowest",
    ],
)
def test_lowest_activations_that_do_not_fit_are_refused(lowest):
    with pytest.raises(BadInput):
        propagate(TEACHER, STUDENT, lowest)


def test_a_student_of_other_regions_or_events_is_refused():
    with pytest.raises(BadInput, match="another graph"):
        propagate(enumerate_teacher(windows(4, 2)), STUDENT)
    with pytest.raises(BadInput, match="targets for 2 events of the top region; got 16"):
        propagate(enumerate_teacher(tree(4), "xor"), STUDENT)
    with pytest.raises(BadInput, match="lowest region"):
        propagate(enumerate_teacher(tree(4), {"2.0": lambda z: z.sum(1).clamp(max=15)}, values=3), STUDENT)
    alone = enumerate_teacher(tree(1))
    with pytest.raises(BadInput, match="a region above the lowest"):
        propagate(alone, random_student(alone.model, 1, generator=torch.Generator()))
