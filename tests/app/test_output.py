"""What goes where: strict JSON alone on stdout, words beside it on stderr; pipes, full disks, free names."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from obverse._core.files import parse_json, quoted
from obverse.present.output import print_json
from obverse.training import (
    ClassifierTask,
    Interrupted,
    Settings,
    create_run,
    fit_classifier,
    read_plan,
    read_run,
)
from obverse.training.command._train import free_path, new_place
from training.helpers import obverse as obverse_process
from training.helpers import tiny_npz

FIRST_LOOK = "; a first look, not a result\n"


def strict(text: str) -> dict:
    """One line of JSON without NaN or Infinity, and nothing else."""
    assert text.count("\n") == 1
    assert text.endswith("\n")
    found = parse_json(text)
    assert isinstance(found, dict)
    return found


def test_what_is_no_number_is_null(capsys):
    print_json({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf}, "e": Path("x") / "y"})
    assert strict(capsys.readouterr().out) == {
        "format": 1,
        "a": None,
        "b": [None, 1.5],
        "c": {"d": None},
        "e": "x/y",
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the embedded digits, trained once; not to be changed."""
    path, settings = tmp_path_factory.mktemp("trained") / "RUN", Settings(hidden=(8,), epochs=1)
    create_run(path, settings)
    fit_classifier(ClassifierTask(settings), path)
    return path


def test_train(obverse, small, tmp_path):
    words = [word for word in small if word != "--no-report"]
    done = obverse("train", *words, "--json")
    assert done.code == 0
    found = strict(done.out)
    run = read_run(tmp_path / "run")
    assert found["final"] == run.final
    assert found["settings"] == json.loads(json.dumps(run.settings.to_dict()))
    assert found["run"] == str(tmp_path / "run")
    assert done.err.splitlines()[-1] == f"page: {tmp_path / 'run' / 'report.html'}"
    again = obverse("train", "--resume", tmp_path / "run", "--json")
    assert (again.code, again.err) == (0, "")
    assert strict(again.out) == found


def test_compare(obverse, small, tmp_path):
    words = [
        "compare",
        *small,
        "--variants",
        "backprop,shadow",
        "--seeds",
        "2",
        "--seed",
        "5",
        "--epochs",
        "1",
    ]
    done = obverse(*words, "--json")
    assert done.code == 0
    found = strict(done.out)
    assert [row["variant"] for row in found["rows"]] == ["backprop", "shadow"]
    assert found["seeds"] == [5, 6]
    assert read_plan(tmp_path / "run").seeds == (5, 6)
    assert done.err == f"runs: {tmp_path / 'run'}\n"


@pytest.mark.slow
def test_the_numbers_of_a_comparison_do_not_depend_on_jobs(obverse, small, tmp_path):
    words = ["compare", *small[:-2], "--variants", "backprop,shadow", "--seeds", "2", "--json"]
    found = []
    for jobs in (1, 2):
        done = obverse(*words, "--jobs", jobs, "--out", tmp_path / f"jobs-{jobs}")
        assert done.code == 0, done.err
        rows = strict(done.out)["rows"]
        found.append([{name: value for name, value in row.items() if name != "seconds"} for row in rows])
    assert found[0] == found[1]
    files = [
        [path.read_bytes() for path in sorted((tmp_path / f"jobs-{jobs}").rglob("model.safetensors"))]
        for jobs in (1, 2)
    ]
    assert len(files[0]) == 4
    assert files[0] == files[1]


def test_what_goes_wrong_in_another_process_is_told(obverse, small, tmp_path):
    words = ["compare", *small, "--variants", "backprop", "--seeds", "1", "--json"]
    done = obverse(*words, "--lr", "1e30", "--jobs", "2")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("obverse: expected ")


def test_search(obverse, small, tmp_path):
    words = ["search", *small[:-2], "--lrs", "0.01,0.1", "--weights", "1", "--validation", "20"]
    done = obverse(*words, "--json", "--out", tmp_path / "search")
    assert done.code == 0, done.err
    found = strict(done.out)
    assert len(found["trials"]) == 2
    assert done.err.splitlines()[-1] == f"search: {tmp_path / 'search'}"


