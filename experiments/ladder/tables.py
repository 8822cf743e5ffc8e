"""Tables of the ladder's dynamics, selectivity, over-fitting and SGD in Markdown.

python -m experiments.ladder.tables [--results FOLDER]     prints them all
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from math import log2, sqrt
from pathlib import Path
from typing import Any

from .._lab.result_files import mean, read, slope, summary
from .._lab.tables import table

RESULTS = Path(__file__).parent / "results"
MATCHED = ("steps", "epochs", "loss")


def number(value: float) -> str:
    """Three digits; two of small ones, and a power of ten."""
    return small(value, 1) if value and abs(value) < 1e-3 else f"{value:.3g}".replace("-", "−")


def small(value: float, digits: int) -> str:
    head, power = f"{value:.{digits}e}".split("e")
    return f"{head}e{int(power)}".replace("-", "−")


def both(one: Mapping[str, float]) -> str:
    """Mean ± standard error."""
    if not one["error"]:
        return number(one["mean"])
    off = small(one["error"], 0) if one["error"] < 1e-3 else f"{one['error']:.1g}"
    return f"{number(one['mean'])} ± {off}"


def share(one: Mapping[str, float]) -> str:
    return f"{one['mean']:.3f} ± {one['error']:.3f}".replace("-", "−")


def exact_table(entries: Mapping[str, Any]) -> str:
    rows = [entry for name, entry in entries.items() if name.startswith("exact/")]
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    nets = list(dict.fromkeys(row["net"] for row in rows))
    found = {(row["graph"], row["net"]): row for row in rows}
    lines = []
    for graph in graphs:
        inputs = found[graph, nets[0]]["inputs"]
        lines.append([graph, f"{inputs:,}", *(number(found[graph, net]["largest"]) for net in nets)])
    return table(["regions", "inputs", *nets], lines)


def drift_table(entries: Mapping[str, Any]) -> str:
    head = ["events", "bits lost", "broadness gap", "apart after one step", "at the end (median)"]
    head += ["loss by inputs", "by events, on inputs", "by events, as they tell"]
    rows = []
    for name, entry in entries.items():
        kind, _, which = name.partition("/")
        if kind not in ("graded", "named"):
            continue
        rows.append(
            [
                f"split in {which}" if kind == "graded" else which,
                number(entry["lost_bits"]["mean"]) if entry["broadness"]["mean"] else "0",
                number(entry["broadness"]["mean"]),
                both(entry["first"]),
                number(entry["apart"]["median"]),
                *(both(entry[key]) for key in ("loss_inputs", "loss_carried", "loss_events")),
            ]
        )
    return table(head, rows)


def selectivity_table(found: Mapping[str, Any], side: str) -> str:
    """Share that events explain, along training; `side` is "gradient" or "active"."""
    head = ["teacher", "net", "level", "contents → events", "chance", "start", "step 30", "step 100", "end"]
    head += ["end − start", "− labels shuffled, step 30", "− labels shuffled, end"]
    steps = [str(step) for step in found["settings"]["at"]]
    rows = []
    for name, entry in found["entries"].items():
        kind, _, net = name.partition("/")
        for level, (contents, events) in sorted(entry["contents"].items()):
            key = f"{side} {level}"
            values = {step: entry["true"][step][key]["explained"] for step in steps}
            apart = entry["differences"][key]
            rows.append(
                [
                    kind,
                    net,
                    level,
                    f"{contents:,} → {events}",
                    f"{entry['true'][steps[-1]][key]['chance explained']['mean']:.3f}",
                    *(share(values[step]) for step in (steps[0], "30", "100", steps[-1])),
                    share(apart["end − start"]),
                    *(share(apart[f"true − shuffled at {step}"]) for step in ("30", steps[-1])),
                ]
            )
    return table(head, rows)


def sign_table(found: Mapping[str, Any]) -> str:
    """How often g_j(a) > 0 > g_j(b): at the start and at the end, beside shuffled events."""
    steps = [str(step) for step in found["settings"]["at"]]
    rows = []
    for name, entry in found["entries"].items():
        kind, _, net = name.partition("/")
        for level in sorted(entry["contents"]):
            cells = []
            for step in (steps[0], "30", steps[-1]):
                own = entry["true"][step][f"gradient {level}"]
                cells.append(f"{own['sign']['mean']:.2f} / {own['chance sign']['mean']:.2f}")
            rows.append([kind, net, level, *cells])
    return table(
        ["teacher", "net", "level", "start / shuffled", "step 30 / shuffled", "end / shuffled"], rows
    )


def overfitting_table(found: Mapping[str, Any], part: str) -> str:
    """By "samples" or by "contents"."""
    last = str(found["settings"]["steps"])
    head = [part, "ε", "1/(2√n)", "first gradient, spurious", "true", "training loss", "loss on all inputs"]
    head += ["of it spurious", "right on all inputs"]
    rows = []
    for name, entry in found["entries"].items():
        if not name.startswith(f"{part}/"):
            continue
        curve, samples = entry["curve"][last], entry["samples"]
        rows.append(
            [
                f"{entry[part]:,}" if entry[part] else "∞",
                number(entry["epsilon"]["mean"]),
                number(0.5 / sqrt(samples)) if samples else "0",
                both(entry["gradient_spurious"]),
                both(entry["gradient_true"]),
                *(both(curve[key]) for key in ("train", "test", "spurious")),
                f"{100 * curve['accuracy']['mean']:.1f}%",
            ]
        )
    return table(head, rows)


def kept(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def sgd_table(found: Mapping[str, Any], key: str) -> str:
    """By batch size, compared at `key`: "steps", "epochs" or "loss"."""
    head = ["batch", "runs", "training loss", "loss on all inputs", "right", "trace of the Hessian"]
    head += ["largest eigenvalue", "noise of the gradient"]
    rows = []
    for run in runs_of(found):
        own = run[key]
        cells = [both(summary(kept(own[name]))) for name in ("train", "test")]
        cells.append(f"{100 * mean(kept(own['accuracy'])):.1f}%")
        cells += [both(summary(kept(own[name]))) for name in ("trace", "largest", "noise")]
        rows.append([str(run["batch"]), str(len(kept(own["trace"]))), *cells])
    return table(head, rows)


def runs_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    runs = [entry for name, entry in found["entries"].items() if name.startswith("batch/")]
    return sorted(runs, key=lambda run: int(run["batch"]))


def doublings(found: Mapping[str, Any], key: str, name: str) -> dict[str, float]:
    """Change with each doubling of the batch, from the line through a seed's own values: mean over seeds."""
    runs = runs_of(found)
    across = [log2(run["batch"]) for run in runs]
    columns = zip(*(run[key][name] for run in runs), strict=True)
    return summary([slope(across, column) for column in columns if None not in column])


