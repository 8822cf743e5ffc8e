"""The Shadow tab against the library's own shadow."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from obverse.data import Dataset
from obverse.errors import BadInput
from obverse.explore import Subject
from obverse.explore.fields import Fields
from obverse.explore.shadow_tab import SAMPLES, shadow_answer
from obverse.shadow import recovery, smooth

BODY = {"index": 3, "layer": "h2", "keep": 1.0, "smooth": 0, "refine": 0, "match_norm": False, "seed": 0}


def ask(subject, **changes):
    return shadow_answer(subject, Fields(BODY | changes))


@pytest.mark.parametrize("layer", ["h1", "h2", "h3"])
@pytest.mark.parametrize("match_norm", [False, True])
def test_the_recovery_error_is_that_of_the_library(subject, layer, match_norm):
    x = subject.pixels[3:4]
    expected = recovery(subject.shadow, x, layers=[layer], match_norm=match_norm).errors[layer]
    found = ask(subject, layer=layer, match_norm=match_norm)
    assert found["recovery"]["value"] == pytest.approx(expected, rel=1e-4)  # float32 sums
    assert found["recovery"]["error"] is None  # one shadow has no spread
    assert found["samples"] == 1


def test_sampling_gives_several_shadows_and_a_standard_error(subject):
    found = ask(subject, keep=0.5)
    assert found["samples"] == len(found["shadows"]) == SAMPLES
    assert len({one["bytes"] for one in found["shadows"]}) > 1
    assert found["recovery"]["error"] > 0
    assert found == ask(subject, keep=0.5)
    assert found["shadows"] != ask(subject, keep=0.5, seed=1)["shadows"]


def test_refinement_brings_h_nearer(subject):
    assert ask(subject, refine=20)["recovery"]["value"] < 0.5 * ask(subject)["recovery"]["value"]


def test_smoothing_twice_is_smoothing_twice(subject):
    x = subject.pixels[:4]
    plain = subject.shadow.of(x, "h1")
    assert torch.equal(subject.shadow.of(x, "h1", smooth=2), smooth(smooth(plain)))
    assert torch.equal(subject.shadow.of(x, "h1", smooth=True), smooth(plain))
    assert len({ask(subject, smooth=times)["shadows"][0]["bytes"] for times in range(4)}) == 4


def test_a_drawing_that_is_a_test_input_gives_what_the_test_input_gives(subject):
    drawn = subject.pixels[3].flatten().tolist()
    assert ask(subject, index=None, pixels=drawn) == ask(subject)


def test_probabilities_are_those_of_the_net(subject):
    found = ask(subject)
    expected = torch.softmax(subject.net(subject.pixels[3:4]).double(), 1)[0]
    assert found["probabilities"]["input"] == pytest.approx(expected.tolist(), abs=1e-5)  # six digits
    assert sum(found["probabilities"]["shadow"]) == pytest.approx(1, abs=1e-4)
    assert found["label"] == int(expected.argmax())


def test_a_layer_that_is_silent_has_no_error():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    nn.init.constant_(net[1].bias, -100.0)
    x, y = torch.rand(20, 1, 2, 2), torch.arange(20) % 2
    subject = Subject.of("silent", net, Dataset("d", x, y, x, y, ("a", "b")))
    found = ask(subject, layer="1", keep=0.5)
    assert found["recovery"] == {"value": None, "error": None}
    assert found["hidden"]["active"] == 0


def test_flat_inputs_and_a_net_that_wants_other_numbers():
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.rand(30, 6), torch.arange(30) % 3
    subject = Subject.of(
        "flat",
        net,
        Dataset("d", x, y, x, y, ("a", "b", "c")),
        apply=lambda one: 2 * one - 1,
        undo=lambda one: (one + 1) / 2,
    )
    found = ask(subject, layer="0", smooth=2)
    assert found["input"]["width"] == 6
    assert found["hidden"]["units"] == 8
    expected = net(2 * subject.pixels[3:4] - 1).softmax(1)[0].tolist()
    assert found["probabilities"]["input"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"layer": "h9"},
        {"keep": 0},
        {"keep": 1.5},
        {"smooth": 4},
        {"refine": 10_000},
        {"index": 1000},
        {"index": -1},
        {"seed": -1},
        {"pixels": [1, 2]},
        {"pixels": [1e9] * 64},
        {"match_norm": 1},
    ],
)
def test_what_is_out_of_bounds_is_refused(subject, wrong):
    with pytest.raises(BadInput):
        ask(subject, **wrong)
