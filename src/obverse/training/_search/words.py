"""What a search says, in plain sentences and as a table. Not for finding anything."""

from __future__ import annotations

from ..._core import FIXED, listed, percent, seconds
from .results import SearchResult, Trial, at_edge, rivals, standard_error, value

HEADINGS = ("trial", "lr", "weight", "held-out error, %", "state", "epochs", "seconds")
STATES = {"complete": "complete", "pruned": "stopped early", "failed": "failed", "running": "running"}


def outlook(result: SearchResult) -> list[str]:
    """How far to trust it: rivals, ends of the range, what is missing, the test."""
    return [said for said in (_left(result), _rivals(result), _edge(result), _test(result)) if said]


def _left(result: SearchResult) -> str:
    left = result.planned - result.finished
    pruned = sum(trial.state == "pruned" for trial in result.trials)
    failed = sum(trial.state == "failed" for trial in result.trials)
    parts = [f"{pruned:,} {_was(pruned)} stopped early by the median rule"] if pruned else []
    parts += [f"{failed:,} failed"] if failed else []
    parts += (
        [f"{left:,} {'is' if left == 1 else 'are'} not finished, so that this may change"] if left else []
    )
    return f"Of {result.planned:,} planned trials, {listed(parts)}." if parts else ""


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _rivals(result: SearchResult) -> str:
    if len(result.complete) < 2:
        return ""
    count = len(rivals(result))
    if not count:
        return (
            "No other trial lies within one standard error of it. As the best of many it is chosen for its "
            "luck too: expect a little more error on new points."
        )
    others = "1 other trial lies" if count == 1 else f"{count:,} other trials lie"
    return (
        f"{others} within one standard error of it: these points do not tell them apart. As the best of "
        "many it is chosen for its luck too: expect a little more error on new points."
    )


def _edge(result: SearchResult) -> str:
    found = at_edge(result)
    if not found:
        return ""
    where = listed([f"the {end} {name}" for name, end in found])
    near = "near the end of the range:" if result.sampler == "tpe" else "at the edge of the grid:"
    return f"It lies {near} {where}. Better ones may lie beyond; search further there."


def _test(result: SearchResult) -> str:
    done = result.retrained
    if done is None:
        return ""
    if done.test_error is None:
        return f"Trained again on all {_all(result)} training points it failed: {done.reason}"
    error = percent(done.test_error, standard_error(done.test_error, max(result.test_points, 1)))
    return (
        f"Trained again on all {_all(result)} training points, it has {error}{FIXED}% error on "
        f"{result.test_points:,} test points, which nothing was chosen by."
    )


def _all(result: SearchResult) -> str:
    return f"{result.train_points + result.held_out:,}"


def ordered(result: SearchResult) -> list[Trial]:
    """The best first, then by error; those that did not end come last."""
    best = result.best
    rank = {"complete": 0, "pruned": 1, "running": 2, "failed": 3}

    def key(trial: Trial) -> tuple[bool, int, float, int]:
        error = 2.0 if trial.error is None else trial.error
        return trial is not best, rank[trial.state], error, trial.number

    return sorted(result.trials, key=key)


def row(trial: Trial) -> tuple[str, ...]:
    """In the order of `HEADINGS`."""
    return (
        str(trial.number),
        value(trial.lr),
        value(trial.weight),
        percent(trial.error),
        STATES[trial.state],
        str(trial.epochs),
        seconds(trial.seconds),
    )
