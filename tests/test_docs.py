"""Every Python block of the documentation runs, file by file, in order."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from obverse.claims import _registry, claims

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(f"docs_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # as in a file: functions are found by name
    claims()
    monkeypatch.setattr(_registry, "_CLAIMS", dict(_registry._CLAIMS))  # a page's own claims end with it
    for number, block in enumerate(blocks(page), start=1):
        file = tmp_path / f"block_{number}.py"  # so that the source of its functions can be read
        file.write_text(block, encoding="utf-8")
        exec(compile(block, str(file), "exec"), module.__dict__)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
