"""What the README says was measured is what its generator makes of the committed results; and it is short."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from experiments.mnist import page

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_sentences_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copy(ROOT / "README.md", tmp_path)
    monkeypatch.setattr(page, "ROOT", tmp_path)
    page.few_labels()
    made = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert made == README, "run make docs"
    said = made.partition("<!-- results -->")[2].partition("<!-- end of results -->")[0]
    assert len(re.findall(r"^- \*\*", said, re.MULTILINE)) == 3
    assert re.search(r"\d\.\d\d ± 0\.\d\d % with shadows", " ".join(said.split()))


def test_it_is_read_in_a_minute() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    # what it is, an image, what to type: on the first screen
    first = "\n".join(lines[:25])
    assert "<img src=" in first
    for typed in ("git clone ", "make demo", "pip install", "obverse explore"):
        assert typed in first
    assert "make test" in README
    assert sum(line == "```text" for line in lines) >= 3  # commands with their output
