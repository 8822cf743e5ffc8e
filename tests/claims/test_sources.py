"""What a kept measurement rests on: the code that it imports, and nothing else of the library."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import obverse
from obverse.claims import _sources as sources
from obverse.claims import _work as work
from obverse.claims import claims
from obverse.claims._sources import PRESENTING, Sources

LAZY = """
from typing import TYPE_CHECKING
from .._core.lazy import lazily
if TYPE_CHECKING:
    {names}
__getattr__, __dir__ = lazily(__name__)
"""
HOUSE = {
    "__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import nets, shadow\n"
    "    from .app import report\n__version__ = '1'\n",
    "_core/__init__.py": "",
    "_core/lazy.py": "",
    "nets/__init__.py": LAZY.format(names="from ._net import Net as Network\n    from ._other import Other"),
    "nets/_net.py": "from .._core.lazy import lazily\n",
    "nets/_other.py": "",
    "shadow/__init__.py": LAZY.format(names="from ..nets import Network\n    from ._loss import Loss"),
    "shadow/_loss.py": "def f():\n    try:\n        from ..nets import Network\n    finally:\n        pass\n",
    "shadow/page.py": "from ._loss import Loss\n",
    "claims/__init__.py": "",
    "claims/measure.py": "from ..shadow import Loss\n",
    "app/__init__.py": "from .report import report\n",
    "app/report.py": "from ..shadow import page\n",
    "present/__init__.py": "",
}
DEEP = """
class A:
    async def f():
        match x:
            case 1:
                from ..nets import Other
"""
MEASURE = "obverse.claims.measure"


def house(folder: Path, changed: dict[str, str] | None = None) -> Sources:
    for name, text in (HOUSE | (changed or {})).items():
        path = folder / "obverse" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Sources(folder / "obverse")


def reached(folder: Path, text: str, module: str = MEASURE) -> set[str]:
    return {name.removeprefix("obverse.") for name in house(folder).reached(module, text)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import torch", set()),
        ("from ..nets import Other", {"nets._other"}),
        ("from ..nets import Network", {"nets._net", "_core.lazy"}),  # by its name there
        ("from ..shadow import Network", {"nets._net", "_core.lazy"}),  # through two front doors
        ("from ..shadow import Loss", {"shadow._loss", "nets._net", "_core.lazy"}),
        ("from ..shadow._loss import Loss", {"shadow._loss", "nets._net", "_core.lazy"}),
        ("import obverse.nets._other as other", {"nets._other"}),
        ("from .. import nets", {"nets", "nets._net", "nets._other", "_core.lazy"}),
        ("from ..nets import *", {"nets", "nets._net", "nets._other", "_core.lazy"}),
        ("from .. import __version__", set()),
        ("from ..shadow import page", set()),
        ("import obverse.app.report, obverse.present", set()),
        ("if TYPE_CHECKING:\n    from ..nets import Other", set()),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from ..nets import Other", {"nets._other"}),
        (DEEP, {"nets._other"}),
        ("try:\n    pass\nexcept E:\n    from ..nets import Other", {"nets._other"}),
        ("import obverse", {"nets", "nets._net", "nets._other", "shadow", "shadow._loss", "_core.lazy"}),
    ],
)  # fmt: skip
def test_what_a_module_imports(tmp_path, text, names):
    assert reached(tmp_path, text) == names


def test_a_users_module_imports_by_the_public_names(tmp_path):
    assert reached(tmp_path, "from obverse.nets import Other\nimport neighbour", "mine") == {"nets._other"}


@pytest.mark.parametrize(
    ("file", "text", "matters"),
    [
        ("shadow/_loss", "from ..nets import Network\nrate = 2", True),
        ("nets/_net", "width = 7", True),  # through a front door, two levels down
        ("nets/_other", "width = 7", False),
        ("shadow/page", "title = 'another word'", False),
        ("app/report", "title = 'another word'", False),
        ("present/__init__", "title = 'another word'", False),
        ("__init__", "__version__ = '2'", False),
        # the name now comes from another file
        ("nets/__init__", LAZY.format(names="from ._other import Other as Network"), True),
    ],
)
def test_a_digest_changes_with_what_is_imported_alone(tmp_path, file, text, matters):
    measure = HOUSE["claims/measure.py"]
    before = house(tmp_path).digest(MEASURE, measure)
    after = house(tmp_path, {f"{file}.py": text}).digest(MEASURE, measure)
    assert (before != after) is matters
    assert house(tmp_path).digest(MEASURE, measure + "\n# another word") != before
    assert house(tmp_path).digest(MEASURE, measure) == before


def test_the_digest_of_everything_leaves_out_what_presents(tmp_path):
    before = house(tmp_path).digest_all()
    assert house(tmp_path, {"shadow/page.py": "title = 'another word'"}).digest_all() == before
    assert house(tmp_path, {"nets/_other.py": "width = 7"}).digest_all() != before


def keys(monkeypatch, changed: str = "") -> dict[str, str]:
    """The key of each claim at its first setting, with a comment added to one module of the library."""
    ours = Sources(Path(obverse.__file__).parent)
    if changed:
        monkeypatch.setattr(
            ours, "text", lambda name, text=ours.text: text(name) + "\n# changed" * (name == changed)
        )
    monkeypatch.setattr(work, "obverse_sources", lambda: ours)
    work._code.cache_clear()
    try:
        return {id: work.make_task(claim.measure, claim.grid[0], 0).key for id, claim in claims().items()}
    finally:
        work._code.cache_clear()


def test_what_a_change_in_the_library_means_for_its_claims(monkeypatch):
    before = keys(monkeypatch)
    for shown in ("obverse.claims.page", "obverse.weights.command", "obverse.present.table"):
        assert shown in sources.obverse_sources().files
        assert keys(monkeypatch, shown) == before
    after = keys(monkeypatch, "obverse.diversity._bounds")
    assert {id.split(".")[1] for id in before if after[id] != before[id]} == {"birthday"}
    after = keys(monkeypatch, "obverse._core.errors")
    assert not set(before.values()) & set(after.values())


def test_no_claim_of_the_library_rests_on_what_presents():
    ours = sources.obverse_sources()
    for module in {claim.measure.__module__ for claim in claims().values()}:
        used = ours.reached(module, ours.text(module))
        assert used
        assert not [name for name in used if PRESENTING & set(name.split("."))]
        assert len(used) < len(ours.files) / 4


def test_every_claim_is_planned_at_once():
    """Half a second of work, whatever else the machine does."""
    work._code.cache_clear()
    sources.obverse_sources.cache_clear()
    started = time.process_time()
    for claim in claims().values():
        for setting in claim.grid:
            work.make_task(claim.measure, setting, 0)
    assert time.process_time() - started < 2
