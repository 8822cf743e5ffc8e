"""The page of a survey says what the survey says; its pictures are those of the net; files are only data."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from obverse._core.errors import BadInput
from obverse.app import write_report as build
from obverse.present.png import displayed
from obverse.shadow._beside import REFINED, Beside
from obverse.shadow._survey import Surveyor
from obverse.shadow._words import RANDOM, SWITCHES, notices, summary
from obverse.shadow.charts import (
    FOLDER,
    HEIGHT,
    NAME,
    WIDTH,
    _across,
    _marks,
    choose_examples,
    draw,
    layout,
    panels,
    read_pictures,
    spread,
    why_not,
    write_pictures,
)
from obverse.shadow.page import Gallery, gallery, render_survey, survey_page
from obverse.shadow.results import NAME as SURVEY
from obverse.shadow.results import Survey
from saved import result_text
from shadow.sample_surveys import (
    ATTACK,
    CLASSES,
    hostile,
    layer,
    picture_net,
    reading,
    sample_survey,
    surveyed,
)
from weights.test_audit_page import HUGE, TINY, Reader, words

NONE = Gallery(missing="No pictures: none.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey with pictures; not to be changed, see `copied`."""
    path = tmp_path_factory.mktemp("survey")
    surveyed(path)
    return path


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def text_of(survey: Survey) -> str:
    return words(Reader(render_survey(survey, NONE)).text)


# --- words -----------------------------------------------------------------------------------------------


def made(*agreements: tuple[float | None, float | None]) -> Survey:
    layers = tuple(
        layer(f"h{place}", reading(own), reading(shuffled))
        for place, (own, shuffled) in enumerate(agreements, start=1)
    )
    return replace(sample_survey(), layers=layers)


@pytest.mark.parametrize(
    ("agreements", "said"),
    [
        (
            ((0.98, 0.97), (0.9, 0.2), (0.3, 0.1)),
            "Shadows from the lowest 2 of 3 layers keep the label of most inputs (with shuffled weights: the "
            "lowest 1): 90.0 % at h2 (20.0 %); 30.0 % at h3 (10.0 %).",
        ),
        (
            ((0.98, 0.2), (0.5, 0.2)),
            "Shadows from every layer keep the label of most inputs (with shuffled weights: none): "
            "50.0 % at h2 (20.0 %).",
        ),
        (
            ((0.4, 0.6), (0.9, 0.7)),
            "Not even shadows from the lowest layer keep the label of most inputs: 40.0 % at h1 (60.0 %).",
        ),
        (
            ((0.6, 0.6), (0.4, 0.7)),
            "Shadows from the lowest layer only keep the label of most inputs (with shuffled weights: all): "
            "60.0 % at h1 (60.0 %); 40.0 % at h2 (70.0 %).",
        ),
        (
            ((None, None), (None, None)),
            "The net gives no labels to compare. The cosine of input and shadow is 0.80",
        ),
    ],
)
def test_summary_says_how_far_up(agreements, said) -> None:
    assert summary(made(*agreements)).startswith(said)


def test_notices_say_what_must_be_known() -> None:
    fine = sample_survey()
    assert notices(fine) == []
    assert notices(replace(fine, random_weights=True)) == [RANDOM]
    assert notices(replace(fine, switches=True)) == [SWITCHES]
    assert "not functions of h alone" in SWITCHES
    (norms,) = notices(replace(fine, match_norm=True))
    assert "the norm of its input" in norms
    (wrong,) = notices(replace(fine, test_error=0.6))
    assert "wrong on 60.0 % of these inputs" in wrong
    same = replace(fine.layers[0], own=replace(fine.layers[0].own, chance=0.7))
    (constant,) = notices(replace(fine, layers=(same, *fine.layers[1:])))
    assert "the same label" in constant
    told = summary(replace(fine, layers=(same, *fine.layers[1:])))
    assert told.startswith(
        "The net gives most inputs the same label. The cosine of input and shadow is 0.95 from"
    )
    dead = replace(fine.layers[0], shuffled=replace(fine.layers[0].shuffled, error=None))
    (missing,) = notices(replace(fine, layers=(dead,)))
    assert "h was zero" in missing


# --- the table and the sentences of the page -------------------------------------------------------------


