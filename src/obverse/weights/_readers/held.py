"""What was fetched and will be needed again: in memory, or in a temporary file. Not for fetching."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput

Write = Callable[[bytes], object]


class Held:
    """Of a repository: the last tensor that several weights are cut from, and the last one read in parts.

    The first is kept in memory, the second in a file without a name, which is gone with the process. One of
    each at most: before another is fetched it is let go.
    """

    def __init__(self) -> None:
        self.shared: set[str] = set()  # tensors that several weights are cut from
        self._name, self._tensor = "", torch.empty(0)
        self._filed: str = ""
        self._file: IO[bytes] | None = None
        self._close: weakref.finalize[[], Held] | None = None
        self._lock, self._file_lock = threading.Lock(), threading.Lock()

    def load(self, name: str, fetch: Callable[[], Tensor]) -> Tensor:
        if name not in self.shared:
            return fetch()
        with self._lock:
            if name != self._name:
                self._name, self._tensor = "", torch.empty(0)
                self._tensor = fetch()
                self._name = name
            return self._tensor

    def part(
        self,
        name: str,
        fetch: Callable[[Write], object],
        dtype: torch.dtype,
        shape: tuple[int, ...],
        rows: slice,
        columns: slice,
    ) -> Tensor:
        """Some rows and columns of a matrix; `fetch` hands on its bytes in their order."""
        with self._file_lock, _room():
            content = np.memmap(self._filled(name, fetch), np.uint8, mode="c")  # torch warns of "r"
            return torch.from_numpy(content).view(dtype).reshape(shape)[rows, columns].clone()

    def _filled(self, name: str, fetch: Callable[[Write], object]) -> IO[bytes]:
        if self._file is not None and self._filed == name:
            return self._file
        if self._close is not None:
            self._close()
        target: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  -- closed with this object
        self._filed, self._file, self._close = "", target, weakref.finalize(self, target.close)

        def write(chunk: bytes) -> None:
            with _room():
                target.write(chunk)

        fetch(write)
        target.flush()
        self._filed = name
        return target


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(
            f"room for a large tensor in {tempfile.gettempdir()}",
            got=error.strerror or error,
            do="set TMPDIR to a folder with more room",
        ) from None
