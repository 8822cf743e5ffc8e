"""The recipes of CONTRIBUTING.md run as they stand, and the places that they name exist."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from obverse.claims import _registry as claims
from obverse.present import registry
from obverse.shadow import _reversal as rules

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def _forgotten() -> Iterator[None]:
    """What the recipes register is not there for other tests."""
    yield
    claims._CLAIMS.pop("mine.square", None)
    registry._TYPES.pop("spread.json", None)
    for kind in [kind for kind in rules._RULES if kind.__module__ == "contributing"]:
        del rules._RULES[kind]


@pytest.mark.usefixtures("_forgotten")
def test_the_recipes_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("contributing")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__dict__["folder"] = tmp_path
    recipes = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(recipes) == 3
    for number, recipe in enumerate(recipes):
        file = tmp_path / f"recipe_{number}.py"  # so that the source of its functions can be read
        file.write_text(recipe, encoding="utf-8")
        exec(compile(recipe, str(file), "exec"), module.__dict__)


def test_the_places_that_are_named_exist() -> None:
    for place in re.findall(r"`(src/obverse/[\w/.]+)`", TEXT):
        assert (ROOT / place).exists() or place == "src/obverse/spread/", place
    for name in re.findall(r"`(_\w+\.py)`", TEXT):
        assert (ROOT / "src/obverse/shadow" / name).exists() or name == "_spread.py", name
    named = re.findall(r"`(\w+)`\s+of\s+`(?:src/obverse/)?([\w/]+)\.py`", TEXT)
    assert len(named) == 4
    for name, file in named:
        module = (
            file.removeprefix("tests/") if file.startswith("tests/") else f"obverse.{file.replace('/', '.')}"
        )
        assert getattr(import_module(module), name), (name, file)
    targets = re.findall(r"^make ([\w-]+) ", TEXT, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert len(targets) == 8
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_the_request_goes_through_functions_that_exist() -> None:
    """docs/architecture.md: each step names a file and what is in it."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\| .* \| `([\w/]+)\.py` \| `(\w+)` \|$", text, re.MULTILINE)
    assert len(steps) == 21
    for file, name in [*steps, ("app/report", "write_report"), ("present/registry", "find")]:
        found = getattr(import_module(f"obverse.{file.replace('/', '.')}"), name)
        assert found.__module__ == f"obverse.{file.replace('/', '.')}", (file, name)  # and not imported there


def test_the_house_is_drawn_with_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^  (\w+)/  ", text, re.MULTILINE)
    library = ROOT / "src" / "obverse"
    assert sorted(drawn) == sorted(path.parent.name for path in library.glob("*/__init__.py"))