def test_page_tells_every_number_of_every_layer() -> None:
    survey = sample_survey(30)
    page = render_survey(survey, NONE)
    rows = re.findall(r'<tr role="row"><th scope="row".*?</tr>', page)
    assert len(rows) == 30
    for number, (one, row) in enumerate(zip(survey.layers, rows, strict=True), start=1):
        cells = [words(Reader(cell).text) for cell in re.findall(r"<td.*?</td>", row)]
        assert f"{number} {one.name}" in words(Reader(row).text)
        assert cells == [
            "16×4×4",
            f"{100 * one.own.agreement:.1f}",
            f"{100 * one.shuffled.agreement:.1f}",
            "10.0",
            f"{one.own.error:.3g}",
            "(0.75)",
            f"{one.shuffled.error:.3g}",
            "(0.75)",
            f"{one.own.cosine:.2f}".replace("-", "−"),
            f"{one.shuffled.cosine:.2f}".replace("-", "−"),
            "0.5",
            "0.75",
            "1.5",
        ]
    head = re.findall(r"<thead.*?</thead>", page, re.DOTALL)[0]
    spans = [int(one) for one in re.findall(r'colspan="(\d+)"', head)]
    assert spans == [3, 4, 2, 3]
    assert sum(spans) == head.count('scope="col" role="columnheader">') - 2, "each group has its columns"


def test_page_says_what_was_measured_and_how() -> None:
    text = text_of(sample_survey())
    assert "How far up can mynets:resnet draw its input?" in text
    assert "mynets:resnet with the weights of resnet.safetensors, on 200 test inputs of mnist, 3.5 %" in text
    assert "a standard error of at most 3.5 points" in text  # half a point over √200
    assert "scales calibrated on training inputs" in text.replace("scalescalibrated", "scales calibrated")
    assert "It is a function of h, the weights and fresh randomness alone" in text
    assert "The net has random weights" not in text


def test_page_with_switches_says_that_shadows_are_no_functions_of_h(folder: Path) -> None:
    page = survey_page(folder)
    switched = json.loads((folder / SURVEY).read_text()) | {"switches": True}
    copy = folder.parent / "switched"
    shutil.copytree(folder, copy)
    (copy / SURVEY).write_text(json.dumps(switched))
    other = survey_page(copy)
    assert "not functions of h alone" not in words(Reader(page).text)
    assert words(Reader(other).text).count("not functions of h alone") == 2  # on top, and at the pictures
    assert "It is a function of h" not in words(Reader(other).text)


def test_layers_without_scale_or_numbers_have_dashes() -> None:
    join = layer("add", reading(None, None, None), reading(None, None, None), scale=None, theory_scale=None)
    page = render_survey(replace(sample_survey(), layers=(join,), test_error=None), NONE)
    (row,) = re.findall(r'<tr role="row"><th scope="row".*?</tr>', page)
    cells = [words(Reader(cell).text) for cell in re.findall(r"<td.*?</td>", row)]
    assert cells == ["16×4×4", "–", "–", "–", "–", "(0.75)", "–", "(0.75)", "–", "–", "–", "–", "1.5"]
    assert "nan" not in page.split("<main>")[1]


# --- curves, read back from their coordinates ------------------------------------------------------------


def test_curves_go_through_the_numbers() -> None:
    survey = sample_survey(5)
    agreement, error, cosine = panels(survey)
    assert [one.title.split()[0] for one in (agreement, error, cosine)] == ["same", "recovery", "cosine"]
    svg = draw(agreement)
    (line,) = re.findall(r'class="curve own" d="([^"]*)"', svg)
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", line)[1:]]
    for (x, y), (place, one) in zip(points, enumerate(survey.layers), strict=True):
        assert x == pytest.approx(_across(place, 5), abs=0.06)  # coordinates have a tenth of a pixel
        assert y == pytest.approx(HEIGHT * (1 - one.own.agreement), abs=0.06)


def test_a_missing_number_breaks_the_curve() -> None:
    survey = made((0.9, 0.9), (0.8, 0.8), (0.7, 0.7))
    hole = replace(survey.layers[1], own=replace(survey.layers[1].own, error=None))
    panel = panels(replace(survey, layers=(survey.layers[0], hole, survey.layers[2])))[1]
    (line,) = re.findall(r'class="curve own" d="([^"]*)"', draw(panel))
    assert (line.count("M"), line.count("L")) == (2, 0)
    unlabelled = panels(made((None, None)))
    assert [one.name for one in unlabelled] == ["error", "cosine"]


