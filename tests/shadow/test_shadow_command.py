"""`obverse shadow`: which net and inputs are measured, what is printed and written, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from obverse.data import load
from obverse.shadow._beside import NAMES
from obverse.shadow._survey import Surveyor, survey
from obverse.shadow._words import summary
from obverse.shadow.results import Survey, read_survey
from present.test_progress import on_a_terminal
from training.helpers import files_below, tiny_npz
from training.helpers import obverse as obverse_process

MODULE = """
from torch import nn

def cnn(width=6, pool=True):
    pooling = [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * width, 3)]
    flat = [nn.Flatten(), nn.Linear(16 * width, 3)]
    return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), *(pooling if pool else flat))

def flat():
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))

def deep():
    return nn.Sequential(nn.Flatten(), *[m for _ in range(15) for m in (nn.Linear(16, 16), nn.ReLU())])

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 3)

    def forward(self, x):
        y = self.layer(x.flatten(1))
        return y, y

class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 3)

    def forward(self, x):
        return self.layer(x.flatten(1).sort(1).values)
"""
PLACE = iter(range(1000))


@pytest.fixture
def mynets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the working directory; another one for each test, as imports are remembered."""
    name = f"shadownets{next(PLACE)}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(tmp_path))])
    return name


@pytest.fixture
def cnn(mynets: str, data: Path) -> list[str]:
    return [f"{mynets}:cnn", "--data", str(data)]


@pytest.fixture
def run(obverse, data: Path, tmp_path: Path) -> Path:
    words = ["--data", data, "--hidden", "12,9", "--epochs", "2", "--batch-size", "20", "--no-report"]
    assert obverse("train", *words, "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the survey was asked for; it is made all the same."""
    made: dict[str, Any] = {}

    class Recorder(Surveyor):
        def __init__(self, net: nn.Module, x: torch.Tensor, **options: Any) -> None:
            made.update(options, net=net, x=x)
            super().__init__(net, x, **options)

    def record(tool: Surveyor, x: torch.Tensor, y: torch.Tensor, **options: Any) -> Survey:
        made.update(options, test_x=x, test_y=y)
        return survey(tool, x, y, **options)

    monkeypatch.setattr("obverse.shadow._survey.Surveyor", Recorder)
    monkeypatch.setattr("obverse.shadow._survey.survey", record)
    return made


def json_of(done: Any) -> dict[str, Any]:
    assert (done.code, done.err) == (0, ""), done
    found: dict[str, Any] = json.loads(done.out)
    return found


# What is printed


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, ["layer", "h", "same label %", "error", "cosine"]),
        (130, ["layer", "h", "same label %", "chance", "error", "mean's", "cosine", "scale", "theory's"]),
    ],
)
def test_the_table_fits_and_says_what_matters(obverse, monkeypatch, cnn, width, titles, tmp_path):
    monkeypatch.setenv("COLUMNS", str(width))
    done = obverse("shadow", *cnn, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"{cnn[0]}, on 20 test inputs of tiny, ")
    assert all(title in lines[1] for title in titles), lines[1]
    assert all(len(line) <= width for line in lines[1:6])
    found = json_of(obverse("shadow", *cnn, "--json"))
    for line, layer in zip(lines[3:5], found["layers"], strict=True):
        own, shuffled = layer["own"], layer["shuffled"]
        assert line.split()[0] == layer["name"]
        for one, other, form in (
            (100 * own["agreement"], 100 * shuffled["agreement"], ".1f"),
            (own["error"], shuffled["error"], ".3g"),
            (own["cosine"], shuffled["cosine"], ".2f"),
        ):
            assert f" {one:{form}} ({other:{form}})".replace("-", "−") in line
    assert "in brackets: shadows by the same net with the entries of each weight shuffled" in " ".join(
        done.out.split()
    )
    assert lines[-2] == summary(read_survey(tmp_path / "out")), "in words, and whole where it is piped"


def test_random_weights_are_told(obverse, cnn, tmp_path):
    assert "note: The net has random weights" in obverse("shadow", *cnn).out
    assert json_of(obverse("shadow", *cnn, "--json"))["random_weights"] is True


def test_switches_are_told_to_be_borrowed(obverse, cnn, tmp_path):
    assert "not functions of h alone" not in obverse("shadow", *cnn).out
    done = obverse("shadow", *cnn, "--switches", "--out", tmp_path / "out")
    assert "these shadows are not functions of h alone" in done.out
    assert "not functions of h alone" in (tmp_path / "out" / "shadow.html").read_text()


@pytest.mark.slow
def test_piped_output_has_no_escape_codes(cnn, tmp_path):
    done = obverse_process("shadow", *cnn)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith(cnn[0]), "the working directory is importable"


