"""`obverse train`: one net, into a run directory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import training
from ..._core import BadInput, ObverseError, explained, quoted, require
from ...present import Json, Report, echo, echo_page, echo_quick, options, print_json, training_progress
from .._settings import Settings
from ._flags import with_settings
from ._quick import EPOCHS, POINTS, fewer_points

if TYPE_CHECKING:
    from .. import ClassifierTask

LITTLE = 0.5  # an error that a net which always gives the same answer can have
WITH_SHADOWS = ", and then its shadows say nothing"


@contextmanager
def said_once() -> Iterator[None]:
    """Of several processes the first one says what is wrong; the others leave with the same exit code."""
    try:
        yield
    except ObverseError as error:
        from .._distributed import speaks

        if speaks():
            raise
        raise SystemExit(130 if isinstance(error, training.Interrupted) else 2) from None


@said_once()
@with_settings()
def train(
    values: dict[str, Any],
    out: Annotated[Path | None, options.out_at("the run", "runs/DATA-N")] = None,
    resume: Annotated[Path | None, options.resume("run")] = None,
    quick: Annotated[bool, options.quick(f"{EPOCHS} epochs on at most {POINTS:,} points")] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also log for TensorBoard (needs the extra).")
    ] = False,
    report: Report = True,
    as_json: Json = False,
) -> None:
    """Train one net, with shadows of its own making or without.

    In several processes: torchrun --nproc-per-node 2 -m obverse train … — the same computation.

    Example: obverse train --data mnist --train-size 5000 --weight 1 --out runs/first
    """
    from .._distributed import joined, speaks

    if tensorboard:
        require("tensorboard", "tensorboard")
    with joined():
        if resume is None:
            path, task = _begin(fewer_points(values) if quick else values, out)
        else:
            if values or out or quick:
                raise BadInput(
                    "--resume alone: a run keeps its settings",
                    got=", ".join(values) or ("--out" if out else "--quick"),
                    do="leave them out",
                )
            path, task = resume, _resume(resume)
        records = [] if task is None else _fit(path, task, tensorboard)
    if not speaks():
        return
    if task is None:
        run = training.read_run(path)
        _say(path, run.settings, run.final, as_json, finished=True)
        if report:
            _write_page(path, as_json, anew=False)
        return
    if quick:
        echo_quick(f"{task.settings.epochs} epochs on {len(task.train_y):,} points", as_json)
    _say(path, task.settings, records[-1], as_json)
    if records[-1]["test_error"] > LITTLE:
        echo(
            f"note: the net has learned little{WITH_SHADOWS if task.settings.has_shadows else ''}: "
            + hint(records),
            as_json,
        )
    if report:
        _write_page(path, as_json)


def _write_page(path: Path, as_json: bool, anew: bool = True) -> None:
    """`anew`: even where there is one."""
    from ..page import RESULT

    if anew or not (path / RESULT.html).exists():
        echo_page(RESULT, path, as_json)


def _say(
    path: Path, settings: Settings, final: Mapping[str, Any], as_json: bool, finished: bool = False
) -> None:
    if as_json:
        print_json({"run": path, "settings": settings.to_dict(), "final": final})
    else:
        typer.echo(f"{path}{' is finished already' if finished else ''}: {describe(final)}")


def _begin(values: Mapping[str, Any], out: Path | None) -> tuple[Path, ClassifierTask | None]:
    """A new run; or, where the launcher has started its processes anew, the one they began before."""
    from .._distributed import by_first, launchers, may_restart, started_anew

    settings = Settings.from_mapping(values, "the flags and the settings file")
    if out is None and may_restart():
        raise BadInput(
            "--out for a run that torchrun may restart: it has to be found again",
            got="--max-restarts without it",
            do="add --out DIR",
        )
    started_by = launchers()
    if out is not None and started_anew() and by_first(lambda: _began(out, settings, started_by)):
        return out, _resume(out)
    # Before the directory is made: it may refuse the settings.
    task = _task(settings)
    path = by_first(lambda: free_path(settings.data) if out is None else out)
    by_first(lambda: training.create_run(path, settings, started_by if may_restart() else ()))
    return path, task


def _began(path: Path, settings: Settings, started_by: Sequence[str]) -> bool:
    """Whether the run that these launchers began is there; any other is left to `create_run` to refuse."""
    if not (path / "config.json").exists():
        return False
    run = training.read_run(path)
    known = run.environment.get("launchers")
    return run.settings == settings and isinstance(known, list) and any(one in known for one in started_by)


def _task(settings: Settings) -> ClassifierTask:
    """The same in every process, data included: each reads its own."""
    from .._distributed import by_all, same_in_all, size

    task = by_all(lambda: training.ClassifierTask(settings))
    if size() > 1:
        digest = str(task.data_digest().tolist())
        same_in_all(f"data {settings.data}", digest, "give all of them the same files")
    return task


def _resume(path: Path) -> ClassifierTask | None:
    """The task of an interrupted run; None if it is finished."""
    from .._distributed import by_first

    run = by_first(lambda: training.read_run(path))
    if by_first(lambda: run.finished):
        return None
    use_threads(run.environment.get("threads"))
    return _task(run.settings)


def _fit(path: Path, task: ClassifierTask, tensorboard: bool) -> list[dict[str, Any]]:
    """Train, with a display in the first process."""
    from .._distributed import speaks

    if not speaks():
        return training.fit_classifier(task, path)
    try:
        with training_progress() as follow, ExitStack() as stack:
            display = follow(path.name or str(path))
            if tensorboard:
                log = stack.enter_context(_tensorboard(path))
                display["on_record"] = both(display.get("on_record"), log)
            return training.fit_classifier(task, path, **display)
    except training.Interrupted:
        typer.echo(f"resume with: obverse train --resume {quoted(path)}", err=True)
        raise


def hint(records: Sequence[Mapping[str, Any]]) -> str:
    """What to try where the net has not learned."""
    losses = [record["train_loss"] for record in records if record.get("train_loss") is not None]
    if losses and losses[-1] > 0.9 * losses[0] and losses[-1] <= 1.1 * losses[0]:
        return "the loss has hardly moved: try more epochs, or another lr, larger or smaller"
    return "try a smaller lr, and inputs scaled to about [0, 1]"


def describe(record: Mapping[str, Any]) -> str:
    said = f"test error {100 * record['test_error']:.2f} %"
    if "shadow_error" not in record:  # a run that measures no shadows
        return said
    return (
        f"{said}, on shadows {100 * record['shadow_error']:.2f} %, "
        f"same label {100 * record['label_agreement']:.1f} %"
    )


def use_threads(count: object) -> None:
    """Go on with as many threads as the run began with: the last bits of a sum depend on them."""
    import torch

    if type(count) is int and 1 <= count <= 1024:
        torch.set_num_threads(count)


def free_path(data: str) -> Path:
    """runs/NAME-1, or the first number that is free: made here, so that nobody else takes it."""
    name = Path(data).stem or "run"
    for number in itertools.count(1):
        path = Path("runs") / f"{name}-{number}"
        with explained(path):
            path.parent.mkdir(exist_ok=True)
            try:
                path.mkdir()
            except FileExistsError:
                continue
        return path
    raise AssertionError("numbers do not end")


@contextmanager
def new_place(out: Path | None, name: str) -> Iterator[Path]:
    """`out`, or a free path; one that was made here and is still empty goes when something goes wrong."""
    path = free_path(name) if out is None else out
    try:
        yield path
    except BaseException:
        if out is None:
            with suppress(OSError):
                path.rmdir()
                path.parent.rmdir()
        raise


def both(first: Callable[[Any], None] | None, second: Callable[[Any], None]) -> Callable[[Any], None]:
    """One callback that makes two calls."""

    def call(record: Any) -> None:
        if first:
            first(record)
        second(record)

    return call


@contextmanager
def _tensorboard(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(path / "tensorboard")) as writer:

        def write(record: Mapping[str, Any]) -> None:
            for name, value in record.items():
                parts = value.items() if isinstance(value, Mapping) else [("", value)]
                for part, number in parts:
                    if isinstance(number, float):
                        writer.add_scalar(f"{name}/{part}" if part else name, number, record["epoch"])
            writer.flush()

        yield write
