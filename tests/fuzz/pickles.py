"""Hostile files of torch.save: the zip, the pickle in it as a list of instructions, the format before it."""

from __future__ import annotations

import io
import pickle
import pickletools
import struct
from collections import OrderedDict
from functools import cache
from random import Random
from typing import Any

import torch

from .case import Case
from .mutate import COMMAND, changed_zip, number, some_bytes, text, unzipped, zipped
from .weights import audit

CALL = b"cos\nsystem\n" + pickle.dumps((COMMAND,), 2)[2:-1] + b"R"  # what unpickling would run


# A tensor whose shape and strides are what the pickle remembers as 0.
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    b"X\x03\x00\x00\x00cpuK\x1etQK\x00h\x00h\x00\x89ccollections\nOrderedDict\n)RtR"
)


def long(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


def string(value: str) -> bytes:
    content = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(content)) + content


SNIPPETS = (
    *(
        CALL,
        CALL + b"0",
        b"cbuiltins\neval\n",
        b"cbuiltins\nexec\n(X\x01\x00\x00\x001tR",
        b"cposix\nsystem\n",
    ),
    *(
        b"ctorch\nload\n",
        b"ctorch.hub\nload\n",
        b"c__builtin__\ngetattr\n",
        b"ctorch\n\x1b[31mx\n",
        b"ctorch.storage\n_load_from_bytes\n",
    ),
    *(
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ccollections\nOrderedDict\n",
        b"ctorch\nFloatStorage\n",
        b"ctorch\nfloat8_e4m3fn\n",
    ),
    *(
        b"(",
        b")",
        b"]",
        b"}",
        b"N",
        b"R",
        b"b",
        b"Q",
        b"0",
        b"1",
        b"2",
        b".",
        b"t",
        b"u",
        b"s",
        b"a",
        b"e",
        b"l",
        b"d",
        b"\x81",
        b"\x94",
    ),
    *(
        b"h\x00",
        b"q\x00",
        b"j\xff\xff\xff\x7f",
        b"r\xff\xff\xff\x7f",
        b"i",
        b"o",
        b"P0\n",
        b"\x82\x01",
        b"\x95" + b"\xff" * 8,
    ),
    *(
        b"X\xff\xff\xff\x7f",
        b"B\xff\xff\xff\x7f",
        b"\x8e" + b"\xff" * 8,
        b"\x8b\xff\xff\xff\x7f",
        b"I99999999999999999999\n",
        b"\x8d" + b"\xff" * 8,
    ),
)


@cache
def saved(kind: str) -> bytes:
    """A real file."""
    tensors = OrderedDict(
        {"a.weight": torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), "a.bias": torch.zeros(6)}
    )
    values = {
        "plain": tensors,
        "nested": {"state_dict": tensors, "epoch": 3, "optimizer": {0: torch.ones(2)}},
        "views": {
            "w": torch.arange(24.0).reshape(4, 6).t(),
            "half": torch.ones(3, 4, dtype=torch.float16),
            "i": torch.ones(2, 2, dtype=torch.int64),
        },
        "parameter": {"p": torch.nn.Parameter(torch.ones(3, 3))},
        "alone": torch.ones(4, 4),
    }
    stream = io.BytesIO()
    torch.save(
        values[kind.removeprefix("old ")], stream, _use_new_zipfile_serialization=not kind.startswith("old ")
    )
    return stream.getvalue()


KINDS = ("plain", "nested", "views", "parameter", "alone")


def instructions(content: bytes) -> list[bytes]:
    places = [place for _, _, place in pickletools.genops(content)]
    return [content[start:stop] for start, stop in zip(places, [*places[1:], len(content)], strict=True)]


