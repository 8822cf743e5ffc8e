"""The claims alm.hypothesis.* on the zoo: their own quantity and line, with nets in place of trainings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from obverse.claims import claims
from obverse.claims.results import Verdict

from .._lab.tables import table
from .results_of import Row, by_cluster, functions
from .statements import has_biases

ERRORS = 4  # standard errors over nets, as many as the claims take over trials
SHARE = 0.95  # of the layers, for what shall hold in nearly all


@dataclass(frozen=True)
class Judged:
    """A mean over nets beside the line of a claim."""

    id: str
    line: float
    mean: float
    error: float | None  # over nets; None for fewer than three
    nets: int
    layers: int
    on_the_right_side: int  # layers
    verdict: Verdict


def mean_below(id: str, line: float, clusters: dict[str, list[float]]) -> Judged:
    mean, error = _over_nets(clusters)
    sides = sum(value <= line for values in clusters.values() for value in values)
    return _judged(id, line, mean, error, clusters, sides, _verdict(mean - line, error))


def holds_in(id: str, line: float, clusters: dict[str, list[float]]) -> Judged:
    """At most `line` in SHARE of the layers of a net, on average."""
    shares = {net: [float(value <= line) for value in values] for net, values in clusters.items()}
    mean, error = _over_nets(shares)
    sides = sum(value <= line for values in clusters.values() for value in values)
    return _judged(id, line, mean, error, clusters, sides, _verdict(SHARE - mean, error))


def _judged(
    id: str,
    line: float,
    mean: float,
    error: float | None,
    clusters: dict[str, list[float]],
    sides: int,
    verdict: Verdict,
) -> Judged:
    return Judged(id, line, mean, error, len(clusters), sum(map(len, clusters.values())), sides, verdict)


def _over_nets(clusters: dict[str, list[float]]) -> tuple[float, float | None]:
    means = [sum(values) / len(values) for values in clusters.values()]
    mean = sum(means) / len(means)
    if len(means) < 3:
        return mean, None
    return mean, math.sqrt(sum((one - mean) ** 2 for one in means) / (len(means) - 1) / len(means))


def _verdict(above: float, error: float | None) -> Verdict:
    if error is None or abs(above) < ERRORS * error:
        return "inconclusive"
    return "failed" if above > 0 else "held"


def kept(treatment: str) -> dict[str, list[float]]:
    """The share of its accuracy that each net with classes keeps, all layers treated at once."""
    found = {}
    for name, one in functions().items():
        effect = one["together"].get(treatment)
        if "accuracy" in one["measured"] and effect is not None and effect["score"]["value"] is not None:
            found[name] = [effect["score"]["value"] / one["untreated"]]
    return found


def lost(treatment: str) -> dict[str, list[float]]:
    return {name: [1 - share for share in shares] for name, shares in kept(treatment).items()}


Measure = Callable[[Row], Any]
BIASED: dict[str, Measure] = {
    "alm.hypothesis.biases": lambda row: 1 - row["offsets_near_mean"] if has_biases(row) else None,
    "alm.hypothesis.biases.spread": lambda row: _over(row) if has_biases(row) else None,
}
LAYERS: dict[str, Measure] = {
    "alm.hypothesis.entries": lambda row: row["raw_ks"],
    "alm.hypothesis.entries.bulk": lambda row: row["bulk_ks"],
    **BIASED,
    "alm.hypothesis.spectrum": lambda row: row["raw_distance"],
    "alm.hypothesis.spectrum.bulk": lambda row: row["distance"],
}
NETS = {
    "alm.hypothesis.replaceable": lambda: lost("bulk resampled"),
    "alm.hypothesis.signal": lambda: kept("signal removed"),
    "alm.hypothesis.signal.control": lambda: lost("random directions removed"),
}


def _over(row: Row) -> float:
    """Standard deviation ÷ |mean|."""
    return row["offsets_std"] / abs(row["offsets_mean"]) if row["offsets_mean"] else math.inf


def judged() -> list[Judged]:
    known = claims()
    found = []
    for id, measure in LAYERS.items():
        line = float(known[id].predict)  # type: ignore[arg-type]
        clusters = by_cluster(measure)
        rule = holds_in if id == "alm.hypothesis.biases.spread" else mean_below
        found.append(rule(id, line, clusters))
    for id, shares in NETS.items():
        clusters = shares()
        if clusters:
            found.append(mean_below(id, float(known[id].predict), clusters))  # type: ignore[arg-type]
    return found


def verdict_table() -> str:
    known, rows = claims(), []
    for one in judged():
        claim = known[one.id]
        share = one.id == "alm.hypothesis.biases.spread"
        error = "" if one.error is None else f" ± {one.error:.3f}"
        line = f"at most {one.line:g}" + (f", in {100 * SHARE:g} % of layers" if share else "")
        mean = f"{one.mean:.3f}{error}" + (" of the layers" if share else "")
        of = "nets" if one.id in NETS else "layers"
        rows.append(
            [
                f"`{one.id}`",
                claim.quantity.replace("|", "∣"),
                line,
                mean,
                f"{one.on_the_right_side} of {one.layers} {of}",
                str(one.nets),
                one.verdict,
            ]
        )
    head = ["claim", "quantity", "line", "mean over nets", "on the line’s right side", "nets", "verdict here"]
    return table(head, rows)
