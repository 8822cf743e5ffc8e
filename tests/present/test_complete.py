"""Completion by a shell: what it proposes, in the protocol of each, and that it does not wait for torch."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from obverse.claims import claims
from obverse.present import complete

HEAVY = ("torch", "numpy", "scipy", "sklearn", "matplotlib")


# Each request as a shell would make it, all in one process; says so if anything heavy is imported.
SHELL = f"""
import io, json, os, sys
from contextlib import redirect_stdout
from obverse.app.main import main
answers = []
for request in json.load(sys.stdin):
    os.environ.update(request)
    sys.argv = ["obverse"]
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as said:
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, stop.code
        finally:
            for name in request:
                del os.environ[name]
    said.flush()
    answers.append(said.buffer.getvalue().decode())
heavy = [name for name in {HEAVY!r} if name in sys.modules]
if heavy:
    sys.stderr.write(f"heavy: {{heavy}}")
json.dump(answers, sys.stdout)
"""


def run_all(cwd: Path, requests: list[dict[str, str]]) -> list[str]:
    """What `obverse` answers to a shell; fails if it imports anything heavy."""
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=json.dumps(requests),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    answers = json.loads(done.stdout)
    assert isinstance(answers, list)
    return answers


def run(cwd: Path, **environment: str) -> str:
    return run_all(cwd, [environment])[0]


def bash(line: str) -> dict[str, str]:
    """The request of bash for this line."""
    place = str(len(line.split(" ")) - 1)
    return {"_OBVERSE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": place}


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
    ("obverse audit h", ["hf://"]),
    ("obverse audit net.safetensors --fail-on s", ["structured", "signal"]),
    ("obverse diversity pictures --train mnist:", ["mnist:train", "mnist:test"]),
    ("obverse claims show alm.thm2.3.best", ["alm.thm2.3.best", "alm.thm2.3.best_error"]),
    ("obverse claims run alm.eq22 alm.eq23.c", ["alm.eq23.corrected"]),
    ("obverse ladder --summary m", ["majority"]),
    ("obverse search --sampler ", ["grid", "tpe"]),
]


def test_bash(place):
    answers = run_all(place, [bash(line) for line, _ in LINES])
    proposed = {line: answer.splitlines() for (line, _), answer in zip(LINES, answers, strict=True)}
    assert proposed == dict(LINES)


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


@pytest.mark.slow
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
    assert best(lambda: run(place, **bash("obverse claims show alm."))) < torch


def test_the_ids_that_are_proposed_are_those_of_the_registry():
    """After a change: python -c 'from obverse.claims import claims; print(*claims(), sep="\\n")' > ids.txt"""
    known = [id for id, claim in claims().items() if claim.measure.__module__.startswith("obverse.")]
    assert complete.claim("") == known


def test_a_folder_that_cannot_be_read_proposes_nothing(tmp_path):
    assert complete.run(f"{tmp_path}/none/") == []
    assert complete.data("~nobody-of-that-name/x") == []
