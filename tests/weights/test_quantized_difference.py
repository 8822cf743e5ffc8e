"""A quantized copy against its original: formats with scales for blocks are called rounding, or unknown."""

from __future__ import annotations

import math

import pytest
import torch

from obverse.weights import difference
from weights.test_difference import graded, made, planted

SHAPE = (96, 256)
# The 4-bit normal floats of bitsandbytes: quantiles of a normal distribution, 0 among them
NF4 = torch.tensor(
    [-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
     0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0]
)  # fmt: skip
E4M3 = 448.0  # its largest number


def blocks(w, block):
    return w.reshape(-1, block)


def nf4(w, *, doubly=False):
    """Blocks of 64; doubly quantized, their scales are off by up to a percent after the numbers were put."""
    values = blocks(w, 64)
    scale = values.abs().amax(1, keepdim=True)
    at = ((values / scale)[:, :, None] - NF4).abs().argmin(2)
    if doubly:
        scale = scale * (1 + 0.01 * (2 * torch.rand(scale.shape, generator=seeded()) - 1))
    return (NF4[at] * scale).reshape(w.shape)


def e4m3(w, rows, columns):
    """A scale for each tile: the largest number of it at the end of the format, as DeepSeek has them."""
    tiles = w.reshape(w.shape[0] // rows, rows, w.shape[1] // columns, columns)
    scale = tiles.abs().amax((1, 3), keepdim=True) / E4M3
    return ((tiles / scale).to(torch.float8_e4m3fn).float() * scale).reshape(w.shape)


def q6_k(w):
    """Blocks of 16 with scales of 8 bits, which have one scale of 16 bits for 256 numbers."""
    values = w.reshape(-1, 16, 16)
    scale = values.abs().amax(2, keepdim=True) / 31
    whole = (scale.amax(1, keepdim=True) / 127).half().float()
    scale = (scale / whole).round().clamp(1, 127) * whole
    return ((values / scale).round().clamp(-32, 31) * scale).reshape(w.shape)


def q5_k(w):
    """Blocks of 32 from their smallest number up, scales and offsets of 6 bits."""
    values = w.reshape(-1, 8, 32)
    low = (-values.amin(2, keepdim=True)).clamp_min(0)
    scale = (values.amax(2, keepdim=True) + low) / 31
    wholes = [(one.amax(1, keepdim=True) / 63).half().float() for one in (scale, low)]
    scale, low = (
        (one / whole).round().clamp_min(1) * whole for one, whole in zip((scale, low), wholes, strict=True)
    )
    return (((values + low) / scale).round().clamp(0, 31) * scale - low).reshape(w.shape)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


COPIES = {
    "nf4": nf4,
    "nf4, scales quantized too": lambda w: nf4(w, doubly=True),
    "fp8, a scale for all": lambda w: e4m3(w, *w.shape),
    "fp8, a scale for each row": lambda w: e4m3(w, 1, w.shape[1]),
    "fp8, a scale for each tile of 32 × 128": lambda w: e4m3(w, 32, 128),
    "Q6_K": q6_k,
    "Q5_K": q5_k,
    "int8, a scale for 64": lambda w: (
        (blocks(w, 64) / (s := blocks(w, 64).abs().amax(1, keepdim=True) / 127)).round() * s
    ).reshape(w.shape),
}  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("heavy", [False, True])
def test_a_copy_in_blocks_is_called_rounding_both_ways(copy, heavy):
    base = made(*SHAPE, heavy=heavy)
    other = COPIES[copy](base)
    assert not torch.equal(base, other)
    for tuned, of in ((other, base), (base, other)):
        assert graded(tuned, of).change == "nothing but rounding"


@pytest.mark.parametrize("copy", ["nf4", "fp8, a scale for each row", "fp8, a scale for all"])
def test_a_copy_dequantized_to_bfloat16_is_called_rounding(copy):
    base = made(*SHAPE).bfloat16()  # as models are published
    found = graded(COPIES[copy](base.float()).bfloat16(), base)
    assert found.change == "nothing but rounding"


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_a_copy_of_ggufs_own_library_is_called_rounding(kind):
    gguf = pytest.importorskip("gguf")
    base, own = made(*SHAPE), gguf.GGMLQuantizationType[kind]
    copy = torch.from_numpy(gguf.dequantize(gguf.quantize(base.numpy(), own), own).copy())
    assert graded(copy, base).change == "nothing but rounding"


@pytest.mark.parametrize("copy", ["nf4", "Q6_K", "fp8, a scale for each row"])
def test_a_change_is_no_rounding_because_it_was_quantized_after_it(copy):
    base = made(*SHAPE)
    tuned = COPIES[copy](base + made(*SHAPE, seed=5) / 4)  # by a quarter of its norm: beyond all levels
    found = graded(tuned, base)
    assert found.change == "dense"
    strength = 6 * float((COPIES[copy](base) - base).square().mean().sqrt()) * math.prod(SHAPE) ** 0.25
    few = graded(COPIES[copy]((base.double() + planted(base, 2, strength)).float()), base)
    assert (few.change, few.numbers["rank"]) == ("directions", 2)


def test_numbers_on_the_farther_level_are_not_told_from_a_small_change():
    """GPTQ puts some there to make up for others; so does an update of a tenth of the levels' distance."""
    base = made(*SHAPE)
    scale = blocks(base, 128).abs().amax(1, keepdim=True) / 7
    low = (blocks(base, 128) / scale).floor()
    near = blocks(base, 128) / scale - low
    up = near + 0.3 * (torch.rand(near.shape, generator=seeded()) - 0.5) > 0.5
    found = graded(((low + up) * scale).reshape(SHAPE), base)
    assert found.change == "cannot tell"
    assert "not always on the nearer one; no direction stands out" in found.sentence
    whole = difference({"w.weight": ((low + up) * scale).reshape(SHAPE)}, {"w.weight": base})
    assert whole.summary == "from base to tuned: 0 of 1 layer changed; 1 cannot tell"


def test_pruned_numbers_are_not_taken_for_quantized_ones():
    base = made(*SHAPE)
    least = base.abs().flatten().kthvalue(int(0.9 * base.numel())).values
    found = graded(torch.where(base.abs() >= least, base, 0.0), base)
    assert found.change == "dense"
    assert found.sentence.endswith("; all numbers that changed became 0")


def test_what_rounding_does_not_explain_is_told_from_what_changed():
    base = made(*SHAPE)
    tuned = base.bfloat16()
    tuned[:, [3, 77]] += 0.05
    found = graded(tuned, base)
    assert found.change == "in a few columns"
    assert found.sentence.startswith("what rounding does not explain is all in 2 of 256 columns; ")
