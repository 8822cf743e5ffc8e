"""`obverse compare`: the same training with and without shadows, dropout and controls, over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadInput
from ..training import Comparison, Interrupted, Plan, Settings, read_plan
from ..training import compare as run_comparison
from ..training.compare import DEFAULT, FIGURES, PLAIN, VARIANTS, VARIED
from ..training.distributed import refuse_several
from .options import numbers, with_settings
from .progress import training_progress
from .train import free_path


@with_settings(without=("seed", "weight", *VARIED))
def compare(
    values: dict[str, Any],
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…", help=f"Variants out of: {', '.join(VARIANTS)} \\[{','.join(DEFAULT)}]."
        ),
    ] = None,
    figure: Annotated[
        int | None, typer.Option(metavar="N", help="The variants of the paper's Figure 3, 5, 6 or 7.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option(metavar="W", help="Weight of the shadows' loss \\[1].")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="How many seeds, or which: 0,1,2 \\[3].")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the runs \\[runs/compare-DATA-N].")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with a comparison that was cut off.")
    ] = None,
    report: Annotated[bool, typer.Option(help="Write the page at the end.")] = True,
) -> None:
    """Compare backpropagation, dropout, SHADOW and controls: same seeds, same batches.

    Example: obverse compare --data mnist --train-size 5000 --seeds 5 --out runs/mnist
    """
    refuse_several("obverse compare")
    if resume is None:
        for name in ("seed", "control"):
            if name in values:
                raise BadInput(
                    f"no {name} in the settings file of a comparison",
                    got=values[name],
                    do="use --seeds" if name == "seed" else "name a variant, e.g. control-noise",
                )
        base = Settings.from_mapping(values, "the flags and the settings file")
        path = out or free_path(f"compare-{Path(base.data).stem}")
        plan = Plan(
            base,
            _names(variants, figure, PLAIN if base.net == "allconv" else DEFAULT),
            values.get("weight", 1.0) if weight is None else weight,
            numbers(seeds or "3", "--seeds"),
        )
    else:
        if values or out or variants or seeds or figure or weight is not None:
            raise BadInput(
                "--resume alone: a comparison keeps its settings", got="other flags", do="leave them out"
            )
        path, plan = resume, read_plan(resume)
    total = len(plan.variants) * len(plan.seeds)
    try:
        with training_progress() as follow:
            started = iter(range(1, total + 1))
            table = run_comparison(
                plan.base,
                plan.variants,
                plan.seeds,
                path,
                weight=plan.weight,
                on_run=lambda name, seed: follow(f"{next(started):>2}/{total} {name} seed {seed}"),
            )
    except Interrupted:
        typer.echo(f"resume with: obverse compare --resume {path}", err=True)
        raise
    print_table(table)
    typer.echo(f"runs: {path}")
    if report:
        from ..report import build

        typer.echo(f"page: {build(path)}")


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
    from rich.console import Console
    from rich.table import Table

    first = comparison.rows[0].variant if comparison.rows else ""
    table = Table(title="Errors in %, mean ± standard error over seeds")
    for title in ("variant", "runs", "test error", "on shadows", "same label", f"minus {first}", "p"):
        table.add_column(title, justify="left" if title == "variant" else "right")

    def percent(value: float | None, spread: float | None = None, sign: str = "") -> str:
        if value is None:
            return "–"
        return f"{100 * value:{sign}.2f}" + ("" if spread is None else f" ± {100 * spread:.2f}")

    for row in comparison.rows:
        table.add_row(
            row.variant,
            str(row.runs),
            percent(row.test_error, row.test_error_se),
            percent(row.shadow_error, row.shadow_error_se),
            percent(row.label_agreement),
            percent(row.difference, row.difference_se, "+"),
            "–" if row.p_value is None else f"{row.p_value:.3f}",
        )
    Console(width=None if Console().is_terminal else 110).print(table)
