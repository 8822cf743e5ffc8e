"""Quantized layouts: each is made here by a separate quantizer, and read within half a step of its grid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from obverse import BadInput, open_weights
from obverse.weights._readers.scaled import blocks

FP8 = torch.float8_e4m3fn
LARGEST_FP8 = 448.0
TABLE = torch.tensor(
    [-1.0, -0.7, -0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.08, 0.16, 0.25, 0.34, 0.44, 0.56, 0.72, 1.0]
)


def read(folder: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
    save_file({name: one.contiguous() for name, one in tensors.items()}, folder / "m.safetensors")
    return {weight.name: weight for weight in open_weights(folder / "m.safetensors")}


def normal(*shape: int, seed: int = 0) -> Tensor:
    rows = torch.linspace(0.5, 3, shape[-2])[:, None]  # scales that matter
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * rows


def eight_bit_floats(values: Tensor, block: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers, scales, and what each is off at most: 2⁻⁴ of it, or half the smallest step of fp8 (2⁻⁹)."""
    rows, columns = values.shape
    down, across = -(-rows // block[0]), -(-columns // block[1])
    numbers, scales, bound = torch.zeros_like(values), torch.zeros(down, across), torch.zeros_like(values)
    for i in range(down):
        for j in range(across):
            at = slice(i * block[0], (i + 1) * block[0]), slice(j * block[1], (j + 1) * block[1])
            scale = values[at].abs().max() / LARGEST_FP8
            numbers[at], scales[i, j] = values[at] / scale, scale
            bound[at] = torch.maximum(values[at].abs() / 16, scale / 1024)
    return numbers.to(FP8), scales, bound


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ((128, 128), "weight_scale_inv"),
        ((64, 32), "weight_scale"),
        ((300, 200), "weight_scale"),
        ((1, 200), "weight_scale"),
        ((300, 1), "weight_scale"),
        ((1, 128), "weight_scale"),
    ],
)
def test_fp8_with_a_scale_a_block_a_row_a_column_or_a_tensor(tmp_path, block, name):
    whole = normal(300, 200)
    numbers, scales, bound = eight_bit_floats(whole, block)
    found = read(tmp_path, {"fc.weight": numbers, f"fc.{name}": scales, "fc.input_scale": torch.ones(())})
    assert list(found) == ["fc"]
    assert bool(((found["fc"].load() - whole).abs() <= bound * 1.001).all())  # float32 rounding of the scale


def test_one_number_and_one_per_row_as_a_vector(tmp_path):
    whole = normal(96, 64)
    one, scale, bound = eight_bit_floats(whole, (96, 64))
    rows, by_rows, bound_rows = eight_bit_floats(whole, (1, 64))
    found = read(
        tmp_path,
        {
            "a.weight": one, "a.scale_weight": scale[0, 0],
            "b.weight": rows, "b.weight_scale": by_rows[:, 0].bfloat16(),
        },
    )  # fmt: skip
    assert bool(((found["a"].load() - whole).abs() <= bound * 1.001).all())
    # a scale in bfloat16 is off by 2⁻⁹ of itself at most
    assert bool(((found["b"].load() - whole).abs() <= bound_rows * 1.01 + whole.abs() / 500).all())


def test_experts_in_one_tensor_have_scales_of_their_own(tmp_path):
    wholes = [normal(160, 256, seed=seed) * 4.0**seed for seed in range(3)]
    made = [eight_bit_floats(one, (128, 128)) for one in wholes]
    found = read(
        tmp_path,
        {
            "experts.up_proj": torch.stack([one.float() for one, _, _ in made]).to(FP8),
            "experts.up_proj_scale_inv": torch.stack([scale for _, scale, _ in made]),
        },
    )
    assert len(found) == 3
    for weight, whole, (_, _, bound) in zip(found.values(), wholes, made, strict=True):
        assert bool(((weight.load() - whole).abs() <= bound * 1.001).all())


@pytest.mark.parametrize("zeros", [False, True])
def test_int8_with_scales_and_zero_points(tmp_path, zeros):
    whole = normal(80, 96) + (0.5 if zeros else 0.0)
    low, high = whole.amin(1, keepdim=True), whole.amax(1, keepdim=True)
    step = (high - low) / 255 if zeros else whole.abs().amax(1, keepdim=True) / 127
    point = (-128 - low / step).round() if zeros else torch.zeros(80, 1)
    numbers = (whole / step + point).round().clamp(-128, 127).to(torch.int8)
    tensors = {"fc.weight": numbers, "fc.weight_scale": step}
    if zeros:
        tensors["fc.weight_zero_point"] = point.to(torch.int8)
    found = read(tmp_path, tensors)
    assert list(found) == ["fc"]
    # half a step, and one where the rounded zero point pushes the last value off the grid
    assert bool(((found["fc"].load() - whole).abs() <= step * (1.001 if zeros else 0.501)).all())


