"""The paper's protocol: what is foretold, what runs, how it goes on, and what the page says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module

import pytest
import torch
from torch.nn import functional as F

from obverse.data import load
from obverse.training import ClassifierTask, Settings


def module(name):
    return import_module(f"experiments.paper.{name}")


@pytest.fixture(scope="module")
def digits():
    return load("digits")


@pytest.fixture
def tiny(monkeypatch):
    """One part of digits, a few steps long."""
    protocol = module("protocol")
    monkeypatch.setattr(protocol, "PARTS", {"tiny": protocol.Part("digits", 16, 4, held_out=100)})
    monkeypatch.setattr(protocol, "PLAN", ((1, "tiny"), (2, "tiny")))
    monkeypatch.setattr(protocol, "EVERY", 6)
    monkeypatch.setattr(protocol.gradients, "foretell", lambda settings, data: {"progress": {}})
    factors = {f"{2.0**b:g}": {"length": 1 + 2.0**b, "progress": 1.5} for b in range(-3, 4)}
    monkeypatch.setattr(protocol.gradients, "foretell_own", lambda settings, data: factors)
    return protocol


SETTINGS = Settings(data="digits", hidden=(20, 16), weight=0.0, lr=0.05, momentum=0.0, match_norm=False)


def test_what_is_foretold_is_what_one_small_step_does(digits):
    """To first order a step along g + w·g′ lowers the loss on images by lr·‖g‖²·progress."""
    gradients = module("gradients")
    task = ClassifierTask(SETTINGS, digits)
    task.shadow.scale = 1.0
    found = gradients.look(task, (0.5, 2.0))
    x, y = task.train_x[: gradients.POINTS], task.train_y[: gradients.POINTS]
    net = task.net.double()
    x = x.double()
    h = task.shadow.infer(x, "h2").detach()
    first, second = (net.get_submodule(name).weight.detach() for name in ("h1", "h2"))
    twin = ((h @ second).relu() @ first).relu().reshape(x.shape)  # x′ as it is printed
    for weight in (0.5, 2.0):
        own = F.cross_entropy(net(x), y)
        loss, before = own + weight * F.cross_entropy(net(twin), y), float(own.detach())
        steps = torch.autograd.grad(loss, list(net.parameters()))
        length = float(torch.cat([one.flatten() for one in steps]).norm())
        # float32 sums over two thousand images in the one, float64 in the other
        assert found["length"][f"{weight:g}"] * found["norm"] == pytest.approx(length, rel=1e-4)
        size = 1e-5
        with torch.no_grad():
            for parameter, step in zip(net.parameters(), steps, strict=True):
                parameter -= size * step
            fallen = (before - float(F.cross_entropy(net(x), y))) / size
            for parameter, step in zip(net.parameters(), steps, strict=True):
                parameter += size * step
        expected = found["progress"][f"{weight:g}"] * found["norm"] ** 2
        assert fallen == pytest.approx(expected, rel=1e-2)  # the second order of the step is left


def test_the_protocol_is_the_papers(tiny):
    base = module("protocol").Part("mnist", 5000, 10).base
    assert (base.momentum, base.batch_size, base.match_norm, base.optimizer) == (0.0, 100, False, "sgd")
    assert base.hidden == (5000, 5000)
    assert pytest.approx(0.016) == module("protocol").LARGEST
    paper = module("run")
    assert paper.RATES == (-2, 2)
    assert paper.WEIGHTS == (-3, 3)


def test_a_run_that_is_stopped_goes_on_to_the_same_numbers(tiny, tmp_path, monkeypatch):
    def one_candidate(error, rates, weights):
        assert 0 <= error(2, 1) <= 1
        return 2, 1

    monkeypatch.setattr(tiny, "alternate", one_candidate)
    monkeypatch.setattr(tiny, "ARMS", {arm: tiny.ARMS[arm] for arm in (tiny.PLAIN, tiny.SHADOW)})
    asked = {"part": ["tiny"], "seed": [0]}
    assert tiny.run(**asked, folder=tmp_path / "a", work=tmp_path / "work-a")

    class Clock:
        """In place of a timer: it rings after seven steps."""

        left = 0
        ring = None

        def __init__(self, seconds, ring):
            Clock.ring, Clock.left = staticmethod(ring), 7

        def start(self):
            pass

        cancel = start

    step = tiny.Errors.step

    def counted(self, epoch, index):
        Clock.left -= 1
        if Clock.left == 0:
            Clock.ring()
        return step(self, epoch, index)

    monkeypatch.setattr(tiny.threading, "Timer", Clock)
    monkeypatch.setattr(tiny.Errors, "step", counted)
    pieces = 1
    while not tiny.run(**asked, seconds=1.0, folder=tmp_path / "b", work=tmp_path / "work-b"):
        pieces += 1
        assert pieces < 20
    assert pieces > 5  # 4 + 24 steps for each of two arms
    for name in ("protocol-tiny.jsonl", "protocol-tiny-tuning.jsonl"):
        whole, parts = (tiny.read(tmp_path / folder / name) for folder in "ab")
        assert whole == parts
    curves = tiny.read(tmp_path / "a" / "protocol-tiny.jsonl")
    assert set(curves) == {f"{arm}, seed 0" for arm in (tiny.PLAIN, tiny.SHADOW)}
    assert [point["step"] for point in curves["SHADOW, seed 0"]["curve"]] == [0, 6, 12, 18, 24]
    assert curves["SHADOW, seed 0"]["settings"]["weight"] == 2.0


def test_equal_steps_are_as_long_as_foretold(tiny, tmp_path, monkeypatch, digits):
    import threading

    tiny.foretell(["tiny"], tmp_path, None)
    one = tiny.Protocol("tiny", tiny.PARTS["tiny"], digits, tmp_path, tmp_path, threading.Event())
    monkeypatch.setattr(
        tiny,
        "alternate",
        lambda error, rates, weights: (2, 1 if weights == (-3, 3) else 0),
    )
    assert one.chosen(tiny.SHADOW).weight == 2.0
    step = one.chosen(tiny.STEP)
    assert step.lr == pytest.approx(0.016 * 3)
    assert (step.weight, step.momentum, step.dropout) == (0.0, 0.0, 0.0)
    assert one.chosen(tiny.DROPOUT_STEP).dropout == 0.5
    later = one.chosen(f"{tiny.PLAIN}, momentum")
    assert (later.lr, later.momentum) == (pytest.approx(0.016), 0.9)


def record(arm, seed, errors, lr=0.016, weight=0.0, diverged=False):
    settings = replace(SETTINGS, seed=seed, lr=lr, weight=weight).to_dict()
    curve = [{"step": 100 * i, "train_loss": 1.0, "test_error": e, "points": 9} for i, e in enumerate(errors)]
    return {
        "key": f"{arm}, seed {seed}",
        "arm": arm,
        "settings": settings,
        "diverged": diverged,
        "curve": curve,
    }


def test_columns_end_where_all_of_their_arms_and_seeds_do():
    curves, protocol = module("protocol_curves"), module("protocol")
    long, short = {100 * i: 0.5 for i in range(1, 13)}, {100 * i: 0.5 for i in range(1, 7)}
    found = {protocol.PLAIN: {0: long, 1: long}, protocol.SHADOW: {0: long, 1: short}}
    mine, last = curves.column_of(found, protocol.COLUMNS[0], 600)
    assert last == 600
    assert {arm: sorted(seeds) for arm, seeds in mine.items()} == {
        protocol.PLAIN: [0, 1],
        protocol.SHADOW: [0, 1],
    }
    assert max(mine[protocol.PLAIN][0]) == 600
    assert curves.column_of({protocol.PLAIN: {0: {100: 0.5}}}, protocol.COLUMNS[0], 600) == ({}, 0)


def test_how_many_times_fewer_steps_is_read_off_both_curves():
    speed = module("protocol_curves").speed
    slow = {100: 0.8, 200: 0.6, 300: 0.5, 400: 0.4}
    assert speed({100: 0.4, 200: 0.2}, slow) == 4
    assert speed({100: 0.6, 200: 0.2}, slow) == pytest.approx(400 / 150)
    assert speed({100: 0.6, 200: 0.5}, slow) is None
    seeds = {0: {500: 0.6, 600: 0.1, 700: 0.4}, 1: {500: 0.4, 600: 0.1, 700: 0.2}}
    # the end of an epoch is measured on all test images, the others on some
    assert module("protocol_curves").between(seeds, 600) == {500: 0.5, 700: pytest.approx(0.3)}


def test_the_page_says_what_the_files_say(tmp_path):
    protocol, page = module("protocol"), module("protocol_page")
    lines = []
    for seed in range(3):
        height = 0.2 + 0.01 * seed
        errors = {
            protocol.PLAIN: [0.9, *[height] * 6],
            protocol.SHADOW: [0.9, *[height - 0.05 - 0.001 * seed] * 6],
            protocol.STEP: [0.9, *[height - 0.06] * 6],
        }
        for arm, curve in errors.items():
            lines.append(record(arm, seed, curve, weight=8.0 if arm == protocol.SHADOW else 0.0))
    (tmp_path / "protocol-mnist-1000.jsonl").write_text("\n".join(map(json.dumps, lines)))
    names = ("loss", "loss_on_shadows", "norm", "norm_on_shadows", "cosine", "polyak")
    seen = dict.fromkeys(names, 1.0)
    factors = {"length": {"8": 20.0}, "progress": {"8": 9.0}}
    own = {"8": {"length": 12.0, "progress": 3.0}}
    told = {"mnist-1000": {"lr": 0.016, "states": {"0": seen}, "own": own, **factors}}
    (tmp_path / protocol.PREDICTION).write_text(json.dumps(told))
    text = page.text(tmp_path)
    assert "SHADOW has 5.10 ± 0.06 points less error than backprop after 600 steps" in text
    assert "in 5.0 times fewer steps (foretold: 3.0)" in text
    assert "significantly better than backpropagation, without dropout, on MNIST, width 1000" in text
    assert "it is not significantly better on MNIST, width 1000" in text
    assert "Not run so far: dropout, SHADOW + dropout" in text
    assert "Not run here: momentum 0.9." in text
    assert "CIFAR-100, width 1000" in text[text.index("Not run at all here") :].splitlines()[0]
    assert page.text(tmp_path / "nothing") == ""


def test_the_page_names_the_choices_that_are_not_on_file(tmp_path):
    protocol, page = module("protocol"), module("protocol_page")
    runs = [record(protocol.PLAIN, 0, [0.9, 0.5]), record(protocol.SHADOW, 0, [0.9, 0.4], weight=0.125)]
    (tmp_path / "protocol-mnist-1000.jsonl").write_text("\n".join(map(json.dumps, runs)))
    keys = ["backprop, a = 2", "backprop, a = 1", "SHADOW, a = 2, b = -3", "SHADOW, a = 1, b = -3"]
    tried = tmp_path / "protocol-mnist-1000-tuning.jsonl"
    tried.write_text("\n".join(json.dumps({"key": key}) for key in keys))
    assert "The choices of SHADOW on MNIST, width 1000 are" in page.on_fewer_points(tmp_path)
    tried.write_text("\n".join(json.dumps({"key": key}) for key in [*keys, "SHADOW, a = 2, b = -2"]))
    assert page.on_fewer_points(tmp_path) == ""


@pytest.mark.slow  # draws a figure
def test_the_figure_says_what_was_not_run(tmp_path):
    figure = module("protocol_figure").draw(tmp_path)
    assert [one.texts[0].get_text() for one in figure.axes] == ["not run"] * 9
