"""`obverse ladder --data`: a real net, trained or with weights given. Not for what is printed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._core import BadInput
from ...present import layer_progress, make_folder, options, training_progress

if TYPE_CHECKING:
    from ...data import Dataset
    from ...nets import LocalNet
    from .._student import Norm
    from ..results import Ladder

QUICK: dict[str, Any] = {"sweep": "2,8", "images": 500, "epochs": 2}
FEWEST = 20  # images


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
    lr: float = 0.05
    seed: int = 0


def run_net(asked: NetSettings, out: Path | None) -> tuple[LocalNet, Ladder]:
    import torch

    from ...data import load
    from .._local_net import initial_local, settle
    from .._measure import measure_net

    sweep = options.counts(asked.sweep, "--sweep") if asked.sweep != "none" else ()
    options.check_least("--events", asked.events, 1)
    options.check_least("--images", asked.images, FEWEST)
    options.check_least("--epochs", asked.epochs, 0)
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
    from .._local_net import NODES, fitting_windows

    windows = fitting_windows(*input_shape[1:]) if asked.windows is None else _windows(asked.windows)
    usual = tuple(NODES * 2**level for level in range(len(windows)))
    if asked.nodes is None:
        return windows, usual
    nodes = options.counts(asked.nodes, "--nodes")
    if len(nodes) != len(windows):
        raise BadInput(
            f"--nodes with a number for each level of windows: {len(windows)}",
            got=asked.nodes,
            do="e.g. " + ",".join(map(str, usual)),
        )
    return windows, nodes


def _trained(asked: NetSettings, start: LocalNet, found: Dataset, out: Path | None) -> LocalNet:
    """A copy with the weights given, or trained; `start` itself where neither is asked for."""
    from ..._core import load_tensors, load_weights
    from .._local_net import train_local

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


def _windows(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split(","):
        size, slash, stride = part.partition("/")
        if not (size.strip().isdecimal() and (stride.strip().isdecimal() or not slash)):
            raise BadInput("--windows as SIZE/STRIDE, e.g. 4/4,3/2", got=repr(text), do="correct it")
        found.append((int(size), int(stride) if slash else int(size)))
    return tuple(found)


def save_net(net: LocalNet, out: Path) -> tuple[str, ...]:
    from ..._core import save_tensors
    from ..results import NET

    save_tensors(out / NET, net.state_dict())
    return (f"net: {out / NET}",)
