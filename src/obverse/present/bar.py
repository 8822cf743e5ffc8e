"""A bar for `progress=`: in a notebook, on a terminal, nothing elsewhere. Not for commands: see progress."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, Self

from .._core import plain

EVERY = 0.1  # seconds between two looks: a kernel that tells more often makes the page slow
LONGEST = 60  # letters of what is being done
WIDTH = 24  # of the bar on a terminal


class View(Protocol):
    """Where a bar is seen."""

    def show(self, done: int, total: int, text: str) -> None: ...

    def close(self) -> None: ...


class ProgressBar:
    """How far a long call is, as its argument: `obverse.audit(net, progress=obverse.ProgressBar())`.

    In a notebook it is a bar below the cell, by ipywidgets if they are installed; on a terminal a line that
    changes; where the output is a file it is silent. `with ProgressBar() as progress:` takes it away at the
    end; without `with` it stays, full, and the next call with the same bar begins it anew.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self._view: View | None = None
        self._began, self._shown = 0.0, 0.0
        self._what: tuple[int, bool] = (-1, False)

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """What a call with `progress=` tells: so much is done, of so much, and what is being done."""
        now = monotonic()
        if self._view is None:
            self._view = choose_view()
        if self._what[0] != total or self._what[1]:  # another part of the work, or another call
            self._began, self._shown = now, 0.0
        over = done >= total
        self._what = (total, over)
        if over or now - self._shown >= EVERY:
            self._shown = now
            self._view.show(done, total, self._text(done, total, what, now - self._began))

    def _text(self, done: int, total: int, what: str, seconds: float) -> str:
        parts = [plain(self.title, LONGEST), f"{done:,} of {total:,}", plain(str(what), LONGEST)]
        if done >= total:
            parts.append(spell(seconds))
        elif done and seconds >= 1:
            parts.append(f"about {spell(seconds * (total - done) / done)} left")
        return ", ".join(part for part in parts if part)

    def close(self) -> None:
        """Take the bar away."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def spell(seconds: float) -> str:
    """How long, for people: 3 s, 12 min, 1.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def choose_view() -> View:
    """By where this runs: a notebook's kernel, a terminal, or neither."""
    kernel = _kernel_display()
    if kernel is not None:
        return _widget() or CellView(kernel)
    return TerminalView() if sys.stderr.isatty() else SilentView()


def _kernel_display() -> Callable[..., Any] | None:
    """IPython's `display`, in a kernel alone: on a terminal it shows no HTML. It is not loaded for this."""
    found = sys.modules.get("IPython")
    shell = found.get_ipython() if found is not None and hasattr(found, "get_ipython") else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    from importlib import import_module

    display: Callable[..., Any] = import_module("IPython.display").display
    return display


def _widget() -> View | None:
    try:
        return WidgetView()
    except ImportError:
        return None


class SilentView:
    def show(self, done: int, total: int, text: str) -> None:
        """Nothing: what is not looked at needs no bar."""

    def close(self) -> None:
        """Nothing was shown."""


class TerminalView:
    """One line that changes, on stderr."""

    def __init__(self) -> None:
        self._last = 0

    def show(self, done: int, total: int, text: str) -> None:
        full = WIDTH * min(done, total) // max(total, 1)
        line = f"{'━' * full}{'─' * (WIDTH - full)} {text}"
        sys.stderr.write(f"\r{line:<{self._last}}{chr(10) if done >= total else ''}")
        sys.stderr.flush()
        self._last = 0 if done >= total else len(line)

    def close(self) -> None:
        if self._last:
            sys.stderr.write(f"\r{'':<{self._last}}\r")
            sys.stderr.flush()
        self._last = 0


class WidgetView:
    """A bar of ipywidgets."""

    def __init__(self) -> None:
        from importlib import import_module

        widgets: Any = import_module("ipywidgets")
        self._bar = widgets.IntProgress(min=0, max=1, layout=widgets.Layout(width="16em"))
        self._label = widgets.Label()
        self._box = widgets.HBox([self._bar, self._label])
        import_module("IPython.display").display(self._box)

    def show(self, done: int, total: int, text: str) -> None:
        self._bar.max, self._bar.value = max(total, 1), min(done, total)
        self._bar.bar_style = "success" if done >= total else ""
        self._label.value = text

    def close(self) -> None:
        self._box.close()
        self._bar.close()
        self._label.close()


class CellView:
    """The browser's own bar, shown anew each time."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, done: int, total: int, text: str) -> None:
        bar = f'<progress value="{min(done, total)}" max="{max(total, 1)}" style="width:16em"></progress>'
        self._put({"text/html": f"<div>{bar} {escape(text)}</div>", "text/plain": text})

    def _put(self, bundle: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def close(self) -> None:
        if self._handle is not None:
            self._put({"text/html": "", "text/plain": ""})
            self._handle = None
