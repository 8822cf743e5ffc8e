"""`obverse memorize`: what is printed and written, which points and labels are taken, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from obverse.data import load
from obverse.identity._memorize import memorize
from obverse.identity._recall import Recall, read_recall, recall
from obverse.identity._saved import load_memory
from obverse.identity._words import outlook, rows, verdict
from present.test_progress import on_a_terminal
from training.helpers import files_below
from training.helpers import obverse as obverse_process

FILES = {"memory.safetensors", "memorize.json", "memorize.html"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was asked for; it is done all the same."""
    made: dict[str, Any] = {}

    def record(*tensors: Any, **options: Any) -> tuple[Any, Recall]:
        made.update(options, tensors=tensors)
        return recall(*tensors, **options)

    monkeypatch.setattr("obverse.identity._recall.recall", record)
    return made


def json_of(done: Any) -> dict[str, Any]:
    assert (done.code, done.err) == (0, ""), done
    found: dict[str, Any] = json.loads(done.out)
    return found


# What is printed


@pytest.mark.parametrize("width", [80, 120])
def test_verdict_table_and_outlook(obverse, monkeypatch, data, tmp_path, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = obverse("memorize", data, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    found = read_recall(tmp_path / "out")
    lines = done.out.splitlines()
    assert lines[0] == verdict(found), "first, and whole where it is piped"
    assert lines[0].startswith("40 of 40 points of tiny labelled right (100.00 %) without training: ")
    assert lines[-3] == outlook(found)
    table = lines[1:-3]
    assert all(len(line) <= width for line in table)
    for name, value, _ in rows(found):
        assert any(line.startswith(name) and value in line for line in table), name
    facts = found.facts
    assert f"{facts.parameters:,} = {facts.constant:.2f}·(n ln n + r²)" in done.out
    assert lines[-2:] == [
        f"net: {tmp_path / 'out' / 'memory.safetensors'}",
        f"page: {tmp_path / 'out' / 'memorize.html'}",
    ]


@pytest.mark.slow
def test_piped_output_has_no_escape_codes(data):
    done = obverse_process("memorize", data)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_a_terminal_shows_a_bar(data):
    code, shown = on_a_terminal("memorize", str(data))
    assert code == 0, shown
    assert re.search(r"tiny .* 40/40 .* checked points", shown)
    assert re.search(r"tiny .* 40/40 .* done", shown)


def test_json_is_all_of_stdout(obverse, data, tmp_path):
    done = obverse("memorize", data, "--json", "--out", tmp_path / "out")
    assert done.err == (
        f"net: {tmp_path / 'out' / 'memory.safetensors'}\npage: {tmp_path / 'out' / 'memorize.html'}\n"
    )
    assert json.loads(done.out) == json.loads((tmp_path / "out" / "memorize.json").read_text())


# Points, labels, settings


def test_the_training_points_are_memorized_and_the_test_inputs_tested(obverse, data, asked):
    found = json_of(obverse("memorize", data, "--json"))
    own = load(data)
    for given, expected in zip(
        asked["tensors"], (own.train_x, own.train_y, own.test_x, own.test_y), strict=True
    ):
        assert torch.equal(given, expected)
    assert (asked["classes"], asked["data"], callable(asked["progress"])) == (3, "tiny", True)
    net = memorize(own.train_x, own.train_y, classes=3)
    assert found["test_accuracy"] == float((net(own.test_x).argmax(1) == own.test_y).double().mean())
    assert found["test_points"] == 20


def test_the_flags_reach_the_construction(obverse, data, asked):
    flags = ("--points", "17", "--labels", "random", "--width", "2", "--no-float32", "--seed", "11")
    found = json_of(obverse("memorize", data, *flags, "--json"))
    wanted = {"points": 17, "labels": "random", "width": 2, "float32": False, "dtype": "float64", "seed": 11}
    assert {name: asked[name] for name in wanted} == wanted
    assert (found["asked_points"], found["asked_width"], found["seed"]) == (17, 2, 11)
    assert (found["labels"], found["float32"], found["test_accuracy"]) == ("random", None, None)
    assert (found["facts"]["points"], found["facts"]["width"]) == (17, 2)


def test_without_flags_the_defaults_are_those_of_the_library(obverse, data, asked):
    import inspect

    assert obverse("memorize", data).code == 0
    for name, each in inspect.signature(recall).parameters.items():
        if each.default is not each.empty and name not in ("classes", "data", "progress"):
            assert asked[name] == each.default, name


def test_the_same_command_gives_the_same_numbers(obverse, data):
    one, two = (json_of(obverse("memorize", data, "--points", "30", "--json")) for _ in range(2))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_random_labels_do_not_conflict_where_points_are_equal(obverse, tmp_path):
    x = np.repeat(np.random.default_rng(0).random((10, 3), dtype=np.float32), 3, axis=0)
    np.savez(tmp_path / "twice.npz", train_x=x, train_y=np.arange(30) % 2, test_x=x[:2], test_y=[0, 1])
    done = obverse("memorize", tmp_path / "twice.npz")
    assert (done.code, done.out) == (2, "")
    assert "expected one label for equal points" in done.err
    assert "equal points 0 and 1 (labels 0, 1)" in done.err
    done = obverse("memorize", tmp_path / "twice.npz", "--labels", "random")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("30 of 30 points of twice, with random labels, labelled right (100.00 %)")
    assert "n = 10 distinct points" in done.out


# Files


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_out_takes_the_net_the_record_and_the_page(obverse, data, tmp_path, dtype):
    out = tmp_path / "a" / "b"
    done = obverse("memorize", data, "--dtype", dtype, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert files_below(out) == FILES
    net, own = load_memory(out / "memory.safetensors"), load(data)
    assert str(net.centre.dtype) == f"torch.{dtype}"
    assert torch.equal(net(own.train_x).argmax(1), own.train_y)
    assert read_recall(out).dtype == dtype
    page = (out / "memorize.html").read_text()
    (out / "memorize.html").unlink()
    assert obverse("report", out).out == f"page: {out / 'memorize.html'}\n"
    assert (out / "memorize.html").read_text() == page, "from the record alone"
    assert str(tmp_path) not in page


def test_without_out_nothing_is_written(obverse, data, tmp_path):
    before = files_below(tmp_path)
    assert obverse("memorize", data).code == 0
    assert files_below(tmp_path) == before


def test_a_float32_net_that_would_be_wrong_is_not_written(obverse, tmp_path):
    x = np.random.default_rng(0).random((12, 2), dtype=np.float32)
    x[1] = np.nextafter(x[0], np.float32(2))  # neighbours in float32, with other labels
    np.savez(tmp_path / "close.npz", train_x=x, train_y=np.arange(12) % 2, test_x=x[:2], test_y=[0, 1])
    done = obverse("memorize", tmp_path / "close.npz")
    assert (done.code, done.err) == (0, "")
    assert re.search(
        r"^float32 +refused +expected points that float32 can distinguish", done.out, re.MULTILINE
    )
    done = obverse("memorize", tmp_path / "close.npz", "--dtype", "float32", "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert re.match(
        r"obverse: expected points that float32 can distinguish; got points \d+ and \d+", done.err
    )
    assert files_below(tmp_path) == {"close.npz"}


# What is refused

WRONG = [
    (["minst"], "got 'minst'"),
    (["{d}", "--points", "0"], "--points from 1 to 40, as tiny has them; got 0"),
    (["{d}", "--points", "41"], "--points from 1 to 40"),
    (["{d}", "--labels", "mine"], "--labels out of own, random; got 'mine'"),
    (["{d}", "--width", "0"], "a width from 1 to 1,000; got 0"),
    (["{d}", "--width", "100000"], "a width from 1 to 1,000"),
    (["{d}", "--dtype", "float16"], "--dtype out of float64, float32; got 'float16'"),
    (["{d}", "--dtype", "float32", "--no-float32"], "--float32 with --dtype float32"),
    (["{d}", "--seed", "-1"], "--seed from 0 to"),
    (["{d}", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, data, tmp_path, words, said):
    before = files_below(tmp_path)
    done = obverse("memorize", *(word.format(d=data) for word in words))
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("obverse: expected ")
    assert done.err.count("\n") == 1, "one line"
    assert re.search(said, done.err), done.err
    assert files_below(tmp_path) == before


def test_the_help_says_what_the_defaults_are(obverse):
    done = obverse("memorize", "--help")
    text = re.sub(r"[\s│]+", " ", done.out)
    assert "Example: obverse memorize " in text
    for shown in ("[all]", "[own]", "[yes]", "[float64]", "[0]", "[nothing]", "[OBVERSE_DATA, else"):
        assert shown in text, shown
    assert all(len(line) <= 120 for line in done.out.splitlines())


def test_an_npz_is_memorized_in_double_precision_and_its_rows_keep_their_numbers(obverse, tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((100, 3)), rng.integers(0, 4, 100)
    x[31] = x[30] * (1 + 1e-9)  # equal in float32
    y[30], y[31] = 0, 1
    np.savez(tmp_path / "near.npz", train_x=x, train_y=y, test_x=x, test_y=y)
    done = obverse("memorize", str(tmp_path / "near.npz"))
    assert done.code == 0, done.err
    assert "100 of 100 points" in done.out
    np.savez(tmp_path / "equal.npz", x=x, y=y)  # shuffled when it is split
    first, second = load(tmp_path / "equal.npz").train_rows[:2].tolist()
    x[first], y[first], y[second] = x[second], 0, 1
    np.savez(tmp_path / "equal.npz", x=x, y=y)
    done = obverse("memorize", str(tmp_path / "equal.npz"))
    assert done.code == 2
    assert f"equal points {first} and {second} (labels 0, 1)" in " ".join(done.err.split())


def test_whole_numbers_in_an_npz_are_memorized(obverse, tmp_path):
    np.savez(tmp_path / "whole.npz", x=np.arange(60).reshape(20, 3), y=np.arange(20) % 3)
    done = obverse("memorize", str(tmp_path / "whole.npz"))
    assert done.code == 0, done.err
