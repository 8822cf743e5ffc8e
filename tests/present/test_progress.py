"""Progress bars: all there is to know on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import fcntl
import inspect
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from app.test_voice import COMMANDS, MINUTES
from obverse.present.minute import every_minute, span
from obverse.present.progress import claims_progress, layer_progress, training_progress
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


def line(capfd, pattern):
    """The first line on stderr that matches, however long it takes."""
    deadline, heard = time.monotonic() + 60, ""
    while time.monotonic() < deadline:
        heard += capfd.readouterr().err
        for one in heard.splitlines(keepends=True):
            if one.endswith("\n") and (match := re.fullmatch(pattern, one.rstrip("\n"))):
                return match
        time.sleep(0.01)
    raise AssertionError(heard)


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
def test_short_work_prints_nothing_where_there_is_no_terminal(obverse, small, monkeypatch, colour):
    # FORCE_COLOR makes rich call a log file a terminal.
    if colour:
        monkeypatch.setenv("FORCE_COLOR", colour)
    assert obverse("train", *small).err == ""


def test_piped_training_says_now_and_then_how_far_it_is(capfd):
    with training_progress(every=0.02) as follow:
        assert line(capfd, r"preparing, \d+ s so far")
        display = follow("first\x1b[31m")
        display["on_step"](10, 40, 0.5)
        assert line(capfd, r"first[^\x1b]*31m: 10 of 40, loss 0\.500, \d+ s so far")
        display["on_record"]({"test_error": 0.042})
        display["on_record"]({"epoch": 1})
        time.sleep(0.05)
        display["on_step"](20, 40, 0.25)
        said = line(capfd, r".*: 20 of 40, loss 0\.250, error 4\.20 %, (\d+) s so far, about (\d+) s left")
        # Ten steps took what ten more will take, plus the time until the line was printed.
        assert int(said[2]) <= int(said[1]) + 1
        follow("second")["on_step"](1, 40, 1.0)
        assert line(capfd, r"second: 1 of 40, loss 1\.000, \d+ s so far")


def test_other_piped_work_says_now_and_then_how_far_it_is(capfd):
    with layer_progress("net", every=0.02) as progress:
        assert line(capfd, r"net, \d+ s so far")
        progress(0, 12, "conv1")
        assert line(capfd, r"net: 0 of 12, conv1, \d+ s so far")
        progress(6, 12, "conv7")
        assert line(capfd, r"net: 6 of 12, conv7, \d+ s so far, about \d+ s left")
        progress(12, 12, "")
        assert line(capfd, r"net: 12 of 12, \d+ s so far")
    capfd.readouterr()
    time.sleep(0.1)
    assert capfd.readouterr() == ("", "")


def test_piped_claims_count_their_settings(capfd):
    with claims_progress({"a.one": 3, "a.two": 5}, every=0.02) as progress:
        progress(2, 3, "a.one")
        assert line(capfd, r"settings of 2 claims: 2 of 8, a\.one, \d+ s so far")
        progress(5, 5, "a.two")
        assert line(capfd, r"settings of 2 claims: 7 of 8, a\.two, \d+ s so far, about \d+ s left")


def test_a_standard_error_that_was_closed_stops_no_work(capfd, monkeypatch):
    broken = Broken()
    monkeypatch.setattr("obverse.present.minute.typer.echo", broken)
    with every_minute(lambda: "still at it", every=0.01):
        broken.called.wait(60)


class Broken:
    def __init__(self) -> None:
        self.called = threading.Event()

    def __call__(self, text: str, err: bool) -> None:
        self.called.set()
        raise BrokenPipeError


def test_a_length_of_time_in_words():
    assert [span(seconds) for seconds in (0.4, 89, 90, 3600, 5400)] == [
        "0 s",
        "89 s",
        "2 min",
        "60 min",
        "1.5 h",
    ]


# Every command that may take minutes takes its display from one of these, so that none is silent when piped.
SHOWS = re.compile(r"\b(training_progress|layer_progress|audit_progress|claims_progress|search_progress)\(")


@pytest.mark.parametrize("name", MINUTES)
def test_a_command_that_may_take_minutes_has_a_display(name):
    callback = COMMANDS[name].callback
    module = sys.modules[inspect.unwrap(callback).__module__]
    folder = Path(module.__file__).parent
    files = folder.glob("*.py") if folder.name == "command" else [Path(module.__file__)]
    assert any(SHOWS.search(file.read_text(encoding="utf-8")) for file in files)
