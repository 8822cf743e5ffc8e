"""Pictures beside a result: untrusted files like the rest."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from obverse import BadInput
from obverse.data import load, load_unlabelled
from obverse.present import read_png


def png_that_claims(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header promises so many pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [5_000, 10_000, 12_000, 60_000])  # below and beyond both of Pillow's limits
def test_images_that_claim_more_pixels_than_anybody_has_are_refused(tmp_path, side):
    for split in ("train", "test"):
        (tmp_path / split / "a").mkdir(parents=True)
        (tmp_path / split / "a" / "1.png").write_bytes(png_that_claims(side, side))
    picture = tmp_path / "train" / "a" / "1.png"
    with pytest.raises(BadInput):
        load(tmp_path)
    with pytest.raises(BadInput, match="only broken ones"):
        load_unlabelled(tmp_path)
    with pytest.raises(BadInput, match="expected a sheet"):
        read_png(picture, (10, 10), 1, 2**20, "a sheet", "make it again")


def test_a_sound_picture_is_read_and_a_link_is_not(tmp_path):
    pixels = np.arange(100, dtype=np.uint8).reshape(10, 10)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert np.array_equal(read_png(tmp_path / "a.png", (10, 10), 1, 2**20, "a sheet", "do"), pixels)
    (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
    with pytest.raises(BadInput, match="another file"):
        read_png(tmp_path / "b.png", (10, 10), 1, 2**20, "a sheet", "do")
    with pytest.raises(BadInput, match="at most 20 bytes"):
        read_png(tmp_path / "a.png", (10, 10), 1, 20, "a sheet", "do")
