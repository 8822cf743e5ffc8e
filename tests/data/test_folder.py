from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
import torch
from PIL import Image

from obverse._core.errors import BadInput
from obverse.data._folder import load_folder


def draw(path: Path, colour: object = 0, mode: str = "L", size: tuple[int, int] = (4, 3)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def test_sub_folders_are_classes_split_the_same_way_each_time(tmp_path: Path) -> None:
    for index in range(5):
        draw(tmp_path / "cat" / f"{index}.png", index)
        draw(tmp_path / "dog" / f"{index}.png", 250 + index)
    (tmp_path / "README.txt").write_text("loose files are not looked at")
    (tmp_path / "cat" / ".DS_Store").write_bytes(b"nor are hidden ones")
    data = load_folder(tmp_path)
    assert data.classes == ("cat", "dog")
    assert data.input_shape == (1, 3, 4)  # height before width
    assert (len(data.train_y), len(data.test_y)) == (8, 2)
    for x, y in ((data.train_x, data.train_y), (data.test_x, data.test_y)):
        assert torch.equal((x[:, 0, 0, 0] > 0.5).long(), y)
    assert torch.equal(data.test_x, load_folder(tmp_path).test_x)


def test_train_and_test_folders_are_kept(tmp_path: Path) -> None:
    draw(tmp_path / "train" / "a" / "1.png", (255, 0, 51), "RGB")
    draw(tmp_path / "train" / "b" / "1.bmp", (0, 255, 0), "RGB")
    draw(tmp_path / "test" / "b" / "1.jpg", 128, "L")
    data = load_folder(tmp_path)
    assert data.train_x[0, :, 0, 0].tolist() == pytest.approx([1, 0, 0.2])
    assert data.train_y.tolist() == [0, 1]
    assert data.test_y.tolist() == [1]
    # One colour image makes all of them colour; grey becomes three equal channels (JPEG: to a level).
    assert data.test_x[0, :, 0, 0].tolist() == pytest.approx([128 / 255] * 3, abs=1.5 / 255)


def test_palette_and_alpha_become_rgb(tmp_path: Path) -> None:
    draw(tmp_path / "a" / "1.png", (10, 20, 30, 0), "RGBA")
    Image.new("RGB", (4, 3), (10, 20, 30)).convert("P", palette=Image.Palette.ADAPTIVE).save(
        tmp_path / "a" / "2.png"
    )
    x = load_folder(tmp_path).train_x
    assert (x[0, :, 0, 0] * 255).round().tolist() == [10, 20, 30]


def test_an_odd_size_is_named(tmp_path: Path) -> None:
    draw(tmp_path / "a" / "1.png")
    odd = draw(tmp_path / "b" / "2.png", size=(3, 4))
    with pytest.raises(BadInput, match="one size, 4×3") as caught:
        load_folder(tmp_path)
    assert f"3×4 in {odd}" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"just text", b"\x89PNG\r\n\x1a\n", b"%!PS-Adobe-3.0 EPSF-3.0\n"])
def test_what_is_no_image_is_named(tmp_path: Path, content: bytes) -> None:
    draw(tmp_path / "a" / "1.png")
    (tmp_path / "a" / "2.png").write_bytes(content)
    with pytest.raises(BadInput, match=r"a/2\.png"):
        load_folder(tmp_path)


def test_truncated_pixels_are_named(tmp_path: Path) -> None:
    path = draw(tmp_path / "a" / "1.png", size=(64, 64))
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(BadInput, match=r"can be decoded, as .*a/1\.png"):
        load_folder(tmp_path)


def test_sixteen_bit_images_are_refused_not_clipped(tmp_path: Path) -> None:
    draw(tmp_path / "a" / "1.png", 1000, "I;16")
    with pytest.raises(BadInput, match="8-bit grey or colour"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        (4097, "at most 16,777,216 pixels"),
        (10_000, "decompression bomb"),  # where Pillow only warns
        (60_000, "decompression bomb"),
    ],
)
def test_decompression_bombs_are_refused_by_their_header(tmp_path: Path, side: int, sentence: str) -> None:
    chunks = (b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0), b"IDAT" + zlib.compress(b"\0"))
    content = b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    with pytest.raises(BadInput, match=sentence) as caught:
        load_folder(tmp_path)
    assert "bomb.png" in str(caught.value)


def test_folders_that_make_no_sense_are_explained(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a sub-folder for each class"):
        load_folder(tmp_path)
    draw(tmp_path / "train" / "a" / "1.png")
    with pytest.raises(BadInput, match=r"train/a; got a folder"):  # test/ is missing
        load_folder(tmp_path)
    draw(tmp_path / "test" / "z" / "1.png")
    with pytest.raises(BadInput, match=r"only classes of .*train .*got z"):
        load_folder(tmp_path)
    (tmp_path / "train" / "z").mkdir()
    with pytest.raises(BadInput, match=r"images in .*train/z; got none"):
        load_folder(tmp_path)


def test_a_dangling_link_is_named(tmp_path: Path) -> None:
    draw(tmp_path / "a" / "1.png")
    (tmp_path / "a" / "2.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(BadInput, match=r"a/2\.png; got no file"):
        load_folder(tmp_path)