def test_bitsandbytes_eight_bits(tmp_path):
    whole = normal(80, 96)
    largest = whole.abs().amax(1)
    numbers = (whole / largest[:, None] * 127).round().to(torch.int8)
    tensors = {
        "fc.weight": numbers,
        "fc.SCB": largest,
        "fc.weight_format": torch.tensor(0, dtype=torch.uint8),
    }
    found = read(tmp_path, tensors)
    assert bool(((found["fc"].load() - whole).abs() <= largest[:, None] / 253.9).all())
    turned = tensors | {"fc.weight_format": torch.tensor(2, dtype=torch.uint8), "up.weight": whole}
    assert "bitsandbytes, not stored row by row" in read(tmp_path, turned)["fc"].left_out


def four_bits(whole: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Bytes, the largest value of each block, and what each entry is off at most: half the widest gap."""
    flat = whole.flatten()
    places, largest = [], []
    for start in range(0, len(flat), block):
        some = flat[start : start + block]
        largest.append(some.abs().max())
        places.append((some[:, None] / largest[-1] - TABLE).abs().argmin(1))
    codes = torch.cat([*places, torch.zeros(len(flat) % 2, dtype=torch.long)])
    packed = (codes[::2] * 16 + codes[1::2]).to(torch.uint8)[:, None]
    scale = torch.stack(largest)
    bound = scale.repeat_interleave(block)[: len(flat)].reshape(whole.shape) * 0.15
    return packed, scale, bound


def state(whole: Tensor, block: int, **more: Any) -> Tensor:
    about = {"quant_type": "nf4", "blocksize": block, "dtype": "float16", "shape": list(whole.shape), **more}
    return torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)


def stored_four(whole: Tensor, block: int = 64) -> dict[str, Tensor]:
    packed, scale, _ = four_bits(whole, block)
    return {
        "fc.weight": packed,
        "fc.weight.absmax": scale,
        "fc.weight.quant_map": TABLE,
        "fc.weight.quant_state.bitsandbytes__nf4": state(whole, block),
    }


@pytest.mark.parametrize("shape", [(64, 96), (33, 35), (2, 3)])
def test_bitsandbytes_four_bits(tmp_path, shape):
    whole = normal(*shape)
    found = read(tmp_path, stored_four(whole))
    assert list(found) == ["fc"]
    assert (found["fc"].rows, found["fc"].columns) == shape
    assert bool(((found["fc"].load() - whole).abs() <= four_bits(whole, 64)[2] * 1.001).all())


def test_bitsandbytes_four_bits_nested_and_stored_as_another_type(tmp_path):
    whole, block, outer = normal(64, 400), 64, 256
    packed, scale, bound = four_bits(whole, block)
    offset = float(scale.mean())
    inner = torch.linspace(-1, 1, 256)
    by = torch.stack([one.abs().max() for one in (scale - offset).split(outer)])
    relative = (scale - offset) / by.repeat_interleave(outer)[: len(scale)]
    places = (relative[:, None] - inner).abs().argmin(1).to(torch.uint8)
    found = read(
        tmp_path,
        {
            "fc.weight": packed.flatten().view(torch.bfloat16)[:, None],
            "fc.weight.absmax": places,
            "fc.weight.quant_map": TABLE,
            "fc.weight.nested_absmax": by,
            "fc.weight.nested_quant_map": inner,
            "fc.weight.quant_state.bitsandbytes__nf4": state(
                whole, block, nested_blocksize=outer, nested_dtype="float32", nested_offset=offset
            ),
        },
    )
    # the scale is off by half a step of the inner table too: 1/255 of the largest
    slack = float(by.max()) / 255
    assert bool(((found["fc"].load() - whole).abs() <= bound * 1.001 + slack).all())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("absmax", torch.ones(7), "96 values of absmax"),
        ("quant_map", torch.ones(15), "16 values of quant_map"),
        ("absmax", None, "absmax beside"),
        ("quant_state.bitsandbytes__nf4", torch.zeros(9, dtype=torch.uint8), "JSON as the quant_state"),
        ("quant_state.bitsandbytes__nf4", torch.zeros(5000, dtype=torch.uint8), "a few bytes"),
        ("quant_state.bitsandbytes__nf4", state(torch.zeros(640, 960), 64), "307,200 bytes of four-bit"),
        ("quant_state.bitsandbytes__nf4", state(torch.zeros(64, 96), 0), "a block size"),
        ("quant_state.bitsandbytes__nf4", state(torch.zeros(64, 96), 64, shape=[64, -96]), "the shape of fc"),
        ("nested_absmax", torch.ones(1), "a block size"),
    ],
)
def test_four_bits_whose_parts_do_not_fit_are_refused(tmp_path, name, value, words):
    tensors = stored_four(normal(64, 96))
    tensors[f"fc.weight.{name}"] = value
    with pytest.raises(BadInput, match=words):
        read(tmp_path, {key: one for key, one in tensors.items() if one is not None})


WHOLE = normal(128, 64)
INTS = torch.zeros
LEFT_OUT: list[tuple[dict[str, Tensor], tuple[int, int], str]] = [
    (
        {
            "fc.qweight": INTS(8, 128, dtype=torch.int32), "fc.qzeros": INTS(2, 16, dtype=torch.int32),
            "fc.scales": torch.ones(2, 128), "fc.g_idx": INTS(64, dtype=torch.int32),
        },
        (128, 64),
        "GPTQ: 4-bit whole numbers packed into int32",
    ),
    (
        {
            "fc.qweight": INTS(64, 16, dtype=torch.int32), "fc.qzeros": INTS(2, 16, dtype=torch.int32),
            "fc.scales": torch.ones(2, 128),
        },
        (128, 64),
        "AWQ: 4-bit whole numbers packed into int32",
    ),
    (
        {"fc_blocks": INTS(4, 32, 2, 16, dtype=torch.uint8), "fc_scales": INTS(4, 32, 2, dtype=torch.uint8)},
        (4, 32 * 2 * 32),
        "MXFP4: 4-bit floats",
    ),
    (
        {
            "fc.weight_packed": INTS(128, 32, dtype=torch.uint8), "fc.weight_global_scale": torch.ones(1),
            "fc.weight_scale": torch.ones(128, 4).to(FP8),
        },
        (128, 64),
        "NVFP4: 4-bit floats",
    ),
    (
        {
            "fc.weight": INTS(128, 32, dtype=torch.uint8), "fc.weight_scale": torch.ones(128, 4).to(FP8),
            "fc.weight_scale_2": torch.ones(()),
        },
        (128, 64),
        "NVFP4: 4-bit floats",
    ),
    (
        {
            "fc.weight_packed": INTS(128, 8, dtype=torch.int32), "fc.weight_scale": torch.ones(128, 2),
            "fc.weight_shape": torch.tensor([128, 64]),
        },
        (128, 8),
        "compressed-tensors: whole numbers packed into int32",
    ),
    (
        {"fc.weight": torch.ones(128, 64).to(FP8), "fc.weight_scale": INTS(128, 2, dtype=torch.uint8)},
        (128, 64),
        "powers of two for scales",
    ),
    (
        {"fc.weight": torch.ones(128, 64).to(FP8), "fc.weight_scale": torch.ones(3, 5)},
        (128, 64),
        "whose scales are not clear: weight_scale of shape 3×5",
    ),
    (
        {"fc.weight": torch.ones(64, 64).to(FP8), "fc.weight_scale": torch.ones(64)},
        (64, 64),
        "whose scales are not clear: weight_scale of shape 64",
    ),
    (
        {
            "fc.W_q": INTS(64, 64, dtype=torch.uint8), "fc.scale": torch.ones(128, 1),
            "fc.zero": torch.ones(128, 1),
        },
        (64, 64),
        "HQQ",
    ),
    (
        {
            "fc.weight._data": INTS(128, 64, dtype=torch.int8), "fc.weight._scale": torch.ones(128, 1),
            "fc.weight._shift": torch.ones(128, 1),
        },
        (128, 64),
        "optimum-quanto",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "sides", "words"), LEFT_OUT, ids=[words for _, _, words in LEFT_OUT])
def test_what_is_packed_is_left_out_by_name_with_all_that_belongs_to_it(tmp_path, tensors, sides, words):
    found = read(tmp_path, tensors | {"other.weight": WHOLE})
    assert sorted(found) == ["fc", "other"]
    assert words in found["fc"].left_out
    assert "dequantize" in found["fc"].left_out
    assert (found["fc"].rows, found["fc"].columns) == sides
    assert torch.equal(found["other"].load(), WHOLE)
    with pytest.raises(BadInput, match=words.split(":")[0]):
        read(tmp_path, tensors)  # nothing else in the file: refused, by the same name


def test_every_reason_has_a_line_of_its_own(tmp_path, capsys, monkeypatch):
    from obverse import audit
    from obverse.weights.command._tables import print_audit

    monkeypatch.setenv("COLUMNS", "200")
    gptq, mx = (
        {name.replace("fc", new): one for name, one in LEFT_OUT[at][0].items()}
        for at, new in ((0, "a"), (2, "b"))
    )
    read(tmp_path, {**gptq, **mx, "other.weight": WHOLE})
    print_audit(audit(tmp_path / "m.safetensors", samples=2))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left out")]
    assert len(lines) == 2
    assert lines[0].startswith("left out: a: GPTQ: 4-bit")
    assert lines[1].startswith("left out: b: MXFP4: 4-bit")


@pytest.mark.parametrize(
    ("shape", "scales", "sides"),
    [
        ((300, 200), (3, 2), (128, 128)),
        ((7168, 2112), (56, 17), (128, 128)),
        ((300, 200), (), (300, 200)),
        ((300, 200), (300, 1), (1, 200)),
        ((8, 64, 32), (8, 1, 32), (1, 64, 1)),
        ((300, 200), (100, 2), None),  # blocks of three are nobody's
        ((300, 200), (301, 1), None),
        ((300, 200), (2, 3, 1), None),
    ],
)
def test_the_blocks_follow_from_the_shapes(shape, scales, sides):
    assert blocks(shape, scales) == sides