def doublings_table(found: Mapping[str, Any]) -> str:
    names = {"trace": "trace of the Hessian", "largest": "largest eigenvalue", "test": "loss on all inputs"}
    names |= {"accuracy": "right", "noise": "noise of the gradient"}
    rows = [[f"equal {key}", *(both(doublings(found, key, name)) for name in names)] for key in MATCHED]
    return table(["a doubling of the batch, at", *names.values()], rows)


def gap_table(found: Mapping[str, Any]) -> str:
    rows = [
        [str(entry["batch"]), both(entry["start"]), both(entry["trained"])]
        for name, entry in found["entries"].items()
        if name.startswith("gap/")
    ]
    return table(["batch", "at the start", "half-way trained"], rows)


def tables(results: Path = RESULTS) -> dict[str, str]:
    dynamics = read(results / "dynamics.json")["entries"]
    selective, over, sgd = (read(results / f"{name}.json") for name in ("selectivity", "overfitting", "sgd"))
    return {
        "exact": exact_table(dynamics),
        "drift": drift_table(dynamics),
        "selectivity of gradients": selectivity_table(selective, "gradient"),
        "selectivity of activations": selectivity_table(selective, "active"),
        "signs": sign_table(selective),
        "over-fitting by samples": overfitting_table(over, "samples"),
        "over-fitting by contents": overfitting_table(over, "contents"),
        "a batch's own P": gap_table(sgd),
        **{f"batch size at equal {key}": sgd_table(sgd, key) for key in MATCHED},
        "doublings": doublings_table(sgd),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    for title, text in tables(parser.parse_args().results).items():
        print(f"{title}\n\n{text}\n")


if __name__ == "__main__":
    main()
