"""The page of a diversity test says what the record says; figures and pictures are where the numbers are."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from diversity.sample_diversity import ATTACK, hostile, measured, sample_diversity
from obverse._core.errors import BadInput
from obverse._core.text import FIXED
from obverse.app import write_report as build
from obverse.diversity._birthday import Birthday
from obverse.diversity._measure import Pictures, assess
from obverse.diversity._numbers import about, chance, down_to, times, up_to
from obverse.diversity._verdict import copying, levels, notices, outlook, verdict
from obverse.diversity._words import (
    birthday_rows,
    command,
    memorization_rows,
    quality_rows,
    rows,
    skipped,
    smoothness_rows,
)
from obverse.diversity.charts import (
    FOLDER,
    LENGTH,
    LONGEST,
    ROW,
    Line,
    lines,
    read_pictures,
    shown,
    write_pictures,
)
from obverse.diversity.charts import NAME as LIST
from obverse.diversity.page import RESULT, diversity_page, fixed, render_diversity
from obverse.diversity.results import NAME, Diversity
from obverse.present.axis import Axis, axis_for
from saved import result_text, write_result
from weights.test_audit_page import Reader, words

KINDS = ("full", "few", "plain", "points")


def said(text: str) -> str:
    return words(text.replace(FIXED, " "))


def text_of(found: Diversity) -> str:
    return said(Reader(render_diversity(found)).text)


def with_birthday(**changes: Any) -> Diversity:
    found = sample_diversity("full")
    return replace(found, birthday=replace(found.birthday, **changes))


# --- words ---


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (13_412.0, "14,000", "13,000"),
        (14_000.0, "14,000", "14,000"),
        (14_000.000001, "14,000", "14,000"),
        (99.2, "100", "99"),
        (7.4, "8", "7"),
        (0.0, "0", "0"),
        (1.01e9, "1,100,000,000", "1,000,000,000"),
    ],
)
def test_bounds_are_rounded_to_their_own_side(value, up, down):
    assert (up_to(value), down_to(value)) == (up, down)


def test_more_digits_where_they_are_asked_for():
    assert up_to(13_412.3, 4) == "13,420"
    assert down_to(13_412.3, 4) == "13,410"
    assert about(13_412.3) == "13,400"
    assert about(12.34) == "12.3"
    assert about(None) == "–"
    assert [times(one) for one in (1.0001, 1.2, 9.91, 10, 41.7)] == ["1.1", "1.2", "10.0", "10", "42"]


def birthday_said(found: Diversity) -> str:
    """What the birthday test says, wherever it stands."""
    (one,) = (sentence for sentence in outlook(found) if sentence.startswith("In "))
    return one


def test_what_real_data_would_show_stands_beside_the_verdict():
    found = sample_diversity("few")
    assert found.birthday.threshold.origin == "calibrated"
    first = birthday_said(found)
    seen = f"In {found.birthday.collisions} of 20 fresh batches of 8 samples two were the same."
    assert first.startswith(f"{seen} That is less diverse")
    assert "(p < 0.001, corrected for 7 tests)" in first
    b = found.birthday
    assert b.threshold.real_support is not None
    assert b.effective.low is not None
    alike = replace(found, birthday=replace(b, p_real=0.3))
    assert "Real data may collide as often (p = 0.30): by this test it is as diverse" in birthday_said(alike)
    fewer = times(b.threshold.real_support / b.effective.low)
    assert birthday_said(alike).endswith(f"or up to {fewer} times less.")


def unseen(least: float, real: float) -> str:
    """What is said of real data where no collision was seen."""
    b = sample_diversity("full").birthday
    limit = replace(b.threshold, real_support=real)
    none = replace(b.effective, value=None, low=None, high=None, pairs=0)
    changes = {"collisions": 0, "support_bound": None, "printed_bound": None, "effective": none}
    return birthday_said(with_birthday(**changes, support_at_least=least, p_real=1.0, threshold=limit))


def test_no_collision_is_no_praise_where_real_data_would_have_shown_none_either():
    assert unseen(8_349.0, 10_000.0).endswith(
        "Up to 8,300 equally likely pictures would have shown a collision (95 %). The real data has more, "
        "effectively about 10,000: too few samples to tell whether it is as diverse as the real data, or up "
        "to 1.2 times less."
    )
    assert "up to 1.1 times less" in unseen(9_999.0, 10_000.0)
    assert "up to 42 times less" in unseen(240.0, 10_000.0)
    better = unseen(12_000.0, 10_000.0)
    assert better.endswith(
        "By this test it is at least as diverse as the real data, which has effectively about 10,000 (95 %)."
    )


@pytest.mark.parametrize(("batches", "said"), [(10, "too few samples to tell"), (200, "at least as diverse")])
def test_more_batches_can_tell_what_few_cannot(batches, said):
    """Points of a box, compared with others of it, and far more diverse ones: of a box ten times as wide."""
    real = torch.rand(400, 5, generator=torch.Generator().manual_seed(0))

    def wide(count: int, source: torch.Generator) -> torch.Tensor:
        return 10 * torch.rand(count, 5, generator=source)

    found, _ = assess(wide, real=real, samples=50, batch_size=60, batches=batches)
    b = found.birthday
    assert b.collisions == 0
    assert b.support_at_least is not None
    assert b.threshold.real_support is not None
    # P(no collision among 60 of N equal ones) in a loop, at the number that is said to have been caught
    for support, seen in ((b.support_at_least, 0.95), (b.threshold.real_support, None)):
        apart = 1.0
        for k in range(60):
            apart *= 1 - k / support
        chance_of_one = 1 - apart**batches
        if seen is not None:
            assert chance_of_one == pytest.approx(seen, rel=1e-9)
        else:
            assert (chance_of_one >= 0.95) == (said == "at least as diverse")
    assert said in birthday_said(found)


def test_without_real_data_it_is_said_that_near_duplicates_were_not_looked_for():
    assert "Only exact duplicates count here" in birthday_said(sample_diversity("plain"))
    assert "--real" in birthday_said(sample_diversity("plain"))
    assert "up to the distance 0.0500, as was asked" in birthday_said(sample_diversity("points"))


def test_copying_is_said_with_its_p():
    found = sample_diversity("few")
    m = found.memorization
    assert m is not None
    assert m.sides is not None
    assert copying(found).startswith("It copies: ")
    honest = replace(found, memorization=replace(m, sides=replace(m.sides, p=0.4)))
    assert copying(honest).startswith("No sign of copying")
    assert "They are closer to both" in copying(honest)
    alone = replace(found, memorization=replace(m, sides=None, close=None, copying=None))
    assert "can't be told without held-out real data" in copying(alone)
    assert "not tested" in copying(replace(found, memorization=None))


def test_learned_features_are_told_not_to_be_strangers():
    found = sample_diversity("few")
    assert "know neither set" not in copying(found)
    learned = replace(found, features="encoder")
    assert copying(learned).startswith(copying(found))
    assert "p is exact only for features that know neither set, and encoder may have learned" in copying(
        learned
    )


def test_the_level_of_each_sentence_is_the_one_that_is_applied():
    found = sample_diversity("few")
    m = found.memorization
    assert m is not None
    assert m.sides is not None
    assert m.close is not None
    assert m.copying is not None
    said = levels(replace(m, confidence=0.9))
    for part in ("at most 10 %;", "the other 3 tests is at most 3.3 %", "that side is at most 5 %"):
        assert part in said
    for over, closer in ((0.99, True), (1.01, False)):  # a little below and above each level
        one = replace(
            m,
            confidence=0.9,
            sides=replace(m.sides, p=0.1 * over),
            close=replace(m.close, p=0.1 / 3 * over),
            authentic=replace(m.authentic, p=1.0),
            copying=replace(m.copying, p_closer=0.05 * over),
        )
        assert one.copied is closer
        assert one.closer is closer
        assert one.copying is not None
        assert (one.copying.reading(0.9) == "closer than real data") is closer
    alone = replace(m, copying=None)
    assert "the other 2 tests is at most 2.5 %" in levels(alone)
    assert "C_T" not in levels(alone)
    assert levels(replace(m, sides=None)) == ""
    assert levels(m) in text_of(found)


def test_jumps_come_before_the_length_of_what_is_left():
    found = sample_diversity("full")
    s = found.smoothness
    assert s is not None
    (what, value, meaning), length, straight = smoothness_rows(found)
    assert (what, value) == ("paths that jump", "0 of 8")
    assert meaning.startswith("0.0 to 36.9 % (95 %)")  # none of 8: 1 − 0.025^(1/8)
    assert "1/32,768 of it" in meaning
    assert "fell on a jump" not in length[2]
    assert "below 1" not in straight[2]
    jumpy = replace(found, smoothness=replace(s, jumping=4, jumped=1, interval=(0.157, 0.843)))
    (_, value, meaning), length, straight = smoothness_rows(jumpy)
    assert value == "4 of 8"
    assert meaning.startswith("15.7 to 84.3 %")
    assert "without 1 step that fell on a jump" in length[2]
    assert "below 1 where jumps do the rest" in straight[2]


def test_a_label_says_how_much_it_grows(tmp_path):
    found = sample_diversity("full")
    labels = (replace(found.labels[0], slope=-0.1234, error=0.05, agreement=0.47), *found.labels[1:])
    write_result(replace(found, labels=labels), tmp_path / NAME)
    write_pictures(tmp_path, measured("full")[1])
    assert "0 · −0.123 ± 0.050 a step, up at 47.0 % of seeds" in said(diversity_page(tmp_path))


def test_p_values():
    assert (chance(0.0001), chance(0.04), chance(0.5)) == ("p < 0.001", "p = 0.040", "p = 0.50")


def test_broken_pictures_are_named_and_counted():
    found = replace(sample_diversity("plain"), broken=("a.png", "b/c.png"), broken_total=2)
    assert notices(found) == ["2 pictures could not be read and are left out: a.png, b/c.png."]
    one = replace(found, broken=("a.png",), broken_total=1, notes=("more",))
    assert notices(one) == ["1 picture could not be read and is left out: a.png.", "more"]
    many = replace(found, broken=tuple("abcdefg"), broken_total=9)
    assert notices(many) == ["9 pictures could not be read and are left out: a, b, c, d, e, …."]


def test_the_command_makes_it_again():
    found = sample_diversity("full")
    assert command(found) == "obverse diversity full --train digits:train --real digits:test --out DIR"
    other = replace(
        found,
        settings={"source": "a b", "features": "encoder", "batch_size": 5, "threshold": 0.1, "quick": True},
    )
    assert command(other) == (
        "obverse diversity 'a b' --features encoder --batch-size 5 --threshold 0.1 --quick --out DIR"
    )


def test_the_rows_say_what_the_record_says():
    found = sample_diversity("few")
    b = found.birthday
    table = {what: (value, meaning) for what, value, meaning in rows(found)}
    assert table["samples a batch, M"][0] == "8"
    assert table["batches with a collision"][0] == f"{b.collisions} of 20"
    assert b.support_bound is not None
    assert b.printed_bound is not None
    assert table["effective support, at most"][0] == up_to(b.support_bound, 4)
    assert table["the printed closed form"][0] == up_to(b.printed_bound, 4)
    assert "different pictures, at least" not in table
    assert found.quality is not None
    assert f"{found.quality.recall.value:.2f}"[:3] in table["recall"][0]
    assert "strongest directions" not in table
    assert "strongest directions" in {what for what, _, _ in rows(sample_diversity("full"))}


# --- the page ---


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_on_the_page_and_the_verdict_comes_first(kind):
    found = sample_diversity(kind)
    text = text_of(found)
    start = text.index(verdict(found))
    for sentence in outlook(found):
        assert start < text.index(said(sentence)) < text.index("How many pictures it makes")
    shown = birthday_rows(found.birthday) + smoothness_rows(found)
    shown += [] if found.memorization is None else memorization_rows(found.memorization)
    flat = text.replace("\n", " ")
    for row in [*shown, *quality_rows(found)]:
        assert said("".join(row)) in flat, row
    for what, reason in skipped(found):
        assert what in flat
        assert said(reason) in flat
    assert command(found) in text
    assert text.count("When not to trust it") == text.count("How to read it") >= 1


def test_sections_appear_only_where_there_is_something_to_say():
    whole, plain = (Reader(render_diversity(sample_diversity(kind))).ids for kind in ("full", "plain"))
    for section in ("copies", "quality", "seeds"):
        assert section in whole
    assert "copies" not in plain
    assert "seeds" not in plain
    assert "skipped" in plain
    assert "skipped" not in whole


def test_the_page_is_self_contained_and_sound():
    for kind in KINDS:
        reader = Reader(render_diversity(sample_diversity(kind)))
        assert "script" not in reader.tags
        assert len(reader.ids) == len(set(reader.ids))
        for reference in reader.references:
            assert reference.startswith(("data:", "#")), reference
            if reference.startswith("#"):
                assert reference[1:] in reader.ids


def test_hostile_text_is_escaped_and_of_bounded_length(tmp_path):
    found = hostile(sample_diversity("full"))
    write_result(found, tmp_path / NAME)
    write_pictures(tmp_path, measured("full")[1])
    page = diversity_page(tmp_path)
    assert "<script" not in page
    assert "<b onclick" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "x" * 500 not in page
    Reader(page)


def test_numbers_of_any_size_break_nothing():
    """Every number in turn as large and as small as a file can hold."""
    found = sample_diversity("full")
    for value in (1e299, -1e299, 1e-300, 0.0):
        page = render_diversity(_all(found, value))
        assert "nan" not in Reader(page).text.lower().replace("nance", "")
        for x, y in re.findall(r'<circle class="dot \w+" cx="([-\d.]+)" cy="([-\d.]+)"', page):
            assert 0 <= float(x) <= LENGTH
            assert 0 <= float(y) <= 20 * ROW


def _all(value: Any, number: float) -> Any:
    """A record with every float replaced, but for shares and levels that readers have checked."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = ("confidence", "dimension", "dimension_real")
        return replace(
            value,
            **{
                one.name: _all(getattr(value, one.name), number)
                for one in fields(value)
                if one.name not in kept
            },
        )
    if isinstance(value, tuple):
        return tuple(_all(one, number) for one in value)
    return number if isinstance(value, float) else value


