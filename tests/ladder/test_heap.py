"""Freed memory goes back, and a C library that cannot give it back is no error."""

from __future__ import annotations

import ctypes

import pytest

from obverse.ladder._heap import LARGE, give_back


class Library:
    """Counts how often it is asked."""

    asked = 0

    def malloc_trim(self, keep: int) -> int:
        assert keep == 0
        Library.asked += 1
        return 1


def test_large_work_gives_memory_back_and_small_work_does_not_ask(monkeypatch):
    monkeypatch.setattr(Library, "asked", 0)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    give_back(LARGE - 1)
    assert Library.asked == 0
    give_back(LARGE)
    assert Library.asked == 1


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_another_c_library_is_no_error(monkeypatch, error):
    def missing(name):
        raise error(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    give_back(LARGE)