def changed_pickle(content: bytes, random: Random) -> bytes:
    """Instructions removed, repeated, exchanged or put in; numbers and texts replaced."""
    parts = instructions(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(parts))
        kind = random.randrange(8)
        if kind == 0:
            parts.insert(at, random.choice(SNIPPETS))
        elif kind == 1:
            del parts[at]
        elif kind == 2:
            parts.insert(at, parts[random.randrange(len(parts))])
        elif kind == 3:
            other = random.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        elif kind in (4, 5):
            numbers = [place for place, part in enumerate(parts) if part[:1] in b"KMJ\x8a"]
            if numbers:
                parts[random.choice(numbers)] = long(number(random))
        elif kind == 6:
            texts = [place for place, part in enumerate(parts) if part[:1] in b"X\x8c"]
            if texts:
                parts[random.choice(texts)] = string(text(random))
        else:
            parts[at : at + 1] = [random.choice(SNIPPETS)]
        parts = parts or [b"."]
    return b"".join(parts)


def bomb(random: Random) -> bytes:
    """A pickle that is small and would unfold, nest or hash without end."""
    size = random.choice((50, 1000, 20_000))
    kind = random.randrange(7)
    if kind == 0:  # a list that holds itself twice, again and again
        return b"\x80\x02]q\x00" + b"(h\x00h\x00e" * min(size, 5000) + b"."
    if kind == 1:
        return b"\x80\x02" + b"]" * size + b"a" * (size - 1) + b"."
    if kind == 2:  # keys that all hash alike
        step = 2**61 - 1
        keys = (long(index * step) + b"N" for index in range(min(size, 5000)))
        return b"\x80\x02}(" + b"".join(keys) + b"u."
    if kind == 3:  # a long shape, used for many tensors
        shape = b"(" + b"K\x01" * size + b"tq\x00"
        one = TENSOR
        pairs = b"".join(string(str(index)) + one for index in range(200))
        return b"\x80\x02" + shape + b"0}(" + pairs + b"u."
    if kind == 4:
        return b"\x80\x02" + b"}q\x00" + b"(X\x01\x00\x00\x00ah\x00u" * 50 + b"."
    if kind == 5:  # a text, joined to itself as a name
        return b"\x80\x04" + string("x" * size) + b"\x94h\x00\x93."
    return b"\x80\x02(" + (b"N" * size) + b"t" + b"\x85" * min(size, 3000) + b"."


def pt(random: Random) -> Case:
    kind = random.random()
    name = random.choice(("m.pt", "m.pth", "m.bin", "m.ckpt"))
    if kind < 0.15:
        content = some_bytes(saved(random.choice(KINDS)), random)
    elif kind < 0.3:
        old = saved(f"old {random.choice(KINDS)}")
        content = some_bytes(old, random) if random.random() < 0.5 else changed_old(old, random)
    else:
        members = unzipped(saved(random.choice(KINDS)))
        main = next(member for member in members if member.endswith("data.pkl"))
        if kind < 0.4:
            members[main] = bomb(random)
        elif kind < 0.45:
            members[main] = real(random)
        elif kind < 0.85:
            members[main] = changed_pickle(members[main], random)
        content = changed_zip(members, random) if kind > 0.85 else zipped(members)
    return Case({name: content}, audit(name, random))


def changed_old(content: bytes, random: Random) -> bytes:
    """The fourth of its five pickles changed; what follows them stays."""
    start = 0
    for _ in range(3):
        start = _end(content, start)
    stop = _end(content, start)
    return content[:start] + changed_pickle(content[start:stop], random) + content[stop:]


def _end(content: bytes, start: int) -> int:
    stream = io.BytesIO(content[start:])
    for _ in pickletools.genops(stream):
        pass
    return start + stream.tell()


class _Calls:
    def __reduce__(self) -> Any:
        import os

        return os.system, (COMMAND,)


def real(random: Random) -> bytes:
    """A pickle of Python's own, among others one that runs a command."""
    return pickle.dumps(
        random.choice(
            (
                _Calls(),
                {"a.weight": _Calls()},
                [1, 2],
                {"a": {1, 2}},
                3 + 4j,
                text,
                range(3),
                {"a": bytearray(3)},
            )
        ),
        random.randrange(6),
    )
