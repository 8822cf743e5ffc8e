"""How files of other libraries name and shape their weights: JAX, gpt-oss, T5, XLNet, SAM, EfficientNet."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from obverse.weights import open_weights
from obverse.weights._blocks import place_of
from obverse.weights._readers.layout import weights_in
from obverse.weights._readers.stored import Stored


def listed(**shapes):
    """The matrices of a file with tensors of these shapes."""
    stored = {name: Stored(shape, "float32", torch.Tensor) for name, shape in shapes.items()}
    return {one.name: (one.kind, one.rows, one.columns) for one in weights_in(stored, "a file", file=True)}


@pytest.mark.parametrize(
    ("name", "shape", "kind", "rows", "columns"),
    [
        ("shared.weight", (100, 64), "embedding", 100, 64),  # T5
        ("model.shared.weight", (100, 64), "embedding", 100, 64),  # BART
        ("mlp.shared.weight", (100, 64), "linear", 100, 64),
        ("layer.0.SelfAttention.relative_attention_bias.weight", (32, 32), "embedding", 32, 32),
        ("prompt_encoder.point_embeddings.0.weight", (4, 64), "embedding", 4, 64),  # a list of tables
        ("time_embed.0.weight", (256, 64), "linear", 256, 64),  # a layer that makes one
        ("mask_tokens.weight", (4, 64), "embedding", 4, 64),
        ("image_encoder.pos_embed", (1, 16, 16, 64), "embedding", 256, 64),
        ("blocks.0.attn.rel_pos_h", (127, 64), "matrix", 127, 64),
        ("layer.0.rel_attn.q", (64, 4, 16), "matrix", 64, 64),  # XLNet: in × heads × size
        ("blocks.0.att.time_maa_w2", (5, 32, 64), "matrix", 5, 2048),  # RWKV
        ("layers.0.kernel.C", (1, 64, 32, 2), "matrix", 1, 4096),  # S4
        ("conv1", (64, 3, 5, 5), "convolution", 64, 75),  # an array of a file of arrays
        ("conv_dw.weight", (64, 1, 3, 3), "convolution", 64, 9),
    ],
)
def test_a_name_and_a_shape_say_what_it_is(name, shape, kind, rows, columns):
    found, _ = listed(**{name: shape, "fc.weight": (40, 40)}).values()
    assert found == (kind, rows, columns)


def test_experts_stored_with_their_outputs_last_are_turned(tmp_path):
    """As gpt-oss has them: the oracle is the product that it computes, x W + b."""
    torch.manual_seed(0)
    up, down = torch.randn(3, 48, 80), torch.randn(3, 40, 40)
    biases = torch.randn(3, 80), torch.randn(3, 40)
    tensors = {
        "mlp.experts.gate_up_proj": up,
        "mlp.experts.gate_up_proj_bias": biases[0],
        "mlp.experts.down_proj": down,  # square: its neighbour's bias tells
        "mlp.experts.down_proj_bias": biases[1],
    }
    save_file(tensors, tmp_path / "m.safetensors")
    found = {one.name: one for one in open_weights(tmp_path / "m.safetensors")}
    assert len(found) == 6
    for title, stack, bias in (("gate_up_proj", up, biases[0]), ("down_proj", down, biases[1])):
        for at in range(3):
            one, x = found[f"mlp.experts.{title} (expert {at + 1} of 3)"], torch.randn(5, stack.shape[1])
            assert torch.allclose(
                F.linear(x, one.load(), one.load_bias()), x @ stack[at] + bias[at], atol=1e-4
            )


def test_experts_without_biases_are_taken_as_they_stand():
    found = listed(**{"mlp.experts.gate_up_proj": (3, 80, 48)})
    assert set(found.values()) == {("linear", 80, 48)}


FLAX = "Transformer/encoderblock_0/MultiHeadDotProductAttention_1"


def flax_vit():
    """A vision transformer as Big Vision saves it: kernels in × out, heads apart, images last."""
    generator = np.random.default_rng(0)
    shapes = {
        "embedding/kernel": (4, 4, 3, 64),
        "embedding/bias": (64,),
        "cls": (1, 1, 64),
        f"{FLAX}/query/kernel": (64, 4, 20),
        f"{FLAX}/query/bias": (4, 20),
        f"{FLAX}/out/kernel": (4, 20, 64),
        f"{FLAX}/out/bias": (64,),
        "Transformer/encoderblock_0/MlpBlock_3/Dense_0/kernel": (64, 96),
        "Transformer/encoderblock_0/LayerNorm_0/scale": (64,),
        "head/kernel": (64, 33),
        "head/bias": (33,),
    }
    return {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_kernels_of_jax_are_turned_to_outputs_first(tmp_path, suffix):
    arrays = flax_vit()
    path = tmp_path / f"m.{suffix}"
    if suffix == "npz":
        np.savez(path, **arrays)
    else:
        save_file({name.replace("/", "."): torch.from_numpy(one) for name, one in arrays.items()}, path)
    found = {one.name: one for one in open_weights(path)}
    attention, rng = FLAX.replace("/", "."), np.random.default_rng(1)
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items()} == {
        "embedding": ("convolution", 64, 48),
        f"{attention}.query": ("linear", 80, 64),
        f"{attention}.out": ("linear", 64, 80),
        "Transformer.encoderblock_0.MlpBlock_3.Dense_0": ("linear", 96, 64),
        "head": ("linear", 33, 64),
    }
    x, heads = rng.standard_normal(64, dtype=np.float32), rng.standard_normal((4, 20), dtype=np.float32)

    def output(name, values):
        one = found[name]
        bias = one.load_bias()
        return one.load().numpy() @ values + (0 if bias is None else bias.numpy())

    kernel, bias = arrays[f"{FLAX}/query/kernel"], arrays[f"{FLAX}/query/bias"]
    expected = (np.einsum("i,ihd->hd", x, kernel) + bias).ravel()
    assert np.allclose(output(f"{attention}.query", x), expected, atol=1e-4)
    expected = np.einsum("hd,hdo->o", heads, arrays[f"{FLAX}/out/kernel"]) + arrays[f"{FLAX}/out/bias"]
    assert np.allclose(output(f"{attention}.out", heads.ravel()), expected, atol=1e-4)
    image = rng.standard_normal((4, 4, 3), dtype=np.float32)  # one patch, height × width × channels
    expected = np.einsum("hwc,hwco->o", image, arrays["embedding/kernel"]) + arrays["embedding/bias"]
    assert np.allclose(output("embedding", image.transpose(2, 0, 1).ravel()), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "block", "kind"),
    [
        ("blocks.2.1.conv_dw", "blocks.2.1", "blocks.*.*.conv_dw"),  # EfficientNet of timm
        ("features.4.2.block.3.0", "features.4.2", "features.*.*.block.3.0"),  # and of torchvision
        ("features.4.block.2.0", "features.4", "features.*.block.2.0"),  # MobileNetV3
        ("features.0.0", "features.0", "features.*.0"),
        ("features.28", "features.28", "features.*"),
        ("blocks.3.att.key", "blocks.3", "blocks.*.att.key"),
        ("input_blocks.1.1.transformer_blocks.0.attn1.to_q", "input_blocks.1",
         "input_blocks.*.1.transformer_blocks.0.attn1.to_q"),
    ],
)  # fmt: skip
def test_blocks_in_stages_have_two_numbers(name, block, kind):
    assert (place_of(name).block, place_of(name).kind) == (block, kind)


def test_a_model_is_found_by_what_is_in_it(tmp_path):
    matrix = torch.randn(40, 40)
    save_file({"fc.weight": matrix}, tmp_path / "weights.data")
    (tmp_path / "README.md").write_text("a model")
    (tmp_path / "config.json").write_text("{}")
    (one,) = open_weights(tmp_path)
    assert torch.equal(one.load(), matrix)


def test_long_names_differ_where_their_ends_do():
    start = "layer." + 300 * "y"
    names = list(listed(**{f"{start}.{last}.weight": (40, 40) for last in "qkv"}))
    assert [name[-2:] for name in names] == [".q", ".k", ".v"]
    assert all(len(name) == 200 for name in names)