@pytest.mark.slow
def test_a_terminal_shows_a_bar(cnn):
    code, shown = on_a_terminal("shadow", *cnn)
    assert code == 0, shown
    assert re.search(rf"{cnn[0]} .* 0/1 .* calibration", shown)
    assert re.search(rf"{cnn[0]} .* 2/2 ", shown)


def test_json_is_all_of_stdout(obverse, cnn, tmp_path):
    done = obverse("shadow", *cnn, "--json", "--out", tmp_path / "out")
    assert done.err == f"page: {tmp_path / 'out' / 'shadow.html'}\n"
    found, kept = json.loads(done.out), json.loads((tmp_path / "out" / "shadow.json").read_text())
    assert found == kept


# Nets


def test_weights_are_loaded_and_told(obverse, cnn, tmp_path):
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 3)
    )
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    found = json_of(obverse("shadow", *cnn, "--weights", tmp_path / "net.safetensors", "--json"))
    assert (found["weights"], found["random_weights"]) == ("net.safetensors", False)
    data = load(cnn[2])
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    expected = survey(Surveyor(net, data.train_x), data.test_x[order], data.test_y[order])
    assert found["layers"] == [one.to_dict() for one in expected.layers]
    assert found["test_error"] == expected.test_error


def test_arguments_reach_the_factory(obverse, cnn, asked):
    assert obverse("shadow", *cnn, "--arg", "width=4", "--arg", "pool=false").code == 0
    assert asked["net"][0].out_channels == 4
    assert len(asked["net"]) == 4


def test_the_net_of_a_run_with_its_own_data(obverse, run, data, asked):
    found = json_of(obverse("shadow", run, "--json"))
    assert (found["model"], found["random_weights"], found["data"]) == ("run", False, "tiny")
    assert [layer["name"] for layer in found["layers"]] == ["h1", "h2", "h3"]
    weights = load_file(run / "model.safetensors")
    assert torch.equal(asked["net"].h1.weight, weights["h1.weight"])
    for name in ("own", data):
        again = json_of(obverse("shadow", run, "--data", name, "--json"))
        assert again["layers"] == found["layers"]


def test_a_run_with_other_data_of_its_shape(obverse, run, tmp_path, asked):
    x = np.full((10, 1, 4, 4), 0.25, dtype=np.float32)
    np.savez(tmp_path / "same.npz", x=x, y=np.arange(10) % 3)
    assert obverse("shadow", run, "--data", tmp_path / "same.npz").code == 0
    assert torch.equal(asked["test_x"], torch.full((2, 1, 4, 4), 0.25))
    np.savez(tmp_path / "other.npz", x=x[..., :3], y=np.arange(10) % 3)
    done = obverse("shadow", run, "--data", tmp_path / "other.npz")
    assert done.code == 2
    assert "expected inputs of shape (1, 4, 4)" in done.err
    assert "got (1, 4, 3)" in done.err


# Inputs and settings


def test_inputs_are_drawn_from_the_test_set_with_the_seed(obverse, cnn, asked):
    data = load(cnn[2])
    seen = []
    for seed in (0, 0, 1):
        assert obverse("shadow", *cnn, "--samples", 7, "--seed", seed).code == 0
        seen.append(asked["test_x"])
        for x, y in zip(asked["test_x"], asked["test_y"], strict=True):
            (row,) = ((data.test_x == x).flatten(1).all(1)).nonzero()
            assert data.test_y[row] == y
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert len(seen[0]) == 7
    assert torch.equal(asked["x"], data.train_x), "calibrated on training inputs"


@pytest.mark.parametrize(
    ("words", "mean", "std"),
    [(("0.5", "0.25"), (0.5,) * 3, (0.25,) * 3), (("0.1,0.2,0.3", "1,2,4"), (0.1, 0.2, 0.3), (1, 2, 4))],
)
def test_normalised_inputs(obverse, mynets, tmp_path, asked, words, mean, std):
    file = tiny_npz(tmp_path / "colour.npz", features=(3, 4, 4))
    (tmp_path / f"{mynets}_colour.py").write_text(
        "from torch import nn\n"
        "net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))"
    )
    done = obverse("shadow", f"{mynets}_colour:net", "--data", file, "--normalize", *words)
    assert done.code == 0, done
    data = load(file)
    for channel in range(3):
        expected = (data.train_x[:, channel].double() - mean[channel]) / std[channel]
        # float32 in place of float64
        assert torch.allclose(asked["x"][:, channel].double(), expected, atol=1e-6)


