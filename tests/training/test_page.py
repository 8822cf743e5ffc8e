"""The page says what the results say, and nothing that a directory puts into its mouth."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from obverse._core.errors import BadInput
from obverse.app import write_report as build
from obverse.present.palette import DARK, DARK_PAGE, LIGHT, LIGHT_PAGE, MARKERS
from obverse.training import read_comparison, summarize
from obverse.training._variants import VARIANTS


class Reader(HTMLParser):
    """Collects what a test asks about: ids, references, cells, visible text, attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: set[str] = set()
        self.tags: list[str] = []
        self.urls: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside.append(tag)
        for key, value in attrs:
            value = value or ""
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "xlink:href", "action", "srcset", "poster"):
                self.urls.append(value)
            if key == "aria-labelledby":
                self.references.add(value)
            self.references.update(re.findall(r"url\(#([^)]*)\)", value))
            assert not key.startswith("on"), f"{key} on {tag}"

    def handle_data(self, data: str) -> None:
        if self._inside[-1:] != ["style"]:
            self.text += data


def text_of(page: Path) -> str:
    return " ".join(Reader(page.read_text()).text.replace("\N{NO-BREAK SPACE}", " ").split())


def change_json(path: Path, **changes: object) -> None:
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | changes))


def test_table_holds_the_numbers_of_the_summary(comparison: Path, page: Path) -> None:
    text = text_of(page)
    rows = summarize(read_comparison(comparison)).rows
    assert [row.variant for row in rows] == ["backprop", "dropout", "shadow"]
    for row in rows:
        assert row.test_error_se is not None
        assert row.shadow_error_se is not None
        cells = [
            row.variant,
            str(row.runs),
            f"{100 * row.test_error:.2f} ± {100 * row.test_error_se:.2f}",
            f"{100 * row.shadow_error:.2f} ± {100 * row.shadow_error_se:.2f}",
            f"{100 * row.label_agreement:.2f}",
        ]
        if row.difference is None or row.difference_se is None or row.p_value is None:
            cells += ["—", "—"]
        else:
            sign = "−" if row.difference < 0 else "+"
            cells.append(f"{sign}{abs(100 * row.difference):.2f} ± {100 * row.difference_se:.2f}")
            cells.append(f"{row.p_value:.3f}" if row.p_value < 0.1 else f"{row.p_value:.2f}")
        assert " ".join(cells) in text
        assert f"{cells[2]} %" in text  # in the summary too


def test_page_stands_alone(page: Path) -> None:
    found = Reader(page.read_text())
    assert page.stat().st_size < 1_000_000
    assert "script" not in found.tags
    assert all(url.startswith(("data:", "#")) for url in found.urls)
    assert len(found.ids) == len(set(found.ids))
    assert found.references <= set(found.ids)
    assert {url[1:] for url in found.urls if url.startswith("#")} <= set(found.ids)
    assert "default-src 'none'" in page.read_text().replace("&#39;", "'")


def test_page_is_the_same_every_time(comparison: Path, page: Path, tmp_path: Path) -> None:
    first = page.read_bytes()
    assert build(comparison, tmp_path / "again.html").read_bytes() == first
    assert str(comparison.parent).encode() not in first  # nothing that names the machine or its user


def test_default_place_and_directory_as_place(single: Path, tmp_path: Path) -> None:
    assert build(single) == single / "report.html"
    (tmp_path / "pages").mkdir()
    assert build(single, tmp_path / "pages") == tmp_path / "pages" / "report.html"
    with pytest.raises(BadInput, match="make it first"):
        build(single, tmp_path / "nowhere" / "page.html")


def test_single_run_gives_its_numbers(single: Path) -> None:
    text = text_of(build(single))
    final = json.loads((single / "metrics.jsonl").read_text().splitlines()[-1])
    for name in ("test_error", "shadow_error", "label_agreement"):
        assert f"{100 * final[name]:.2f} %" in text
    assert "It is one run" in text


