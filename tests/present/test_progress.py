"""Progress bars: all there is to know on a terminal, silence elsewhere."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from obverse.present.progress import training_progress
from training.helpers import ENVIRONMENT, tiny_npz


def on_a_terminal(*words: str, **environment: str) -> tuple[int, str]:
    """Exit code and what a terminal of 160 columns was sent on stderr, without its escape sequences."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "obverse", *words],
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env=ENVIRONMENT | {"TERM": "xterm", **environment},
    )
    os.close(follower)
    received = b""
    with process, os.fdopen(leader, "rb", buffering=0) as terminal:
        while True:
            try:
                chunk = terminal.read(65536)
            except OSError:  # EIO: the other end was closed
                break
            if not chunk:
                break
            received += chunk
        code = process.wait(timeout=120)
    return code, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", received.decode())


def test_a_terminal_shows_loss_error_rate_and_time_to_go(tmp_path):
    data, run = tiny_npz(tmp_path / "data.npz", points=900), tmp_path / "first-run"
    words = ["--data", str(data), "--hidden", "8", "--epochs", "10", "--batch-size", "20", "--no-report"]
    code, shown = on_a_terminal("train", *words, "--out", str(run))
    assert code == 0, shown
    lines = re.split(r"[\r\n]+", shown)
    bars = [line for line in lines if line.startswith(run.name)]
    assert re.search(r" 300/300 loss \d+\.\d{3} error \d+\.\d\d% \d+ steps/s \d+:\d\d$", bars[-1].rstrip()), (
        bars[-1]
    )
    under_way = [re.search(r" (\d+)/300 .* (\d+:\d\d|--:--)$", line.rstrip()) for line in bars]
    assert any(match and int(match[1]) < 300 for match in under_way), "a bar before the end"


@pytest.mark.parametrize("colour", ["", "1"])
def test_silence_where_there_is_no_terminal(obverse, small, monkeypatch, colour):
    # FORCE_COLOR makes rich call a log file a terminal.
    if colour:
        monkeypatch.setenv("FORCE_COLOR", colour)
    assert obverse("train", *small).err == ""
    with training_progress() as follow:
        assert follow("a run") == {}
