"""The net out of the box: trained once, kept, and trained again where what was kept is not whole."""

from __future__ import annotations

import shutil

import pytest
import torch

from obverse._core.files import cache_folder
from obverse.app._explorer import embedded
from obverse.app._explorer.embedded import SETTINGS, embedded_run
from obverse.training import Settings, read_run


@pytest.fixture
def quickly(monkeypatch):
    """A training of a moment, and how often it happened."""
    monkeypatch.setattr(embedded, "SETTINGS", Settings(hidden=(8,), epochs=1, train_size=100, weight=0.0))
    calls = []

    def training():
        calls.append(1)
        return {}

    return training, calls


def test_it_is_trained_once(quickly):
    training, calls = quickly
    path = embedded_run(training)
    assert path.parent == cache_folder() / "explore"
    assert embedded_run(training) == path
    assert calls == [1]
    assert [one.name for one in path.parent.iterdir()] == [path.name]  # nothing is left lying about


@pytest.mark.parametrize("damage", ["no weights", "no run", "half", "other settings", "a file"])
def test_what_is_not_whole_is_made_again(quickly, damage, monkeypatch):
    training, calls = quickly
    path = embedded_run(training)
    if damage == "no weights":
        (path / "model.safetensors").unlink()
    elif damage == "half":
        (path / "config.json").write_text("{")
    elif damage == "other settings":
        monkeypatch.setattr(embedded, "SETTINGS", Settings(hidden=(9,), epochs=1, train_size=100, weight=0.0))
    else:
        shutil.rmtree(path)
        if damage == "a file":
            path.write_text("")
    assert embedded_run(training) == path
    assert calls == [1, 1]
    assert read_run(path).finished
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_without_a_cache_it_still_works(quickly, monkeypatch, tmp_path):
    training, calls = quickly
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = embedded_run(training)
    assert read_run(path).finished
    assert calls == [1]
    shutil.rmtree(path.parent)


def test_two_that_start_at_once_end_with_one_whole_net(quickly):
    training, _ = quickly
    first = embedded_run(training)
    other = embedded_run(training).with_name("made") / "run"
    shutil.copytree(first, other)
    assert embedded._put(other, first) == first
    assert read_run(first).finished
    assert not other.exists()


def test_the_real_one_is_small_and_trained_with_shadows():
    assert SETTINGS.data == "digits"
    assert SETTINGS.weight > 0
    assert max(SETTINGS.hidden) <= 500


def test_nothing_is_done_that_makes_the_first_start_wait(quickly):
    """Threads that wait for each other, and evaluations that nobody looks at, made it ten times slower."""
    threads = []

    def training():
        threads.append(torch.get_num_threads())
        return {}

    embedded_run(training)
    assert threads == [1]
    assert SETTINGS.evaluate_every == SETTINGS.epochs
