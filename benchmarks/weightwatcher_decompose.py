"""How long an audit takes beside WeightWatcher's analyze() of the same layers: a Llama block and a ResNet-50.

Runs in an environment of its own: `make bench-weightwatcher`. The block's analysis takes many minutes, so one
layer of each kind is timed on either side and counts as often as the block has it; what the net costs beside
its layers is too little to see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib.metadata import version

import torch
from audit_block import SHARE
from decompose import LLAMA_BLOCK, THREADS, Shape, resnet50, trained
from measure import Outcome, alternate, publish
from torch import nn
from weightwatcher_time import analyze

from obverse.weights import audit

TIMES = {"block": 20.0, "resnet50": 5.0}  # faster than WeightWatcher


def kind(shape: Shape) -> Shape:
    """A layer and its transpose are of one kind."""
    return max(shape), min(shape)


def linear(shape: Shape, seed: int) -> nn.Linear:
    layer = nn.Linear(shape[1], shape[0], bias=False)
    with torch.no_grad():
        layer.weight.copy_(trained(shape, SHARE, seed))
    return layer


def seconds_of(net: nn.Module, repetitions: int) -> tuple[float, float]:
    """Of audit and analysis, the faster of the runs."""
    seconds = alternate(
        {"audit": lambda: audit(net), "analyze()": lambda: analyze(net, {})}, repetitions, warm_up=0
    )
    return min(seconds["audit"]), min(seconds["analyze()"])


def block(repetitions: int) -> Outcome:
    """Audit ÷ WeightWatcher's analyze(), one layer of each kind, as often as a Llama block has it."""
    torch.set_num_threads(THREADS)
    seconds_of(nn.Sequential(linear((64, 64), 0)), 1)
    counts = Counter(map(kind, LLAMA_BLOCK))
    single = {shape: seconds_of(nn.Sequential(linear(shape, at)), 1) for at, shape in enumerate(counts)}
    ours, theirs = (sum(single[shape][side] * many for shape, many in counts.items()) for side in (0, 1))
    return outcome("block", "a Llama block, extrapolated from one layer of each kind", ours, theirs, {
        "seconds_of_one": {
            f"{a} × {b}": dict(zip(("audit", "analyze()"), both, strict=True))
            for (a, b), both in single.items()
        },
        "layers_of_a_kind": {f"{a} × {b}": many for (a, b), many in counts.items()},
        "extrapolated": True,
    })  # fmt: skip


def resnet(repetitions: int) -> Outcome:
    """Audit ÷ WeightWatcher's analyze(), the layers of a ResNet-50 as matrices on a patch."""
    torch.set_num_threads(THREADS)
    seconds_of(nn.Sequential(linear((64, 64), 0)), 1)
    net = nn.Sequential(*(linear(shape, at) for at, shape in enumerate(resnet50())))
    ours, theirs = seconds_of(net, repetitions)
    return outcome("resnet50", "the layers of a ResNet-50", ours, theirs, {"repetitions": repetitions})


def outcome(name: str, what: str, ours: float, theirs: float, details: dict[str, object]) -> Outcome:
    return Outcome(
        f"weightwatcher_{name}",
        f"audit ÷ WeightWatcher analyze(), {what}",
        ours / theirs,
        1 / TIMES[name],
        details={
            "times_faster": theirs / ours,
            "times_faster_wanted": TIMES[name],
            "seconds": {"audit": ours, "analyze()": theirs},
            "weightwatcher": version("weightwatcher"),
            **details,
        },
    )


MEASURES: tuple[Callable[[int], Outcome], ...] = (resnet, block)

if __name__ == "__main__":
    for measure in MEASURES:
        publish(measure, repetitions=2)
