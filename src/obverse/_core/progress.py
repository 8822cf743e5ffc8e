"""How far long work is: the computation counts, `present` shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# What every `progress` argument is: called with how much is done, of how much, and what is being done.
Progress = Callable[[int, int, str], None]
Advance = Callable[[int], None]  # so many more bytes
ShowDownload = Callable[[str, int, int | None], AbstractContextManager[Advance]]
_SHOWN: list[ShowDownload] = []


def show_downloads(show: ShowDownload) -> None:
    """For `present`: how a download's name, first byte and size are shown."""
    _SHOWN[:] = [show]


@contextmanager
def download_progress(name: str, start: int, total: int | None) -> Iterator[Advance]:
    """As `present` shows it; without it, as in a script, one line on a terminal."""
    if not _SHOWN:
        if sys.stderr.isatty():
            sys.stderr.write(f"downloading {name}\n")
        yield lambda count: None
        return
    with _SHOWN[0](name, start, total) as advance:
        yield advance
