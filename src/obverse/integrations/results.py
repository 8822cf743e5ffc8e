"""What was measured along a training, as plain values, and the file it is kept in. Not for measuring."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .._core import (
    BadInput,
    NoSuchFile,
    Record,
    append_text,
    as_record,
    counted,
    parse_json,
    plain,
    read_file,
    seconds,
)

FORMAT = 1
NAME = "audit_history.jsonl"
MOST_BYTES, MOST_POINTS = 2**28, 2**16


@dataclass(frozen=True)
class LayerPoint(Record):
    """One layer at one time; None where it cannot be told, or was not measured."""

    name: str
    verdict: str
    rank: int | None  # directions of the signal
    rank_is_bound: bool  # there may be more
    random_share: float | None  # of the energy
    random_share_is_bound: bool  # it is at most so much
    recovery: float | None  # error of the layer's shadow


@dataclass(frozen=True)
class Point(Record):
    """The net at one time: all its layers, what that took, and how often it was left out before."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("step ≥ 0", lambda it: it.step >= 0),
        ("seconds ≥ 0", lambda it: min(it.seconds, it.training_seconds) >= 0),
        ("skipped ≥ 0", lambda it: it.skipped >= 0),
    )
    step: int
    epoch: float | None
    seconds: float  # of this measurement
    training_seconds: float  # since the start, without measurements
    skipped: int  # measurements that were due since the last one, and would have cost too much
    layers: tuple[LayerPoint, ...]

    def metrics(self, prefix: str = "obverse/") -> dict[str, float]:
        """Numbers by name, for loggers: obverse/rank/LAYER and the like."""
        names = ("rank", "random_share", "recovery")
        values = {f"{prefix}{name}/{one.name}": getattr(one, name) for one in self.layers for name in names}
        return {name: float(value) for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        ranks = [one.rank for one in self.layers if one.rank is not None]
        return (
            f"step {self.step:,}: {counted(len(self.layers), 'layer')}, {sum(ranks):,} directions of signal "
            f"in all ({seconds(self.seconds)} s)"
        )


@dataclass(frozen=True)
class History(Record):
    """What was measured along a training, in the order of the steps."""

    points: tuple[Point, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.name for point in self.points for one in point.layers))

    @property
    def seconds(self) -> float:
        """What all measurements took."""
        return sum(point.seconds for point in self.points)

    @property
    def skipped(self) -> int:
        return sum(point.skipped for point in self.points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __str__(self) -> str:
        if not self.points:
            return "nothing was measured"
        last = self.points[-1]
        of = f"{seconds(self.seconds)} s beside {seconds(last.training_seconds)} s of training"
        left = f"; {self.skipped:,} left out to keep within bounds" if self.skipped else ""
        times = counted(len(self.points), "measurement")
        return f"{times} of {counted(len(self.layers), 'layer')} up to step {last.step:,}, {of}{left}"


def append_point(path: Path, point: Point) -> None:
    append_text(path, json.dumps({"format": FORMAT, **point.to_dict()}, allow_nan=False) + "\n")


def read_history(path: Path | str) -> History:
    """The history in a file, or in the audit_history.jsonl of a directory, without an incomplete last line.

    Of a training that was resumed, what was measured again at a step takes the place of what was there.
    """
    file = Path(path) / NAME if Path(path).is_dir() else Path(path)
    try:
        text = read_file(file, "history", MOST_BYTES).decode("utf-8", errors="replace")
    except FileNotFoundError:
        raise NoSuchFile(file) from None
    except OSError as error:
        raise BadInput(f"a history in {file}", got=error.strerror, do="check the path") from None
    lines = text.split("\n")[:-1]  # what has no end is incomplete
    if len(lines) > MOST_POINTS:
        raise BadInput(f"at most {MOST_POINTS:,} lines in {file}", got=f"{len(lines):,}", do="cut it")
    points: dict[int, Point] = {}
    for number, line in enumerate(lines, start=1):
        point = _point(line, f"line {number} of {file}")
        points = {step: one for step, one in points.items() if step < point.step} | {point.step: point}
    return History(tuple(points.values()))


def _point(line: str, place: str) -> Point:
    try:
        found = parse_json(line)
    except (ValueError, RecursionError):
        raise BadInput(f"JSON in {place}", got=plain(line, 60), do="remove the line") from None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise BadInput(f"a measurement of format {FORMAT} in {place}", got="another", do="remove the line")
    return as_record(found, Point, "measurement", place)
