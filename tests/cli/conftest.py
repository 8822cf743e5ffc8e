from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from obverse.app.main import main
from training.helpers import tiny_npz


class Done(NamedTuple):
    code: int
    out: str
    err: str


Obverse = Callable[..., Done]


@pytest.fixture
def obverse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Obverse:
    """The command line in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["obverse", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tiny_npz(tmp_path / "tiny.npz")


@pytest.fixture
def small(data: Path, tmp_path: Path) -> list[str]:
    """Flags of a training that takes a moment, into tmp_path/run."""
    words = ["--data", str(data), "--hidden", "5,4", "--epochs", "2", "--batch", "20", "--no-report"]
    return [*words, "--out", str(tmp_path / "run")]
