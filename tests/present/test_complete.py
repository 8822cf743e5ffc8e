"""Completion by a shell: what it proposes, in the protocol of each, and that it does not wait for torch."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from obverse.claims import claims
from obverse.present import complete

HEAVY = ("torch", "numpy", "scipy", "sklearn", "matplotlib")


def run(cwd, **environment: str) -> str:
    """The command `obverse` as a shell calls it; fails if it imports anything heavy."""
    code = (
        "import sys\nfrom obverse.app.main import main\nsys.argv = ['obverse']\n"
        "try:\n    main()\nfinally:\n"
        f"    heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    sys.stdout.flush()\n    heavy and sys.stderr.write(f'heavy: {heavy}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def bash(cwd, line: str) -> list[str]:
    words = line.split(" ")
    return run(
        cwd, _OBVERSE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
    ).splitlines()


@pytest.fixture
def place(tmp_path):
    for run in ("runs/first", "runs/second"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.json").write_text("{}")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "mine.npz").touch()
    (tmp_path / "net.safetensors").touch()
    return tmp_path


LINES = [
    ("obverse tr", ["train"]),
    ("obverse cl", ["claims"]),
    ("obverse claims s", ["show"]),
    ("obverse train --data-", ["--data-root"]),
    ("obverse train --data m", ["mnist", "mine.npz"]),
    ("obverse train --data pi", ["pictures/"]),
    ("obverse train --net ", ["mlp", "allconv"]),
    ("obverse train --labels c", ["consistency"]),
    ("obverse train --control s", ["same", "shuffled"]),
    ("obverse train --resume runs/", ["runs/first", "runs/second"]),
    ("obverse generate train --model ", ["vae", "wgan", "mixture"]),
    ("obverse generate sample ru", ["runs/", "runs/first", "runs/second"]),
    ("obverse memorize dig", ["digits"]),
    ("obverse report runs/f", ["runs/first"]),
    ("obverse sample runs/s", ["runs/second"]),
    ("obverse audit ne", ["net.safetensors"]),
    ("obverse audit net.safetensors --fail-on s", ["spikes"]),
    ("obverse diversity pictures --train mnist:", ["mnist:train", "mnist:test"]),
    ("obverse claims show alm.thm2.3.best", ["alm.thm2.3.best", "alm.thm2.3.best_error"]),
    ("obverse claims run alm.eq22 alm.eq23.c", ["alm.eq23.corrected"]),
    ("obverse ladder --summary m", ["majority"]),
    ("obverse search --sampler ", ["grid", "tpe"]),
]


@pytest.mark.parametrize(("line", "proposed"), LINES, ids=[line for line, _ in LINES])
def test_bash(place, line, proposed):
    assert bash(place, line) == proposed


def test_zsh_and_fish(place):
    zsh = run(place, _OBVERSE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="obverse train --net ")
    assert "mlp" in zsh
    assert "allconv" in zsh
    fish = run(
        place,
        _OBVERSE_COMPLETE="complete_fish",
        _TYPER_COMPLETE_ARGS="obverse claims show alm.eq22",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert fish.split() == ["alm.eq22", "alm.eq22.corrected"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_the_command(place, shell):
    script = run(place, _OBVERSE_COMPLETE=f"source_{shell}")
    assert f"_OBVERSE_COMPLETE=complete_{shell}" in script


def test_completing_takes_less_than_importing_torch(place):
    """As ratio, so that a slow machine does not matter: the better of two each."""

    def best(call):
        found = []
        for _ in range(2):
            began = time.perf_counter()
            call()
            found.append(time.perf_counter() - began)
        return min(found)

    torch = best(lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True, timeout=120))
    assert best(lambda: bash(place, "obverse claims show alm.")) < torch


def test_the_ids_that_are_proposed_are_those_of_the_registry():
    """After a change: python -c 'from obverse.claims import claims; print(*claims(), sep="\\n")' > ids.txt"""
    known = [id for id, claim in claims().items() if claim.measure.__module__.startswith("obverse.")]
    assert complete.claim("") == known


def test_a_folder_that_cannot_be_read_proposes_nothing(tmp_path):
    assert complete.run(f"{tmp_path}/none/") == []
    assert complete.data("~nobody-of-that-name/x") == []