def test_the_flags_reach_the_survey(obverse, cnn, asked):
    flags = ("--keep", "0.5", "--refine", "2", "--smooth", "--match-norm", "--switches", "--seed", "11")
    found = json_of(obverse("shadow", *cnn, *flags, "--no-calibrate", "--layers", "0", "--json"))
    wanted = {"keep": 0.5, "refine": 2, "smooth": True, "match_norm": True, "switches": True, "seed": 11}
    assert {name: asked[name] for name in wanted} == wanted
    assert asked["calibrate"] is False
    assert asked["layers"] == ["0"]
    assert callable(asked["progress"]), "a line a minute, where there is no terminal"
    assert {name: found[name] for name in wanted} == wanted
    assert found["calibrated"] is False
    assert [layer["name"] for layer in found["layers"]] == ["0"]


def test_without_flags_the_defaults_are_those_of_the_library(obverse, cnn, asked):
    import inspect

    assert obverse("shadow", *cnn).code == 0
    for name, each in inspect.signature(Surveyor).parameters.items():
        if each.default is not each.empty:
            assert asked[name] == each.default, name


def test_the_same_command_gives_the_same_numbers(obverse, cnn):
    one, two = (json_of(obverse("shadow", *cnn, "--keep", "0.5", "--json")) for _ in range(2))
    assert one["layers"] == two["layers"]


# Files


def test_out_takes_json_page_and_pictures(obverse, cnn, tmp_path):
    out = tmp_path / "a" / "b"
    done = obverse("shadow", *cnn, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"page: {out / 'shadow.html'}\n")
    ways = [name for name in NAMES if name != "transpose-refined"]  # nothing was to be refined
    strips = {f"images/shadow-0{place}-{way}.png" for place in (1, 2) for way in ways}
    assert files_below(out) == {
        "shadow.json",
        "shadow.html",
        "images/shadow-pictures.json",
        "images/shadow-input.png",
        *strips,
    }
    page = (out / "shadow.html").read_text()
    assert read_survey(out).model == cnn[0]
    assert page.count("<img ") == 2 * 4 * (1 + len(ways))
    (out / "shadow.html").unlink()
    assert obverse("report", out).out == f"page: {out / 'shadow.html'}\n"
    assert (out / "shadow.html").read_text() == page, "from the directory alone"


def test_without_out_nothing_is_written(obverse, cnn, tmp_path):
    before = files_below(tmp_path)
    assert obverse("shadow", *cnn).code == 0
    assert {name for name in files_below(tmp_path) if "__pycache__" not in name} == before


def test_at_most_so_many_layers_are_drawn_and_all_are_measured(obverse, mynets, data, tmp_path):
    words = ("shadow", f"{mynets}:deep", "--data", data, "--samples", "4")
    for flags, count in (((), 12), (("--pictures", "3"), 3)):
        out = tmp_path / f"out{count}"
        assert obverse(*words, *flags, "--out", out).code == 0
        told = json.loads((out / "images" / "shadow-pictures.json").read_text())
        assert len(told["rows"]) == count
        names = [layer.name for layer in read_survey(out).layers]
        assert len(names) == 15
        assert (told["rows"][0]["layer"], told["rows"][-1]["layer"]) == (names[0], names[-1])


