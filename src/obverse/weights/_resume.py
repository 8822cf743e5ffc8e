"""audit.jsonl: every layer as it is finished, so that an audit that was interrupted is resumed.

The first line says which audit it is of. The file is data of unknown origin: a last line that is torn is
dropped, and one of another audit is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from .._core import BadInput, Record, append_text, as_record, explained, held, read_lines
from ._origin import Origin
from ._readers.stored import Weight
from .results import LayerAudit

FORMAT = 1
WHAT = "record of an audit"
LARGEST, MOST, LONGEST = 2**31, 2**20, 2**24  # bytes of the file, lines, bytes of one: a layer has 20,000


@dataclass(frozen=True)
class Header(Record):
    """What every layer's numbers depend on."""

    format: int
    origin: Origin
    layers: int
    names: str  # digest of the layers' names, kinds and sizes
    settings: dict[str, Any]
    thresholds: dict[str, float]
    versions: dict[str, str]


@dataclass(frozen=True)
class Line(Record):
    at: int  # the layer's place among all that are audited
    elapsed: float  # seconds of the audit so far
    layer: LayerAudit


@dataclass
class Resumable:
    """The layers measured so far, and where the next one is written."""

    path: Path | None
    done: dict[int, LayerAudit] = field(default_factory=dict)
    elapsed: float = 0.0

    def add(self, at: int, layer: LayerAudit, elapsed: float) -> None:
        """On disk before this returns."""
        self.done[at] = layer
        if self.path is not None:
            line = Line(at, elapsed, layer)
            append_text(self.path, json.dumps(line.to_dict(), allow_nan=False) + "\n")


def header(
    weights: Sequence[Weight],
    origin: Origin,
    settings: Mapping[str, Any],
    thresholds: Mapping[str, float],
    versions: Mapping[str, str],
) -> Header:
    names = "\0".join(f"{one.name} {one.kind} {one.rows} {one.columns}" for one in weights)
    return Header(
        FORMAT,
        origin,
        len(weights),
        sha256(names.encode()).hexdigest(),
        dict(settings),
        dict(thresholds),
        dict(versions),
    )


@contextmanager
def resumable(path: Path | None, head: Header | None, weights: Sequence[Weight]) -> Iterator[Resumable]:
    """The record at `path`, begun or taken up; no other process can write to it meanwhile."""
    if path is None or head is None:
        yield Resumable(None)
        return
    if path.is_symlink():
        raise BadInput(f"a file of its own at {path}", got="a link", do="remove it")
    with explained(path):
        path.touch()
    with held(path):
        yield _taken_up(path, head, weights)


def _taken_up(path: Path, head: Header, weights: Sequence[Weight]) -> Resumable:
    found = read_lines(path, "the record of an audit", largest=LARGEST, most=MOST, longest=LONGEST)
    with explained(path):
        os.truncate(path, found.size)
    first, *lines = found.records[: found.ended] or (None,)
    if first is None:
        append_text(path, json.dumps(head.to_dict(), allow_nan=False) + "\n")
        return Resumable(path)
    _check_same(path, first, head)
    here = Resumable(path)
    for number, line in enumerate(lines, start=2):
        one = as_record(line, Line, WHAT, f"line {number} of {path}")
        _check_layer(path, number, one, weights)
        here.done[one.at] = one.layer
        here.elapsed = max(here.elapsed, one.elapsed)
    return here


def _check_same(path: Path, first: Mapping[str, Any], head: Header) -> None:
    do = "repeat the command that began it, choose another folder, or remove this file to begin anew"
    if first.get("format") != FORMAT:
        raise BadInput(f"{path} of format {FORMAT}", got=f"format {first.get('format')!r}"[:60], do=do)
    there = as_record(dict(first), Header, WHAT, path)
    if differing := differences(there, head):
        raise BadInput(f"{path} to be of this audit", got=f"one of {', '.join(differing)}", do=do)


def differences(there: Header, here: Header) -> list[str]:
    """What a record is of that this audit is not, in words."""
    found = []
    if there.origin.paths != here.origin.paths:
        found.append(f"{', '.join(there.origin.paths[:3]) or 'a net in memory'}")
    else:
        states = {one.name: one for one in here.origin.files}
        changed = [one.name for one in there.origin.files if states.get(one.name) != one]
        found += [f"an older or newer {name}" for name in changed[:3]]
        if there.origin.content != here.origin.content:
            found.append("other weights or data")
    for one, other in (
        (there.settings, here.settings),
        (there.thresholds, here.thresholds),
        (there.versions, here.versions),
    ):
        for name in dict.fromkeys((*one, *other)):
            if one.get(name) == other.get(name):
                continue
            if name == "seed":  # drawn from the one that was given
                found.append("another seed")
            else:
                found.append(f"{name} {_told(one.get(name))} (here {_told(other.get(name))})")
    if not found and there != here:
        found.append("other layers")
    return found


def _told(value: object) -> str:
    return "by size" if value is None else str(value)[:40]


def _check_layer(path: Path, number: int, one: Line, weights: Sequence[Weight]) -> None:
    """That a line is about the layer it says, so that nothing foreign gets in among the layers."""
    layer, wanted = one.layer, weights[one.at] if 0 <= one.at < len(weights) else None
    if wanted is None or (layer.name, layer.kind, layer.rows, layer.columns) != (
        wanted.name,
        wanted.kind,
        wanted.rows,
        wanted.columns,
    ):
        raise BadInput(
            f"a layer of this audit in line {number} of {path}",
            got=f"{layer.name} at {one.at}",
            do="remove the file to begin anew",
        )