@pytest.mark.parametrize("count", [1, 2, 8, 9, 13, 26, 40, 500])
def test_numbers_below_a_curve_do_not_run_into_each_other(count: int) -> None:
    marks = _marks(count)
    assert marks[0] == 0
    assert marks[-1] == count - 1
    assert len(marks) == len(set(marks)) <= 9
    places = [_across(place, count) for place in marks]
    assert all(b - a > 20 for a, b in pairwise(places))  # three digits take 20 pixels


@pytest.mark.parametrize("number", [HUGE, TINY, 0.0])
def test_any_numbers_stay_inside_the_frame(number: float) -> None:
    survey = sample_survey(4)
    odd = replace(survey.layers[2], own=reading(1.0, number, -number), scale=number, level=number)
    page = render_survey(replace(survey, layers=(*survey.layers[:2], odd), seconds=number), NONE)
    assert not re.search(r"\b(nan|inf)\b", page.split("<main>")[1])
    for svg in re.findall(r'role="img"(.*?)</svg>', page, re.DOTALL):
        pairs = re.findall(r"[ML]([\d.e+-]+) ([\d.e+-]+)", svg)
        assert pairs
        for x, y in pairs:
            assert 0 <= float(x) <= WIDTH
            assert 0 <= float(y) <= HEIGHT


# --- pictures --------------------------------------------------------------------------------------------


def pixels(uri: str) -> np.ndarray:
    prefix = "data:image/png;base64,"
    assert uri.startswith(prefix)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri[len(prefix) :]))))


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_are_the_shadows_of_the_net(tmp_path: Path, channels: int) -> None:
    result, tool = surveyed(tmp_path, channels)
    shown = gallery(result, tmp_path)
    x = torch.rand(20, channels, 8, 8, generator=torch.Generator().manual_seed(1))
    x = x[choose_examples(torch.arange(20) % 3, 4)]
    assert len(shown.inputs) == 4
    for place, shot in enumerate(shown.inputs):
        assert np.array_equal(pixels(shot.uri), displayed(x[place]))
    assert [row.layer.name for row in shown.rows] == ["0", "3", "6"]
    other = tool.like("fitted")
    ways = {
        "transpose": (tool.own, 0),
        "transpose-shuffled": (tool.shuffled, 0),
        "fitted": (other.own, 0),
        "refined": (other.own, REFINED),
        "fitted-shuffled": (other.shuffled, 0),
        "fitted-untrained": (other.untrained, 0),
    }
    assert [way.name for way in shown.ways] == list(ways)
    assert shown.steps == REFINED
    for row in shown.rows:
        for column, (shadow, steps) in zip(row.columns, ways.values(), strict=True):
            images = shadow.of(x, row.layer.name, refine=steps)
            assert all(
                np.array_equal(pixels(shot.uri), one)
                for shot, one in zip(column.shots, displayed(images), strict=True)
            )
            labels = tool.net(images).argmax(1)
            assert [shot.label for shot in column.shots] == [CLASSES[label] for label in labels]
            said = tool.net(x).argmax(1)
            assert [shot.same for shot in column.shots] == (labels == said).tolist()
    page = render_survey(result, shown)
    assert page.count("<img ") == 3 * 4 * (1 + len(ways))  # each row repeats its inputs
    assert all(uri in page for uri in (shown.inputs[0].uri, shown.rows[2].columns[5].shots[3].uri))


def test_a_survey_of_the_fitted_reverse_has_the_same_columns_and_its_own_steps(tmp_path: Path) -> None:
    _, tool = surveyed(tmp_path, reverse="fitted")
    x = torch.rand(6, 1, 8, 8)
    tool = Surveyor(tool.net, tool.inputs, reverse="fitted", refine=3)
    write_pictures(tmp_path, tool, x, torch.arange(6) % 3, ["3"], classes=CLASSES)
    told = read_pictures(tmp_path).told
    assert told.steps == 3
    assert told.rows[0].ways == (
        "transpose", "transpose-shuffled", "fitted", "refined", "fitted-shuffled", "fitted-untrained",
    )  # fmt: skip
    refined = Surveyor(tool.net, tool.inputs, refine=2)
    write_pictures(tmp_path, refined, x, torch.arange(6) % 3, ["3"], classes=CLASSES)
    told = read_pictures(tmp_path).told
    assert (told.steps, told.rows[0].ways[1]) == (2, "transpose-refined")


