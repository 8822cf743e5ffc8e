"""What every result can do with itself in a notebook: plot(), a table, HTML. Not for how that looks.

The looks are registered a floor above, in the `notebook` module of each room: they are imported when a result
is first shown, and the computation knows nothing of them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

_SHOWS: list[str] = []


def shown_by(module: str) -> None:
    """Which module has `plot`, `html` and `frame`: told once, by the library's front door."""
    _SHOWS[:] = [module]


def _shows() -> ModuleType:
    return import_module(*_SHOWS)


class Shown:
    """A result that draws itself."""

    def plot(self, ax: Any = None, what: Any = None, **options: Any) -> Any:
        """Draw the result with matplotlib; no window opens, and pyplot keeps nothing of it.

        Without `ax` a new Figure, which a notebook shows and `savefig` writes; with `ax` these Axes, drawn
        into. `what` names one figure, or a list of them, where a result has several: all of them if left
        out. `figsize`, `dpi` and `dark` are of a new figure, `title` is above it; other options are the
        figure's own, and a wrong one is answered with those that there are.
        """
        return _shows().plot(self, ax, what, **options)

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row per layer, point, trial or whatever the result is a list of."""
        return _shows().frame(self)

    def _repr_html_(self) -> str:
        """For notebooks: a sentence and a small table, in light and dark, without scripts."""
        text: str = _shows().html(self)
        return text
