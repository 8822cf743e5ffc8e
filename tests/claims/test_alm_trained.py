"""Section 4 and Appendix E: recipe, ratios and recovery against arithmetic written out separately."""

from __future__ import annotations

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.alm import _appendix_e as appendix_e
from obverse.claims.alm import _trained as trained
from obverse.claims.alm._hidden import draw_hidden
from obverse.nets import relu_mlp
from obverse.shadow import best_threshold, recovery_error

TINY = {"data": "digits", "labels": 200, "width": 40, "epochs": 2, "rate": 0.05, "trials": 2}
CHANGE = {"n": 5, "m": 7, "k": 3, "replaced": 2, "trials": 3}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def relu(values):
    return np.maximum(values, 0.0)


def test_the_errors_are_those_of_the_net_and_of_its_shadows_written_out():
    task, found = trained.train(TINY, 3, weight=1.0)
    parts = {name: value.double().numpy() for name, value in task.net.state_dict().items()}

    def forward(x):
        h1 = relu(x @ parts["h1.weight"].T + parts["h1.bias"])
        h2 = relu(h1 @ parts["h2.weight"].T + parts["h2.bias"])
        return h2, (h2 @ parts["h3.weight"].T + parts["h3.bias"]).argmax(1)

    x = task.test_x.flatten(1).double().numpy()
    y = task.test_y.numpy()
    h2, label = forward(x)
    shadow = relu(relu(h2 @ parts["h2.weight"]) @ parts["h1.weight"])
    shadow *= np.linalg.norm(x, axis=1, keepdims=True) / np.linalg.norm(shadow, axis=1, keepdims=True)
    # float32 against float64: at most one of 500 answers is that close to a tie
    assert found["test_error"] == pytest.approx((label != y).mean(), abs=1 / 500)
    assert found["shadow_error"] == pytest.approx((forward(shadow)[1] != y).mean(), abs=1 / 500)


def test_nets_of_one_seed_see_the_same_images_and_start_alike():
    plain, changed, other = (
        trained.train(TINY, seed, **changes)[0] for seed, changes in ((1, {}), (1, {"weight": 1.0}), (2, {}))
    )
    assert torch.equal(plain.train_x, changed.train_x)
    assert not torch.equal(plain.train_x, other.train_x)
    assert plain.settings.weight == 0
    assert changed.settings.normalize  # the step size is held
    assert not torch.equal(plain.net.h1.weight, changed.net.h1.weight)


def faked(monkeypatch, errors):
    """`train` that answers with (test error, shadow error) by what it was asked for, and notes the seeds."""
    seeds = []

    def train(setting, seed, **changes):
        seeds.append(seed)
        test, shadow = errors[tuple(changes.items())]
        return None, {"test_error": test, "shadow_error": shadow}

    monkeypatch.setattr(trained, "train", train)
    return seeds


@pytest.mark.parametrize(("test", "shadow"), [(0.04, 0.05), (0.05, 0.04)])
def test_tracking_is_larger_over_smaller(monkeypatch, test, shadow):
    seeds = faked(monkeypatch, {(("weight", 1.0),): (test, shadow)})
    assert trained.measure_tracking({**TINY, "weight": 1.0}, seeded()) == pytest.approx([1.25, 1.25])
    assert len(set(seeds)) == 2


@pytest.mark.parametrize(
    ("measure", "change"),
    [(trained.measure_gain, ("weight", 1.0)), (trained.measure_uniform_bias, ("uniform_bias", True))],
)
def test_pairs_are_changed_over_plain_with_one_seed(monkeypatch, measure, change):
    seeds = faked(monkeypatch, {(): (0.05, 0.9), (change,): (0.04, 0.9)})
    assert measure({**TINY, "weight": 1.0}, seeded()) == pytest.approx([0.8, 0.8])
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_a_uniform_bias_is_one_number_a_hidden_layer():
    task, _ = trained.train(TINY, 0, uniform_bias=True)
    assert [len(getattr(task.net, name).bias) for name in ("h1", "h2", "h3")] == [1, 1, 10]


def test_no_wrong_answers_cannot_be_compared(monkeypatch):
    faked(monkeypatch, {(("weight", 1.0),): (0.0, 0.1)})
    with pytest.raises(BadInput, match="expected wrong answers to compare; got none"):
        trained.measure_tracking({**TINY, "weight": 1.0}, seeded())


def test_recovery_is_the_lowest_over_a_fine_grid_of_thresholds():
    weight = 0.3 * torch.randn(30, 50, generator=seeded())
    h = draw_hidden(8, 30, 4, "half-normal", seeded(1)).float()
    unit = weight.double().numpy()
    unit = unit / sqrt((unit**2).mean())
    top = h.double().numpy()
    back = relu(2 / 50 * top @ unit) @ unit.T
    lowest = min(((relu(back - cut) - top) ** 2).sum(1).mean() for cut in np.linspace(0, 2, 4001))
    # a step of 0.0005 beside the minimum costs 30 · 0.0005² at most; the rest is float32
    assert trained.recovery(weight, h) == pytest.approx(lowest, abs=1e-5)


