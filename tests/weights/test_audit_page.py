"""The page of an audit says what the audit says; its small multiples are where the numbers are."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

from obverse._core.errors import BadInput
from obverse._core.text import brief, number
from obverse.app import write_report as build
from obverse.present.chart import HEIGHT, WIDTH
from obverse.weights import charts as small
from obverse.weights._against import compare_audits
from obverse.weights._numbers import signed
from obverse.weights.charts import LOG_BELOW, recovery_bars
from obverse.weights.page import changes, model_names, render_audit
from obverse.weights.results import Audit, Direction, Histogram, LayerAudit, Number, write_audit
from weights.sample_audits import (
    audit_of,
    before_training,
    many_layers,
    marchenko_pastur,
    sample_audit,
    sample_layer,
    sample_offsets,
    sample_reversals,
    with_data,
)

ROUNDING = 0.0501  # pixels: coordinates have one decimal


class Reader(HTMLParser):
    """Text, tags, ids and references of a page, and the text of each layer's card."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.cards: list[str] = []
        self.text = ""
        self._inside = ""
        self._in_card = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        for key, value in attrs:
            assert not key.startswith("on"), f"{key} on {tag}"
            assert key != "style"
            if key == "id":
                self.ids.append(value or "")
            if key in ("href", "src", "action", "xlink:href"):
                self.references.append(value or "")
            if key == "aria-labelledby":
                self.references.append(f"#{value}")
            if key == "class" and value == "layer":
                self.cards.append("")
                self._in_card = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self._in_card = self._in_card and tag != "article"

    def handle_data(self, data: str) -> None:
        if self._inside in ("style", "script"):
            return
        self.text += data
        if self._in_card:
            self.cards[-1] += data


def words(text: str) -> str:
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture(scope="module")
def audit() -> Audit:
    return sample_audit()


@pytest.fixture(scope="module")
def page(audit: Audit) -> str:
    return render_audit(audit)


@pytest.fixture(scope="module")
def cards(page: str) -> list[str]:
    return [words(card) for card in Reader(page).cards]


# --- the drawings, read back from their coordinates ------------------------------------------------------


def path_of(svg: str, kind: str) -> str:
    found = re.findall(rf'<path class="{kind}" d="([^"]*)"/>', svg)
    assert len(found) == 1, f"{len(found)} paths of class {kind}"
    return str(found[0])


def bars_of(d: str) -> list[tuple[float, float, float]]:
    """(left, right, y of the top) of the bars that `steps` drew."""
    x, y, bars = float(d[1:].split()[0]), float(HEIGHT), []
    for letter, value in re.findall(r"([HV])([\d.e+-]+)", d):
        if letter == "V":
            y = float(value)
        else:
            bars.append((x, float(value), y))
            x = float(value)
    return bars


def test_the_sample_law_and_the_one_drawn_are_densities() -> None:
    for rows, columns in [(160, 400), (400, 160), (240, 240), (40, 900)]:
        edge = 0.02 * (math.sqrt(rows) + math.sqrt(columns))
        grid = np.linspace(0, 1.01 * edge, 200_001)[1:]
        law = marchenko_pastur(grid, rows, columns, 0.02)
        # the midpoint rule on square-root edges: error of the order of the step
        assert abs(trapezoid(law, grid) - 1) < 1e-4

        layer = sample_layer("w", "normal", (rows, columns), np.random.default_rng(0))
        assert layer.parts is not None
        d = path_of(small.spectrum_plot(layer), "curve")
        points = np.array([[float(part) for part in point.split()] for point in d[1:].split("L")])
        low = max(0.0, 1 - 3 * (1 - abs(math.sqrt(rows) - math.sqrt(columns)) / (edge / 0.02)))
        high = 1.05 * max(1.1, max(layer.values) / layer.parts.upper)
        x = low + points[:, 0] / WIDTH * (high - low)
        y = HEIGHT - points[:, 1]
        expected = marchenko_pastur(x * edge, rows, columns, 0.02) * edge
        inside = (points[:, 0] > points[0, 0] + 2) & (points[:, 0] < points[-1, 0] - 2)  # steep beyond
        assert inside.sum() > 15
        top = 1.3 * expected[inside].max()
        # rounding in y, and in x where the slope is at most 80 pixels in 4; the peak itself is between points
        assert y[inside] == pytest.approx(expected[inside] / top * HEIGHT, abs=22 * ROUNDING)


