"""Every kind of result shows itself: it draws, in light and dark and with any text in it, and is escaped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from torch import nn

import obverse
from identity.sample_memories import sample_memory
from obverse import BadInput, MissingExtra, Shadow
from obverse._core import Record, Result, seed_global
from obverse.identity import factorize
from obverse.ladder import compare, enumerate_teacher, random_student, tree
from obverse.present import registry
from obverse.shadow import recovery
from obverse.training import Comparison, RunRecord, Settings
from obverse.training._compare import Row
from obverse.weights import Lineage, decompose
from obverse.weights._difference.results import LayerLineage
from test_results import MAKERS, ROOMS
from weights.sample_audits import sample_audit

ATTACK = '</td></table><script>alert(1)</script><b onclick="alert(2)">\x1b[2J\u202e $x^{$ é漢🙂' + "x" * 300


@dataclass(frozen=True)
class Own(Record):
    value: float


def small_net() -> Shadow:
    return Shadow(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 4)))


def calibration() -> Any:
    return small_net().calibrate(torch.rand(40, 6))


def compared_ladder() -> Any:
    teacher = enumerate_teacher(tree(4), "majority")
    return compare(teacher, random_student(teacher.model, 3))


def variants() -> Comparison:
    row = Row("backprop", 3, 0.05, 0.002, 0.4, 0.02, 0.6, None, None, None, 1.0)
    other = replace(
        row, variant="shadow", test_error=0.04, difference=-0.01, difference_se=0.003, p_value=0.04
    )
    return Comparison((row, other))


def run() -> RunRecord:
    metrics = tuple({"epoch": at, "test_error": 0.9 / (at + 1), "shadow_error": 0.8} for at in range(5))
    return RunRecord(Path("runs/first"), Settings(), {}, metrics)


def fitted() -> Any:
    net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
    return Shadow(net, reverse="fitted").calibrate(torch.rand(60, 6))


SAMPLES: dict[str, Callable[[], Any]] = {
    **MAKERS,
    "shadow.Calibration": calibration,
    "shadow.Calibration of a fitted reverse": fitted,
    "shadow.LayerCalibration": lambda: calibration().layers[0],
    "shadow.Recovery": lambda: recovery(small_net(), torch.rand(5, 6)),
    "weights.Lineage": lambda: Lineage(0.001, (LayerLineage("a", 40, 0.3, 0.001),), 0.01, 999),
    "weights.Parts": lambda: decompose(torch.randn(40, 60)),
    "identity.Recall": sample_memory,
    "identity.Factorization": lambda: factorize(2 * torch.eye(2, dtype=torch.float64), 3),
    "ladder.Comparison": compared_ladder,
    "training.Comparison": variants,
    "training.RunRecord": run,
}


@cache
def sample(name: str) -> Any:
    seed_global(0)
    return SAMPLES[name]()


def test_every_public_result_has_a_sample_and_a_look():
    found = [
        (f"{room}.{name}", value)
        for room in ROOMS
        for name in import_module(f"obverse.{room}").__all__
        if isinstance(value := getattr(import_module(f"obverse.{room}"), name), type)
        and issubclass(value, Result)
    ]
    assert {name for name, _ in found} <= SAMPLES.keys()
    assert [name for name, kind in found if registry.look_of(kind) is None] == []


# --- results nobody would make, and somebody may read from a file ---


def sound(value: Any) -> bool:
    try:
        return all(holds(value) for _, holds in getattr(value, "checks", ())) and bool(str(value))
    except (IndexError, KeyError, ZeroDivisionError, ValueError, TypeError):
        return False


def changed(value: Any, change: Callable[[Any, Any], Any]) -> Any:
    """A dataclass with each field put through `change(value, hint)` where its checks still hold."""
    if isinstance(value, tuple):
        return tuple(changed(item, change) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    hints = get_type_hints(type(value))
    for field in fields(value):
        inner = changed(getattr(value, field.name), change)
        for new in (change(inner, hints[field.name]), inner):
            try:
                candidate = replace(value, **{field.name: new})
            except (BadInput, KeyError):
                continue
            if sound(candidate):
                value = candidate
                break
    return value


def is_list(hint: Any) -> bool:
    return get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis


def emptied(value: Any, hint: Any) -> Any:
    """No list of results or names holds anything, and what may be missing is."""
    if is_list(hint) and all(isinstance(item, str) or is_dataclass(item) for item in value):
        return ()
    return None if type(None) in get_args(hint) else value


def attacked(value: Any, hint: Any) -> Any:
    """Every text is an attack, and the lists of results have 45 items."""
    if hint is str:
        return ATTACK
    if isinstance(value, dict):
        return {
            f"{name} {ATTACK}" if isinstance(name, str) else name: ATTACK if isinstance(item, str) else item
            for name, item in value.items()
        }
    if is_list(hint) and value and is_dataclass(value[0]):
        return (value * 45)[:45]
    return tuple(ATTACK for _ in value) if hint == tuple[str, ...] else value


def tick_labels(figure: Figure) -> Iterator[tuple[Any, list[Text]]]:
    """Each axis with the labels that are drawn: matplotlib keeps others, outside the limits."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            ticks = axis._update_ticks()
            yield axis, [one.label1 for one in ticks if one.label1.get_visible() and one.label1.get_text()]


