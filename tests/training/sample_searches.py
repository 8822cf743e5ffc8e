"""Records of searches to make pages from: made up, so that every kind of trial is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from obverse.training._search.results import Retrained, SearchResult, Trial

RATES, WEIGHTS = (0.001, 0.004, 0.016, 0.064), (0.0, 0.5, 2.0)
EVIL = "<script>alert(1)</script><b>bold</b>" + "long" * 60


def sample_search(sampler: str = "grid", **changes: Any) -> SearchResult:
    """Smallest at rate 0.016 and weight 0.5; a trial of each kind."""
    trials = []
    for number in range(12):
        rate, weight = RATES[number % 4], WEIGHTS[number // 4]
        if sampler == "tpe":
            rate, weight = 0.001 * 64 ** ((number * 5 % 12) / 11), 0.5 * 4 ** ((number * 7 % 12) / 11)
        final = 0.02 + 0.01 * abs(number - 6)
        curve = tuple((epoch, min(1.0, final * 5 / epoch)) for epoch in range(1, 6))
        trials.append(Trial(number, rate, weight, "complete", curve[-1][1], 1.5, "", curve))
    trials[3] = replace(trials[3], state="pruned", curve=trials[3].curve[:2], error=trials[3].curve[1][1])
    trials[7] = replace(trials[7], state="failed", curve=(), error=None, reason="a loss of nan")
    trials[11] = replace(
        trials[11], state="running", curve=trials[11].curve[:1], error=trials[11].curve[0][1]
    )
    values: dict[str, Any] = {
        "trials": tuple(trials),
        "data": "mnist",
        "train_points": 50_000,
        "held_out": 10_000,
        "test_points": 10_000,
        "epochs": 5,
        "sampler": sampler,
        "pruner": "median",
        "lrs": RATES,
        "weights": WEIGHTS if sampler == "grid" else (0.5, 2.0),
        "planned": 12,
        "retrained": Retrained(trials[6].lr, trials[6].weight, 0.018, 9.0, ""),
        "settings": {"hidden": (1000, 1000), "seed": 0},
        "versions": {"obverse": "0", "torch": "2"},
    }
    return SearchResult(**(values | changes))


def hostile(found: SearchResult) -> SearchResult:
    """The same with untrusted text wherever there is text, and numbers at the ends of what is allowed."""
    trials = [replace(trial, reason=EVIL) for trial in found.trials]
    trials[0] = replace(trials[0], lr=1e-300, weight=1e300, error=0.0)
    assert found.retrained is not None
    return replace(
        found,
        data=EVIL,
        trials=tuple(trials),
        retrained=replace(found.retrained, test_error=None, reason=EVIL),
        settings={EVIL: EVIL},
        versions={EVIL: EVIL},
    )