def test_entry_bars_hold_the_counts(audit: Audit) -> None:
    for layer in audit.layers:
        if layer.entries is None:
            continue
        histogram = layer.entries.histogram
        total, width = sum(histogram.counts), 12 / 60
        drawn = bars_of(path_of(small.entry_histogram(layer.entries), "bars"))
        for index, count in enumerate(histogram.counts):
            middle = (index + 0.5) * WIDTH / 60
            (top,) = [y for left, right, y in drawn if left < middle < right]
            height = min(count / total / width, small.HIGHEST)
            assert HEIGHT - top == pytest.approx(height / small.HIGHEST * HEIGHT, abs=ROUNDING)


def test_normal_curve_is_the_normal_density() -> None:
    d = re.search(r'id="normal" class="curve" d="M([^"]*)"', small.shared())[1]
    for point in d.split("L"):
        x, y = map(float, point.split())
        z = x / WIDTH * 12 - 6
        expected = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / small.HIGHEST * HEIGHT
        # the slope is at most 0.242 / 0.56 · 80 · 12 / 150 = 2.8 pixels a pixel
        assert HEIGHT - y == pytest.approx(expected, abs=3.8 * ROUNDING)


def test_spectrum_bars_are_the_density_of_the_singular_values() -> None:
    rng = np.random.default_rng(3)
    layer = sample_layer("w", "normal", (200, 300), rng)
    assert layer.parts is not None
    drawn = bars_of(path_of(small.spectrum_plot(layer), "bars"))
    area = sum((right - left) * (HEIGHT - y) for left, right, y in drawn)
    law = path_of(small.spectrum_plot(layer), "curve")
    x, y = np.array([[float(part) for part in point.split()] for point in law[1:].split("L")]).T
    # both enclose a share of 1: trapezoids of a concave curve, 33 points, lose about a percent
    assert area == pytest.approx(trapezoid(HEIGHT - y, x), rel=0.02)
    below = sum((right - left) * (HEIGHT - top) for left, right, top in drawn if right <= 75) / area
    high = 1.05 * max(1.1, max(layer.values) / layer.parts.upper)
    edge = max(right for _, right, _ in drawn if right <= 75) / WIDTH * high * layer.parts.upper
    share = np.mean(np.asarray(layer.values) < edge)
    assert below == pytest.approx(share, abs=0.02)  # 200 values: interpolation shifts ranks by 1/200


def test_zero_singular_values_are_drawn_at_zero() -> None:
    layer = sample_layer("w", "normal", (200, 300), np.random.default_rng(3))
    assert layer.parts is not None
    values = (*([0.0] * 100), *layer.values[100:])
    half = replace(layer, values=values)
    left, right, top = bars_of(path_of(small.spectrum_plot(half), "bars"))[0]
    assert left == 0
    assert right < 10
    assert top == 0  # half of all values in one bin: cut at the frame


def test_spikes_are_marked_where_they_are() -> None:
    layer = sample_layer("w", "normal", (160, 400), np.random.default_rng(0))
    assert layer.parts is not None
    upper = layer.parts.upper

    def spiked(*places: float) -> str:
        spikes = tuple(Direction(place * upper, place * upper, place * upper, 1e-9) for place in places)
        return small.spectrum_plot(replace(layer, parts=replace(layer.parts, directions=spikes)))

    assert 'class="spike"' not in spiked()
    marks = [float(x) for x in re.findall(r"M([\d.]+) 80v-26", path_of(spiked(1.3, 1.6), "spike"))]
    assert marks == pytest.approx([1.3 / (1.05 * 1.6) * WIDTH, 1.6 / (1.05 * 1.6) * WIDTH], abs=ROUNDING)
    assert "h14m-6" not in spiked(1.3, 1.6)
    beyond = re.findall(r'<path class="spike" d="([^"]*)"/>', spiked(1.3, 40.0))
    assert [float(x) for x in re.findall(r"M([\d.]+) 80v-26", beyond[0])] == pytest.approx(
        [1.3 / 2.1 * WIDTH], abs=ROUNDING
    )
    assert "h14m-6" in beyond[1]  # the arrow


