"""Packages whose public names are imported when they are first used. For `__init__` files alone.

So that `obverse --help` and the completion of a shell need not wait for torch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import resolve_name
from typing import Any


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package: its names are those imported below `if TYPE_CHECKING`.

    They are read from its source, so that type checkers and Python go by one list.
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    origins = {
        alias.asname or alias.name: (
            resolve_name("." * node.level + (node.module or ""), package),
            alias.name,
        )
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def find(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        origin, its_name = origins[name]
        if origin == package:  # a package of its own
            return import_module(f"{package}.{its_name}")
        value = getattr(import_module(origin), its_name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*origins, *module.__dict__.get("__all__", ())})

    return find, names