def test_what_cannot_be_drawn_is_a_sentence(tmp_path: Path) -> None:
    """Too few inputs to fit on; no transpose of an encoder; a module that cannot begin anew; no time."""
    x, y = torch.rand(20, 1, 8, 8), torch.arange(20) % 3
    few = Surveyor(picture_net(1, 8), x[:7])
    write_pictures(tmp_path, few, x, y, ["0", "3"], classes=CLASSES)
    told = read_pictures(tmp_path).told
    assert told.rows[0].ways == ("transpose", "transpose-shuffled")
    assert told.missing[0].startswith("No fitted images: expected at least 8 inputs")

    class Tokens(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.flatten(1, 2)).mean(1)

    torch.manual_seed(0)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    tool = Surveyor(Tokens(encoder, nn.Linear(8, 3)).eval(), x, reverse="fitted")
    write_pictures(tmp_path, tool, x, y, tool.own.layers[:1], classes=CLASSES)
    told = read_pictures(tmp_path).told
    assert told.rows[0].ways[0] == "fitted"
    assert told.missing[0].startswith("No images by the transpose: expected ")

    beside = Beside(Surveyor(picture_net(1, 8), x), seconds=-1)
    assert [tuple(images) for _, images in beside.draw(x[:2], ["0", "3"])] == 2 * [
        ("transpose", "transpose-shuffled")
    ]
    assert "2 of 2 layers have no fitted images: these took longer than -1 seconds." in beside.missing[0]
    drawn = Beside(Surveyor(picture_net(1, 8), x), seconds=1000)
    assert {tuple(images)[2] for _, images in drawn.draw(x[:2], ["0", "3"])} == {"fitted"}
    assert drawn.missing == []


def test_notes_of_a_file_are_shown_as_text(copied: Path) -> None:
    file = copied / FOLDER / NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | {"missing": ["No time <b>", ATTACK]}))
    page = survey_page(copied)
    assert "No time &lt;b&gt;" in page
    assert "script" not in Reader(page).tags


def test_a_layer_without_a_way_has_an_empty_place(copied: Path) -> None:
    file = copied / FOLDER / NAME
    told = json.loads(file.read_text())
    told["rows"][1] |= {"ways": told["rows"][1]["ways"][:2], "labels": told["rows"][1]["labels"][:2]}
    file.write_text(json.dumps(told))
    page = survey_page(copied)
    assert page.count("<img ") == 3 * 4 * 7 - 4 * 4
    assert page.count('<span class="none">–</span>') == 4


def test_normalised_inputs_are_shown_as_pixels(tmp_path: Path) -> None:
    _, tool = surveyed(tmp_path / "", 3)
    x, y = torch.rand(6, 3, 8, 8), torch.arange(6) % 3
    write_pictures(
        tmp_path, tool, (x - 0.5) / 0.25, y, ["0"], classes=CLASSES, restore=lambda x: x * 0.25 + 0.5
    )
    strips = read_pictures(tmp_path)
    first = np.asarray(Image.open(io.BytesIO(strips.inputs[0])))
    # a rounding of (x − ½)/¼·¼ + ½ may move a value by one level of 255
    assert np.abs(first.astype(int) - displayed(x[choose_examples(y, 4)][0])).max() <= 1


@pytest.mark.slow
def test_large_images_are_made_smaller_and_fewer(tmp_path: Path) -> None:
    surveyed(tmp_path, 3, 128)
    strips = read_pictures(tmp_path)
    assert (strips.told.height, strips.told.width) == (64, 64)
    assert Image.open(io.BytesIO(strips.rows[0][0][0])).size == (64, 64)
    assert len(survey_page(tmp_path)) < 2_000_000


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 64, 64), (3, 512, 300), (1, 1, 1)])
@pytest.mark.parametrize("rows", [1, 12, 40])
def test_the_page_has_room_for_the_pictures_even_of_noise(shape: tuple[int, ...], rows: int) -> None:
    count, side = layout(shape, rows)
    assert 1 <= count <= 4
    assert side == min(64, max(shape[1:])) or (count == 1 and rows > 10)
    shrink = side / max(shape[1:])
    strips = 8 * rows + 1  # the input and seven ways in each row
    raw = count * strips * shape[0] * round(shrink * shape[1]) * round(shrink * shape[2])
    # noise as PNG is 0.1 % larger than its pixels, plus some 70 bytes; in base64 four thirds of that
    assert 4 / 3 * (1.001 * raw + 70 * count * strips) < 1_800_000


def test_examples_are_one_of_each_class_before_a_second() -> None:
    y = torch.tensor([2, 2, 0, 2, 1, 0])
    assert choose_examples(y, 3).tolist() == [2, 4, 0]
    assert choose_examples(y, 5).tolist() == [2, 5, 4, 0, 1]
    assert choose_examples(y, 99).tolist() == [2, 5, 4, 0, 1, 3]