def boxes(d: str) -> list[float]:
    """Heights, in pixels, of the bars of recovery errors."""
    return [HEIGHT - float(y) for y in re.findall(rf"M[\d.]+ {HEIGHT}V([\d.]+)h", d)]


@pytest.mark.parametrize("columns", [150, 40_000], ids=["linear", "logarithmic"])
def test_recovery_bars_stand_for_the_errors(columns: int) -> None:
    reversal = sample_reversals(160, columns, "correlated")
    svg = recovery_bars(reversal)
    smallest = min(one.shuffled.error.value for one in reversal)
    assert (smallest < LOG_BELOW) == (columns == 40_000)
    decades = math.ceil(-math.log10(smallest)) if smallest < LOG_BELOW else 0

    def height(error: float) -> float:
        share = 1 + math.log10(error) / decades if decades else error
        return min(max(share, 0), 1) * HEIGHT

    for kind, pick in (("bars", "layer"), ("shuffled", "shuffled"), ("gaussian", "gaussian")):
        expected = [height(getattr(one, pick).error.value) for one in reversal]
        assert boxes(path_of(svg, kind)) == pytest.approx(expected, abs=ROUNDING)
    lines = [HEIGHT - float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h", path_of(svg, "curve"))]
    assert lines == pytest.approx([height(one.predicted.error.value) for one in reversal], abs=ROUNDING)
    ends = [
        (float(a), float(b)) for a, b in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", path_of(svg, "whisker"))
    ]
    low, high = ends[-3]  # the layer at the last sparsity
    error = reversal[-1].layer.error
    assert error.spread is not None
    assert HEIGHT - low == pytest.approx(height(error.value - error.spread), abs=ROUNDING)
    assert HEIGHT - high == pytest.approx(height(error.value + error.spread), abs=ROUNDING)
    assert re.findall(r">(\d+)</text>", svg)[-3:] == [f"{one.sparsity:.0f}" for one in reversal]


@pytest.mark.parametrize("sign", [-1, 1])
def test_offsets_are_shown_with_zero_in_the_frame(sign: int) -> None:
    offsets = sample_offsets(sign * np.random.default_rng(0).normal(0.1, 0.018, 160))
    svg = small.offset_histogram(offsets, number(offsets.mean))
    drawn = bars_of(path_of(svg, "bars"))
    low, high = min(0.0, offsets.histogram.edges[0]), max(0.0, offsets.histogram.edges[-1])
    for place, edge in ((drawn[0][0], 0), (drawn[-1][1], -1)):
        expected = (offsets.histogram.edges[edge] - low) / (high - low) * WIDTH
        assert place == pytest.approx(expected, abs=ROUNDING)
    assert number(offsets.mean) in svg


# --- what the page says ----------------------------------------------------------------------------------


def test_every_layer_has_its_row(audit: Audit, page: str, cards: list[str]) -> None:
    assert len(cards) == len(audit.layers)
    for layer, card in zip(audit.layers, cards, strict=True):
        assert card.startswith(layer.name)
        assert f"{layer.rows} × {layer.columns} · {layer.kind}" in card
        assert layer.verdict in card
        assert layer.sentence in card
        assert all(finding.sentence in card for finding in layer.findings)
    assert words(audit.summary) in words(Reader(page).text)


def test_key_numbers_stand_below_the_pictures(audit: Audit, cards: list[str]) -> None:
    for layer, card in zip(audit.layers, cards, strict=True):
        if layer.entries is None or layer.parts is None or layer.ratio is None:
            assert "KS distance" not in card
            continue
        keys = card.split("All findings")[0]
        assert f"KS distance{number(layer.entries.ks.value)}" in keys
        assert f"kurtosis{number(layer.entries.kurtosis.value)}" in keys
        assert f"best law{layer.entries.best_law}" in keys
        assert f"bulk, off by{number(layer.parts.distance.excess)}" in keys
        assert f"directions{layer.parts.rank}" in keys
        assert f"random share{number(100 * layer.random_share.value)} %" in keys
        for side in layer.correlations:
            assert f"{side.side}, rms{number(side.rms.value)}" in keys
        worst = max(
            (one for one in layer.reversal if one.source == "random"), key=lambda one: one.ratio.value
        )
        assert f"÷ shuffled{number(layer.ratio.value)}" in keys
        assert f"{number(worst.interval[0])}–{number(worst.interval[1])}" in keys
        assert ("Biasesnone" in keys.replace(" ", "")) == (layer.offsets is None)


def numbers_in(value: Any) -> Iterator[Number]:
    if isinstance(value, Number):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from numbers_in(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from numbers_in(item)


def test_details_hold_every_number_with_its_null_and_spread(audit: Audit, cards: list[str]) -> None:
    layer = sample_layer("w", "correlated", (160, 400), np.random.default_rng(0))
    assert layer.entries is not None
    (card,) = Reader(render_audit(audit_of([layer], "m"))).cards
    details = words(card).split("All findings")[1]
    found = list(numbers_in(layer))
    assert len(found) > 40
    for one in found:
        assert number(one.value) in details
        if one.null is not None:
            assert brief(one.null) in details
        if one.spread is not None:
            assert brief(one.spread) in details
    thresholds = audit.thresholds
    for label, size in {
        "<th>skew<": layer.entries.matters_from["skew"],
        "<th>excess kurtosis<": layer.entries.matters_from["kurtosis"],
        "mean of entries": layer.entries.matters_from["mean"] * layer.entries.scale.value,
        "cosines of rows, rms × √length": 1 + thresholds["correlation"],
        "recovery error, layer ÷ shuffled (surely worst)": thresholds["recovery_ratio"],
    }.items():
        row = next(one for one in re.findall(r"<tr>.*", render_audit(audit_of([layer], "m"))) if label in one)
        assert row.endswith(f"<td>{brief(size)}")


def test_recovery_on_data_and_its_conditions_are_told() -> None:
    layer = with_data(sample_layer("w", "normal", (160, 400), np.random.default_rng(0)))
    layer = replace(layer, reversal=(*layer.reversal[:-1], replace(layer.reversal[-1], dense_enough=False)))
    card = words(Reader(render_audit(audit_of([layer], "m"))).cards[0])
    assert "data, 37.4" in card
    assert "k < t < k²" in card
    assert "t ≥ k²" in card


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0123456, "0.0123"),
        (1.0, "1.00"),
        (-0.5, "−0.500"),
        (99.96, "100"),
        (999.6, "1,000"),
        (12345.6, "12,346"),
        (3.2e-5, "3.2·10⁻⁵"),
        (-1e-12, "−1·10⁻¹²"),
        (0.00099999, "0.00100"),
        (2.5e9, "2.5·10⁹"),
        (7, "7"),
        (math.inf, "∞"),
        (math.nan, "—"),
    ],
)
def test_numbers_are_written_as_a_person_would(value: float, text: str) -> None:
    assert number(value) == text


