"""`obverse explore` as a process: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from app.commands import explorer
from obverse.training import ClassifierTask, Settings, create_run, fit_classifier


@pytest.fixture
def run(tmp_path: Path, data: Path) -> Path:
    """A run of a tiny net."""
    settings = Settings(data=str(data), hidden=(6, 5), epochs=1, batch_size=20)
    create_run(tmp_path / "run", settings)
    fit_classifier(ClassifierTask(settings), tmp_path / "run")
    return tmp_path / "run"


def about(url: str) -> dict:
    request = urllib.request.Request(f"{url}about", b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.slow  # a real process that is stopped by Ctrl-C: also below
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_run_is_shown_until_it_is_stopped(tmp_path, run, how):
    with explorer(tmp_path, str(run)) as running:
        found = about(running.address.url)
        assert found["net"]["name"] == "run"
        assert [one["name"] for one in found["net"]["layers"]] == ["h1", "h2", "h3"]
        kept = tmp_path / "obverse" / "explore" / "address.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert running.stop(how) == 0
        assert "stopped" in running.process.stderr.read()


@pytest.mark.slow
def test_a_factory_with_normalised_inputs(tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shape = np.load(data)["train_x"].shape[1:]
    monkeypatch.setenv("OBVERSE_TEST_INPUTS", str(int(np.prod(shape))))
    (tmp_path / "mynets.py").write_text(
        "import os\nfrom torch import nn\n"
        "def flat(width=7):\n"
        "    inputs = int(os.environ['OBVERSE_TEST_INPUTS'])\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 3))\n"
    )
    words = ("mynets:flat", "--arg", "width=9", "--data", str(data), "--normalize", "0.5", "0.25")
    with explorer(tmp_path / "cache", *words) as running:
        assert about(running.address.url)["net"]["layers"][0]["shape"] == [9]


def test_the_browser_is_led_in_by_a_private_file(tmp_path, run):
    """Its command line, which other users can see, must not hold the token."""
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\ncat "$(echo "$1" | sed s,file://,,)" >> {told}\n'
    )
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "obverse", "explore", str(run)],
        env=os.environ
        | {"XDG_CACHE_HOME": str(tmp_path), "BROWSER": f"{browser} %s", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().split()[-1]
        for _ in range(1200):
            if told.exists() and address in told.read_text():
                break
            time.sleep(0.05)
        argument, *content = told.read_text().splitlines()
        assert argument.startswith("file://")
        assert address.split("/")[3] not in argument
        assert address in "".join(content)
        door = Path(argument.removeprefix("file://"))
        assert stat.S_IMODE(door.parent.stat().st_mode) == 0o700
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert "stopped" in process.stderr.read()
        assert not door.parent.exists()
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_is_told(obverse, run, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = obverse("explore", run, "--no-browser", "--port", taken.getsockname()[1])
    assert done.code == 2
    assert "to be free" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothere"], "No such file or folder: 'nothere'"),
        (["--data-root", "x"], "a run or a model with --data-root"),
        (["nothere:net"], "--data"),
        (["--data", "digits"], "a run or a model with --data"),
        (["--weights", "x.safetensors"], "a run or a model with --weights"),
        (["--normalize", "0", "1"], "a run or a model with --normalize"),
        (["--port", "70000"], "--port from 0 to 65535"),
        (["--port", "-1"], "--port from 0 to 65535"),
    ],
)
def test_what_cannot_be_shown_is_told(obverse, words, told, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = obverse("explore", "--no-browser", *words)
    assert done.code == 2
    assert told in done.err
    assert not list(tmp_path.iterdir())  # refused before anything is trained or written
