"""`obverse ladder`: what is printed and written, for a teacher and for a real net, and what is refused."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse._core.tensors import load_tensors
from obverse.app.main import main
from obverse.data import load
from obverse.ladder._local_net import fitting_windows, settle
from obverse.ladder._real import net_graph
from obverse.ladder._words import outlook, training, verdict
from obverse.ladder.results import read_ladder
from obverse.nets._local import local
from present.test_progress import on_a_terminal
from training.helpers import files_below
from training.helpers import obverse as obverse_process

TREE = ("--graph", "tree", "--leaves", "4", "--nodes", "2")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 images of 8 × 8 pixels in 3 classes, 30 of them for testing."""
    random = np.random.default_rng(0)
    kinds, y = random.random((3, 1, 8, 8)), np.arange(120) % 3
    x = (0.7 * kinds[y] + 0.3 * random.random((120, 1, 8, 8))).astype(np.float32)
    path = tmp_path_factory.mktemp("images") / "spots.npz"
    np.savez(path, train_x=x[:90], train_y=y[:90], test_x=x[90:], test_y=y[90:])
    return path


@pytest.fixture(scope="module")
def real(images: Path) -> list[str]:
    """Flags of a measurement that takes a moment."""
    words = ["--data", str(images), "--epochs", "2", "--events", "3", "--sweep", "none", "--images", "40"]
    return [*words, "--windows", "4/4,2/2"]


class Measured(NamedTuple):
    out: Path  # not to be changed
    printed: str


