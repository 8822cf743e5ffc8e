"""`obverse train`: a run directory, whatever happens."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

from obverse._core.locks import locked
from obverse.training import read_run
from obverse.training.command._train import hint
from training.helpers import files_below, metrics_without_seconds, tensor_bytes, tiny_npz, train

RUN = {
    ".lock",
    "config.json",
    "metrics.jsonl",
    "model.safetensors",
    "checkpoint/latest.json",
    "checkpoint/step-000000004.safetensors",
}


def test_a_run_is_trained_and_described_and_nothing_goes_to_stderr(obverse, small, tmp_path):
    done = obverse("train", *small)
    assert (done.code, done.err) == (0, "")
    path = tmp_path / "run"
    assert re.fullmatch(
        rf"{path}: test error [\d.]+ %, on shadows [\d.]+ %, same label [\d.]+ %\n", done.out
    ), done.out
    assert files_below(path) == RUN
    final = read_run(path).final
    assert f"test error {100 * final['test_error']:.2f} %" in done.out
    train(read_run(path).settings, tmp_path / "library")
    assert tensor_bytes(tmp_path / "library") == tensor_bytes(path)


def test_what_is_logged_every_epoch(obverse, small, tmp_path):
    obverse("train", *small)
    records = metrics_without_seconds(tmp_path / "run")
    assert [record["epoch"] for record in records] == [0, 1, 2]
    for record in records:
        numbers = {"train_loss", "test_error", "shadow_error", "label_agreement", "recovery_error"}
        assert numbers <= record.keys()
        assert record["recovery_error"].keys() == {"h1", "h2", "h3"}
    assert all("seconds" in record for record in read_run(tmp_path / "run").metrics)


def test_without_out_the_first_free_name_is_taken(obverse, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = small[: small.index("--out")]
    for number in (1, 2):
        done = obverse("train", *words)
        assert done.out.startswith(f"runs/tiny-{number}: ")
    assert {path.name for path in Path("runs").iterdir()} == {"tiny-1", "tiny-2"}


def test_an_existing_run_is_not_overwritten(obverse, small, tmp_path):
    obverse("train", *small)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in RUN}
    done = obverse("train", *small, "--seed", "1")
    assert done.code == 2
    assert f"resume it with: obverse train --resume {tmp_path / 'run'}" in done.err
    assert {name: (tmp_path / "run" / name).read_bytes() for name in RUN} == before


def test_a_run_in_use_is_refused(obverse, small, tmp_path):
    obverse("train", *small)
    (tmp_path / "run" / "model.safetensors").unlink()
    with locked(tmp_path / "run"):
        done = obverse("train", "--resume", tmp_path / "run")
    assert done.code == 2
    assert "another process is working in it" in done.err


def test_resuming_a_finished_run_says_so(obverse, small, tmp_path):
    first = obverse("train", *small)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in RUN}
    said = first.out.replace(": test", " is finished already: test")
    done = obverse("train", "--resume", tmp_path / "run", "--no-report")
    assert (done.code, done.out, done.err) == (0, said, "")
    page = tmp_path / "run" / "report.html"  # not there after --no-report, or a kill before it was written
    assert not page.exists()
    assert obverse("train", "--resume", tmp_path / "run").out == f"{said}page: {page}\n"
    page.unlink()
    assert {name: (tmp_path / "run" / name).read_bytes() for name in RUN} == before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--lr", "0.1"], "got lr;"),
        (["--lr", "0.1", "--no-smooth"], "got lr, smooth;"),
        (["--out", "elsewhere"], "got --out;"),
    ],
)
def test_resume_with_other_flags_is_refused(obverse, small, tmp_path, more, said):
    obverse("train", *small)
    done = obverse("train", "--resume", tmp_path / "run", *more)
    assert done.code == 2
    assert "expected --resume alone: a run keeps its settings" in done.err
    assert said in done.err


def test_resume_takes_the_runs_number_of_threads(obverse, small, tmp_path):
    obverse("train", *small)
    config = tmp_path / "run" / "config.json"
    config.write_text(config.read_text().replace('"threads": 1', '"threads": 2'))
    (tmp_path / "run" / "model.safetensors").unlink()
    assert obverse("train", "--resume", tmp_path / "run", "--no-report").code == 0
    assert torch.get_num_threads() == 2


# The convolutional net


@pytest.fixture
def images(tmp_path) -> list[str]:
    """Flags of a training of allconv that takes a moment, into tmp_path/run."""
    data = tiny_npz(tmp_path / "images.npz", features=(3, 8, 8))
    words = ["--net", "allconv", "--data", str(data), "--stem", "3,3,1", "--widths", "4,6", "--blocks", "1"]
    return [*words, "--epochs", "2", "--batch-size", "20", "--no-report", "--out", str(tmp_path / "run")]


def test_allconv_is_trained_plainly_and_says_its_error(obverse, images, tmp_path):
    done = obverse("train", *images, "--lr", "1e-5")
    assert (done.code, done.err) == (0, "")
    path = tmp_path / "run"
    first, second = done.out.splitlines()
    assert re.fullmatch(rf"{path}: test error [\d.]+ %", first)
    assert second.startswith("note: the net has learned little: the loss has hardly moved")
    assert "shadow" not in second
    run = read_run(path)
    assert run.settings.weight == 0.0
    assert [set(record) for record in run.metrics] == [
        {"epoch", "step", "train_loss", "test_error", "seconds"}
    ] * 3
    again = obverse("train", "--resume", path, "--no-report")
    assert again.out == first.replace(": test", " is finished already: test") + "\n"


def test_allconv_with_shadows_says_theirs(obverse, images, tmp_path):
    done = obverse(
        "train", *images, "--weight", "1", "--augment", "--milestones", "2", "--weight-decay", "1e-4"
    )
    assert (done.code, done.err) == (0, "")
    assert ", on shadows " in done.out
    assert read_run(tmp_path / "run").final["recovery_error"].keys() == {"stage2.0"}


def test_settings_of_the_other_net_are_one_sentence(obverse, images, tmp_path):
    done = obverse("train", *images, "--hidden", "5")
    assert done.code == 2
    assert "expected no hidden for the net 'allconv'; got hidden (5,); leave it out" in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in tensorboard's own code
def test_tensorboard_gets_what_there_is_of_allconv(obverse, images, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert obverse("train", *images, "--tensorboard").code == 0
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {"test_error", "train_loss", "seconds"}


def test_pictures_of_allconv_can_be_drawn_all_the_same(obverse, images, tmp_path):
    assert obverse("train", *images).code == 0
    done = obverse("sample", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "run" / "images" / "shadows.png").read_bytes().startswith(b"\x89PNG")


# TensorBoard


def test_a_missing_extra_is_named_before_anything_is_written(obverse, small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    done = obverse("train", *small, "--tensorboard")
    assert done.code == 2
    assert done.err.endswith("install it with: pip install 'obverse[tensorboard]'\n")
    assert not (tmp_path / "run").exists()
    monkeypatch.undo()
    assert obverse("train", *small).code == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in tensorboard's own code
def test_tensorboard_gets_every_number(obverse, small, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    done = obverse("train", *small, "--tensorboard")
    assert (done.code, done.err) == (0, "")
    folder = tmp_path / "run" / "tensorboard"
    assert len(list(folder.iterdir())) == 1
    events = EventAccumulator(str(folder)).Reload()
    records = read_run(tmp_path / "run").metrics
    for name in ("test_error", "shadow_error", "label_agreement", "train_loss"):
        logged = [(event.step, event.value) for event in events.Scalars(name)]
        expected = [(record["epoch"], record[name]) for record in records if record[name] is not None]
        assert logged == [(epoch, pytest.approx(value, rel=1e-6)) for epoch, value in expected]  # float32
    for layer in ("h1", "h2", "h3"):
        logged = [event.value for event in events.Scalars(f"recovery_error/{layer}")]
        assert logged == pytest.approx([record["recovery_error"][layer] for record in records], rel=1e-6)


# The page


def test_the_page_is_written_at_the_end(obverse, small, tmp_path):
    words = [word for word in small if word != "--no-report"]
    done = obverse("train", *words)
    assert (done.code, done.err) == (0, "")
    page = tmp_path / "run" / "report.html"
    assert done.out.splitlines()[1:] == [f"page: {page}"]
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_a_net_that_has_learned_little_is_told(obverse, tmp_path):
    words = [
        "--hidden",
        "8",
        "--epochs",
        "1",
        "--lr",
        "1e-6",
        "--no-report",
        "--out",
        str(tmp_path / "run"),
    ]
    done = obverse("train", *words)
    assert done.code == 0
    assert "note: the net has learned little" in done.out


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([2.3, 2.29], "the loss has hardly moved"),
        ([2.3, 2.5], "the loss has hardly moved"),
        ([2.3, 1.5], "try a smaller lr"),
        ([2.3, 9.0], "try a smaller lr"),
        ([], "try a smaller lr"),
    ],
)
def test_the_hint_goes_by_the_loss(losses, said):
    assert hint([{"train_loss": None}, *({"train_loss": loss} for loss in losses)]).startswith(said)


def test_data_of_ones_own_is_remembered_by_its_full_path(obverse, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [Path(word).name if word.endswith(".npz") else word for word in small]
    assert obverse("train", *words).code == 0
    assert Path(read_run(tmp_path / "run").settings.data).is_absolute()
