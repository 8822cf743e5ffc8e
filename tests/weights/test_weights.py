"""Which matrices a net or a state dict has. The oracle is the net itself: its output from the matrices."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, prune

from obverse._core.errors import BadInput
from obverse.weights._readers.layout import weights_in
from obverse.weights._readers.module import weights_of
from obverse.weights._readers.stored import Stored, Weight


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def by_name(source: Any) -> dict[str, Weight]:
    found = weights_of(source)
    assert len({weight.name for weight in found}) == len(found)
    for weight in found:
        matrix, bias = weight.load(), weight.load_bias()
        assert matrix.shape == (weight.rows, weight.columns)
        assert matrix.dtype == torch.float32
        assert matrix.is_contiguous()
        assert not matrix.requires_grad
        assert bias is None or (bias.shape == (weight.rows,) and bias.dtype == torch.float32)
    return {weight.name: weight for weight in found}


def both(module: nn.Module) -> list[dict[str, Weight]]:
    """A net and its state dict, which must tell the same."""
    found = [by_name(module), by_name(module.state_dict())]
    assert found[0].keys() == found[1].keys()
    return found


def bias_of(weight: Weight) -> Tensor:
    bias = weight.load_bias()
    return torch.zeros(weight.rows) if bias is None else bias


def close(one: Tensor, other: Tensor) -> bool:
    # A few hundred terms of size 1 in float32: rounding of some 1e-6.
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_layers_of_a_plain_net_and_the_modules_they_belong_to() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, (3, 2)), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8, 5))
    found = by_name(net)
    assert [(one.name, one.kind, one.rows, one.columns, one.module) for one in found.values()] == [
        ("0", "convolution", 8, 18, "0"),
        ("4", "linear", 5, 8, "4"),
    ]
    x = torch.randn(2, 3, 3, 2)
    h = net.get_submodule("0")(x)
    assert close(F.unfold(x, (3, 2)).squeeze(2) @ found["0"].load().T + bias_of(found["0"]), h.flatten(1))
    assert close(h.flatten(1) @ found["4"].load().T + bias_of(found["4"]), net[4](h.flatten(1)))
    kinds = [(one.name, one.kind, one.module) for one in by_name(net.state_dict()).values()]
    assert kinds == [("0", "convolution", None), ("4", "linear", None)]


def test_a_layer_alone_has_the_name_of_its_weight() -> None:
    for found in both(nn.Linear(4, 3, bias=False)):
        assert list(found) == ["weight"]
        assert found["weight"].load_bias() is None
    assert weights_of(nn.Linear(4, 3))[0].module == ""


@pytest.mark.parametrize(("size", "dimensions"), [((5,), 1), ((3, 3, 2), 3)])
def test_convolutions_of_other_dimensions(size: tuple[int, ...], dimensions: int) -> None:
    layer: nn.Module = (nn.Conv1d if dimensions == 1 else nn.Conv3d)(4, 6, size)  # type: ignore[operator]
    x = torch.randn(2, 4, *size)  # one patch: the convolution is a product with the matrix
    for found in both(layer):
        weight = found["weight"]
        assert close(x.flatten(1) @ weight.load().T + bias_of(weight), layer(x).flatten(1))


def test_grouped_convolution_has_the_inputs_of_one_group() -> None:
    layer = nn.Conv2d(4, 6, 3, groups=2)
    weight = by_name(layer)["weight"]
    assert (weight.rows, weight.columns) == (6, 18)
    x = torch.randn(1, 4, 3, 3)
    pieces = [x[:, 2 * g : 2 * g + 2].flatten(1) @ weight.load()[3 * g : 3 * g + 3].T for g in (0, 1)]
    assert close(torch.cat(pieces, 1) + bias_of(weight), layer(x).flatten(1))


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution_is_turned_to_outputs_first(groups: int) -> None:
    layer = nn.ConvTranspose2d(4, 6, (3, 2), groups=groups)
    weight = by_name(layer)["weight"]
    assert (weight.rows, weight.columns) == (6, 4 // groups * 6)
    assert weight.module is None
    x = torch.randn(4)
    kernels = weight.load().reshape(6, 4 // groups, 3, 2)
    per_group = x.reshape(groups, 4 // groups).repeat_interleave(6 // groups, 0)  # the inputs of each output
    expected = layer(x.reshape(1, 4, 1, 1))[0] - bias_of(weight)[:, None, None]
    assert close(torch.einsum("oi,oihw->ohw", per_group, kernels), expected)


def test_bilinear_is_a_matrix_on_pairs_of_inputs() -> None:
    layer = nn.Bilinear(3, 4, 5)
    one, two = torch.randn(2, 3), torch.randn(2, 4)
    weight = by_name(layer)["weight"]
    assert weight.kind == "matrix"
    pairs = torch.einsum("bi,bj->bij", one, two).flatten(1)
    assert close(pairs @ weight.load().T + bias_of(weight), layer(one, two))


def gates(
    found: dict[str, Weight], module: str, suffix: str, x: Tensor, h: Tensor
) -> dict[str, list[Tensor]]:
    """For each gate what the input and the state contribute, with the offsets that the matrices carry."""
    sums: dict[str, list[Tensor]] = {}
    for side, values in (("ih", x), ("hh", h)):
        prefix = f"{module}weight_{side}{suffix}"
        for name, weight in found.items():
            if name == prefix or name.startswith(f"{prefix} ("):
                gate = name.removeprefix(prefix).strip(" ()")
                sums.setdefault(gate, []).append(values @ weight.load().T + bias_of(weight))
    return sums


@pytest.mark.parametrize("bias", [True, False])
def test_lstm_gates_compute_what_the_lstm_does(bias: bool) -> None:
    layer = nn.LSTM(6, 5, num_layers=2, bidirectional=True, bias=bias)
    x, h, c = torch.randn(1, 6), torch.randn(4, 5), torch.randn(4, 5)
    output, _ = layer(x, (h, c))
    for found in both(layer):
        assert len(found) == 2 * 2 * 2 * 4
        below = x
        for depth in (0, 1):
            sides = []
            for back in (0, 1):
                at = 2 * depth + back
                sums = gates(found, "", f"_l{depth}{'_reverse' * back}", below, h[at : at + 1])
                i, f, g, o = (
                    sum(sums[f"{one} gate"], torch.zeros(1, 5))
                    for one in ("input", "forget", "cell", "output")
                )
                state = f.sigmoid() * c[at] + i.sigmoid() * g.tanh()
                sides.append(o.sigmoid() * state.tanh())
            below = torch.cat(sides, 1)
        assert close(below, output)


def test_gru_gates_compute_what_the_gru_does() -> None:
    layer = nn.ModuleDict({"rnn": nn.GRU(6, 5)})
    x, h = torch.randn(1, 6), torch.randn(1, 5)
    output, _ = layer["rnn"](x, h)
    for found in both(layer):
        assert {one.kind for one in found.values()} == {"recurrent"}
        sums = gates(found, "rnn.", "_l0", x, h)
        r, z = (sum(sums[f"{one} gate"], torch.zeros(1, 5)).sigmoid() for one in ("reset", "update"))
        new = (sums["new gate"][0] + r * sums["new gate"][1]).tanh()  # each with its own offset
        assert close((1 - z) * new + z * h, output)


@pytest.mark.parametrize("cell", [nn.RNN, nn.RNNCell])
def test_a_plain_recurrent_layer_is_not_split(cell: type[nn.Module]) -> None:
    layer = cell(6, 5)
    x, h = torch.randn(1, 6), torch.randn(1, 5)
    output = layer(x, h)[0].reshape(1, 5)
    for found in both(layer):
        sums = gates(found, "", "_l0" if cell is nn.RNN else "", x, h)
        assert close(sum(sums[""], torch.zeros(1, 5)).tanh(), output)


def test_a_projected_lstm_takes_its_width_from_the_projection() -> None:
    for found in both(nn.LSTM(6, 8, proj_size=2)):  # 32 rows over 2 columns of weight_hh say nothing
        sizes = {name: (one.rows, one.columns) for name, one in found.items()}
        assert sizes["weight_ih_l0 (cell gate)"] == (8, 6)
        assert sizes["weight_hh_l0 (cell gate)"] == (8, 2)
        assert sizes["weight_hr_l0"] == (2, 8)
        assert len(sizes) == 9


@pytest.mark.parametrize("separate", [False, True])
def test_attention_projections_compute_the_attention(separate: bool) -> None:
    layer = nn.MultiheadAttention(6, 1, kdim=4 if separate else 6, vdim=7 if separate else 6)
    nn.init.normal_(layer.in_proj_bias)
    query, key, value = torch.randn(3, 6), torch.randn(5, layer.kdim), torch.randn(5, layer.vdim)
    expected, _ = layer(query, key, value)
    for found in both(layer):
        names = (
            ["q_proj", "k_proj", "v_proj"]
            if separate
            else [f"in_proj ({one})" for one in ("query", "key", "value")]
        )
        assert list(found) == [*names, "out_proj"]
        assert [found[name].kind for name in names] == ["attention"] * 3
        q, k, v = (
            one @ found[name].load().T + bias_of(found[name])
            for one, name in zip((query, key, value), names, strict=True)
        )
        mixed = torch.softmax(q @ k.T / math.sqrt(6), 1) @ v
        assert close(mixed @ found["out_proj"].load().T + bias_of(found["out_proj"]), expected)
    # the output layer is read, never called: a hook on it would wait for ever
    assert {one.module for one in weights_of(layer)} == {None}


def test_a_fused_linear_layer_is_split_where_it_is_three_square_blocks() -> None:
    net = nn.ModuleDict(
        {"qkv": nn.Linear(4, 12), "to_qkv": nn.Linear(4, 8), "query_key_value": nn.Linear(4, 12)}
    )
    for found in both(net):
        assert list(found) == ["qkv (query)", "qkv (key)", "qkv (value)", "to_qkv", "query_key_value"]
        key = found["qkv (key)"]
        assert torch.equal(key.load(), net["qkv"].weight[4:8])
        assert torch.equal(bias_of(key), net["qkv"].bias[4:8])
        assert key.module is None
        assert found["to_qkv"].rows == 8
        assert (
            found["query_key_value"].rows == 12
        )  # the heads take turns there: thirds would be no projections


def gpt2(linear: bool) -> dict[str, Tensor]:
    """One block, as nn.Linear (out × in) or as the original GPT-2 file has it (in × out)."""
    shapes = {"attn.c_attn": (12, 4), "attn.c_proj": (4, 4), "mlp.c_fc": (16, 4), "mlp.c_proj": (4, 16)}
    block = {"wte.weight": torch.randn(20, 4), "wpe.weight": torch.randn(9, 4)}
    for name, shape in shapes.items():
        weight = torch.randn(shape)
        block[f"h.0.{name}.weight"] = weight if linear else weight.T.contiguous()
        block[f"h.0.{name}.bias"] = torch.randn(shape[0])
    block["h.0.attn.bias"] = torch.ones(1, 1, 9, 9).tril()  # the causal mask, in the original file
    block["h.0.ln_1.weight"] = torch.ones(4)
    return block


@pytest.mark.parametrize("linear", [True, False])
def test_gpt2_is_turned_to_outputs_first(linear: bool) -> None:
    block = gpt2(linear)
    found = by_name(block)
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items()} == {
        "wte": ("embedding", 20, 4),
        "wpe": ("embedding", 9, 4),
        "h.0.attn.c_attn (query)": ("attention", 4, 4),
        "h.0.attn.c_attn (key)": ("attention", 4, 4),
        "h.0.attn.c_attn (value)": ("attention", 4, 4),
        "h.0.attn.c_proj": ("linear", 4, 4),
        "h.0.mlp.c_fc": ("linear", 16, 4),
        "h.0.mlp.c_proj": ("linear", 4, 16),
    }
    for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
        pieces = [one for title, one in found.items() if title.startswith(f"h.0.{name}")]
        whole = torch.cat([one.load() for one in pieces])
        stored = block[f"h.0.{name}.weight"]
        assert torch.equal(whole, stored if linear else stored.T)
        assert torch.equal(torch.cat([bias_of(one) for one in pieces]), block[f"h.0.{name}.bias"])


def test_a_bias_tells_which_side_is_the_output() -> None:
    found = by_name(
        {"W1": torch.randn(6, 4), "b1": torch.randn(4), "W2": torch.randn(3, 4), "b2": torch.randn(3)}
    )
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items()} == {
        "W1": ("linear", 4, 6),
        "W2": ("linear", 3, 4),
    }
    assert bias_of(found["W1"]).abs().sum() > 0


def test_what_is_no_weight_is_left_out() -> None:
    tensors = {
        "fc.weight": torch.randn(3, 4),
        "fc.bias": torch.randn(3),
        "norm.weight": torch.randn(4),
        "norm.num_batches_tracked": torch.tensor(3),
        "ids": torch.zeros(3, 4, dtype=torch.int64),
        "packed.qweight": torch.zeros(3, 4, dtype=torch.int8),
        "packed.scales": torch.ones(3, 2),
        "fc.weight_scale_inv": torch.ones(3, 2),
        "attention.mask": torch.ones(4, 4, dtype=torch.bool),
        "window.attn_mask": torch.ones(4, 4),
        "mha.bias_k": torch.ones(1, 1, 4),
        "scale": torch.tensor(2.0),
    }
    left_out = {"packed": "qweight and scales of a layout that is not known here; dequantize them first"}
    assert {one.name: one.left_out for one in weights_of(tensors)} == {"fc": "", **left_out}
    net = nn.ModuleDict({"fc": nn.Linear(4, 3), "norm": nn.LayerNorm((2, 3, 4)), "bn": nn.BatchNorm1d(3)})
    net.register_buffer("table", torch.randn(5, 5))
    assert list(by_name(net)) == ["fc"]


def test_tokens_are_no_convolutions_and_one_token_is_no_matrix() -> None:
    found = weights_of(
        {
            "cls_token": torch.randn(1, 1, 8),
            "register_tokens": torch.randn(1, 4, 8),
            "pos_embed": torch.randn(1, 5, 8),
            "final_conv.weight": torch.randn(1, 8, 1),
            "patch.weight": torch.randn(8, 3, 2, 2),
        }
    )
    assert [(one.name, one.kind, one.rows, one.columns) for one in found] == [
        ("register_tokens", "matrix", 4, 8),
        ("pos_embed", "embedding", 5, 8),
        ("final_conv", "convolution", 1, 8),
        ("patch", "convolution", 8, 12),
    ]


def test_the_bias_tells_a_transposed_convolution() -> None:
    net = nn.ConvTranspose2d(4, 6, 3)
    found = weights_of({f"up.{name}": tensor for name, tensor in net.state_dict().items()})[0]
    (expected,) = weights_of(net)
    assert (found.rows, found.columns) == (6, 36)
    assert torch.equal(found.load(), expected.load())
    assert torch.equal(found.load_bias(), net.bias)


def test_what_has_a_bias_is_no_embedding() -> None:
    net = nn.Linear(5, 7)
    state = {f"embedding_hidden_mapping_in.{name}": tensor for name, tensor in net.state_dict().items()}
    assert [one.kind for one in weights_of(state)] == ["linear"]


def test_kinds_by_name_and_shape() -> None:
    found = by_name(
        {
            "model.embed_tokens.weight": torch.randn(9, 4),
            "pos_embed": torch.randn(1, 5, 4),
            "patch_embed.proj.weight": torch.randn(4, 3, 2, 2),
            "embed_proj.weight": torch.randn(3, 4),
            "table": torch.randn(3, 4),
            "rnn.weight_ih_l0": torch.randn(7, 4),
        }
    )
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items()} == {
        "model.embed_tokens": ("embedding", 9, 4),
        "pos_embed": ("embedding", 5, 4),
        "patch_embed.proj": ("convolution", 4, 12),
        "embed_proj": ("linear", 3, 4),
        "table": ("matrix", 3, 4),
        "rnn.weight_ih_l0": ("recurrent", 7, 4),  # without weight_hh no one knows the gates
    }


def test_tied_weights_are_listed_once_under_the_first_name() -> None:
    net = nn.ModuleDict({"embed": nn.Embedding(9, 4), "head": nn.Linear(4, 9, bias=False)})
    net["head"].weight = net["embed"].weight
    for found in both(net):
        assert list(found) == ["embed"]
    store = torch.randn(6, 4)
    views = {
        "a.weight": store,
        "b.weight": store[:],
        "c.weight": store[:3],
        "d.weight": store.T,
        "e.weight": store + 0,
    }
    assert list(by_name(views)) == [
        "a",
        "c",
        "d",
        "e",
    ]  # the same numbers in another shape are another matrix


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_weight_norm_gives_the_weight_that_the_net_uses(old: bool, dim: int | None) -> None:
    wrap: Any = nn.utils.weight_norm if old else parametrizations.weight_norm
    net = nn.ModuleDict({"fc": wrap(nn.Linear(4, 3), dim=dim)})
    with torch.no_grad():  # as after a step of training: the attribute `weight` of the old form is stale now
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter))
    used = (net["fc"](torch.eye(4)) - net["fc"].bias).T
    for found in both(net):
        assert list(found) == ["fc"]
        assert close(found["fc"].load(), used)
        assert found["fc"].load_bias() is not None


def test_weight_norm_of_a_convolution_in_a_state_dict() -> None:
    layer = parametrizations.weight_norm(nn.Conv1d(4, 6, 3))
    with torch.no_grad():
        layer.parametrizations["weight"].original0.mul_(3)
    assert close(by_name(layer.state_dict())["weight"].load(), layer.weight.flatten(1))


def test_pruned_weights_are_masked() -> None:
    net = nn.Sequential(nn.Linear(8, 6))
    prune.random_unstructured(net[0], "weight", 0.5)
    with torch.no_grad():
        net[0].weight_orig.add_(1)  # type: ignore[operator]
    used = (net(torch.eye(8)) - net[0].bias).T
    for found in both(net):
        assert list(found) == ["0"]
        assert close(found["0"].load(), used)
        assert found["0"].kind == "linear"


def test_spectral_norm_differs_by_a_factor() -> None:
    layer = nn.utils.spectral_norm(nn.Linear(8, 6))
    used = (layer(torch.eye(8)) - layer.bias).T
    for found in both(layer):
        matrix = found["weight"].load()
        assert close(matrix / matrix.norm(), used / used.norm())


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_other_precisions_become_float32(dtype: torch.dtype) -> None:
    values = torch.tensor([[0.5, -2.0, 1.5], [0.0, 4.0, -0.25]])  # exact in all of them
    found = by_name({"a.weight": values.to(dtype), "a.bias": torch.ones(2, dtype=dtype)})
    assert torch.equal(found["a"].load(), values)


def test_integers_are_left_out_unless_there_is_nothing_else() -> None:
    eight = torch.zeros(3, 4, dtype=torch.int8)
    found = weights_of({"a.weight": eight, "b.weight": torch.ones(3, 4)})
    assert [bool(one.left_out) for one in found] == [True, False]
    with pytest.raises(BadInput, match="floating-point numbers in a of the state dict; got int8; dequantize"):
        found[0].load()
    with pytest.raises(BadInput, match="floating-point matrices in the state dict; got 2 2-dimensional int8"):
        weights_of({"a.weight": eight, "b.weight": eight})
    with pytest.raises(BadInput, match="got no tensors"):
        weights_of(nn.ReLU())


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        (
            {"a.weight": torch.zeros(3, 4, dtype=torch.complex64)},
            r"real numbers in a\.weight .* got complex64",
        ),
        ({"a.weight": torch.zeros(0, 4)}, r"at least one value in a\.weight .* \(0, 4\)"),
        (
            {"a.weight": torch.zeros(3, 4, device="meta")},
            r"values in a\.weight; got a tensor on the meta device",
        ),
        ({"a.weight": torch.eye(3).to_sparse()}, r"a dense tensor as a\.weight"),
        (
            {"weight_ih_l0": torch.eye(8), "weight_hh_l0": torch.zeros(8, 0)},
            "at least one value in weight_hh_l0",
        ),
        ({"epoch": 3}, "a state dict"),
        ({}, "a state dict"),
        ({"x" * 1001: torch.eye(3)}, "names of at most 1000"),
        ([torch.eye(3)], "an nn.Module or a state dict; got list"),
    ],
)
def test_what_cannot_be_judged_is_refused_by_name(tensors: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        weights_of(tensors)


def test_modules_without_values_are_refused() -> None:
    with pytest.raises(BadInput, match=r"values in 0\.weight; got a tensor on the meta device"):
        weights_of(nn.Sequential(nn.Linear(3, 4, device="meta")))
    with pytest.raises(BadInput, match=r"values in 0\.weight; got a lazy layer"):
        weights_of(nn.Sequential(nn.LazyLinear(4)))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_place(wrong: float) -> None:
    layer = nn.Conv2d(3, 4, 3)
    with torch.no_grad():
        layer.weight[2, 1, 0, 2] = wrong
        layer.bias[3] = wrong  # type: ignore[index]
    weight = weights_of(nn.Sequential(layer))[0]
    kinds = "1 NaN and 0 infinite" if math.isnan(wrong) else "0 NaN and 1 infinite"
    with pytest.raises(
        BadInput, match=rf"0 of the Sequential; got {kinds} values, the first at \[2, 11\] of 4 × 27"
    ):
        weight.load()
    with pytest.raises(BadInput, match=r"the bias of 0 of the Sequential; .* the first at \[3\]"):
        weight.load_bias()


def test_numbers_too_large_for_float32_are_refused() -> None:
    with pytest.raises(BadInput, match="0 NaN and 4 infinite"):
        weights_of({"a.weight": torch.full((2, 2), 1e300, dtype=torch.float64)})[0].load()


def test_nothing_is_read_before_it_is_asked_for() -> None:
    read = []

    def stored(name: str, *shape: int) -> Stored:
        def load() -> Tensor:
            read.append(name)
            return torch.ones(shape)

        return Stored(shape, "float32", load)

    tensors = {
        name: stored(name, *shape)
        for name, shape in {"a.weight": (3, 4), "a.bias": (3,), "b.weight": (5, 3)}.items()
    }
    weights = weights_in(tensors, "here")
    assert read == []
    weights[1].load()
    assert read == ["b.weight"]
    weights[0].load_bias()
    assert read == ["b.weight", "a.bias"]


@pytest.mark.parametrize(
    ("checkpoint", "names"),
    [
        ({"state_dict": {"fc.weight": 0}, "epoch": 3}, ["fc"]),
        (
            {
                "model": {"fc.weight": 0},
                "optimizer": {"state": {0: {"exp_avg": 0}}, "param_groups": [{"lr": 1}]},
            },
            ["fc"],
        ),
        ({"a": {"b": {"c": {"fc.weight": 0}}}}, ["fc"]),
        ({"model": {"fc.weight": 0}, "ema": {"fc.weight": 0, "more.weight": 0}}, ["fc"]),
        ({"fc.weight": 0, "extra": {"other.weight": 0}}, ["fc"]),
    ],
)
def test_a_state_dict_is_found_in_its_checkpoint(checkpoint: dict[str, Any], names: list[str]) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        return torch.randn(3, 4) if value == 0 and value is not False else value

    assert list(by_name(filled(checkpoint))) == names


def test_two_state_dicts_in_one_checkpoint_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match=r"one state dict in the state dict; got G, nets\.D"):
        weights_of({"G": {"a.weight": torch.eye(3)}, "nets": {"D": {"a.weight": torch.eye(3)}}})  # type: ignore[dict-item]


def test_a_checkpoint_that_holds_itself_is_searched_once() -> None:
    checkpoint: dict[str, Any] = {}
    checkpoint.update((f"again{n}", checkpoint) for n in range(100))  # 100⁸ ways to go
    with pytest.raises(BadInput, match="a state dict"):
        weights_of(checkpoint)


def test_names_are_shown_without_what_would_move_the_cursor() -> None:
    assert list(by_name({"a\n\x1b[31mb.weight": torch.eye(3)})) == [r"a\n\x1b[31mb"]
