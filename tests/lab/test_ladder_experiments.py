"""The ladder's experiments measure what they say: shortcuts beside the library, formulas by brute force."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from experiments._lab import result_files
from experiments.ladder import dynamics, overfitting, page, selectivity, sgd, tables
from obverse.ladder._dynamics import lost_bits
from obverse.ladder._passes import propagate
from obverse.ladder._regions import tree
from obverse.ladder._selectivity import of_region
from obverse.ladder._teacher import enumerate_teacher

ROOT = Path(__file__).parents[2]
ROUNDING = 1e-12  # float64, sums of at most some hundred terms of size 1


@pytest.fixture(scope="module")
def lab():
    """The modules of the experiment."""
    return SimpleNamespace(
        result_files=result_files,
        dynamics=dynamics,
        selectivity=selectivity,
        sgd=sgd,
        overfitting=overfitting,
        tables=tables,
        page=page,
    )


def test_results_are_kept_and_none_is_measured_twice(lab, tmp_path):
    file, calls = tmp_path / "some" / "file.json", []

    def entry(value):
        calls.append(value)
        return {"value": value / 3}

    first = {"a": lambda: entry(1), "b": lambda: entry(2)}
    found = lab.result_files.measure(file, {"rate": (1, 2)}, first)
    assert found == json.loads(file.read_text())
    assert found["entries"] == {"a": {"value": 0.33333}, "b": {"value": 0.66667}}
    lab.result_files.measure(file, {"rate": (1, 2)}, first | {"c": lambda: entry(3)})
    assert calls == [1, 2, 3]
    lab.result_files.measure(file, {"rate": (1, 3)}, first)  # other settings: all again
    assert calls == [1, 2, 3, 1, 2]


def test_means_errors_and_slopes(lab):
    assert lab.result_files.summary([1.0, 2.0, 6.0]) == pytest.approx({"mean": 3, "error": (7 / 3) ** 0.5})
    assert lab.result_files.slope([0.0, 1.0, 2.0], [5.0, 3.0, 1.0]) == -2


def test_split_events_keep_the_class_and_tell_more_and_more(lab):
    coarse = lab.dynamics.tables(3)
    before = None
    for splits in (1, 2, 4, 16, 256):
        teacher, label = lab.dynamics.split_events(coarse, splits, torch.Generator().manual_seed(0))
        assert torch.equal(label[teacher.labels], coarse.labels)
        for name in lab.dynamics.summed_up(coarse.graph):
            # a function of the children's events: as many joint events with it as without
            below = [teacher.events[child] for child in coarse.graph.children[name]]
            joint = torch.stack(below).unique(dim=1).shape[1]
            assert torch.stack([*below, teacher.events[name]]).unique(dim=1).shape[1] == joint
        lost = sum(lost_bits(teacher, name) for name in lab.dynamics.summed_up(coarse.graph))
        if splits == 1:
            assert teacher.sizes == coarse.sizes
        else:
            assert lost < before
        before = lost
    assert lost < 1e-9  # rounding of entropies


def test_a_headed_graph_has_one_more_region(lab):
    graph = lab.dynamics.headed(tree(4))
    assert graph.children[graph.top] == ("2.0",)
    assert graph.positions[graph.top] == (0, 1, 2, 3)
    assert lab.dynamics.summed_up(graph) == ["1.0", "1.1", "2.0"]


def test_selectivity_descends_as_a_pass_over_inputs_does(lab, monkeypatch):
    """Beside `propagate` on the lossy teacher itself, with labels as they are and shuffled."""
    selectivity = lab.selectivity
    monkeypatch.setattr(selectivity, "STEPS", 5)
    monkeypatch.setattr(selectivity, "AT", (0, 5))
    teacher = selectivity.teacher_of("and-or-and", 0)
    start = lab.sgd.random_student(teacher.model, 4, generator=torch.Generator().manual_seed(2))
    mixed = teacher.labels[torch.randperm(256, generator=torch.Generator().manual_seed(1))]
    for labels in (teacher.labels, mixed):
        found = selectivity.run(teacher, labels, start, 0)
        told = replace(teacher, events={**teacher.events, "head": labels})
        student = start
        for _ in range(5):
            student = student.stepped(propagate(told, student).step, selectivity.RATE)
        seen = propagate(told, student)
        assert found[5]["loss"] == pytest.approx(seen.loss, rel=ROUNDING)
        # and it is judged by the events of the teacher, whatever the labels
        own = [of_region(teacher, seen, f"2.{at}", "active").mean("explained") for at in range(2)]
        assert found[5]["active 2"]["explained"] == pytest.approx(sum(own) / 2, abs=ROUNDING)


def test_rules_of_a_named_teacher_go_by_level(lab):
    teacher = lab.selectivity.teacher_of("xor-and-or", 0)
    for row, label in zip(teacher.inputs.tolist(), teacher.labels.tolist(), strict=True):
        pairs = [row[at] ^ row[at + 1] for at in range(0, 8, 2)]
        assert label == int((pairs[0] and pairs[1]) or (pairs[2] and pairs[3]))


def test_many_students_at_once_step_as_each_does_alone(lab):
    sgd = lab.sgd
    teacher = sgd.summing()
    students = sgd.starts(3)
    chosen = torch.stack([torch.arange(10) * 7 + seed for seed in range(3)])
    stepped = sgd.stepped(
        sgd.stacked(students), teacher.inputs.long()[chosen], teacher.labels[chosen], rate=0.1
    )
    for seed, student in enumerate(students):
        p = torch.bincount(chosen[seed], minlength=512).double() / 10
        after = sgd.named(student.stepped(propagate(teacher.weighted(p), student).step, 0.1).parameters())
        for name, value in after.items():
            torch.testing.assert_close(stepped[name][seed], value, rtol=0, atol=ROUNDING)


def test_sgd_is_the_matrix_dynamics_of_the_batch(lab, monkeypatch):
    monkeypatch.setitem(lab.sgd.EQUAL, "steps", 20)
    assert lab.sgd.equal(4)["largest"] < ROUNDING


def test_flatness_and_noise_by_the_whole_hessian_and_single_gradients(lab):
    sgd = lab.sgd
    teacher = sgd.summing()
    parameters = sgd.stacked(sgd.starts(2))
    chosen = torch.stack([torch.arange(12) * 5, torch.arange(12) * 11])
    rows, own = teacher.inputs.long()[chosen], teacher.labels[chosen]
    found = sgd.state_of(parameters, rows, own, rows, own)
    names, seed = list(parameters), 1
    shapes = [parameters[name][seed].shape for name in names]

    def loss(values, rows, own):
        parts = values.split([shape.numel() for shape in shapes])
        single = {n: part.reshape(1, *shape) for n, part, shape in zip(names, parts, shapes, strict=True)}
        return sgd.losses(single, rows, own).mean()

    flat = torch.cat([parameters[name][seed].flatten() for name in names])
    part = slice(seed, seed + 1)
    hessian = torch.autograd.functional.hessian(lambda values: loss(values, rows[part], own[part]), flat)
    assert found["trace"][seed] == pytest.approx(float(hessian.trace()), rel=1e-9)
    # power iteration: 60 rounds at the ratio of the two largest eigenvalues
    values = torch.linalg.eigvalsh(hessian)
    assert found["largest"][seed] == pytest.approx(
        float(values[-1]), rel=10 * float(values[-2] / values[-1]) ** 120 + 1e-9
    )
    single = torch.stack(
        [torch.func.grad(loss)(flat, rows[part, i : i + 1], own[part, i : i + 1]) for i in range(12)]
    )
    spread = (single - single.mean(0)).square().sum(1).mean()
    assert found["noise"][seed] == pytest.approx(float(spread), rel=1e-9)
    assert found["train"] == found["test"]  # the same inputs were given for both


def test_overfitting_descends_as_a_pass_over_the_sample_does(lab, monkeypatch):
    over = lab.overfitting
    monkeypatch.setattr(over, "STEPS", 3)
    by_content, student = over.task(3, 7)
    teacher = over.inputs_of(3)
    labels = by_content[teacher.events["x"]]
    p = over.drawn(labels, 10, torch.Generator().manual_seed(0))
    assert abs(float(p @ labels)) < 1e-15  # both classes equally often, to rounding
    assert (p * 10).frac().abs().max() < ROUNDING
    *_, (_, parameters, answers, answer) = over.descend(
        over.stacked([student]), p.unsqueeze(0), labels.unsqueeze(0)
    )
    for _ in range(3):
        student = student.stepped(propagate(teacher.weighted(p), student).step, over.RATE)
    expected = lab.sgd.named(student.parameters())
    for name, value in expected.items():
        torch.testing.assert_close(parameters[name][0], value, rtol=0, atol=ROUNDING)
    seen = propagate(teacher, student)
    torch.testing.assert_close(answers[0], seen.active["label"].squeeze(1), rtol=0, atol=ROUNDING)
    # the loss by spurious events is what is left over when each bit is answered by its mean
    spurious = sum(0.5 * float(answer[name].var(correction=0)) for name in over.SPURIOUS)
    means = {name: h.mean(1, keepdim=True).expand_as(h) for name, h in answer.items() if name != "α"}
    blind = over.whole({**answer, **means}, parameters["label"])[0]
    without = 0.5 * float((blind - labels).square().mean())
    assert seen.loss - without == pytest.approx(spurious, abs=ROUNDING)


def test_epsilon_predicts_the_first_gradient_of_spurious_weights(lab):
    """Beside the library's gradient with the loss whose pull is ±1."""
    over = lab.overfitting
    by_content, student = over.task(3, 1)
    teacher = over.inputs_of(3)
    labels = by_content[teacher.events["x"]]
    p = over.drawn(labels, 12, torch.Generator().manual_seed(3))
    epsilon = torch.stack([(p * labels) @ teacher.events[name].double() for name in over.SPURIOUS])
    for name, value in zip(over.SPURIOUS, epsilon.tolist(), strict=True):
        on = teacher.events[name] == 1
        shares = [float(p[on & (labels == side)].sum() / p[labels == side].sum()) for side in (1, -1)]
        assert value == pytest.approx((shares[0] - shares[1]) / 2, abs=ROUNDING)
    found = over.first_gradients(over.stacked([student]), (p * labels).unsqueeze(0), epsilon.unsqueeze(0))
    step = propagate(teacher.weighted(p), replace(student, loss="fixed")).step.weights
    assert float(found["unpredicted"]) < ROUNDING
    assert float(found["true"]) == pytest.approx(float(step["label", "α"].square().mean()), abs=ROUNDING)
    squares = [float(step["label", name].square().mean()) for name in over.SPURIOUS]
    assert float(found["spurious"]) == pytest.approx(sum(squares) / len(squares), abs=ROUNDING)