def test_inputs_that_are_no_images_have_numbers_and_no_pictures(obverse, mynets, tmp_path):
    file = tiny_npz(tmp_path / "flat.npz", features=(16,))
    done = obverse("shadow", f"{mynets}:flat", "--data", file, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    page = (tmp_path / "out" / "shadow.html").read_text()
    assert "No pictures: inputs of shape 16 are no images of 1 or 3 channels" in page
    assert "<img" not in page
    assert files_below(tmp_path / "out") == {"shadow.json", "shadow.html"}


def test_a_run_keeps_its_own_page(obverse, run):
    assert obverse("shadow", run, "--out", run).code == 0
    assert (run / "shadow.html").is_file()
    assert obverse("report", run).out == f"page: {run / 'report.html'}\n"
    assert obverse("report", run / "shadow.json").out == f"page: {run / 'shadow.html'}\n"


# What is refused

WRONG = [
    (["{m}:cnn"], "expected --data; got none"),
    (["shadownets:", "--data", "{d}"], "MODEL as module:factory, .* or the directory of a run; got 'shadown"),
    (["nosuch:cnn", "--data", "{d}"], "a Python module nosuch; got none of that name"),
    (["{m}:cnn", "--data", "minst"], "got 'minst'"),
    (["{m}:cnn", "--data", "{d}", "--arg", "width"], "--arg as NAME=VALUE"),
    (["{m}:cnn", "--data", "{d}", "--arg", "depth=3"], r"--arg that .*:cnn takes \(width, pool\); got depth"),
    (["{m}:cnn", "--data", "{d}", "--arg", "width=text"], "to make a net; got"),
    (
        ["{m}:cnn", "--data", "{d}", "--weights", "other.safetensors"],
        "the 4 tensors of the net in other",
    ),
    (["{m}:cnn", "--data", "{d}", "--weights", "empty"], "weights as FILE.safetensors; got empty"),
    (["{m}:flat", "--data", "{d}"], r"shadownets\d+:flat to take inputs of shape 1×4×4; got RuntimeError"),
    (["{m}:Pair", "--data", "{d}"], "to return one tensor; got tuple"),
    (["{m}:Odd", "--data", "{d}"], "sort"),
    (
        ["{m}:cnn", "--data", "{d}", "--normalize", "0.5", "0"],
        "--normalize MEAN STD as one number or 1 bet",
    ),
    (["{m}:cnn", "--data", "{d}", "--normalize", "0.5,0.5", "1"], "--normalize MEAN STD"),
    (["{m}:cnn", "--data", "{d}", "--normalize", "a", "1"], "--normalize MEAN STD"),
    (["{m}:cnn", "--data", "{d}", "--normalize", "nan", "1"], "--normalize MEAN STD"),
    (
        ["{m}:cnn", "--data", "{d}", "--layers", "x*"],
        r"to match at least one layer; got 'x\*'; names are 0",
    ),
    (["{m}:cnn", "--data", "{d}", "--samples", "1"], "--samples ≥ 2; got 1"),
    (["{m}:cnn", "--data", "{d}", "--keep", "0"], "keep in"),
    (["{m}:cnn", "--data", "{d}", "--keep", "nan"], "keep in"),
    (["{m}:cnn", "--data", "{d}", "--refine", "-1"], "refine ≥ 0"),
    (["{m}:cnn", "--data", "{d}", "--seed", "-1"], "--seed from 0 to"),
    (["{m}:cnn", "--data", "{d}", "--pictures", "0"], "--pictures from 1 to 40; got 0"),
    (["{m}:cnn", "--data", "{d}", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words)[:60] for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, mynets, data, tmp_path, words, said):
    (tmp_path / "empty").mkdir()
    save_file({"0.weight": torch.ones(2)}, tmp_path / "other.safetensors")
    before = files_below(tmp_path)
    done = obverse("shadow", *(word.format(m=mynets, d=data) for word in words))
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.startswith("obverse: expected ")
    assert done.err.count("\n") == 1, "one line"
    assert done.err.count("; ") >= 2, "what was expected, what came, what to do"
    assert re.search(said, done.err), done.err
    assert {name for name in files_below(tmp_path) if "__pycache__" not in name} == before


def test_a_run_has_its_own_weights_and_arguments(obverse, run):
    for flags in (("--weights", run / "model.safetensors"), ("--arg", "width=3")):
        done = obverse("shadow", run, *flags)
        assert (done.code, done.out) == (2, "")
        assert "leave them out" in done.err
    (run / "model.safetensors").unlink()
    done = obverse("shadow", run)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), "not finished"


def test_smoothing_needs_images(obverse, mynets, tmp_path):
    file = tiny_npz(tmp_path / "flat.npz", features=(16,))
    done = obverse("shadow", f"{mynets}:flat", "--data", file, "--smooth", "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert "to smooth" in done.err


def test_debug_shows_where_the_users_code_failed(obverse, mynets, data):
    done = obverse("shadow", f"{mynets}:cnn", "--data", data, "--arg", "width=text", "--debug")
    assert done.code == 2
    assert f"{mynets}.py" in done.err
    assert "Traceback" in done.err


def test_the_help_says_that_code_is_run_and_what_the_defaults_are(obverse):
    text = re.sub(r"[\s│]+", " ", obverse("shadow", "--help").out)
    assert "this runs your code" in text
    for shown in (
        "measure on [200]",
        "layer [1.0]",
        "from the shadow [0]",
        "random [0]",
        "more [12]",
        "[random ones]",
    ):
        assert shown in text, shown
    assert "Example: obverse shadow mynets:resnet" in text


def test_a_small_survey_of_a_known_net(obverse, tmp_path, data, monkeypatch):
    """A factory of the library itself, whose arguments are a tuple and a number."""
    monkeypatch.chdir(tmp_path)
    words = ("--arg", "input_shape=1,4,4", "--arg", "hidden=5,", "--arg", "classes=3")
    found = json_of(obverse("shadow", "obverse.nets:relu_mlp", *words, "--data", data, "--json"))
    assert [layer["shape"] for layer in found["layers"]] == [[5], [3]]
