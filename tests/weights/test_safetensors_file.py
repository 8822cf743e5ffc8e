"""Safetensors: the library is the oracle for values, and every lie of a header or an index is named."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from obverse._core.errors import BadInput
from obverse.weights._readers.open import open_weights
from obverse.weights._readers.safetensors import open_safetensors

INDEX = "model.safetensors.index.json"


def refused(path: Path, sentence: str) -> str:
    with pytest.raises(BadInput, match=sentence) as caught:
        _ = [(weight.load(), weight.load_bias()) for weight in open_weights(path)]
    return str(caught.value)


def written(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return path


def entry(shape: list[Any], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_values_and_order(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tensors = {f"layers.{n}.weight": torch.randn(3, 4) for n in (0, 2, 10)}
    tensors["layers.2.bias"] = torch.randn(3)
    tensors["half.weight"] = torch.randn(3, 4).half()
    tensors["eight.weight"] = torch.randn(3, 4).to(torch.float8_e5m2)
    tensors["brain.weight"] = torch.randn(3, 4).bfloat16()
    tensors["ints"] = torch.zeros(3, 4, dtype=torch.int8)
    save_file(tensors, tmp_path / "a.safetensors")
    found = {one.name: one for one in open_weights(tmp_path / "a.safetensors")}
    assert list(found) == ["brain", "eight", "half", "ints", "layers.0", "layers.2", "layers.10"]
    assert "int8 numbers" in found.pop("ints").left_out
    for name, weight in found.items():
        assert torch.equal(weight.load(), tensors[f"{name}.weight"].float())
    assert torch.equal(found["layers.2"].load_bias(), tensors["layers.2.bias"])  # type: ignore[arg-type]
    stored = open_safetensors(tmp_path / "a.safetensors")
    assert (stored["ints"].dtype, stored["ints"].shape) == ("i8", (3, 4))


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({"ok": entry([2], 0, 8), "b.weight": entry([20, 2], 8, 24)}, r"b\.weight: F32 of shape \[20, 2\]"),
        ({"b.weight": entry([2, 2], 0, 1600)}, r"b\.weight: .* at bytes 0 to 1600 of 24"),
        ({"b.weight": entry([2, 2], 8, 24), "ok": entry([2], 24, 8)}, "ok: F32"),
        ({"b.weight": entry([2**40, 2**40], 0, 16)}, r"b\.weight: F32"),
        ({"b.weight": entry([3, 8], 0, 24, "F8_E4M3")}, None),
        ({"b.weight": entry([3, 9], 0, 24, "F8_E4M3")}, r"b\.weight: F8_E4M3"),
        ({"b.weight": entry([2, 12], 0, 24, "BOOL"), "c": entry([9], 0, 24)}, r"c: F32"),
        ({"b.weight": entry([2, 3], 0, 24, "F31")}, r"b\.weight: F31"),
        ({"b.weight": entry(["x" * 99, 2**50], 0, 24)}, "safetensors in"),
        ({"b.weight": entry([2] * 40, 0, 24)}, "safetensors in"),
        ({"b.weight": 3}, "safetensors in"),
        ([1], "safetensors in"),
        (b"[" * 100000, "safetensors in"),
        (b"", "safetensors in"),
        (b"{}", "safetensors in"),
    ],
)
def test_headers_that_lie_are_refused_and_the_tensor_named(
    tmp_path: Path, header: Any, sentence: str | None
) -> None:
    path = written(tmp_path / "a.safetensors", header, bytes(24))
    if sentence is None:
        assert open_weights(path)[0].rows == 3
    else:
        assert str(path) in refused(path, sentence)


@pytest.mark.parametrize("length", [3, 10**6, 10**15, 2**64 - 1])
def test_headers_of_a_wrong_length_are_refused(tmp_path: Path, length: int) -> None:
    refused(
        written(tmp_path / "a.safetensors", {"a": entry([2, 3], 0, 24)}, bytes(24), length), "safetensors in"
    )


def test_tensors_that_cannot_be_judged_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    refused(written(path, {"b.weight": entry([0, 3], 0, 0)}), r"at least one value in b\.weight")
    refused(written(path, {"b.weight": entry([2, 1], 0, 16, "C64")}, bytes(16)), r"real numbers in b\.weight")
    refused(written(path, {"b.weight": entry([4, 4], 0, 8, "F4")}, bytes(8)), "got 1 2-dimensional f4")
    refused(written(path, {}), "got no tensors")
    save_file({"b.weight": torch.full((2, 2), torch.nan)}, path)
    assert str(path) in refused(path, "finite float32 values in b of .* got 4 NaN")


def test_a_file_that_vanishes_is_missed_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"b.weight": torch.eye(3)}, path)
    (weight,) = open_weights(path)
    path.unlink()
    with pytest.raises(BadInput, match=r"to read .*a\.safetensors"):
        weight.load()


def sharded(folder: Path, names: dict[str, Any] | None = None) -> Path:
    """Two shards and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"a.weight": torch.eye(3)}, folder / "model-1.safetensors")
    save_file({"b.weight": torch.ones(2, 3), "b.bias": torch.ones(2)}, folder / "model-2.safetensors")
    usual = {
        "b.weight": "model-2.safetensors",
        "b.bias": "model-2.safetensors",
        "a.weight": "model-1.safetensors",
    }
    index = {"metadata": {"total_size": 1}, "weight_map": usual if names is None else names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_shards_are_read_through_their_index(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    for path in (folder, folder / "model.safetensors.index.json"):
        found = open_weights(path)
        assert [(one.name, one.rows) for one in found] == [("a", 3), ("b", 2)]
        assert torch.equal(found[1].load(), torch.ones(2, 3))
        assert torch.equal(found[1].load_bias(), torch.ones(2))  # type: ignore[arg-type]


def test_shards_stay_in_their_folder(tmp_path: Path) -> None:
    outside = tmp_path / "secret.safetensors"
    save_file({"a.weight": torch.eye(3)}, outside)
    folder = tmp_path / "model"
    sharded(folder)
    (folder / "link.safetensors").symlink_to(outside)
    (folder / "inner.safetensors").symlink_to("model-1.safetensors")
    (folder / "folder").symlink_to(tmp_path)
    for name in (
        "../secret.safetensors",
        str(outside),
        "link.safetensors",
        "folder/secret.safetensors",
        "folder/model/model-1.safetensors/../../../secret.safetensors",
        "../model/model-1.safetensors",
    ):
        index = sharded(folder, {"a.weight": name}) / INDEX
        assert "nothing outside it is read" in refused(index, "only files inside")
    index = sharded(folder, {"a.weight": "inner.safetensors"}) / INDEX
    assert open_weights(index)[0].rows == 3


def test_links_to_blobs_are_how_hugging_face_keeps_a_snapshot(tmp_path: Path) -> None:
    snapshot = sharded(tmp_path / "models--x" / "snapshots" / "abc")
    blobs = tmp_path / "models--x" / "blobs"
    blobs.mkdir()
    for shard in sorted(snapshot.glob("*.safetensors")):
        shard.rename(blobs / f"{shard.stem}-hash")
        shard.symlink_to(Path("../../blobs") / f"{shard.stem}-hash")
    assert [one.name for one in open_weights(snapshot)] == ["a", "b"]
    # what several repositories have is kept once beside them, in a folder that is marked
    (tmp_path / "blobs" / "ab").mkdir(parents=True)
    (blobs / "model-1-hash").rename(tmp_path / "blobs" / "ab" / "shared")
    (blobs / "model-1-hash").symlink_to(Path("../../blobs/ab/shared"))
    refused(snapshot, "only files inside")
    (tmp_path / "blobs" / ".huggingface-shared-blobs").write_text("1\n")
    assert [one.name for one in open_weights(snapshot)] == ["a", "b"]
    (snapshot / "model-1.safetensors").unlink()
    (snapshot / "model-1.safetensors").symlink_to(tmp_path / "elsewhere")
    refused(snapshot, "only files inside")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            {"a.weight": "model-3.safetensors"},
            r"the file model-3\.safetensors that .*index\.json names; got none",
        ),
        ({"c.weight": "model-1.safetensors"}, r"the tensor c\.weight in model-1\.safetensors"),
        ({"a.weight": 3}, "the name of a file"),
        ({"a.weight": ["model-1.safetensors"]}, "the name of a file"),
        ({"a.weight": "a\0b"}, "the name of a file"),
        ({"a.weight": ""}, "the name of a file"),
        ({"a.weight": "."}, "got none"),
        ({}, "weight_map"),
        ([], "weight_map"),
    ],
)
def test_an_index_that_lies_is_refused(tmp_path: Path, names: Any, sentence: str) -> None:
    # The folder itself holds files that such an index does not name: which are meant cannot be told.
    refused(sharded(tmp_path, names) / INDEX, sentence)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"weight_map": NaN}', "[" * 10**5, '{"a": 1e999}', "\0"])
def test_an_index_must_be_json(tmp_path: Path, text: str) -> None:
    sharded(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(text)
    refused(tmp_path, "index of a sharded model|an empty file")


def test_a_huge_index_is_not_read(tmp_path: Path) -> None:
    sharded(tmp_path)
    with (tmp_path / "model.safetensors.index.json").open("wb") as file:
        file.truncate(10**10)
    refused(tmp_path, "at most")
