"""`obverse ladder`: does backpropagation on events give what it gives on inputs? A teacher, or a real net."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._core import SUMMARIES, BadInput
from ..present import (
    Column,
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
    training_progress,
)

if TYPE_CHECKING:
    import torch

    from ..data import Dataset
    from ..nets import LocalNet
    from ._regions import RegionGraph
    from ._student import Activation, Loss, Norm
    from ._teacher import Teacher
    from .results import Ladder

GRAPHS = {"tree": "a tree of", "windows": "windows over", "grid": "a grid of"}
NORMS = ("before", "after")
ACTIVATIONS, LOSSES = ("relu", "linear"), ("square", "softmax")
QUICK: dict[str, Any] = {"sweep": "2,8", "images": 500, "epochs": 2}
LEARNING_RATES = {"teacher": 0.1, "net": 0.05}
MOST_EVENTS = 64  # of the top region that have a node each
CLASSES = 2  # to which they are dealt where there are more
FEWEST = 20  # images


@dataclass(frozen=True)
class TeacherSettings:
    """What is asked of a teacher and its student."""

    graph: str = "tree"
    leaves: int = 8
    size: int = 2
    stride: int | None = None
    summary: str = "full"
    values: int = 2
    sample: int | None = None
    activation: Activation = "relu"
    loss: Loss = "square"
    steps: int = 0
    nodes: str = "3"
    norm: Norm | None = None
    lr: float = LEARNING_RATES["teacher"]
    seed: int = 0


@dataclass(frozen=True)
class NetSettings:
    """What is asked of a real net."""

    data: str
    data_root: str | None = None
    windows: str | None = None
    shared: bool = False
    events: int = 8
    sweep: str = "2,4,8,16,32"
    images: int = 2000
    epochs: int = 10
    weights: Path | None = None
    nodes: str | None = None
    norm: Norm | None = None
    lr: float = LEARNING_RATES["net"]
    seed: int = 0


def ladder(
    graph: Annotated[
        str | None,
        options.choice("Regions: tree, windows or grid \\[tree].", *GRAPHS, panel="Teacher"),
    ] = None,
    leaves: Annotated[
        int | None,
        typer.Option(
            metavar="N", rich_help_panel="Teacher", help="Input positions, a square for a grid \\[8]."
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(metavar="N", rich_help_panel="Teacher", help="Children of a region, a side \\[2]."),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel="Teacher",
            help="From one region to the next; smaller than the size they overlap \\[windows 1, else the "
            "size].",
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
        typer.Option(metavar="N", rich_help_panel="Teacher", help="Values of an input position \\[2]."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", rich_help_panel="Teacher", help="Draw so many inputs \\[every input]."),
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
        typer.Option(
            metavar="N",
            rich_help_panel="Teacher",
            help="Also train on inputs and on events, side by side \\[no].",
        ),
    ] = None,
    data: Annotated[
        str | None,
        options.data("none, a teacher", panel="Real net", lead="Measure a real net instead: "),
    ] = None,
    data_root: Annotated[str | None, options.data_root(panel="Real net")] = None,
    windows: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE/STRIDE,…",
            rich_help_panel="Real net",
            help="Windows of each level, from the pixels up, e.g. 4/4,3/2 \\[as the images allow].",
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
        typer.Option(metavar="K", rich_help_panel="Real net", help="Events a region, by k-means \\[8]."),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,…",
            rich_help_panel="Real net",
            help="Further numbers of events to measure with, or none \\[2,4,8,16,32].",
        ),
    ] = None,
    images: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel="Real net",
            help="Training images to cluster and measure, and at most as many test images \\[2000].",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel="Real net",
            help="Passes over the training set; 0: no training \\[10].",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.safetensors",
            rich_help_panel="Real net",
            help="Weights that were trained before, for the same windows and nodes, in place of training.",
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="Nodes of a region; of a real net for each level \\[3; 8,16,…]."),
    ] = None,
    norm: Annotated[
        str | None,
        options.choice("Batch norm `before` or `after` the ReLU \\[none].", *NORMS, metavar="WHERE"),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(metavar="LR", help="Learning rate of a training \\[0.1; real net 0.05]."),
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
    from .._core import one_thread
    from .page import RESULT
    from .results import NET

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
    usual = LEARNING_RATES["teacher" if data is None else "net"]
    if lr is not None and not 0 < lr < float("inf"):
        raise BadInput("--lr > 0", got=lr, do=f"{usual} is the default")
    check_seed(seed)
    common = _given({"nodes": nodes, "norm": norm, "lr": lr, "seed": seed})
    net: LocalNet | None = None
    small = ""
    with one_thread():  # regions are many and small: more threads would wait for each other
        if data is None:
            result = _of_teacher(TeacherSettings(**_given(of_teacher), **common), out)
        else:
            fewer = QUICK if quick else {}
            net, result = _of_net(NetSettings(data, **{**fewer, **_given(of_net), **common}), out)
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
        files=None if net is None else partial(_save_net, net),
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


def _save_net(net: LocalNet, out: Path) -> tuple[str, ...]:
    from .._core import save_tensors
    from .results import NET

    save_tensors(out / NET, net.state_dict())
    return (f"net: {out / NET}",)


# --- a teacher ---


def _of_teacher(asked: TeacherSettings, out: Path | None) -> Ladder:
    import torch

    from ._measure import measure_teacher
    from ._student import random_student

    nodes = _check_teacher(asked)
    generator = torch.Generator().manual_seed(asked.seed)
    teacher = _teacher(asked, generator)
    top, targets = teacher.sizes[teacher.graph.top], None
    if top > MOST_EVENTS:
        dealt = torch.randint(CLASSES, (top,), generator=generator)
        targets = torch.eye(CLASSES, dtype=torch.float64)[dealt]
    student = random_student(
        teacher.model,
        nodes,
        generator=generator,
        norm=asked.norm,
        targets=targets,
        activation=asked.activation,
        loss=asked.loss,
    )
    make_folder(out)
    subject = f"{GRAPHS[asked.graph]} {asked.leaves} with summary {asked.summary}"
    settings = {**asdict(asked), "nodes": nodes}
    if not asked.steps:
        del settings["lr"]
    with layer_progress(subject) as progress:
        return measure_teacher(
            teacher,
            student,
            subject=subject,
            settings=settings,
            steps=asked.steps,
            lr=asked.lr,
            width=isqrt(asked.leaves) if asked.graph == "grid" else None,
            progress=progress,
        )


def _check_teacher(asked: TeacherSettings) -> int:
    """The number of nodes, if all settings make sense together."""
    from ._summaries import KINDS

    counts = _numbers("--nodes", asked.nodes)
    if len(counts) != 1:
        raise BadInput("one number for --nodes without --data", got=asked.nodes, do="e.g. 3")
    for name, count, least in (("steps", asked.steps, 0), ("values", asked.values, 1)):
        if count < least:
            raise BadInput(f"--{name} ≥ {least}", got=count, do="correct it")
    if asked.summary not in KINDS:
        raise BadInput(
            f"--summary out of {', '.join(KINDS)}", got=repr(asked.summary), do="pass one of these"
        )
    if asked.summary != "full" and asked.values > 2:
        raise BadInput(
            f"two values for --summary {asked.summary}",
            got=f"--values {asked.values}",
            do="leave out --values or use --summary full",
        )
    for name, chosen, known in (
        ("activation", asked.activation, ACTIVATIONS),
        ("loss", asked.loss, LOSSES),
    ):
        if chosen not in known:
            raise BadInput(f"--{name} out of {', '.join(known)}", got=repr(chosen), do="pass one of these")
    return counts[0]


def _teacher(asked: TeacherSettings, generator: torch.Generator) -> Teacher:
    from ._teacher import MOST_INPUTS, enumerate_teacher, sample_teacher

    graph = _graph(asked)
    if asked.sample is not None:
        return sample_teacher(
            graph, asked.summary, values=asked.values, count=asked.sample, generator=generator
        )
    if asked.values**asked.leaves > MOST_INPUTS:
        raise BadInput(
            f"at most {MOST_INPUTS:,} inputs without --sample",
            got=f"{asked.values} values at {asked.leaves} positions",
            do="draw some, e.g. --sample 100000",
        )
    return enumerate_teacher(graph, asked.summary, values=asked.values)


def _graph(asked: TeacherSettings) -> RegionGraph:
    from ._regions import grid, tree, windows

    kind, leaves, size, stride = asked.graph, asked.leaves, asked.size, asked.stride
    if kind not in GRAPHS:
        raise BadInput(f"--graph out of {', '.join(GRAPHS)}", got=repr(kind), do="pass one of these")
    if leaves < 2:
        raise BadInput("--leaves ≥ 2", got=leaves, do="correct it")
    if kind == "tree":
        if stride not in (None, size):
            raise BadInput("no --stride with a tree", got=stride, do="use --graph windows")
        return tree(leaves, size)
    if kind == "windows":
        return windows(leaves, size, 1 if stride is None else stride)
    side = isqrt(leaves)
    if side * side != leaves:
        raise BadInput("--leaves that are a square with a grid", got=leaves, do="e.g. 9 or 16")
    return grid(side, side, size, size if stride is None else stride)


# --- a real net ---


def _of_net(asked: NetSettings, out: Path | None) -> tuple[LocalNet, Ladder]:
    import torch

    from ..data import load
    from ._local_net import initial_local, settle
    from ._measure import measure_net

    sweep = _numbers("--sweep", asked.sweep) if asked.sweep != "none" else ()
    for name, value, least in (
        ("events", asked.events, 1),
        ("images", asked.images, FEWEST),
        ("epochs", asked.epochs, 0),
    ):
        if value < least:
            raise BadInput(f"--{name} ≥ {least}", got=value, do="correct it")
    found = load(asked.data, asked.data_root)
    if len(found.input_shape) != 3:
        raise BadInput("images for --data", got=f"inputs of shape {found.input_shape}", do="use another set")
    count = min(asked.images, len(found.train_y))
    if max([asked.events, *sweep]) > count:
        raise BadInput(
            f"at most {count:,} events, as there are images",
            got=max([asked.events, *sweep]),
            do="ask for fewer",
        )
    windows, nodes = _layout(asked, found.input_shape)
    start = initial_local(found, windows, nodes, shared=asked.shared, norm=asked.norm, seed=asked.seed)
    net = _trained(asked, start, found, out)
    order = torch.Generator().manual_seed(asked.seed)
    own, others = (
        torch.randperm(len(labels), generator=order)[: asked.images]
        for labels in (found.train_y, found.test_y)
    )
    settle(start, found.train_x[own])
    settings = {
        "windows": ",".join(f"{size}/{stride}" for size, stride in windows),
        "nodes": ",".join(map(str, nodes)),
        "weights": asked.weights and asked.weights.name,
        **{name: getattr(asked, name) for name in ("shared", "norm", "events", "sweep", "images", "seed")},
        **({"epochs": asked.epochs, "lr": asked.lr} if asked.weights is None else {}),
    }
    with layer_progress(found.name) as progress:
        return net, measure_net(
            net.eval(),
            (found.train_x[own], found.train_y[own]),
            (found.test_x[others], found.test_y[others]),
            events=asked.events,
            sweep=sweep,
            start=None if net is start else start.eval(),
            seed=asked.seed,
            subject=found.name,
            settings=settings,
            progress=progress,
        )


def _layout(
    asked: NetSettings, input_shape: tuple[int, ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Windows and nodes of each level."""
    from ._local_net import NODES, fitting_windows

    windows = fitting_windows(*input_shape[1:]) if asked.windows is None else _windows(asked.windows)
    usual = tuple(NODES * 2**level for level in range(len(windows)))
    if asked.nodes is None:
        return windows, usual
    nodes = _numbers("--nodes", asked.nodes)
    if len(nodes) != len(windows):
        raise BadInput(
            f"--nodes with a number for each level of windows: {len(windows)}",
            got=asked.nodes,
            do="e.g. " + ",".join(map(str, usual)),
        )
    return windows, nodes


