"""Ablation of the zoo's nets: written as it goes, resumed, and the same numbers as `ablate`."""

from __future__ import annotations

import json

import pytest
import torch

from experiments.zoo import function, language
from experiments.zoo.layers import Clock
from obverse.weights import ablate


@pytest.fixture
def subject():
    torch.manual_seed(0)
    net = language.Llama(64, 96, 1, 2, 80).eval()
    tokens = language.sampled(net, 6, 9, torch.Generator().manual_seed(0))
    return function.Subject(net, tokens, "nats per token", tokens, language.surprise)


def test_all_layers_at_once_and_each_alone_are_what_ablate_says(subject, tmp_path):
    file = tmp_path / "llama.json"
    function.treated(subject, Clock(), file)
    found = json.loads(file.read_text())
    entries = found["entries"]
    known = ablate(subject.net, subject.x, subject.y, loss=subject.loss, curve=False)
    assert found["settings"]["untreated"] == pytest.approx(known.untreated.value, abs=1e-6)
    assert entries["layers"] == [layer.name for layer in known.layers]
    removed = known.effect("signal removed")
    assert removed is not None  # no randomness in it: five digits are kept
    score = entries["together|signal removed"]["score"]
    assert score["value"] == pytest.approx(removed.score.value, rel=1e-4)
    alone = entries["layer|layers.0.attention.wq"]["effects"]
    assert set(alone) == set(function.ALONE)
    (layer,) = (one for one in known.layers if one.name == "layers.0.attention.wq")
    rounded = layer.effect("rounded")
    assert rounded is not None
    assert alone["rounded"]["score"]["value"] == pytest.approx(rounded.score.value, rel=1e-4)


def test_what_has_no_time_is_left_for_the_next_call(subject, tmp_path):
    file = tmp_path / "llama.json"
    with pytest.raises(function.TimeOver):
        function.treated(subject, Clock(-1.0), file)
    assert not file.exists()
    function.treated(subject, Clock(), file)
    before = file.read_text()
    function.treated(subject, Clock(-1.0), file)  # nothing is left that would need time
    assert file.read_text() == before


def test_features_of_the_untreated_net_are_what_is_right(subject):
    torch.manual_seed(1)
    net, x = torch.nn.Linear(5, 7), torch.randn(9, 5)
    own = function.of_features(net, x, "cosine", batch=4)
    assert own.y is not None
    assert torch.allclose(function.cosine(net(x), own.y), torch.ones(9))