def texts(figure: Figure) -> Iterator[Text]:
    ticks = [one for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for one in axis.findobj(Text)]
    labels = {axes_axis.label for axes in figure.axes for axes_axis in (axes.xaxis, axes.yaxis)}
    for one in {*figure.findobj(Text)} - {*ticks} | labels:
        if one.get_visible() and one.get_text().strip():
            yield one
    for _, drawn in tick_labels(figure):
        yield from drawn


def check_figure(figure: Figure) -> None:
    """No text is cut off at the border, and no two labels of an axis lie on each other."""
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for text in texts(figure):
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, (text.get_text(), box, (width, height))
    for axis, shown in tick_labels(figure):
        upright = axis.axis_name == "y"
        boxes = [label.get_window_extent() for label in shown]
        ends = sorted((box.y0, box.y1) if upright else (box.x0, box.x1) for box in boxes)
        turned = any(label.get_rotation() for label in shown)
        for (_, end), (start, _) in pairwise(ends):
            assert turned or start >= end - 2, [label.get_text() for label in shown]


class Tags(HTMLParser):
    """The elements of a text, all of them closed."""

    VOID = ("br", "hr", "img", "meta")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_html(text: str) -> None:
    parser = Tags()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert parser.seen <= {"div", "style", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert parser.attributes <= {"class"}
    assert "prefers-color-scheme: dark" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text) < 25_000


SLOW = ("as it is", "empty")  # attacks find most of what these do


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kind", [*(pytest.param(it, marks=pytest.mark.slow) for it in SLOW), "attacked"])
def test_a_result_draws_and_is_escaped(name, kind):
    value = sample(name)
    if kind != "as it is":
        value = changed(value, emptied if kind == "empty" else attacked)
    figure = value.plot(dark=kind == "empty")
    check_figure(figure)
    check_html(value._repr_html_())
    assert max(figure.get_size_inches()) <= 60
    if kind == "as it is":  # what is measured is drawn
        assert any(axes.has_data() for axes in figure.axes)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_result_is_a_table(name):
    value = sample(name)
    frame = value.to_frame()
    assert len(frame) >= 1
    assert len(set(frame.columns)) == len(frame.columns) >= 1
    assert changed(value, emptied).to_frame() is not None


# --- how one calls it ---