def test_chosen_numbers_lose_their_zeros_and_changes_keep_their_sign() -> None:
    assert [brief(one) for one in (0.02, 5.0, 400.0, 4096.0, 1e-7)] == ["0.02", "5", "400", "4,096", "1·10⁻⁷"]
    assert [signed(one) for one in (0.5, -0.5, 0.0)] == ["+0.500", "−0.500", "0"]


def test_interval_belongs_to_the_worst_ratio() -> None:
    layer = sample_layer("w", "normal", (160, 400), np.random.default_rng(0))
    middle = replace(layer.reversal[1], ratio=Number(1.4, 0.03), interval=(1.34, 1.46))
    layer = replace(layer, reversal=(layer.reversal[0], middle, *layer.reversal[2:]))
    keys = words(Reader(render_audit(audit_of([layer], "m"))).cards[0]).split("All findings")[0]
    assert "÷ shuffled1.4095 %1.34–1.46" in keys


def test_layers_that_are_not_judged_are_listed_without_pictures(audit: Audit, page: str) -> None:
    tiny = audit.layers[-1]
    card = page.split(f">{tiny.name}</h3>")[1].split("</article>")[0]
    assert tiny.sentence in card
    assert "<svg" not in card
    assert "<details" not in card


def test_audit_without_layers_is_a_page() -> None:
    assert "This audit holds no layers" in render_audit(audit_of([], ""))
    assert "What in this net is signal, and what is random?" in render_audit(audit_of([], ""))


