"""Hostile data sets: idx, CIFAR, folders of images. Not for .npz, which is with the weights."""

from __future__ import annotations

import gzip
import io
import struct
from random import Random

from .case import OUTSIDE, Case, Content, Link, Sparse
from .mutate import number, some_bytes, text


def idx(random: Random) -> Case:
    dimensions = random.choice((1, 3))
    shape = [random.choice((0, 1, 5)), 4, 4][:dimensions]
    count = 1
    for side in shape:
        count *= side
    content = struct.pack(f">BBBB{dimensions}I", 0, 0, 8, dimensions, *shape) + random.randbytes(count)
    kind = random.randrange(6)
    if kind == 0:
        sides = [number(random) % 2**32 for _ in shape]
        content = (
            struct.pack(f">BBBB{dimensions}I", 0, 0, random.choice((8, 8, 9, 13)), dimensions, *sides)
            + content[4 + 4 * dimensions :]
        )
    elif kind == 1:
        content = some_bytes(content, random)
    elif kind == 2:
        content += bytes(random.choice((1, 10_000_000)))
    name = random.choice(("x-idx", "x-idx.gz"))
    if name.endswith(".gz") and random.random() < 0.9:
        content = gzip.compress(content, 1, mtime=0)
        if random.random() < 0.3:
            content = some_bytes(content, random)
        elif random.random() < 0.2:
            content += random.choice((content, b"\0" * 100, b"junk"))
    made: Content = content
    if random.random() < 0.02:
        made = Sparse(content, 2**33)
    return Case({name: made}, (f"idx{dimensions}", name))


def cifar(random: Random) -> Case:
    labels = random.choice((1, 2))
    record = labels + 3072
    files: dict[str, Content] = {}
    for part in range(random.choice((1, 2))):
        content = b"".join(
            bytes([random.randrange(10)] * labels) + random.randbytes(3072)
            for _ in range(random.randrange(4))
        )
        if random.random() < 0.5:
            content = some_bytes(content, random)
        elif random.random() < 0.3:
            content = content[: random.randrange(len(content) + 1)]
        files[f"batch{part}.bin"] = (
            Sparse(content, record * random.choice((10, 10**7))) if random.random() < 0.02 else content
        )
    if random.random() < 0.05:
        files["batch0.bin"] = Link("batch0.bin")
    return Case(files, (f"cifar{labels}", *files))


FORMATS = ("PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP", "GIF")


def image(random: Random, side: int = 6) -> bytes:
    from PIL import Image

    mode = random.choice(("L", "RGB", "RGB", "RGBA", "P", "1", "I;16", "LA", "CMYK", "F"))
    kind = random.choice(FORMATS)
    picture = Image.new(mode, (side, side))
    stream = io.BytesIO()
    try:
        picture.save(stream, kind)
    except (OSError, ValueError):  # a mode that the format has not
        Image.new("L", (side, side)).save(stream, kind)
    return stream.getvalue()


def giant(random: Random) -> bytes:
    """A small file that says it is a large image."""
    from PIL import Image

    side = random.choice((3000, 4096, 5000, 10_000, 13_000, 20_000, 60_000))
    stream = io.BytesIO()
    Image.new("1", (8, 8)).save(stream, "PNG")
    content = bytearray(stream.getvalue())
    if random.random() < 0.5:
        content[16:24] = struct.pack(">II", side, side)
        import zlib

        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        return bytes(content)
    stream = io.BytesIO()
    Image.new("1", (8, 8)).save(stream, "BMP")
    content = bytearray(stream.getvalue())
    content[18:26] = struct.pack("<ii", side, random.choice((side, -side)))
    return bytes(content)


def name_of(random: Random) -> str:
    """A name that a file system takes."""
    name = text(random).replace("/", "_").replace("\0", "").encode("utf-8", "replace").decode()[:60]
    return name if name.strip(". ") else "a"


def images(random: Random) -> Case:
    """Folders of classes, with broken images, names and links."""
    files: dict[str, Content] = {}
    classes = [
        name_of(random) if random.random() < 0.25 else label
        for label in ("cat", "dog", "owl")[: random.randrange(1, 4)]
    ]
    prefixes = random.choice((("",), ("",), ("train/", "test/")))
    for prefix in prefixes:
        for label in classes:
            for index in range(random.choice((1, 2, 3))):
                name = f"{index}.png" if random.random() < 0.9 else f"{index}{name_of(random)}.png"
                content: Content = image(random)
                kind = random.random()
                if kind < 0.25:
                    content = some_bytes(image(random), random)
                elif kind < 0.3:
                    content = giant(random)
                elif kind < 0.33:
                    content = image(random, random.choice((1, 2, 7, 300)))
                elif kind < 0.36:
                    content = random.choice(
                        (
                            b"",
                            b"GIF89a",
                            Link(f"{index}.png"),
                            Link("/dev/zero"),
                            Link("../../nowhere"),
                            Sparse(b"\x89PNG\r\n\x1a\n", 2**32),
                        )
                    )
                files[f"d/{prefix}{label}/{name}"] = content
    files[OUTSIDE] = b"outside"
    return Case(files, (random.choice(("data", "unlabelled")), "d"))
