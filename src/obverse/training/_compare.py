"""The same training under several variants: same seeds, same batches, means with standard errors.

The paper's Figures 3, 5, 6 and 7 and the controls that they lack. Not for choosing settings: every
variant runs with the settings it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .._core import (
    BadInput,
    Interrupted,
    ObverseError,
    Progress,
    Result,
    explained,
    locked,
    mean_and_se,
    quoted,
    read_json,
    stop_signals,
    write_json,
)
from ..data import Dataset, load
from ._classify import ClassifierTask, fit_classifier
from ._rundir import RunRecord, read_run, ready_run
from ._settings import MAX_PLAN, Settings
from ._variants import VARIANTS, VARIED, WEIGHTED

FORMAT = 1
STOPPED = "stopped"  # what a process says that was told to stop


@dataclass(frozen=True)
class Row:
    """One variant over its seeds, at the last epoch; errors and agreement are fractions."""

    variant: str
    runs: int
    test_error: float
    test_error_se: float | None
    shadow_error: float | None  # None: no shadows were measured
    shadow_error_se: float | None
    label_agreement: float | None
    difference: float | None  # to the first variant, paired by seed
    difference_se: float | None
    p_value: float | None  # paired t test, two-sided
    seconds: float  # of training, a run


@dataclass(frozen=True)
class Comparison(Result):
    """The table of a comparison."""

    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            spread = "" if row.test_error_se is None else f" ± {100 * row.test_error_se:.2f}"
            lines.append(f"{row.variant:<20} error {100 * row.test_error:5.2f}{spread} %")
        return "\n".join(lines)


def variant_settings(base: Settings, variant: str, weight: float) -> Settings:
    """The base settings with a variant's changes."""
    if variant not in VARIANTS:
        raise BadInput(f"a variant out of {', '.join(VARIANTS)}", got=repr(variant), do="pass one of these")
    changes: dict[str, Any] = {
        key: weight if value == WEIGHTED else value for key, value in VARIANTS[variant].items()
    }
    if changes.get("layer") == "output":
        changes["layer"] = f"h{len(base.hidden) + 1}" if base.net == "mlp" else "output"
    return replace(base, **changes)