def test_sample_and_report(obverse, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    done = obverse("sample", tmp_path / "run", "--per-class", "1", "--seed", "3", "--json")
    assert (done.code, done.err) == (0, "")
    found = strict(done.out)
    assert Path(found["picture"]).is_file()
    assert found["seed"] == 3
    done = obverse("report", tmp_path / "run", "--json")
    assert (done.code, done.err) == (0, "")
    assert Path(strict(done.out)["page"]).is_file()


def test_claims_show(obverse):
    done = obverse("claims", "show", "alm.thm2.3", "--quick", "--json")
    assert (done.code, done.err) == (0, "")
    found = strict(done.out)
    assert found["id"] == "alm.thm2.3"
    assert [one["setting"] for one in found["predictions"]] == found["quick"]
    assert all(one["predicted"] > 0 for one in found["predictions"])


def test_generate(obverse, tmp_path):
    words = ["--model", "vae", "--data", "digits", "--hidden", "16", "--epochs", "1", "--train-size", "200"]
    done = obverse("generate", "train", *words, "--no-report", "--json", "--out", tmp_path / "vae")
    assert (done.code, done.err) == (0, "")
    found = strict(done.out)
    assert isinstance(found["final"]["test_elbo"], float)
    assert found["run"] == str(tmp_path / "vae")
    done = obverse("generate", "sample", tmp_path / "vae", "--count", "4", "--seed", "2", "--json")
    assert (done.code, done.err) == (0, "")
    found = strict(done.out)
    assert (found["count"], found["seed"]) == (4, 2)
    assert Path(found["samples"]).is_file()


QUICK = [
    ["train", "--hidden", "8", "--no-report"],
    ["compare", "--hidden", "8", "--variants", "backprop", "--no-report"],
    ["generate", "train", "--hidden", "8", "--no-report"],
    ["shadow", "RUN"],
    ["audit", "RUN"],
    ["memorize", "digits"],
    ["ladder", "--data", "digits", "--windows", "4/4,2/2", "--sweep", "none"],
    ["claims", "run", "alm.lemma2.5.exact", "--jobs", "1"],
]


@pytest.mark.parametrize("words", QUICK, ids=[" ".join(words[:2]) for words in QUICK])
def test_a_small_version_says_so(obverse, trained, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    if "RUN" in words:
        shutil.copytree(trained, "RUN")
    done = obverse(*words, "--quick", "--json")
    assert done.code == 0, done.err
    strict(done.out)
    assert done.err.startswith("note: --quick: ")
    assert FIRST_LOOK in done.err


def test_flags_win_over_quick_and_few_points_are_enough(obverse, tmp_path):
    data = tiny_npz(tmp_path / "tiny.npz")
    words = ["train", "--quick", "--data", data, "--hidden", "4", "--epochs", "1", "--no-report"]
    assert obverse(*words, "--out", tmp_path / "run").code == 0
    settings = read_run(tmp_path / "run").settings
    assert settings.epochs == 1
    assert settings.train_size is not None
    assert settings.train_size < 1000


@pytest.mark.slow
def test_a_piped_table_ends_quietly_when_nobody_reads_on():
    code = "import sys; from obverse.app.main import main; sys.argv = ['obverse', *sys.argv[1:]]; main()"
    for words in (["claims", "list"], ["claims", "list", "--json"], ["--help"]):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (141, ""), words


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, as Linux has it")
def test_a_full_disk_is_no_bug():
    code = "import sys; from obverse.app.main import main; sys.argv = ['obverse', 'claims', 'list']; main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 2
    assert done.stderr.startswith(
        "obverse: expected to read or write the output; got No space left on device; "
    )


NOT_WRITABLE = [
    ["train", "--quick"],
    ["compare", "--quick"],
    ["search", "--quick"],
    ["generate", "train", "--quick"],
    ["audit", "RUN"],
    ["shadow", "RUN"],
    ["report", "RUN"],
    ["sample", "RUN"],
    ["memorize", "digits", "--quick"],
    ["ladder"],
    ["claims", "run", "alm.lemma2.5.exact", "--quick"],
]


@pytest.mark.parametrize("words", NOT_WRITABLE, ids=" ".join)
def test_a_place_that_cannot_be_written_is_told(obverse, trained, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    if "RUN" in words:
        shutil.copytree(trained, "RUN")
    (tmp_path / "file").touch()
    done = obverse(*words, "--out", "file/x")
    assert (done.code, done.out) == (2, ""), done
    assert re.match("obverse: expected (to write|a directory for) file/x", done.err.splitlines()[-1]), (
        done.err
    )
    assert "Traceback" not in done.err


def test_a_path_with_a_space_can_be_typed_again(obverse, small, tmp_path, monkeypatch):
    def stopped(*args: object, **keywords: object) -> None:
        raise Interrupted(3, 9, None)

    monkeypatch.setattr("obverse.training.fit_classifier", stopped)
    place = tmp_path / "a run"
    done = obverse("train", *small[:-1], place)
    assert done.code == 130
    assert done.err.splitlines()[0] == f"resume with: obverse train --resume '{place}'"
    done = obverse("train", *small[:-1], place)
    assert f"obverse train --resume '{place}' — or" in done.err
    assert quoted("plain/path") == "plain/path"


@pytest.mark.slow
def test_two_who_start_at_once_take_different_names(tmp_path):
    words = ["train", "--quick", "--hidden", "4", "--no-report"]
    code = "import sys; from obverse.app.main import main; sys.argv = ['obverse', *sys.argv[1:]]; main()"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    names = {
        line.partition(":")[0] for text in said for line in text.splitlines() if line.startswith("runs/")
    }
    assert names == {"runs/digits-1", "runs/digits-2"}


def test_a_name_is_taken_when_it_is_given_and_given_back_when_nothing_came_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [free_path("digits"), free_path("digits")] == [Path("runs/digits-1"), Path("runs/digits-2")]
    for written in (False, True):
        with suppress(ZeroDivisionError), new_place(None, "digits") as path:
            assert path.is_dir()
            if written:
                (path / "result").touch()
            1 / 0  # noqa: B018
        assert path.exists() == written, "what was made stays"


def test_a_real_process_gives_the_same_json():
    done = obverse_process("claims", "show", "alm.eq22", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert strict(done.stdout)["id"] == "alm.eq22"
