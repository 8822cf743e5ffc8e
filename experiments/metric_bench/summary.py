"""How often each metric decides "worse", of real data and of each fault. Not for measuring.

The rule: a metric with a p-value decides where p ≤ 0.05, one that is read beside real data where it is worse
than that. One that is only a number decides above the 95 % quantile of half of the draws of real data; its
false alarms are counted in the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from obverse.diversity._assessment import holm

ALPHA = 0.05
Line = dict[str, Any]


WHOLE = "obverse, all tests"


def with_whole(line: Line) -> Line:
    """The tests of the assessment with Holm's correction; equal samples where any two images are equal."""
    found = line["found"]
    names = ["birthday test", "nearest to training", "two-sample test"]
    names += [f"{name}, permutation" for name in ("recall", "coverage", "precision")]
    if not all(name in found for name in ("equal samples", *names)):
        return line
    p = [found[name][1] for name in names]
    if found["equal samples"][1] < 1:
        p.append(found["equal samples"][1])
    adjusted = min(holm(p))
    return {**line, "found": {WHOLE: [1 - adjusted, adjusted], **found}}


def summary(space: str, size: int, lines: Sequence[Line]) -> dict[str, Any]:
    """Counts for the page: by metric its kind and its false alarms, by fault and strength what was found."""
    lines = [with_whole(line) for line in lines]
    null = sorted((line for line in lines if line["fault"] == "null"), key=lambda line: int(line["draw"]))
    names = list(dict.fromkeys(name for line in lines for name in line["found"]))
    metrics = {name: of_null(name, null) for name in names}
    cells: dict[tuple[str, float], list[Line]] = {}
    for line in lines:
        if line["fault"] != "null":
            cells.setdefault((line["fault"], line["strength"]), []).append(line)
    faults = [
        {
            "fault": fault,
            "strength": strength,
            "draws": len(some),
            "found": {name: counted(name, some, metrics[name]) for name in names},
        }
        for (fault, strength), some in cells.items()
    ]
    taken: dict[str, list[float]] = {}
    for line in null:
        for group, took in line["seconds"].items():
            taken.setdefault(group, []).append(took)
    rounded = {group: float(f"{sum(took) / len(took):.3g}") for group, took in taken.items()}
    return {"space": space, "size": size, "metrics": metrics, "faults": faults, "seconds": rounded}


def counted(name: str, some: Sequence[Line], metric: dict[str, Any]) -> list[int]:
    """[found, of so many draws]."""
    looked = [line for line in some if name in line["found"]]
    return [sum(decided(name, line, metric) for line in looked), len(looked)]


def of_null(name: str, null: Sequence[Line]) -> dict[str, Any]:
    """What it does with real data; `threshold` of a mere number, from the first half of the draws."""
    values = [line["found"][name] for line in null if name in line["found"]]
    if any(p is not None for _, p in values):
        kind = "comparison" if name.endswith((" below real", " above real")) else "p"
        return {
            "kind": kind,
            "threshold": None,
            "draws": len(values),
            "alarms": sum(p is not None and p <= ALPHA for _, p in values),
        }
    half = -(-len(values) // 2)
    threshold = quantile([value for value, _ in values[:half]])
    alarms = sum(value > threshold for value, _ in values[half:])
    return {"kind": "number", "threshold": threshold, "draws": len(values) - half, "alarms": alarms}


def quantile(values: Sequence[float]) -> float:
    """The least value that a further one exceeds in at most 5 % of cases, whatever the distribution."""
    place = ceil((1 - ALPHA) * (len(values) + 1))
    return sorted(values)[min(place, len(values)) - 1]


def decided(name: str, line: Line, metric: dict[str, Any]) -> bool:
    value, p = line["found"][name]
    if metric["kind"] == "number":
        return bool(value > metric["threshold"])
    return p is not None and p <= ALPHA
