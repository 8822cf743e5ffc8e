"""`obverse shadow`: how far up can a net still draw its input? Any net, or the net of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from .._core import NONE, BadInput, shape
from ..present import (
    Column,
    FactoryArguments,
    Json,
    Layers,
    Normalize,
    Seed,
    Weights,
    check_seed,
    complete,
    deliver,
    layer_progress,
    make_folder,
    open_console,
    options,
    print_grid,
    say,
)
from ._words import SHUFFLED, cosine, digits, kept, notices, percent, subject, summary
from .results import Survey

Reverse = Literal["transpose", "fitted"]
CALIBRATION = 200  # training inputs, at most
FEWEST = 2
SAMPLES, QUICK_SAMPLES = 200, 40


def shadow(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="module:factory, e.g. mynets:resnet: imported from the working directory or from what is "
            "installed, and called; [bold]this runs your code[/bold]. Or the directory of a run.",
            autocompletion=complete.run,
        ),
    ],
    data: Annotated[str | None, options.data("for a run: its own")] = None,
    data_root: Annotated[str | None, options.data_root()] = None,
    weights: Weights = None,
    arg: FactoryArguments = None,
    normalize: Normalize = None,
    layers: Layers = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help=f"Test inputs to measure on \\[{SAMPLES}].")
    ] = None,
    keep: Annotated[
        float, typer.Option(metavar="P", show_default=False, help=f"{options.KEEP} \\[1.0].")
    ] = 1.0,
    refine: Annotated[
        int,
        typer.Option(
            metavar="K",
            show_default=False,
            help="Gradient steps on the distance to h, from the shadow \\[0].",
        ),
    ] = 0,
    smooth: Annotated[bool, typer.Option("--smooth", help="3×3 mean smoothing of the shadows.")] = False,
    match_norm: Annotated[
        bool, typer.Option("--match-norm", help="Give each shadow its input's norm, one number more than h.")
    ] = False,
    switches: Annotated[
        bool,
        typer.Option(
            "--switches",
            help="Borrow the positions of the maxima in max pooling from the inputs; the shadows are then no "
            "functions of h alone.",
        ),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            show_default=False,
            help="Scale of each layer chosen on training inputs, or the theory's \\[chosen].",
        ),
    ] = True,
    reverse: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            show_default=False,
            help="transpose: the shadow of the theory. fitted: linear maps fitted on training inputs, which "
            "show what h contains, not what the weights generate \\[transpose].",
        ),
    ] = "transpose",
    quick: Annotated[bool, options.quick(f"{QUICK_SAMPLES} test inputs")] = False,
    seed: Seed = 0,
    pictures: Annotated[
        int,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Layers in the pictures, evenly chosen if there are more \\[12].",
        ),
    ] = 12,
    out: Annotated[Path | None, options.out("shadow.json, shadow.html and images/")] = None,
    as_json: Json = False,
) -> None:
    """How far up can a net still draw its input? The shadows of every layer, measured and shown.

    Each beside the control: the same net with the entries of each of its weights shuffled; with
    --reverse fitted also with fresh random weights. With --out the page shows input, shadow, fitted and
    refined image and the controls for each layer side by side, whichever reverse is measured.

    Example: obverse shadow mynets:resnet --weights resnet.safetensors --data mnist --out shadows/resnet
    """
    import torch

    from ..present import select
    from ._models import check_runs, open_net, parse_scaling
    from ._survey import Surveyor, survey
    from .charts import MOST_ROWS, RECORD, write_pictures
    from .page import RESULT

    if samples is None:
        samples = QUICK_SAMPLES if quick else SAMPLES
    if samples < FEWEST:
        raise BadInput(f"--samples ≥ {FEWEST}", got=samples, do=f"{SAMPLES} is the default")
    check_seed(seed)
    if not 1 <= pictures <= MOST_ROWS:
        raise BadInput(f"--pictures from 1 to {MOST_ROWS}", got=pictures, do="12 is the default")
    name, net, found = open_net(model, data, data_root, weights, arg or [], seed)
    scaling = parse_scaling(normalize, found.input_shape)
    order = torch.randperm(len(found.test_y), generator=torch.Generator().manual_seed(seed))[:samples]
    x, y = scaling.apply(found.test_x[order]), found.test_y[order]
    check_runs(net, x[:2], name)
    make_folder(out)
    with layer_progress(name) as progress:
        progress(0, 1, "calibration")
        tool = Surveyor(
            net,
            scaling.apply(found.train_x[:CALIBRATION]),
            keep=keep,
            refine=refine,
            smooth=smooth,
            match_norm=match_norm,
            switches=switches,
            calibrate=calibrate,
            seed=seed,
            reverse=check_reverse(reverse),
        )
        wanted = select(list(tool.own.layers), layers)
        names = [one for one in tool.own.layers if one in wanted]
        result = survey(
            tool,
            x,
            y,
            layers=names,
            model=name,
            weights="" if weights is None else weights.name,
            random_weights=weights is None and not Path(model).is_dir(),
            data=found.name,
            progress=progress,
        )

    def write_beside(out: Path) -> tuple[str, ...]:
        write_pictures(out, tool, x, y, names, classes=found.classes, restore=scaling.undo, most=pictures)
        return ()

    deliver(
        result,
        RESULT,
        print_survey,
        out=out,
        as_json=as_json,
        quick=f"{len(x)} test inputs" if quick else "",
        files=write_beside,
        beside=(RECORD,),
    )


def check_reverse(reverse: str) -> Reverse:
    for one in get_args(Reverse):
        if reverse == one:
            known: Reverse = one
            return known
    raise BadInput("--reverse transpose or fitted", got=repr(reverse), do="leave it out for the transpose")


def print_survey(survey: Survey) -> None:
    """What was measured, the table, what must be known to read it, and how far up the net can draw."""
    console = open_console()
    say(console, subject(survey))
    print_grid(console, survey_columns(survey), "")
    for notice in notices(survey):
        say(console, f"note: {notice}", "yellow")
    if told := kept(survey):
        say(console, told)
    say(console, summary(survey), "bold")


def survey_columns(survey: Survey) -> list[Column]:
    """All there is to show; `grid` leaves out what has no room."""
    layers = survey.layers

    def pair(own: str, other: str) -> str:
        return NONE if own == other == NONE else f"{own} ({other})"

    def column(title: str, cells: list[str], meaning: str = "", drop: int = 0) -> Column:
        return Column(title, tuple(cells), meaning, drop=drop)

    return [
        Column("layer", tuple(one.name for one in layers), left=True),
        column("h", [shape(one.shape) for one in layers], drop=3),
        column(
            "same label %",
            [pair(percent(one.own.agreement), percent(one.shuffled.agreement)) for one in layers],
            f"the net calls shadow and input the same, in brackets: shadows by {SHUFFLED}",
        ),
        column(
            "chance",
            [percent(one.own.chance) for one in layers],
            "the same if the labels were dealt at random",
            drop=4,
        ),
        column(
            "error",
            [pair(digits(one.own.error), digits(one.shuffled.error)) for one in layers],
            "of recovering h from its shadow, Σ‖ĥ − h‖²/Σ‖h‖²",
        ),
        column(
            "mean's",
            [pair(digits(one.own.varying), digits(one.shuffled.varying)) for one in layers],
            "the error of the mean of h in place of ĥ; more is worse than knowing nothing",
            drop=5,
        ),
        column(
            "cosine",
            [pair(cosine(one.own.cosine), cosine(one.shuffled.cosine)) for one in layers],
            "of input and shadow",
            drop=1,
        ),
        column(
            "found %",
            [pair(percent(one.own.found), percent(one.shuffled.found)) for one in layers],
            f"of {survey.among} inputs, found again by the h of their shadow",
            drop=3,
        ),
        column(
            "scale",
            [digits(one.scale) for one in layers],
            "calibrated" if survey.calibrated else "calibrated, not used here",
            drop=2,
        ),
        column("theory's", [digits(one.theory_scale) for one in layers], drop=2),
        column(
            "level",
            [digits(one.level) for one in layers],
            "factor for the whole way down" + ("" if survey.calibrated else ", not used here"),
            drop=6,
        ),
    ]
