"""The page of a memorized data set says what the record says; its figures are where the numbers are."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from identity.sample_memories import hostile, sample_memory
from obverse._core.errors import BadInput
from obverse.app import write_report as build
from obverse.identity._recall import NAME, Recall, read_recall
from obverse.identity._walk import Walk
from obverse.identity._words import command, generalizes, outlook, rows, verdict
from obverse.identity.charts import (
    HEIGHT,
    LENGTH,
    SIDE,
    WIDTH,
    accuracies,
    lipschitz,
    margins,
    parameters,
    walk_panels,
)
from obverse.identity.page import render_recall
from saved import result_text
from weights.test_audit_page import HUGE, ROUNDING, TINY, Reader, extreme, words


@pytest.fixture(scope="module")
def memory() -> Recall:
    return sample_memory()


def walk_of(found: Recall) -> Walk:
    assert found.walk is not None
    return found.walk


def text_of(found: Recall) -> str:
    return words(Reader(render_recall(found)).text)


def with_accuracy(accuracy: float, nearest: float = 0.9) -> Recall:
    return sample_memory(test_points=400, test_accuracy=accuracy, chance=0.1, nearest_accuracy=nearest)


# --- words ---


def test_verdict_counts_the_points() -> None:
    found = sample_memory()
    assert verdict(found) == (
        f"80 of 80 points of noise labelled right (100.00 %) without training: {found.facts.blocks} residual "
        f"blocks of width {found.facts.width}, built and checked on every point in 0.25 seconds."
    )
    wrong = replace(found, facts=replace(found.facts, errors=3, blocks=1))
    assert verdict(wrong).startswith("77 of 80 points of noise labelled right (96.25 %)")
    assert " 1 residual block of width" in verdict(wrong)
    assert verdict(sample_memory("random")).startswith(
        "80 of 80 points of noise, with random labels, labelled right"
    )
    assert verdict(replace(found, data="")).startswith("80 of 80 points of the data labelled right")


@pytest.mark.parametrize(
    ("accuracy", "nearest", "said"),
    [
        # chance 0.1 of 400 inputs has a standard error of 0.015: three of them end at 0.145
        (
            0.05,
            0.9,
            "It does not generalize: 5.0 % of 400 test inputs labelled right, by chance 10.0 ± 1.5 %.",
        ),
        (0.145, 0.9, "It does not generalize: 14.5 %"),
        (
            0.15,
            0.9,
            "It generalizes a little: 15.0 % of 400 test inputs labelled right, by chance 10.0 ± 1.5 %. But "
            "the nearest training point behind the same projection gets 90.0 %: the blocks lose what the "
            "projection knows.",
        ),
        (
            0.85,
            0.9,
            "It generalizes: 85.0 % of 400 test inputs labelled right, by chance 10.0 ± 1.5 %, and the "
            "nearest training point behind the same projection gets 90.0 %.",
        ),
    ],
)
def test_outlook_is_judged_against_chance(accuracy: float, nearest: float, said: str) -> None:
    found = with_accuracy(accuracy, nearest)
    assert outlook(found).startswith(said)
    assert generalizes(found) == said.startswith("It generalizes")


def test_outlook_without_a_test() -> None:
    assert outlook(sample_memory("random")).startswith("Random labels say nothing of other inputs")
    nothing: dict[str, Any] = {"test_accuracy": None, "chance": None, "nearest_accuracy": None}
    assert outlook(sample_memory(test_points=0, **nothing)) == "There are no test inputs."


def test_the_rows_say_what_the_record_says(memory: Recall) -> None:
    facts = memory.facts
    found = {name: (value, meaning) for name, value, meaning in rows(memory)}
    assert (
        found["parameters"][0]
        == f"{facts.parameters:,} = {facts.parameters / facts.budget:.2f}·(n ln n + r²)"
    )
    assert found["blocks × width"][0] == f"{facts.blocks} × {facts.width}"
    assert found["bound of it"][0] == f"10^{memory.log10_bound:.1f}"
    assert found["float32"][0] == "ok"
    refused = replace(memory, float32=None, float32_refused="points too close")
    assert ("float32", "refused", "points too close") in rows(refused)
    assert ("float32", "–", "not checked") in rows(replace(memory, float32=None))
    unknown = replace(memory, facts=replace(facts, gap=None, closest=None))
    assert ("hardest threshold", "–", "its room") in rows(unknown)
    assert facts.closest is not None
    first, second = facts.closest
    assert found["hardest threshold"][1] == f"its room, at point {first} beside point {second}"
    assert "test accuracy" not in {name for name, _, _ in rows(sample_memory("random"))}


def test_the_command_makes_it_again(memory: Recall) -> None:
    assert command(memory) == "obverse memorize noise --out DIR"
    asked = replace(
        memory,
        labels="random",
        asked_points=30,
        asked_width=2,
        dtype="float32",
        seed=4,
        data="a name; rm",
    )
    assert command(asked) == (
        "obverse memorize 'a name; rm' --points 30 --labels random --width 2 --dtype float32 --seed 4 "
        "--out DIR"
    )
    assert "--no-float32" in command(replace(memory, float32=None))
    assert "--no-float32" not in command(replace(memory, float32=None, float32_refused="why"))


def test_everything_is_on_the_page(memory: Recall) -> None:
    text = text_of(memory)
    assert text.index(verdict(memory)) < text.index(outlook(memory)) < text.index("How a block moves")
    for name, value, meaning in rows(memory):
        assert words(f"{name}{value}{meaning}") in text.replace("\n", " ")
    assert command(memory) in text
    assert "with the path of the data in place of its name" in text
    assert "in place of its name" not in text_of(replace(memory, data="digits"))
    assert f"{memory.facts.constant:.2f} times n ln n + r²" in text


# --- the walk ---


def circles(svg: str) -> list[tuple[str, int, float, float, str]]:
    """(kind, class, x, y, number) of every mark."""
    form = (
        r'<circle class="(\w+) class-(\d)" cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+"/>'
        r'<text class="mark" x="[\d.]+" y="[\d.]+">(\d+)</text>'
    )
    return [
        (kind, int(colour), float(x), float(y), number)
        for kind, colour, x, y, number in re.findall(form, svg)
    ]


def test_panels_are_the_start_the_first_block_half_way_and_the_end(memory: Recall) -> None:
    walk = walk_of(memory)
    panels = walk_panels(walk)
    assert [one.title for one in panels] == [
        "before the first block",
        "after block 1",
        "after block 6",
        "at the end",
    ]
    assert len(walk.moved) == 12
    for panel, stage in zip(panels, (0, 1, 6, 12), strict=True):
        kinds = [kind for kind, *_ in circles(panel.svg)]
        assert kinds.count("full") == 2 * stage
        assert kinds.count("open") == 24 - 2 * stage
        assert kinds.count("target") == 4
        assert kinds.count("left") == (2 if stage else 0), "where the last block took its points from"
        assert panel.svg.count('class="answers"') == (2 if stage else 0)
        assert panel.svg.count('class="arrow"') <= (2 if stage else 0)


def test_marks_are_where_the_points_are_and_shading_where_units_answer(memory: Recall) -> None:
    walk = walk_of(memory)
    everything = [*walk.targets, *(point for stage in walk.positions for point in stage)]
    xs, ys = ([point[axis] for point in everything] for axis in (0, 1))
    size = 1.1 * max(max(xs) - min(xs), max(ys) - min(ys))
    left, low = (min(xs) + max(xs) - size) / 2, (min(ys) + max(ys) - size) / 2
    svg = walk_panels(walk)[1].svg
    drawn = {kind: [mark for mark in circles(svg) if mark[0] == kind] for kind in ("open", "full", "left")}
    untouched = [point for point in range(24) if point not in walk.moved[0]]
    for kind, stage, points in (
        ("open", 0, untouched),
        ("open", 1, untouched),
        ("full", 1, sorted(walk.moved[0])),
        ("left", 0, list(walk.moved[0])),
    ):
        for (_, colour, x, y, number), point in zip(drawn[kind], points, strict=True):
            a, b = walk.positions[stage][point]
            assert x == pytest.approx((a - left) / size * SIDE, abs=ROUNDING)
            assert y == pytest.approx(SIDE - (b - low) / size * SIDE, abs=ROUNDING)
            assert (colour, number) == (walk.classes.index(walk.labels[point]), str(walk.labels[point]))
    for d, unit in zip(re.findall(r'class="answers" d="M([^"]*)Z"', svg), walk.units[0], strict=True):
        polygon = [tuple(map(float, corner.split())) for corner in d.split("L")]
        for step in range(41 * 41):  # a grid over the frame, against the sign of the unit
            x, y = SIDE * (step % 41) / 40, SIDE * (step // 41) / 40
            value = unit[0] * (left + x / SIDE * size) + unit[1] * (low + (1 - y / SIDE) * size) + unit[2]
            distance = abs(value) / math.hypot(unit[0], unit[1]) / size * SIDE
            if distance > 2 * ROUNDING and 0 < x < SIDE and 0 < y < SIDE:
                assert inside(polygon, x, y) == (value > 0)


def inside(polygon: list[tuple[float, ...]], x: float, y: float) -> bool:
    """Even or odd: how often a ray to the right meets the border."""
    crossings = 0
    for (ax, ay), (bx, by) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            crossings += 1
    return crossings % 2 == 1


def test_a_walk_of_one_block_and_none(memory: Recall) -> None:
    walk = walk_of(memory)
    short = replace(walk, positions=walk.positions[:2], moved=walk.moved[:1], units=walk.units[:1])
    assert [one.title for one in walk_panels(short)] == ["before the first block", "after block 1"]
    assert "No image: a net of width 2 does not tell these points apart" in text_of(
        replace(memory, walk=None)
    )


# --- the other figures ---


def bars(svg: str) -> dict[str, float]:
    """Length of each bar in pixels, by the words above it."""
    names = re.findall(r'<text class="start"[^>]*>([^<]*)<', svg)
    return dict(
        zip(names, map(float, re.findall(r'<rect class="bar[^>]* width="([\d.]+)"', svg)), strict=True)
    )


def test_bars_are_as_long_as_their_numbers(memory: Recall) -> None:
    facts = memory.facts
    found = bars(parameters(memory))
    n = facts.distinct
    expected = {
        "n, the distinct points": n,
        "n ln n": n * math.log(n),
        "built": facts.parameters,
        "3·(n ln n + r²)": 3 * (n * math.log(n) + facts.classes**2),
        "the projection, not counted": facts.projection,
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(LENGTH * value / max(expected.values()), abs=ROUNDING)
    shown = bars(accuracies(with_accuracy(0.25)))
    assert list(shown.values()) == [75.0, 30.0, 270.0]
    assert accuracies(sample_memory("random")) == ""
    assert "Random labels say nothing" in text_of(sample_memory("random"))


def test_quantiles_ascend_to_where_the_axis_says(memory: Recall) -> None:
    for svg in (margins(memory), lipschitz(memory)):
        (d,) = re.findall(r'class="curve" d="M([^"]*)"', svg)
        points = [tuple(map(float, point.split())) for point in d.split("L")]
        assert len(points) == 9
        assert [x for x, _ in points] == sorted(x for x, _ in points)
        assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
        assert " ".join(re.findall(r"<text x=[^>]*>(\d+)</text>", svg)) == "0 1 5 25 50 75 95 99 100"
    (reference,) = re.findall(r'class="reference" d="M0 ([\d.]+)H', margins(memory))
    (d,) = re.findall(r'class="curve" d="M([^"]*)"', margins(memory))
    # without rounding the smallest margin is the ideal one
    assert float(reference) == pytest.approx(float(d.split("L")[0].split()[1]), abs=2 * ROUNDING)


@pytest.mark.parametrize("number", [HUGE, -HUGE, TINY, 0.0, -1.0])
def test_any_numbers_stay_inside_the_frame(memory: Recall, number: float) -> None:
    walk = walk_of(memory)
    wild = extreme(walk, number)
    safe = replace(wild, labels=walk.labels, classes=walk.classes, moved=walk.moved)
    mixed = replace(safe, targets=walk.targets, units=walk.units)
    for shown in (safe, mixed):
        facts = replace(extreme(memory.facts, number), budget=max(1.0, number), errors=0, points=1)
        found = replace(
            memory,
            walk=shown,
            facts=facts,
            float32=facts,
            lipschitz=(number,) * 9,
            sampled=2**63 - 1,
            test_points=2**63 - 1,
        )
        page = render_recall(found)
        assert not re.search(r"\b(nan|inf)\b", page.split("<main>")[1])
        for panel in walk_panels(shown):
            for _, _, x, y, _ in circles(panel.svg):
                assert 0 <= x <= SIDE
                assert 0 <= y <= SIDE
            for d in re.findall(r'class="(?:answers|arrow)" d="([^"]*)"', panel.svg):
                for x, y in re.findall(r"[ML]([\d.e+-]+) ([\d.e+-]+)", d):
                    assert -1 <= float(x) <= SIDE + 1
                    assert -1 <= float(y) <= SIDE + 1
        for svg in (margins(found), lipschitz(found)):
            for d in re.findall(r' d="([^"]*)"', svg):
                for x, y in re.findall(r"[ML]([\d.e+-]+) ([\d.e+-]+)", d):
                    assert 0 <= float(x) <= WIDTH
                    assert 0 <= float(y) <= HEIGHT
        assert all(0 < length <= LENGTH for length in bars(parameters(found)).values())


# --- the page as a file ---


def test_page_stands_alone(memory: Recall) -> None:
    page = render_recall(memory)
    found = Reader(page)  # asserts that nothing has an on… or style attribute
    assert len(found.ids) == len(set(found.ids))
    assert all(one == "data:," or one[1:] in found.ids for one in found.references)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "script-src" not in rules
    assert render_recall(memory) == page, "the same every time"
    assert len(page) < 60_000


def test_text_from_a_file_is_only_text(memory: Recall, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(result_text(hostile(memory)))
    page = render_recall(read_recall(tmp_path))
    found = Reader(page)
    assert "script" not in found.tags
    assert "b" not in found.tags
    assert "alert(1)" in found.text
    assert "x" * 400 not in found.text
    assert len(found.ids) == len(set(found.ids))


def test_many_classes_repeat_colours_and_keep_their_numbers() -> None:
    found = sample_memory(classes=40)
    marks = [mark for panel in walk_panels(walk_of(found)) for mark in circles(panel.svg)]
    assert {colour for _, colour, *_ in marks} == set(range(7))
    assert {int(number) for *_, number in marks} == set(walk_of(found).classes)
    assert len(walk_of(found).classes) > 7


def test_build_takes_a_directory_or_the_file_itself(memory: Recall, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(result_text(memory))
    assert build(tmp_path) == tmp_path / "memorize.html"
    page = (tmp_path / "memorize.html").read_text(encoding="utf-8")
    assert page == render_recall(memory)
    assert build(tmp_path / NAME, tmp_path / "other.html").read_text(encoding="utf-8") == page
    for name in ("config.json", "audit.json", "claims.json", "shadow.json"):
        (tmp_path / name).write_text('{"format": 7}')  # what else has a page comes first
        with pytest.raises(BadInput, match="format 7"):
            build(tmp_path)
        assert build(tmp_path / NAME) == tmp_path / "memorize.html"
        (tmp_path / name).unlink()


def test_a_broken_file_is_a_sentence(memory: Recall, tmp_path: Path) -> None:
    for content in ("{", "[]", json.dumps({"format": 1})):
        (tmp_path / NAME).write_text(content)
        with pytest.raises(BadInput, match="expected"):
            build(tmp_path)
    assert not (tmp_path / "memorize.html").exists()