def _trained(asked: NetSettings, start: LocalNet, found: Dataset, out: Path | None) -> LocalNet:
    """A copy with the weights given, or trained; `start` itself where neither is asked for."""
    from .._core import load_tensors, load_weights
    from ._local_net import train_local

    net = copy.deepcopy(start)
    if asked.weights is not None:
        load_weights(net, load_tensors(asked.weights), str(asked.weights))
    make_folder(out)
    if asked.weights is not None:
        return net
    if not asked.epochs:
        return start
    with training_progress() as follow:
        train_local(net, found, epochs=asked.epochs, lr=asked.lr, seed=asked.seed, **follow(found.name))
    return net


def _numbers(flag: str, text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise BadInput(f"{flag} as whole numbers ≥ 1, e.g. 8,16", got=repr(text), do="correct it")
    return found


def _windows(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split(","):
        size, slash, stride = part.partition("/")
        if not (size.strip().isdecimal() and (stride.strip().isdecimal() or not slash)):
            raise BadInput("--windows as SIZE/STRIDE, e.g. 4/4,3/2", got=repr(text), do="correct it")
        found.append((int(size), int(stride) if slash else int(size)))
    return tuple(found)


MEANINGS = {
    "level": "gaps are medians over its edges (sentences give the largest), shares are of all together",
    "focus": "how far P(x | z of the child) depends on z of the parent",
    "broadness": "how far z of the child is not told by z of the parent",
    "decorrelation": "of gates, with activations or gradients",
    "fourth": "of the child's activations, with the parent's gradients",
    "ΔW gap": "norm of the difference ÷ the larger norm, edge by edge",
    "recursion": "the same, where all is computed from events",
    "ΔW %": "of ΔW, less what needs no events, that events explain; – where that is next to nothing",
}
# columns with the largest number go first where there is no room
DROP = {
    "regions": 9,
    "events": 8,
    "fourth": 6,
    "edges": 5,
    "backward %": 4,
    "forward %": 3,
    "recursion": 2,
    "recursion %": 1,
}


def print_ladder(found: Ladder) -> None:
    """Whether events tell what inputs do, by level, and why."""
    from ._words import outlook, training, verdict

    console = open_console()
    say(console, verdict(found), "bold")
    console.print()
    print_grid(console, ladder_columns(found), "")
    for sentence in [*outlook(found), training(found)]:
        if sentence:
            say(console, sentence)


def ladder_columns(found: Ladder) -> list[Column]:
    from ._words import LEVEL_HEADINGS, level_rows

    brackets = {
        "focus": "by chance",
        "ΔW %": "events dealt at random",
    }  # what is beside a number, if anything
    meanings = dict(MEANINGS)
    cells = list(zip(*level_rows(found), strict=True))
    for heading, column in zip(LEVEL_HEADINGS, cells, strict=True):
        if heading in brackets and any("(" in cell for cell in column):
            meanings[heading] += f", in brackets: {brackets[heading]}"
    return [
        Column(heading, column, meanings.get(heading, ""), drop=DROP.get(heading, 0), left=heading == "level")
        for heading, column in zip(LEVEL_HEADINGS, cells, strict=True)
    ]