def test_layers_are_evenly_chosen_with_both_ends() -> None:
    names = [str(place) for place in range(100)]
    assert spread(names, 200) == tuple(names)
    chosen = [int(one) for one in spread(names, 12)]
    assert (chosen[0], chosen[-1], len(set(chosen))) == (0, 99, 12)
    assert {b - a for a, b in pairwise(chosen)} == {9}
    assert spread(names, 1) == ("99",)
    assert spread(names, 2) == ("0", "99")


def test_layers_without_pictures_are_counted(tmp_path: Path) -> None:
    result, _ = surveyed(tmp_path, most=2)
    shown = gallery(result, tmp_path)
    assert [row.number for row in shown.rows] == [1, 3]
    assert "1 more layer is in the table only" in words(Reader(survey_page(tmp_path)).text)


def test_inputs_that_are_no_images_have_no_pictures_and_the_page_says_why(tmp_path: Path) -> None:
    assert why_not((1, 28, 28)) == why_not((3, 5, 5)) == ""
    for shape in ((64,), (2, 8, 8), (1, 2, 3, 4)):
        assert "no images of 1 or 3 channels" in why_not(shape)
        result = replace(sample_survey(), input_shape=shape)
        (tmp_path / SURVEY).write_text(result_text(result))
        text = words(Reader(survey_page(tmp_path)).text)
        assert f"No pictures: inputs of shape {'×'.join(map(str, shape))} are no images" in text
    assert "<img" not in survey_page(tmp_path)


def test_pictures_of_an_earlier_survey_go_and_other_files_stay(tmp_path: Path) -> None:
    _, tool = surveyed(tmp_path)
    (tmp_path / FOLDER / "shadows.png").write_bytes(b"a picture of a run")
    x = torch.rand(3, 1, 8, 8)
    write_pictures(tmp_path, tool, x, torch.arange(3), ["0"], classes=CLASSES)
    assert {file.name for file in (tmp_path / FOLDER).iterdir()} == {
        "shadows.png",
        NAME,
        "shadow-input.png",
        "shadow-01-transpose.png",
        "shadow-01-transpose-shuffled.png",
        "shadow-01-fitted.png",
        "shadow-01-refined.png",
        "shadow-01-fitted-shuffled.png",
        "shadow-01-fitted-untrained.png",
    }
    write_pictures(tmp_path, tool, torch.rand(3, 64), torch.arange(3), ["0"], classes=CLASSES)
    assert {file.name for file in (tmp_path / FOLDER).iterdir()} == {"shadows.png"}


def test_pictures_are_not_written_through_a_link(tmp_path: Path) -> None:
    _, tool = surveyed(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FOLDER).symlink_to(tmp_path / "other")
    with pytest.raises(BadInput, match="got a link"):
        write_pictures(tmp_path / "out", tool, torch.rand(3, 1, 8, 8), torch.arange(3), ["0"], classes=())
    assert list((tmp_path / "other").iterdir()) == []


# --- untrusted files -------------------------------------------------------------------------------------


def png(size: tuple[int, int], mode: str = "L") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a picture",
        b"<svg onload=alert(1)>",
        png((32, 8))[:45],
        png((32, 9)),
        png((8000, 8000)),
        png((32, 8), "RGB"),
        b"GIF89a" + png((32, 8)),
        None,
    ],
)
def test_a_strip_that_is_not_in_order_is_not_shown(copied: Path, content: bytes | None) -> None:
    file = copied / FOLDER / "shadow-02-fitted.png"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    page = survey_page(copied)
    said = "No pictures: expected a strip of 4 pictures of 8×8 pixels in images/shadow-02-fitted.png; got"
    assert said in words(Reader(page).text)
    assert str(copied) not in page
    assert "<img" not in page


def test_a_link_to_a_picture_elsewhere_is_not_followed(copied: Path, tmp_path: Path) -> None:
    file = copied / FOLDER / "shadow-01-transpose.png"
    shutil.move(file, tmp_path / "secret.png")
    file.symlink_to(tmp_path / "secret.png")
    assert "got another file" in words(Reader(survey_page(copied)).text)
    shutil.move(copied / FOLDER, tmp_path / "elsewhere")
    (copied / FOLDER).symlink_to(tmp_path / "elsewhere")
    assert "No pictures: there are none beside the survey" in words(Reader(survey_page(copied)).text)


