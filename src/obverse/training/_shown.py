"""What a run or comparison directory says, checked and as one value. Not for showing it.

Directories are untrusted: whatever reaches a page or a figure passes through here first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._core import BadInput, NoSuchFile, quoted
from . import Comparison, RunRecord, Settings, read_comparison, read_plan, read_run, summarize
from ._compare import run_path, variant_settings
from ._rundir import OF_SHADOWS

FRACTIONS = ("test_error", *OF_SHADOWS)
ALONE = "this run"  # the name of the only variant of a single run


@dataclass(frozen=True)
class Missing:
    """A planned run that is not finished; `epoch` is None where it was never begun."""

    variant: str
    seed: int
    epoch: int | None


@dataclass(frozen=True)
class Results:
    """The runs to show, by variant in the order of the plan; a single run is a plan of one variant."""

    name: str
    is_comparison: bool
    plan: dict[str, Settings]
    seeds: tuple[int, ...]
    runs: dict[str, tuple[RunRecord, ...]]
    missing: tuple[Missing, ...]
    table: Comparison

    @property
    def settings(self) -> Settings:
        """Those of the first variant, for what the plan has in common."""
        return next(iter(self.plan.values()))

    @property
    def shadowed(self) -> dict[str, tuple[RunRecord, ...]]:
        """The variants whose runs measured their shadows: plain training of some nets leaves it out."""
        return {name: runs for name, runs in self.runs.items() if self.plan[name].has_shadows}

    @property
    def error_name(self) -> str:
        """What `test_error` really is: with held-out training points it is not a test error."""
        return "validation error" if self.settings.validation else "test error"


def is_results(path: Path) -> bool:
    """Is this a run directory or a comparison directory, sound or not?"""
    return (path / "comparison.json").is_file() or (path / "config.json").is_file()


def read_results(path: Path) -> Results:
    """The results of a run directory or a comparison directory."""
    if (path / "comparison.json").is_file():
        return _comparison(path)
    if (path / "config.json").is_file():
        return _single(path)
    if not path.exists():
        raise NoSuchFile(path)
    raise BadInput(
        f"{path} to be a directory made by `obverse train`, `obverse compare` or `obverse audit`",
        got="no config.json or comparison.json there" if path.is_dir() else "a file",
        do="check the path, or make one with: obverse train",
    )


def _single(path: Path) -> Results:
    run = checked(read_run(path))
    evaluated = [index for index, record in enumerate(run.metrics) if record.get("test_error") is not None]
    if not evaluated:
        raise BadInput(
            f"at least one evaluated epoch in {path}", got="none yet", do="resume the run or let it go on"
        )
    shown = replace(run, metrics=run.metrics[: evaluated[-1] + 1])
    seed = run.settings.seed
    missing = () if run.finished else (Missing(ALONE, seed, run.metrics[-1]["epoch"]),)
    return Results(
        name=path.resolve().name,
        is_comparison=False,
        plan={ALONE: run.settings},
        seeds=(seed,),
        runs={ALONE: (shown,)},
        missing=missing,
        table=summarize({ALONE: [shown]}),
    )


def _comparison(path: Path) -> Results:
    runs = {
        variant: tuple(checked(run, needs_final=True) for run in found)
        for variant, found in read_comparison(path).items()
    }
    asked = read_plan(path)
    plan = {name: variant_settings(asked.base, name, asked.weight) for name in asked.variants}
    seeds = asked.seeds
    done = {variant: {run.path for run in found} for variant, found in runs.items()}
    missing = tuple(
        Missing(variant, seed, _epoch_reached(run_path(path, variant, seed)))
        for seed in seeds
        for variant in plan
        if run_path(path, variant, seed) not in done[variant]
    )
    if not any(runs.values()):
        raise BadInput(
            f"at least one finished run in {path}",
            got=f"none of {len(missing)}",
            do=f"go on with: obverse compare --resume {quoted(path)}",
        )
    return Results(
        name=path.resolve().name,
        is_comparison=True,
        plan=plan,
        seeds=seeds,
        runs={variant: found for variant, found in runs.items() if found},
        missing=missing,
        table=summarize(runs),
    )


def _epoch_reached(path: Path) -> int | None:
    if not (path / "config.json").is_file():
        return None
    metrics = checked(read_run(path)).metrics
    return int(metrics[-1]["epoch"]) if metrics else 0


def checked(run: RunRecord, *, needs_final: bool = False) -> RunRecord:
    """The same run, or an error that names the first record which does not hold what it must."""
    needed = FRACTIONS if run.settings.has_shadows else FRACTIONS[:1]
    for number, record in enumerate(run.metrics, start=1):
        problem = _problem(record, needed)
        if problem:
            raise BadInput(
                f"metrics as `fit` writes them in {run.path / 'metrics.jsonl'}",
                got=f"{problem} in record {number}",
                do="restore the file, or train again",
            )
    if needs_final and any(run.final.get(name) is None for name in needed):
        raise BadInput(
            f"{', '.join(needed)} in the last record of {run.path / 'metrics.jsonl'}",
            got=f"only {', '.join(run.final)}",
            do="restore the file, or train again",
        )
    return run


def _problem(record: Mapping[str, Any], needed: tuple[str, ...]) -> str | None:
    epoch, recovered = record.get("epoch"), record.get("recovery_error") or {}
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch < 2**31:
        return f"epoch {epoch!r}"
    if not _is_number(record.get("seconds")):
        return f"seconds {record.get('seconds')!r}"
    for name in FRACTIONS:
        value = record.get(name)
        if value is not None and not (_is_number(value) and value <= 1):
            return f"{name} {value!r}"
    if [name for name in needed if record.get(name) is None] not in ([], list(needed)):
        return f"some but not all of {', '.join(needed)}"
    if not isinstance(recovered, dict):
        return f"recovery_error {recovered!r}"
    for layer, value in recovered.items():
        if value is not None and not _is_number(value):
            return f"recovery_error {value!r} of {layer!r}"
    return None


def _is_number(value: Any) -> bool:
    """A finite number ≥ 0: Python's JSON reader lets NaN, infinity and booleans through."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
