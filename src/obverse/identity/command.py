"""`obverse memorize`: a residual net that labels every training point right, built without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._core import BadInput
from ..present import (
    Column,
    DataArgument,
    Json,
    Seed,
    check_seed,
    deliver,
    layer_progress,
    make_folder,
    open_console,
    options,
    print_grid,
    say,
)

if TYPE_CHECKING:
    from ._recall import Recall

QUICK_POINTS = 200


def memorize(
    data: DataArgument,
    data_root: Annotated[str | None, options.data_root()] = None,
    points: Annotated[
        int | None, typer.Option(metavar="N", help="Training points, drawn with the seed \\[all].")
    ] = None,
    labels: Annotated[
        str,
        options.choice(
            "The data's `own`, or `random` ones, one for each distinct point \\[own].", "own", "random"
        ),
    ] = "own",
    width: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Units of a block, which moves K points \\[about ln n, as the budget allows]."
        ),
    ] = None,
    float32: Annotated[
        bool,
        typer.Option(
            "--float32/--no-float32",
            show_default=False,
            help="Also build the float32 copy and check it on every point \\[yes].",
        ),
    ] = True,
    dtype: Annotated[
        str,
        options.choice(
            "The net that is written: `float64`, or `float32`, refused where a label changes \\[float64].",
            "float64",
            "float32",
            metavar="TYPE",
        ),
    ] = "float64",
    quick: Annotated[bool, options.quick(f"{QUICK_POINTS} training points")] = False,
    seed: Seed = 0,
    out: Annotated[Path | None, options.out("memory.safetensors, memorize.json and memorize.html")] = None,
    as_json: Json = False,
) -> None:
    """Build a residual net that labels every training point right, without training, and measure it.

    Its margin, its Lipschitz constants, and what it makes of test inputs.

    Example: obverse memorize cifar10 --labels random --out memories/cifar10
    """
    from ..data import load
    from ._recall import LABELS, NET, TYPES, recall
    from ._saved import save_memory
    from .page import RESULT

    options.check_choice("--labels", labels, LABELS)
    options.check_choice("--dtype", dtype, TYPES)
    if dtype == "float32" and not float32:
        raise BadInput("--float32 with --dtype float32", got="--no-float32", do="leave it out")
    check_seed(seed)
    found = load(data, data_root, exact=True)
    if quick and points is None:
        points = min(QUICK_POINTS, len(found.train_y))
    if points is not None and not 1 <= points <= len(found.train_y):
        raise BadInput(
            f"--points from 1 to {len(found.train_y):,}, as {found.name} has them",
            got=points,
            do="leave it out for all of them",
        )
    make_folder(out)
    with layer_progress(found.name) as progress:
        net, result = recall(
            found.train_x,
            found.train_y,
            found.test_x,
            found.test_y,
            classes=max(2, len(found.classes)),
            data=found.name,
            labels=labels,
            points=points,
            width=width,
            float32=float32,
            dtype=dtype,
            seed=seed,
            numbers=found.train_rows,
            progress=progress,
        )

    def write_beside(out: Path) -> tuple[str, ...]:
        save_memory(net, out / NET)
        return (f"net: {out / NET}",)

    deliver(
        result,
        RESULT,
        print_recall,
        out=out,
        as_json=as_json,
        quick=f"{points:,} training points" if quick else "",
        files=write_beside,
        beside=(NET,),
    )


def print_recall(found: Recall) -> None:
    """That every point is labelled right, what that took, and what the net makes of other inputs."""
    from ._words import outlook, verdict

    console = open_console()
    say(console, verdict(found), "bold")
    console.print()
    print_grid(console, recall_columns(found), "")
    say(console, outlook(found), "bold")


def recall_columns(found: Recall) -> list[Column]:
    from ._words import rows

    names, values, meanings = zip(*rows(found), strict=True)
    return [
        Column("", names, left=True, whole=True),
        Column("measured", values, left=True),
        Column("", meanings, left=True, folded=True, drop=1),
    ]
