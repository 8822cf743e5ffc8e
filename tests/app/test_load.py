"""Fifty people moving sliders for a minute at the real command: no error, and memory stays where it was."""

from __future__ import annotations

import pytest

from app.commands import explorer
from app.load import run_clients

WARM = 10  # seconds until caches are full and every thread's memory is there
MINUTE = 60


@pytest.mark.slow
def test_fifty_clients_for_a_minute(tmp_path):
    with explorer(tmp_path) as running:
        run_clients(running.address, clients=50, seconds=WARM)
        before = running.memory()
        found = run_clients(running.address, clients=50, seconds=MINUTE)
        after = running.memory()
    assert found.errors == []
    assert found.answers > 50 * MINUTE / 10  # each client is served every few seconds at the least
    # flat: what a minute adds is within what the allocator gives and takes between two looks, 5 %
    assert after < 1.05 * before, f"{before / 2**20:.0f} MB before, {after / 2**20:.0f} MB after"
