"""Small files of the official formats, a local web server that can misbehave, a memory meter."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from obverse.data._sources import CIFAR_PIXELS, MNIST_CLASSES, Download, File, Known, idx_set

IDX_NAMES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def idx_bytes(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def idx_contents(train: int = 5, test: int = 3) -> list[bytes]:
    """Uncompressed contents in the order of IDX_NAMES; incompressible, so that truncation cuts real data."""
    random = np.random.default_rng(1)
    return [
        idx_bytes(array)
        for count in (train, test)
        for array in (
            random.integers(0, 256, (count, 28, 28), np.uint8),
            random.integers(0, 10, count, np.uint8),
        )
    ]


def tiny_mnist(base: str, train: int = 5, test: int = 3) -> tuple[Known, dict[str, bytes]]:
    """An MNIST of a few images at `base`, and the files to serve."""
    contents = idx_contents(train, test)
    known = idx_set(base, MNIST_CLASSES, tuple(md5(content) for content in contents), train, test)
    return known, {f"/{n}": gzip.compress(c) for n, c in zip(IDX_NAMES, contents, strict=True)}


def cifar_bytes(labels: list[tuple[int, ...]], seed: int = 0) -> bytes:
    random = np.random.default_rng(seed)
    return b"".join(bytes(label) + random.bytes(CIFAR_PIXELS) for label in labels)


def tar_bytes(members: list[tuple[str | tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def tiny_cifar100(base: str) -> tuple[Known, dict[str, bytes]]:
    """A CIFAR-100 of 3 + 2 images whose only checksum is the archive's, as with the real one."""
    train, test = cifar_bytes([(0, 7), (19, 99), (3, 0)]), cifar_bytes([(1, 42), (2, 5)], seed=1)
    archive = tar_bytes(
        [
            ("cifar-100-binary/fine_label_names.txt", b"apple\n"),
            ("cifar-100-binary/train.bin", train),
            ("cifar-100-binary/test.bin", test),
        ]
    )
    files = (
        File("cifar-100-binary/train.bin", len(train), None),
        File("cifar-100-binary/test.bin", len(test), None),
    )
    download = Download(base + "cifar-100-binary.tar.gz", files, md5(archive))
    known = Known("cifar", tuple(map(str, range(100))), 3, 2, (download,), label_bytes=2)
    return known, {"/cifar-100-binary.tar.gz": archive}


def peak_memory(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


Reply = Callable[["_Handler", bytes], None]


class Site:
    """What the server serves, how it answers next, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.plan: list[Reply] = []  # the next answers, in turn; then `usual`
        self.usual: Reply = good
        self.asked: list[tuple[str, str | None]] = []  # path and Range of each request
        self.lock = threading.Lock()
        self.base = ""


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for every answer

    def __init__(self, site: Site) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = site

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        with site.lock:
            site.asked.append((self.path, self.headers.get("Range")))
            reply = site.plan.pop(0) if site.plan else site.usual
        reply(self, site.files[self.path])

    def log_message(self, format: str, *args: object) -> None:
        pass

    def head(self, code: int, **headers: object) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()


def good(handler: _Handler, body: bytes) -> None:
    """With Range, as real servers do it."""
    asked = handler.headers.get("Range")
    start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
    if asked and start >= len(body):
        handler.head(416, Content_Range=f"bytes */{len(body)}", Content_Length=0)
        return
    rest = body[start:]
    if asked:
        span = f"bytes {start}-{len(body) - 1}/{len(body)}"
        handler.head(206, Content_Range=span, Content_Length=len(rest))
    else:
        handler.head(200, Content_Length=len(rest))
    handler.wfile.write(rest)


def ignore_range(handler: _Handler, body: bytes) -> None:
    handler.head(200, Content_Length=len(body))
    handler.wfile.write(body)


def without_length(handler: _Handler, body: bytes) -> None:
    handler.head(200)
    handler.wfile.write(body)


def truncated(count: int) -> Reply:
    def reply(handler: _Handler, body: bytes) -> None:
        handler.head(200, Content_Length=len(body))
        handler.wfile.write(body[:count])

    return reply


def held(count: int, release: threading.Event) -> Reply:
    def reply(handler: _Handler, body: bytes) -> None:
        handler.head(200, Content_Length=len(body))
        handler.wfile.write(body[:count])
        handler.wfile.flush()
        release.wait(timeout=30)

    return reply


def slow(seconds: float) -> Reply:
    def reply(handler: _Handler, body: bytes) -> None:
        time.sleep(seconds)
        good(handler, body)

    return reply


def status(code: int) -> Reply:
    return lambda handler, body: handler.head(code, Content_Length=0)


def other(content: bytes) -> Reply:
    return lambda handler, body: ignore_range(handler, content)


def wrong_range(handler: _Handler, body: bytes) -> None:
    handler.head(206, Content_Range=f"bytes 1-{len(body) - 1}/{len(body)}", Content_Length=len(body) - 1)
    handler.wfile.write(body[1:])