def test_folders_are_named_only_to_tell_nets_apart() -> None:
    assert model_names("/home/somebody/runs/first", "") == ("first", "another net")
    assert model_names("a/model.pt", "b/model.pt") == ("a/model.pt", "b/model.pt")
    assert model_names("runs/first", "runs/first before training") == ("first", "first before training")


# --- two nets --------------------------------------------------------------------------------------------


def test_comparison_shows_both_numbers_and_the_change(audit: Audit) -> None:
    other = before_training(audit)
    cards = [words(card) for card in Reader(render_audit(audit, other)).cards]
    twins = {layer.name: layer for layer in other.layers}
    for layer, card in zip(audit.layers, cards, strict=True):
        twin = twins.get(layer.name)
        if twin is None:
            assert "only in tuned" in card
            continue
        if layer.entries is None or twin.entries is None or layer.parts is None or twin.parts is None:
            continue
        a, b = layer.entries.kurtosis.value, twin.entries.kurtosis.value
        assert f"kurtosis{number(a)}base {number(b)} ({signed(a - b)})" in card
        if layer.verdict != twin.verdict:
            assert f"in base: {twin.verdict}" in card
        else:
            assert "same in base" in card
        change = layer.parts.distance.value - twin.parts.distance.value
        assert f"{signed(change)}" in card


def test_clear_changes_get_a_mark() -> None:
    layer = sample_layer("w", "normal", (160, 400), np.random.default_rng(0))
    assert layer.ratio is not None

    def page_with(ratio: float) -> str:
        changed = replace(layer, reversal=sample_reversals(160, 400, "normal", ratio))
        return words(Reader(render_audit(audit_of([changed], "a"), audit_of([layer], "b"))).cards[0])

    # the standard error of each ratio is 0.03, so that of their difference is 0.042
    assert f"{signed(1.03 - 1.01)})" in page_with(1.03)
    assert f"{signed(1.41 - 1.01)}*)" in page_with(1.41)


def test_comparison_draws_the_second_net_as_an_outline(audit: Audit) -> None:
    other = before_training(audit)
    assert 'class="other"' not in render_audit(audit).split("</header>")[1]
    card = render_audit(audit, other).split(f">{audit.layers[1].name}</h3>")[1].split("</article>")[0]
    assert card.count('class="other"') == 6  # parts, spectrum, entries, offsets, cosines, recovery
    assert card.count('class="other dots"') == 1


def test_recovery_is_compared_at_the_same_sparsity_and_source() -> None:
    layer = with_data(sample_layer("w", "normal", (160, 400), np.random.default_rng(0)))
    errors = (0.111, 0.222, 0.333, 0.444)
    there = tuple(
        replace(
            one, layer=replace(one.layer, error=Number(error)), sparsity=one.sparsity + (one.source == "data")
        )
        for one, error in zip(layer.reversal, errors, strict=True)
    )
    other = replace(layer, reversal=there[::-1])
    page = render_audit(audit_of([layer], "a"), audit_of([other], "b"))
    assert "<tr><th>in base, error: layer<td>0.111<td>0.222<td>0.333<td>0.444" in page
    elsewhere = replace(other, reversal=tuple(replace(one, sparsity=7.0) for one in there[:3]))
    page = render_audit(audit_of([layer], "a"), audit_of([elsewhere], "b"))
    assert "<tr><th>in base, error: layer<td>—<td>—<td>—<td>—" in page


