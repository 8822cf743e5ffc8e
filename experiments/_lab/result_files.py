"""Result files of experiments: one entry as it is done, and none measured twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from obverse._core.files import write_text
from obverse.training._settings import RENAMED

SIGNIFICANT = 5  # digits that are kept


def short(value: Any) -> Any:
    """Numbers, alone or in lists and mappings, with as many digits as are kept."""
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT}g}")
    if isinstance(value, Mapping):
        return {key: short(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [short(item) for item in value]
    return value


def measure(
    file: Path, settings: Mapping[str, Any], entries: Mapping[str, Callable[[], Any]], threads: int = 1
) -> dict[str, Any]:
    """Every entry, written as it is done; what is in the file already, by the same settings, stays."""
    torch.set_num_threads(threads)
    wanted = json.loads(json.dumps(settings))
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if with_names_of_today(known.get("settings")) != with_names_of_today(wanted):
        known = {"settings": wanted, "entries": {}}
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, run in entries.items():
        if name in known["entries"]:
            continue
        start = perf_counter()
        known["entries"][name] = short(run())
        write_text(file, json.dumps(known, allow_nan=False) + "\n")
        print(f"{file.stem}: {name}, {perf_counter() - start:.0f} s", flush=True)
    return known


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def with_names_of_today(value: Any) -> Any:
    """Settings of training, at any depth, by the names that they have now: older files have others."""
    if isinstance(value, Mapping):
        return {RENAMED.get(key, key): with_names_of_today(item) for key, item in value.items()}
    return value


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def error(values: Sequence[float]) -> float:
    """Standard error of the mean; 0 for a single value."""
    centre = mean(values)
    spread = sum((value - centre) ** 2 for value in values) / max(1, len(values) - 1)
    return sqrt(spread / len(values))


def summary(values: Sequence[float]) -> dict[str, float]:
    return {"mean": mean(values), "error": error(values)}


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the straight line through points, by least squares."""
    across, up = mean(x), mean(y)
    return sum((a - across) * (b - up) for a, b in zip(x, y, strict=True)) / sum((a - across) ** 2 for a in x)
