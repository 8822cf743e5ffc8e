"""`obverse diversity`: what is printed and written, which data are taken, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.diversity._measure import assess
from obverse.diversity._verdict import outlook, verdict
from obverse.diversity._words import rows
from obverse.diversity.command import FULL, QUICK, open_data, open_subject
from obverse.diversity.results import read_diversity
from present.test_progress import on_a_terminal
from training.helpers import files_below

SMALL = ("--samples", "60", "--batches", "5")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Digits that no one was trained on, as a file."""
    np.save(tmp_path / "drawn.npy", (load("digits").test_x[:200] * 255).byte().numpy())
    return tmp_path / "drawn.npy"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generator, trained for a moment."""
    from obverse.training._generators.fit import fit_generator, generator_task
    from obverse.training._generators.settings import GeneratorSettings
    from obverse.training._rundir import create_generator_run

    settings = GeneratorSettings(model="vae", hidden=(8,), latent=3, epochs=1, train_size=300)
    task = generator_task(settings)
    path = tmp_path_factory.mktemp("runs") / "tiny-vae"
    create_generator_run(path, task.settings, (1, 8, 8))
    fit_generator(task, run=path)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was asked for; it is done all the same."""
    made: dict[str, Any] = {}

    def record(source: Any, **options: Any) -> Any:
        made.update(options, source=source)
        return assess(source, **options)

    monkeypatch.setattr("obverse.diversity._measure.assess", record)
    return made


def json_of(done: Any) -> dict[str, Any]:
    assert (done.code, done.err) == (0, ""), done
    found: dict[str, Any] = json.loads(done.out)
    return found


# What is printed


