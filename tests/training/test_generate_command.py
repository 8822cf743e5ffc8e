"""`obverse generate`: a run directory whatever happens, and samples in every form."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

from obverse import BadInput
from obverse.training._generators.fit import load_generator
from obverse.training._generators.settings import GeneratorSettings
from obverse.training._rundir import read_generator_run
from obverse.training.command._generate import FLAGS, describe
from training.generator_helpers import ALL_CHANGED, tiny_pixels
from training.helpers import files_below, flags, metrics_without_seconds, tensor_bytes

RUN = {
    ".lock",
    "config.json",
    "metrics.jsonl",
    "model.safetensors",
    "checkpoint/latest.json",
    "checkpoint/step-000000004.safetensors",
    "images/epoch-000000.png",
    "images/epoch-000001.png",
    "images/epoch-000002.png",
}


def save(path, **kind):
    data = tiny_pixels(**kind)
    np.savez(
        path, **{name: getattr(data, name).numpy() for name in ("train_x", "train_y", "test_x", "test_y")}
    )
    return path


@pytest.fixture
def words(tmp_path):
    """Flags of a training that takes a moment, into tmp_path/run."""
    data = save(tmp_path / "tiny.npz")
    given = [
        "--data",
        data,
        "--hidden",
        "6",
        "--latent",
        "3",
        "--epochs",
        "2",
        "--batch-size",
        "20",
        "--no-report",
    ]
    return [*given, "--out", tmp_path / "run"]


@pytest.fixture
def run(obverse, words, tmp_path):
    assert obverse("generate", "train", *words).code == 0
    return tmp_path / "run"


def test_there_is_a_flag_and_a_default_for_every_setting(obverse):
    done = obverse("generate", "train", "--help")
    text = re.sub(r"[\s│]+", " ", done.out)
    assert tuple(sorted(FLAGS)) == tuple(sorted(GeneratorSettings.names()))
    for name in GeneratorSettings.names():
        assert f"--{name.replace('_', '-')} " in text, name
    for shown in (
        "[vae]",
        "[digits]",
        "[mlp]",
        "[vae 20; wgan and mixture ",
        "[all]",
        "[off]",
        "[about 50 times]",
    ):
        assert shown in text, shown
    assert "Example: obverse generate train" in text
    assert "Example: obverse generate sample" in re.sub(
        r"\s+", " ", obverse("generate", "sample", "--help").out
    )


@pytest.mark.parametrize("model", ["vae", "wgan", "mixture"])
def test_a_run_is_trained_and_described_and_nothing_goes_to_stderr(obverse, words, tmp_path, model):
    done = obverse("generate", "train", *words, "--model", model)
    assert (done.code, done.err) == (0, "")
    path = tmp_path / "run"
    pattern = (
        r"test ELBO -?[\d.]+ nats per image \(reconstruction -?[\d.]+, KL -?[\d.]+\)"
        if model == "vae"
        else r"critic's gap -?[\d.]+ to test images, -?[\d.]+ to training images"
    )
    assert re.fullmatch(rf"{path}: {pattern}\n", done.out), done.out
    assert files_below(path) == RUN
    assert json.loads((path / "config.json").read_text())["kind"] == "generator"
    assert [record["epoch"] for record in metrics_without_seconds(path)] == [0, 1, 2]
    with Image.open(path / "images" / "epoch-000002.png") as image:
        assert image.size == (12 * 5 - 1, 4)


def test_every_flag_reaches_its_setting(obverse, monkeypatch):
    seen = []

    def stop(settings):
        seen.append(settings)
        raise BadInput("nothing", got="nothing", do="nothing")

    monkeypatch.setattr("obverse.training._generators.fit.generator_task", stop)
    obverse("generate", "train", *flags(ALL_CHANGED))
    obverse("generate", "train")
    assert seen == [ALL_CHANGED, GeneratorSettings()]


def test_flags_win_over_the_file_and_the_file_over_the_defaults(obverse, words, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('model = "wgan"\nhidden = [5]\nseed = 4\nlatent = 9\n')
    done = obverse("generate", "train", *words, "--config", file)
    assert done.code == 0, done
    settings = read_generator_run(tmp_path / "run").settings
    assert (settings.model, settings.hidden, settings.seed, settings.latent) == ("wgan", (6,), 4, 3)


def test_without_out_the_first_free_name_is_taken(obverse, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = obverse("generate", "train", *words[:-2])
    assert done.out.startswith("runs/vae-tiny-1: ")


def test_an_existing_run_is_not_overwritten(obverse, words, run):
    before = {name: (run / name).read_bytes() for name in RUN}
    done = obverse("generate", "train", *words, "--seed", "1")
    assert done.code == 2
    assert f"resume it with: obverse generate train --resume {run}" in done.err
    assert {name: (run / name).read_bytes() for name in RUN} == before


def test_a_run_that_was_cut_off_is_resumed_and_a_finished_one_says_so(obverse, words, run, tmp_path):
    expected = tensor_bytes(run)
    done = obverse("generate", "train", "--resume", run)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{run} is finished already: test ELBO")
    again = [*words[:-2], "--checkpoint-every", "1", "--out", tmp_path / "again"]
    assert obverse("generate", "train", *again).code == 0
    (tmp_path / "again" / "model.safetensors").unlink()
    done = obverse("generate", "train", "--resume", tmp_path / "again", "--no-report")
    assert done.code == 0, done
    assert tensor_bytes(tmp_path / "again")[0] == expected[0]


def test_the_page_is_written_at_the_end(obverse, words, tmp_path):
    done = obverse("generate", "train", *[word for word in words if word != "--no-report"])
    assert (done.code, done.err) == (0, "")
    page = tmp_path / "run" / "report.html"
    assert done.out.splitlines()[1:] == [f"page: {page}"]
    assert "Test ELBO" in page.read_text(encoding="utf-8")


WRONG = [
    (["train", "--data", "minst"], "got 'minst'"),
    (["train", "--model", "gan"], "model to be 'vae' or 'wgan' or 'mixture'"),
    (["train", "--hidden", "6,x"], "--hidden as widths"),
    (["train", "--components", "3"], "no components for the model 'vae'"),
    (["train", "--sigma", "1"], "no sigma for the decoder 'bernoulli'"),
    (["train", "--penalty", "nan", "--model", "wgan"], "penalty"),
    (["train", "--latent", "0"], "latent ≥ 1"),
    (["train", "--epochs", "0"], "epochs ≥ 1"),
    (["train", "--train-size", "5000"], "train_size ≤ 1297"),
    (["train", "--hidden", str(10**15)], "fit into memory"),
    (["train", "--out", "/proc/obverse-x"], "expected to write /proc/obverse-x"),
    (["sample", "none", "--count", "0"], "--count ≥ 1"),
    (["sample", "none", "--seed", "-1"], "--seed from 0"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words)[:60] for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(obverse, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    done = obverse("generate", *words)
    assert done.code == 2, done
    assert done.out == ""
    assert re.fullmatch(r"obverse: expected [^\n]*; [^\n]*; [^\n]*\n", done.err), done.err
    assert re.search(said, done.err), done.err
    assert list(tmp_path.rglob("*")) == []


def test_resume_with_other_flags_is_refused(obverse, run):
    done = obverse("generate", "train", "--resume", run, "--lr", "0.1")
    assert done.code == 2
    assert "--resume alone: a run keeps its settings; got lr;" in done.err


def test_commands_of_the_other_kind_of_run_refuse_it(obverse, run, small, tmp_path):
    for words in (["train", "--resume", run], ["sample", run]):
        done = obverse(*words)
        assert done.code == 2
        assert "got a run of a generator" in done.err
    small[-1] = str(tmp_path / "classifier")
    assert obverse("train", *small).code == 0
    for words in (["train", "--resume", small[-1]], ["sample", small[-1]]):
        done = obverse("generate", *words)
        assert done.code == 2
        assert "got a run of a classifier" in done.err


# Samples


def test_samples_are_those_of_the_generator(obverse, run, tmp_path):
    """More than a block of them, and the same in every form."""
    count = 1100
    net, generator = load_generator(run), torch.Generator().manual_seed(7)
    expected = torch.cat([net.sample(1000, generator), net.sample(100, generator)])
    more = ["--count", count, "--seed", "7"]
    for name in ("a.npz", "a.npy", "a.png", "folder"):
        done = obverse("generate", "sample", run, *more, "--out", tmp_path / "new" / name)
        assert (done.code, done.out, done.err) == (0, f"samples: {tmp_path / 'new' / name}\n", "")
    with np.load(tmp_path / "new" / "a.npz") as found:
        assert list(found) == ["x"]
        assert np.array_equal(found["x"], expected.numpy())
    assert np.array_equal(np.load(tmp_path / "new" / "a.npy"), expected.numpy())
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert [files[0].name, files[-1].name, len(files)] == ["sample-000000.png", "sample-001099.png", count]
    bytes_of = (expected[:, 0] * 255).round().numpy().astype(np.uint8)
    for place in (0, 999, 1000, 1099):
        with Image.open(files[place]) as image:
            assert np.array_equal(np.asarray(image), bytes_of[place])
    with Image.open(tmp_path / "new" / "a.png") as image:
        sheet = np.asarray(image)[::8, ::8]  # 4 pixels are drawn as 32
    assert sheet.shape == (34 * 5 - 1, 33 * 5 - 1)  # 33 columns, the root of 1100
    assert np.array_equal(sheet[5:9, 10:14], bytes_of[33 + 2])
    assert sorted(entry.name for entry in (tmp_path / "new").iterdir()) == [
        "a.npy",
        "a.npz",
        "a.png",
        "folder",
    ]


def test_samples_are_read_by_the_instruments(obverse, run, tmp_path):
    from obverse.data._unlabelled import load_unlabelled

    shapes = []
    for name in ("a.npz", "a.npy", "folder"):
        obverse("generate", "sample", run, "--count", "5", "--out", tmp_path / name)
        shapes.append(tuple(load_unlabelled(tmp_path / name).x.shape))
    assert shapes == [(5, 1, 4, 4)] * 3


def test_what_is_there_is_replaced_only_by_force_and_only_samples(obverse, run, tmp_path):
    for name in ("a.npz", "a.png", "folder"):
        call = ["generate", "sample", run, "--count", "3", "--out", tmp_path / name]
        assert obverse(*call).code == 0
        done = obverse(*call)
        assert done.code == 2
        assert "add --force to replace samples" in done.err
        assert obverse(*call, "--force", "--seed", "1").code == 0
    mine = tmp_path / "folder" / "sample-mine.txt"
    mine.write_text("mine")
    done = obverse("generate", "sample", run, "--out", tmp_path / "folder", "--force")
    assert done.code == 2
    assert mine.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert obverse("generate", "sample", run, "--count", "2", "--out", tmp_path / "empty").code == 0
    assert len(list((tmp_path / "empty").iterdir())) == 2
    for name in ("empty", "a.npz"):
        place = tmp_path / (f"{name}.npz" if name == "empty" else "file")
        if name == "empty":
            place.mkdir()
        else:
            place.write_text("mine")
        done = obverse("generate", "sample", run, "--out", place, "--force")
        assert done.code == 2
        assert "choose another --out" in done.err


def test_by_default_samples_are_put_beside_the_weights(obverse, run):
    assert obverse("generate", "sample", run).out == f"samples: {run / 'samples.npz'}\n"
    with np.load(run / "samples.npz") as found:
        assert found["x"].shape == (1000, 1, 4, 4)


def test_flat_samples_are_numbers_only_and_too_many_do_not_fit(obverse, words, tmp_path):
    words[1] = save(tmp_path / "flat.npz", features=(5,))
    done = obverse("generate", "train", *[word for word in words if word != "--no-report"])
    assert done.code == 0, done
    run = tmp_path / "run"
    assert not (run / "images").exists()
    assert obverse("generate", "sample", run, "--count", "4", "--out", tmp_path / "a.npz").code == 0
    for name in ("a.png", "folder"):
        done = obverse("generate", "sample", run, "--out", tmp_path / name)
        assert done.code == 2
        assert "images with 1 or 3 channels" in done.err
    done = obverse("generate", "sample", run, "--count", 10**12, "--out", tmp_path / "b.npz")
    assert done.code == 2
    assert "GiB" in done.err


def test_what_a_record_says():
    assert describe({}) == "nothing measured yet"
    assert describe({"test_gap": 0.5, "train_gap": 0.25}) == (
        "critic's gap 0.500 to test images, 0.250 to training images"
    )


def test_samples_in_a_format_that_is_not_known_are_refused(obverse, run, tmp_path):
    done = obverse("generate", "sample", run, "--out", tmp_path / "samples.txt")
    assert done.code == 2
    assert "expected --out as a .npz, .npy or .png file, or a folder; got samples.txt" in done.err
    assert not (tmp_path / "samples.txt").exists()


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"test_elbo": -56.0, "test_reconstruction": "[/]", "test_kl": 0.9}, "test_reconstruction"),
        ({"test_elbo": -56.0, "test_reconstruction": 1.0}, "test_kl"),
        ({"test_gap": 0.1, "train_gap": None}, "train_gap"),
    ],
)
def test_a_record_whose_numbers_are_none_is_refused_by_name(record, name):
    with pytest.raises(BadInput, match=f"a number for {name} in the last record"):
        describe(record)
