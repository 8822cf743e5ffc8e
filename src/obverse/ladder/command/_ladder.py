"""`obverse ladder`: does backpropagation on events give what it gives on inputs? A teacher, or a real net."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..._core import SUMMARIES, BadInput
from ...present import Json, Seed, check_seed, deliver, options
from ._net import QUICK, NetSettings, run_net, save_net
from ._table import print_ladder
from ._teacher import ACTIVATIONS, GRAPHS, LOSSES, TeacherSettings, run_teacher

if TYPE_CHECKING:
    from ...nets import LocalNet

NORMS = ("before", "after")


def ladder(
    graph: Annotated[
        str | None,
        options.choice("Regions: tree, windows or grid \\[tree].", *GRAPHS, panel="Teacher"),
    ] = None,
    leaves: Annotated[
        int | None,
        options.value("Input positions, a square for a grid \\[8].", panel="Teacher"),
    ] = None,
    size: Annotated[
        int | None,
        options.value("Children of a region, a side \\[2].", panel="Teacher"),
    ] = None,
    stride: Annotated[
        int | None,
        options.value(
            "From one region to the next; smaller than the size they overlap \\[windows 1, else the size].",
            panel="Teacher",
        ),
    ] = None,
    summary: Annotated[
        str | None,
        options.choice(
            f"What a region tells of its children: {', '.join(SUMMARIES)} \\[full].",
            *SUMMARIES,
            panel="Teacher",
        ),
    ] = None,
    values: Annotated[
        int | None,
        options.value("Values of an input position \\[2].", panel="Teacher"),
    ] = None,
    sample: Annotated[
        int | None,
        options.value("Draw so many inputs \\[every input].", panel="Teacher"),
    ] = None,
    activation: Annotated[
        str | None,
        options.choice("Of the student: relu or linear \\[relu].", *ACTIVATIONS, panel="Teacher"),
    ] = None,
    loss: Annotated[
        str | None,
        options.choice("Of the student: square or softmax \\[square].", *LOSSES, panel="Teacher"),
    ] = None,
    steps: Annotated[
        int | None,
        options.value("Also train on inputs and on events, side by side \\[no].", panel="Teacher"),
    ] = None,
    data: Annotated[
        str | None,
        options.data("none, a teacher", panel="Real net", lead="Measure a real net instead: "),
    ] = None,
    data_root: Annotated[str | None, options.data_root(panel="Real net")] = None,
    windows: Annotated[
        str | None,
        options.value(
            "Windows of each level, from the pixels up, e.g. 4/4,3/2 \\[as the images allow].",
            metavar="SIZE/STRIDE,…",
            panel="Real net",
        ),
    ] = None,
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared",
            rich_help_panel="Real net",
            help="The same weights in all windows of a level: a convolutional net.",
        ),
    ] = None,
    events: Annotated[
        int | None,
        options.value("Events a region, by k-means \\[8].", metavar="K", panel="Real net"),
    ] = None,
    sweep: Annotated[
        str | None,
        options.value(
            "Further numbers of events to measure with, or none \\[2,4,8,16,32].",
            metavar="K,K,…",
            panel="Real net",
        ),
    ] = None,
    images: Annotated[
        int | None,
        options.value(
            "Training images to cluster and measure, and at most as many test images \\[2000].",
            panel="Real net",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        options.value("Passes over the training set; 0: no training \\[10].", panel="Real net"),
    ] = None,
    weights: Annotated[
        Path | None,
        options.value(
            "Weights that were trained before, for the same windows and nodes, in place of training.",
            metavar="FILE.safetensors",
            panel="Real net",
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        options.value("Nodes of a region; of a real net for each level \\[3; 8,16,…].", metavar="N,N,…"),
    ] = None,
    norm: Annotated[
        str | None,
        options.choice("Batch norm `before` or `after` the ReLU \\[none].", *NORMS, metavar="WHERE"),
    ] = None,
    lr: Annotated[
        float | None,
        options.value("Learning rate of a training \\[0.1; real net 0.05].", metavar="LR"),
    ] = None,
    quick: Annotated[
        bool,
        options.quick(
            f"with --data {QUICK['images']} images, {QUICK['epochs']} epochs, --sweep {QUICK['sweep']}; "
            "a teacher takes seconds anyway"
        ),
    ] = False,
    seed: Seed = 0,
    out: Annotated[Path | None, options.out("ladder.json, ladder.html and a trained net")] = None,
    as_json: Json = False,
    rate: Annotated[float | None, typer.Option(hidden=True)] = None,  # the name that --lr had before
) -> None:
    """Does backpropagation on events give what it gives on inputs, region by region?

    Exactly, for a discrete teacher of which every input is known; or for a real net, whose events are
    clusters of what its regions see.

    Example: obverse ladder --data mnist --events 8 --out ladders/mnist

    Example: obverse ladder --graph tree --leaves 8 --summary majority --out ladders/majority
    """
    from ..._core import one_thread
    from ..page import RESULT
    from ..results import NET

    of_teacher: dict[str, Any] = {
        "graph": graph,
        "leaves": leaves,
        "size": size,
        "stride": stride,
        "summary": summary,
        "values": values,
        "sample": sample,
        "activation": activation,
        "loss": loss,
        "steps": steps,
    }
    of_net: dict[str, Any] = {
        "data_root": data_root,
        "windows": windows,
        "shared": shared,
        "events": events,
        "sweep": sweep,
        "images": images,
        "epochs": epochs,
        "weights": weights,
    }
    _refuse_foreign(_given(of_net if data is None else of_teacher), is_net=data is not None)
    if weights is not None and epochs is not None:
        raise BadInput("--weights or --epochs", got="both", do="weights are not trained further")
    if norm is not None and norm not in NORMS:
        raise BadInput(f"--norm out of {', '.join(NORMS)}", got=repr(norm), do="leave it out for none")
    if rate is not None and lr is not None:
        raise BadInput("either --lr or --rate", got="both", do="keep one")
    lr = rate if lr is None else lr
    if lr is not None and not 0 < lr < float("inf"):
        usual = TeacherSettings.lr if data is None else NetSettings.lr
        raise BadInput("--lr > 0", got=lr, do=f"{usual} is the default")
    check_seed(seed)
    common = _given({"nodes": nodes, "norm": norm, "lr": lr, "seed": seed})
    net: LocalNet | None = None
    small = ""
    with one_thread():  # regions are many and small: more threads would wait for each other
        if data is None:
            result = run_teacher(TeacherSettings(**_given(of_teacher), **common), out)
        else:
            fewer = QUICK if quick else {}
            net, result = run_net(NetSettings(data, **{**fewer, **_given(of_net), **common}), out)
            if quick:
                found = result.settings
                trained = f", {found['epochs']} epochs" if "epochs" in found else ""
                small = f"{found['images']} images{trained}"
    deliver(
        result,
        RESULT,
        print_ladder,
        out=out,
        as_json=as_json,
        quick=small,
        files=None if net is None else partial(save_net, net),
        beside=(NET,),
    )


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _refuse_foreign(names: Iterable[str], is_net: bool) -> None:
    """Flags of a real net say nothing to a teacher, and the other way round."""
    for name in names:
        flag = f"--{name.replace('_', '-')}"
        if is_net:
            raise BadInput(
                f"{flag} without --data, as it is for a teacher", got="both", do="leave out one of the two"
            )
        raise BadInput(
            f"{flag} with --data only, as it is for a real net",
            got=f"{flag} without --data",
            do="add --data NAME or leave it out",
        )
