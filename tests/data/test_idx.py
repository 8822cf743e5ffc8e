from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data.helpers import idx_bytes, peak_memory
from obverse._core.errors import BadInput
from obverse.data._idx import read_idx

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["images", "images.gz"])
def test_reads_what_was_written(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, idx_bytes(IMAGES))
    assert np.array_equal(read_idx(path, 3), IMAGES)
    assert np.array_equal(read_idx(path, 3, (2, 3, 4)), IMAGES)


@pytest.mark.parametrize("name", ["broken", "broken.gz"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "at least 16 bytes"),
        (b"\0\0\x08", "at least 16 bytes"),
        (idx_bytes(IMAGES.astype(np.float32))[:2] + b"\x0d\x03" + bytes(12), "magic 00000803"),
        (idx_bytes(IMAGES[0]), "magic 00000803"),
        (idx_bytes(IMAGES)[:-1], "shape"),
        (idx_bytes(IMAGES) + b"x", "shape"),
        (b"\0\0\x08\x03" + b"\xff" * 12 + bytes(50), "at most 8 GiB"),
        (b"\0\0\x08\x03" + b"\0\0\x04\0" * 3 + bytes(50), "shape"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(BadInput, match=sentence) as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_other_counts_than_expected_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "images", idx_bytes(IMAGES))
    with pytest.raises(BadInput, match=r"expected shape \(60000, 28, 28\).*got \(2, 3, 4\)"):
        read_idx(path, 3, (60000, 28, 28))


def test_damaged_gzip_and_missing_files_are_named(tmp_path: Path) -> None:
    whole = gzip.compress(idx_bytes(IMAGES))
    for content in (b"no gzip at all", whole[:-10], whole[:20] + b"\xff" + whole[21:]):
        (tmp_path / "x.gz").write_bytes(content)
        with pytest.raises(BadInput, match=r"x\.gz"):
            read_idx(tmp_path / "x.gz", 3)
    with pytest.raises(BadInput, match="nowhere"):
        read_idx(tmp_path / "nowhere", 3)


def only_bad_input(path: Path, content: bytes) -> None:
    """Either it can be read, or the one kind of error names the file."""
    path.write_bytes(content)
    sentence = str(path)
    try:
        read_idx(path, 3)
    except BadInput as error:
        sentence = str(error)
    assert str(path) in sentence


@settings(deadline=None)
@given(content=st.binary(max_size=200), magic=st.booleans(), packed=st.booleans())
@example(content=b"\0\0\x7f\xff" * 3, magic=True, packed=True)
def test_no_bytes_crash_the_reader_or_make_it_allocate(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, magic: bool, packed: bool
) -> None:
    content = b"\0\0\x08\x03" + content if magic else content
    path = tmp_path_factory.getbasetemp() / ("any.gz" if packed else "any")
    content = gzip.compress(content) if packed else content
    # One read chunk is 1 MiB; what headers of 200 bytes can promise is gigabytes.
    assert peak_memory(lambda: only_bad_input(path, content)) < 4 * 2**20


@settings(deadline=None)
@given(place=st.integers(0, 15), value=st.integers(0, 255), packed=st.booleans())
def test_one_changed_header_byte_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int, packed: bool
) -> None:
    content = bytearray(idx_bytes(IMAGES))
    changed = content[place] != value
    content[place] = value
    path = write(tmp_path_factory.getbasetemp() / ("one.gz" if packed else "one"), bytes(content))
    if changed:
        with pytest.raises(BadInput):
            read_idx(path, 3)
    else:
        assert np.array_equal(read_idx(path, 3), IMAGES)
