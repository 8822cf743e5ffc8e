"""Tensors in files: bit for bit, whole or not at all, and nothing but a sentence for what is broken."""

import hashlib
import json
import struct
from pathlib import Path

import pytest
import torch

from obverse._core.errors import BadInput
from obverse._core.files import WriteFailed
from obverse._core.tensors import load_tensors, parse_tensors, save_tensors

TYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3, 4), (5,), (), (0,), (2, 0, 3)])
def test_tensors_come_back_bit_for_bit(dtype, shape, tmp_path):
    tensor = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 100).to(dtype)
    said = save_tensors(tmp_path / "file", {"one": tensor, "two": tensor.clone()})
    assert said == hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest()
    found = load_tensors(tmp_path / "file")
    assert set(found) == {"one", "two"}
    for one in found.values():
        assert one.dtype == dtype
        assert one.shape == tensor.shape
        assert bits(one) == bits(tensor)


def test_numbers_that_are_none_keep_their_bits(tmp_path):
    tensor = torch.tensor([float("nan"), float("inf"), -0.0, 5e-324], dtype=torch.float64)
    save_tensors(tmp_path / "file", {"one": tensor})
    assert bits(load_tensors(tmp_path / "file")["one"]) == bits(tensor)


def test_views_and_parameters_are_written_as_what_they_show(tmp_path):
    base = torch.arange(12.0).reshape(3, 4)
    weight = torch.nn.Parameter(torch.ones(2))
    save_tensors(tmp_path / "file", {"turned": base.T, "weight": weight})
    found = load_tensors(tmp_path / "file")
    assert torch.equal(found["turned"], base.T)
    assert torch.equal(found["weight"], torch.ones(2))
    assert not found["weight"].requires_grad


def test_the_same_tensors_make_the_same_file(tmp_path):
    tensors = {"b": torch.arange(3), "a": torch.ones(2)}
    first = save_tensors(tmp_path / "one", tensors)
    assert first == save_tensors(tmp_path / "two", dict(reversed(tensors.items())))
    assert first != save_tensors(tmp_path / "three", {**tensors, "a": torch.zeros(2)})


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    save_tensors(path, {"a": torch.ones(2)})
    before = path.read_bytes()

    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(WriteFailed, match="No space left"):
        save_tensors(path, {"a": torch.zeros(200)})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_places_that_cannot_be_written(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(WriteFailed, match="expected to write"):
            save_tensors(path, {"a": torch.ones(2)})


def file_of(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


BROKEN = {
    "nothing": b"",
    "text": b"not a file of tensors at all",
    "header too long": struct.pack("<Q", 2**40) + b"{}",
    "no JSON": file_of(b"{]"),
    "no mapping": file_of([1, 2]),
    "unknown type": file_of({"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8),
    "a type torch has not": file_of({"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"\0"),
    "data missing": file_of({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 7),
    "data left over": file_of({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 9),
    "shape too large": file_of({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"\0" * 8),
    "shape beyond all": file_of(
        {"a": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 8]}}, b"\0" * 8
    ),
    "negative shape": file_of({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, b"\0" * 8),
    "overlap": file_of(
        {
            "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
            "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]},
        },
        b"\0" * 6,
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_refused_in_a_sentence(kind, tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(BROKEN[kind])
    with pytest.raises(BadInput, match=r"expected safetensors in .*broken; got .+; restore it"):
        load_tensors(path)
    with pytest.raises(BadInput, match="expected safetensors in elsewhere"):
        parse_tensors(BROKEN[kind], Path("elsewhere"))


def test_a_file_cut_anywhere_is_refused(tmp_path):
    save_tensors(tmp_path / "file", {"a": torch.arange(5), "b": torch.ones(3)})
    content = (tmp_path / "file").read_bytes()
    for size in range(len(content)):
        with pytest.raises(BadInput):
            parse_tensors(content[:size], tmp_path / "file")
    assert set(parse_tensors(content, tmp_path / "file")) == {"a", "b"}


def test_pickles_are_never_opened(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "file")
    with pytest.raises(BadInput):
        load_tensors(tmp_path / "file")


def test_no_file(tmp_path):
    with pytest.raises(BadInput, match=r"^No such file or folder: "):
        load_tensors(tmp_path / "none")
    with pytest.raises(BadInput, match="Is a directory"):
        load_tensors(tmp_path)
