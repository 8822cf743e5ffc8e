"""The settings files and the contest of the all-convolutional net: what they say is what is run."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from experiments.allconv import run
from obverse.data import Dataset
from obverse.training import ClassifierTask, Diverged, Settings, fit_classifier, initial_net
from obverse.training._settings import read_toml
from training.helpers import tiny_data

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "experiments" / "allconv").glob("*.toml"))


def settings_of(file: Path) -> Settings:
    return Settings.from_mapping(read_toml(file), file.name)


def images(side: int, classes: int) -> Dataset:
    """Random pixels: enough to build a net for."""
    x = torch.rand(4, 3, side, side, generator=torch.Generator().manual_seed(0))
    y = torch.arange(4)
    return Dataset("random", x[:2], y[:2], x[2:], y[2:], tuple(map(str, range(classes))))


# The settings files


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_gives_a_net_that_is_trained_plainly(file):
    settings = settings_of(file)
    assert (settings.net, settings.weight, settings.augment) == ("allconv", 0.0, True)
    assert (settings.momentum, settings.batch_size, settings.weight_decay, settings.lr) == (
        0.9,
        128,
        1e-4,
        0.05,
    )
    large = file.stem == "imagenet"
    data = images(*((224, 1000) if large else (32, 10)))
    net = initial_net(settings, data)
    assert net(data.train_x).shape == (2, len(data.classes))


def test_the_file_for_cifar_is_the_papers():
    assert [file.stem for file in FILES] == ["cifar10", "imagenet", "small"]
    settings = settings_of(FILES[0])
    assert (settings.data, settings.milestones) == ("cifar10", (30_000, 50_000))
    assert settings.epochs * -(-50_000 // 128) > 60_000
    net = initial_net(settings, images(32, 10))
    assert sum(parameter.numel() for parameter in net.parameters()) == 13_538_736
    assert (settings.norm, settings.shortcut, settings.init) == (False, True, "identity")


@pytest.mark.slow
def test_the_file_for_imagenet_takes_a_step_of_training():
    settings = replace(settings_of(FILES[1]), epochs=1, batch_size=2)
    records = fit_classifier(ClassifierTask(settings, images(224, 1000)))
    assert records[-1]["train_loss"] > 0


# The contest


@pytest.fixture
def contest():
    return run


@pytest.fixture
def tiny(contest, monkeypatch):
    """The contest on images that take a moment."""
    data = tiny_data(points=120, features=(3, 8, 8))
    small = {
        "stem": (3, 3, 1),
        "widths": (4, 6),
        "blocks": 1,
        "epochs": 2,
        "batch_size": 20,
        "milestones": (6,),
    }
    base = replace(contest.base_settings(), data="tiny", augment=False, **small)
    monkeypatch.setattr(contest, "base_settings", lambda: base)
    monkeypatch.setattr(contest, "data", lambda name: data)
    monkeypatch.setattr(contest, "HELD_OUT", 20)
    monkeypatch.setattr(contest, "RATES", (0.05, 1e9))
    monkeypatch.setattr(contest, "SEEDS", (0, 1))
    return contest


def test_the_variants_differ_in_one_thing_or_in_their_start(contest):
    base = contest.base_settings()
    for name, change in contest.VARIANTS.items():
        settings = contest.final_settings(base, name, 0.1, 2)
        assert settings == replace(base, lr=0.1, seed=2, **change)
        assert ("norm" in change) + ("shortcut" in change) == (not name.startswith("identity"))
        assert (change.get("init") == "he") == name.endswith("He start")
    assert base == settings_of(FILES[2])


def test_rates_are_chosen_on_held_out_points_with_the_same_tries_for_all(contest):
    base = contest.base_settings()
    for name in contest.VARIANTS:
        pilot = contest.pilot_settings(base, name, 0.2)
        assert (pilot.validation, pilot.train_size) == (5000, None)
        assert (pilot.epochs, pilot.milestones, pilot.lr) == (1, (), 0.2)
    tries = [(0.1, 0.5, False), (0.2, 0.4, False), (0.05, 0.4, False), (0.02, 0.3, True)]
    named = [dict(zip(("rate", "test_error", "diverged"), one, strict=True)) for one in tries]
    assert contest.choose(named) == 0.05
    assert contest.choose(named[3:]) == 0.02


def test_the_contest_runs_resumes_and_publishes_what_the_runs_say(tiny, tmp_path, monkeypatch, capsys):
    tiny.run(tmp_path / "runs", tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text())
    assert [row["variant"] for row in found["variants"]] == list(tiny.VARIANTS)
    for row in found["variants"]:
        assert [one["rate"] for one in row["pilot"]] == [0.05, 1e9]
        assert row["convolutions"] == 5
        assert [one["seed"] for one in row["runs"]] == [0, 1]
        for one in row["runs"]:
            path = tmp_path / "runs" / f"{tiny.slug(row['variant'])}-{row['rate']:g}" / f"seed-{one['seed']}"
            lines = (path / "metrics.jsonl").read_text()
            records = [json.loads(line) for line in lines.splitlines()]
            assert one["test_errors"] == [record["test_error"] for record in records]
            assert one["test_error"] == one["test_errors"][-1]
            assert len(one["train_losses"]) == 2
    identity = found["variants"][0]
    assert identity["pilot"][1] == {"rate": 1e9, "diverged": True, "test_error": pytest.approx(2 / 3)}
    assert identity["rate"] == 0.05
    assert "identity" in capsys.readouterr().out
    monkeypatch.setattr(tiny, "ClassifierTask", lambda *a: (_ for _ in ()).throw(Diverged("trained again")))
    before = (tmp_path / "results.json").read_bytes()
    tiny.run(tmp_path / "runs", tmp_path / "results.json")  # only what diverged is trained again
    assert (tmp_path / "results.json").read_bytes() == before


def test_another_run_in_the_place_is_not_taken(tiny, tmp_path):
    base = tiny.base_settings()
    tiny.train(replace(base, epochs=1), tmp_path / "run")
    with pytest.raises(SystemExit, match="other settings"):
        tiny.train(replace(base, epochs=1, lr=0.01), tmp_path / "run")


def test_the_published_numbers_follow_from_the_published_runs(contest):
    found = json.loads(contest.RESULTS.read_text())
    assert Settings.from_mapping(found["settings"], "results.json") == contest.base_settings()
    assert [row["variant"] for row in found["variants"]] == list(contest.VARIANTS)
    for row in found["variants"]:
        assert row["changes"] == contest.VARIANTS[row["variant"]]
        assert [one["rate"] for one in row["pilot"]] == list(contest.RATES)
        assert row["rate"] == contest.choose(row["pilot"])
        assert [one["seed"] for one in row["runs"]] == list(contest.SEEDS)
        errors = [one["test_error"] for one in row["runs"]]
        assert row["test_error"] == pytest.approx(statistics.mean(errors), rel=1e-12)
        assert row["test_error_se"] == pytest.approx(statistics.stdev(errors) / 3**0.5, rel=1e-9)
        settings = contest.final_settings(contest.base_settings(), row["variant"], 0.1, 0)
        net = initial_net(settings, images(32, 10))
        assert row["parameters"] == sum(parameter.numel() for parameter in net.parameters())
    text = contest.RESULTS.read_text()
    assert "/tmp" not in text
    assert "/home" not in text
