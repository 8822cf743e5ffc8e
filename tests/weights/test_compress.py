"""`compress`: two thin layers for one, what is left alone, and a file that is not trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from obverse._core import BadInput, record_text
from obverse.app.report import write_report
from obverse.weights import Compression, compress, decompose, load_compressed, save_compressed
from obverse.weights._compression.page import render_compression
from obverse.weights._compression.results import FORMAT, NAME, read_compression
from obverse.weights._compression.saved import WEIGHTS
from obverse.weights._compression.thin import pays, thin_layers, why_not

NEEDLE = "<script>alert(1)</script>"


def plant(weight: nn.Parameter, rank: int = 3, seed: int = 0) -> None:
    """Strong directions in noise."""
    generator = torch.Generator().manual_seed(seed)
    matrix = weight.data.flatten(1)
    rows, columns = matrix.shape
    left, right = (torch.linalg.qr(torch.randn(n, rank, generator=generator)).Q for n in (rows, columns))
    noise = torch.randn(rows, columns, generator=generator)
    weight.data.copy_(
        (0.02 * (noise + 1.5 * (rows**0.5 + columns**0.5) * left @ right.T)).reshape(weight.shape)
    )


def planted() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(4, 48, 3, stride=2, padding=1),
        nn.BatchNorm2d(48),
        nn.ReLU(),
        nn.Conv2d(48, 64, 3, padding=2, dilation=2, bias=False),
        nn.Flatten(),
        nn.Linear(64 * 16, 80),
        nn.ReLU(),
        nn.Linear(80, 10),
    )
    for at in (0, 3, 5):
        plant(net[at].weight, seed=at)
    return net.eval()


X = torch.randn(40, 4, 8, 8, generator=torch.Generator().manual_seed(9))


@pytest.fixture(scope="module")
def done() -> tuple[nn.Module, nn.Module, Compression]:
    net = planted()
    return net, *compress(net, X, generator=torch.Generator().manual_seed(0))


def test_a_thin_net_computes_the_signals_of_its_layers(done):
    net, small, result = done
    expected = planted()
    ranks = [decompose(expected[at].weight.flatten(1)).rank for at in (0, 3, 5)]
    assert [layer.rank for layer in result.layers] == [*ranks, None]
    assert min(ranks) >= 3
    with torch.no_grad():
        for at in (0, 3, 5):
            weight = expected[at].weight
            matrix = weight.flatten(1)
            weight.copy_((matrix - decompose(matrix).without_signal()).reshape(weight.shape))
        torch.testing.assert_close(small(X), expected(X), rtol=1e-3, atol=1e-4)
        own = planted()(X)
        assert torch.equal(net(X), own)  # the net itself stays
        agreement = float((small(X).argmax(1) == own.argmax(1)).double().mean())
    assert result.measure == "agreement"
    assert result.after.value == agreement
    assert result.before.value == 1


def test_parameters_are_counted_as_they_are(done):
    net, small, result = done
    assert result.parameters_before == sum(one.numel() for one in net.parameters())
    assert result.parameters_after == sum(one.numel() for one in small.parameters())
    assert result.saved == sum(layer.before - layer.after for layer in result.layers)
    first = result.layers[0]
    assert first.after == first.rank * (48 + 4 * 9)
    assert "3 layers of 4 replaced by two thin ones" in result.summary
    assert result.summary == str(result).splitlines()[0]
    assert len(repr(result)) < 130


def test_shrunken_it_is_the_best_estimate_of_the_signal():
    net = planted()
    small, _ = compress(net, layers=["5"], shrink=True)
    product = small[5][1].weight @ small[5][0].weight
    torch.testing.assert_close(product, decompose(net[5].weight).signal(), rtol=1e-3, atol=1e-5)


def test_what_does_not_pay_stays():
    assert pays(10, 100, 100)
    assert not pays(50, 100, 100)
    assert not pays(0, 100, 100)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    with torch.no_grad():
        net[0].weight.copy_(torch.randn(64, 64))
        net[1].weight.copy_(torch.randn(64, 64))
    small, result = compress(net)
    assert result.replaced == ()
    assert "no layer of 2 pays" in result.summary
    assert torch.equal(small[0].weight, net[0].weight)
    assert (result.measure, result.before, result.after) == (None, None, None)


class Own(nn.Linear):
    """A layer of somebody's own."""


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = Own(40, 40)
        self.tied = nn.Linear(40, 40)
        self.also = nn.Linear(40, 40)
        self.also.weight = self.tied.weight
        self.twice = nn.Linear(40, 40)
        self.again = self.twice
        self.normed = parametrizations.weight_norm(nn.Linear(40, 40))
        self.attention = nn.MultiheadAttention(40, 2)
        self.grouped = nn.Conv1d(40, 40, 3, groups=2)
        self.hooked = nn.Linear(40, 40)
        self.hooked.register_forward_hook(lambda *_: None)
        self.fine = nn.Linear(40, 40)


def test_layers_that_cannot_be_replaced_say_why():
    found = why_not(Odd())
    assert found["fine"] == ""
    assert "own way" in found["own"]
    assert all("several places" in found[name] for name in ("tied", "also", "twice"))
    assert "computed" in found["normed"]
    assert found["attention.out_proj"]
    assert "groups" in found["grouped"]
    assert "hooks" in found["hooked"]
    encoder = why_not(nn.TransformerEncoderLayer(32, 2))
    assert "parent" in encoder["linear1"]


