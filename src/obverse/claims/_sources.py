"""Which modules of obverse a module imports, transitively, and a digest of their text. Nothing is imported.

A sweep is resumed as long as nothing that a measurement uses has changed. Imports within functions count; a
name that comes through a package's front door leads to the module that defines it, not to the whole package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

# Modules that show results: no measurement depends on them, whatever imports them.
PRESENTING = {"present", "app", "page", "command", "charts", "tab"}


class Import(NamedTuple):
    """`from module import name as alias`; without a name, the module itself."""

    module: str
    name: str
    alias: str


class Sources:
    """The modules of the package in a folder. Each is read once."""

    def __init__(self, root: Path) -> None:
        self.package = root.name
        self.files: dict[str, Path] = {}
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        self._texts: dict[str, str] = {}
        self._reached: dict[str, frozenset[str]] = {}
        self._digests: dict[tuple[str, str], str] = {}

    def digest(self, module: str, text: str) -> str:
        """Of the module's text and of every module of the package that it reaches."""
        known = self._digests.get((module, text))
        if known is None:
            parts = [text, *(f"{name}\0{self.text(name)}" for name in sorted(self.reached(module, text)))]
            known = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
            self._digests[module, text] = known
        return known

    def digest_all(self) -> str:
        """Of every module that does not present."""
        names = [name for name in self.files if not PRESENTING & set(name.split("."))]
        return self.digest("", "".join(f"import {name}\n" for name in names))

    def reached(self, module: str, text: str) -> frozenset[str]:
        """The modules of the package that a module with this text imports, and those that they import."""
        found: set[str] = set()
        waiting = {
            name for one in _imports(text, module, self._is_package(module)) for name in self._named(one)
        }
        while waiting:
            name = waiting.pop()
            found.add(name)
            if name not in self._reached:
                self._reached[name] = frozenset(
                    other for one in self._imported(name, lazy=False) for other in self._named(one)
                )
            waiting |= self._reached[name] - found
        return frozenset(found - {module})

    def text(self, module: str) -> str:
        if module not in self._texts:
            self._texts[module] = self.files[module].read_text(encoding="utf-8")
        return self._texts[module]

    def _imported(self, module: str, *, lazy: bool) -> tuple[Import, ...]:
        return _imports(self.text(module), module, self._is_package(module), lazy)

    def _is_package(self, module: str) -> bool:
        return module in self.files and self.files[module].name == "__init__.py"

    def _named(self, one: Import) -> set[str]:
        """The modules that an import leads to: of a package as a whole, all that it has names of."""
        inner = f"{one.module}.{one.name}"
        if inner in self.files:
            return self._named(Import(inner, "", ""))
        if one.module not in self.files or PRESENTING & set(one.module.split(".")):
            return set()
        if not self._is_package(one.module):
            return {one.module}
        names = self._imported(one.module, lazy=True)
        own = {one.module} - {self.package}  # whose one thing of its own is the version
        if one.name in ("", "*"):
            return own.union(*map(self._named, names))
        for other in names:
            if other.alias == one.name:
                return self._named(other)
        return own  # it defines the name itself


@cache
def _imports(text: str, module: str, is_package: bool, lazy: bool = False) -> tuple[Import, ...]:
    """What a module imports, wherever in it; what stands below `if TYPE_CHECKING` only where it is `lazy`."""
    return tuple(_walk(ast.parse(text).body, module if is_package else module.rpartition(".")[0], lazy))


def _walk(statements: Sequence[ast.AST], package: str, lazy: bool) -> Iterator[Import]:
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "", "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = resolve_name("." * node.level + base, package)
            yield from (Import(base, alias.name, alias.asname or alias.name) for alias in node.names)
        else:
            typing_only = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
            for block in ("body", "handlers", "orelse", "finalbody", "cases"):
                inner = getattr(node, block, [])
                if isinstance(inner, list) and (block != "body" or lazy or not typing_only):
                    yield from _walk(inner, package, lazy)


@cache
def obverse_sources() -> Sources:
    return Sources(Path(__file__).parents[1])
