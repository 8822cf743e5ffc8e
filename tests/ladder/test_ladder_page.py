"""The page of a ladder says what the record says; its figures are where the numbers are."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ladder.sample_ladders import hostile, sample_ladder
from obverse._core.errors import BadInput
from obverse.app import write_report as build
from obverse.ladder._words import (
    EDGE_HEADINGS,
    LEVEL_HEADINGS,
    MOST_ROWS,
    command,
    edge_rows,
    gap,
    is_exact,
    level_rows,
    measured_under,
    outlook,
    share,
    training,
    verdict,
)
from obverse.ladder.charts import (
    CELL,
    FEWEST_CELLS,
    HEIGHT,
    LOWEST,
    MOST_DRAWN,
    NARROW,
    SHADES,
    SIDE,
    STOREY,
    WIDTH,
    drawn,
    grade,
    graph_panels,
    matrix,
    sweep_panels,
    training_panels,
)
from obverse.ladder.page import note, render_ladder, table
from obverse.ladder.results import MOST_MATRICES, NAME, Explained, Ladder, Matrix, read_ladder
from saved import result_text
from weights.test_audit_page import HUGE, ROUNDING, TINY, Reader, extreme, words

KINDS = ("exact", "lossy", "broad", "net")


def text_of(found: Ladder) -> str:
    return words(Reader(render_ladder(found)).text)


def told(found: Ladder, *values: float | None, message: str = "weight") -> Ladder:
    """With these shares of ΔW, level by level, wherever they are."""

    def moved(level: Any, value: float | None) -> Any:
        return replace(level, explained=replace(level.explained, **{message: value}))

    levels = tuple(map(moved, found.levels, values))
    measured = tuple(
        one
        if (one.net, one.images, one.shuffled, one.events) != ("trained", "clustered", False, 4)
        else replace(one, levels=levels)
        for one in found.measured
    )
    return replace(found, levels=levels, measured=measured)


# --- words ---


def test_verdict_of_a_teacher() -> None:
    exact, lossy = sample_ladder("exact"), sample_ladder("lossy")
    assert is_exact(exact)
    said = "Exact: on all 6 edges, ΔW from events alone equals ΔW from all 16 inputs, to "
    assert re.fullmatch(rf"{said}\d(\.\d)?·10⁻¹\S of its size\.", verdict(exact))
    assert [line.partition(",")[0] for line in outlook(exact)] == [
        "So here training can be computed and understood from events"
    ]
    assert not is_exact(lossy)
    worst = max(lossy.levels, key=lambda one: one.worst.weight)
    assert verdict(lossy) == (
        f"Not exact: ΔW from events alone is off by up to {worst.worst.weight:.2f} of its size edge by edge "
        f"(level {worst.level}) and by up to {lossy.worst_recursive:.2f} through the whole recursion, "
        "against all 32 inputs."
    )
    use, conditions = outlook(lossy)
    assert use.startswith("So events cannot take the place of the ")
    broadness = max(one.gaps.broadness for one in lossy.edges)
    assert f"roadness (by up to {broadness:.2f})" in conditions
    drawn_inputs = sample_ladder("broad")
    assert "60 drawn inputs" in verdict(drawn_inputs)
    _, conditions = outlook(drawn_inputs)
    assert conditions.endswith("; focus holds, as far as drawn inputs tell.")


def test_focus_stands_beside_chance_where_inputs_were_drawn() -> None:
    found = sample_ladder("broad")
    cells = dict(zip(LEVEL_HEADINGS, level_rows(found)[1], strict=True))
    gaps = found.levels[1].gaps
    assert cells["focus"] == f"{gap(gaps.focus)} ({gap(gaps.focus_chance)})"

    def with_focus(focus: float, chance: float) -> Ladder:
        worst = replace(found.levels[0].worst, focus=focus, focus_chance=chance)
        return replace(found, levels=(replace(found.levels[0], worst=worst), *found.levels[1:]))

    assert "ocus (by up to 0.40)" in outlook(with_focus(0.4, 0.3))[1]
    assert "focus holds, as far as drawn inputs tell" in outlook(with_focus(0.4, 0.38))[1]


def test_exactness_of_drawn_inputs_claims_no_more_than_it_may() -> None:
    found = replace(sample_ladder("exact"), sampled=True)
    assert verdict(found).startswith(
        "Exact by construction (16 events for 16 drawn inputs, nearly one each): on all 6 edges, ΔW from "
        "events alone equals ΔW from these 16 drawn inputs, to "
    )
    assert verdict(replace(found, inputs=1000)).startswith(
        "Exact for these 1,000 inputs, which says nothing of others: on all 6 edges"
    )


def test_exactness_is_what_rounding_leaves_in_so_many_inputs() -> None:
    found = sample_ladder("exact")

    def off(value: float, inputs: int) -> Ladder:
        worst = replace(found.levels[0].worst, weight=value)
        return replace(
            found, inputs=inputs, levels=(replace(found.levels[0], worst=worst), *found.levels[1:])
        )

    assert is_exact(off(0.9e-11, 16))  # ten times 1e-13 √100
    assert not is_exact(off(1.1e-11, 16))
    assert is_exact(off(0.9e-9, 10**6))
    assert not is_exact(off(1.1e-9, 10**6))


def test_standard_errors_stand_beside_what_drawn_inputs_say() -> None:
    found = replace(sample_ladder("broad"), worst_error=0.034, worst_recursive_error=0.2)
    said = verdict(found)
    assert f"by up to {gap(found.worst)} ± 0.03 of its size edge by edge" in said
    assert f"by up to {gap(found.worst_recursive)} ± 0.20 through the whole recursion" in said
    assert "What follows ± above is a standard error" in text_of(found)
    assert "±" not in text_of(sample_ladder("lossy"))


def test_verdict_of_a_net() -> None:
    found = told(told(sample_ladder("net"), 0.957, 0.512, -3.0), 0.002, -0.3, None, message="recursive")
    start = measured_under(found, net="start")
    assert start is not None
    before, recursive = (
        [share(getattr(level.explained, what)) for level in start.levels] for what in ("weight", "recursive")
    )
    assert verdict(found) == (
        "With 4 events a region, edge by edge from true averages, events explain 96 % of ΔW above the pixels "
        f"and 51 % at level 2, and mislead at the top; before training it was {before[0]}, {before[1]} and "
        f"{before[2]} %. Through the whole recursion, which is what Theorems 2 and 4 are about, they explain "
        "nothing above the pixels, mislead at level 2, and have next to nothing to explain at the top; "
        f"before training it was {recursive[0]}, {recursive[1]} and {recursive[2]} %."
    )
    use, behaves, control = outlook(found)
    assert use.startswith("So, edge by edge, at level 1 what training does follows from events; at level")
    assert behaves.startswith(
        "Edge by edge it behaves like the theory at level 1, in part at level 2, not at level 3; through the "
        "recursion like the theory at no level, not at levels 1 and 2. Above level 1 events tell "
    )
    assert control.startswith("Events dealt to the images at random, the control, explain ")
    assert verdict(told(found, 0.1, -0.04, 0.2)).startswith(
        "With 4 events a region, edge by edge from true averages, events explain 10 % of ΔW above the pixels "
        "and 20 % at the top, and explain nothing at level 2; before"
    )
    assert "before training" not in verdict(replace(found, measured=()))
    assert len(outlook(replace(found, measured=()))) == 2


def test_what_is_so_by_construction_is_left_out() -> None:
    found = sample_ladder("net")
    forward, backward = (LEVEL_HEADINGS.index(what) for what in ("forward %", "backward %"))
    rows = level_rows(found)
    assert rows[0][forward] == rows[0][backward] == "–"
    assert "–" not in (rows[1][forward][0], rows[1][backward][0])
    low = replace(found.levels[0].explained, forward=0.011, backward=0.011)
    moved = replace(found, levels=(replace(found.levels[0], explained=low), *found.levels[1:]))
    assert outlook(moved) == outlook(found)
    teacher = level_rows(sample_ladder("exact"))
    assert teacher[0][forward] == "100"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (-3e9, "<0"),
        (-0.006, "<0"),
        (-0.004, "0"),
        (0.004, "0"),
        (0.006, "1"),
        (0.5, "50"),
        (0.984, "98"),
        (0.9951, "99.5"),
        (0.9999999, "99.9"),
        (1.0, "100"),
        (1 - 1e-12, "100"),
    ],
)
def test_shares_are_written_in_percent(value: float | None, text: str) -> None:
    assert share(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (3e-16, "3·10⁻¹⁶"),
        (0.0097, "0.01"),
        (0.004, "0.004"),
        (4e-4, "4·10⁻⁴"),
        (1.29, "1.29"),
    ],
)
def test_gaps_are_written_with_two_digits(value: float | None, text: str) -> None:
    assert gap(value) == text


def test_rows_of_the_levels_hold_the_control_in_brackets() -> None:
    found = sample_ladder("net")
    dealt = measured_under(found, shuffled=True)
    assert dealt is not None
    rows = level_rows(found)
    assert [row[0] for row in rows] == ["1, above the pixels", "2", "3, the top"]
    for row, level, other in zip(rows, found.levels, dealt.levels, strict=True):
        cells = dict(zip(LEVEL_HEADINGS, row, strict=True))
        assert cells["ΔW %"] == f"{share(level.explained.weight)} ({share(other.explained.weight)})"
        assert cells["edges"] == str(level.edges)
        assert cells["focus"] == "–"
        assert cells["broadness"] == gap(level.gaps.broadness)
        assert cells["decorrelation"] == gap(max(level.decorrelation, level.decorrelation_back))
    assert "(" not in "".join(level_rows(sample_ladder("lossy"))[0])


def test_rows_of_the_edges_begin_with_the_worst() -> None:
    for kind in KINDS:
        found = sample_ladder(kind)
        rows = edge_rows(found)
        assert len(rows) == min(MOST_ROWS, len(found.edges))
        values = {f"{edge.child} → {edge.parent}": edge.explained.weight for edge in found.edges}
        shown = [values[row[0]] for row in rows]
        known = [value for value in shown if value is not None]
        assert shown[: len(known)] == known == sorted(known), "those with nothing to explain come last"
        assert all(len(row) == len(EDGE_HEADINGS) for row in rows)


def test_columns_that_say_nothing_are_left_out() -> None:
    assert table(("a", "b", "c"), [("1", "–", "–"), ("2", "–", "3")]) == (
        ["a", "c"],
        [["1", "–"], ["2", "3"]],
    )


def test_the_command_makes_it_again() -> None:
    found = sample_ladder("exact")
    assert command(found) == "obverse ladder --graph tree --leaves 4 --nodes 2 --seed 0 --out DIR"
    net = sample_ladder("net")
    assert command(net) == "obverse ladder --data digits --windows 4/4,2/2 --events 4 --seed 0 --out DIR"
    other = replace(net, subject="a name; rm", settings={"shared": True, "norm": "before"})
    assert command(other) == "obverse ladder --data 'a name; rm' --shared --norm before --out DIR"
    assert "with the path of the data in place of its name" in text_of(other)
    assert "in place of its name" not in text_of(net)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_on_the_page(kind: str) -> None:
    found = sample_ladder(kind)
    text = text_of(found)
    for sentence in [verdict(found), *outlook(found), training(found), command(found)]:
        assert words(sentence.replace("\N{NO-BREAK SPACE}", " ")) in text.replace("\N{NO-BREAK SPACE}", " ")
    assert text.index("Edge by edge") < text.index("Level by level") < text.index("How it was made")
    assert ("More events, better told?" in text) == (kind == "net")
    assert ("Two trainings side by side" in text) == (kind == "lossy")
    for row in table(LEVEL_HEADINGS, level_rows(found))[1]:
        assert words("".join(row)) in text.replace("\n", "")
    assert f"{min(MOST_ROWS, len(found.edges))} of {found.edges_total} edges" in text
    assert "0.25" in text


# --- the graph ---


def lines(svg: str) -> dict[str, list[tuple[float, ...]]]:
    """The lines of each grade, (x, y, x, y) from child to parent."""
    form = r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"'
    return {
        kind: [tuple(map(float, one)) for one in re.findall(form, inner)]
        for kind, inner in re.findall(r'<g class="edge (\w+)">(.*?)</g>', svg)
    }


def test_edges_and_regions_are_named_where_one_points_at_them() -> None:
    found = sample_ladder("net")
    for message, panel in zip(("forward", "backward", "weight"), graph_panels(found), strict=True):
        tips = re.findall(r"<title>([^<]*)</title>", panel.svg)
        expected = []
        for edge in found.edges:
            value = getattr(edge.explained, message)
            text = "next to nothing to explain" if value is None else f"{share(value)} %"
            expected.append(f"{edge.child} → {edge.parent}: {text}")
        expected += [
            f"{one.name}: {one.events} event{'s' if one.events > 1 else ''}" for one in found.regions
        ]
        assert sorted(map(html.unescape, tips)) == sorted(expected)


def test_notes_say_only_what_is_there() -> None:
    net, lossy, broad = (text_of(sample_ladder(kind)) for kind in ("net", "lossy", "broad"))
    assert "in brackets the control" in net
    assert "in brackets" not in text_of(replace(sample_ladder("net"), measured=()))
    assert "in brackets" not in lossy
    assert "by chance in brackets" in broad
    for text in (net, lossy, broad):
        assert "while the sentences above give the largest" in text
        assert "less than 1 % of the square" in text.replace("\N{NO-BREAK SPACE}", " ")
        assert "assumed inside the proof" in text
    assert "functions of the children's events, and these are not" in net
    assert "and these are not" not in lossy
    assert "Batch norm" not in net
    normed = replace(sample_ladder("net"), settings={"norm": "before"})
    assert "folded weights in evaluation mode, not the gradient of the training" in text_of(normed)


def test_edges_are_drawn_between_their_regions_in_the_colour_of_their_share() -> None:
    found = sample_ladder("lossy")
    leaves = [region.name for region in found.regions if region.level == 0]
    x = {name: (at + 0.5) / len(leaves) for at, name in enumerate(leaves)}
    for region in found.regions:
        under = [edge.child for edge in found.edges if edge.parent == region.name]
        if under:
            x[region.name] = sum(x[child] for child in under) / len(under)
    level = {region.name: region.level for region in found.regions}
    height = STOREY * (1 + max(level.values()))

    def place(name: str) -> tuple[float, float]:
        return SIDE + x[name] * (NARROW - SIDE), height - STOREY * (level[name] + 0.5)

    for message, panel in zip(("forward", "backward", "weight"), graph_panels(found), strict=True):
        expected: dict[str, list[tuple[float, ...]]] = {}
        for edge in found.edges:
            kind = grade(getattr(edge.explained, message))
            expected.setdefault(kind, []).append((*place(edge.child), *place(edge.parent)))
        shown = lines(panel.svg)
        assert shown.keys() == expected.keys()
        for kind, own in expected.items():
            left = list(shown[kind])
            for other in own:
                left.remove(next(one for one in left if one == pytest.approx(other, abs=ROUNDING)))
            assert left == []
        assert panel.svg.count("<circle") == len(found.regions)
        assert not panel.broad


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "untold"),
        (-0.01, "misled"),
        (0.0, "poor"),
        (0.49, "poor"),
        (0.5, "fair"),
        (0.89, "fair"),
        (0.9, "good"),
        (1.0, "good"),
    ],
)
def test_grades(value: float | None, kind: str) -> None:
    assert grade(value) == kind


def test_graphs_of_many_regions_are_broad_and_those_of_too_many_cut() -> None:
    found = sample_ladder("broad")
    assert all(panel.broad for panel in graph_panels(found))
    assert drawn(found) == found.edges_total
    assert "edges are drawn" not in text_of(found)
    edge, top = found.edges[0], found.regions[-1]
    leaf = next(region for region in found.regions if region.name == edge.child)
    many = tuple(replace(leaf, name=f"leaf {at}") for at in range(MOST_DRAWN + 50))
    huge = replace(
        found,
        regions=(*many, top),
        edges=tuple(replace(edge, parent=top.name, child=one.name) for one in many),
        edges_total=len(many) + 7,
    )
    assert drawn(huge) == MOST_DRAWN - 1
    assert f"{MOST_DRAWN - 1} of {len(many) + 7} edges are drawn" in text_of(huge)
    assert len(lines(graph_panels(huge)[2].svg)[grade(edge.explained.weight)]) == MOST_DRAWN - 1


# --- the curves ---


def curves(svg: str) -> dict[int, list[tuple[float, float]]]:
    found = re.findall(r'<path class="curve series-(\d)" d="M([^"]*)"', svg)
    return {
        int(colour): [tuple(map(float, point.split())) for point in d.split("L")]
        for colour, d in found  # type: ignore[misc]
    }


def test_sweeps_are_where_the_shares_are() -> None:
    found = sample_ladder("net")
    counts = (2, 4, 8)
    for at, panel in enumerate(sweep_panels(found)):
        shown = curves(panel.svg)
        for colour, key in {
            0: ("trained", "clustered", False),
            1: ("trained", "held out", False),
            2: ("start", "clustered", False),
            6: ("trained", "clustered", True),
        }.items():
            values = {
                one.events: one.levels[at].explained.weight
                for one in found.measured
                if (one.net, one.images, one.shuffled) == key
            }
            for place, (count, (x, y)) in enumerate(zip(counts, shown[colour], strict=True)):
                value = values[count]
                assert value is not None
                assert x == pytest.approx(WIDTH * (place + 0.5) / 3, abs=ROUNDING)
                part = min(max((value - LOWEST) / (1 - LOWEST), 0), 1)
                assert y == pytest.approx(HEIGHT * (1 - part), abs=ROUNDING)
        assert panel.svg.count('class="mark') == 12


def test_trainings_are_where_the_losses_are() -> None:
    run = sample_ladder("lossy").training
    assert run is not None
    losses, apart = training_panels(run)
    shown = curves(losses.svg)
    assert sorted(shown) == [0, 1, 2]
    for colour, values in ((0, run.loss_inputs), (1, run.loss_carried), (2, run.loss_events)):
        xs, ys = zip(*shown[colour], strict=True)
        assert list(xs) == pytest.approx(
            [WIDTH * math.log1p(step) / math.log1p(run.steps[-1]) for step in run.steps], abs=ROUNDING
        )
        order = sorted(range(len(values)), key=values.__getitem__)
        heights = [ys[at] for at in order]
        assert heights == sorted(heights, reverse=True), "higher losses are drawn higher"
    assert len(curves(apart.svg)[0]) == len(run.steps)


# --- the matrices ---


def cells(svg: str) -> dict[tuple[int, int], int]:
    return {
        (int(y) // CELL, int(x) // CELL): int(shade)
        for shade, d in re.findall(r'<path class="shade-(\d)" d="([^"]*)"', svg)
        for x, y in re.findall(r"M(\d+) (\d+)h", d)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_as_dark_as_they_are_likely(kind: str) -> None:
    for one in sample_ladder(kind).matrices:
        shown = cells(matrix(one, 0))
        for row, values in enumerate(one.rows):
            for column, value in enumerate(values):
                assert shown.pop((row, column), 0) == math.ceil(SHADES * value)
        assert shown == {}


def test_few_cells_are_not_blown_up_and_cut_ones_are_said_to_be() -> None:
    small = Matrix("a", "b", (2, 2), ((1.0, 0.0), (0.5, 0.5)))
    assert f'viewBox="0 0 {CELL * FEWEST_CELLS} {2 * CELL}"' in matrix(small, 0)
    assert note(small) == "2 × 2"
    assert note(replace(small, shape=(200, 2))) == "200 × 2, the first 2 × 2"


# --- the page as a file ---


@pytest.mark.parametrize("number", [HUGE, -HUGE, TINY, 0.0, -1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_any_numbers_stay_inside_the_frame(kind: str, number: float) -> None:
    found = sample_ladder(kind)
    wild = replace(
        extreme(found, number),
        accuracy=found.accuracy,
        regions=tuple(replace(extreme(one, number), level=one.level) for one in found.regions),
        levels=tuple(replace(extreme(one, number), level=one.level) for one in found.levels),
        matrices=tuple(replace(one, shape=(2**63 - 1, 1)) for one in found.matrices),
        training=found.training
        and replace(
            extreme(found.training, number),
            steps=(0, *[2**62 + at for at in range(len(found.training.steps) - 1)]),
        ),
    )
    page = render_ladder(wild)
    assert not re.search(r"\b(nan|inf)\b", page.split("<main>")[1])
    panels = [*sweep_panels(wild), *(training_panels(wild.training) if wild.training else [])]
    for panel in panels:
        for points in curves(panel.svg).values():
            assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


@pytest.mark.parametrize("kind", KINDS)
def test_page_stands_alone(kind: str) -> None:
    found = sample_ladder(kind)
    page = render_ladder(found)
    read = Reader(page)  # asserts that nothing has an on… or style attribute
    assert len(read.ids) == len(set(read.ids))
    assert all(one == "data:," or one[1:] in read.ids for one in read.references)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "script-src" not in rules
    assert render_ladder(found) == page, "the same every time"
    assert len(page) < 100_000


@pytest.mark.parametrize("kind", KINDS)
def test_text_from_a_file_is_only_text(kind: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(result_text(hostile(sample_ladder(kind))))
    page = render_ladder(read_ladder(tmp_path))
    found = Reader(page)
    assert "script" not in found.tags
    assert "b" not in found.tags
    assert "alert(1)" in found.text
    assert "x" * 400 not in found.text
    assert len(found.ids) == len(set(found.ids))


def test_the_largest_matrices_make_a_page_of_bounded_size() -> None:
    found = sample_ladder("exact")
    rows = tuple(tuple((row + column + 1) / 64 for column in range(32)) for row in range(32))
    full = replace(found, matrices=(Matrix("a", "b", (99, 99), rows),) * MOST_MATRICES)
    assert len(render_ladder(full)) < 500_000


def test_nothing_to_explain_is_a_page() -> None:
    nothing = Explained(None, None, None, None)
    found = sample_ladder("net")
    empty = replace(
        found,
        levels=tuple(replace(one, explained=nothing) for one in found.levels),
        edges=tuple(replace(one, explained=nothing) for one in found.edges),
        measured=(),
        matrices=(),
    )
    text = text_of(empty)
    assert "they have next to nothing to explain above the pixels, at level 2 and at the top." in text
    assert "Which events go together" not in text


def test_build_takes_a_directory_or_the_file_itself(tmp_path: Path) -> None:
    found = sample_ladder("exact")
    (tmp_path / NAME).write_text(result_text(found))
    assert build(tmp_path) == tmp_path / "ladder.html"
    page = (tmp_path / "ladder.html").read_text(encoding="utf-8")
    assert page == render_ladder(found)
    assert build(tmp_path / NAME, tmp_path / "other.html").read_text(encoding="utf-8") == page
    for name in ("config.json", "audit.json", "claims.json", "shadow.json", "memorize.json"):
        (tmp_path / name).write_text('{"format": 7}')  # what else has a page comes first
        with pytest.raises(BadInput, match="format 7"):
            build(tmp_path)
        assert build(tmp_path / NAME) == tmp_path / "ladder.html"
        (tmp_path / name).unlink()


def test_a_broken_file_is_a_sentence(tmp_path: Path) -> None:
    for content in ("{", "[]", json.dumps({"format": 1})):
        (tmp_path / NAME).write_text(content)
        with pytest.raises(BadInput, match="expected"):
            build(tmp_path)
    assert not (tmp_path / "ladder.html").exists()