def test_every_other_layer_of_an_odd_net_stays(monkeypatch):
    net = Odd()
    small, result = compress(net, rule=lambda matrix: (matrix[:, :2], torch.randn(2, matrix.shape[1])))
    assert [layer.name for layer in result.replaced] == ["fine"]
    assert isinstance(small.fine, nn.Sequential)
    notes = {layer.name: layer.note for layer in result.layers}
    assert "only Linear" in notes["attention.in_proj (query)"]


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(7, 9), (5, 7)),
        (nn.Conv1d(4, 6, 3, stride=2, padding=1, padding_mode="circular"), (2, 4, 11)),
        (nn.Conv2d(4, 6, (3, 5), padding="same", bias=False), (2, 4, 7, 8)),
    ],
)
def test_a_full_rank_pair_is_the_layer(layer, shape):
    from obverse.weights._compression.thin import fill

    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    matrix = layer.weight.detach().flatten(1)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    made = thin_layers(layer, len(values))
    fill(made, left * values, right, layer.bias)
    torch.testing.assert_close(made(x), layer(x), rtol=1e-4, atol=1e-5)


def test_a_net_that_is_one_layer_and_a_rule():
    net = nn.Linear(64, 64)
    small, result = compress(net, rule=lambda matrix: (matrix[:, :4], torch.eye(4, 64)))
    assert isinstance(small, nn.Sequential)
    assert result.settings["rule"] == "<lambda>"
    x = torch.randn(3, 64)
    torch.testing.assert_close(small(x), x[:, :4] @ net.weight[:, :4].T + net.bias)
    with pytest.raises(BadInput, match="factors of 64 × rank"):
        compress(net, rule=lambda matrix: (matrix, matrix[:3]))


def test_only_layers_that_are_named_and_no_others():
    _, result = compress(planted(), layers=["3"])
    assert [layer.name for layer in result.replaced] == ["3"]
    with pytest.raises(BadInput, match="names of layers"):
        compress(planted(), layers=["nine"])


def test_batch_norms_are_estimated_anew_for_good(done):
    net, plain, _ = done
    small, result = compress(net, recalibrate=X, generator=torch.Generator().manual_seed(0))
    assert result.recalibration_inputs == 40
    with torch.no_grad():
        seen = plain[0](X).transpose(0, 1).flatten(1)
    torch.testing.assert_close(small[1].running_mean, seen.mean(1), rtol=1e-3, atol=1e-4)
    assert not net[1].running_mean.any()


def test_random_numbers_of_the_caller_are_not_used():
    before = torch.get_rng_state()
    thin_layers(nn.Linear(7, 9), 2)
    after = torch.get_rng_state()
    nn.Linear(7, 9)
    assert not torch.equal(torch.get_rng_state(), after)
    assert len(before) == len(after)


def test_saved_and_loaded_it_is_the_same(done, tmp_path):
    _, small, result = done
    save_compressed(small, result, tmp_path / "small")
    fresh = planted()
    loaded = load_compressed(fresh, tmp_path / "small")
    with torch.no_grad():
        assert torch.equal(loaded(X), small(X))
    assert read_compression(tmp_path / "small") == result
    assert isinstance(fresh[0], nn.Conv2d)


def test_tied_weights_are_saved(tmp_path):
    net = nn.Sequential(nn.Linear(40, 40), nn.Linear(40, 40), nn.Linear(40, 40))
    net[1].weight = net[0].weight
    plant(net[2].weight)
    small, result = compress(net)
    loaded = load_compressed(net, save_compressed(small, result, tmp_path))
    x = torch.randn(2, 40)
    assert torch.equal(loaded(x), small(x))


def change_layer(result: Compression, **fields: object) -> Compression:
    return replace(result, layers=(replace(result.layers[0], **fields), *result.layers[1:]))


@pytest.mark.parametrize(
    "fields",
    [
        {"rank": 40},
        {"rank": 2**40},
        {"rows": 2**40},
        {"name": "1"},
        {"name": "nine"},
        {"rank": 0},
        {"name": "3"},
    ],
)
def test_ranks_and_names_that_the_net_does_not_have_are_refused(done, tmp_path, fields):
    _, small, result = done
    save_compressed(small, result, tmp_path)
    (tmp_path / NAME).write_text(record_text(change_layer(result, **fields), FORMAT), encoding="utf-8")
    with pytest.raises(BadInput):
        load_compressed(planted(), tmp_path)


def test_tensors_of_another_shape_or_size_are_refused(done, tmp_path, monkeypatch):
    _, small, result = done
    save_compressed(small, result, tmp_path)
    tensors: dict[str, Tensor] = {name: one.clone() for name, one in small.state_dict().items()}
    save_file(tensors | {"0.0.weight": torch.zeros(1, 4, 3, 3)}, tmp_path / WEIGHTS)
    with pytest.raises(BadInput, match="a difference in"):
        load_compressed(planted(), tmp_path)
    with (tmp_path / WEIGHTS).open("wb") as file:
        file.truncate(2**33)  # a hole of 8 GB: reading it would take that much memory
    with pytest.raises(BadInput, match="at most"):
        load_compressed(planted(), tmp_path)


def test_a_net_that_cannot_be_copied_is_refused():
    net = nn.Sequential(nn.Linear(40, 40))
    nn.utils.prune.random_unstructured(net[0], "weight", 0.5)
    with pytest.raises(BadInput, match=r"prune\.remove"):
        compress(net)
    with pytest.raises(BadInput, match="batch norm"):
        compress(nn.Linear(40, 40), recalibrate=X)


def test_the_page_has_every_layer_and_no_foreign_code(done, tmp_path: Path):
    _, small, result = done
    save_compressed(small, result, tmp_path)
    page = write_report(tmp_path)
    assert page == tmp_path / "compression.html"
    assert result.summary[1:] in page.read_text(encoding="utf-8")
    text = render_compression(change_layer(replace(result, model=NEEDLE), name=NEEDLE, note=NEEDLE))
    assert NEEDLE not in text
    assert "&lt;script&gt;" in text