# --- figures ---


def test_lines_are_where_the_numbers_are():
    axis = Axis(0.0, 100.0)
    svg = lines(
        "a",
        "Title",
        [
            Line("one", "50", "own", 50.0, 25.0, 75.0),
            Line("most", "10", "own", high=10.0, open_low=True),
            Line("least", "90", "beside", low=90.0, open_high=True),
            Line("beyond", "500", "beside", 500.0),
        ],
        axis,
    )
    dots = re.findall(r'<circle class="dot (\w+)" cx="([\d.]+)"', svg)
    assert dots == [("own", f"{LENGTH / 2:g}"), ("beside", f"{LENGTH:g}")]
    spans = re.findall(r'<path class="span \w+" d="M([\d.]+) [\d.]+H([\d.]+)"/>', svg)
    assert [(float(a), float(b)) for a, b in spans] == [
        (0.25 * LENGTH, 0.75 * LENGTH),
        (0.0, 0.1 * LENGTH),
        (0.9 * LENGTH, LENGTH),
    ]
    assert svg.count("<text") == 2 * 4 + len(axis.ticks(5))


def test_the_support_figure_shows_bound_estimate_and_real_data():
    found = sample_diversity("few")
    svg = render_diversity(found)
    b = found.birthday
    values = [b.support_bound, b.printed_bound, b.effective.value, b.effective.low, b.effective.high]
    values += [b.threshold.real_support, float(found.train or 0)]
    axis = axis_for([value for value in values if value is not None], span=1.5)
    assert axis.logarithmic
    assert b.effective.value is not None
    expected = f"{LENGTH * axis.share(b.effective.value):.1f}".removesuffix(".0")
    assert f'cx="{expected}"' in svg