def test_changed_verdicts_are_told_in_words(audit: Audit) -> None:
    before = before_training(audit)
    said = changes(compare_audits(before, audit))
    assert said[0] == "Of 8 layers that both have, 3 got another verdict in tuned than in base."
    assert f"Untouched in base, signal in a random bulk in tuned: {audit.layers[2].name}." in said
    assert f"Untouched in base, mostly signal in tuned: {audit.layers[4].name}." in said
    assert f"Untouched in base, structured otherwise in tuned: {audit.layers[5].name}." in said
    assert f"Only in tuned: {audit.layers[-2].name}." in said
    assert "Only in base: head.weight." in said
    assert all(one in words(Reader(render_audit(audit, before)).text) for one in map(words, said))

    same = changes(compare_audits(audit, audit))
    assert same == ["Layers that both have: 9, each with the same verdict in tuned as in base."]
    none = changes(compare_audits(audit_of([before.layers[-2]], "b"), audit_of([audit.layers[0]], "a")))
    assert none[0].startswith("No layer of tuned has the name of a layer of base")
    stricter = replace(audit, thresholds=audit.thresholds | {"recovery_ratio": 1.5})
    assert "judged by different thresholds: recovery_ratio" in changes(compare_audits(audit, stricter))[-1]


def test_many_changes_are_counted_not_listed() -> None:
    audit = many_layers(90)
    before = replace(audit, layers=tuple(replace(one, verdict="not judged") for one in audit.layers))
    said = " ".join(changes(compare_audits(before, audit)))
    assert "and 30 more" in said
    assert len(said) < 3000


# --- strangers' files ------------------------------------------------------------------------------------

ATTACK = "</style></title></svg></table><script>alert(1)</script><b onclick=alert(2)>'\"" + "x" * 5000


def hostile(layer: LayerAudit) -> LayerAudit:
    assert layer.entries is not None
    entries = replace(layer.entries, best_law=ATTACK, likelihoods={ATTACK: 1.0})
    findings = tuple(replace(one, sentence=ATTACK) for one in layer.findings)
    return replace(layer, name=ATTACK, kind=ATTACK, sentence=ATTACK, findings=findings, entries=entries)


@pytest.mark.parametrize("compared", [False, True])
def test_text_from_a_file_is_only_text(audit: Audit, compared: bool) -> None:
    layer = hostile(audit.layers[0])
    bad = replace(
        audit,
        model=ATTACK,
        layers=(layer,),
        thresholds={ATTACK: 1.0},
        settings={ATTACK: [ATTACK]},
        versions={ATTACK: ATTACK},
    )
    other = replace(bad, layers=(replace(layer, verdict="not judged"),))
    lonely = replace(bad, layers=(replace(layer, name=ATTACK[1:]),))
    for page in [render_audit(bad, other), render_audit(bad, lonely)] if compared else [render_audit(bad)]:
        found = Reader(page)  # asserts that nothing has an on… or style attribute
        assert found.tags.count("script") == 1
        assert "b" not in found.tags
        assert "alert(2)" in found.text
        assert "x" * 600 not in found.text
        assert len(page) < 120_000


HUGE, TINY = 1.7e308, 5e-324


