"""Every experiment is a folder with its question, command and results, and `make docs` finds its page."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from experiments import __main__ as loops

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(
    folder
    for folder in (ROOT / "experiments").iterdir()
    if folder.is_dir() and not folder.name.startswith(("_", "."))
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_folder_says_what_it_asks_and_has_what_it_says(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 20
    assert re.search(r"^(python -m experiments\.|make )", text, re.MULTILINE), "the command"
    assert "The answer: " in text
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (folder / link).is_file(), link
    scripts = [name for name in ("run", "page") if (folder / f"{name}.py").is_file()]
    assert scripts
    for name in scripts:
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        defined = re.search(rf"^def {name}\((.*?)\) -> None:", source, re.MULTILINE | re.DOTALL)
        assert defined, f"{folder.name}/{name}.py: {name}()"
        required = [one for one in defined[1].split(",") if one.strip() and "=" not in one]
        assert not required, f"{name}() is called without arguments"


def test_what_make_runs_in_small_can_be_run_in_small() -> None:
    for names, script in ((loops.RUNS, "run"), (loops.PAGES, "page")):
        for name in names:
            function = getattr(import_module(f"experiments.{name}.{script}"), script)
            assert inspect.signature(function).parameters["quick"].default is False, name


def test_every_page_is_called_once_in_a_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    class Page:
        def __init__(self, name: str) -> None:
            self.page = lambda: called.append(name)

    monkeypatch.setattr(loops, "import_module", Page)
    loops.docs()
    pages = sorted(folder.name for folder in FOLDERS if (folder / "page.py").is_file())
    assert called == [f"experiments.{name}.page" for name in pages]
    assert len(pages) >= 20