# --- pictures ---


def test_pictures_are_written_and_read_back(tmp_path):
    pictures = measured("full")[1]
    write_pictures(tmp_path, pictures)
    assert {file.name for file in (tmp_path / FOLDER).iterdir()} == {
        LIST,
        *(
            f"diversity-{kind}.png"
            for kind in ("samples", "pairs", "nearest", "paths", "directions", "labels")
        ),
    }
    read = read_pictures(tmp_path)
    for kind in ("samples", "pairs", "nearest", "paths", "directions", "labels"):
        tensor = getattr(pictures, kind)
        assert len(read[kind]) == len(tensor)
        for row, expected in zip(read[kind], tensor, strict=True):
            with Image.open(io.BytesIO(row.png)) as image:
                found = np.asarray(image)
            assert found.shape == (8, 9 * len(expected) - 1, 2), "a pixel between two of 8, and alpha"
            for column, one in enumerate(expected):
                picture = found[:, 9 * column : 9 * column + 8]
                np.testing.assert_array_equal(picture[..., 0], (one[0].double() * 255).round().byte().numpy())
                assert (picture[..., 1] == 255).all()
            assert (found[:, 8::9] == 0).all(), "what is behind the page shows in the gaps"
    write_pictures(tmp_path, Pictures())
    assert not (tmp_path / FOLDER).exists(), "what an earlier test left there is removed"
    assert read_pictures(tmp_path) == {}


