from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.helpers import peak_memory
from obverse._core.errors import BadInput
from obverse.data._npz import load_npz


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def npy(header: str, content: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


def pack(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name + ".npy", content)
    return path


def test_bytes_are_divided_and_split(tmp_path: Path) -> None:
    levels = np.arange(10 * 2 * 2, dtype=np.uint8).reshape(10, 2, 2)
    data = load_npz(save(tmp_path / "ten.npz", x=levels, y=np.arange(10) % 3))
    assert str(data) == "ten: 8 train + 2 test, 1×2×2, 3 classes"
    assert data.classes == ("0", "1", "2")
    both = torch.cat((data.train_x, data.test_x)).flatten().sort().values
    assert torch.allclose(both, torch.arange(40.0) / 255)


def test_floats_are_taken_as_they_are(tmp_path: Path) -> None:
    x = np.linspace(-3, 3, 12).reshape(6, 2)  # big-endian and Fortran order must not matter
    arrays = {"train_x": np.asfortranarray(x.astype(">f8")), "test_x": x[:2], "test_y": np.array([1, 1])}
    data = load_npz(save(tmp_path / "a.npz", **arrays, train_y=np.array([0, 1, 4, 0, 0, 0], np.uint8)))
    assert torch.equal(data.train_x, torch.from_numpy(x).float())
    assert data.train_y.dtype == torch.int64
    assert data.train_y.tolist() == [0, 1, 4, 0, 0, 0]
    assert data.input_shape == (2,)
    assert len(data.classes) == 5


def test_compressed_images_with_channels(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "c.npz", x=np.zeros((5, 3, 8, 8), np.uint8), y=np.zeros(5, np.int8))
    assert load_npz(tmp_path / "c.npz").input_shape == (3, 8, 8)


X, Y = np.zeros((4, 3), np.float32), np.zeros(4, np.int64)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": X}, "arrays x, y or train_x, train_y, test_x, test_y"),
        ({"a": X, "b": Y}, "got a, b"),
        ({"x": X, "y": Y[:3]}, "4 labels as y"),
        ({"x": X, "y": Y[:, None]}, "4 labels as y"),
        ({"x": X, "y": Y.astype(float)}, "integers for y"),
        ({"x": X, "y": Y - 1}, "labels from 0"),
        ({"x": X, "y": Y + 10**9}, "labels from 0"),
        ({"x": X, "y": np.full(4, 2**64 - 1, np.uint64)}, "labels from 0"),
        ({"x": X * np.nan, "y": Y}, "finite"),
        ({"x": X + np.inf, "y": Y}, "finite"),
        ({"x": X.astype(np.float64) + 1e300, "y": Y}, "finite"),
        ({"x": X.astype(np.int32), "y": Y}, "uint8 or floating"),
        ({"x": X.astype(complex), "y": Y}, "uint8 or floating"),
        ({"x": X.astype("U3"), "y": Y}, "uint8 or floating"),
        ({"x": X[0, 0], "y": Y}, "at least one value"),
        ({"x": X[:0], "y": Y[:0]}, "at least one value"),
        ({"x": X[:, 0], "y": Y}, "N×D"),
        ({"x": np.zeros((4, 8, 8, 3), np.uint8), "y": Y}, "channels first"),
        ({"x": np.array([None] * 4), "y": Y}, "pickled objects"),
        ({"train_x": X, "train_y": Y, "test_x": X[:, :2], "test_y": Y}, "one shape"),
        ({"train_x": X, "train_y": Y, "test_x": X, "test_y": Y[:1]}, "4 labels as test_y"),
    ],
)
def test_unsuitable_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    path = save(tmp_path / "bad.npz", **arrays)
    with pytest.raises(BadInput, match=sentence) as caught:
        load_npz(path)
    assert str(path) in str(caught.value)


def huge(shape: str) -> str:
    return f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    "header",
    [
        huge("(1000000000, 784)"),
        huge("(1000000, 784)"),
        huge("(-2, -3)"),
        huge("(4.5,)"),
        huge("(2, 3"),
        "{'descr': '|u1'}",
        "(" * 5000,
        huge("(2, 3)").replace("u1", "O"),
        huge("(2, 3)").replace("u1", "nonsense"),
        "__import__('os').system('false')",
    ],
)
def test_headers_that_promise_too_much_cost_nothing(tmp_path: Path, header: str) -> None:
    path = pack(tmp_path / "h.npz", x=npy(header, bytes(6)), y=npy(huge("(2,)"), bytes(2)))

    def refused() -> None:
        with pytest.raises(BadInput, match=r"h\.npz"):
            load_npz(path)

    assert peak_memory(refused) < 8 * 2**20


def test_zip_sizes_that_the_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    claimed = npy(huge("(1000000, 784)"))
    path = pack(tmp_path / "z.npz", x=claimed + bytes(100), y=npy(huge("(2,)"), bytes(2)))
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"PK\x01\x02")  # the central directory: uncompressed size is at +24
    raw[entry + 24 : entry + 28] = (len(claimed) + 784_000_000).to_bytes(4, "little")
    path.write_bytes(raw)
    with pytest.raises(BadInput, match=r"a size that fits the file for x\.npy"):
        load_npz(path)


def test_other_compressions_and_versions_are_refused(tmp_path: Path) -> None:
    x, y = npy(huge("(2, 3)"), bytes(6)), npy(huge("(2,)"), bytes(2))
    with pytest.raises(BadInput, match="stored or deflated"):
        load_npz(pack(tmp_path / "bz.npz", zipfile.ZIP_BZIP2, x=x, y=y))
    with pytest.raises(BadInput, match=r"version 1\.0 or 2\.0"):
        load_npz(pack(tmp_path / "v.npz", x=x.replace(b"NUMPY\x01", b"NUMPY\x03"), y=y))
    load_npz(pack(tmp_path / "fine.npz", x=x, y=y))


def only_bad_input(path: Path, content: bytes) -> None:
    """Either it can be read, or the one kind of error names the file."""
    path.write_bytes(content)
    sentence = str(path)
    try:
        load_npz(path)
    except BadInput as error:
        sentence = str(error)
    assert str(path) in sentence


def sound() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.arange(12, dtype=np.uint8).reshape(4, 3), y=np.array([0, 1, 1, 0]))
    return buffer.getvalue()


SOUND = sound()


@settings(deadline=None)
@given(content=st.binary(max_size=300))
def test_random_bytes_give_only_bad_input(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    only_bad_input(tmp_path_factory.getbasetemp() / "random.npz", content)


@settings(deadline=None, max_examples=150)
@given(changes=st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), min_size=1))
def test_changed_bytes_give_only_bad_input_and_little_memory(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(SOUND)
    for place, value in changes:
        content[place] = value
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    assert peak_memory(lambda: only_bad_input(path, bytes(content))) < 8 * 2**20


@settings(deadline=None)
@given(
    header=st.text(st.characters(max_codepoint=255), max_size=80)
    | st.from_regex(
        r"\{'descr': '[<>|][a-zA-Z]\d{1,3}', 'fortran_order': (True|False), "
        r"'shape': \(\d{1,12}, -?\d{1,12}\)\}",
        fullmatch=True,
    )
)
def test_any_npy_header_gives_only_bad_input(tmp_path_factory: pytest.TempPathFactory, header: str) -> None:
    path = tmp_path_factory.getbasetemp() / "header.npz"
    pack(path, x=npy(header, bytes(24)), y=npy(huge("(2,)"), bytes(2)))
    assert peak_memory(lambda: only_bad_input(path, path.read_bytes())) < 8 * 2**20
