"""Files of JSON objects, one a line, that grow by appending: read back whatever a crash has left of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadInput
from .files import parse_json, read_file


@dataclass(frozen=True)
class Lines:
    """The objects of a file, in order."""

    records: tuple[dict[str, Any], ...]
    ended: int  # how many of them end with a line's end: all but the last, or all
    size: int  # bytes of these


def read_lines(path: Path, what: str, *, largest: int, most: int, longest: int) -> Lines:
    """The objects of an untrusted file; a last line that a crash cut short is left out.

    `largest` is the file's limit in bytes, `most` the number of lines, `longest` that of the bytes in one;
    `what` is a noun in the plural with its article.
    """
    if not path.exists():
        return Lines((), 0, 0)
    try:
        content = read_file(path, what, largest)
    except OSError as error:
        raise BadInput(f"records in {path}", got=error.strerror, do="restore it") from None
    lines = content.removesuffix(b"\n").split(b"\n")
    if len(lines) > most:
        got = f"{len(lines):,} lines in {path}"
        raise BadInput(f"at most {most:,} records", got=got, do="restore it")
    records: list[dict[str, Any]] = []
    ended = size = 0
    for number, line in enumerate(lines, start=1):
        if len(line) > longest:
            got = f"{len(line):,} bytes"
            raise BadInput(f"at most {longest:,} bytes in line {number} of {path}", got=got, do="restore it")
        try:
            record = parse_json(line.decode(errors="replace"))
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise BadInput(f"JSON in line {number} of {path}", got=error, do="restore it") from None
        if not isinstance(record, dict):
            got = type(record).__name__
            raise BadInput(f"a JSON object in line {number} of {path}", got=got, do="restore it")
        records.append(record)
        if number < len(lines) or content.endswith(b"\n"):
            ended, size = number, size + len(line) + 1
    return Lines(tuple(records), ended, size)