def test_recovery_through_random_weights_is_the_closed_form():
    weight = torch.randn(300, 1000, generator=seeded(2))
    h = draw_hidden(64, 300, 15, "half-normal", seeded(3)).float()
    expected = float(recovery_error(h, 1000, best_threshold(h, 1000, 1000, shared=True), 1000).mean())
    # 3 % of normal approximation at t ≥ 500 and about 4 % (one standard error) for the one matrix drawn
    assert trained.recovery(weight, h) == pytest.approx(expected, rel=0.03 + 3 * 0.04)


@pytest.mark.parametrize("layer", [1, 2])
def test_only_a_layer_with_structure_recovers_worse_than_its_entries_shuffled(monkeypatch, layer):
    def ratios(strength):
        def train(setting, seed):
            random = seeded(seed % 1000)
            net = relu_mlp((200,), (200, 200), 10, generator=random)
            weight = net.get_parameter(f"h{layer}.weight").detach()
            signs = torch.randn(200, generator=random).sign()
            weight += strength * weight.std() * torch.outer(signs, signs.flip(0))  # of rank one
            return SimpleNamespace(net=net), {}

        monkeypatch.setattr(trained, "train", train)
        setting = {**TINY, "width": 200, "k": 10, "layer": layer, "trials": 12}
        return np.array(trained.measure_random_like(setting, seeded(4)))

    plain, spiked = ratios(0.0), ratios(1.0)
    # four standard errors, and 1 % because a mean of ratios is not the ratio of means
    assert abs(plain.mean() - 1) < 4 * plain.std(ddof=1) / sqrt(12) + 0.01
    assert spiked.mean() - 1 > 4 * spiked.std(ddof=1) / sqrt(12)


@pytest.mark.parametrize("replaced", [2, 10, 37])
def test_the_change_of_shadows_is_an_integral_over_two_normals(replaced):
    from scipy.integrate import dblquad

    cosine = 1 - replaced / 40
    for _ in range(2):
        rest = 1 - cosine**2

        def product(v, u, c=cosine, rest=rest):
            return u * v * np.exp(-(u * u - 2 * c * u * v + v * v) / (2 * rest)) / (2 * np.pi * sqrt(rest))

        cosine = 2 * dblquad(product, 0, 12, 0, 12, epsabs=1e-9)[0]  # E r(u)² = ½
    setting = {"n": 100, "m": 100, "k": 40, "replaced": replaced}
    for formula in ("printed", "corrected"):
        # the quadrature's own tolerance, carried through the second layer
        assert appendix_e.predict_change({**setting, "formula": formula}) == pytest.approx(
            1 - cosine, abs=1e-7
        )


def test_the_change_is_that_of_two_stacks_written_out():
    changes = appendix_e.measure_change({**CHANGE, "formula": "corrected"}, seeded(6))
    random = seeded(6)
    for change in changes:
        first, second = (torch.randn(rows, 7, generator=random).numpy() for rows in (5, 7))
        torch.rand(5, generator=random)
        order = torch.randperm(7, generator=random).tolist()
        images = []
        for active in (order[:3], order[2:5]):  # two of three units replaced
            h1 = [max(0.0, sum(second[row][unit] for unit in active)) for row in range(7)]
            images.append([max(0.0, sum(w * h for w, h in zip(row, h1, strict=True))) for row in first])
        apart = sum((a - b) ** 2 for a, b in zip(*images, strict=True))
        size = sum(value**2 for image in images for value in image)
        assert change == pytest.approx(apart / size, rel=1e-4)  # float32 sums of a few terms


def test_as_printed_the_layer_above_plays_no_part():
    assert appendix_e.measure_change({**CHANGE, "formula": "printed"}, seeded(6)) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k": 8}, "k ≤ m"),
        ({"replaced": 4}, "0 < replaced ≤ k"),
        ({"replaced": 0}, "0 < replaced ≤ k"),
        ({"k": 6, "replaced": 2}, "k \\+ replaced ≤ m"),
        ({"formula": "other"}, "formula printed or corrected"),
    ],
)
def test_bad_settings_of_the_change_are_named(change, sentence):
    setting = {**CHANGE, "formula": "printed", **change}
    with pytest.raises(BadInput, match=sentence):
        appendix_e.measure_change(setting, seeded())
    with pytest.raises(BadInput, match=sentence):
        appendix_e.predict_change(setting)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layer": 3}, "layer 1 or 2"),
        ({"k": 41}, "k ≤ m"),
        ({"k": 0}, "support must not be empty"),
        ({"labels": 5000}, "train_size ≤ 1297"),
        ({"rate": -1.0}, "lr > 0"),
    ],
)
def test_bad_settings_of_training_are_named(change, sentence):
    with pytest.raises(BadInput, match=sentence):
        trained.measure_random_like({**TINY, "k": 4, "layer": 1, **change}, seeded())
