"""Pages of runs that measured no shadows: nothing empty, and not a word of what was not measured."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from obverse._core import FIXED
from obverse._core.errors import BadInput
from obverse.app import write_report as build
from obverse.present.palette import colour
from obverse.training import Settings, compare, fit_classifier, read_run
from obverse.training import _words as words
from obverse.training._classify import ClassifierTask
from obverse.training._rundir import create_run
from obverse.training._shown import read_results
from obverse.training.charts import Shown, figures
from training.test_page import Reader, text_of


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "images.npz"
    random = np.random.default_rng(0)
    np.savez(path, x=random.random((60, 3, 8, 8), dtype=np.float32), y=np.arange(60) % 3)
    return path


def settings(data: Path, **changes: Any) -> Settings:
    small: dict[str, Any] = {"stem": (3, 3, 1), "widths": (4, 6), "blocks": 1, "epochs": 2, "batch_size": 10}
    return Settings(data=str(data), net="allconv", **(small | changes))


@pytest.fixture(scope="module")
def trained(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def train(**changes: Any) -> Path:
        path = tmp_path_factory.mktemp("runs") / "run"
        create_run(path, settings(images, **changes))
        fit_classifier(ClassifierTask(settings(images, **changes)), path)
        return path

    return train


@pytest.fixture(scope="module")
def plain(trained: Callable[..., Path]) -> Path:
    return trained(norm=True)


@pytest.fixture(scope="module")
def mixed(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison in which one variant has shadows."""
    path = tmp_path_factory.mktemp("mixed") / "comparison"
    compare(settings(images), ("backprop", "shadow"), (0, 1), path)
    return path


def colours(shown: Shown) -> set[str]:
    """The series that a figure draws."""
    return {found for panel in shown.panels for found in re.findall(r"var\(--series-\d\)", panel.svg)}


def test_a_plain_run_says_its_error_and_nothing_of_shadows(plain: Path) -> None:
    page = build(plain)
    text = text_of(page)
    assert f"{100 * read_run(plain).final['test_error']:.2f} %. It is one run" in text
    assert "residual net of 5 convolutions and batch norm, with 4 and 6 channels, was trained on" in text
    assert "shadow" not in text.lower()
    assert "—" not in text.split("Result")[1].split("Settings")[0]
    assert "hidden" not in text  # the other net's


def test_it_has_one_figure_with_a_line_in_it(plain: Path) -> None:
    (shown,) = figures(read_results(plain))
    assert (shown.title, shown.variants) == ("Test error by epoch", ())
    found = Reader(build(plain).read_text())
    assert found.tags.count("figure") == 1
    assert "img" not in found.tags
    assert len(found.ids) == len(set(found.ids))
    assert found.references <= set(found.ids)


def test_a_run_with_shadows_has_all_of_its_page(trained: Callable[..., Path]) -> None:
    path = trained(weight=1.0)
    titles = [shown.title for shown in figures(read_results(path))]
    assert titles == [
        "Error on images and on their shadows",
        "Same label for image and shadow",
        "Recovery error of each layer",
    ]
    text = text_of(build(path))
    assert "What the net generates" in text
    assert "layer stage2.0" in text


def test_a_mixed_comparison_draws_shadows_where_there_are_some(mixed: Path) -> None:
    results = read_results(mixed)
    assert list(results.shadowed) == ["shadow"]
    drawn = {shown.title: shown for shown in figures(results)}
    assert drawn["Test error by epoch"].variants == ("backprop", "shadow")
    assert drawn["Same label for image and shadow"].variants == ("shadow",)
    assert len(drawn["Error on images and on their shadows"].panels) == 1
    assert colours(drawn["Same label for image and shadow"]) == {colour(1)}  # the second variant's
    text = text_of(build(mixed))
    assert "What the net generates" in text
    row = results.table.rows[0]
    assert row.test_error_se is not None
    assert f"backprop 2 {100 * row.test_error:.2f} ± {100 * row.test_error_se:.2f} — — — —" in text
    said = " ".join(words.summary(results)).replace(FIXED, " ")
    assert "The error on shadows" in said
    assert "shadow (" in said.partition("The error on shadows")[2]
    assert "backprop (" not in said.partition("The error on shadows")[2]


def test_a_comparison_without_any_has_no_columns_for_them(images: Path, tmp_path: Path) -> None:
    compare(settings(images), ("backprop",), (0, 1), tmp_path / "out")
    text = text_of(build(tmp_path / "out"))
    assert "shadow error" not in text
    assert "same label" not in text
    assert "seconds per run" in text


def test_colours_stay_with_their_variants_when_one_is_missing(comparison: Path, tmp_path: Path) -> None:
    """`shadow` is the third variant of the plan, whether or not `dropout` has finished."""
    copy = Path(shutil.copytree(comparison, tmp_path / "copy"))
    shutil.rmtree(copy / "runs" / "dropout")
    drawn = {shown.title: shown for shown in figures(read_results(copy))}
    assert colours(drawn["Test error by epoch"]) == {colour(0), colour(2)}
    pair = drawn["Error on images and on their shadows"].panels
    assert [panel.variant for panel in pair] == ["backprop", "shadow"]
    assert set(re.findall(r"var\(--series-\d\)", pair[1].svg)) == {colour(2)}


def test_a_record_that_lacks_its_error_is_refused(plain: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(plain, tmp_path / "copy"))
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "seconds": 0, "test_error": 1.5}\n')
    with pytest.raises(BadInput, match=r"metrics\.jsonl; got test_error 1\.5 in record 4"):
        build(copy)
