"""The sentences a user reads when something is wrong. Not for bugs: those keep their traceback."""

from __future__ import annotations

from importlib import import_module
from os import PathLike, fspath
from types import ModuleType

from .text import printable

LONGEST = 4000  # letters of a sentence: a file may put a list without end where one number belongs


class ObverseError(Exception):
    """Anything the user can correct; the command line prints it as one sentence and exits with 2.

    Sentences quote names and values of foreign origin, so every sentence is cleaned here, and bounded.
    """

    def __init__(self, sentence: object = "") -> None:
        text = printable(str(sentence))
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


class BadInput(ObverseError, ValueError):
    """An argument, a file or a setting is not what was expected.

    >>> print(BadInput("keep in (0, 1]", got=1.5, do="use keep=1.0 for no sampling"))
    expected keep in (0, 1]; got 1.5; use keep=1.0 for no sampling
    """

    def __init__(self, expected: str, *, got: object, do: str) -> None:
        shown = str(got)
        if len(shown) > LONGEST // 4:
            shown = f"{shown[: LONGEST // 4 - 1]}…"
        super().__init__(f"expected {expected}; got {shown}; {do}")


class NoSuchFile(BadInput):
    """Nothing is at the path that was given; `hint` is what else could have been meant.

    >>> print(NoSuchFile("model.safetensors"))
    No such file or folder: 'model.safetensors'
    """

    def __init__(self, path: str | PathLike[str], hint: str = "") -> None:
        said = f"No such file or folder: {fspath(path)!r}"
        ObverseError.__init__(self, f"{said}; {hint}" if hint else said)


class MissingExtra(ObverseError, ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"expected the package {package!r} to be installed; got none; "
            f"install it with: pip install 'obverse[{extra}]'"
        )


def require(package: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtra(package, extra) from error
