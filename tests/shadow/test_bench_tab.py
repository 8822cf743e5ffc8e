"""The theory bench: the simulation against the closed form, and against brute force written apart."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.present.fields import Fields
from obverse.shadow.tab._bench import AXES, LAWS, Bench, laws, measure_answer, predict_answer, simulate

BODY = {"n": 600, "m": 100, "k": 10, "t": 500, "offset": 1.5, "axis": "offset"}


def predict(subject, **changes):
    return predict_answer(subject, Fields(BODY | changes))


def measure(subject, **changes):
    return measure_answer(subject, Fields(BODY | {"law": "normal", "seed": 0, "first": 0} | changes))


def gather(subject, draws, **changes):
    """Mean and standard error of every point over at least so many draws of W."""
    count, total, squares = 0, 0.0, 0.0
    while count < draws:
        found = measure(subject, first=count, **changes)
        count += found["count"]
        total, squares = total + np.array(found["sum"]), squares + np.array(found["squares"])
    mean = total / count
    return found["at"], mean, np.sqrt((squares / count - mean**2) / (count - 1))


@pytest.mark.parametrize("axis", AXES)
def test_measured_points_lie_on_the_predicted_curve(subject, axis):
    at, mean, error = gather(subject, 60, axis=axis)
    start = Bench.read(Fields(BODY))
    for value, found, spread in zip(at[:-1], mean, error, strict=False):
        point = next(one for one in start.along(axis, 13) if one.value(axis) == value)
        if point.kept < 30:
            continue  # the closed form takes a sum of few terms as normal
        # recovery_error is good to 3 % from t = 500 on, to 6 % from t = 30 on; 4 standard errors for chance
        share = 0.03 if point.kept >= 500 else 0.06
        assert abs(found - point.predicted()) < share * point.predicted() + 4 * spread


def test_a_draw_is_what_brute_force_gives():
    """The same W, h and mask, number by number in plain loops."""
    points = [Bench(12, 9, 3, 8, 1.2), Bench(12, 9, 3, 8, 0.4), Bench(12, 9, 5, 12, 1.0)]
    found = simulate(points, LAWS["normal"], torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(5)
    weights = torch.randn(9, 12, generator=generator).double().numpy()
    order = torch.rand(8, 9, generator=generator).argsort(1).numpy()
    lots = torch.rand(8, 12, generator=generator).double().numpy()
    for point, error in zip(points, found, strict=True):
        theta, errors = point.offset * sqrt(2 / point.kept), []
        for row in range(8):
            h = [1 / sqrt(point.sparsity) if i in order[row][: point.sparsity] else 0.0 for i in range(9)]
            x = [
                max(0.0, 2 / point.kept * sum(h[i] * weights[i][j] for i in range(9)))
                if lots[row][j] < point.kept / 12
                else 0.0
                for j in range(12)
            ]
            back = [max(0.0, sum(weights[i][j] * x[j] for j in range(12)) - theta) for i in range(9)]
            errors.append(sum((one - two) ** 2 for one, two in zip(back, h, strict=True)))
        assert float(error) == pytest.approx(np.mean(errors), rel=1e-5)  # float32 sums


@pytest.mark.parametrize("law", LAWS)
def test_entries_have_mean_zero_and_variance_one(law):
    values = LAWS[law]((1000, 1000), torch.Generator().manual_seed(0)).double()
    count = values.numel()
    assert abs(float(values.mean())) < 5 / sqrt(count)
    spread = float(values.square().std()) / sqrt(count)
    assert abs(float(values.square().mean()) - 1) < 5 * spread + 1e-9


def test_entries_of_a_layer_are_its_own(subject):
    assert laws(subject)[-3:] == ["layer: h1", "layer: h2", "layer: h3"]
    found = measure(subject, law="layer: h2")
    assert found["sum"] != measure(subject)["sum"]
    assert found["count"] >= 1


def test_a_draw_is_the_same_whoever_asks(subject):
    whole = measure(subject, n=50, m=50, k=5, t=40)
    again = measure(subject, n=50, m=50, k=5, t=40, first=whole["count"])
    assert again["first"] == whole["count"]
    points = [*Bench(50, 50, 5, 40, 1.5).along("offset", 13), Bench(50, 50, 5, 40, 1.5)]
    fresh = [
        simulate(points, LAWS["normal"], torch.Generator().manual_seed(number))
        for number in range(whole["count"] + again["count"])
    ]
    total = torch.tensor(whole["sum"]) + torch.tensor(again["sum"])
    assert torch.allclose(total, torch.stack(fresh).sum(0).float(), rtol=1e-6)


def test_the_curve_has_the_place_chosen_and_the_best_is_its_lowest(subject):
    found = predict(subject)
    errors = [error for _, error in found["curve"]]
    assert found["best"] <= min(errors) + 1e-12
    assert found["best"] == pytest.approx(min(errors), rel=0.01)  # 81 points near a smooth minimum
    assert found["at"] == 1.5
    assert not found["theorem"]  # 500 > 10²
    assert predict(subject, t=80)["theorem"]


@pytest.mark.parametrize("axis", ["sparsity", "kept"])
def test_numbers_of_units_are_whole_and_within_the_layer(subject, axis):
    values = [at for at, _ in predict(subject, axis=axis)["curve"]]
    assert values == sorted(set(values))
    assert all(value == int(value) for value in values)
    assert values[-1] == (100 if axis == "sparsity" else 600)


@pytest.mark.parametrize(
    "wrong", [{"n": 5}, {"n": 10**9}, {"k": 101}, {"t": 601}, {"offset": -1}, {"axis": "n"}, {"m": 10.5}]
)
def test_what_is_out_of_bounds_is_refused(subject, wrong):
    with pytest.raises(BadInput):
        predict(subject, **wrong)


@pytest.mark.parametrize("wrong", [{"law": "cauchy"}, {"law": "layer: h9"}, {"first": -1}, {"seed": 10**9}])
def test_what_cannot_be_drawn_is_refused(subject, wrong):
    with pytest.raises(BadInput):
        measure(subject, **wrong)
