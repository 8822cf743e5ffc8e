"""A small net to explore, and a server of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from obverse.app._explorer import Subject
from obverse.app._explorer.server import Server

SECRET = "5e" * 32


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's cache is read or written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def server(subject: Subject) -> Iterator[Server]:
    """Listening at a free port."""
    found = Server(subject, 0, SECRET)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.close()


@pytest.fixture
def keeper(tmp_path: Path) -> Path:
    return tmp_path / "address.json"
