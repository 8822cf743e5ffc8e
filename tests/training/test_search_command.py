"""`obverse search`: the table, the notes, a directory to go on with or to help."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from obverse._core.errors import BadInput
from obverse.training._search.plan import LRS, WEIGHTS
from obverse.training._search.search import read_plan, read_result
from present.test_progress import on_a_terminal
from training.helpers import ENVIRONMENT, files_below

pytestmark = pytest.mark.usefixtures("migrations_read_once")

FLAGS = ["--lrs", "0.1,0.5", "--weights", "0,1"]


@pytest.fixture
def words(small) -> list[str]:
    return ["search", *small, "--epochs", "1", *FLAGS]


def test_the_table_says_what_the_trials_say(obverse, words, tmp_path):
    done = obverse(*words)
    assert done.code == 0, done.err
    assert done.err == "note: 8 points are held out, a fifth, for want of 10,000\n"
    result = read_result(tmp_path / "run")
    lines = [line.split() for line in done.out.splitlines() if re.match(r"\s*\d+ +0\.", line)]
    assert len(lines) == 4
    best = result.best
    assert best is not None
    assert lines[0][:4] == [
        str(best.number),
        f"{best.lr:g}",
        f"{best.weight:g}",
        f"{100 * best.error:.2f}*",
    ]
    errors = [float(line[3].rstrip("*")) for line in lines]
    assert errors == sorted(errors)
    assert "Best of 4 complete trials" in done.out
    assert "Trained again on all 40 training points" in done.out
    assert done.out.rstrip().endswith(f"search: {tmp_path / 'run'}")
    assert "�" not in done.out
    assert (tmp_path / "run" / "best" / "model.safetensors").exists()


def test_the_page_is_written_and_can_be_made_again(obverse, words, tmp_path):
    words.remove("--no-report")
    done = obverse(*words, "--trials", "1", "--no-retrain")
    assert done.out.rstrip().endswith(f"page: {tmp_path / 'run' / 'search.html'}")
    first = (tmp_path / "run" / "search.html").read_bytes()
    for place in (tmp_path / "run", tmp_path / "run" / "trials.json"):
        assert obverse("report", place).out == f"page: {tmp_path / 'run' / 'search.html'}\n"
        assert (tmp_path / "run" / "search.html").read_bytes() == first


def test_the_page_can_be_made_before_the_first_trial_has_ended(obverse, words, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("obverse.training._search.search.work", stop)
    assert obverse(*words).code == 130
    assert obverse("report", tmp_path / "run").out == f"page: {tmp_path / 'run' / 'search.html'}\n"
    assert "No trial has begun." in (tmp_path / "run" / "search.html").read_text()


def test_rates_that_are_as_good_as_one_are_searched(obverse, words, tmp_path):
    words.remove("--no-report")
    done = obverse(*words, "--lrs", "1000,1000.0000000000001", "--weights", "0", "--no-retrain")
    assert done.code == 0, done.err
    assert len(read_result(tmp_path / "run").trials) == 2


def test_the_paper_s_grid_and_ten_thousand_points_are_the_defaults(obverse, small, tmp_path, monkeypatch):
    seen: dict = {}

    def stop(plan, path, **options):
        seen.update(plan=plan, **options)
        raise BadInput("no more", got="enough", do="stop")

    monkeypatch.setattr("obverse.training._search.search.run_search", stop)
    assert obverse("search", *small, "--validation", "5", "--jobs", "2").code == 2
    plan = seen["plan"]
    assert (plan.lrs, plan.weights) == (LRS, WEIGHTS)
    assert (plan.sampler, plan.pruner, plan.trials, plan.threads) == ("grid", "none", 35, 1)
    assert (seen["jobs"], seen["retrain"], seen["storage"], seen["take_over"]) == (2, True, None, False)
    assert plan.base.validation == 5
    text = re.sub(r"[\s│]+", " ", obverse("search", "--help").out)
    for shown in ("[10000, at most a fifth]", "[grid]", "[none]", "[runs/search-DATA-N]", "4^a/1000"):
        assert shown in text
    assert "with --resume as many as the search began with" in text
    for gone in ("--lr ", "--weight ", "[0.05]"):
        assert gone not in text


WRONG = [
    (["--lrs", "fast"], "--lrs as numbers"),
    (["--weights", ","], "--weights as numbers"),
    (["--lrs", "0"], "lrs > 0"),
    (["--weights", "nan"], "weights ≥ 0"),
    (["--trials", "5"], "trials from 1 to 4"),
    (["--sampler", "magic"], "sampler out of grid, tpe"),
    (["--pruner", "magic"], "pruner out of median, none"),
    (["--sampler", "tpe"], "weights > 0 for the sampler tpe"),
    (["--jobs", "0"], "jobs ≥ 1"),
    (["--validation", "40"], "validation from 1 to 39"),
    (["--train-size", "4"], "pass --validation"),
    (["--storage", "somewhere"], "a storage such as sqlite:///FILE"),
]


@pytest.mark.parametrize(("more", "said"), WRONG)
def test_a_mistake_is_one_sentence(obverse, words, more, said):
    done = obverse(*words, *more)
    assert done.code == 2
    (line,) = (line for line in done.err.splitlines() if not line.startswith("note:"))
    assert re.fullmatch(r"obverse: expected .+; got .+; .+", line), line
    assert said in line


def test_a_settings_file_may_not_fix_what_is_searched(obverse, words, tmp_path):
    (tmp_path / "set.toml").write_text("lr = 0.1\n")
    done = obverse(*words, "--config", tmp_path / "set.toml")
    assert done.code == 2
    assert "no lr in the settings file of a search; got 0.1; use --lrs" in done.err
    assert not (tmp_path / "run").exists()


def test_resume_keeps_the_settings_and_finds_all_done(obverse, words, tmp_path):
    assert obverse(*words, "--trials", "2").code == 0
    before = files_below(tmp_path / "run")
    result = read_result(tmp_path / "run")
    done = obverse("search", "--resume", tmp_path / "run", "--no-report")
    assert done.code == 0
    assert "Best of 2 complete trials" in done.out
    assert read_result(tmp_path / "run") == result
    assert files_below(tmp_path / "run") == before
    for more in (["--epochs", "3"], ["--lrs", "0.2"], ["--out", "x"]):
        done = obverse("search", "--resume", tmp_path / "run", *more)
        assert done.code == 2
        assert "a search keeps its settings" in done.err
    assert obverse("search", "--resume", tmp_path / "nothing").code == 2


def test_a_storage_elsewhere_is_named_on_the_command_line_only(obverse, words, tmp_path):
    url = f"sqlite:///{tmp_path}/other.db"
    assert obverse(*words, "--trials", "1", "--no-retrain", "--storage", url).code == 0
    assert read_plan(tmp_path / "run").shared
    assert "other.db" not in (tmp_path / "run" / "search.json").read_text()
    done = obverse("search", "--resume", tmp_path / "run")
    assert done.code == 2
    assert "pass --storage" in done.err
    assert obverse("search", "--resume", tmp_path / "run", "--storage", url, "--no-report").code == 0


def test_a_damaged_study_is_one_sentence(obverse, words, tmp_path):
    assert obverse(*words, "--trials", "1", "--no-retrain").code == 0
    (tmp_path / "run" / "study.db").write_bytes(b"something else " * 1000)
    done = obverse("search", "--resume", tmp_path / "run")
    assert done.code == 2
    assert done.err.startswith(
        f"obverse: expected a study of Optuna in {tmp_path / 'run' / 'study.db'}; got "
    )
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_a_terminal_shows_what_each_worker_does(words, tmp_path):
    code, shown = on_a_terminal(*words, "--epochs", "20")
    assert code == 0, shown
    assert re.search(r"trials .* 4/4 +best \d+\.\d\d %", shown)
    assert re.search(r"trial \d: lr 0\.\d, weight [01] .* loss \d+\.\d{3}", shown)
    assert re.search(r"best, on all points .*40/40", shown)


def test_a_worker_that_ends_is_told(obverse, words, monkeypatch):
    def run(plan, path, *, tell, **options):
        tell(0, {"kind": "gone", "code": 0, "said": ""})
        tell(1, {"kind": "gone", "code": -9, "said": ""})
        tell(2, {"kind": "gone", "code": 2, "said": "expected more; got less; add some"})
        raise BadInput("no more", got="enough", do="stop")

    monkeypatch.setattr("obverse.training._search.search.run_search", run)
    said = obverse(*words, "--jobs", "3").err.splitlines()
    assert "worker 2 of 3 has ended (exit code -9); another takes up its trial" in said
    assert "worker 3 of 3 has ended (expected more; got less; add some); another takes up its trial" in said
    assert not any(line.startswith("worker 1") for line in said)


@pytest.mark.slow
def test_ctrl_c_in_the_terminal_saves_every_worker_and_says_how_to_go_on(small, tmp_path):
    """A real command with two workers; SIGINT goes to it alone, and it tells them."""
    more = ["--epochs", "2000", "--batch-size", "5", *FLAGS, "--jobs", "2"]
    words = [
        sys.executable,
        "-m",
        "obverse",
        "search",
        *small[:4],
        "--no-report",
        "--out",
        *small[-1:],
        *more,
    ]
    process = subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    runs = [tmp_path / "run" / "trials" / f"{number:04d}" for number in (0, 1)]
    pointers = [run / "checkpoint" / "latest.json" for run in runs]
    for _ in range(6000):
        if all(pointer.exists() for pointer in pointers):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert f"resume with: obverse search --resume {tmp_path / 'run'}" in said
    assert "everything is saved" in said
    assert "Traceback" not in said
    steps = [json.loads(pointer.read_text())["step"] for pointer in pointers]
    assert all(0 < step < 2000 * 7 for step in steps)
    assert not (tmp_path / "run" / "trials" / "0002").exists()
    assert Path(tmp_path / "run" / "study.db").exists()
