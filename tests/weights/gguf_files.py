"""GGUF files put together byte by byte, so that they can be wrong. Not for right ones: gguf writes those."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Raw:
    """A tensor as the head of the file has it; its sides in the file's order, inputs first."""

    sides: tuple[int, ...]
    kind: int
    content: bytes
    start: int | None = None  # other than where it is


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(content)) + content


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def gguf_bytes(
    tensors: Mapping[Any, Raw],
    *pairs: bytes,
    version: int = 3,
    alignment: int = 32,
    count: int | None = None,
) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if count is None else count, len(pairs))
    head += b"".join(pairs)
    body = b""
    for name, one in tensors.items():
        start = len(body) if one.start is None else one.start
        head += text(name) + struct.pack(
            f"<I{len(one.sides)}QIQ", len(one.sides), *one.sides, one.kind, start
        )
        body += one.content + b"\0" * (-len(one.content) % alignment)
    return head + b"\0" * (-len(head) % alignment) + body
