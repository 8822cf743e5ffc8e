"""The Shadow tab against the library's own shadow."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from obverse._core.errors import BadInput
from obverse.app._explorer import Subject
from obverse.data import Dataset
from obverse.present.fields import Fields
from obverse.present.pictures import picture
from obverse.shadow import recovery, smooth
from obverse.shadow._beside import REFINED
from obverse.shadow._survey import Surveyor
from obverse.shadow.tab._shadow import PATIENCE, SAMPLES, affordable, shadow_answer
from obverse.shadow.tab._ways import ways_answer

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


def test_painting_changes_the_places_painted_and_no_others(subject):
    painted = {"places": [9, 10], "values": [1.0, 0.25]}
    x = subject.chosen(Fields(BODY | painted)).flatten()
    expected = subject.pixels[3].clone().flatten()
    expected[9], expected[10] = 1.0, 0.25
    assert torch.equal(x, expected)
    assert subject.pixels[3].flatten()[9] != 1.0  # the gallery stays as it is
    same = {"places": list(range(64)), "values": subject.pixels[3].double().flatten().tolist()}
    assert ask(subject, **same) == ask(subject)
    assert ask(subject, **painted) != ask(subject)


@pytest.mark.parametrize(
    ("x", "paintable"),
    [
        (torch.rand(20, 1, 6, 6), True),
        (torch.rand(20, 3, 6, 6), True),
        (torch.rand(20, 1, 6, 6) * 16, False),
        (torch.rand(20, 1, 6, 6) - 0.5, False),
        (torch.rand(20, 2, 6, 6), False),
        (torch.rand(20, 36), False),
        (torch.rand(8, 3, 256, 256), False),
    ],
)
def test_only_pictures_with_pixels_from_0_to_1_can_be_painted_on(x, paintable):
    net = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 4), nn.ReLU(), nn.Linear(4, 2))
    y = torch.arange(len(x)) % 2
    subject = Subject.of("net", net, Dataset("d", x, y, x, y, ("a", "b")))
    assert subject.about()["paintable"] is paintable
    fields = Fields({"index": 0, "places": [0], "values": [0.5]})
    if paintable:
        assert float(subject.chosen(fields).flatten()[0]) == 0.5
    else:
        with pytest.raises(BadInput, match="to paint on"):
            subject.chosen(fields)


def test_a_slow_net_gets_fewer_samples_and_then_fewer_steps():
    assert affordable(0.001, 8, 50) == (8, 50)
    assert affordable(0.05, 8, 0) == (8, 0)
    for step in (0.01, 0.1, 0.5, 3.0):
        for refine in (0, 5, 50):
            samples, steps = affordable(step, 8, refine)
            assert 1 <= samples <= 8
            assert steps <= refine
            assert samples * (steps + 2) * step <= PATIENCE or (samples, steps) == (1, 0)
    assert affordable(0.5, 8, 50)[0] == 1


def test_what_was_not_refined_for_want_of_time_is_told(subject):
    slow = replace(subject, step=0.5)
    found = ask(slow, keep=0.5, refine=50)
    assert (found["samples"], found["refined"]) == (1, 2)


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


def test_a_black_picture_has_no_direction(subject):
    black = {"places": list(range(64)), "values": [0.0] * 64}
    assert ask(subject, **black)["cosine"] == {"value": None, "error": None}


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
        {"places": [1, 2], "values": [1]},
        {"places": [64], "values": [1]},
        {"places": [0.5], "values": [1]},
        {"places": [1], "values": [1.5]},
        {"places": [1], "values": None},
        {"places": [1] * 65, "values": [1] * 65},
        {"match_norm": 1},
    ],
)
def test_what_is_out_of_bounds_is_refused(subject, wrong):
    with pytest.raises(BadInput):
        ask(subject, **wrong)


# --- every way down, side by side ------------------------------------------------------------------------


def ask_ways(subject, **changes):
    return ways_answer(subject, Fields({"index": 3, "layer": "h2"} | changes))


def test_every_way_is_that_of_the_library(subject):
    x, found = subject.pixels[3:4], ask_ways(subject)
    tool = Surveyor(subject.net, subject.inputs, reverse="fitted")
    wanted = {
        "Shadow": subject.shadow.of(x, "h2"),
        "Fitted image": tool.own.of(x, "h2"),
        "Refined fitted image": tool.own.of(x, "h2", refine=found["steps"]),
        "Fitted image by shuffled weights": tool.shuffled.of(x, "h2"),
        "Fitted image by an untrained net": tool.untrained.of(x, "h2"),
    }
    told = {one["words"]: one for one in found["ways"]}
    assert [one["control"] for one in found["ways"]] == [False, True, False, False, True, True]
    assert told.keys() == wanted.keys() | {"Shadow by shuffled weights"}
    for words, image in wanted.items():
        assert told[words]["picture"] == picture(image[0]), words
        cosine = float(torch.nn.functional.cosine_similarity(image.flatten(1), x.flatten(1)))
        assert told[words]["cosine"] == pytest.approx(cosine, abs=1e-6)  # float32
        assert told[words]["label"] == int(subject.net(image).argmax())
    assert (found["label"], found["missing"]) == (int(subject.net(x).argmax()), [])
    assert found["steps"] == REFINED
    assert found == ask_ways(subject)


def test_ways_of_what_was_painted_and_of_slow_nets(subject):
    painted = {"places": [9, 10], "values": [1.0, 0.25]}
    assert ask_ways(subject, **painted)["ways"] != ask_ways(subject)["ways"]
    slow = replace(subject, step=0.5)
    assert ask_ways(slow)["steps"] == 2  # PATIENCE over the time of a step, but the two of the image itself
    with pytest.raises(BadInput):
        ask_ways(subject, layer="h9")


def test_ways_of_nets_without_labels_and_without_training_inputs():
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 9), nn.Unflatten(1, (1, 3, 3)))
    x, y = torch.rand(20, 1, 4, 4), torch.arange(20) % 2
    found = ask_ways(Subject.of("map", net, Dataset("d", x, y, x, y, ("a", "b"))), layer="1")
    assert {one["label"] for one in found["ways"]} == {None}
    few = Subject.of("few", net, Dataset("d", x[:5], y[:5], x, y, ("a", "b")))
    with pytest.raises(BadInput, match="at least 8 inputs"):
        ask_ways(few, layer="1")
