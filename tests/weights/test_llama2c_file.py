"""llama2.c: checkpoints written here with struct, in the order of its exporter."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from obverse import BadInput
from obverse.weights import open_weights

DIM, HIDDEN, LAYERS, HEADS, KV, WORDS, LENGTH = 24, 40, 2, 4, 2, 50, 16
NUMBERS = (DIM, HIDDEN, LAYERS, HEADS, KV, WORDS, LENGTH)
SHAPES = {
    "attention.wq": (DIM, DIM),
    "attention.wk": (DIM * KV // HEADS, DIM),
    "attention.wv": (DIM * KV // HEADS, DIM),
    "attention.wo": (DIM, DIM),
    "feed_forward.w1": (HIDDEN, DIM),
    "feed_forward.w2": (DIM, HIDDEN),
    "feed_forward.w3": (HIDDEN, DIM),
}


def parameters() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    names = {"tok_embeddings": (WORDS, DIM), "output": (WORDS, DIM)}
    for layer in range(LAYERS):
        names |= {f"layers.{layer}.{name}": shape for name, shape in SHAPES.items()}
    return {name: rng.normal(size=shape).astype("<f4") for name, shape in names.items()}


def old(found: dict[str, Any], shared: bool) -> bytes:
    """Embedding, each kind of weight for all layers, norms among them, angles, perhaps the output."""
    words = WORDS if shared else -WORDS
    content = struct.pack("<7i", DIM, HIDDEN, LAYERS, HEADS, KV, words, LENGTH)
    norms = np.ones((LAYERS, DIM), "<f4").tobytes()
    content += found["tok_embeddings"].tobytes() + norms
    for name in list(SHAPES)[:4]:
        content += b"".join(found[f"layers.{layer}.{name}"].tobytes() for layer in range(LAYERS))
    content += norms
    for name in list(SHAPES)[4:]:
        content += b"".join(found[f"layers.{layer}.{name}"].tobytes() for layer in range(LAYERS))
    content += np.ones(DIM, "<f4").tobytes() + 2 * np.ones((LENGTH, DIM // HEADS // 2), "<f4").tobytes()
    return content + (b"" if shared else found["output"].tobytes())


def new(found: dict[str, Any], shared: bool) -> bytes:
    """Version 1: a header of 256 bytes, all norms, then the matrices."""
    content = struct.pack("<Ii7iB", 0x616B3432, 1, *NUMBERS, shared).ljust(256, b"\0")
    content += np.ones((2 * LAYERS + 1, DIM), "<f4").tobytes() + found["tok_embeddings"].tobytes()
    for name in SHAPES:
        content += b"".join(found[f"layers.{layer}.{name}"].tobytes() for layer in range(LAYERS))
    return content + (b"" if shared else found["output"].tobytes())


def tokenizer(words: int = WORDS) -> bytes:
    texts = [b"x" * (1 + at % 7) for at in range(words)]
    parts = (struct.pack("<fi", -1.5, len(one)) + one for one in texts)
    return struct.pack("<i", 7) + b"".join(parts)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("write", [old, new])
@pytest.mark.parametrize("name", ["stories.bin", "model.data"])
def test_every_matrix_is_where_the_exporter_puts_it(tmp_path, write, shared, name):
    expected = parameters()
    if shared:
        del expected["output"]
    path = tmp_path / name
    path.write_bytes(write(expected, shared))
    found = {one.name: one for one in open_weights(path)}
    assert set(found) == set(expected)
    assert list(found)[:3] == ["tok_embeddings", "layers.0.attention.wq", "layers.0.attention.wk"]
    for one, values in expected.items():
        np.testing.assert_array_equal(found[one].load().numpy(), values)
        assert found[one].kind == ("embedding" if one == "tok_embeddings" else "linear")


def test_a_tokenizer_behind_it_is_passed_over_and_said(tmp_path, obverse):
    path = tmp_path / "stories.bin"
    path.write_bytes(old(parameters(), True) + tokenizer())
    assert len(open_weights(path)) == 1 + 7 * LAYERS
    done = obverse("audit", path, "--samples", "2", "--layers", "tok*")
    assert done.code == 0
    said = f"stories.bin: a tokenizer follows the weights; its {len(tokenizer()):,} bytes are passed over"
    assert said in done.err


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content + bytes(4 + 8 * WORDS),
        lambda content: content + tokenizer()[:-1],
        lambda content: content + tokenizer() + b"\0",
        lambda content: content + tokenizer(WORDS + 1),
        lambda content: struct.pack("<i", 0) + content[4:],
        lambda content: struct.pack("<i", 25) + content[4:],
        lambda content: content[:8] + struct.pack("<i", 2**31 - 1) + content[12:],
        lambda content: content[:12] + struct.pack("<i", 0) + content[16:],
        lambda content: content[:20] + struct.pack("<i", -(2**31)) + content[24:],
        lambda content: content[:10],
    ],
)
def test_anything_else_is_no_checkpoint(tmp_path, change):
    path = tmp_path / "stories.bin"
    path.write_bytes(change(old(parameters(), True)))
    with pytest.raises(BadInput, match=r"a file of torch\.save or a pickle of arrays"):
        open_weights(path)


def test_files_of_torch_are_never_taken_for_one(tmp_path):
    state = {"a.weight": torch.randn(5, 4)}
    for place, new_format in enumerate((True, False)):
        path = tmp_path / f"{place}.bin"
        torch.save(state, path, _use_new_zipfile_serialization=new_format)
        (found,) = open_weights(path)
        assert torch.equal(found.load(), state["a.weight"])


def test_whole_numbers_of_version_2_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "q80.bin"
    path.write_bytes(struct.pack("<Ii7iBi", 0x616B3432, 2, *NUMBERS, 1, 8).ljust(1000, b"\0"))
    with pytest.raises(BadInput, match=r"got version 2, .*; export it again with --version 1"):
        open_weights(path)
