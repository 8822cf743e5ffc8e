"""Packages whose public names are imported when they are first used. For `__init__` files alone.

So that `obverse --help` and the completion of a shell need not wait for torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """A package in which a public name wins over a submodule of the same name.

    The import system hangs every submodule into its package: here it leaves such names alone.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in self.__dict__.get("__all__", ()):
            return
        super().__setattr__(name, value)


def lazily(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `names` says which submodule each public name is in."""
    sys.modules[package].__class__ = _Package

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{names[name]}"), name)
        sys.modules[package].__dict__[name] = value
        return value

    return find
