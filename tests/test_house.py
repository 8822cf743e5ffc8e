"""The rules of docs/architecture.md, read from the source; imports inside functions and lazy ones count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

import obverse

FLOORS = {
    "_core": 0,
    "present": 1,
    "data": 1,
    "nets": 1,
    "shadow": 2,
    "weights": 3,
    "identity": 3,
    "ladder": 3,
    "generative": 3,
    "diversity": 3,
    "training": 4,
    "integrations": 4,
    "claims": 5,
    "app": 6,
}
APART = (1, 3)  # on these floors the packages do not import each other either
SHOWING = {"charts", "page", "command", "tab", "notebook"}  # the modules of a room that present
PRESENTERS = {"matplotlib", "jinja2", "typer", "rich"}
OPEN = {
    "results",
    "lightning",
    "torchmetrics",
    "transformers",
    *SHOWING,
}  # modules of a room that need no underscore
ROOT = Path(obverse.__file__).parent


class Import(NamedTuple):
    module: str  # "obverse.shadow", or "torch"
    name: str  # what is taken from it; empty for the module itself


def imports(source: str, module: str, is_package: bool = False, run: bool = False) -> Iterator[Import]:
    """Everything that a module imports, wherever in it; with `run`, not what only type checkers read."""
    package = module if is_package else module.rpartition(".")[0]
    tree = ast.parse(source)
    if run:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
                node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (
                resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
            )
            assert base
            yield from (Import(base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            target = node.args[0]
            if called in ("import_module", "__import__") and isinstance(target, ast.Constant):
                yield Import(str(target.value), "")


def room_of(one: Import) -> str:
    """The package of obverse that an import reaches; empty for others' packages and for the version."""
    parts = one.module.split(".")
    if parts[0] != "obverse":
        return ""
    if len(parts) > 1:
        return parts[1]
    return "" if one.name == "__version__" else one.name or "obverse"


