"""Hostile numbers and texts, and changes to bytes, JSON and zip archives. Not for any one format."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from random import Random
from typing import Any

from .case import EXECUTED

NUMBERS = (
    *(0, 1, 2, 3, 7, 64, 255, 256, 1000, 65535, 65536, 2**24),
    *(
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**32,
        2**40,
        2**53,
        2**61,
        2**62,
        2**63 - 1,
        2**63,
        2**64,
        10**30,
        10**400,
    ),
    *(-1, -2, -128, -(2**31), -(2**63), -(10**30)),
)
FLOATS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "1e-320", "-0.0", "0.1", "1.5", "-3.5")
COMMAND = f"touch {EXECUTED}"
TEXTS = (
    *("", " ", ".", "..", "/", "a", "0", "-1", "nan", "true", "weight", "x" * 300, "x" * 1001, "é" * 130),
    *(
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "a\rb",
        "a\nobverse: done",
        "a\x00b",
        "\x9b31m",
        "\x7f\x08\x08",
        "\u202eevil",
    ),
    *(
        "\ud800",
        "a\udfffb",
        "\U0010ffff",
        "<script>alert('canary')</script>",
        '"><img src=x onerror=canary()>',
    ),
    *(
        "../outside",
        "../../etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "~/.bashrc",
        "$(touch EXECUTED)",
    ),
    *(
        "{{ 7 * 7 }}",
        "{% raw %}",
        "%s%n",
        "__class__",
        "os:system",
        "[bold]markup[/bold]",
        "[/]",
        "[link=file:///]x",
    ),
)


class Raw(str):
    """JSON as it stands."""


def number(random: Random) -> int:
    return random.choice(NUMBERS) if random.random() < 0.7 else random.randrange(-4, 200)


def text(random: Random) -> str:
    return random.choice(TEXTS)


def some_bytes(content: bytes, random: Random) -> bytes:
    """One to four changes at random places; the first bytes, where headers are, more often than others."""
    data = bytearray(content)
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(len(data) + 1)
        if random.random() < 0.5:
            at = min(at, random.randrange(64))
        size = random.choice((1, 2, 4, 8, 16))
        kind = random.randrange(8)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << random.randrange(8)
        elif kind == 1:
            data[at : at + size] = random.randbytes(size)
        elif kind == 2:
            data[at : at + size] = (number(random) % 256**size).to_bytes(
                size, random.choice(("little", "big"))
            )
        elif kind == 3:
            del data[at : at + random.choice((1, 4, 64, 1024))]
        elif kind == 4:
            data[at:at] = data[at : at + random.choice((1, 4, 64))]
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            data += random.choice((b"\0" * 64, random.randbytes(64), bytes(data[:256])))
        else:
            data[at : at + size] = random.choice((b"\0", b"\xff", b"\x7f")) * size
    return bytes(data)


def dump(value: Any) -> str:
    """JSON, in which `Raw` stands as it is and other text may hold anything."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dump(str(key))}: {dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(dump, value)) + "]"
    return json.dumps(value)


def json_value(random: Random) -> Any:
    """What nobody expects there."""
    kind = random.randrange(12)
    if kind < 3:
        return number(random) if random.random() < 0.9 else Raw("-" + "9" * 5000)
    if kind < 5:
        return Raw(random.choice(FLOATS))
    if kind < 8:
        return text(random)
    return copy.deepcopy(
        random.choice(
            (
                *(None, True, False, [], {}, [[]], [None], {"": None}, [0, 0], [1] * 5, ["a", 1, None]),
                *([0] * 70_000, {str(key): key for key in range(70_000)}, "x" * 200_000),
                *(Raw("[" * 2000 + "]" * 2000), Raw("[" * 200_000), Raw('{"a":' * 3000 + "1" + "}" * 3000)),
                *(Raw('{"a": 1, "a": 2}'), Raw("1,"), Raw(""), Raw("'a'"), Raw('"\\x"')),
            )
        )
    )


def changed_json(value: Any, random: Random, changes: int = 0) -> Any:
    """The same with one to three parts replaced, removed, repeated or renamed."""
    value = copy.deepcopy(value)
    for _ in range(changes or random.choice((1, 1, 2, 3))):
        value = _change(value, random)
    return value


def _change(value: Any, random: Random) -> Any:
    if not isinstance(value, dict | list) or not value or random.random() < 0.12:
        if isinstance(value, bool | int | float) and abs(value) < 1e100 and random.random() < 0.5:
            return random.choice(
                (-value, value + 1, value * 1000, value * 1e30, float(value), int(value), str(value))
            )
        return json_value(random)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = random.choice(keys)
    kind = random.random()
    if kind < 0.75:
        value[key] = _change(value[key], random)
    elif kind < 0.83:
        del value[key]
    elif isinstance(value, list):
        value.insert(random.randrange(len(value) + 1), value[key] if kind < 0.92 else json_value(random))
    elif kind < 0.92:
        value[text(random)] = value.pop(key)
    else:
        value[key], other = value[random.choice(keys)], value[key]
        value[random.choice(keys)] = other
    return value


def json_bytes(value: Any, random: Random) -> bytes:
    """A changed value as a file, now and then with its bytes changed too."""
    content = dump(changed_json(value, random)).encode()
    return some_bytes(content, random) if random.random() < 0.15 else content


def unzipped(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name.encode("utf-8", "replace").decode() or "_", content)
    return stream.getvalue()


def changed_zip(members: dict[str, bytes], random: Random) -> bytes:
    """An archive with members renamed, lost, emptied or packed; or with its own bytes changed."""
    members = dict(members)
    kind = random.randrange(8)
    name = random.choice(list(members))
    if kind == 0:
        members[random.choice((text(random), f"{text(random)}.npy", f"../{name}"))] = members.pop(name)
    elif kind == 1:
        del members[name]
    elif kind == 2:
        members[name] = b""
    elif kind == 3:
        members[random.choice(list(members))] = members[name]
    elif kind == 4:
        members[name] += b"\0" * random.choice((1, 8, 2**22))
    methods = (
        zipfile.ZIP_STORED,
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
        zipfile.ZIP_BZIP2,
        zipfile.ZIP_LZMA,
    )
    content = zipped(members, random.choice(methods))
    if kind >= 5:
        head = content.rfind(b"PK\x01\x02") if random.random() < 0.5 else content.rfind(b"PK\x05\x06")
        if random.random() < 0.7 and head > 0:  # the directory, in which the sizes are
            return content[:head] + some_bytes(content[head:], random)
        return some_bytes(content, random)
    return content