@pytest.mark.parametrize("where", ["data", "environment", "layer"])
def test_text_from_a_directory_is_only_text(single: Path, where: str) -> None:
    attack = "</style></title></svg><script>alert(1)</script><b onclick=alert(2)>$x^{"
    config = json.loads((single / "config.json").read_text())
    if where == "data":
        config["settings"]["data"] = attack
    elif where == "environment":
        config["environment"] = {attack: [attack], "deep": {attack: {attack: None}}}
    else:
        lines = [json.loads(line) for line in (single / "metrics.jsonl").read_text().splitlines()]
        for line in lines:
            line["recovery_error"] = {attack: 0.5}
        (single / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (single / "config.json").write_text(json.dumps(config))
    page = build(single)
    found = Reader(page.read_text())  # asserts that no element has an on… attribute
    assert "script" not in found.tags
    assert "b" not in found.tags
    assert "alert(2)" in found.text


def test_hostile_variant_is_refused(copied: Path) -> None:
    change_json(copied / "comparison.json", variants=["../../<script>"])
    with pytest.raises(BadInput, match="variants out of"):
        build(copied)


def test_where_data_lie_is_not_told(single: Path) -> None:
    config = json.loads((single / "config.json").read_text())
    config["settings"] |= {"data_root": "/home/somebody/secret"}
    (single / "config.json").write_text(json.dumps(config))
    assert "somebody" not in build(single).read_text()


def test_unfinished_comparison_names_what_is_missing(copied: Path) -> None:
    shutil.rmtree(copied / "runs" / "dropout" / "seed-1")
    (copied / "runs" / "shadow" / "seed-2" / "model.safetensors").unlink()
    text = text_of(build(copied))
    assert "2 of 9 planned runs are not finished and left out" in text
    assert "dropout with seed 1 (not begun)" in text
    assert "shadow with seed 2 (at epoch 2 of 2)" in text
    assert "obverse compare --resume copy" in text


def test_first_variant_missing_changes_the_reference(copied: Path) -> None:
    shutil.rmtree(copied / "runs" / "backprop")
    text = text_of(build(copied))
    assert "difference to dropout" in text
    assert "difference to backprop" not in text


def test_one_seed_makes_no_claim(copied: Path) -> None:
    change_json(copied / "comparison.json", seeds=[0])
    text = text_of(build(copied))
    assert "cannot be said" in text
    assert "±" not in text.split("How to read this")[0].replace("mean ± standard error over runs", "")


def test_nothing_finished_is_a_sentence(copied: Path) -> None:
    shutil.rmtree(copied / "runs")
    with pytest.raises(BadInput, match=r"at least one finished run .* got none of 9; .*--resume"):
        build(copied)


def test_unfinished_run_shows_what_there_is(single: Path) -> None:
    (single / "model.safetensors").unlink()
    lines = (single / "metrics.jsonl").read_text().splitlines(keepends=True)
    (single / "metrics.jsonl").write_text("".join(lines[:2]))
    text = text_of(build(single))
    assert "it has reached epoch 1 of 2" in text
    assert "No images: expected the weights of a finished run" in text


def test_run_evaluated_before_training_only(single: Path) -> None:
    lines = (single / "metrics.jsonl").read_text().splitlines(keepends=True)
    (single / "metrics.jsonl").write_text(lines[0])
    (single / "model.safetensors").unlink()
    assert "it has reached epoch 0 of 2" in text_of(build(single))


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda path: None, "no config.json or comparison.json"),
        (lambda path: (path / "config.json").write_text("{"), "in JSON"),
        (lambda path: (path / "config.json").write_text('{"format": 7}'), "format 7"),
        (lambda path: (path / "comparison.json").write_text("[]"), "JSON object"),
    ],
    ids=["empty", "no JSON", "other format", "a list"],
)
def test_bad_directory_is_a_sentence(tmp_path: Path, prepare, sentence: str) -> None:
    prepare(tmp_path)
    with pytest.raises(BadInput, match=sentence):
        build(tmp_path)
    with pytest.raises(BadInput, match="No such file or folder: "):
        build(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "record",
    [
        {"epoch": "<b>", "seconds": 0},
        {"epoch": True, "seconds": 0},
        {"epoch": 3, "seconds": None},
        {"epoch": 3, "seconds": 0, "test_error": "0.1", "shadow_error": 0, "label_agreement": 0},
        {"epoch": 3, "seconds": 0, "test_error": -0.1, "shadow_error": 0, "label_agreement": 0},
        {"epoch": 3, "seconds": 0, "test_error": 1.5, "shadow_error": 0, "label_agreement": 0},
        {"epoch": 3, "seconds": 0, "test_error": 0.5},
        {"epoch": 3, "seconds": 0, "recovery_error": [1]},
        {"epoch": 3, "seconds": 0, "recovery_error": {"h1": "x"}},
    ],
)
def test_metrics_that_are_none_are_refused(single: Path, record: dict[str, object]) -> None:
    with (single / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    with pytest.raises(BadInput, match=r"metrics\.jsonl; got .* in record 4"):
        build(single)


def test_flat_data_make_a_page_without_pictures(tmp_path: Path, train_on) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "flat.npz", x=random.random((60, 5), dtype=np.float32), y=np.arange(60) % 3)
    text = text_of(build(train_on(tmp_path / "flat.npz")))
    assert "A net trained on flat.npz" in text
    assert "No images: expected images with 1 or 3 channels" in text


def test_held_out_points_are_not_called_a_test(tmp_path: Path, train_on) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "flat.npz", x=random.random((60, 5), dtype=np.float32), y=np.arange(60) % 3)
    text = text_of(build(train_on(tmp_path / "flat.npz", validation=10)))
    assert "validation error" in text
    assert "test error" not in text.lower()


def test_every_variant_has_its_own_look() -> None:
    looks = {(index % len(LIGHT), index % len(MARKERS)) for index in range(len(VARIANTS))}
    assert len(looks) == len(VARIANTS)


@pytest.mark.parametrize(("colours", "page"), [(LIGHT, LIGHT_PAGE), (DARK, DARK_PAGE)])
def test_colours_stand_out_from_the_page(colours: tuple[str, ...], page: str) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in colours:
        low, high = sorted((luminance(colour), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= 3  # WCAG, graphical objects


def test_import_loads_nothing_heavy() -> None:
    code = (
        "import sys, obverse.present; print([m for m in ('matplotlib', 'jinja2', 'PIL') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
