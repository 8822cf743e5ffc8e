"""The survey of a net's shadows: its numbers against loops over inputs, its files against malformed ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from obverse import Shadow
from obverse._core.errors import BadInput
from obverse.data import load
from obverse.nets import relu_mlp
from obverse.shadow import recovery
from obverse.shadow._controls import Shuffled
from obverse.shadow._survey import Surveyor, estimate_norms, survey
from obverse.shadow._words import summary
from obverse.shadow.results import NAME, Reading, Survey, read_survey
from saved import result_text, write_result


@pytest.fixture
def x() -> Tensor:
    return torch.rand(70, 1, 4, 4, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def net() -> nn.Module:
    return relu_mlp((1, 4, 4), (12, 9), 3, generator=torch.Generator().manual_seed(2))


def conv_net() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(24, 3),
    )


def looped(net: nn.Module, shadow: Shadow, x: Tensor, layer: str) -> dict[str, float]:
    """What a reading says, one input at a time and in numpy; keep = 1, so that nothing is drawn."""
    h, recovered, cosines, labels, twin_labels = [], [], [], [], []
    with torch.no_grad():
        for one in x:
            hidden = shadow.infer(one[None], layer)
            twin = shadow.sample(hidden, layer)
            a, b = (each.numpy().astype(np.float64).ravel() for each in (one, twin))
            cosines.append(a @ b / np.sqrt((a @ a) * (b @ b)))
            h.append(hidden.numpy().astype(np.float64).ravel())
            recovered.append(shadow.infer(twin, layer).numpy().astype(np.float64).ravel())
            labels.append(int(net(one[None]).argmax()))
            twin_labels.append(int(net(twin).argmax()))
    size = sum(one @ one for one in h)
    mean = sum(h) / len(h)
    everyone = [a == b for a in labels for b in twin_labels]  # every pairing, likely or not
    return {
        "agreement": float(np.mean([a == b for a, b in zip(labels, twin_labels, strict=True)])),
        "chance": float(np.mean(everyone)),
        "error": sum(np.sum((a - b) ** 2) for a, b in zip(h, recovered, strict=True)) / size,
        "varying": sum(np.sum((one - mean) ** 2) for one in h) / size,
        "cosine": float(np.mean(cosines)),
    }


# The same sums in another order and, for h, in float32 matrix products of another shape.
ROUNDING = 1e-4


def check(reading: Reading, expected: dict[str, float]) -> None:
    for name, value in expected.items():
        assert getattr(reading, name) == pytest.approx(value, rel=ROUNDING, abs=1e-9), name


def test_every_number_is_that_of_a_loop_over_inputs(net: nn.Module, x: Tensor) -> None:
    found = survey(net, x, seed=3)
    own = Shadow(net, input_shape=(1, 4, 4))
    calibration = {one.layer: one for one in own.calibrate(x).layers}
    other = Shadow(Shuffled(net, 3).refresh(), input_shape=(1, 4, 4))
    other.calibrate(x)
    assert [layer.name for layer in found.layers] == ["h1", "h2", "h3"]
    for layer in found.layers:
        check(layer.own, looped(net, own, x, layer.name))
        check(layer.shuffled, looped(net, other, x, layer.name))  # labelled by the net itself
        assert layer.scale == calibration[layer.name].scale
        assert layer.theory_scale == calibration[layer.name].theory_scale
    errors = recovery(own, x).errors
    assert {one.name: one.own.error for one in found.layers} == pytest.approx(errors, rel=ROUNDING)
    assert [layer.shape for layer in found.layers] == [(12,), (9,), (3,)]
    assert found.layers[0].own.error != pytest.approx(found.layers[0].shuffled.error, rel=0.01)


def test_every_number_of_a_convolutional_net_too(x: Tensor) -> None:
    net = conv_net().eval()
    found = survey(net, x, seed=3)
    own = Shadow(net, input_shape=(1, 4, 4))
    own.calibrate(x)
    other = Shadow(estimate_norms(Shuffled(net, 3).refresh(), x), input_shape=(1, 4, 4))
    other.calibrate(x)
    for layer in found.layers:
        check(layer.own, looped(net, own, x, layer.name))
        check(layer.shuffled, looped(net, other, x, layer.name))
    assert found.layers[0].shape == (6, 4, 4)


def test_norms_of_the_shuffled_copy_are_its_own(x: Tensor) -> None:
    """The statistics are those of what enters the norm, and those of the net itself stay."""
    net = conv_net()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    copy = estimate_norms(Shuffled(net, 0).refresh(), x)
    with torch.no_grad():
        entering = copy[0](x).transpose(0, 1).flatten(1).double()
    # float32 sums over 1,120 values
    assert torch.allclose(copy[1].running_mean.double(), entering.mean(1), rtol=1e-5, atol=1e-6)
    assert torch.allclose(copy[1].running_var.double(), entering.var(1), rtol=1e-5)
    assert copy[1].momentum == net[1].momentum
    Surveyor(net, x)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize("how", [{}, {"keep": 0.5, "refine": 2, "smooth": True, "switches": True}])
def test_the_net_and_the_inputs_stay_as_they_were(x: Tensor, how: dict[str, Any]) -> None:
    net = conv_net()
    net[2] = nn.ReLU(inplace=True)
    net.train()
    net[1].eval()
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    modes, inputs = [module.training for module in net.modules()], x.clone()
    survey(net, x, torch.zeros(70, dtype=torch.int64), **how)
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(tensor, weights[name]) for name, tensor in net.state_dict().items())
    assert torch.equal(x, inputs)
    assert net[2].inplace


def test_dropout_is_off(x: Tensor) -> None:
    net = conv_net()
    assert numbers(survey(net.train(), x)) == numbers(survey(net.eval(), x))


def numbers(found: Survey) -> dict[str, Any]:
    return {one.name: one.to_dict() for one in found.layers}


def test_the_same_seed_gives_the_same_numbers_and_a_layer_alone_its_own(net: nn.Module, x: Tensor) -> None:
    whole = numbers(survey(net, x, keep=0.5, seed=4))
    assert numbers(survey(net, x, keep=0.5, seed=4)) == whole
    assert numbers(survey(net, x, keep=0.5, seed=4, layers=["h2"])) == {"h2": whole["h2"]}
    assert numbers(survey(net, x, keep=0.5, seed=5))["h1"]["own"] != whole["h1"]["own"]


def test_inputs_are_taken_in_batches(net: nn.Module, x: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = survey(net, x)
    monkeypatch.setattr("obverse.shadow._survey.BATCH", 7)
    among = {"found", "found_pixels", "unrelated"}  # inputs are compared within their batch
    for one, other in zip(survey(net, x).layers, whole.layers, strict=True):
        known = {name: value for name, value in other.own.to_dict().items() if value is not None}
        check(one.own, {name: value for name, value in known.items() if name not in among})


def test_what_is_dropped_differs_from_batch_to_batch(net: nn.Module) -> None:
    tool = Surveyor(net, torch.rand(4, 1, 4, 4), keep=0.5)
    x = torch.ones(1, 1, 4, 4)
    h = tool.own.infer(x, "h1")
    one, same, other = (tool.shadows(tool.own, x, h, "h1", place) for place in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one == 0, other == 0)


def test_calibration_can_be_on_other_inputs_or_left_out(net: nn.Module, x: Tensor) -> None:
    other = 3 * torch.rand(30, 1, 4, 4, generator=torch.Generator().manual_seed(9)) ** 4
    found = survey(Surveyor(net, other), x)
    shadow = Shadow(net, input_shape=(1, 4, 4))
    calibration = shadow.calibrate(other)
    scales = {one.layer: one.scale for one in calibration.layers}
    assert {one.name: one.scale for one in found.layers} == scales
    assert {one.name: one.level for one in found.layers} == {
        name: shadow.level(name).factor for name in shadow.layers
    }
    assert scales != {one.name: one.scale for one in survey(net, x).layers}
    plain = survey(net, x, calibrate=False)
    assert (plain.calibrated, found.calibrated) == (False, True)
    for layer in plain.layers:
        check(layer.own, looped(net, Shadow(net, input_shape=(1, 4, 4)), x, layer.name))
        assert layer.scale is not None, "told, though not used"


def test_inputs_with_negative_values_are_drawn_with_negative_values(net: nn.Module) -> None:
    x = torch.randn(60, 1, 4, 4, generator=torch.Generator().manual_seed(3))
    for calibrate in (True, False):
        tool = Surveyor(net, x, calibrate=calibrate)
        for _, own, shuffled in tool.draw(x[:5], ["h1"]):
            assert bool((own < 0).any())
            assert bool((shuffled < 0).any())


def test_refining_lowers_the_error_and_switches_change_shadows(x: Tensor) -> None:
    net = conv_net().eval()
    plain, refined, switched = (
        survey(net, x, layers=["0"], **how) for how in ({}, {"refine": 10}, {"switches": True})
    )
    assert refined.layers[0].own.error < 0.5 * plain.layers[0].own.error
    assert switched.layers[0] == plain.layers[0], "no pooling below the first layer"
    assert survey(net, x, layers=["6"], switches=True).layers != survey(net, x, layers=["6"]).layers


def test_match_norm_gives_shadows_the_norms_of_their_inputs(net: nn.Module, x: Tensor) -> None:
    tool = Surveyor(net, x, match_norm=True)
    ((_, own, shuffled),) = tool.draw(x, ["h2"])
    for twin in (own, shuffled):
        alive = twin.flatten(1).any(1)
        # float32 norms of 16 numbers
        assert torch.allclose(twin.flatten(1).norm(dim=1)[alive], x.flatten(1).norm(dim=1)[alive], rtol=1e-5)


def test_drawn_shadows_are_those_that_are_measured(net: nn.Module, x: Tensor) -> None:
    tool = Surveyor(net, x)
    for layer, own, shuffled in tool.draw(x, tool.own.layers):
        assert torch.equal(own, tool.own.of(x, layer))
        assert torch.equal(shuffled, tool.shuffled.of(x, layer))


def test_trained_weights_draw_what_shuffled_ones_do_not() -> None:
    data = load("digits")
    torch.manual_seed(0)
    net = relu_mlp(data.input_shape, (100, 100), 10)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for _ in range(15):
        for rows in torch.randperm(len(data.train_x)).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(data.train_x[rows]), data.train_y[rows]).backward()
            optimizer.step()
    found = survey(Surveyor(net, data.train_x[:200]), data.test_x, data.test_y)
    assert found.test_error < 0.1
    top = found.layers[1]
    # 500 inputs: a standard error of at most 2.2 points, and the two are about 60 points apart
    assert top.own.agreement > top.shuffled.agreement + 0.2
    assert top.own.cosine > top.shuffled.cosine + 0.1


def test_a_net_that_says_the_same_of_everything_is_no_better_than_chance(net: nn.Module, x: Tensor) -> None:
    with torch.no_grad():
        net.h3.bias[1] = 1e6
    found = survey(net, x, torch.ones(70, dtype=torch.int64))
    assert found.test_error == 0
    assert {(one.own.agreement, one.own.chance) for one in found.layers} == {(1.0, 1.0)}


def test_a_silent_layer_has_no_error_and_draws_nothing(net: nn.Module, x: Tensor) -> None:
    with torch.no_grad():
        net.h1.bias.fill_(-1e6)
    reading = survey(net, x, layers=["h1"]).layers[0].own
    assert (reading.error, reading.varying, reading.cosine, reading.silent) == (None, None, 0.0, 1.0)


def test_a_net_without_labels_has_no_agreement(x: Tensor) -> None:
    for net in (
        nn.Sequential(nn.Flatten(), nn.Linear(16, 1)),
        nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU()),
    ):
        found = survey(net, x, torch.zeros(70, dtype=torch.int64))
        assert found.test_error is None
        assert {(one.own.agreement, one.shuffled.chance) for one in found.layers} == {(None, None)}
        assert all(one.own.error is not None for one in found.layers)


def test_progress_is_told_before_each_piece(net: nn.Module, x: Tensor) -> None:
    told: list[tuple[int, int, str]] = []
    survey(net, x, progress=lambda *one: told.append(one))
    names = ["h1", "h2", "h3"] * 2  # 70 inputs are two batches
    assert told == [*((at, 6, name) for at, name in enumerate(names)), (6, 6, "")]


@pytest.mark.parametrize(
    ("how", "said"),
    [({"keep": 0.0}, "keep in"), ({"refine": -1}, "refine ≥ 0"), ({"layers": ["h7"]}, "a layer out of h1")],
)
def test_wrong_settings_are_refused(net: nn.Module, x: Tensor, how: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        survey(net, x, **how)


def test_no_inputs_are_refused(net: nn.Module, x: Tensor) -> None:
    with pytest.raises(BadInput, match="inputs to survey; got an empty batch"):
        survey(net, x[:0])


# Files


@pytest.fixture
def found(net: nn.Module, x: Tensor) -> Survey:
    return survey(net, x, torch.zeros(70, dtype=torch.int64), model="net", data="noise", keep=0.9)


def test_a_survey_is_written_and_read_back(found: Survey, tmp_path: Path) -> None:
    write_result(found, tmp_path / NAME)
    assert read_survey(tmp_path) == read_survey(tmp_path / NAME) == found
    assert json.loads(result_text(found))["layers"][0]["own"]["silent"] == 0.0
    first, heading, *lines = str(found).splitlines()
    assert first == summary(found)
    assert heading.split()[:3] == ["layer", "same", "label"]
    assert [line.split()[0] for line in lines] == ["h1", "h2", "h3"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("format",), 2, "format 1"),
        (("model",), 3, "a text"),
        (("more",), 3, "no fields but"),
        (("layers",), [], "at least one layer"),
        (("test_error",), 1.5, "a test error as a share"),
        (("layers", 0, "shape"), ["a"], "a whole number"),
        (("layers", 0, "own", "agreement"), 1.1, "shares from 0 to 1"),
        (("layers", 0, "own", "silent"), -0.1, "shares from 0 to 1"),
        (("layers", 0, "own", "error"), -1.0, "errors of at least 0"),
        (("layers", 0, "own", "cosine"), "1", "a number"),
    ],
)
def test_files_that_are_not_in_order_are_refused(
    found: Survey, tmp_path: Path, place: tuple[Any, ...], value: Any, said: str
) -> None:
    content = json.loads(result_text(found))
    inner = content
    for one in place[:-1]:
        inner = inner[one]
    inner[place[-1]] = value
    (tmp_path / NAME).write_text(json.dumps(content))
    with pytest.raises(BadInput, match=said):
        read_survey(tmp_path)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_are_not_finite_are_none(
    net: nn.Module, x: Tensor, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    monkeypatch.setattr(Shadow, "from_hidden", lambda self, x, *more, **how: torch.full_like(x, value))
    found = survey(net, x)
    reading = json.loads(result_text(found))["layers"][0]["own"]  # the writer refuses NaN and infinity
    assert (reading["error"], reading["cosine"]) == (None, None)
    assert reading["varying"] is not None


@pytest.mark.parametrize("reverse", ["transpose", "fitted"])
def test_what_is_kept_against_loops_over_inputs(net: nn.Module, x: Tensor, reverse: Any) -> None:
    """Retrieval, centred cosine, controls and standard errors, one input at a time in float64."""
    tool = Surveyor(net, x[20:], reverse=reverse)
    some = x[:20]
    found = survey(tool, some)
    assert (found.among, found.reverse) == (20, reverse)
    mean = x[20:].mean(0).double().numpy().ravel()
    for layer in found.layers:
        assert (layer.untrained is None) == (reverse == "transpose")
        with torch.no_grad():
            h = tool.own.infer(some, layer.name)
            twin = tool.own.sample(h, layer.name)
            back = tool.own.infer(twin, layer.name).double().flatten(1).numpy()
            blank = tool.own.infer(x[20:].mean(0, keepdim=True), layer.name).double().numpy().ravel()
        own, pixels = h.double().flatten(1).numpy(), some.double().flatten(1).numpy()
        drawn = twin.double().flatten(1).numpy()
        again = [
            sum(np.sum((back[i] - one) ** 2) <= np.sum((back[i] - own[i]) ** 2) for one in own) == 1
            for i in range(20)
        ]
        by_pixels = [
            sum(np.sum((drawn[i] - one) ** 2) <= np.sum((drawn[i] - pixels[i]) ** 2) for one in pixels) == 1
            for i in range(20)
        ]
        size = sum(np.sum(one**2) for one in own)
        cosines = [
            (a - mean) @ (b - mean) / np.linalg.norm(a - mean) / np.linalg.norm(b - mean)
            for a, b in zip(drawn, pixels, strict=True)
        ]
        wrong, sizes = np.sum((back - own) ** 2, 1), np.sum(own**2, 1)
        ratio = wrong.sum() / sizes.sum()
        check(
            layer.own,
            {
                "found": float(np.mean(again)),
                "found_pixels": float(np.mean(by_pixels)),
                "centred": float(np.mean(cosines)),
                "centred_se": float(np.std(cosines, ddof=1) / 20**0.5),
                "error_se": float(np.sqrt(np.sum((wrong - ratio * sizes) ** 2)) / size),
                "unrelated": float(sum(np.sum((own[i - 1] - own[i]) ** 2) for i in range(20)) / size),
                "blank": float(sum(np.sum((blank - one) ** 2) for one in own) / size),
            },
        )
        assert layer.own.spread is None


def test_samples_of_one_h_are_apart_where_something_is_drawn(net: nn.Module, x: Tensor) -> None:
    for reverse in ("transpose", "fitted"):
        found = survey(Surveyor(net, x, keep=0.5, reverse=reverse), x)
        assert all((one.own.spread or 0) > 0.05 for one in found.layers)


def test_standard_errors_hold(net: nn.Module) -> None:
    """The spread of the error over 60 surveys of 40 inputs, against its standard error: within a third."""
    draw = torch.Generator().manual_seed(4)
    tool = Surveyor(net, torch.rand(60, 1, 4, 4, generator=draw), reverse="fitted")
    errors, told = [], []
    for _ in range(60):
        one = survey(tool, torch.rand(40, 1, 4, 4, generator=draw), layers=["h2"]).layers[0].own
        errors.append(one.error)
        told.append(one.error_se)
    # a standard deviation of 60 numbers is known to 9 %: four of these
    assert 0.64 < np.std(errors, ddof=1) / np.mean(told) < 1.36


def test_the_fitted_reverse_beats_every_control_in_a_trained_net() -> None:
    data = load("digits")
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for rows in torch.arange(1000).repeat(3).split(50):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(data.train_x[rows]), data.train_y[rows]).backward()
        optimizer.step()
    tool = Surveyor(net, data.train_x[1000:1060], reverse="fitted")
    found = survey(tool, data.test_x[:100], data.test_y[:100])
    for one in found.layers:
        assert one.own.error is not None
        assert one.own.unrelated is not None
        assert one.own.varying is not None
        assert one.own.error < 0.3 * min(one.own.unrelated, one.own.varying), one.name
        assert (one.own.found or 0) > 0.5


def test_modules_that_cannot_begin_anew_have_no_untrained_control(x: Tensor) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(16))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.gain

    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 16), nn.ReLU(), Own(), nn.Linear(16, 3))
    assert Surveyor(net, x, reverse="fitted").untrained is None
    net, state = conv_net(), torch.get_rng_state()
    fresh = Surveyor(net, x, reverse="fitted").untrained
    assert fresh is not None
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(fresh.net[0].weight, conv_net()[0].weight)  # type: ignore[index]


def test_the_fitted_reverse_refuses_what_it_cannot_do(net: nn.Module, x: Tensor) -> None:
    with pytest.raises(BadInput, match="leave out --no-calibrate"):
        Surveyor(net, x, reverse="fitted", calibrate=False)
    with pytest.raises(BadInput, match="no switches"):
        Surveyor(net, x, reverse="fitted", switches=True)
