"""What a search has found, as values: its trials, the best, what that is worth. Not for finding it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..._core import FIXED, Record, percent, read_record, record_text, short, write_text
from .plan import Pruner, Sampler

FORMAT = 1
NAME = "trials.json"
WHAT = "record of a search"
State = Literal["complete", "pruned", "failed", "running"]
NEAR_END = 0.1  # of the (logarithmic) range, where settings are not those of a grid


def _is_share(value: float | None) -> bool:
    return value is None or 0 <= value <= 1


def _rise(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


@dataclass(frozen=True)
class Trial(Record):
    """One setting; errors are fractions of the held-out points.

    `error` is that of the last epoch, or of the epoch it was stopped after; `curve` has (epoch, error).
    """

    number: int
    lr: float
    weight: float
    state: State
    error: float | None
    seconds: float
    reason: str  # why it failed
    curve: tuple[tuple[int, float], ...]

    renamed: ClassVar = {"rate": "lr"}
    checks: ClassVar = (
        ("a number ≥ 0", lambda it: it.number >= 0),
        ("an lr > 0", lambda it: it.lr > 0),
        ("a weight ≥ 0", lambda it: it.weight >= 0),
        ("an error from 0 to 1", lambda it: _is_share(it.error)),
        ("an error where it is complete", lambda it: it.error is not None or it.state != "complete"),
        ("seconds ≥ 0", lambda it: it.seconds >= 0),
        ("errors from 0 to 1", lambda it: all(_is_share(error) for _, error in it.curve)),
        ("rising epochs from 1", lambda it: _rise([0, *(epoch for epoch, _ in it.curve)])),
    )

    @property
    def epochs(self) -> int:
        """The last one whose error is known."""
        return self.curve[-1][0] if self.curve else 0


@dataclass(frozen=True)
class Retrained(Record):
    """The best setting, trained on everything; or why it could not be."""

    lr: float
    weight: float
    test_error: float | None
    seconds: float
    reason: str

    renamed: ClassVar = {"rate": "lr"}
    checks: ClassVar = (("an error from 0 to 1", lambda it: _is_share(it.test_error)),)


@dataclass(frozen=True)
class SearchResult(Record):
    """A search, finished or on its way."""

    data: str
    train_points: int
    held_out: int
    test_points: int
    epochs: int
    sampler: Sampler
    pruner: Pruner
    lrs: tuple[float, ...]
    weights: tuple[float, ...]
    planned: int
    trials: tuple[Trial, ...]
    retrained: Retrained | None
    settings: dict[str, Any]
    versions: dict[str, str]

    renamed: ClassVar = {"rates": "lrs"}
    checks: ClassVar = (
        ("points", lambda it: min(it.train_points, it.held_out, it.epochs, it.planned) >= 1),
        ("rising lrs > 0", lambda it: it.lrs and _rise((0.0, *it.lrs))),
        ("rising weights ≥ 0", lambda it: it.weights and it.weights[0] >= 0 and _rise(it.weights)),
        ("trials in order", lambda it: _rise([trial.number for trial in it.trials])),
    )

    @property
    def complete(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.state == "complete")

    @property
    def finished(self) -> int:
        return sum(trial.state != "running" for trial in self.trials)

    @property
    def best(self) -> Trial | None:
        """The smallest error at the end; of equals the smallest weight, then lr. One that was stopped
        early cannot win."""
        return min(self.complete, key=lambda it: (it.error, it.weight, it.lr), default=None)

    def __str__(self) -> str:
        return f"{self.finished} of {self.planned} trials. {verdict(self)}".replace(FIXED, " ")


def verdict(result: SearchResult) -> str:
    """The best setting, its error and what that error is worth."""
    best = result.best
    if best is None or best.error is None:
        return f"No trial of {result.planned:,} is complete yet: there is no best setting."
    error = percent(best.error, standard_error(best.error, result.held_out))
    return (
        f"Best of {len(result.complete):,} complete trials: {setting(best)}, with {error}{FIXED}% error on "
        f"{result.held_out:,} held-out points."
    )


def setting(trial: Trial) -> str:
    plain = "plain training, " if trial.weight == 0 else ""
    return f"{plain}lr {value(trial.lr)}, weight {value(trial.weight)}"


def value(number: float) -> str:
    """An lr or weight in three digits: 0.0156, 0.004, 8."""
    return short(float(f"{number:.3g}"))


def standard_error(error: float, points: int) -> float:
    """Of a share of so many independent points."""
    return math.sqrt(error * (1 - error) / points)


def rivals(result: SearchResult) -> list[Trial]:
    """The other complete trials that lie within one standard error of the best."""
    best = result.best
    if best is None or best.error is None:
        return []
    limit = best.error + standard_error(best.error, result.held_out) + 1e-12  # equal but for rounding
    return [it for it in result.complete if it is not best and it.error is not None and it.error <= limit]


def at_edge(result: SearchResult) -> list[tuple[str, str]]:
    """("lr", "largest"), …: where the best lies at an end of what was searched, and better may lie beyond.

    A weight of 0 is an end beyond which there is nothing.
    """
    best = result.best
    if best is None:
        return []
    found = []
    for name, values in (("lr", result.lrs), ("weight", result.weights)):
        positive = sorted(value for value in values if value > 0)
        value = getattr(best, name)
        if len(positive) < 2 or value <= 0:
            continue
        low, high, place = (math.log(one) for one in (positive[0], positive[-1], value))
        near = (NEAR_END if result.sampler == "tpe" else 1e-9) * (high - low)  # 0 where the logarithms agree
        if place <= low + near and not (name == "weight" and min(values) == 0):
            found.append((name, "smallest"))
        if place >= high - near:
            found.append((name, "largest"))
    return found


def write_result(path: Path, result: SearchResult) -> None:
    write_text(path / NAME, record_text(result, FORMAT))


def read_result(path: Path) -> SearchResult:
    """Of a search directory, or of the file itself; everything in it is checked."""
    return read_record(path / NAME if path.is_dir() else path, SearchResult, WHAT, FORMAT)