@pytest.mark.parametrize("width", [80, 120])
def test_verdict_table_and_what_was_not_tested(obverse, monkeypatch, samples, tmp_path, width):
    monkeypatch.setenv("COLUMNS", str(width))
    done = obverse("diversity", samples, *SMALL, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    found = read_diversity(tmp_path / "out")
    lines = done.out.splitlines()
    assert lines[0] == verdict(found), "first, and whole where it is piped"
    assert lines[1:4] == outlook(found)
    assert "Only exact duplicates count here" in lines[2]
    table = [line for line in lines[4:-1] if not line.startswith("not tested: ")]
    assert all(len(line) <= width for line in table)
    for what, value, _ in rows(found):
        assert any(line.startswith(what) and value in line for line in table), what
    assert "not tested: copies of training images: the training set was not given" in lines
    assert lines[-1] == f"page: {tmp_path / 'out' / 'diversity.html'}"


@pytest.mark.slow
def test_a_terminal_shows_a_bar(samples):
    code, shown = on_a_terminal("diversity", str(samples), *SMALL)
    assert code == 0, shown
    assert re.search(r"drawn .* 5/5 .* birthday test", shown)


def test_json_is_all_of_stdout(obverse, samples, tmp_path):
    done = obverse("diversity", samples, *SMALL, "--json", "--out", tmp_path / "out")
    assert done.err == f"page: {tmp_path / 'out' / 'diversity.html'}\n"
    assert json.loads(done.out) == json.loads((tmp_path / "out" / "diversity.json").read_text())


def test_the_same_command_gives_the_same_numbers(obverse, samples):
    one, two = (json_of(obverse("diversity", samples, *SMALL, "--json")) for _ in range(2))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


# Data


def test_names_with_a_split_and_files_are_compared_with(obverse, samples, asked, tmp_path):
    np.savez(tmp_path / "real.npz", x=load("digits").test_x[200:400].numpy())
    found = json_of(
        obverse(
            "diversity",
            samples,
            *SMALL,
            "--train",
            "digits:train",
            "--real",
            tmp_path / "real.npz",
            "--json",
        )
    )
    data = load("digits")
    assert torch.equal(asked["train"], data.train_x)
    assert torch.equal(asked["real"], data.test_x[200:400])
    assert torch.equal(asked["labelled"][1], data.train_y)
    assert (asked["decode"], asked["latent"]) == (None, None)
    assert (found["subject"], found["train"], found["real"], found["pool"]) == ("drawn", 1297, 200, 200)
    assert found["settings"]["train"] == "digits:train"
    assert found["settings"]["real"] == "real.npz"
    assert found["birthday"]["threshold"]["origin"] == "calibrated"
    assert found["memorization"]["copying"] is not None


def test_the_flags_reach_the_tests(obverse, samples, asked):
    flags = ("--batch-size", "7", "--batches", "3", "--threshold", "0.5", "--confidence", "0.9")
    more = ("--samples", "50", "--seed", "3", "--budget", "1000")
    assert obverse("diversity", samples, *flags, *more).code == 0
    wanted = {
        "batch_size": 7,
        "batches": 3,
        "threshold": 0.5,
        "confidence": 0.9,
        "samples": 50,
        "budget": 1000,
        "paths": FULL["paths"],
    }
    assert {name: asked[name] for name in wanted} == wanted
    assert asked["generator"].initial_seed() == 3


def test_quick_takes_less(obverse, samples, asked):
    assert obverse("diversity", samples, "--quick").code == 0
    assert asked["samples"] == QUICK["samples"]
    assert asked["budget"] == QUICK["budget"]
    assert asked["batches"] is None, "of a pool: as many as there are samples for"
    assert asked["settings"]["quick"] is True


def test_an_encoder_is_trained_on_the_training_set(obverse, samples, asked, monkeypatch):
    from obverse.diversity import _features as features

    seen: dict[str, Any] = {}

    def short(images: Any, **options: Any) -> Any:
        seen.update(images=images, **options)
        return features_of(images, **options | {"steps": 3})

    features_of = features.train_encoder
    monkeypatch.setattr(features, "train_encoder", short)
    real = ("--real", "digits:test", "--train", "digits:train")
    found = json_of(obverse("diversity", samples, *SMALL, *real, "--features", "encoder", "--json"))
    assert found["features"] == "encoder"
    assert torch.equal(seen["images"], load("digits").train_x)
    assert seen["steps"] == FULL["steps"]


def test_a_folder_with_a_broken_picture_goes_on_with_a_count(obverse, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, one in enumerate(load("digits").test_x[:40]):
        Image.fromarray((one[0] * 255).byte().numpy()).save(folder / f"{number}.png")
    (folder / "torn.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    done = obverse("diversity", folder, "--samples", "20", "--batches", "4")
    assert (done.code, done.err) == (0, "")
    assert "1 picture could not be read and is left out: torn.png." in done.out


def test_a_generator_brings_its_data_and_its_seeds(obverse, run, asked, tmp_path):
    flags = ("--samples", "60", "--batches", "5", "--batch-size", "20")
    done = obverse("diversity", run, *flags, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    found = read_diversity(tmp_path / "out")
    assert (found.subject, found.pool, found.train, found.real) == ("tiny-vae", None, 300, 500)
    assert found.smoothness is not None
    assert found.directions is not None
    assert found.directions.latent == 3
    assert len(found.labels) == 10
    assert found.skipped == ()
    assert asked["settings"]["train"] == "digits:train"
    images = {"samples", "pairs", "nearest", "paths", "directions", "labels"}
    assert files_below(tmp_path / "out") == {
        "diversity.json",
        "diversity.html",
        "images/diversity-pictures.json",
        *(f"images/diversity-{name}.png" for name in images),
    }
    page = (tmp_path / "out" / "diversity.html").read_text()
    assert str(tmp_path) not in page
    (tmp_path / "out" / "diversity.html").unlink()
    assert obverse("report", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "diversity.html").read_text() == page, "from the files alone"


def test_none_leaves_the_data_of_a_run_out(run):
    subject = open_subject(str(run), "none", "none")
    assert (subject.train, subject.real, subject.missing) == (None, None, ())
    subject = open_subject(str(run), "none", None)
    assert subject.train is None
    assert subject.real is not None
    assert subject.real.name == "digits:test"


def test_a_run_whose_data_are_gone_is_tested_without(run, monkeypatch):
    def gone(*_: Any) -> Any:
        raise BadInput("data", got="/home/someone/secret", do="look")

    monkeypatch.setattr("obverse.data.load", gone)
    subject = open_subject(str(run))
    assert (subject.train, subject.real) == (None, None)
    assert subject.missing == (
        "digits, which the run was trained on, could not be read: give --train and --real",
    )


def test_a_split_of_an_npz_with_labels(data, tmp_path):
    tiny = load(data)
    for split, x, y in (("train", tiny.train_x, tiny.train_y), ("test", tiny.test_x, tiny.test_y)):
        found = open_data(f"{data}:{split}", "train")
        assert torch.equal(found.x, x)
        assert found.y is not None
        assert torch.equal(found.y, y)
        assert found.name == f"tiny:{split}"
    assert torch.equal(open_data("digits", "test").x, load("digits").test_x)
    assert torch.equal(open_data("digits", "train").x, load("digits").train_x)


# Files, and what is refused


def test_without_out_nothing_is_written(obverse, samples, tmp_path):
    before = files_below(tmp_path)
    assert obverse("diversity", samples, *SMALL).code == 0
    assert files_below(tmp_path) == before


WRONG = [
    (["{s}", "--train", "minst:train"], "with :train or :test; got 'minst:train'"),
    (["{s}", "--real", "digits:valid"], "got 'digits:valid'"),
    (["{s}", "--features", "inception"], "--features out of pixels, encoder; got 'inception'"),
    (["{s}", "--features", "encoder"], "--train or --real with --features encoder"),
    (["{s}", "--batch-size", "1"], "--batch-size ≥ 2; got 1"),
    (["{s}", "--batches", "0"], "--batches ≥ 1; got 0"),
    (["{s}", "--samples", "9"], "--samples ≥ 10"),
    (["{s}", "--threshold", "-1"], "--threshold ≥ 0"),
    (["{s}", "--confidence", "1"], r"--confidence in \(0, 1\)"),
    (["{s}", "--seed", "-1"], "--seed from 0 to"),
    (["{s}", "--batch-size", "100", "--batches", "5"], "samples of drawn"),
    (["{s}", "--real", "{d}:test"], "real data of the shape of the samples, 1×8×8; got"),
    (["{s}", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
]


@pytest.mark.parametrize(("flags", "said"), WRONG, ids=[" ".join(flags) for flags, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, samples, data, tmp_path, flags, said):
    before = files_below(tmp_path)
    done = obverse("diversity", *(flag.format(s=samples, d=data) for flag in flags))
    assert (done.code, done.out) == (2, ""), done
    assert done.err.startswith("obverse: expected ")
    assert done.err.count("\n") == 1, "one line"
    assert re.search(said, done.err), done.err
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("spoil", ["nan", "one"])
def test_samples_that_are_none_are_refused(obverse, tmp_path, spoil):
    x = np.random.default_rng(0).random((30, 1, 4, 4)).astype(np.float32)
    if spoil == "nan":
        x[3, 0, 0, 0] = np.nan
    np.save(tmp_path / "bad.npy", x[:1] if spoil == "one" else x)
    done = obverse("diversity", tmp_path / "bad.npy")
    assert (done.code, done.out) == (2, "")
    assert re.search("NaN" if spoil == "nan" else "at least two samples", done.err)


def test_a_run_of_a_classifier_is_refused(obverse, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text("{}")
    done = obverse("diversity", tmp_path / "run")
    assert done.code == 2
    assert "a run of another kind" in done.err


def test_the_help_says_what_the_defaults_are(obverse):
    done = obverse("diversity", "--help")
    text = re.sub(r"[\s│]+", " ", done.out)
    assert "Example: obverse diversity " in text
    for shown in ("of_module [pixels]", "[100000]", "[0.95]", "[0]", "[nothing]", "[OBVERSE_DATA, else"):
        assert shown in text, shown
    for name, value in QUICK.items():
        if name in ("batches", "samples", "budget"):
            assert str(value) in text
    assert all(len(line) <= 120 for line in done.out.splitlines())
