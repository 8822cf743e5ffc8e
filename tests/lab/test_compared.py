"""The comparison with other tools: its numbers are those of the benchmark's files, its facts have sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments.compared import page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compared.md"


def test_the_table_is_that_of_the_benchmark() -> None:
    assert page.text() in PAGE.read_text(encoding="utf-8")
    rows = [page.row(one) for one in results()]
    for row, one in zip(rows, results(), strict=True):
        assert float(row[4].split()[0]) == pytest.approx(1 / one["ratio"], abs=0.05)  # printed to a tenth
        slow, fast = float(row[2]), float(row[3])
        assert slow / fast == pytest.approx(1 / one["details"]["ratio_of_medians"], rel=0.03)  # two roundings


def results() -> list[dict]:
    names = ("mlp", "mlp_mp_fit", "pair", "pair_mp_fit")
    folder = ROOT / "benchmarks" / "results"
    return [json.loads((folder / f"weightwatcher_{name}.json").read_text(encoding="utf-8")) for name in names]


def test_every_tool_has_a_source_and_says_what_it_does_better() -> None:
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:-1]
    assert len(parts) >= 6
    for part in parts:
        assert "](https://" in part, part.splitlines()[0]
        assert "**Better at:**" in part, part.splitlines()[0]