def test_values_beyond_pixels_share_one_scale():
    images = torch.tensor([[-1.0, 1.0], [0.0, 3.0]]).reshape(2, 1, 1, 1, 2)
    assert shown(images).flatten().tolist() == [0, 128, 64, 255]
    assert shown(images.clamp(0, 1)).flatten().tolist() == [0, 255, 0, 255]


def test_large_and_coloured_pictures_are_made_smaller(tmp_path):
    images = torch.rand(2, 3, 3, 200, 100, generator=torch.Generator().manual_seed(0))
    write_pictures(tmp_path, Pictures(pairs=images))
    (row, _) = read_pictures(tmp_path)["pairs"]
    assert (row.width, row.height) == (3 * LONGEST // 2 + 2 * 4, LONGEST)  # gaps of a 16th of 64
    with Image.open(io.BytesIO(row.png)) as image:
        assert image.mode == "RGBA"


def test_sheets_of_older_versions_have_no_gaps(tmp_path):
    write_pictures(tmp_path, Pictures(samples=torch.zeros(1, 2, 1, 8, 8)))
    listed = tmp_path / FOLDER / LIST
    told = json.loads(listed.read_text())
    del told["sheets"][0]["gap"]
    listed.write_text(json.dumps(told))
    levels = np.arange(128, dtype=np.uint8).reshape(8, 16)
    Image.fromarray(levels).save(tmp_path / FOLDER / "diversity-samples.png")
    (row,) = read_pictures(tmp_path)["samples"]
    with Image.open(io.BytesIO(row.png)) as image:
        np.testing.assert_array_equal(np.asarray(image), levels)


def test_points_have_no_pictures_and_the_page_says_so(tmp_path):
    write_pictures(tmp_path, measured("points")[1])
    write_result(sample_diversity("points"), tmp_path / NAME)
    assert not (tmp_path / FOLDER).exists()
    assert "No pictures: samples of shape 5 are no images of 1 or 3 channels." in diversity_page(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_result(sample_diversity("full"), tmp_path / NAME)
    write_pictures(tmp_path, measured("full")[1])
    return tmp_path


def test_the_page_has_the_pictures(folder):
    page = diversity_page(folder)
    read = read_pictures(folder)
    for rows_ in read.values():
        for row in rows_:
            assert base64.b64encode(row.png).decode() in page
    assert page.count("<img ") == sum(map(len, read.values()))


@pytest.mark.parametrize("spoil", ["size", "text", "link", "list", "many", "gone"])
def test_broken_pictures_are_left_out_with_the_reason(folder, spoil):
    file, listed = folder / FOLDER / "diversity-pairs.png", folder / FOLDER / LIST
    if spoil == "size":
        Image.new("L", (5, 5)).save(file)
    elif spoil == "text":
        file.write_text(ATTACK)
    elif spoil == "link":
        file.unlink()
        file.symlink_to("/etc/hostname")
    elif spoil == "gone":
        file.unlink()
    else:
        told = json.loads(listed.read_text())
        told["sheets"][0]["rows"] = 10**6 if spoil == "many" else "1"
        listed.write_text(json.dumps(told))
    page = diversity_page(folder)
    assert "No pictures: expected" in page
    assert "<img" not in page
    assert str(folder) not in page


def test_a_link_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / FOLDER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="a folder of its own"):
        write_pictures(tmp_path, measured("full")[1])


# --- building ---


def test_build_writes_the_page_of_a_directory_and_of_a_file(folder):
    assert build(folder) == folder / RESULT.html
    page = (folder / RESULT.html).read_text()
    assert build(folder / NAME, folder / "other.html") == folder / "other.html"
    assert (folder / "other.html").read_text() == page
    assert len(page) < 400_000


def test_a_broken_record_is_refused(tmp_path):
    whole = json.loads(result_text(sample_diversity("full")))
    del whole["birthday"]["threshold"]
    (tmp_path / NAME).write_text(json.dumps(whole))
    with pytest.raises(BadInput, match="the field threshold"):
        build(tmp_path)


def test_signs_stay_beside_their_numbers():
    assert fixed("5 % and 3 ± 1") == f"5{FIXED}% and 3{FIXED}±{FIXED}1"


def test_the_printed_formula_is_the_one_that_is_computed():
    """As the table prints it, with the γ that gives N*."""
    b: Birthday = sample_diversity("few").birthday
    assert b.support_bound is not None
    assert b.printed_bound is not None
    size, log = b.batch_size, 0.0
    for k in range(size):
        log -= float(np.log1p(-k / b.support_bound))
    assert 2 * size / (-3 + (9 + 24 / size * log) ** 0.5) == pytest.approx(b.printed_bound, rel=1e-9)
