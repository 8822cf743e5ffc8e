"""Arrows point down: who may import whom, read from the source (imports inside functions included)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import obverse

# architecture.md, "Rules that keep it simple"
FLOORS = {
    "choices": -1,
    "errors": -1,
    "files": -1,
    "lazily": -1,
    "records": -1,
    "streams": -1,
    "tensors": -1,
    "nets": 0,
    "data": 0,
    "shadow": 1,
    "randomlike": 2,
    "identity": 2,
    "ladder": 2,
    "generative": 2,
    "diversity": 2,
    "training": 3,
    "claims": 4,
    "report": 5,
    "explore": 5,
    "cli": 5,
}
APART = (0, 2)  # on these floors the packages do not import each other either
ROOT = Path(obverse.__file__).parent


def imported(source: str, module: str, is_package: bool) -> Iterator[str]:
    """Full names of everything of ours that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            # `from .. import name` may name a package: the name belongs to the path.
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            target = node.args[0]
            if name in ("import_module", "__import__") and isinstance(target, ast.Constant):
                yield str(target.value)


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module imports against the rules, each as a sentence."""
    own = module.split(".")[1]
    found = []
    for name in imported(source, module, is_package):
        parts = name.split(".")
        if parts[0] != "obverse" or parts[1:2] == [own]:
            continue
        other = parts[1] if len(parts) > 1 else ""
        if other == "__version__":
            continue
        if other not in FLOORS:
            found.append(f"{module} imports {name}: the package's own front door, or on no floor")
        elif FLOORS[other] > FLOORS[own]:
            found.append(f"{module} (floor {FLOORS[own]}) imports {name} from floor {FLOORS[other]} above")
        elif FLOORS[other] == FLOORS[own] and FLOORS[own] in APART:
            found.append(f"{module} imports {name}: packages of floor {FLOORS[own]} stand apart")
    return found


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


INSIDE = [(name, path) for name, path in modules() if name not in ("obverse", "obverse.__main__")]


@pytest.mark.parametrize(("module", "path"), INSIDE, ids=[name for name, _ in INSIDE])
def test_arrows_point_down(module, path):
    assert violations(path.read_text(encoding="utf-8"), module, path.name == "__init__.py") == []


def test_every_package_has_a_floor():
    assert {name.split(".")[1] for name, _ in INSIDE} <= FLOORS.keys()
    assert len(INSIDE) > 30


WRONG = [
    ("obverse.nets.relu_mlp", "from ..shadow import Shadow"),
    ("obverse.nets.relu_mlp", "from ..data import load"),
    ("obverse.nets.relu_mlp", "from .. import shadow"),
    ("obverse.nets.relu_mlp", "import obverse.training.fit as f"),
    ("obverse.nets.relu_mlp", "def f():\n    from obverse.shadow._loss import ShadowLoss"),
    ("obverse.nets.relu_mlp", "class A:\n    def f(self):\n        if self:\n            import obverse.app"),
    ("obverse.nets.relu_mlp", "from importlib import import_module\nimport_module('obverse.shadow')"),
    ("obverse.nets.relu_mlp", "import importlib\nimportlib.import_module('obverse.shadow')"),
    ("obverse.nets.relu_mlp", "import obverse"),
    ("obverse.nets.relu_mlp", "from obverse import ShadowLoss"),
    ("obverse.nets.relu_mlp", "from .. import ShadowLoss"),
    ("obverse.shadow._loss", "from ..training import fit"),
    ("obverse.weights.audit", "from ..identity import factorize"),
    ("obverse.ladder.deep.teacher", "from ...diversity.birthday import test"),
    ("obverse.training.fit", "from ..claims import Claim"),
    ("obverse.training.fit", "from ..report import build"),
    ("obverse.claims._runner", "import obverse.app.main"),
    ("obverse._core.errors", "from .shadow import Shadow"),
    ("obverse._core.errors", "from . import data"),
]
RIGHT = [
    ("obverse.nets.relu_mlp", "from ..errors import BadInput\nimport torch, os.path"),
    ("obverse.nets.relu_mlp", "from .residual import block\nfrom . import residual"),
    ("obverse.weights.audit", "from ..shadow import Shadow\nfrom ..data import load\nfrom .. import nets"),
    ("obverse.training._rundir", "def f():\n    from .. import __version__"),
    (
        "obverse.app.main",
        "from .. import __version__\nfrom ..report import build\nfrom ..training import fit",
    ),
    ("obverse.claims._runner", "from obverse.training import fit\nfrom obverse.ladder import teacher"),
    ("obverse._core.errors", "import torch\nfrom importlib import import_module\nimport_module(package)"),
]


@pytest.mark.parametrize(("module", "source"), WRONG)
def test_a_wrong_import_is_caught(module, source):
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(("module", "source"), RIGHT)
def test_a_right_import_is_not(module, source):
    assert violations(source, module) == []


def test_relative_imports_of_a_package_count_from_the_package():
    assert violations("from .loss import ShadowLoss", "obverse.shadow", is_package=True) == []
    assert len(violations("from ..training import fit", "obverse.shadow", is_package=True)) == 1