def extreme(value: Any, number: float) -> Any:
    """The same record with every float replaced, and whole numbers by the largest that a file may hold."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{one.name: extreme(getattr(value, one.name), number) for one in fields(value)})
    if isinstance(value, tuple):
        return tuple(extreme(item, number) for item in value)
    if isinstance(value, dict):
        return {key: extreme(item, number) for key, item in value.items()}
    if isinstance(value, float):
        return number
    if isinstance(value, int) and not isinstance(value, bool):
        return 2**63 - 1
    return value


@pytest.mark.parametrize("number", [HUGE, -HUGE, TINY, 0.0, -1.0])
def test_any_numbers_stay_inside_the_frame(audit: Audit, number: float) -> None:
    layers = [extreme(layer, number) for layer in audit.layers[:3]]
    page = render_audit(audit_of(layers, "m"), audit_of(list(audit.layers[:3]), "n"))
    assert not re.search(r"\b(nan|inf)\b", page.split("<main>")[1].split("<script>")[0])
    for d in re.findall(r' d="([^"]*)"', page.split('id="layers"')[1]):
        for x, y in re.findall(r"[ML]([\d.e+-]+) ([\d.e+-]+)", d):
            assert 0 <= float(x) <= WIDTH
            assert 0 <= float(y) <= HEIGHT
        assert all(0 <= float(x) <= WIDTH for x in re.findall(r"H([\d.e+-]+)", d))
        assert all(0 <= float(y) <= HEIGHT for y in re.findall(r"V([\d.e+-]+)", d))


def test_empty_records_draw_nothing_and_break_nothing(audit: Audit) -> None:
    layer = audit.layers[0]
    assert layer.entries is not None
    assert layer.offsets is not None
    assert layer.parts is not None
    nothing = Histogram((0.0,), ())
    bare = replace(
        layer,
        entries=replace(layer.entries, histogram=nothing, quantiles=(), likelihoods={}, matters_from={}),
        offsets=replace(layer.offsets, histogram=nothing),
        parts=replace(layer.parts, upper=0.0),
        values=(),
        correlations=tuple(replace(one, histogram=nothing) for one in layer.correlations),
    )
    flat = replace(bare, offsets=replace(layer.offsets, histogram=Histogram((1.0, 1.0), (3,))), reversal=())
    only = LayerAudit("w", "linear", 50, 50, "untouched", "untouched")
    for one in (bare, flat, only):
        page = render_audit(replace(audit_of([one], "m"), thresholds={}), audit_of([layer], "n"))
        assert page.count("<article") == 1


# --- the page as a file ----------------------------------------------------------------------------------


def test_page_stands_alone_and_runs_only_its_own_script(page: str) -> None:
    found = Reader(page)
    assert len(found.ids) == len(set(found.ids))
    assert all(one == "data:," or one[1:] in found.ids for one in found.references)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert "<!--" not in script


def test_page_is_the_same_every_time(audit: Audit, page: str) -> None:
    assert render_audit(audit) == page


@pytest.mark.parametrize("compared", [False, True])
def test_two_hundred_layers_are_quick_and_small(compared: bool) -> None:
    audit = many_layers(200)
    other = many_layers(200, "before", seed=1) if compared else None
    started = time.process_time()  # not the clock's: other tests may share the core
    page = render_audit(audit, other)
    assert time.process_time() - started < 5  # the bar; about 0.5 s, and 0.7 s for two nets
    assert len(page.encode()) < 3_000_000


def test_glossary_defines_the_words_of_the_page(page: str) -> None:
    glossary = page.split('id="glossary"')[1]
    for term in (
        "Marchenko–Pastur law, quarter circle",
        "Signal, direction",
        "Profile",
        "Bulk",
        "Random share",
        "Shuffled control",
        "Recovery error",
        "Reversibility",
        "Effect size",
        "Null",
    ):
        assert f"<dt>{term}</dt>" in glossary


def test_build_takes_a_directory_or_the_file_itself(audit: Audit, page: str, tmp_path: Path) -> None:
    write_audit(audit, tmp_path / "audit.json")
    assert build(tmp_path) == tmp_path / "audit.html"
    assert (tmp_path / "audit.html").read_text() == page
    assert build(tmp_path / "audit.json", tmp_path / "other.html").read_text() == page
    (tmp_path / "pages").mkdir()
    assert build(tmp_path / "audit.json", tmp_path / "pages") == tmp_path / "pages" / "audit.html"
    with pytest.raises(BadInput, match="make it first"):
        build(tmp_path, tmp_path / "nowhere" / "page.html")
    write_audit(before_training(audit), tmp_path / "against.json")
    assert "another verdict in tuned than in base" in build(tmp_path).read_text()


def test_run_directory_keeps_its_own_page(audit: Audit, tmp_path: Path) -> None:
    write_audit(audit, tmp_path / "audit.json")
    (tmp_path / "config.json").write_text('{"format": 7}')  # no sound run, but a run
    with pytest.raises(BadInput, match="format 7"):
        build(tmp_path)
    assert build(tmp_path / "audit.json") == tmp_path / "audit.html"


def test_broken_audit_is_a_sentence(audit: Audit, tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{")
    with pytest.raises(BadInput, match="in JSON"):
        build(tmp_path)
    (tmp_path / "audit.json").write_text(json.dumps({"format": 2, "layers": []}))
    with pytest.raises(BadInput, match="the field"):
        build(tmp_path)
    assert not (tmp_path / "audit.html").exists()
