"""Two students side by side: one descends on every input, one on events alone, from the same weights.

The second is Theorem 4 step after step (F, D, G̃, W and P, no input), which is gradient descent on a loss of
its own. Where events tell all of the inputs the two are the same; elsewhere they drift apart, and `lost_bits`
says how much was not told. Not for one pass: see compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput, Progress, Record
from ._passes import propagate
from ._reformulation import reformulate
from ._student import Student
from ._teacher import Teacher


@dataclass(frozen=True)
class Lap:
    """Both students after `step` steps; `largest` is the largest difference of any parameter."""

    step: int
    by_inputs: Student
    by_events: Student
    loss_inputs: float
    loss_events: float  # as the events tell it
    largest: float


@dataclass(frozen=True)
class Race(Record):
    """What was recorded at `steps`, and both students at the end.

    `loss_inputs`: of the student that saw inputs. `loss_events`: of the other, as the events tell it;
    `loss_carried`: of the other, on the inputs. `largest`: difference of any parameter at any step so far.
    `apart`: norm of the difference ÷ how far the student that saw inputs has moved; 0 where it has not.
    """

    lr: float
    steps: tuple[int, ...]
    loss_inputs: tuple[float, ...]
    loss_events: tuple[float, ...]
    loss_carried: tuple[float, ...]
    largest: tuple[float, ...]
    apart: tuple[float, ...]
    by_inputs: Student = field(compare=False, repr=False)
    by_events: Student = field(compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The numbers without the students."""
        found = super().to_dict()
        del found["by_inputs"], found["by_events"]
        return found

    def __str__(self) -> str:
        return (
            f"{self.steps[-1]:,} steps: loss {self.loss_inputs[0]:.3g} → {self.loss_inputs[-1]:.3g} "
            f"by inputs, {self.loss_carried[-1]:.3g} by events; no parameter differs by more than "
            f"{self.largest[-1]:.2g}"
        )


def laps(teacher: Teacher, student: Student, lr: float) -> Iterator[Lap]:
    """Both descents at the same lr, a lap a step, without end. The first lap is the start, step 0."""
    if isinstance(lr, bool) or not isinstance(lr, int | float) or not 0 < lr < inf:
        raise BadInput("a finite lr > 0", got=repr(lr), do="choose one, such as 0.1")
    return _laps(teacher, student, lr)


def _laps(teacher: Teacher, student: Student, lr: float) -> Iterator[Lap]:
    one = other = student
    step = 0
    while True:
        seen, told = propagate(teacher, one), reformulate(teacher.model, other)
        if not (isfinite(seen.loss) and isfinite(told.loss)):
            raise BadInput(
                f"finite losses at lr {lr:g}",
                got=f"{seen.loss} and {told.loss} at step {step}",
                do="lower the lr",
            )
        yield Lap(step, one, other, seen.loss, told.loss, _largest(one, other))
        one, other = one.stepped(seen.step, lr), other.stepped(told.step, lr)
        step += 1


def race(
    teacher: Teacher,
    student: Student,
    steps: int,
    lr: float,
    *,
    records: int = 100,
    progress: Progress | None = None,
) -> Race:
    """Both descents for `steps` steps. About `records` of them are recorded, evenly in log(1 + step).

    `progress(step, steps, what)` is called with every step, from 0 to the last.
    """
    for name, given in (("steps", steps), ("records", records)):
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise BadInput(f"{name} as a whole number ≥ 1", got=repr(given), do=f"check {name}")
    wanted = recorded(steps, records)
    losses: list[tuple[float, float, float]] = []
    largest: list[float] = []
    apart: list[float] = []
    furthest = 0.0
    for lap in laps(teacher, student, lr):
        furthest = max(furthest, lap.largest)
        if lap.step in wanted:
            losses.append((lap.loss_inputs, lap.loss_events, propagate(teacher, lap.by_events).loss))
            largest.append(furthest)
            apart.append(_apart(student, lap))
        if progress is not None:
            progress(lap.step, steps, "training")
        if lap.step == steps:
            break
    by_inputs, by_events, carried = zip(*losses, strict=True)
    return Race(
        float(lr),
        wanted,
        by_inputs,
        by_events,
        carried,
        tuple(largest),
        tuple(apart),
        lap.by_inputs,
        lap.by_events,
    )


def recorded(steps: int, records: int) -> tuple[int, ...]:
    """0, `steps`, and about `records` − 1 between them, evenly spread in log(1 + step)."""
    return tuple(sorted({round((1 + steps) ** (at / records) - 1) for at in range(records + 1)}))


def entropy(p: Tensor) -> float:
    """In bits."""
    occurring = p[p > 0]
    return float(-(occurring * occurring.log2()).sum().clamp(max=0))


def lost_bits(teacher: Teacher, region: str) -> float:
    """H(x_α | z_α): how much of a region's contents its event does not tell. 0 where it tells all.

    z_α is a function of x_α, so that this is H(x_α) − H(z_α), and H(z_α) is what is told, I(z_α; x_α).
    """
    contents = teacher.contents(region)
    p = teacher.p.new_zeros(int(contents.max()) + 1).index_add_(0, contents, teacher.p)
    return max(0.0, entropy(p) - entropy(teacher.prior(region)))


def _pairs(one: Student, other: Student) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(one.parameters().tensors(), other.parameters().tensors(), strict=True)


def _largest(one: Student, other: Student) -> float:
    return max(float((a - b).abs().max()) for a, b in _pairs(one, other))


def _distance(one: Student, other: Student) -> float:
    return float(torch.stack([(a - b).square().sum() for a, b in _pairs(one, other)]).sum().sqrt())


def _apart(start: Student, lap: Lap) -> float:
    moved = _distance(lap.by_inputs, start)
    return _distance(lap.by_inputs, lap.by_events) / moved if moved else 0.0
