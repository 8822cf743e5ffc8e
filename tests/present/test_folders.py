"""Commands that write into one folder: the second is told, whether it comes from this process or another."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from obverse._core.locks import RunLocked
from obverse.present import Command, make_folder
from training.helpers import ENVIRONMENT

ANOTHER = """
import sys
from pathlib import Path
from obverse.present.output import holding_folders, make_folder
with holding_folders():
    make_folder(Path(sys.argv[1]))
"""


def test_a_folder_is_its_commands_own_until_it_ends(tmp_path):
    out = tmp_path / "out"
    app = typer.Typer()
    seen = []

    @app.command(cls=Command)
    def work() -> None:
        make_folder(out)
        done = subprocess.run(
            [sys.executable, "-c", ANOTHER, str(out)], capture_output=True, text=True, env=ENVIRONMENT
        )
        seen.append(done.stderr)

    for _ in range(2):  # nothing is left of the first one's lock
        result = CliRunner().invoke(app)
        assert result.exit_code == 0
    assert len(seen) == 2
    assert all("another process is working in it" in said for said in seen)
    assert list(out.iterdir()) == []


def test_two_in_one_process_are_kept_apart_too(tmp_path):
    app = typer.Typer()

    @app.command(cls=Command)
    def work() -> None:
        make_folder(tmp_path)
        with pytest.raises(RunLocked):
            make_folder(tmp_path)

    assert CliRunner().invoke(app).exit_code == 0
