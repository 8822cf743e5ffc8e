"""Audits made by hand, every field filled; the numbers are plausible, not measured."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from obverse.weights._verdict import Thresholds
from obverse.weights.results import (
    Audit,
    Correlations,
    Decomposition,
    Direction,
    Entries,
    Finding,
    Grade,
    Histogram,
    Interval,
    LayerAudit,
    Norms,
    Number,
    Offsets,
    Recovered,
    Reversal,
    Verdict,
)

HISTOGRAM = Histogram((-2.0, -1.0, 0.0, 1.0, 2.0), (1, 5, 6, 0))
SENTENCES: dict[Verdict, str] = {
    "untouched": "no direction stands out from noise; the spectrum is like that of random numbers",
    "signal in a random bulk": "2 of 64 directions carry the signal, 4.0 % of the energy; "
    "the rest is like random numbers",
    "mostly signal": "9 of 64 directions carry the signal, 71.0 % of the energy; "
    "the rest is like random numbers",
    "structured otherwise": "the spectrum is not like that of random numbers (0.3 off their distribution)",
    "cannot tell": "cannot tell: 40 rows and 20 columns that are not empty, at least 32 of each are needed",
    "not judged": "not judged: smaller than 32 on a side",
}


def made_entries(ks: float = 0.004) -> Entries:
    return Entries(
        count=12,
        used=12,
        mean=Number(-0.01, 0.02, 0.0, 0.62),
        scale=Number(0.1, 0.001),
        skew=Number(0.05, 0.1, 0.0, 0.6),
        kurtosis=Number(0.4, 0.2, 0.0, 0.05),
        ks=Number(ks, 0.001, 0.003, 0.2),
        anderson=Number(0.5, 0.1, 0.4, 0.3),
        best_law="Student t",
        likelihoods={"normal": 0.0, "Laplace": -0.01, "Student t": 0.002, "uniform": -0.3},
        freedom=17.5,
        matters_from={"mean": 0.1, "skew": 2.0, "kurtosis": 40.0},
        zeros=0.0,
        distinct=None,
        step=None,
        histogram=HISTOGRAM,
        quantiles=((-1.0, -1.1), (0.0, 0.01), (1.0, 0.9)),
    )


def made_parts(
    grade: Grade = "untouched", distance: float = 0.01, rank: int = 0, **changes: Any
) -> Decomposition:
    signal = 0.02 * rank
    values: dict[str, Any] = {
        "rows": 64,
        "columns": 100,
        "empty_rows": 0,
        "empty_columns": 0,
        "method": "exact",
        "alpha": 0.001,
        "grade": grade,
        "sentence": SENTENCES[grade],
        "rank": rank,
        "rank_interval": (rank, rank + 1),
        "rank_is_bound": False,
        "settled": True,
        "directions": tuple(Direction(4.0 + at, 3.5 + at, 3.0 + at, 1e-9) for at in range(rank)[::-1]),
        "upper_p": 0.4,
        "below": (),
        "lower_p": 0.3,
        "null_directions": 0,
        "scale": 0.1,
        "lower": 0.2,
        "upper": 3.0,
        "kurtosis": 0.1,
        "heavy_tails": False,
        "distance": Number(distance, 0.002, 0.008, 0.4),
        "profile_share": Number(0.05, null=0.02),
        "signal_share": Interval(signal, max(signal - 0.01, 0.0), signal + 0.01),
        "random_share": Interval(1 - signal, 0.99 - signal, min(1.0, 1.01 - signal)),
    }
    return Decomposition(**(values | changes))


def made_reversal(ratio: float = 1.02, source: Any = "random", sparsity: float = 5.0) -> Reversal:
    recovered = Recovered(Number(0.3 * ratio, 0.01), 0.1, Number(0.5, 0.02))
    control = Recovered(Number(0.3, 0.01), 0.1, Number(0.45, 0.02))
    return Reversal(
        source=source,
        sparsity=sparsity,
        kept=100.0,
        samples=32,
        layer=recovered,
        shuffled=control,
        gaussian=control,
        predicted=control,
        own_bias=Number(0.6, 0.03),
        ratio=Number(ratio, 0.02, 1.0, 0.3),
        interval=(ratio - 0.04, ratio + 0.04),
        peak=0.7,
        peak_bound=0.57,
        sparse_enough=True,
        dense_enough=False,
    )


def made_layer(
    name: str = "h1",
    verdict: Verdict = "untouched",
    *,
    ratio: float = 1.02,
    distance: float = 0.01,
    rank: int = 0,
    ks: float = 0.004,
    wanting: tuple[Any, ...] = (),
    **changes: Any,
) -> LayerAudit:
    correlations = tuple(
        Correlations(side, 64, 100, Number(size, 0.01, 1.0, 0.1), Number(0.4), Number(0.01), HISTOGRAM)
        for side, size in (("rows", 1.01), ("columns", 0.98))
    )
    values: dict[str, Any] = {
        "name": name,
        "kind": "linear",
        "rows": 64,
        "columns": 100,
        "verdict": verdict,
        "sentence": SENTENCES[verdict],
        "findings": tuple(Finding(aspect, False, f"{aspect} off") for aspect in wanting),
        "entries": made_entries(ks),
        "offsets": Offsets(64, -0.5, 0.1, Number(5.0, 0.4), 0.3, HISTOGRAM),
        "parts": made_parts("cannot tell" if verdict == "not judged" else verdict, distance, rank),
        "values": (0.2, 1.0, 2.0, 3.0),
        "norms": Norms(Number(0.05, 0.01, 0.05, 0.5), Number(0.07, 0.01, 0.06, 0.2)),
        "correlations": correlations,
        "blocks": Number(0.03, 0.01, 0.02, 0.2),
        "reversal": (made_reversal(ratio - 0.01, sparsity=2.0), made_reversal(ratio)),
        "seconds": 0.25,
        "p": 1e-8 if rank else 0.6,
        "family_p": 2e-8 if rank else 1.0,
    }
    return LayerAudit(**(values | changes))


def unmeasured(name: str = "out") -> LayerAudit:
    """A layer too small to judge."""
    return LayerAudit(name, "linear", 10, 64, "not judged", SENTENCES["not judged"])


def made_audit(*layers: LayerAudit, model: str = "net.safetensors", **settings: Any) -> Audit:
    return Audit(
        model=model,
        layers=layers,
        thresholds=asdict(Thresholds()),
        settings={"seed": 0, "keep": 1.0, "samples": 32, "exact": None} | settings,
        versions={"obverse": "0", "torch": "2"},
        seconds=1.5,
    )
