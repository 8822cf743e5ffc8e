"""How long an audit takes beside WeightWatcher's analysis of the same net, in one process.

Runs in an environment of its own, since obverse does not need WeightWatcher: `make bench-weightwatcher`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from audit_time import SIZES, seeded_net, shape
from measure import Outcome, alternate, compare, publish
from torch import nn
from weightwatcher import WeightWatcher

from obverse.nets import relu_mlp
from obverse.weights import audit

# What WeightWatcher is asked for, and how many times faster the audit has to be.
ANALYSES: dict[str, tuple[dict[str, Any], float]] = {
    "analyze()": ({}, 3.4),
    "analyze(randomize=True, mp_fit=True)": ({"randomize": True, "mp_fit": True}, 10.0),
}


def analyze(net: nn.Module, options: dict[str, Any]) -> None:
    """Its analysis without its messages."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        WeightWatcher(model=net, log_level=logging.CRITICAL).analyze(**options)


def sides(net: nn.Module) -> dict[str, Callable[[], object]]:
    analyses = {analysis: partial(analyze, net, options) for analysis, (options, _) in ANALYSES.items()}
    return {"audit": partial(audit, net), **analyses}


@cache
def measured(name: str, repetitions: int) -> dict[str, list[float]]:
    """Seconds of the audit and of both analyses in turn. They take minutes: a small net does to warm up."""
    for run in sides(relu_mlp((64,), (64,), 64)).values():
        run()
    return alternate(sides(seeded_net(name)), repetitions, warm_up=0)


def watcher_ratio(name: str, analysis: str, result: str) -> Callable[[int], Outcome]:
    def ratio(repetitions: int) -> Outcome:
        """Audit ÷ WeightWatcher's analysis."""
        seconds = measured(name, repetitions)
        times = ANALYSES[analysis][1]
        both = {side: seconds[side] for side in ("audit", analysis)}
        question = f"audit ÷ WeightWatcher {analysis}, {shape(name)}"
        return compare(
            result, question, round(1 / times, 3), both,
            sizes=SIZES[name], times_faster_wanted=times, weightwatcher=version("weightwatcher"),
        )  # fmt: skip

    return ratio


if __name__ == "__main__":
    for net_name in SIZES:
        for end, one in zip(("", "_mp_fit"), ANALYSES, strict=True):
            publish(watcher_ratio(net_name, one, f"weightwatcher_{net_name}{end}"), repetitions=3)