def test_axes_of_ones_own_are_drawn_into_and_given_back():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert sample("shadow.Survey").plot(left, "cosine", title="mine") is left
    assert left.get_title() == "mine"
    assert left.get_ylabel() == "cosine of input and shadow"
    assert left.lines
    assert not right.lines
    right.set_facecolor("black")
    sample("shadow.Survey").plot(right)
    assert left.lines[0].get_color() != right.lines[0].get_color()  # those for a dark page


def test_figures_are_chosen_by_name_and_sized():
    found = sample("training.SearchResult")
    one = found.plot(what="history", figsize=(3, 2), dpi=50, title="a search")
    assert tuple(one.get_size_inches()) == (3, 2)
    assert one.dpi == 50
    assert len(one.axes) == 1
    assert one.get_suptitle() == "a search"
    assert len(found.plot(what=["curves", "history"]).axes) == 2
    assert len(found.plot().axes) == 3


def test_options_of_a_figure_reach_it():
    audit = sample_audit()
    names = [
        [label.get_text() for label in audit.plot(sort=sort).axes[0].get_yticklabels()] for sort in (0, 1)
    ]
    assert sorted(names[0]) == sorted(names[1])
    assert names[0] != names[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "pie"}, "expected what as 'agreement', 'error' and 'cosine'; got 'pie'"),
        ({"what": []}, "got nothing"),
        ({"colour": "red"}, "dark; got 'colour'"),
    ],
)
def test_a_wrong_option_is_answered_with_the_right_ones(options, said):
    with pytest.raises(BadInput) as caught:
        sample("shadow.Survey").plot(**options)
    assert said in str(caught.value)


def test_ax_and_the_size_of_a_new_figure_exclude_each_other():
    axes = Figure().subplots()
    with pytest.raises(BadInput, match="figsize for a new figure"):
        sample("shadow.Survey").plot(axes, figsize=(3, 3))
    with pytest.raises(BadInput, match="one figure for one ax"):
        sample("shadow.Survey").plot(axes, ["cosine", "error"])


def test_a_result_without_a_figure_says_so_and_has_a_table_all_the_same():
    part = sample("weights.Audit").layers[0].parts.random_share
    with pytest.raises(BadInput, match="a result that has a figure; got Interval"):
        part.plot()
    assert "<td" in part._repr_html_()
    assert list(part.to_frame().columns) == ["value", "low", "high"]


def test_a_result_of_ones_own_has_a_table():
    assert '<td class="n">0.250</td>' in Own(0.25)._repr_html_()


def test_a_figure_shows_itself_in_a_notebook_without_pyplot():
    figure = sample("weights.Number").plot(dpi=50)
    png, size = figure._repr_png_()
    assert Image.open(BytesIO(png)).size == (2 * size["width"], 2 * size["height"])


def test_plot_needs_no_display_and_leaves_pyplot_alone():
    code = (
        "import sys\n"
        "from obverse.weights import Number\n"
        "found = Number(1.0, 0.1)\n"
        "assert 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules\n"
        "found._repr_html_()\n"
        "assert 'matplotlib' not in sys.modules and 'pandas' not in sys.modules\n"
        "found.plot().savefig('/dev/null', format='png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


def test_styles_of_others_are_left_as_they_were():
    from matplotlib import rcParams

    before = dict(rcParams)
    sample("weights.Number").plot()
    sample("weights.Number").plot(Figure().subplots())
    assert dict(rcParams) == before


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name in ("weights.Audit", "shadow.Survey"):
        with pytest.raises(MissingExtra, match=r"pip install 'obverse\[notebook\]'"):
            sample(name).to_frame()


def test_tab_completion_shows_public_names_only():
    names = [name for name in dir(sample("weights.Audit")) if not name.startswith("_")]
    assert {"plot", "to_frame", "to_dict", "layers", "summary"} <= set(names)
    assert not {"checks", "renamed", "derived"} & set(names)
    for module in (obverse, *(import_module(f"obverse.{room}") for room in ROOMS)):
        shown = [name for name in dir(module) if not name.startswith("_")]
        assert shown == sorted(module.__all__), module.__name__
