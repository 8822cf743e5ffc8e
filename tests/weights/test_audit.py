"""The audit of a net: what it lists, what it repeats, what it refuses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy.linalg import svdvals
from torch import nn

from obverse._core.errors import BadInput
from obverse.weights import Audit, LayerAudit, Thresholds, audit, decompose, open_weights, weights_of
from obverse.weights.results import TESTS, with_family
from weights.made_audits import made_audit, made_layer, made_parts, unmeasured


def normal(rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def small_net(seed: int = 0) -> nn.Sequential:
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(48, 40), nn.ReLU(), nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 10))
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.1, generator=generator)
    return net


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def timeless(layer: LayerAudit) -> LayerAudit:
    return replace(layer, seconds=0.0)


def by_name(result: Audit) -> dict[str, LayerAudit]:
    return {layer.name: timeless(layer) for layer in result}


def test_the_same_seed_gives_the_same_audit_in_any_order_and_company():
    layers = {"a": normal(40, 50, 1), "b": normal(36, 36, 2)}
    first = audit(layers, generator=seeded(3))
    assert by_name(first) == by_name(audit(layers, generator=seeded(3)))
    assert by_name(first) == by_name(audit(dict(reversed(layers.items())), generator=seeded(3)))
    assert by_name(first)["b"] == by_name(audit({"b": layers["b"]}, generator=seeded(3)))["b"]
    other = by_name(audit(layers, generator=seeded(4)))
    assert other["a"].reversal != by_name(first)["a"].reversal
    assert other["a"].parts == by_name(first)["a"].parts  # nothing random in it


def test_everything_that_has_weights_is_audited_the_same(tmp_path):
    net, path = small_net(), tmp_path / "model.safetensors"
    save_file(net.state_dict(), path)
    expected = by_name(audit(net.state_dict(), generator=seeded(0)))
    for source in (path, str(path), str(tmp_path), open_weights(path), open_weights(str(path))):
        assert by_name(audit(source, generator=seeded(0))) == expected, source
        assert [weight.name for weight in open_weights(source)] == list(expected)
    assert list(by_name(audit(net))) == list(expected)
    assert [weight.name for weight in open_weights(net)] == list(expected)
    assert [weight.name for weight in open_weights(net.state_dict())] == list(expected)
    assert audit(str(path)).model == audit(Path(path)).model == "model.safetensors"
    assert audit(net).model == "Sequential"
    assert audit(open_weights(path), model="mine").model == "mine"


@pytest.mark.parametrize("other", [3, None, [torch.ones(2, 2)], torch.ones(2, 2), b"model.pt"])
def test_what_has_no_weights_is_refused(other):
    for function in (audit, open_weights):
        with pytest.raises(BadInput, match=r"expected an nn\.Module, a state dict, a path"):
            function(other)
    with pytest.raises(BadInput, match="No such file or folder: "):
        audit("nowhere.safetensors")


def test_without_a_generator_it_is_the_global_one():
    weights = {"a": normal(40, 40)}
    torch.manual_seed(1)
    first, second = audit(weights), audit(weights)
    assert first.settings["seed"] != second.settings["seed"]
    torch.manual_seed(1)
    assert by_name(first) == by_name(audit(weights)) == by_name(audit(weights, generator=seeded(1)))
    before = torch.get_rng_state()
    audit(weights, generator=seeded(1))
    assert (torch.get_rng_state() == before).all()


def test_every_layer_is_listed_and_small_ones_are_not_judged():
    result = audit(small_net())
    assert [layer.name for layer in result] == ["0", "2", "4"]
    assert [(layer.rows, layer.columns) for layer in result] == [(40, 48), (64, 40), (10, 64)]
    last = result.layers[2]
    assert last.verdict == "not judged"
    assert last.sentence == "too small to judge (a side of 10, at least 32 needed)"
    assert last.parts is None
    assert last.p is None
    assert last.findings == ()
    assert result.summary == "2 layers: 2 untouched (1 not judged)"
    assert str(result).splitlines()[0] == result.summary
    assert len(str(result).splitlines()) == 4


def test_the_smallest_side_that_is_judged_can_be_set():
    net = small_net()
    assert audit(net, thresholds=Thresholds(min_side=10)).count("not judged") == 0
    none = audit(net, thresholds=Thresholds(min_side=65))
    assert none.count("not judged") == 3
    assert none.summary == "no layer of 3 is large enough to judge"


def test_a_constant_matrix_is_named():
    layer = audit({"w": torch.full((40, 50), -1.5)}).layers[0]
    assert layer.verdict == "mostly signal"
    assert (
        layer.sentence == "1 of 40 directions carries everything; the others are empty: all entries are -1.5"
    )
    nothing = audit({"w": torch.zeros(40, 50)}).layers[0]
    assert (nothing.verdict, nothing.sentence) == ("not judged", "not judged: all entries are 0")


def test_tied_weights_are_listed_once():
    net = nn.Sequential(nn.Linear(40, 40, bias=False), nn.ReLU(), nn.Linear(40, 40, bias=False))
    assert len(audit(net).layers) == 2
    net[2].weight = net[0].weight
    assert len(audit(net).layers) == 1


def test_modules_state_dicts_and_weights_are_audited_alike():
    net = small_net()
    results = [audit(net), audit(net.state_dict()), audit(weights_of(net))]
    numbers = [[(layer.rows, layer.verdict, layer.values) for layer in result] for result in results]
    assert [[one[:2] for one in layers] for layers in numbers] == [[one[:2] for one in numbers[0]]] * 3
    for layers in numbers:
        assert layers[0][2] == numbers[0][0][2]


def test_the_net_is_left_as_it_was():
    net = small_net().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    audit(net, data=normal(50, 48))
    assert net.training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in net.parameters())
    assert all((value == before[name]).all() for name, value in net.state_dict().items())


def test_data_adds_the_layers_own_activations():
    net = small_net()
    plain = audit(net, generator=seeded(0))
    with_data = audit(net, data=normal(100, 48), generator=seeded(0))
    for layer, other in zip(plain.layers[:2], with_data.layers[:2], strict=True):
        assert {one.source for one in layer.reversal} == {"random"}
        assert [one.source for one in other.reversal] == ["random"] * len(layer.reversal) + ["data"]
        assert other.reversal[: len(layer.reversal)] == layer.reversal
        # about half of the units of a random layer are active
        assert 0.3 * other.rows < other.reversal[-1].sparsity < 0.7 * other.rows
    assert not plain.settings["data"]
    assert with_data.settings["data"]
    again = audit(net, data=normal(100, 48), generator=seeded(0))
    assert by_name(again) == by_name(with_data)


def test_data_needs_a_net_to_run_through():
    with pytest.raises(BadInput, match="run the data through; got weights alone"):
        audit(small_net().state_dict(), data=normal(10, 48))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": 0.0}, "keep in (0, 1]"),
        ({"keep": 1.5}, "keep in (0, 1]"),
        ({"keep": float("nan")}, "keep in (0, 1]"),
        ({"samples": 1}, "at least 2 samples"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(BadInput) as refusal:
        audit({"w": normal(40, 40)}, **options)
    assert words in str(refusal.value)
    assert "; got " in str(refusal.value)


@pytest.mark.parametrize("wrong", [{"level": 0}, {"level": 1.0}, {"norm_spread": -1}, {"min_side": True}])
def test_thresholds_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput):
        Thresholds(**wrong)


def test_progress_is_told_before_each_layer_and_at_the_end():
    calls = []
    audit({"a": normal(40, 40), "b": normal(5, 5)}, progress=lambda *call: calls.append(call))
    assert calls in [[(0, 2, "a"), (1, 2, left), (2, 2, "")] for left in "ab"]  # whichever is done first


def test_what_was_asked_for_is_written_down():
    thresholds = Thresholds(level=0.01, norm_spread=0.3)
    result = audit(small_net(), keep=0.5, samples=8, exact=True, generator=seeded(5), thresholds=thresholds)
    assert result.model == "Sequential"
    assert audit({"w": normal(40, 40)}).model == "weights"
    assert audit({"w": normal(40, 40)}, model="mine.pt").model == "mine.pt"
    drawn = int(torch.randint(2**31, (1,), generator=seeded(5)))
    assert result.settings == {"seed": drawn, "keep": 0.5, "samples": 8, "exact": True, "data": False}
    assert result.thresholds["level"] == 0.01
    assert result.thresholds["norm_spread"] == 0.3
    assert set(result.versions) == {"obverse", "torch", "python"}
    reversal = result.layers[0].reversal[0]
    assert reversal.samples == 8
    assert reversal.kept == 24  # half of 48 inputs
    assert 0 < sum(layer.seconds for layer in result) <= result.seconds


def biased() -> nn.Sequential:
    """Offsets of every sort: constant, nought, and spread; a constant layer, a low-rank one."""
    net = nn.Sequential(*(nn.Linear(36, 36) for _ in range(5)))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for layer in net:
            layer.weight.normal_(generator=generator)
            layer.bias.normal_(generator=generator)
        net[0].bias.fill_(-0.5)
        net[1].bias.zero_()
        net[2].weight.fill_(0.1)
        net[3].weight.copy_(net[3].weight[:, :2] @ net[3].weight[:2])
        net[4].weight[3] = 0
    return net


@pytest.mark.parametrize("exact", [True, False])
def test_an_audit_is_plain_json(exact):
    result = audit(biased(), data=normal(40, 36), exact=exact)
    text = json.dumps(result.to_dict(), allow_nan=False)  # and nothing that json doesn't know
    back = json.loads(text)
    assert [layer["name"] for layer in back["layers"]] == [layer.name for layer in result]
    first, parts = back["layers"][0], result.layers[0].parts
    assert first["parts"]["random_share"]["low"] == parts.random_share.low
    assert first["parts"]["method"] == parts.method
    assert 0 <= first["p"] <= first["family_p"] <= 1
    assert back["thresholds"] == result.thresholds


def test_holm_adjusts_as_its_definition_does():
    chances = [0.001, 0.4, 0.02, None, 0.012]
    made = [
        replace(made_layer(f"{at}"), parts=None if p is None else made_parts(upper_p=p / TESTS, lower_p=1.0))
        for at, p in enumerate(chances)
    ]
    found = with_family(made)
    assert [layer.p for layer in found] == pytest.approx(chances)
    # brute force: the largest of (n − rank) · p over all that are no larger
    tested = sorted(p for p in chances if p is not None)
    for layer, p in zip(found, chances, strict=True):
        expected = None if p is None else max((4 - at) * q for at, q in enumerate(tested) if q <= p)
        assert layer.family_p == (None if p is None else pytest.approx(min(1.0, expected)))
    words = made_audit(*found).family
    assert words.startswith("tested all at once, 3 of 4 layers show more than noise does (Holm: ")
    assert made_audit(unmeasured()).family == ""


def test_offsets_are_those_of_the_layer():
    result = audit(biased())
    first, second = result.layers[:2]
    assert (first.offsets.mean, first.offsets.std) == (-0.5, 0)
    assert (second.offsets.mean, second.offsets.std) == (0, 0)
    assert {finding.aspect for finding in first.findings} >= {"offsets"}
    assert audit({"w": normal(40, 40)}).layers[0].offsets is None


def test_the_parts_are_those_of_decompose_and_what_is_left_is_ordinary():
    generator = torch.Generator().manual_seed(4)
    left, right = torch.randn(60, 1, generator=generator), torch.randn(1, 90, generator=generator)
    matrix = 0.05 * (torch.randn(60, 90, generator=generator) + left @ right)
    layer = audit({"w": matrix}).layers[0]
    expected = decompose(matrix, alpha=Thresholds().level)
    assert layer.parts == expected.summary
    assert layer.parts.rank == 1
    # singular values of the matrix without its profile
    scaled = matrix.double() / expected.row_scales[:, None] / expected.column_scales
    assert np.array(layer.values) == pytest.approx(svdvals(scaled.numpy())[::-1], rel=1e-4)
    # a direction is told once: with noise in its place, norms and cosines are ordinary
    assert min(layer.norms.rows.p, layer.norms.columns.p, *(one.rms.p for one in layer.correlations)) > 0.001


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_precisions_are_read(dtype):
    matrix = normal(64, 80).to(dtype)
    layer = audit({"w": matrix}).layers[0]
    assert layer.values == audit({"w": matrix.float()}).layers[0].values
    assert layer.verdict == "untouched"


def test_few_singular_values_give_the_same_verdict_as_all():
    exact, quick = (audit({"w": normal(200, 260)}, exact=exact).layers[0] for exact in (True, False))
    assert (exact.parts.method, quick.parts.method) == ("exact", "krylov")
    assert quick.verdict == exact.verdict == "untouched"
    middle = [np.quantile(layer.values, [0.1, 0.5, 0.9]) for layer in (exact, quick)]
    assert middle[1] == pytest.approx(middle[0], rel=0.1)


def test_data_that_does_not_fit_is_refused_in_a_sentence():
    with pytest.raises(BadInput, match=r"expected data that the net takes; got inputs of shape \(7,\)"):
        audit(small_net(), data=torch.ones(5, 7))


def test_whole_numbers_beside_floats_are_named_and_positions_are_not():
    weights = {
        "a.weight": normal(40, 50),
        "b.weight": torch.ones(64, 48, dtype=torch.int8),
        "position_ids": torch.arange(64)[None],
        "c.qweight": torch.ones(64, 6, dtype=torch.int32),
    }
    result = audit(weights)
    assert [layer.name for layer in result] == ["a", "b", "c.qweight"]
    assert [layer.verdict for layer in result] == ["untouched", "not judged", "not judged"]
    assert "int8 numbers, which say nothing without their scales" in result.layers[1].sentence
    with pytest.raises(BadInput, match="floating-point matrices"):
        audit({name: one for name, one in weights.items() if name != "a.weight"})


def test_experts_in_one_tensor_are_a_matrix_each():
    stack = torch.stack([normal(40, 64, seed) for seed in range(3)])
    found = open_weights({"mlp.experts.gate_up_proj": stack, "experts.0.conv.weight": stack.clone()})
    names = [f"mlp.experts.gate_up_proj (expert {at} of 3)" for at in (1, 2, 3)]
    assert [one.name for one in found] == [*names, "experts.0.conv"]
    assert [one.kind for one in found] == ["linear"] * 3 + ["convolution"]
    for one, expert in zip(found, stack, strict=False):
        assert torch.equal(one.load(), expert)