@pytest.fixture(scope="module")
def measured(real: list[str], tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """What `obverse ladder` prints and writes of that measurement, made once."""
    out, said, errors = tmp_path_factory.mktemp("measured") / "out", io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(errors):
        patch.setenv("COLUMNS", "120")
        patch.setattr("sys.argv", ["obverse", "ladder", *real, "--out", str(out)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert (stop.value.code, errors.getvalue()) == (0, "")
    return Measured(out, said.getvalue())


def record(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "ladder.json").read_text())
    return found


def json_of(done: Any) -> dict[str, Any]:
    assert (done.code, done.err) == (0, ""), done
    found: dict[str, Any] = json.loads(done.out)
    return found


# What is printed


@pytest.mark.parametrize("width", [80, 120])
def test_verdict_table_and_reasons(obverse, monkeypatch, tmp_path, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = obverse("ladder", *TREE, "--summary", "majority", "--steps", "5", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    found = read_ladder(tmp_path / "out")
    lines = done.out.splitlines()
    assert lines[0] == verdict(found)
    assert lines[0].startswith("Not exact: ΔW from events alone is off by up to ")
    assert lines[-4:-1] == [*outlook(found), training(found)]
    assert lines[-1] == f"page: {tmp_path / 'out' / 'ladder.html'}"
    table = lines[1:-4]
    assert all(len(line) <= width for line in table)
    for heading in ("level", "focus", "broadness", "decorrelation", "ΔW gap"):
        assert heading in done.out
    assert re.search(r"^2, the top +", done.out, re.MULTILINE)


def test_a_full_teacher_is_exact(obverse):
    done = obverse("ladder", *TREE)
    assert re.match(
        r"Exact: on all 6 edges, ΔW from events alone equals ΔW from all 16 inputs, to \S+10⁻¹", done.out
    )


def test_a_net_says_what_its_levels_do(measured):
    found = read_ladder(measured.out)
    assert measured.printed.splitlines()[0] == verdict(found)
    assert re.match(
        r"With 3 events a region, edge by edge from true averages, events .* above the pixels.* at the top",
        measured.printed,
    )
    assert "Events dealt to the images at random, the control, explain" in measured.printed
    assert re.search(r"^1, above the pixels .*\(", measured.printed, re.MULTILINE), "the control in brackets"


@pytest.mark.slow
def test_piped_output_has_no_escape_codes():
    done = obverse_process("ladder", *TREE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\N{REPLACEMENT CHARACTER}" not in done.stdout


@pytest.mark.slow
def test_a_terminal_shows_bars(real):
    code, shown = on_a_terminal("ladder", *TREE, "--steps", "3")
    assert code == 0, shown
    assert re.search(r"a tree of 4 with summary full .* 4/4 .* training", shown)
    code, shown = on_a_terminal("ladder", *real)
    assert code == 0, shown
    assert re.search(r"spots .* 2/2 .*loss", shown)
    assert re.search(r"spots .* 1/1 .* done", shown)


def test_json_is_all_of_stdout(obverse, real, tmp_path):
    done = obverse("ladder", *TREE, "--json", "--out", tmp_path / "tree")
    assert done.err == f"page: {tmp_path / 'tree' / 'ladder.html'}\n"
    assert json.loads(done.out) == json.loads((tmp_path / "tree" / "ladder.json").read_text())
    done = obverse("ladder", *real, "--json", "--out", tmp_path / "net")
    assert done.err == (
        f"net: {tmp_path / 'net' / 'net.safetensors'}\npage: {tmp_path / 'net' / 'ladder.html'}\n"
    )
    assert json.loads(done.out) == json.loads((tmp_path / "net" / "ladder.json").read_text())


# A teacher


@pytest.mark.parametrize(
    ("flags", "inputs", "edges"),
    [
        ((), 256, 14),
        (("--leaves", "3", "--values", "3"), 27, 5),
        (("--graph", "windows", "--leaves", "4"), 16, 12),
        (("--graph", "windows", "--leaves", "5", "--size", "3", "--stride", "2"), 32, 8),
        (("--graph", "grid", "--leaves", "9", "--stride", "1"), 512, 20),
        (("--graph", "grid", "--leaves", "4"), 16, 4),
        (("--leaves", "12", "--size", "3", "--sample", "100", "--summary", "xor"), 100, 18),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else None,
)
def test_graphs(obverse, flags, inputs, edges):
    found = json_of(obverse("ladder", *flags, "--json"))
    assert (found["inputs"], found["edges_total"]) == (inputs, edges)
    assert found["sampled"] == ("--sample" in flags)
    if not found["sampled"]:
        assert (
            max(edge["gaps"]["recursive"] for edge in found["edges"]) < 1e-11
        )  # float64, 512 inputs at most


@pytest.mark.parametrize("norm", ["before", "after"])
def test_batch_norm_and_nodes_reach_the_student(obverse, norm):
    found = json_of(obverse("ladder", *TREE[:-1], "5", "--norm", norm, "--json"))
    assert found["settings"]["norm"] == norm
    assert {region["nodes"] for region in found["regions"] if region["level"] == 1} == {5}
    plain = json_of(obverse("ladder", *TREE[:-1], "5", "--json"))
    assert found["loss"] != plain["loss"]


def test_activation_and_loss_reach_the_student(obverse):
    usual, linear, softmax = (
        json_of(obverse("ladder", *TREE, "--summary", "xor", *more, "--json"))
        for more in ((), ("--activation", "linear"), ("--loss", "softmax"))
    )
    assert len({one["loss"] for one in (usual, linear, softmax)}) == 3
    assert max(one["decorrelation"] for one in usual["levels"]) > 0.1
    # without gates nothing can go along with them; float64, sums of 16 terms
    assert max(one["decorrelation"] for one in linear["levels"]) < 1e-12
    assert linear["settings"]["activation"] == "linear"
    assert linear["subject"] == "a tree of 4 with summary xor"


def test_the_legend_says_what_rows_are_and_names_no_brackets_that_are_not_there(obverse, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    plain = obverse("ladder", *TREE, "--summary", "majority").out
    assert "gaps are medians over its edges (sentences give the largest)" in plain
    assert "brackets" not in plain
    drawn = obverse("ladder", *TREE, "--summary", "majority", "--sample", "50").out
    assert "in brackets: by chance" in drawn
    assert "events dealt at random" not in drawn
    assert re.match(r"Not exact: .* off by up to \S+ ± \S+ of its size .* up to \S+ ± \S+ through ", drawn)


def test_a_top_of_many_events_is_dealt_to_two_classes(obverse):
    found = json_of(obverse("ladder", "--leaves", "7", "--json"))
    top = found["regions"][-1]
    assert (top["events"], top["nodes"]) == (128, 2)
    assert json_of(obverse("ladder", "--leaves", "6", "--json"))["regions"][-1]["nodes"] == 64


def test_the_same_command_gives_the_same_numbers(obverse, real, measured):
    of_tree = [*TREE, "--steps", "3", "--summary", "or"]
    first = json_of(obverse("ladder", *of_tree, "--json"))
    for words, one in ((of_tree, first), (real, record(measured.out))):
        two, other = (json_of(obverse("ladder", *words, "--json", "--seed", seed)) for seed in (0, 1))
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
        assert one["loss"] != other["loss"]


# A real net


def test_a_net_is_trained_measured_and_kept(obverse, real, images, tmp_path):
    out = tmp_path / "a" / "b"
    assert obverse("ladder", *real[:-2], "--sweep", "2", "--out", out).code == 0
    assert files_below(out) == {"ladder.json", "ladder.html", "net.safetensors"}
    found, data = read_ladder(out), load(images)
    net = local((1, 8, 8), 3, ((2, 2), (2, 2)), (8, 16))
    net.load_state_dict(load_tensors(out / "net.safetensors"))
    with torch.no_grad():
        assert found.accuracy == (net.eval()(data.test_x).argmax(1) == data.test_y).double().mean().item()
    assert found.accuracy > 0.6, "three clear kinds: chance is a third"
    assert (found.inputs, found.edges_total) == (40, len(net_graph(net).edges))
    assert {(one.net, one.events) for one in found.measured} == {
        ("start", 2),
        ("start", 3),
        ("trained", 2),
        ("trained", 3),
    }
    page = (out / "ladder.html").read_text()
    (out / "ladder.html").unlink()
    assert obverse("report", out).out == f"page: {out / 'ladder.html'}\n"
    assert (out / "ladder.html").read_text() == page, "from the record alone"
    assert str(tmp_path) not in page


def test_weights_are_taken_in_place_of_training(obverse, real, measured):
    first, weights = record(measured.out), measured.out / "net.safetensors"
    again = json_of(obverse("ladder", *real[:2], *real[4:], "--weights", weights, "--json"))
    assert again["edges"] == first["edges"]
    assert again["measured"] == first["measured"]
    assert again["settings"]["weights"] == "net.safetensors", "without the folders of this machine"
    done = obverse("ladder", *real[:2], *real[-2:], "--weights", weights, "--nodes", "3,4")
    assert (done.code, done.out) == (2, "")
    assert "expected the tensors" in done.err


def test_without_training_the_start_is_the_net(obverse, real, measured):
    found = json_of(obverse("ladder", *real, "--epochs", "0", "--json"))
    assert {one["net"] for one in found["measured"]} == {"trained"}
    of_start = [one for one in record(measured.out)["measured"] if one["net"] == "start"]
    assert [one["levels"] for one in found["measured"]] == [one["levels"] for one in of_start]


@pytest.mark.parametrize(
    "flags", [["--shared"], ["--norm", "before"], ["--shared", "--norm", "after"]], ids=" ".join
)
def test_shared_weights_and_batch_norm(obverse, real, flags):
    found = json_of(obverse("ladder", *real[:-2], *flags, "--windows", "4/2,3", "--nodes", "2,3", "--json"))
    assert found["settings"]["windows"] == "4/2,3/3"
    assert found["settings"]["shared"] == ("--shared" in flags)
    assert [level["regions"] for level in found["levels"]] == [9, 1, 1]
    assert [level["nodes"] for level in found["levels"]] == [2, 3, 3]


def test_settling_gives_batch_norm_the_averages_of_the_images():
    net = local((1, 4, 4), 2, ((2, 2),), (3,), norm="before", generator=torch.Generator().manual_seed(0))
    x = torch.rand(50, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    settle(net, x)
    raw = net.levels[0].seen(x).raw.detach()
    torch.testing.assert_close(
        net.levels[0].norm.running_mean, raw.mean(0).flatten(1).T.flatten(), atol=1e-5, rtol=0
    )  # float32
    assert net.levels[0].norm.momentum == 0.1


@pytest.mark.parametrize(
    ("sides", "windows"),
    [
        ((8, 8), ((2, 2), (2, 2))),
        ((28, 28), ((4, 4), (3, 2))),
        ((32, 32), ((4, 4), (2, 2), (2, 2))),
        ((13, 13), ((3, 2), (2, 2))),
        ((2, 2), ((2, 2),)),
        ((64, 48), ((4, 4), (2, 2), (2, 2))),
    ],
    ids=str,
)
def test_windows_that_fit_are_chosen(sides, windows):
    assert fitting_windows(*sides)[: len(windows)] == windows
    local(
        (1, *sides), 2, fitting_windows(*sides), (1,) * len(fitting_windows(*sides))
    )  # refuses what does not


def test_sides_that_nothing_fits_are_said():
    with pytest.raises(BadInput, match="neither both even nor both odd"):
        fitting_windows(7, 8)


# What is refused

WRONG = [
    (["--graph", "ring"], "--graph out of tree, windows, grid; got 'ring'"),
    (["--leaves", "1"], "--leaves ≥ 2; got 1"),
    (["--graph", "grid"], "--leaves that are a square with a grid; got 8"),
    (["--stride", "1"], "no --stride with a tree; got 1"),
    (["--graph", "windows", "--stride", "3"], "a stride between 1 and 2; got 3"),
    (["--summary", "most"], "--summary out of full, and, or, xor, majority; got 'most'"),
    (["--values", "0"], "--values ≥ 1; got 0"),
    (["--summary", "and", "--values", "3"], "two values for --summary and; got --values 3"),
    (["--activation", "tanh"], "--activation out of relu, linear; got 'tanh'"),
    (["--loss", "fixed"], "--loss out of square, softmax; got 'fixed'"),
    (["--leaves", "40"], "at most 16,777,216 inputs without --sample; got 2 values at 40 positions"),
    (["--sample", "0"], "inputs to draw between 1 and 16,777,216; got 0"),
    (["--steps", "-1"], "--steps ≥ 0; got -1"),
    (["--nodes", "0"], "--nodes as whole numbers ≥ 1"),
    (["--nodes", "x"], "--nodes as whole numbers ≥ 1, e.g. 8,16; got 'x'"),
    (["--nodes", "2,3"], "one number for --nodes without --data"),
    (["--norm", "between"], "--norm out of before, after; got 'between'"),
    (["--lr", "0"], "--lr > 0; got 0"),
    (["--lr", "nan"], "--lr > 0; got nan"),
    (["--seed", "-1"], "--seed from 0 to"),
    (["--events", "3"], "--events with --data"),
    (["--data-root", "x"], "--data-root with --data"),
    (["--shared"], "--shared with --data only, as it is for a real net; got --shared without --data"),
    (["--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
    (["--data", "minst"], "got 'minst'"),
    (["--data", "{d}", "--leaves", "4"], "--leaves without --data"),
    (["--data", "{d}", "--windows", "3/3"], "cover all 8 × 8 pixels and no more"),
    (["--data", "{d}", "--windows", "a/b"], "--windows as SIZE/STRIDE, e.g. 4/4,3/2; got 'a/b'"),
    (["--data", "{d}", "--windows", "2/4"], "a stride from 1 to it"),
    (["--data", "{d}", "--nodes", "3"], "--nodes with a number for each level of windows: 2; got 3"),
    (["--data", "{d}", "--activation", "linear"], "--activation without --data"),
    (["--data", "{d}", "--events", "0"], "--events ≥ 1; got 0"),
    (["--data", "{d}", "--events", "91"], "at most 90 events, as there are images; got 91"),
    (["--data", "{d}", "--sweep", "a"], "--sweep as whole numbers"),
    (["--data", "{d}", "--images", "19"], "--images ≥ 20; got 19"),
    (["--data", "{d}", "--epochs", "-1"], "--epochs ≥ 0; got -1"),
    (["--data", "{d}", "--weights", "none", "--epochs", "1"], "--weights or --epochs; got both"),
    (["--data", "{t}"], "images for --data; got inputs of shape"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, images, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "flat.npz", x=np.random.default_rng(0).random((60, 5)), y=np.arange(60) % 3)
    before = files_below(tmp_path)
    done = obverse("ladder", *(word.format(d=images, t="flat.npz") for word in words))
    assert (done.code, done.out) == (2, ""), done
    assert re.fullmatch(r"obverse: expected [^\n]*; [^\n]*; [^\n]*\n", done.err), done.err
    assert said in done.err
    assert files_below(tmp_path) == before
