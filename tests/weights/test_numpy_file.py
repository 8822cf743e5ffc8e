"""Arrays: NumPy is the oracle for values; headers and archives that promise too much cost nothing."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.weights._readers.open import open_weights


def refused(path: Path, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        _ = [(weight.load(), weight.load_bias()) for weight in open_weights(path)]
    assert str(path) in str(caught.value)


def npy(shape: str, content: bytes = b"", descr: str = "<f4", version: bytes = b"\x01\x00") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + content


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f2", "longdouble"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_array_is_named_after_its_file(tmp_path: Path, dtype: str, order: Any) -> None:
    values = np.array([[0.5, -2, 1.5], [0, 4, -0.25]], dtype=dtype, order=order)  # exact in all of them
    np.save(tmp_path / "layer.npy", values)
    (weight,) = open_weights(tmp_path / "layer.npy")
    assert (weight.name, weight.kind, weight.rows, weight.columns) == ("layer", "matrix", 2, 3)
    assert torch.equal(weight.load(), torch.from_numpy(values.astype(np.float32)))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_an_archive(tmp_path: Path, save: Any) -> None:
    random = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "fc.weight": random.normal(size=(3, 4)),
        "fc.bias": random.normal(size=3),
        "../../up.weight": random.normal(size=(2, 2)),
        "conv": random.normal(size=(4, 3, 2, 2)).astype(np.float32),
        "zeros.weight": np.zeros((500, 500)),  # deflates a thousandfold, which is honest
        "steps": np.arange(6).reshape(2, 3),
        "scalar": np.float32(3),
    }
    save(tmp_path / "a.npz", **arrays)
    found = {one.name: one for one in open_weights(tmp_path / "a.npz")}
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items()} == {
        "fc": ("linear", 3, 4),
        "../../up": ("linear", 2, 2),  # a name, never a path
        "conv": ("convolution", 4, 12),
        "zeros": ("linear", 500, 500),
    }
    assert torch.equal(found["fc"].load(), torch.from_numpy(arrays["fc.weight"]).float())
    assert torch.equal(found["fc"].load_bias(), torch.from_numpy(arrays["fc.bias"]).float())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == [tmp_path / "a.npz"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (npy("(1000000, 1000000)", bytes(24)), r"a size that fits shape \(1000000, 1000000\)"),
        (npy("(-2, -3)", bytes(24)), "a size that fits"),
        (npy("(2, 3)", bytes(20)), "a size that fits"),
        (npy("(2, 3)", bytes(28)), "a size that fits"),
        (npy("(2, 3)", bytes(24), "O"), "pickled objects, which are never loaded|a pickle of arrays in"),
        (npy("(2, 3)", bytes(24), version=b"\x03\x00"), r"version 1\.0 or 2\.0"),
        (npy("(2, 3)", bytes(24), "nonsense"), "a sound .npy"),
        (npy("__import__('os').system('false')", bytes(24)), "a sound .npy"),
        (npy("(2, 3)", bytes(48), "<c8"), "real numbers in a"),
        (npy("(2, 3)", bytes(6), "|i1"), "got 1 2-dimensional int8"),
        (npy("(0, 3)"), "at least one value in a"),
        (npy("(6,)", bytes(24)), "floating-point matrices"),
        (npy("(2, 3)", b"\xff" * 24), r"finite float32 values in a .* got 6 NaN .* \[0, 0\]"),
        (b"\x93NUMPY", "a sound .npy"),
        (b"other bytes", "a sound .npy"),
    ],
)
def test_arrays_that_are_not_what_they_say(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    refused(path, sentence)  # what is imported on the way is not memory of the file
    tracemalloc.start()
    try:
        refused(path, sentence)
        with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", content)
        refused(tmp_path / "b.npz", sentence.replace("a sound .npy", "a sound .npz"))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_archives_that_unfold_to_too_much(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy("(8192, 16384)") + bytes(100))
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"PK\x01\x02")  # the central directory: uncompressed size is at +24
    raw[entry + 24 : entry + 28] = (2**29 + len(npy("(8192, 16384)"))).to_bytes(4, "little")
    path.write_bytes(raw)
    refused(path, r"at most 100 times the size of the file in a\.npy")
    raw[entry + 24 : entry + 28] = (2**27).to_bytes(4, "little")
    path.write_bytes(raw)
    refused(path, r"a size that fits the file for a\.npy")


def test_other_compressions_and_broken_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.npy", npy("(2, 3)", bytes(24)))
    refused(path, "stored or deflated")
    np.savez(path, a=np.ones((20, 30)))
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-40])
    refused(path, "a sound .npz")
    content[1000] ^= 1  # a value: the checksum tells
    path.write_bytes(content)
    refused(path, "a sound .npz .*CRC")


def test_values_too_large_for_float32(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((2, 2), 1e300))
    refused(tmp_path / "a.npy", "0 NaN and 4 infinite")
