"""The notebooks: in step with their code, small, without errors and paths; and they run from empty."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ids = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def code_of(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_six() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == list("123456")


@ids
def test_outputs_are_those_of_the_code(path: Path) -> None:
    """Run it again with `python notebooks/run.py NAME` where this fails."""
    notebook = read(path)
    cells = code_of(notebook)
    joined = "\n\n".join(text(cell["source"]) for cell in cells)
    assert notebook["metadata"]["obverse"]["code"] == hashlib.sha256(joined.encode()).hexdigest()
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [one for cell in cells for one in cell["outputs"]]
    assert {one["output_type"] for one in outputs} <= {"stream", "display_data", "execute_result"}
    assert all(one.get("name") != "stderr" for one in outputs)
    figures = [one for one in outputs if "image/png" in one.get("data", {})]
    assert len(figures) >= 2
    assert any("text/html" in one.get("data", {}) for one in outputs)


@ids
def test_it_is_small_and_says_nothing_of_a_machine(path: Path) -> None:
    assert path.stat().st_size <= 300_000
    notebook = read(path)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            for data in (output.get("text", ""), *output.get("data", {}).values()):
                assert not re.search(r"(/home/|/root/|/tmp/|/work/|site-packages| at 0x)", text(data))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info", "obverse"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "version" not in notebook["metadata"]["language_info"]


@ids
def test_it_begins_with_a_question_and_ends_with_two_exercises(path: Path) -> None:
    cells = read(path)["cells"]
    first, second, last = cells[0], cells[1], cells[-1]
    assert text(first["source"]).startswith("# ")
    assert "?" in text(first["source"])
    assert "%pip install" in text(second["source"])
    assert second["outputs"] == []
    assert text(last["source"]).startswith("## Exercises\n")
    assert re.findall(r"^(\d)\. ", text(last["source"]), re.MULTILINE) == ["1", "2"]


@ids
def test_words_have_no_numbers_that_a_run_could_change(path: Path) -> None:
    """What was measured is printed, never written: no decimals and no per cent in the prose."""
    for cell in read(path)["cells"]:
        if cell["cell_type"] == "markdown":
            prose = re.sub(r"`[^`]*`|\$[^$]*\$", "", text(cell["source"]).partition("## Exercises")[0])
            assert not re.findall(r"\d+\.\d+ (?!says)|\d ?%", prose), prose


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # each trains or builds nets
@ids
def test_it_runs_from_empty(path: Path, runner: ModuleType) -> None:
    again = runner.execute(path)
    assert again["metadata"] == read(path)["metadata"]
    for cell, kept in zip(code_of(again), code_of(read(path)), strict=True):
        kinds = [(one["output_type"], sorted(one.get("data", ()))) for one in cell["outputs"]]
        assert kinds == [(one["output_type"], sorted(one.get("data", ()))) for one in kept["outputs"]]


def test_what_is_printed_is_kept_in_one_piece(runner: ModuleType) -> None:
    import nbformat

    out, err = ({"output_type": "stream", "name": name} for name in ("stdout", "stderr"))
    image = nbformat.v4.new_output("display_data", data={"text/plain": "a figure"})
    pieces = [out | {"text": "a"}, out | {"text": "b"}, err | {"text": "c"}, image, out | {"text": "d"}]
    assert runner.joined(pieces) == [out | {"text": "ab"}, err | {"text": "c"}, image, out | {"text": "d"}]


def test_what_only_a_running_notebook_shows_is_left_out(runner: ModuleType) -> None:
    import nbformat

    shown = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "HBox(…)"}
    output = nbformat.v4.new_output("display_data", data=shown, metadata={"x": 1})
    assert runner.tidy(output) == {
        "output_type": "display_data",
        "data": {"text/plain": "HBox(…)"},
        "metadata": {},
    }
