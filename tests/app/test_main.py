"""The command `obverse`: help, exit codes, one sentence for a mistake, the traceback only on demand."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re

import pytest
import torch

import obverse as package
from app.test_voice import COMMANDS as COMMANDS_THERE_ARE
from obverse.training import Interrupted
from obverse.training._settings import setting_names
from training.helpers import files_below
from training.helpers import obverse as obverse_process

COMMANDS = (
    "train",
    "compare",
    "search",
    "sample",
    "shadow",
    "memorize",
    "ladder",
    "audit",
    "claims",
    "generate",
    "diversity",
    "report",
)


def test_help_lists_the_commands(obverse):
    done = obverse("--help")
    assert (done.code, done.err) == (0, "")
    assert all(re.search(rf"^│ {command} ", done.out, re.MULTILINE) for command in COMMANDS)
    assert "--debug" in done.out
    assert "--version" in done.out


def test_without_words_the_help_is_shown(obverse):
    done = obverse()
    assert "Usage: obverse" in done.out + done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_is_readable(obverse, command):
    done = obverse(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Example: obverse {command} " in done.out
    assert all(len(line) <= 120 for line in done.out.splitlines())
    # Square brackets are rich's markup: what is not escaped vanishes from the help.
    assert not re.search(r"make \.|  \.(?!npz)|\(\)|\\\[", done.out)


def test_the_help_of_train_has_a_flag_and_a_default_for_every_setting(obverse):
    text = re.sub(r"[\s│]+", " ", obverse("train", "--help").out)
    for name in setting_names():
        assert f"--{name.replace('_', '-')} " in text, name
    for shown in ("[runs/DATA-N]", "[digits]", "[500,500]", "[0.05]", "[25]", "[all]", "[off]", "[on]"):
        assert shown in text, shown
    assert "Net" in text
    assert "Shadow" in text


def test_the_help_of_compare_names_variants_and_defaults(obverse):
    text = re.sub(r"[\s│]+", " ", obverse("compare", "--help").out)
    assert "shadow+dropout" in text
    assert "[backprop,dropout,shadow,shadow+dropout]" in text
    assert "[runs/compare-DATA-N]" in text
    assert "--seed " in text


def test_version_names_what_numbers_depend_on(obverse):
    done = obverse("--version")
    assert (done.code, done.err) == (0, "")
    found = dict(line.split(" ", 1) for line in done.out.splitlines())
    assert found["obverse"] == package.__version__
    assert found["python"] == platform.python_version()
    assert re.fullmatch(r"\S+ \(build for (CPU|CUDA \S+|HIP \S+|XPU \S+)\)", found["torch"])
    assert found["torch"].split()[0] == torch.__version__
    for name in ("numpy", "scipy", "scikit-learn", "safetensors"):
        assert found[name] == importlib.metadata.version(name)


WRONG = [
    (["train", "--data", "minst"], "got 'minst'"),
    (["train", "--hidden", "16,x"], "expected --hidden as widths, e.g. 500,500; got '16,x'"),
    (["train", "--hidden", "16,0"], r"expected hidden widths ≥ 1; got \(16, 0\)"),
    (["train", "--hidden", str(10**15)], "hidden widths whose weights fit into memory"),
    (["train", "--keep", "1.5"], r"expected keep in \(0, 1\]; got 1.5"),
    (["train", "--lr", "nan"], "lr"),
    (["train", "--lr", "-1"], "expected lr > 0; got -1"),
    (["train", "--epochs", "0"], "expected epochs ≥ 1; got 0"),
    (["train", "--seed", "-1"], "expected seed ≥ 0; got -1"),
    (["train", "--labels", "mine"], "labels to be 'given' or 'net' or 'consistency'"),
    (["train", "--control", "nothing"], "control to be 'same' or 'noise' or 'shuffled' or nothing"),
    (["train", "--layer", "h7"], "a layer out of h1, h2, h3; got 'h7'"),
    (["train", "--train-size", "2000"], "train_size ≤ 1297"),
    (["train", "--validation", "1297"], "validation < train_size"),
    (["train", "--batch-size", str(2**70)], "batch_size to be a whole number"),
    (["train", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x; got: No such file"),
    (["compare", "--variants", "shadow,shadows"], "variants out of backprop, .*; got 'shadows'"),
    (["compare", "--variants", "shadow", "--figure", "3"], "--variants or --figure; got both"),
    (["compare", "--figure", "4"], "--figure out of 3, 5, 6, 7; got 4"),
    (["compare", "--seeds", "a"], "--seeds as a count or a list, e.g. 5 or 0,1,2; got 'a'"),
    (["compare", "--seeds", "0"], "--seeds as a count"),
    (["compare", "--seeds", "-1,2"], "--seeds as a count"),
    (["compare", "--weight", "-1"], "expected weight ≥ 0; got -1"),
    (["compare", "--train-size", "2000"], "train_size ≤ 1297"),
    (["compare", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words)[:60] for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    done = obverse(*words)
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("obverse: expected ")
    assert done.err.count("\n") == 1, "one line"
    assert done.err.count("; ") >= 2, "what was expected, what came, what to do"
    assert re.search(said, done.err), done.err
    assert list(tmp_path.rglob("*")) == []


MISSING = [  # every argument and flag that names a file or folder to be read
    (["train", "--data", "none/images"], "none/images"),
    (["train", "--data", "/none.npz"], "/none.npz"),
    (["train", "--config", "none.toml"], "none.toml"),
    (["train", "--resume", "none"], "none"),
    (["compare", "--data", "none.npz"], "none.npz"),
    (["compare", "--resume", "none"], "none"),
    (["search", "--data", "none.npz"], "none.npz"),
    (["search", "--resume", "none"], "none"),
    (["sample", "none"], "none"),
    (["shadow", "none"], "none"),
    (["shadow", "torch.nn:ReLU", "--data", "none.npz"], "none.npz"),
    (["shadow", "torch.nn:ReLU", "--data", "digits", "--weights", "none.safetensors"], "none.safetensors"),
    (["audit", "none.safetensors"], "none.safetensors"),
    (["audit", "none"], "none"),
    (["audit", "none.json"], "none.json"),
    (["audit", "none", "--data", "own"], "none"),
    (["audit", "none", "--ablate", "--out", "audit"], "none"),
    (["memorize", "none.npz"], "none.npz"),
    (["ladder", "--data", "none.npz"], "none.npz"),
    (["ladder", "--data", "digits", "--weights", "none.safetensors"], "none.safetensors"),
    (["diversity", "none"], "none"),
    (["diversity", "none.npz"], "none.npz"),
    (["report", "none"], "none"),
    (["explore", "none"], "none"),
    (["claims", "list", "--module", "none.py"], "none.py"),
    (["claims", "show", "alm.eq2", "--module", "none.py"], "none.py"),
    (["claims", "run", "alm.eq2", "--quick", "--module", "none.py"], "none.py"),
    (["generate", "train", "--config", "none.toml"], "none.toml"),
    (["generate", "train", "--data", "none.npz"], "none.npz"),
    (["generate", "train", "--resume", "none"], "none"),
    (["generate", "sample", "none"], "none"),
]


@pytest.mark.parametrize(("words", "path"), MISSING, ids=[" ".join(words) for words, _ in MISSING])
def test_what_is_not_there_is_said_as_everybody_says_it(obverse, tmp_path, monkeypatch, words, path):
    monkeypatch.chdir(tmp_path)
    done = obverse(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"obverse: No such file or folder: {path!r}"), done.err
    assert done.err.count("\n") == 1, "one line"
    assert list(tmp_path.rglob("*")) == []


def test_every_command_that_reads_a_path_is_tried_with_one_that_is_not_there():
    tried = {" ".join(words[: 2 if words[0] in ("claims", "generate") else 1]) for words, _ in MISSING}
    assert tried == COMMANDS_THERE_ARE.keys() - {"doctor"}


UNKNOWN = [
    (["train", "--epochs", "many"], "expected a whole number for --epochs; got 'many'; correct it"),
    (["train", "--epochs", "2.5"], "expected a whole number for --epochs; got '2.5'; correct it"),
    (["train", "--lr", "fast"], "expected a number for --lr; got 'fast'; correct it"),
    (
        ["train", "--uniform-bias", "yes"],
        "expected no more words for obverse train; got yes; see: obverse train --help",
    ),
    (
        ["train", "--json=yes"],
        "expected --json without a value; got one; see: obverse train --help",
    ),
    (
        ["train", "--epoch", "3"],
        "expected an option of obverse train; got --epoch; did you mean --epochs",
    ),
    (["train", "--xyzzy"], "expected an option of obverse train; got --xyzzy; see: obverse train --help"),
    (["train", "--lr"], "expected a value for --lr; got none; see: obverse train --help"),
    (["trian"], "expected a command of obverse; got 'trian'; did you mean train"),
    (["xyzzy"], "expected a command of obverse; got 'xyzzy'; see: obverse --help"),
    (["claims", "lits"], "expected a command of obverse claims; got 'lits'; did you mean list"),
    (["generate", "trian"], "expected a command of obverse generate; got 'trian'; did you mean train"),
    (["report"], "expected RUN; got nothing; see: obverse report --help"),
    (["claims", "show"], "expected ID; got nothing; see: obverse claims show --help"),
    (["--xyzzy"], "expected an option of obverse; got --xyzzy; see: obverse --help"),
    (
        ["compare", "--seed", "3", "--seeds", "1,2"],
        "expected --seed or a list of --seeds; got both; leave one out",
    ),
    (["compare", "--jobs", "0"], "expected --jobs ≥ 1; got 0; leave it out"),
]


@pytest.mark.parametrize(("words", "said"), UNKNOWN, ids=[" ".join(words) for words, _ in UNKNOWN])
def test_words_that_the_parser_does_not_know_get_the_same_sentence(obverse, words, said):
    done = obverse(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"obverse: {said}"), done.err
    assert done.err.count("\n") == 1
    assert done.err.count("; ") >= 2


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", '{"format": 9}'),
        ("checkpoint/latest.json", "{"),
        ("checkpoint/latest.json", '{"format": 1}'),
        ("metrics.jsonl", "{\n{}\n"),
        ("metrics.jsonl", ""),
    ],
)
def test_a_corrupt_run_is_refused_with_a_sentence(obverse, small, tmp_path, file, content):
    assert obverse("train", *small).code == 0
    (tmp_path / "run" / "model.safetensors").unlink()
    (tmp_path / "run" / file).write_text(content)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in files_below(tmp_path / "run")}
    done = obverse("train", "--resume", tmp_path / "run", "--no-report")
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"obverse: expected [^\n]*; [^\n]*; [^\n]*\n", done.err), done.err
    assert {name: (tmp_path / "run" / name).read_bytes() for name in files_below(tmp_path / "run")} == before


def test_a_finished_run_with_corrupt_metrics_is_refused(obverse, small, tmp_path):
    assert obverse("train", *small).code == 0
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps({"epoch": 2, "test_error": "none"}) + "\n")
    done = obverse("train", "--resume", tmp_path / "run")
    assert done.code == 2
    assert "numbers for test_error, shadow_error, label_agreement, seconds" in done.err


@pytest.mark.parametrize("words", [["--debug", "train"], ["train", "--debug"]], ids=["first", "last"])
def test_debug_shows_the_traceback_wherever_it_stands(obverse, words):
    done = obverse(*words[:2], "--keep", "2", *words[2:])
    assert done.code == 2
    assert done.err.startswith("Traceback (most recent call last):")
    assert "settings.py" in done.err
    assert done.err.splitlines()[-1].startswith(
        "obverse._core.errors.BadInput: expected keep in (0, 1]; got 2.0"
    )


def test_debug_at_the_very_end(obverse):
    assert obverse("train", "--keep", "2", "--debug").err.startswith("Traceback")


def test_a_bug_is_called_one_and_exits_with_1(obverse, small, monkeypatch):
    def broken(*args: object, **keywords: object) -> None:
        raise RuntimeError("something we did not think of")

    monkeypatch.setattr("obverse.training.fit_classifier", broken)
    done = obverse("train", *small)
    assert done.code == 1
    assert done.err == (
        "obverse: this is a bug: RuntimeError: something we did not think of\n"
        "Run it again with --debug and report what it prints.\n"
    )
    with pytest.raises(RuntimeError):
        obverse("train", *small[:-1], small[-1] + "2", "--debug")


def test_ctrl_c_anywhere_exits_with_130(obverse, small, monkeypatch):
    def interrupted(*args: object, **keywords: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("obverse.training.ClassifierTask", interrupted)  # while the data are loaded
    assert obverse("train", *small).code == 130
    monkeypatch.undo()

    def stopped(*args: object, **keywords: object) -> None:
        raise Interrupted(3, 9, None)

    monkeypatch.setattr("obverse.training.fit_classifier", stopped)
    done = obverse("train", *small)
    assert done.code == 130
    assert done.err.startswith("resume with: obverse train --resume ")


def test_a_real_process_has_the_same_exit_code_and_no_traceback():
    done = obverse_process("train", "--keep", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "obverse: expected keep in (0, 1]; got 2.0; correct this setting\n"
