"""GGUF: files that the package gguf writes, and its own reader and quantizers, are the oracles."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize, quantize

from obverse import BadInput, audit
from obverse.weights import open_weights
from obverse.weights._readers import disk
from obverse.weights._readers import gguf as reader
from weights.gguf_files import Raw, gguf_bytes, pair, text

Kind = gguf.GGMLQuantizationType
BLOCK = gguf.GGML_QUANT_SIZES
PLAIN = {Kind.F32, Kind.F16, Kind.F64, Kind.I8, Kind.I16, Kind.I32, Kind.I64}


def known() -> list[Any]:
    """What the package dequantizes, by asking it."""
    found = []
    for kind in set(Kind) - PLAIN:
        try:
            dequantize(np.zeros((1, BLOCK[kind][1]), np.uint8), kind)
        except NotImplementedError:
            continue
        found.append(kind)
    return sorted(found)


KNOWN = known()
QUANTIZABLE = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "TQ1_0", "TQ2_0")


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def write(path: Path, tensors: dict[str, tuple[Any, Any]], **options: Any) -> Path:
    """Each tensor as numbers, quantized here, or as the bytes of its blocks."""
    writer = gguf.GGUFWriter(path, "llama", **options)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "long" * 50])
    writer.add_array("tokenizer.ggml.scores", [0.5, 1.5, 2.5])
    writer.add_uint32("llama.block_count", 1)
    for name, (values, kind) in tensors.items():
        raw = values if values.dtype == np.uint8 or kind in PLAIN else quantize(values, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_there_are_types_to_read():
    assert {kind.name for kind in KNOWN} >= {
        *QUANTIZABLE,
        "Q2_K",
        "Q4_K",
        "Q6_K",
        "IQ2_XXS",
        "IQ4_NL",
        "MXFP4",
    }


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.name)
def test_every_type_the_package_knows_gives_the_numbers_it_gives(tmp_path, monkeypatch, kind):
    block, size = BLOCK[kind]
    blocks = np.random.default_rng(kind).integers(0, 60, (50, 3 * size), dtype=np.uint8)  # scales stay finite
    path = write(tmp_path / "m.gguf", {"blk.0.ffn_up.weight": (blocks, kind)})
    monkeypatch.setattr(reader, "_READ_AT_ONCE", 7 * 3 * size)  # in pieces of 7 rows, the last of one
    (found,) = open_weights(path)
    (theirs,) = gguf.GGUFReader(path).tensors
    expected = dequantize(theirs.data, kind)
    assert (found.rows, found.columns, found.kind) == (50, 3 * block, "linear")
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(found.load().numpy(), expected)


@pytest.mark.parametrize("name", QUANTIZABLE)
def test_what_was_quantized_is_the_weight_up_to_rounding(tmp_path, name):
    kind, weight = getattr(Kind, name), normal(40, 256)
    path = write(tmp_path / "m.gguf", {"blk.0.attn_q.weight": (weight, kind)})
    (found,) = open_weights(path)
    error = float((found.load() - torch.from_numpy(weight)).square().mean().sqrt())
    # a step is at most the range of a block (some 5 σ for 32 normal entries) over its number of steps; the
    # error of rounding is its 12th part in square; ternary blocks have no more than a sign
    steps = {"Q4_0": 15, "Q4_1": 15, "Q5_0": 31, "Q5_1": 31, "Q8_0": 254, "BF16": 256}.get(name, 1.5)
    assert 0 < error < 5 / steps / 12**0.5 * 1.2


def test_plain_numbers_are_read_as_they_are(tmp_path):
    tensors = {
        "blk.0.a.weight": (normal(5, 6), Kind.F32),
        "blk.0.b.weight": (normal(5, 6).astype(np.float16), Kind.F16),
        "blk.0.c.weight": (normal(5, 6).astype(np.float64), Kind.F64),
    }
    for one in open_weights(write(tmp_path / "m.gguf", tensors)):
        values = tensors[one.tensor][0]
        np.testing.assert_array_equal(one.load().numpy(), values.astype(np.float32))


def test_the_layers_of_a_llama(tmp_path):
    tensors = {
        "output.weight": (normal(50, 64, seed=1), Kind.Q8_0),
        "token_embd.weight": (normal(50, 64, seed=2), Kind.Q8_0),
        "output_norm.weight": (normal(64), Kind.F32),
        **{f"blk.{n}.attn_q.weight": (normal(64, 64, seed=n), Kind.F16) for n in (10, 2)},
        "blk.2.attn_q.bias": (np.arange(64, dtype=np.float32), Kind.F32),
        "blk.2.attn_qkv.weight": (normal(192, 64), Kind.F32),
        "blk.2.attn_qkv.bias": (np.arange(192, dtype=np.float32), Kind.F32),
        "blk.2.ffn_gate_exps.weight": (normal(3, 40, 64), Kind.F32),
        "blk.2.attn_k_b.weight": (normal(2, 16, 32), Kind.F32),
        "blk.2.ssm_conv1d.weight": (normal(64, 4), Kind.F32),
        "v.patch_embd.weight": (normal(8, 3, 14, 14), Kind.F16),
    }
    found = {one.name: one for one in open_weights(write(tmp_path / "m.gguf", tensors))}
    assert [(one.name, one.kind, one.rows, one.columns) for one in found.values()] == [
        ("token_embd", "embedding", 50, 64),
        ("v.patch_embd", "convolution", 8, 588),
        ("blk.2.attn_q", "linear", 64, 64),
        ("blk.2.attn_qkv (query)", "attention", 64, 64),
        ("blk.2.attn_qkv (key)", "attention", 64, 64),
        ("blk.2.attn_qkv (value)", "attention", 64, 64),
        ("blk.2.ffn_gate_exps (expert 1 of 3)", "linear", 40, 64),
        ("blk.2.ffn_gate_exps (expert 2 of 3)", "linear", 40, 64),
        ("blk.2.ffn_gate_exps (expert 3 of 3)", "linear", 40, 64),
        ("blk.2.attn_k_b", "matrix", 2, 512),
        ("blk.2.ssm_conv1d", "convolution", 64, 4),
        ("blk.10.attn_q", "linear", 64, 64),
        ("output", "linear", 50, 64),
    ]
    assert torch.equal(found["blk.2.attn_q"].load_bias(), torch.arange(64.0))
    assert torch.equal(found["blk.2.attn_qkv (key)"].load_bias(), torch.arange(64.0, 128.0))
    values = tensors["blk.2.ffn_gate_exps.weight"][0]
    np.testing.assert_array_equal(found["blk.2.ffn_gate_exps (expert 2 of 3)"].load().numpy(), values[1])


def test_only_the_tensor_asked_for_is_read(tmp_path, monkeypatch):
    tensors = {f"blk.{n}.ffn_up.weight": (normal(64, 256), Kind.Q4_0) for n in range(3)}
    weights = open_weights(write(tmp_path / "m.gguf", tensors))
    read = []

    def span(path: Path, start: int, length: int, what: str) -> torch.Tensor:
        read.append(length)
        return real(path, start, length, what)

    real = disk.read_span
    monkeypatch.setattr(reader, "read_span", span)
    weights[1].load()
    assert sum(read) == 64 * 256 // 32 * 18


def test_the_parts_of_a_split_model_are_one(tmp_path):
    tensors = {f"blk.{n}.ffn_up.weight": (normal(8, 32, seed=n), Kind.F32) for n in range(4)}
    for part in range(2):
        some = dict(list(tensors.items())[2 * part : 2 * part + 2])
        write(tmp_path / f"m-{part + 1:05}-of-00002.gguf", some)
    for source in (tmp_path, tmp_path / "m-00001-of-00002.gguf", tmp_path / "m-00002-of-00002.gguf"):
        found = open_weights(source)
        assert [one.tensor for one in found] == list(tensors)
        assert all(np.array_equal(one.load().numpy(), tensors[one.tensor][0]) for one in found)
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(BadInput, match=r"the file m-00002-of-00002\.gguf that .* names; got none"):
        open_weights(tmp_path / "m-00001-of-00002.gguf")


def test_parts_with_one_tensor_twice_are_refused(tmp_path):
    for part in (1, 2):
        write(tmp_path / f"m-0000{part}-of-00002.gguf", {"blk.0.a.weight": (normal(4, 4), Kind.F32)})
    with pytest.raises(BadInput, match=r"got blk\.0\.a\.weight twice"):
        open_weights(tmp_path)


FLOATS = normal(40, 30).tobytes()


def test_tensors_of_unknown_types_are_left_out_by_name_and_the_others_judged(tmp_path, obverse):
    tensors = {
        "blk.0.ffn_up.weight": Raw((40, 60), 0, normal(60, 40).tobytes()),
        "blk.0.ffn_down.weight": Raw((30, 40), 99, b"\0" * 64),
        "blk.0.attn_q.weight": Raw((256, 4), Kind.Q8_K, b"\0" * 4 * 292),
        "blk.0.attn_norm.weight": Raw((30,), 99, b"\0" * 64),
    }
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes(tensors))
    layers = {one.name: one for one in audit(path, samples=2).layers}
    assert set(layers) == {"blk.0.ffn_up", "blk.0.ffn_down", "blk.0.attn_q"}
    assert layers["blk.0.ffn_up"].verdict != "not judged"
    for name, kind in (("blk.0.ffn_down", "type 99"), ("blk.0.attn_q", "Q8_K")):
        assert layers[name].verdict == "not judged"
        assert (
            f"GGUF {kind}, which the package gguf {reader.gguf_version()} cannot turn into numbers; update it"
            in (layers[name].sentence)
        )
    done = obverse("audit", path, "--samples", "2")
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "blk.0.ffn_down" in said
    assert "convert the model to F16 or Q8_0" in said


def test_a_file_of_nothing_but_unknown_types_says_which(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes({"blk.0.ffn_down.weight": Raw((30, 40), 99, b"\0" * 64)}))
    with pytest.raises(BadInput, match="1 2-dimensional GGUF type 99"):
        open_weights(path)


def test_whole_numbers_are_left_out(tmp_path):
    tensors = {"a.weight": (normal(5, 6), Kind.F32), "b.weight": (np.ones((5, 6), np.int8), Kind.I8)}
    first, second = open_weights(write(tmp_path / "m.gguf", tensors))
    assert not first.left_out
    assert second.left_out == "int8 numbers, which say nothing without their scales; dequantize them first"


ONE = {"a.weight": Raw((30, 40), 0, FLOATS)}
LIST = struct.pack("<IQ", 8, 2**40)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"GGML" + bytes(60), "a GGUF file in .*got other bytes"),
        (b"GGUF", "a GGUF file in .*got other bytes"),
        (gguf_bytes(ONE, version=1), "version 2 or 3 of GGUF.*got version 1"),
        (gguf_bytes(ONE, version=3 << 24), "got big-endian numbers"),
        (gguf_bytes(ONE, count=2**60), "at most 131,072 tensors"),
        (gguf_bytes(ONE, count=5), "names of at most 65,536 bytes"),
        (gguf_bytes(ONE, pair("a", 77, b"")), "a known kind of metadata"),
        (gguf_bytes(ONE, pair("a", 8, struct.pack("<Q", 2**62))), "4,611,686,018,427,387,904 bytes at"),
        (gguf_bytes(ONE, pair("a", 9, LIST)), "at most 4,194,304 texts"),
        (gguf_bytes(ONE, pair("a", 9, struct.pack("<IQ", 9, 1))), "got lists of lists"),
        (gguf_bytes(ONE, pair("a", 9, struct.pack("<IQ", 4, 2**61))), "bytes at"),
        (gguf_bytes(ONE, pair("general.alignment", 4, struct.pack("<I", 0))), "a power of two"),
        (gguf_bytes(ONE, pair("general.alignment", 4, struct.pack("<I", 48))), "a power of two"),
        (gguf_bytes(ONE, pair("general.alignment", 8, text("32"))), "a power of two"),
        (gguf_bytes({b"\xff.weight": Raw((30, 40), 0, FLOATS)}), "names in UTF-8"),
        (gguf_bytes({"a" * 70_000: Raw((30, 40), 0, FLOATS)}), "names of at most 65,536 bytes"),
        (gguf_bytes({"a.weight": Raw((2, 2, 2, 2, 2), 0, FLOATS)}), "at most 4 dimensions of a.weight"),
        (gguf_bytes({"a.weight": Raw((30, 41), 0, FLOATS)}), "4,920 bytes from 96 for a.weight"),
        (gguf_bytes({"a.weight": Raw((2**32, 2**32), 0, FLOATS)}), "for a.weight"),
        (gguf_bytes({"a.weight": Raw((30, 40), 0, FLOATS, start=2**63)}), "for a.weight"),
        (gguf_bytes({"a.weight": Raw((30, 40), Kind.Q4_0, FLOATS)}), "whole blocks in the rows of a.weight"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, content, sentence):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=sentence) as caught:
        open_weights(path)
    assert str(path) in str(caught.value)


def test_infinite_scales_are_refused_with_their_place(tmp_path):
    block = struct.pack("<e", float("inf")) + b"\x01" * 32
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes({"a.weight": Raw((32, 2), Kind.Q8_0, 2 * block)}))
    (found,) = open_weights(path)
    with pytest.raises(BadInput, match=r"finite float32 values in a of .*64 infinite values"):
        found.load()


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "m.gguf", {"a.weight": (normal(5, 6), Kind.F32)})
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(ImportError, match=r"pip install 'obverse\[gguf\]'"):
        open_weights(path)


def test_a_name_that_says_nothing_is_no_hindrance(tmp_path):
    path = write(tmp_path / "m.gguf", {"a.weight": (normal(5, 6), Kind.F32)})
    (found,) = open_weights(path.rename(tmp_path / "blob-sha256"))
    assert (found.rows, found.columns) == (5, 6)
