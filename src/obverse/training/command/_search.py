"""`obverse search`: the learning rate and the weight of the shadows, chosen on held-out points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ... import training
from ..._core import FIXED, BadInput, quoted, require
from ...present import (
    Column,
    Counted,
    Json,
    Report,
    echo,
    echo_page,
    every_minute,
    open_console,
    options,
    print_grid,
    print_result,
    say,
)
from .._settings import Settings
from ._flags import with_settings
from ._quick import EPOCHS, POINTS, fewer_points
from ._train import new_place

if TYPE_CHECKING:
    from .._search.plan import Pruner, Sampler, SearchPlan
    from .._search.results import SearchResult
    from .._search.worker import Event

QUICK_LRS, QUICK_WEIGHTS = 2, 3  # every second of the paper's lrs, every third of its weights


@with_settings(without=("lr", "weight", "validation"))
def search(
    values: dict[str, Any],
    lrs: Annotated[
        str | None,
        typer.Option(metavar="LR,LR,…", help="Learning rates \\[the paper's 4^a/1000, a from -2 to 2]."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="W,W,…",
            help="Weights of the shadows' loss; 0 is plain training \\[the paper's 2^b, b from -3 to 3].",
        ),
    ] = None,
    sampler: Annotated[
        str | None,
        options.choice(
            "`grid`, every lr with every weight, or `tpe`, which chooses between the ends \\[grid].",
            "grid",
            "tpe",
        ),
    ] = None,
    pruner: Annotated[
        str | None,
        options.choice(
            "`median` stops trials that are behind most others, or `none` \\[none].", "median", "none"
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="How many trials \\[as many as the grid has].")
    ] = None,
    validation: Annotated[
        int | None,
        typer.Option(metavar="N", help="Hold out so many training points \\[10000, at most a fifth]."),
    ] = None,
    jobs: Annotated[
        int,
        options.jobs("1; several have one thread each, and with --resume as many as the search began with"),
    ] = 1,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Database for the study, which several machines can use: the same command with the same URL "
            "joins the search \\[study.db in the directory].",
        ),
    ] = None,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain/--no-retrain",
            show_default=False,
            help="Train the best on all points at the end, and test it \\[yes].",
        ),
    ] = True,
    quick: Annotated[
        bool,
        options.quick(
            "every second of the lrs, every third of the weights, "
            f"{EPOCHS} epochs on at most {POINTS:,} points"
        ),
    ] = False,
    out: Annotated[Path | None, options.out_at("the trials", "runs/search-DATA-N")] = None,
    resume: Annotated[Path | None, options.resume("search")] = None,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Take up trials that another directory began and nobody runs any more."
        ),
    ] = False,
    report: Report = True,
    as_json: Json = False,
    rates: Annotated[str | None, typer.Option(hidden=True)] = None,  # the name that --lrs had before
) -> None:
    """Search for the learning rate and the weight of the shadows, then train the best on everything.

    The paper's protocol: both are chosen on held-out points. Needs the extra `search`.

    Example: obverse search --data mnist --hidden 1000,1000 --epochs 10 --jobs 2 --out runs/tuned
    """
    from .._distributed import refuse_several

    refuse_several("obverse search")
    require("optuna", "search")
    from .._search.page import RESULT
    from .._search.search import read_plan

    if rates is not None and lrs is not None:
        raise BadInput("either --lrs or --rates", got="both", do="keep one")
    given = {
        "--lrs": lrs if rates is None else rates,
        "--weights": weights,
        "--sampler": sampler,
        "--pruner": pruner,
        "--trials": trials,
        "--validation": validation,
        "--out": out,
    }
    if resume is None:
        plan = _plan(values, given, jobs, storage, quick)
        with new_place(out, f"search-{Path(plan.base.data).stem}") as path:
            result = _run(plan, path, jobs, storage, retrain, take_over)
    else:
        found = [*values, *(flag for flag, value in given.items() if value is not None)]
        found += ["--quick"] * quick
        if found:
            raise BadInput(
                "--resume with --jobs, --storage, --take-over, --retrain, --report and --json alone: a "
                "search keeps its settings",
                got=", ".join(found),
                do="leave them out",
            )
        path = resume
        result = _run(read_plan(resume), path, jobs, storage, retrain, take_over)
    small = f"{len(result.trials)} trials, {result.epochs} epochs on {result.train_points:,} points"
    print_result(result, RESULT, print_search, as_json=as_json, quick=small if quick else "")
    echo(f"search: {path}", as_json)
    if report:
        echo_page(RESULT, path, as_json)


def _run(
    plan: SearchPlan, path: Path, jobs: int, storage: str | None, retrain: bool, take_over: bool
) -> SearchResult:
    from .._search.search import run_search

    waited = False

    def notice(worker: int, event: Any) -> None:
        nonlocal waited
        if event["kind"] == "gone" and event["code"] not in (0, 130):
            why = event["said"] or f"exit code {event['code']}"
            typer.echo(
                f"worker {worker + 1} of {jobs} has ended ({why}); another takes up its trial", err=True
            )
        if event["kind"] == "wait" and event["elsewhere"] and not waited:
            waited = True
            typer.echo(
                f"waiting for trial {', '.join(map(str, event['elsewhere']))}, which another directory runs; "
                f"if nobody runs it any more: obverse search --resume {quoted(path)} --take-over",
                err=True,
            )

    try:
        with search_progress(plan.trials) as follow:

            def tell(worker: int, event: Any) -> None:
                notice(worker, event)
                follow(worker, event)

            return run_search(
                plan,
                path,
                storage=storage,
                jobs=jobs,
                retrain=retrain,
                take_over=take_over,
                tell=tell,
            )
    except training.Interrupted:
        more = " --storage URL" if storage else ""
        typer.echo(f"resume with: obverse search --resume {quoted(path)}{more}", err=True)
        raise


def _plan(
    values: dict[str, Any], given: dict[str, Any], jobs: int, storage: str | None, quick: bool
) -> SearchPlan:
    from .._search.plan import HELD_OUT, LRS, WEIGHTS
    from .._search.search import make_plan

    for name in ("lr", "weight"):
        if name in values:
            raise BadInput(
                f"no {name} in the settings file of a search", got=values[name], do=f"use --{name}s"
            )
    if given["--validation"] is not None:
        values = values | {"validation": given["--validation"]}
    lrs, weights = (LRS[1::QUICK_LRS], WEIGHTS[::QUICK_WEIGHTS]) if quick else (LRS, WEIGHTS)
    base = Settings.from_mapping(fewer_points(values) if quick else values, "the flags and the settings file")
    plan = make_plan(
        base,
        lrs=_floats(given["--lrs"], "--lrs", lrs),
        weights=_floats(given["--weights"], "--weights", weights),
        sampler=cast("Sampler", given["--sampler"] or "grid"),
        pruner=cast("Pruner", given["--pruner"] or "none"),
        trials=given["--trials"],
        threads=1 if jobs > 1 else None,
        shared=storage is not None,
    )
    if "validation" not in values and plan.base.validation < HELD_OUT:
        typer.echo(
            f"note: {plan.base.validation:,} points are held out, a fifth, for want of {HELD_OUT:,}", err=True
        )
    return plan


def _floats(text: str | None, flag: str, usual: tuple[float, ...]) -> tuple[float, ...]:
    if text is None:
        return usual
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = ()
    if not found:
        raise BadInput(f"{flag} as numbers, e.g. 0.01,0.05", got=repr(text), do="correct it")
    return found


DROP = {"seconds": 1, "epochs": 2}  # where there is no room


def print_search(result: SearchResult) -> None:
    """Every trial, then the best and how far to trust it."""
    from .._search.results import verdict
    from .._search.words import outlook

    console = open_console()
    if result.trials:
        print_grid(console, search_columns(result), "the best")
    for trial in result.trials:
        if trial.reason:
            say(console, f"trial {trial.number} failed: {trial.reason}", "dim")
    say(console, verdict(result).replace(FIXED, " "), "bold")
    for sentence in outlook(result):
        say(console, sentence.replace(FIXED, " "))


def search_columns(result: SearchResult) -> list[Column]:
    from .._search.words import HEADINGS, ordered, row

    trials = ordered(result)
    best = frozenset(at for at, trial in enumerate(trials) if trial is result.best)
    cells = zip(*map(row, trials), strict=True)
    return [
        Column(
            heading,
            column,
            drop=DROP.get(heading, 0),
            marked=best if heading == "held-out error, %" else frozenset(),
            left=heading == "state",
            styles=tuple("bold green" if at in best else "" for at in range(len(column))),
        )
        for heading, column in zip(HEADINGS, cells, strict=True)
    ]


@contextmanager
def search_progress(trials: int) -> Iterator[Callable[[int, Event], None]]:
    """Yields what a search calls with a worker's number and what it does."""
    from .._search.results import value

    console = Console(stderr=True)
    if not console.file.isatty():
        count = Counted("trials")
        with every_minute(count.line):
            yield partial(_count_trials, count, trials)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}", markup=False),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as progress:
        whole = progress.add_task("trials", total=trials, said="")
        bars: dict[int, TaskID] = {}

        def follow(worker: int, event: Event) -> None:
            kind = event["kind"]
            if kind == "end":
                best = event["best"]
                said = "" if best is None else f"best {100 * best:.2f} %"
                progress.update(whole, completed=event["finished"], said=said)
                return
            if worker not in bars:
                bars[worker] = progress.add_task("", total=None, said="")
            if kind == "gone":
                progress.remove_task(bars.pop(worker))
            elif kind == "wait":
                running = ", ".join(map(str, event["trials"][:5]))
                progress.update(bars[worker], description=f"waits for trial {running}", total=None, said="")
            else:
                title = "best, on all points"
                if kind == "step":
                    setting = f"lr {value(event['lr'])}, weight {value(event['weight'])}"
                    title = f"trial {event['trial']}: {setting}"
                progress.update(
                    bars[worker],
                    description=title,
                    completed=event["step"],
                    total=event["total"],
                    said=f"loss {event['loss']:.3f}",
                )

        yield follow


def _count_trials(count: Counted, trials: int, worker: int, event: Event) -> None:
    """The same where there is no terminal: how many trials are finished, for the line of each minute."""
    if event["kind"] == "end":
        best = event["best"]
        count.tell(event["finished"], trials, "" if best is None else f"best {100 * best:.2f} %")