def compare(
    base: Settings,
    variants: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    *,
    weight: float = 1.0,
    jobs: int | None = None,
    on_run: Callable[[str, int], Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Train every variant with every seed into `out`/runs; finished runs are kept, cut-off ones resumed.

    `jobs` processes share the runs, each with one thread, so that the numbers do not depend on how many there
    are; None is this process with all its threads. `on_run(variant, seed)` is called before each run and
    returns display callbacks for `fit`, which reach no other process; `progress` is told of each run that is
    done: how many of how many, and which.
    """
    if jobs is not None and jobs < 1:
        raise BadInput("jobs ≥ 1", got=jobs, do="leave it out for this process with all its threads")
    for name in VARIED:
        if getattr(base, name) != getattr(Settings(), name):
            raise BadInput(
                f"no {name} in the settings that all variants share",
                got=getattr(base, name),
                do="name variants that differ in it, or use `obverse train` for a setting of your own",
            )
    planned = {name: variant_settings(base, name, weight) for name in variants}
    record = {
        "format": FORMAT,
        "base": base.to_dict(),
        "variants": list(variants),
        "weight": weight,
        "seeds": list(seeds),
    }
    place = out / "comparison.json"
    asked = Plan(base, tuple(variants), weight, tuple(seeds))
    if place.exists():
        refuse_other(out, asked)
    data: Dataset | None = None
    if not place.exists():
        data = load(base.data, base.data_root)
        for settings in planned.values():
            ClassifierTask(settings, data)  # refuses what is wrong before anything is written
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out):  # of two that begin at once one writes its plan, and the other finds it
        if not place.exists():
            write_json(place, record)
        refuse_other(out, asked)
    todo = [(name, replace(planned[name], seed=seed)) for seed in seeds for name in variants]
    if jobs is not None:
        in_processes(todo, out, jobs, progress)
        return summarize(read_comparison(out))
    for done, (name, settings) in enumerate(todo, 1):
        path = begin_run(out, name, settings)
        if path is not None:
            data = load(base.data, base.data_root) if data is None else data
            display = on_run(name, settings.seed) if on_run else {}
            fit_classifier(ClassifierTask(settings, data), path, **display)
        if progress:
            progress(done, len(todo), f"{name} seed {settings.seed} is done")
    return summarize(read_comparison(out))


def refuse_other(out: Path, asked: Plan) -> None:
    """An error if the comparison in a directory is another one."""
    if read_plan(out) != asked:
        raise BadInput(
            f"the settings of {out / 'comparison.json'}",
            got="others",
            do=f"choose another --out, or go on with: obverse compare --resume {quoted(out)}",
        )


def begin_run(out: Path, variant: str, settings: Settings) -> Path | None:
    """The directory of one run, made if it is not there; None if the run is finished."""
    path = run_path(out, variant, settings.seed)
    what = f"{variant} with seed {settings.seed}"
    run = ready_run(path, settings, what, "move this run away, or choose another --out")
    return None if run.finished else path


def in_processes(
    todo: Sequence[tuple[str, Settings]],
    out: Path,
    jobs: int,
    progress: Progress | None = None,
) -> None:
    """The runs of a comparison in several processes of one thread each.

    Ctrl-C reaches every process: each saves its run and begins no other.
    """
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed

    done = 0
    with stop_signals() as stop:
        work = Parallel(
            jobs, backend="loky", batch_size=1, pre_dispatch=jobs, return_as="generator_unordered"
        )
        left = (one for one in todo if not stop.is_set())
        try:
            for name, seed, wrong in work(delayed(_alone)(out, name, settings) for name, settings in left):
                if wrong == STOPPED:
                    stop.set()
                elif wrong:
                    raise ObverseError(wrong)
                else:
                    done += 1
                    if progress:
                        progress(done, len(todo), f"{name} seed {seed} is done")
        except BrokenProcessPool as error:
            raise ObverseError(
                "expected every process to end well; got one that was killed, often for want of memory; "
                f"with fewer --jobs, go on with: obverse compare --resume {quoted(out)}"
            ) from error
        if stop.is_set() and done < len(todo):
            raise ComparisonInterrupted(done, len(todo), out)


def _alone(out: Path, variant: str, settings: Settings) -> tuple[str, int, str]:
    """One run in a process of its own; what was wrong with it as a sentence."""
    import torch

    torch.set_num_threads(1)
    wrong = ""
    try:
        path = begin_run(out, variant, settings)
        if path is not None:
            fit_classifier(ClassifierTask(settings), path)
    except (Interrupted, KeyboardInterrupt):
        wrong = STOPPED
    except ObverseError as error:
        wrong = str(error)
    return variant, settings.seed, wrong


class ComparisonInterrupted(Interrupted):
    """Stopped by the user (Ctrl-C) while several worker processes ran."""

    def __init__(self, done: int, total: int, out: Path) -> None:
        ObverseError.__init__(self, f"stopped after {done} of {total} runs; saved in {out}")


def run_path(out: Path, variant: str, seed: int) -> Path:
    return out / "runs" / variant / f"seed-{seed}"


@dataclass(frozen=True)
class Plan:
    """What a comparison set out to do: the content of its comparison.json."""

    base: Settings
    variants: tuple[str, ...]
    weight: float
    seeds: tuple[int, ...]


def read_plan(path: Path) -> Plan:
    place = path / "comparison.json"
    record = read_json(place, "the comparison.json of a comparison", MAX_PLAN)
    variants, seeds, weight = record.get("variants"), record.get("seeds"), record.get("weight")
    if record.get("format") != FORMAT or not isinstance(record.get("base"), dict):
        raise BadInput(f"a comparison of format {FORMAT}", got=f"{place}", do="start a new one")
    if not isinstance(variants, list) or not all(
        isinstance(name, str) and name in VARIANTS for name in variants
    ):
        raise BadInput(
            f"variants out of {', '.join(VARIANTS)} in {place}", got=variants, do="start a new one"
        )
    if not isinstance(seeds, list):
        raise BadInput(f"a list of seeds in {place}", got=seeds, do="start a new one")
    for given in (variants, seeds):
        if not given or len(set(map(str, given))) < len(given):
            raise BadInput(
                f"at least one variant and seed in {place}, none twice", got=given, do="start a new one"
            )
    base, source = record["base"], str(place)
    weighted = Settings.from_mapping({**base, "weight": weight}, source)
    checked = [Settings.from_mapping({**base, "seed": seed}, source).seed for seed in seeds]
    return Plan(Settings.from_mapping(base, source), tuple(variants), weighted.weight, tuple(checked))


def read_comparison(path: Path) -> dict[str, list[RunRecord]]:
    """The finished runs of a comparison directory, by variant in the order of the plan."""
    plan = read_plan(path)
    found = {
        name: [
            read_run(run_path(path, name, seed))
            for seed in plan.seeds
            if (run_path(path, name, seed) / "config.json").exists()
        ]
        for name in plan.variants
    }
    return {name: [run for run in runs if run.finished] for name, runs in found.items()}


def summarize(runs: Mapping[str, Sequence[RunRecord]]) -> Comparison:
    """Mean and standard error of each variant, and its paired difference to the first one."""
    rows = []
    reference: dict[int, float] = {}
    for variant, records in runs.items():
        if not records:
            continue
        error = {run.settings.seed: float(run.final["test_error"]) for run in records}
        measured = all(run.settings.has_shadows for run in records)
        shadow, shadow_se = _mean(records, "shadow_error") if measured else (None, None)
        agreement, _ = _mean(records, "label_agreement") if measured else (None, None)
        seconds = [math.fsum(record.get("seconds", 0.0) for record in run.metrics) for run in records]
        differences = [error[seed] - reference[seed] for seed in error if seed in reference]
        difference, difference_se = mean_and_se(differences) if differences else (None, None)
        rows.append(
            Row(
                variant,
                len(records),
                *mean_and_se(list(error.values())),
                shadow,
                shadow_se,
                agreement,
                difference,
                difference_se,
                paired_p_value(differences),
                mean_and_se(seconds)[0],
            )
        )
        reference = reference or error
    return Comparison(tuple(rows))


def _mean(records: Sequence[RunRecord], name: str) -> tuple[float, float | None]:
    return mean_and_se([float(run.final[name]) for run in records])


def paired_p_value(differences: Sequence[float]) -> float | None:
    """Two-sided p of the paired t test; None where there is nothing to test."""
    rounding = 1e-12  # errors are fractions: what differs by less is equal
    if len(differences) < 2 or max(differences) - min(differences) < rounding:
        return None
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)