def test_answers_of_all_inputs_come_in_the_order_of_the_teacher(lab):
    over = lab.overfitting
    rows = over.inputs_of(2).inputs.tolist()
    assert [tuple(row) for row in rows] == list(product(range(2), repeat=2 + over.BITS))


def test_uneven_probabilities(lab):
    p = lab.dynamics.uneven(50, torch.Generator().manual_seed(0))
    assert float(p.sum()) == pytest.approx(1, abs=ROUNDING)
    assert bool((p >= 0).all())
    assert enumerate_teacher(tree(2), p=lab.dynamics.uneven(4, torch.Generator().manual_seed(0))).p.shape == (
        4,
    )


@pytest.mark.slow  # draws every figure
def test_figures_are_drawn_from_published_results(lab, tmp_path):
    lab.page.draw(tmp_path)
    drawn = {file.name for file in tmp_path.iterdir()}
    assert drawn == {
        f"ladder-{name}.png" for name in ("dynamics", "selectivity", "overfitting", "sgd", "real")
    }


def test_the_page_has_the_published_tables(lab):
    page = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
    assert lab.page.text() in page


def test_tables_from_published_results(lab):
    found = lab.tables.tables()
    assert len(found) == 12
    for text in found.values():
        lines = text.splitlines()
        assert len(lines) > 3
        assert len({line.count("|") for line in lines}) == 1  # as many cells in each


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.25, "−0.25"), (1234.0, "1.23e+03"), (0.00012, "1.2e−4"), (-2e-16, "−2.0e−16")],
)
def test_numbers_in_tables(lab, value, text):
    assert lab.tables.number(value) == text


def test_change_with_each_doubling_of_a_batch(lab):
    """Two seeds: +1 and +3 a doubling; the third never got there with one of the batches."""
    values = {1: [0.0, 1.0, 5.0], 2: [1.0, 4.0, None], 8: [3.0, 10.0, 7.0]}
    entries = {f"batch/{size}": {"batch": size, "loss": {"trace": own}} for size, own in values.items()}
    found = lab.tables.doublings({"entries": entries}, "loss", "trace")
    assert found == pytest.approx({"mean": 2.0, "error": 1.0})
