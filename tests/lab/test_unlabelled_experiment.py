"""The experiments with unlabelled points and variants of SHADOW: all methods run, choices are the least."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from experiments._lab import tables
from experiments._lab.shadow_variants import Variant
from experiments.better_shadow import run as better
from experiments.unlabelled import run as few
from obverse.data import load


@pytest.fixture(scope="module")
def digits():
    return load("digits")


@pytest.mark.parametrize("name", few.METHODS)
def test_every_method_takes_steps_and_changes_the_net(name, digits):
    method = few.METHODS[name]
    settings = replace(method.settings(*method.grid()[-1]), hidden=(20, 20), train_size=40)
    task = Variant(settings, digits, method.loss)
    before = task.net.h1.weight.detach().clone()
    losses = [task.step(0, index) for index in range(2)]
    assert all(0 < loss < 1000 for loss in losses)
    assert not torch.equal(task.net.h1.weight, before)
    if name != "plain" and name != "dropout":
        assert len(task.more_x) == len(digits.train_x) - 40
    if name == "noise + another decoder":  # its weights learn too
        first = next(task.loss.decoder.parameters()).detach().clone()
        task.step(1, 0)
        assert not torch.equal(next(task.loss.decoder.parameters()), first)


def test_denoising_from_the_middle_on(digits):
    """The first half is training with noise alone, to the bit; the second is not."""
    settings = replace(
        few.long_settings(few.LATE, 0.002, 8.0, 10.0), hidden=(20, 20), train_size=40, batch_size=40, epochs=4
    )
    late = Variant(settings, digits, few.LATE_METHOD.loss)
    alone = Variant(replace(settings, denoise=0.0), digits, few.METHODS["noise"].loss)
    for epoch in range(4):
        assert (late.step(epoch, 0) == alone.step(epoch, 0)) == (epoch < 2)
        assert torch.equal(late.net.h1.weight, alone.net.h1.weight) == (epoch < 2)
    assert late.loss.denoise == 10.0


@pytest.mark.parametrize("name", better.WAYS)
def test_every_way_takes_steps(name, digits):
    way = better.WAYS[name]
    settings = replace(better.sized(way.settings(*way.grid()[0]), digits), hidden=(20, 20))
    task = better.make(way, settings, digits)
    assert all(0 < task.step(0, index) < 1000 for index in range(2))


def test_all_have_as_many_trials():
    assert {len(method.grid()) for method in few.METHODS.values()} == {6}
    assert {len(way.grid()) for way in better.WAYS.values()} == {6}
    assert {len(trials) for trials in few.LONG.values()} == {3}


def test_held_out_points_are_none_of_the_others(digits):
    for held in (few.tuning_data(digits), better.held_out(digits)):
        rows = {tuple(x.flatten().tolist()) for x in held.train_x}
        fresh = [tuple(x.flatten().tolist()) not in rows for x in held.test_x]
        # The digits hold a few pictures twice.
        assert sum(fresh) >= len(fresh) - 3


def test_the_choice_is_the_least_held_out_error():
    method = few.METHODS["noise"]
    tuning = {f"noise|{rate}|{strength}": {"test_error": 0.2} for rate, strength in method.grid()}
    tuning["noise|0.002|4.0"] = {"test_error": 0.1}
    assert few.choose(tuning, "noise") == (0.002, 4.0)
    tried = {
        f"{name}|{rate}|{strength}|{seed}": {"test_error": 0.3 if name == "SHADOW" else 0.4}
        for name, way in better.WAYS.items()
        for rate, strength in way.grid()
        for seed in better.TUNING_SEEDS
    }
    assert better.winner(tried) == "SHADOW"
    assert better.choose(tried, "SHADOW")[2] == pytest.approx(0.3)


def test_the_pages_numbers_are_those_of_the_files(tmp_path, monkeypatch):
    errors = tables.errors_of({"a, b|1": {"test_error": 0.25}, "a, b|0": {"test_error": 0.5}, "c|0": {}})
    assert errors == {"a, b": [0.5, 0.25]}
    assert "One seed" in tables.paired([("a", "b")], {"a": [0.1], "b": [0.2]})
    table = tables.paired([("a", "b"), ("a", "missing")], {"a": [0.1, 0.2, 0.2], "b": [0.2, 0.2, 0.4]})
    assert "-10.00" in table
    assert "missing" not in table
    uneven = tables.paired(
        [("a", "b"), ("a", "c")], {"a": [0.1, 0.2, 0.2], "b": [0.2, 0.2], "c": [0.1, 0.2, 0.5]}
    )
    assert "| a | b | -5.00 ± 5.00 |" in uneven  # over the seeds that both have
    assert "| a | c | -10.00 ± 10.00 |" in uneven
