"""The record of a ladder: what a teacher's says, that it survives its file, and what is refused of one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from obverse import BadInput
from obverse.ladder._compare import compare, standard_error
from obverse.ladder._dynamics import race
from obverse.ladder._measure import chosen_edges, measure_teacher
from obverse.ladder._regions import grid, tree, windows
from obverse.ladder._student import Student, random_student
from obverse.ladder._teacher import Teacher, enumerate_teacher, sample_teacher
from obverse.ladder._words import verdict
from obverse.ladder.results import (
    LARGEST,
    MOST_MATRICES,
    NAME,
    Ladder,
    read_ladder,
)
from saved import result_text, write_result

ROUNDED = 0.5e-4 + 1e-12  # probabilities have four decimals in a file


@cache
def pair(summary: str = "full", leaves: int = 4, norm: str | None = None) -> tuple[Teacher, Student]:
    teacher = enumerate_teacher(tree(leaves), summary)
    generator = torch.Generator().manual_seed(0)
    return teacher, random_student(teacher.model, 2, generator=generator, norm=norm)


def ladder(summary: str = "full", **more: Any) -> Ladder:
    return measure_teacher(*pair(summary), subject=summary, settings={"summary": summary}, **more)


@pytest.mark.parametrize("summary", ["full", "majority"])
def test_numbers_are_those_of_the_comparison(summary):
    teacher, student = pair(summary)
    found, own = compare(teacher, student), ladder(summary)
    assert (own.loss, own.reformulated_loss) == (found.loss, found.reformulated_loss)
    assert (own.inputs, own.sampled, own.edges_total) == (16, False, 6)
    assert own.worst == found.worst
    assert own.worst_recursive == found.worst_recursive
    assert [(edge.parent, edge.child) for edge in own.edges] == list(teacher.graph.edges)
    for edge in own.edges:
        one = found.edges[edge.parent, edge.child]
        assert edge.gaps.to_dict() == {
            "focus": one.focus,
            "focus_chance": one.focus_chance,
            "broadness": one.broadness,
            "fourth": one.fourth.relative,
            **{
                name: getattr(one, name).gap.relative
                for name in ("forward", "backward", "weight", "recursive")
            },
        }
    for region in own.regions:
        assert region.events == teacher.sizes[region.name]
        assert region.nodes == student.nodes[region.name]
        assert region.level == teacher.graph.level[region.name]
        decorrelation = found.regions.get(region.name)
        assert region.decorrelation == (decorrelation and decorrelation.decorrelation.relative)
    first, top = own.levels
    assert (first.regions, first.edges, top.regions, top.edges) == (2, 4, 1, 2)
    of_first = sorted(edge.gaps.weight for edge in own.edges if edge.parent.startswith("1."))
    assert first.gaps.weight == pytest.approx((of_first[1] + of_first[2]) / 2)
    assert first.worst.weight == of_first[3]


def test_full_teachers_are_exact_and_lossy_ones_are_not():
    exact, lossy = ladder("full"), ladder("majority")
    assert exact.worst_recursive < 1e-12  # float64, sums of 16 terms
    assert all(level.explained.weight == pytest.approx(1) for level in exact.levels)
    assert lossy.worst > 0.1
    assert max(level.worst.broadness for level in lossy.levels) > 0.1
    assert str(lossy) == f"{lossy.subject}: {verdict(lossy)}"
    assert "Not exact: ΔW from events alone is off by up to" in str(lossy)


def test_training_is_that_of_the_race():
    told: list[tuple[int, int, str]] = []
    found = ladder("majority", steps=7, lr=0.2, progress=lambda *words: told.append(words)).training
    expected = race(*pair("majority"), 7, 0.2)
    assert found is not None
    for name in ("lr", "steps", "loss_inputs", "loss_events", "loss_carried", "largest", "apart"):
        assert getattr(found, name) == getattr(expected, name)
    assert told[0] == (0, 8, "comparison")
    assert told[-1] == (8, 8, "training")
    assert ladder().training is None


def test_drawn_inputs_are_said_to_be():
    teacher = sample_teacher(tree(4), "xor", count=50, generator=torch.Generator().manual_seed(0))
    student = random_student(teacher.model, 2, generator=torch.Generator().manual_seed(0))
    found = measure_teacher(teacher, student)
    assert (found.sampled, found.inputs) == (True, 50)
    # the same jackknife, asked for each number alone
    assert found.worst_error == standard_error(teacher, student, lambda one: one.worst)
    assert found.worst_recursive_error == pytest.approx(
        standard_error(teacher, student, lambda one: one.worst_recursive), rel=1e-9
    )  # float64: the same squares in another order
    assert found.worst_error > 0


def test_standard_errors_are_left_out_where_they_say_nothing(monkeypatch):
    def errors(summary: str, count: int | None) -> tuple[float | None, float | None]:
        if count is None:
            teacher = enumerate_teacher(tree(4), summary)
        else:
            drawn = torch.Generator().manual_seed(0)
            teacher = sample_teacher(tree(4), summary, count=count, generator=drawn)
        student = random_student(teacher.model, 2, generator=torch.Generator().manual_seed(0))
        found = measure_teacher(teacher, student)
        return found.worst_error, found.worst_recursive_error

    assert errors("majority", None) == (None, None), "every input"
    assert errors("full", 50) == (None, None), "exact"
    assert errors("majority", 19) == (None, None), "fewer inputs than groups"
    assert None not in errors("majority", 20)
    monkeypatch.setattr("obverse.ladder._measure.MOST_WORK", 6 * 50 - 1)
    assert errors("majority", 50) == (None, None), "too much work"


def test_the_progress_of_drawn_inputs_counts_the_groups():
    teacher = sample_teacher(tree(4), "xor", count=50, generator=torch.Generator().manual_seed(0))
    student = random_student(teacher.model, 2, generator=torch.Generator().manual_seed(0))
    told: list[tuple[int, int, str]] = []
    measure_teacher(teacher, student, steps=3, progress=lambda *words: told.append(words))
    assert {total for _, total, _ in told} == {24}
    assert told[1] == (2, 24, "standard errors")
    assert told[20] == (21, 24, "standard errors")
    assert told[-1] == (24, 24, "training")
    assert [done for done, *_ in told] == sorted(done for done, *_ in told)


# The matrices


@pytest.mark.parametrize("graph", [tree(4), windows(5, 2), grid(3, 3, 2, 1)], ids=["tree", "windows", "grid"])
def test_matrices_are_the_first_of_p(graph):
    teacher = enumerate_teacher(graph)
    student = random_student(
        teacher.model,
        2,
        generator=torch.Generator().manual_seed(0),
        targets=torch.ones(teacher.sizes[graph.top], 1).double(),
    )
    found = measure_teacher(teacher, student)
    assert [(one.parent, one.child) for one in found.matrices] == chosen_edges(graph)
    for one in found.matrices:
        dense = teacher.conditional(one.parent, one.child).dense()
        assert one.shape == tuple(dense.shape)
        cut = dense[:LARGEST, :LARGEST]
        assert (torch.tensor(one.rows, dtype=torch.float64) - cut).abs().max() <= ROUNDED
        assert torch.tensor(one.rows).shape == cut.shape


@pytest.mark.parametrize(
    "graph",
    [tree(2), tree(64), windows(40, 2), grid(8, 8), windows(9, 3, 2)],
    ids=lambda one: str(len(one.order)),
)
def test_chosen_edges_are_few_and_of_all_levels(graph):
    chosen = chosen_edges(graph)
    assert len(set(chosen)) == len(chosen) <= MOST_MATRICES
    assert set(chosen) <= set(graph.edges)
    levels = {graph.level[parent] for parent, _ in graph.edges}
    seen = sorted({graph.level[parent] for parent, _ in chosen})
    assert len(seen) == len(levels) if len(levels) <= MOST_MATRICES else len(seen) >= MOST_MATRICES / 2
    assert seen[0] == 1


def test_edges_between_regions_of_the_same_positions_are_not_chosen():
    from obverse.ladder._real import net_graph
    from obverse.nets._local import local

    graph = net_graph(local((1, 8, 8), 3))
    assert {graph.level[parent] for parent, _ in chosen_edges(graph)} == {2, 3}
    alone = net_graph(local((1, 2, 2), 3, ((2, 2),), (2,)))
    assert chosen_edges(alone) == [("1.0.0", "0.0.0"), ("2.0.0", "1.0.0")], "there is no other"


def test_the_middle_of_an_image_is_that_of_its_rows_and_columns():
    graph = grid(9, 9, 3, 3)
    chosen = [child for parent, child in chosen_edges(graph, 9) if graph.level[parent] == 1]
    assert chosen[0] == "0.4.4"
    assert set(chosen[1:5]) == {"0.3.4", "0.5.4", "0.4.3", "0.4.5"}
    in_a_row = [child for parent, child in chosen_edges(graph) if graph.level[parent] == 1]
    assert set(in_a_row[1:3]) == {"0.4.3", "0.4.5"}
    assert set(in_a_row[3:5]) == {"0.4.2", "0.4.6"}, "one row: its neighbours come first"


def test_many_edges_are_cut_and_counted(monkeypatch):
    monkeypatch.setattr("obverse.ladder._measure.MOST_EDGES", 4)
    found = ladder()
    assert (len(found.edges), found.edges_total) == (4, 6)
    assert [edge.parent for edge in found.edges[-2:]] == ["2.0", "2.0"], "those nearest to the top"
    assert sum(level.edges for level in found.levels) == 6


# The file


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("summary", ["full", "majority"])
def test_a_ladder_survives_its_file(tmp_path, summary, steps):
    found = ladder(summary, steps=steps)
    write_result(found, tmp_path / NAME)
    assert read_ladder(tmp_path) == found == read_ladder(tmp_path / NAME)
    assert json.loads(result_text(found))["format"] == 1


def changed(path: str, value: Any) -> str:
    """The text of a ladder with one thing replaced."""
    content = json.loads(result_text(ladder("majority", steps=2)))
    *way, last = path.split(".")
    inner = content
    for step in way:
        inner = inner[int(step) if step.isdigit() else step]
    inner[int(last) if last.isdigit() else last] = value
    return json.dumps(content)


WRONG = [
    ("format", 2, "a ladder of format 1"),
    ("kind", "other", "'teacher' or 'net'"),
    ("seconds", -1, "a time that can be read"),
    ("loss", 1e308, "finite losses"),
    ("inputs", 0, "at least one input"),
    ("worst_error", -1.0, "standard errors"),
    ("worst_recursive_error", 1e301, "standard errors"),
    ("accuracy", 1.5, "an accuracy from 0 to 1"),
    ("levels", [], "from 1 to 200 levels"),
    ("edges", [], "edges and regions"),
    ("edges_total", 5, "at most 2,000 edges"),
    ("edges.0.parent", "nobody", "edges between regions"),
    ("edges.0.child", "2.0", "from a lower level to a higher one"),
    ("edges.0.gaps.weight", 1e301, "finite gaps"),
    ("edges.0.gaps.weight", None, "a number"),
    ("edges.0.explained.weight", 1.5, "shares of at most 1"),
    ("levels.0.decorrelation", 1e301, "finite gaps"),
    ("regions.1.name", "0.0", "names of their own"),
    ("regions.0.level", 10**6, "a level that can be drawn"),
    ("matrices.0.rows.0", [0.5], "rows of the same length"),
    ("matrices.0.rows.0.0", 1.5, "probabilities"),
    ("matrices.0.rows", [], "rows of the same length"),
    ("training.steps", [0, 2, 1], "steps, which ascend"),
    ("training.steps", [-1, 1, 2], "steps, which ascend"),
    ("training.apart", [0.0], "as many of each as steps"),
    ("more", 1, "no fields but"),
]


@pytest.mark.parametrize(
    ("path", "value", "said"), WRONG, ids=[f"{path}={value}" for path, value, _ in WRONG]
)
def test_a_file_that_is_no_ladder_is_refused(tmp_path, path, value, said):
    (tmp_path / NAME).write_text(changed(path, value))
    with pytest.raises(BadInput, match=said):
        read_ladder(tmp_path)


def test_too_many_matrices_are_refused(tmp_path):
    found = ladder()
    many = replace(found, matrices=found.matrices[:1] * (MOST_MATRICES + 1))
    (tmp_path / NAME).write_text(result_text(many))
    with pytest.raises(BadInput, match=f"at most {MOST_MATRICES} matrices"):
        read_ladder(tmp_path)
