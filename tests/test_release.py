"""What a release says about itself: one version, a dated entry, and a figure of coverage that adds up."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import obverse

ROOT = Path(__file__).parent.parent


def test_one_version_and_a_dated_entry() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert entry
    assert entry[1] == obverse.__version__
    assert f"version: {entry[1]}\n" in citation
    assert f'date-released: "{entry[2]}"\n' in citation


def test_the_tested_versions_of_python_are_the_declared_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    [tested] = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", tested) == declared
    assert project["requires-python"] == f">={declared[0]}"


def test_the_figure_of_coverage_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for name in ("cover", "measure"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    counts = {"num_statements": 8, "num_branches": 2}
    files = {
        "src/obverse/__init__.py": {"covered_lines": 8, "covered_branches": 2},
        "src/obverse/weights/_audit.py": {"covered_lines": 4, "covered_branches": 1},
        "src/obverse/weights/_readers/open.py": {"covered_lines": 6, "covered_branches": 2},
    }
    report = {
        "meta": {"version": "7"},
        "files": {name: {"summary": counts | covered} for name, covered in files.items()},
    }
    found = import_module("cover").summarize(report)
    assert found["percent"] == 76.7  # 23 of 30
    assert found["packages"] == {"obverse": 100.0, "weights": 65.0}
