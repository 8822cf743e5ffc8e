"""A small net to explore, and a server of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from obverse.app._explorer import Subject
from obverse.app._explorer.server import Server

SECRET = "5e" * 32


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's cache is read or written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@contextmanager
def serving(subject: Subject) -> Iterator[Server]:
    """A server in this process, listening at a free port."""
    found = Server(subject, 0, SECRET)
    thread = threading.Thread(target=found.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.shutdown()
        found.close()


@pytest.fixture(scope="session")
def server(subject: Subject) -> Iterator[Server]:
    with serving(subject) as found:
        yield found


@pytest.fixture
def keeper(tmp_path: Path) -> Path:
    return tmp_path / "address.json"
