from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from data.helpers import Site, _Server
from obverse.data import _fetch as fetch


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A web server on this machine; retries come without pause."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "_PAUSES", (0.0, 0.0, 0.0))
    site = Site()
    server = _Server(site)
    site.base = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    server.shutdown()
    server.server_close()
    thread.join()