def presents(module: str) -> bool:
    return module.split(".")[1] in ("present", "app") or bool(SHOWING & set(module.split(".")[2:]))


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module imports against the rules, each as a sentence."""
    own = module.split(".")[1]
    found = []
    for one in imports(source, module, is_package):
        other, said = room_of(one), f"{module} imports {one.module} {one.name}".strip()
        if one.module.split(".")[0] in PRESENTERS and not presents(module):
            found.append(f"{said}: only {', '.join(sorted(SHOWING))} present")
        if other in ("", own):
            continue
        if other not in FLOORS:
            found.append(f"{said}: the library's own front door, or on no floor")
        elif FLOORS[other] > FLOORS[own]:
            found.append(f"{said}: that is a floor above")
        elif FLOORS[other] == FLOORS[own] and FLOORS[own] in APART:
            found.append(f"{said}: rooms of one floor stand apart")
        elif other == "present" and not presents(module):
            found.append(f"{said}: only {', '.join(sorted(SHOWING))} present")
        elif one.module != "obverse" and (
            one.module != f"obverse.{other}" or one.name not in ["", *public(other)]
        ):
            found.append(f"{said}: not a public name of {other}")
    return found


def public(package: str) -> list[str]:
    names: list[str] = import_module(f"obverse.{package}").__all__
    return names


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


INSIDE = [(name, path) for name, path in modules() if name not in ("obverse", "obverse.__main__")]


@pytest.mark.parametrize("package", FLOORS)
def test_arrows_point_down_and_only_front_doors_are_used(package):
    inside = [(name, path) for name, path in INSIDE if name.split(".")[1] == package]
    assert inside
    assert [
        sentence
        for name, path in inside
        for sentence in violations(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
    ] == []


def test_every_package_has_a_floor():
    assert {name.split(".")[1] for name, _ in INSIDE} == FLOORS.keys()


def test_modules_behind_a_front_door_begin_with_an_underscore():
    """`_core`, `present` and `app` are no rooms: the first is private as a whole, the others show."""
    wrong = []
    for name, _ in INSIDE:
        _, room, *rest = name.split(".")
        if room in ("_core", "present", "app") or not rest:
            continue
        inner = rest[1:] if room == "claims" and rest[0] in PAPERS else rest
        if inner and not inner[0].startswith("_") and inner[0] not in OPEN:
            wrong.append(name)
    assert wrong == []


PAPERS = ("alm", "identity", "ladder", "vae", "gan", "tools")


def test_public_names_exist_and_are_no_modules_behind_the_door():
    for package in FLOORS:
        found = import_module(f"obverse.{package}")
        assert len(set(found.__all__)) == len(found.__all__)
        assert set(found.__all__) <= set(dir(found))
        for name in found.__all__:
            value = getattr(found, name)
            inner = getattr(value, "__name__", "") if type(value).__name__ == "module" else ""
            assert not inner or package in ("present", "_core"), f"{package}.{name} is a module"


def test_there_are_no_cycles():
    """Lazy imports count. A package's own front door may be used by its presenting modules alone."""
    named = dict(modules())
    graph = {
        name: {
            target
            for one in imports(path.read_text(encoding="utf-8"), name, run=True)
            if (target := resolved(one, named)) and target != name
        }
        for name, path in named.items()
        if path.name != "__init__.py"
    }
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " → ".join((*way[way.index(name) :], name))
        if name in done:
            return
        for other in sorted(graph.get(name, ())):
            visit(other, (*way, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def resolved(one: Import, named: dict[str, Path]) -> str | None:
    """The module of ours that an import runs: that of the name, where it comes through a front door."""
    if f"{one.module}.{one.name}" in named:
        return f"{one.module}.{one.name}"
    if one.module not in named:
        return None
    if named[one.module].name != "__init__.py":
        return one.module
    for inner in imports(named[one.module].read_text(encoding="utf-8"), one.module, is_package=True):
        if inner.name == one.name and inner.module in named and inner.module != one.module:
            return resolved(inner, named)
    return one.module


WRONG = [
    ("obverse.nets._relu_mlp", "from ..shadow import Shadow"),
    ("obverse.nets._relu_mlp", "from ..data import load"),
    ("obverse.nets._relu_mlp", "from .. import shadow"),
    ("obverse.nets._relu_mlp", "import obverse.training as f"),
    ("obverse.nets._relu_mlp", "def f():\n    from obverse.shadow import ShadowLoss"),
    (
        "obverse.nets._relu_mlp",
        "class A:\n    def f(self):\n        import obverse.app",
    ),
    ("obverse.nets._relu_mlp", "from importlib import import_module\nimport_module('obverse.shadow')"),
    ("obverse.nets._relu_mlp", "import importlib\nimportlib.import_module('obverse.shadow')"),
    ("obverse.nets._relu_mlp", "import obverse"),
    ("obverse.nets._relu_mlp", "from obverse import ShadowLoss"),
    ("obverse.nets._relu_mlp", "from .. import ShadowLoss"),
    ("obverse.shadow._loss", "from ..training import fit"),
    ("obverse.weights._audit", "from ..identity import factorize"),
    ("obverse.ladder._deep.teacher", "from ...diversity import birthday_test"),
    ("obverse.training._fit", "from ..claims import Claim"),
    ("obverse.training._fit", "from ..present import table"),
    ("obverse.training._fit", "import matplotlib.pyplot as plt"),
    ("obverse.training._fit", "def f():\n    from rich.console import Console"),
    ("obverse.weights.command", "from ..training import read_run"),
    ("obverse.weights._audit", "from ..shadow._loss import ShadowLoss"),
    ("obverse.weights._audit", "from .._core.errors import BadInput"),
    ("obverse.weights._audit", "from ..shadow import no_such_name"),
    ("obverse.claims._runner", "import obverse.app.main"),
    ("obverse.present.table", "from ..data import load"),
    ("obverse._core.errors", "from ..shadow import Shadow"),
]
RIGHT = [
    ("obverse.nets._relu_mlp", "from .._core import BadInput\nimport torch, os.path"),
    ("obverse.nets._relu_mlp", "from ._residual import block\nfrom . import _residual"),
    ("obverse.weights._audit", "from ..shadow import Shadow\nfrom ..data import load\nfrom .. import nets"),
    ("obverse.weights.page", "from ..present import registry\nfrom jinja2 import Environment"),
    ("obverse.training.command._train", "import typer"),
    ("obverse.training._rundir", "def f():\n    from .. import __version__"),
    (
        "obverse.app.main",
        "from .. import __version__\nfrom ..present import palette\nfrom ..data import load",
    ),
    ("obverse.claims._runner", "from obverse.training import fit\nfrom obverse.ladder import Teacher"),
    ("obverse._core.errors", "import torch\nfrom importlib import import_module\nimport_module(package)"),
]


@pytest.mark.parametrize(("module", "source"), WRONG)
def test_a_wrong_import_is_caught(module, source):
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(("module", "source"), RIGHT)
def test_a_right_import_is_not(module, source):
    assert violations(source, module) == []


def test_relative_imports_of_a_package_count_from_the_package():
    assert violations("from ._loss import ShadowLoss", "obverse.shadow", is_package=True) == []
    assert len(violations("from ..training import fit", "obverse.shadow", is_package=True)) == 1