def test_only_pixels_get_through(copied: Path) -> None:
    from PIL.PngImagePlugin import PngInfo

    file = copied / FOLDER / "shadow-01-transpose.png"
    info = PngInfo()
    info.add_text("comment", "a secret text")
    Image.open(io.BytesIO(file.read_bytes())).save(file, pnginfo=info)
    assert b"a secret text" in file.read_bytes()
    strips = read_pictures(copied)
    assert not any(b"secret" in one for one in strips.rows[0][0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"channels": 2}, "1 or 3 channels"),
        ({"height": 65}, "1 to 64 pixels a side"),
        ({"width": 0}, "1 to 64 pixels a side"),
        ({"given": []}, "1 to 4 examples"),
        ({"said": ["a"]}, "a label for each picture"),
        ({"rows": [{"layer": "0", "ways": ["fitted"], "labels": [["a"]]}]}, "a label for each picture"),
        ({"rows": [{"layer": "0", "ways": ["../secret"], "labels": [["a"] * 4]}]}, "known ways down"),
        ({"rows": [{"layer": "0", "ways": ["fitted"] * 2, "labels": [["a"] * 4] * 2}]}, "each once"),
        ({"rows": [{"layer": "0", "ways": ["fitted"], "labels": []}]}, "known ways down"),
        ({"missing": ["a"] * 51}, "at most 50 notes"),
        ({"format": 1}, "format 2"),
        ({"more": 1}, "no fields but"),
    ],
)
def test_a_list_of_pictures_that_is_not_in_order_is_refused(copied: Path, change, said) -> None:
    file = copied / FOLDER / NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BadInput, match=said):
        read_pictures(copied)
    page = survey_page(copied)
    assert "No pictures: expected" in words(Reader(page).text)
    assert str(copied) not in page


def test_pictures_of_layers_that_the_survey_does_not_have_are_left_out(copied: Path) -> None:
    file = copied / FOLDER / NAME
    told = json.loads(file.read_text())
    told["rows"][1]["layer"] = "another"
    file.write_text(json.dumps(told))
    assert survey_page(copied).count("<img ") == 2 * 4 * 7


def test_text_from_a_file_is_only_text(copied: Path) -> None:
    (copied / SURVEY).write_text(result_text(hostile(sample_survey(3, input_shape=(1, 8, 8)))))
    file = copied / FOLDER / NAME
    told = json.loads(file.read_text())
    for row in told["rows"]:
        row |= {"layer": ATTACK, "labels": [[ATTACK] * 4] * 6}
    told |= {"given": [ATTACK] * 4, "said": [ATTACK] * 4}
    file.write_text(json.dumps(told))
    page = survey_page(copied)
    found = Reader(page)  # asserts that nothing has an on… or style attribute
    assert "script" not in found.tags
    assert "b" not in found.tags
    assert "alert(1)" in found.text
    assert "x" * 200 not in found.text
    assert len(found.ids) == len(set(found.ids))
    assert found.tags.count("img") == 3 * 4 * 7


# --- the page as a file ----------------------------------------------------------------------------------


def test_page_stands_alone(folder: Path) -> None:
    page = survey_page(folder)
    found = Reader(page)
    assert len(found.ids) == len(set(found.ids))
    inner = [one for one in found.references if not one.startswith("data:image/png;base64,")]
    assert all(one == "data:," or one[1:] in found.ids for one in inner)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["img-src"]) == ("'none'", "data:")
    assert "script-src" not in rules
    assert survey_page(folder) == page, "the same every time"


def test_build_takes_a_directory_or_the_file_itself(copied: Path, tmp_path: Path) -> None:
    assert build(copied) == copied / "shadow.html"
    page = (copied / "shadow.html").read_text(encoding="utf-8")
    assert page == survey_page(copied)
    assert build(copied / SURVEY, tmp_path / "other.html").read_text(encoding="utf-8") == page
    with pytest.raises(BadInput, match="make it first"):
        build(copied, tmp_path / "nowhere" / "page.html")
    for name, said in (("config.json", "format 7"), ("audit.json", "format 7"), ("claims.json", "format 7")):
        (copied / name).write_text('{"format": 7}')  # what else has a page comes first
        with pytest.raises(BadInput, match=said):
            build(copied)
        assert build(copied / SURVEY) == copied / "shadow.html"
        (copied / name).unlink()


def test_a_broken_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / SURVEY).write_text("{")
    with pytest.raises(BadInput, match="in JSON"):
        build(tmp_path)
    assert not (tmp_path / "shadow.html").exists()
