"""The student's own bookkeeping: shapes, names, steps, random starts, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ladder.plain_ladder import GRAPHS, dag, student_of, teacher_of
from obverse._core.errors import BadInput
from obverse.ladder._passes import propagate
from obverse.ladder._regions import tree
from obverse.ladder._student import Step, random_student
from obverse.ladder._teacher import enumerate_teacher

TEACHER = enumerate_teacher(tree(4))
SEED = torch.Generator().manual_seed


@pytest.fixture
def student():
    return student_of(TEACHER, 2, norm="before")


def test_weights_are_child_by_parent():
    teacher = teacher_of("dag")
    student = random_student(teacher.model, {"m": 5, "n": 3}, generator=torch.Generator())
    assert student.weights["top", "m"].shape == (5, teacher.sizes["top"])
    assert student.weights["m", "a"].shape == (2, 5)
    assert student.weights["n", "b"].shape == (6, 3)
    assert student.weights["top", "c"].shape == (2, teacher.sizes["top"])
    assert student.nodes == {"a": 2, "b": 6, "c": 2, "m": 5, "n": 3, "top": teacher.sizes["top"]}
    assert student.inner == tuple(name for name in dag().order if dag().children[name])


def test_random_weights_have_the_variance_that_keeps_activations():
    """2 ÷ fan-in, where a lowest region counts as one: one of its nodes is active at a time."""
    teacher = teacher_of("dag", seed=None)
    targets = torch.ones(teacher.sizes["top"], 50, dtype=torch.float64)
    student = random_student(teacher.model, {"m": 400, "n": 300}, generator=SEED(0), targets=targets)
    fans = {
        ("m", "a"): 2,
        ("m", "b"): 2,
        ("n", "c"): 2,
        ("top", "m"): 701,
        ("top", "n"): 701,
        ("top", "c"): 701,
    }
    for edge, fan in fans.items():
        weight = student.weights[edge]
        # 4 standard deviations of the mean square of so many normal numbers
        assert abs(float(weight.square().mean()) * fan / 2 - 1) < 4 * (2 / weight.numel()) ** 0.5


def test_random_students_start_without_offsets():
    student = random_student(TEACHER.model, 3, generator=SEED(0), norm="after")
    assert set(student.biases) == {"1.0", "1.1", "2.0"}
    assert set(student.scales) == set(student.shifts) == {"1.0", "1.1"}
    assert all(not value.any() for value in (*student.biases.values(), *student.shifts.values()))
    assert all(bool((value == 1).all()) for value in student.scales.values())
    assert torch.equal(student.targets, torch.eye(16, dtype=torch.float64))
    assert all(tensor.dtype == torch.float64 for tensor in student.parameters().tensors())
    bare = random_student(TEACHER.model, 3, generator=SEED(0), bias=False)
    assert not bare.biases
    assert not bare.scales


def test_the_same_generator_gives_the_same_student_and_leaves_the_global_one_alone():
    before = torch.random.get_rng_state()
    one, two = (random_student(TEACHER.model, 2, generator=SEED(3)) for _ in range(2))
    assert all(torch.equal(one.weights[edge], two.weights[edge]) for edge in one.weights)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("norm", [None, "before", "after"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_step_moves_every_parameter_by_rate_times_its_number(name, norm):
    teacher = teacher_of(name)
    student = student_of(teacher, 2, norm=norm)
    step = propagate(teacher, student).step
    moved = student.stepped(step, 0.1)
    for kind in ("weights", "biases", "scales", "shifts"):
        old, new, by = getattr(student, kind), getattr(moved, kind), getattr(step, kind)
        assert set(old) == set(new) == set(by)
        for key in old:
            np.testing.assert_allclose(new[key].numpy(), old[key].numpy() + 0.1 * by[key].numpy(), rtol=1e-15)
    count = len(student.weights) + len(student.biases) + 2 * len(student.scales)
    assert len(step.tensors()) == len(student.parameters().tensors()) == count


def test_a_step_is_downhill(student):
    before = propagate(TEACHER, student)
    slope = sum(float(one.square().sum()) for one in before.step.tensors())
    lr = 1e-6
    after = propagate(TEACHER, student.stepped(before.step, lr))
    # to first order the loss falls by lr · ‖step‖²; the rest is of the order of rate²
    assert (before.loss - after.loss) / (lr * slope) == pytest.approx(1, rel=1e-3)


def test_which_regions_are_rectified_and_normed(student):
    both = replace(student, top="relu")
    assert [both.rectified(name) for name in both.inner] == [True, True, True]
    assert [student.rectified(name) for name in student.inner] == [True, True, False]
    assert [replace(student, activation="linear").rectified(name) for name in student.inner] == [False] * 3
    assert [student.normed(name) for name in student.inner] == ["before", "before", None]


NAN = float("nan")


@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "tanh"},
        {"activation": None},
        {"top": "softmax"},
        {"norm": "between"},
        {"norm": True},
        {"loss": "huber"},
        {"loss": None},
        {"eps": -1e-9},
        {"eps": NAN},
        {"eps": float("inf")},
        {"eps": True},
        {"eps": "0"},
        {"eps": None},
        {"norm": None},
        {"scales": {}},
        {"shifts": {}},
        {"weights": {}},
        {"weights": None},
        {"targets": None},
        {"targets": [[1.0]]},
        {"targets": torch.ones(16, dtype=torch.float64)},
        {"targets": torch.ones(16, 0, dtype=torch.float64)},
        {"targets": torch.eye(16).long()},
        {"targets": torch.eye(16)},
        {"targets": torch.full((16, 16), NAN, dtype=torch.float64)},
        {"biases": None},
        {"biases": {"1.0": torch.zeros(2, dtype=torch.float64)}},
    ],
)
def test_a_student_that_is_none_is_refused(student, changes):
    with pytest.raises(BadInput):
        replace(student, **changes)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda old: old[..., :1],
        lambda old: old.float(),
        lambda old: old.long(),
        lambda old: old * NAN,
        lambda old: old / 0,
        lambda old: old.tolist(),
        lambda old: old.sum(),
        lambda old: old.unsqueeze(0),
        lambda old: None,
        lambda old: old.to(torch.complex128),
    ],
)
@pytest.mark.parametrize("kind", ["weights", "biases", "scales", "shifts"])
def test_parameters_that_are_none_are_refused(student, kind, wrong):
    group = getattr(student, kind)
    key = next(iter(group))
    with pytest.raises(BadInput):
        replace(student, **{kind: {**group, key: wrong(group[key])}})


@pytest.mark.parametrize("kind", ["weights", "biases", "scales", "shifts"])
def test_parameters_of_other_regions_are_refused(student, kind):
    group = getattr(student, kind)
    key = next(iter(group))
    with pytest.raises(BadInput):
        replace(student, **{kind: {**group, "zz": group[key]}})
    with pytest.raises(BadInput):
        replace(student, **{kind: {name: value for name, value in group.items() if name != key}})


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": 0},
        {"nodes": -1},
        {"nodes": True},
        {"nodes": 2.0},
        {"nodes": "2"},
        {"nodes": None},
        {"nodes": {"1.0": 2}},
        {"nodes": {"1.0": 2, "1.1": 0}},
        {"nodes": {"1.0": 2, "1.1": 1.5}},
        {"nodes": {"1.0": 2, "1.1": 2, "zz": 1}},
        {"targets": torch.eye(3)},
        {"targets": torch.zeros(16)},
        {"targets": torch.zeros(16, 0)},
        {"targets": "x"},
        {"targets": torch.full((16, 2), NAN)},
        {"generator": 0},
        {"norm": "x"},
        {"loss": "x"},
        {"activation": "x"},
        {"top": "x"},
        {"eps": -1},
    ],
)
def test_random_students_that_are_none_are_refused(changes):
    given = {"nodes": 2, "generator": SEED(0)} | changes
    with pytest.raises(BadInput):
        random_student(TEACHER.model, given.pop("nodes"), **given)


def test_the_identity_as_targets_is_refused_where_it_would_not_fit():
    teacher = enumerate_teacher(tree(14))
    with pytest.raises(BadInput, match="targets"):
        random_student(teacher.model, 1, generator=SEED(0))
    assert (
        random_student(teacher.model, 1, generator=SEED(0), targets=torch.ones(2**14, 1).double()).nodes[
            "3.0"
        ]
        == 1
    )


@pytest.mark.parametrize("lr", [NAN, float("inf"), "0.1", None])
def test_a_rate_that_is_none_is_refused(student, lr):
    step = propagate(TEACHER, student).step
    with pytest.raises(BadInput):
        student.stepped(step, lr)


def test_a_step_of_another_student_is_refused(student):
    with pytest.raises(BadInput):
        student.stepped(Step({}), 0.1)
    with pytest.raises(BadInput):
        student.stepped(Step(student.weights), 0.1)
