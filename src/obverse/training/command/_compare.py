"""`obverse compare`: the same training with and without shadows, dropout and controls, over seeds."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import training
from ..._core import FIXED, NONE, BadInput, percent, quoted, signed
from ...present import (
    Column,
    GivenSeed,
    Json,
    Report,
    check_seed,
    complete,
    echo,
    echo_page,
    echo_quick,
    layer_progress,
    numbers,
    open_console,
    options,
    print_grid,
    print_json,
    training_progress,
)
from .._settings import Settings
from .._variants import DEFAULT, FIGURES, PLAIN, VARIANTS, VARIED
from ._flags import with_settings
from ._quick import EPOCHS, POINTS, fewer_points
from ._train import new_place

if TYPE_CHECKING:
    from .. import Comparison, Plan

SEEDS, QUICK_SEEDS = 3, 2


@with_settings(without=("seed", "weight", *VARIED))
def compare(
    values: dict[str, Any],
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help=f"Variants out of: {', '.join(VARIANTS)} \\[{','.join(DEFAULT)}].",
            autocompletion=complete.one_of(*VARIANTS),
        ),
    ] = None,
    figure: Annotated[
        int | None, typer.Option(metavar="N", help="The variants of the paper's Figure 3, 5, 6 or 7.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option(metavar="W", help="Weight of the shadows' loss \\[1].")
    ] = None,
    seed: GivenSeed = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N", help=f"How many seeds, from --seed on, or which: 0,1,2 \\[{SEEDS}]."),
    ] = None,
    jobs: Annotated[int | None, options.jobs("this one with all its threads; else one thread each")] = None,
    quick: Annotated[
        bool, options.quick(f"{QUICK_SEEDS} seeds, {EPOCHS} epochs on at most {POINTS:,} points")
    ] = False,
    out: Annotated[Path | None, options.out_at("the runs", "runs/compare-DATA-N")] = None,
    resume: Annotated[Path | None, options.resume("comparison")] = None,
    report: Report = True,
    as_json: Json = False,
) -> None:
    """Compare backpropagation, dropout, SHADOW and controls: same seeds, same batches.

    Example: obverse compare --data mnist --train-size 5000 --seeds 5 --out runs/mnist
    """
    from .._distributed import refuse_several

    refuse_several("obverse compare")
    if jobs is not None and jobs < 1:
        raise BadInput("--jobs ≥ 1", got=jobs, do="leave it out for this process with all its threads")
    with ExitStack() as stack:
        if resume is None:
            plan = _plan(values, variants, figure, weight, _seeds(seed, seeds, quick), quick)
            path = stack.enter_context(new_place(out, f"compare-{Path(plan.base.data).stem}"))
        else:
            given = (out, variants, seeds, figure, weight, seed)
            if values or quick or any(one is not None for one in given):
                raise BadInput(
                    "--resume with --jobs, --report and --json alone: a comparison keeps its settings",
                    got="other flags",
                    do="leave them out",
                )
            path, plan = resume, training.read_plan(resume)
        try:
            table = _run(plan, path, jobs)
        except training.Interrupted:
            typer.echo(f"resume with: obverse compare --resume {quoted(path)}", err=True)
            raise
    if quick:
        size = plan.base.train_size
        echo_quick(f"{len(plan.seeds)} seeds, {plan.base.epochs} epochs on {size:,} points", as_json)
    if as_json:
        settings = {
            "base": plan.base.to_dict(),
            "variants": plan.variants,
            "weight": plan.weight,
            "seeds": plan.seeds,
        }
        print_json({"comparison": path, **settings, **table.to_dict()})
    else:
        print_table(table)
    echo(f"runs: {path}", as_json)
    if report:
        from ..page import RESULT

        echo_page(RESULT, path, as_json)


def _plan(
    values: dict[str, Any],
    variants: str | None,
    figure: int | None,
    weight: float | None,
    seeds: tuple[int, ...],
    quick: bool,
) -> Plan:
    for name in ("seed", "control"):
        if name in values:
            raise BadInput(
                f"no {name} in the settings file of a comparison",
                got=values[name],
                do="use --seed" if name == "seed" else "name a variant, e.g. control-noise",
            )
    base = Settings.from_mapping(fewer_points(values) if quick else values, "the flags and the settings file")
    names = _names(variants, figure, PLAIN if base.net == "allconv" else DEFAULT)
    return training.Plan(base, names, values.get("weight", 1.0) if weight is None else weight, seeds)


def _seeds(first: int | None, which: str | None, quick: bool) -> tuple[int, ...]:
    """So many from the first one on, or those that are named."""
    found = numbers(which or str(QUICK_SEEDS if quick else SEEDS), "--seeds")
    if first is None:
        return found
    check_seed(first)
    if which is not None and "," in which:
        raise BadInput(
            "--seed or a list of --seeds", got="both", do="leave one out, or give a number of seeds"
        )
    check_seed(first + len(found) - 1)
    return tuple(first + number for number in found)


def _run(plan: Plan, path: Path, jobs: int | None) -> Comparison:
    total = len(plan.variants) * len(plan.seeds)
    about: dict[str, Any] = {"weight": plan.weight, "jobs": jobs}
    if jobs is None:
        with training_progress() as follow:
            begun = iter(range(1, total + 1))
            return training.compare(
                plan.base,
                plan.variants,
                plan.seeds,
                path,
                on_run=lambda name, seed: follow(f"{next(begun):>2}/{total} {name} seed {seed}"),
                **about,
            )
    with layer_progress(path.name) as progress:
        progress(0, total, f"{jobs} worker processes")
        return training.compare(plan.base, plan.variants, plan.seeds, path, progress=progress, **about)


def _names(variants: str | None, figure: int | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    if variants and figure:
        raise BadInput("--variants or --figure", got="both", do="leave one out")
    if figure is not None:
        if figure not in FIGURES:
            raise BadInput(
                f"--figure out of {', '.join(map(str, FIGURES))}", got=figure, do="pass one of these"
            )
        return FIGURES[figure]
    names = tuple(dict.fromkeys(name.strip() for name in variants.split(","))) if variants else usual
    for name in names:
        if name not in VARIANTS:
            raise BadInput(f"variants out of {', '.join(VARIANTS)}", got=repr(name), do="correct --variants")
    return names


def print_table(comparison: Comparison) -> None:
    rows = comparison.rows
    first = rows[0].variant if rows else ""

    def cell(fraction: float | None, se: float | None = None) -> str:
        return percent(fraction, se, missing=NONE).replace(FIXED, " ")  # a terminal may not know it

    columns = [
        Column("variant", tuple(row.variant for row in rows), left=True, whole=True),
        Column("runs", tuple(str(row.runs) for row in rows), drop=1),
        Column(
            "test error %",
            tuple(cell(row.test_error, row.test_error_se) for row in rows),
            "mean ± standard error over seeds",
        ),
        Column(
            "on shadows %",
            tuple(cell(row.shadow_error, row.shadow_error_se) for row in rows),
            "the same, on shadows of the test inputs",
        ),
        Column(
            "same label %",
            tuple(cell(row.label_agreement) for row in rows),
            "the net calls shadow and input the same",
        ),
        Column(
            f"minus {first}",
            tuple(
                NONE
                if row.difference is None
                else signed(row.difference, row.difference_se).replace(FIXED, " ")
                for row in rows
            ),
            "of test errors, paired by seed",
        ),
        Column(
            "p",
            tuple(NONE if row.p_value is None else f"{row.p_value:.3f}" for row in rows),
            "of a paired t test, two-sided",
        ),
    ]
    print_grid(open_console(), columns, "")
