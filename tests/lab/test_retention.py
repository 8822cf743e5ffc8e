"""The figures of what each layer of a public net still sees come from the files alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from experiments.retention import page
from experiments.retention.run import LAYERS, SHOWN, SIDE
from saved import result_text
from shadow.sample_surveys import reading, sample_survey


def test_figures_come_from_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = sample_survey(5)
    kept = replace(reading(), found=0.5, centred=0.4, unrelated=1.2)
    layers = tuple(
        replace(one, name=name, own=kept, shuffled=kept, untrained=kept)
        for name, one in zip(LAYERS, survey.layers, strict=True)
    )
    for reverse in ("fitted", "transpose"):
        text = result_text(replace(survey, layers=layers, reverse=reverse, among=50))
        (tmp_path / f"alexnet-{reverse}.json").write_text(text)
    draw = torch.Generator().manual_seed(0)
    noise = (len(SHOWN), 3, SIDE, SIDE)
    images = {"original": torch.randint(256, noise, generator=draw, dtype=torch.uint8)}
    images |= {f"{layer}|{way}": images["original"].clone() for layer in LAYERS for way in page.ROWS}
    save_file(images, tmp_path / "images.safetensors")
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    monkeypatch.setattr(page, "IMAGES", tmp_path / "images.safetensors")
    monkeypatch.setattr(page, "FIGURES", tmp_path)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    (tmp_path / "shadow.md").write_text("Before.\n<!-- results -->\n<!-- end of results -->\nAfter.\n")
    page.page()
    with Image.open(tmp_path / "retention.png") as shown:
        assert shown.width <= 1000  # of a page
    assert (tmp_path / "retention.png").stat().st_size < 1_000_000
    assert (tmp_path / "retention-curve.svg").stat().st_size > 10_000
    text = (tmp_path / "shadow.md").read_text()
    row = "0.25 / 0.25 / 0.25 | 0.75 / 0.75 / 0.75 | 1.20 | 50 / 50 / 50 | – / – / – | 0.40 / 0.40 / 0.40 |"
    for title in LAYERS.values():
        assert text.count(f"| {title} | {row}") == 2  # of both reverses
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
