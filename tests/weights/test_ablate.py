"""`ablate`: what is measured, with which error, and that the net is left as it was."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from obverse._core import BadInput, record_text
from obverse.app.report import write_report
from obverse.data import load
from obverse.weights import Ablation, ablate, weights_of
from obverse.weights._ablation.page import render_ablation
from obverse.weights._ablation.place import replaced
from obverse.weights._ablation.results import FORMAT, read_ablation
from obverse.weights._ablation.scores import compare, evaluating, reestimated
from obverse.weights._ablation.words import sentences

NEEDLE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor, Tensor]:
    data = load("digits")
    return data.train_x.flatten(1), data.train_y, data.test_x.flatten(1)


@pytest.fixture(scope="module")
def trained(digits: tuple[Tensor, Tensor, Tensor]) -> nn.Module:
    x, y, _ = digits
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 96), nn.ReLU()
        )
        net.append(nn.Linear(96, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
        for _ in range(15):
            for rows in torch.randperm(len(x)).split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
                optimizer.step()
    return net


@pytest.fixture(scope="module")
def found(trained: nn.Module, digits: tuple[Tensor, Tensor, Tensor]) -> Ablation:
    data = load("digits")
    return ablate(
        trained,
        digits[2],
        data.test_y,
        recalibrate=digits[0][:300],
        model="digits",
        generator=torch.Generator().manual_seed(0),
    )


def test_the_signal_is_needed_and_the_bulk_of_the_inner_layer_is_not(found):
    inner = found.layers[1]
    assert found.untreated.value > 0.9
    assert inner.effect("bulk resampled").score.value > found.untreated.value - 0.03
    assert inner.effect("signal removed").score.value < 0.5
    assert inner.effect("directions random").score.value < 0.6
    assert inner.effect("random directions removed").score.value > inner.effect("signal removed").score.value
    assert found.layers[2].effects == ()  # 10 × 96: too small to be taken apart
    assert "at least" in found.layers[2].sentence


def test_the_curve_runs_from_nothing_to_the_untreated_net(found):
    first = found.layers[0]
    assert [one.directions for one in first.curve][:3] == [0, 1, 2]
    assert first.curve[-1].directions == 64
    assert first.curve[-1].score.value == pytest.approx(found.untreated.value, abs=0.005)
    assert first.at_rank is not None
    assert found.together_curve[0].score.value < 0.3


def test_the_net_is_left_as_it_was(trained, digits, found):
    net = trained.train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    again = ablate(
        net,
        digits[2][:50],
        treatments=["signal removed"],
        curve=False,
        recalibrate=digits[0][:64],
        generator=torch.Generator().manual_seed(0),
    )
    assert again.measure == "agreement"
    assert again.untreated.value == 1
    assert all(module.training for module in net.modules())
    assert net[1].momentum == 0.1
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_the_score_and_its_error_are_those_of_the_plain_formulas(trained, digits):
    data = load("digits")
    x, y = digits[2][:100], data.test_y[:100]
    found = ablate(
        trained,
        x,
        y,
        treatments=["signal removed"],
        curve=False,
        layers=["4"],
        batch_size=33,
        generator=torch.Generator().manual_seed(0),
    )
    net = trained.eval()
    weight = next(one for one in weights_of(net) if one.name == "4")
    from obverse.weights import decompose

    with torch.no_grad():
        own = (net(x).argmax(1) == y).double()
        with replaced(net, [(weight, decompose(weight.load().clone()).without_signal())]):
            treated = (net(x).argmax(1) == y).double()
    score = found.layers[0].effect("signal removed").score
    change = [float(b - a) for a, b in zip(own, treated, strict=True)]
    mean = sum(change) / 100
    assert score.value == pytest.approx(float(treated.mean()))
    assert score.change == pytest.approx(mean)
    assert score.error == pytest.approx(math.sqrt(sum((one - mean) ** 2 for one in change) / 99 / 100))
    assert [layer.name for layer in found.layers] == ["4"]


def test_the_paired_error_is_the_spread_of_the_change():
    """Against simulation: two answers that share their luck differ less than their own errors say."""
    generator = torch.Generator().manual_seed(0)
    changes, errors = [], []
    for _ in range(400):
        own = (torch.rand(200, generator=generator) < 0.8).double()
        flips = torch.rand(200, generator=generator) < 0.1
        score = compare(torch.where(flips, 1 - own, own), own)
        changes.append(score.change)
        errors.append(score.error)
    spread = float(torch.tensor(changes).std())
    # the standard deviation of 400 has a relative error of 1/√800 = 3.5 %: four of them
    assert sum(errors) / 400 == pytest.approx(spread, rel=0.14)


def test_a_loss_per_input_is_a_measure(trained, digits):
    data = load("digits")

    def loss(outputs: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, y, reduction="none")

    found = ablate(trained, digits[2], data.test_y, loss=loss, treatments=["signal removed"], layers=["4"])
    assert found.measure == "loss"
    assert found.layers[0].effects[0].score.change > 0.5
    assert found.layers[0].needed is not None

    with pytest.raises(BadInput, match="one number per input"):
        ablate(trained, digits[2], data.test_y, loss=nn.functional.cross_entropy)


def test_a_loss_that_is_not_finite_is_said_so():
    score = compare(torch.tensor([1.0, math.inf]), torch.tensor([1.0, 1.0]))
    assert (score.value, score.change, score.error) == (None, None, None)


def test_reestimated_statistics_are_those_of_the_inputs(digits):
    net = nn.Sequential(nn.BatchNorm1d(64, momentum=0.3))
    x = digits[0][:96]
    with evaluating(net), reestimated(net, x, 96):
        torch.testing.assert_close(net[0].running_mean, x.mean(0))
        torch.testing.assert_close(net[0].running_var, x.var(0))
    assert not net[0].running_mean.any()
    assert net[0].momentum == 0.3
    assert int(net[0].num_batches_tracked) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"y": torch.zeros(3)}, "y for each of 500"),
        ({"y": torch.zeros(500)}, "labels as whole numbers"),
        ({"layers": ["nine"]}, "names of layers"),
        ({"treatments": ["cold water"]}, "treatments out of signal only"),
        ({"recalibrate": torch.zeros(1, 64)}, "at least 2 inputs"),
        ({"batch_size": 0}, "batch_size ≥ 1"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(trained, digits, arguments, sentence):
    with pytest.raises(BadInput, match=sentence):
        ablate(trained, digits[2], **arguments)


def test_what_cannot_be_run_or_compared_is_refused(digits):
    with pytest.raises(BadInput, match=r"nn\.Module"):
        ablate({"a": torch.zeros(40, 40)}, digits[2])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="inputs × classes"):
        ablate(nn.Linear(64, 1), digits[2])
    with pytest.raises(BadInput, match="batch norm"):
        ablate(nn.Linear(64, 10), digits[2], recalibrate=digits[0])


def test_the_same_seed_gives_the_same_numbers_whatever_else_is_measured(trained, digits, found):
    alone = ablate(
        trained,
        digits[2],
        load("digits").test_y,
        layers=["4"],
        treatments=["bulk resampled"],
        curve=False,
        generator=torch.Generator().manual_seed(0),
    )
    assert alone.layers[0].effects[0].score == found.layers[1].effect("bulk resampled").score


def test_words_file_and_page_say_the_same(found, tmp_path):
    assert "untreated" in str(found).splitlines()[0]
    assert len(repr(found)) < 130
    assert found.together[0].recalibrated is not None
    (tmp_path / "ablation.json").write_text(record_text(found, FORMAT), encoding="utf-8")
    assert read_ablation(tmp_path) == found
    page = write_report(tmp_path)
    assert page == tmp_path / "ablation.html"
    text = page.read_text(encoding="utf-8")
    assert found.summary[1:] in text
    assert text.count('<figure class="panel">') == 3  # all at once and two layers
    assert "again:" in text


def test_a_layer_without_signal_is_said_so(trained, digits):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    result = ablate(net, digits[2][:50], treatments=["signal only"], curve=False)
    assert result.layers[0].rank == 0
    assert any(
        "No direction stands out in 0: “signal only” leaves nothing" in one for one in sentences(result)
    )


def test_names_from_a_file_are_escaped_on_the_page(found):
    from dataclasses import replace

    layers = tuple(replace(layer, name=NEEDLE, sentence=NEEDLE) for layer in found.layers)
    text = render_ablation(replace(found, model=NEEDLE, layers=layers))
    assert NEEDLE not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"rows": 128', '"rows": 0'),
        ('"measure": "accuracy"', '"measure": "luck"'),
        ('"treatment": "rounded"', '"treatment": "boiled"'),
        ('"directions": 1,', '"directions": -1,'),
    ],
)
def test_a_file_that_says_the_impossible_is_refused(found, tmp_path: Path, old, new):
    text = record_text(found, FORMAT)
    assert old in text
    (tmp_path / "ablation.json").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput):
        read_ablation(tmp_path)


FACTORY = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
"""


@pytest.fixture
def mynets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ablated_nets.py").write_text(FACTORY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_takes_a_factory_and_writes_json_and_page(obverse, mynets):
    words = ["--data", "digits", "--ablate", "--quick", "--out", "out", "--layers", "1"]
    done = obverse("audit", "ablated_nets:small", *words)
    assert (done.code, done.err) == (0, "")
    assert "accuracy, 1 layer" in done.out
    assert (mynets / "out" / "ablation.html").is_file()
    assert read_ablation(mynets / "out").inputs == 200


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["net.safetensors", "--data", "digits"], "No such file or folder: 'net.safetensors'"),
        (["ablated_nets:small"], "--data"),
        (["ablated_nets:small", "--data", "digits", "--exact"], "a flag of the audit's own tests"),
        (["ablated_nets:small", "--data", "digits", "--layers", "9"], "to match at least one layer"),
    ],
)
def test_the_command_refuses_what_cannot_be_run(obverse, mynets, words, sentence):
    done = obverse("audit", *words, "--ablate")
    assert done.code == 2
    assert sentence in done.err
