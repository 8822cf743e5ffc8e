"""Put the tables of convolutional nets into docs/cnn.md, between its marks, and draw its figure.

python -m experiments.cnn.page
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse.present.palette import GREY, LIGHT
from obverse.training._compare import paired_p_value

from .._lab.places import DOCS
from .._lab.tables import differences, holm, percent, put_between_marks, small, table
from .run import ALL, DATA, LONG, NOISE, PLAIN, RATES, RESULTS, SHADOW, VARIANTS, best

Records = list[dict[str, Any]]
SIZES = {1000: "1,000", 5000: "5,000", ALL: "all"}
TITLES = {"fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
ORDER = ("plain", LONG, "dropout", "mixup", "label smoothing", *NOISE, "shuffled shadows", *SHADOW, *VARIANTS)


def read(place: Path) -> Records:
    lines = (place / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def finals(records: Records, data: str, labels: int, method: str) -> dict[int, dict[str, Any]]:
    """The records on the test set of one method, by seed."""
    mine = [r for r in records if not r["held_out"] and r["data"] == data and r["labels"] == labels]
    return {r["seed"]: r for r in sorted(mine, key=lambda r: r["seed"]) if r["method"] == method}


def methods_of(records: Records, data: str) -> list[str]:
    return [m for m in ORDER if any(finals(records, data, size, m) for size in SIZES)]


def tuning_table(records: Records, data: str) -> str:
    """Held-out error by learning rate; the chosen one in bold."""
    rates, rows = RATES[data], []
    for method in (*PLAIN, *NOISE, *SHADOW):
        mine = [r for r in records if r["held_out"] and (r["data"], r["labels"]) == (data, 5000)]
        tried = {r["rate"]: r for r in mine if r["method"] == method}
        if not tried:
            continue
        chosen = best(records, data, (method,))["rate"]
        cells = [f"{100 * tried[rate]['error']:.2f}" if rate in tried else "–" for rate in rates]
        rows.append([method, *(f"**{c}**" if r == chosen else c for r, c in zip(rates, cells, strict=True))])
    return table([f"{TITLES[data]}: method", *(f"lr {rate:g}" for rate in rates)], rows)


def cell(runs: dict[int, dict[str, Any]], field: str) -> str:
    found = [run[field] for run in runs.values() if field in run]
    return percent(found) + f" ({len(found)})" if found else "–"


def error_table(records: Records, data: str) -> str:
    rows = [
        [method, *(cell(finals(records, data, size, method), "error") for size in SIZES)]
        for method in methods_of(records, data)
    ]
    return table([f"{TITLES[data]}: method", *(f"{size} labels" for size in SIZES.values())], rows)


def shadow_table(records: Records, data: str, labels: int) -> str:
    """What the trained nets do with norm-matched shadows from conv3; empty where nothing was measured."""
    rows = []
    for method in methods_of(records, data):
        runs = finals(records, data, labels, method)
        if not any("shadow_error" in run for run in runs.values()):
            continue
        top = [run["recovery_error"]["conv3"] for run in runs.values() if "recovery_error" in run]
        mean, se = mean_and_se(top)
        recovered = f"{mean:.3f}" + ("" if se is None else f" ± {se:.3f}")
        shown = [cell(runs, field) for field in ("error", "shadow_error", "label_agreement")]
        rows.append([method, *shown, recovered])
    head = ["test error %", "error on shadows %", "same label %", "recovery error at conv3"]
    return table([f"{TITLES[data]}, {SIZES[labels]} labels: method", *head], rows) if rows else ""


def paired(records: Records, data: str, labels: int, method: str, other: str) -> list[float]:
    """Differences of test error in points over the seeds that both have."""
    a, b = finals(records, data, labels, method), finals(records, data, labels, other)
    seeds = [seed for seed in a if seed in b]
    return differences([a[s]["error"] for s in seeds], [b[s]["error"] for s in seeds])


def gap_table(records: Records, data: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Paired t tests, Holm-adjusted over the whole table."""
    found = [
        (size, method, other, gap)
        for size in SIZES
        for method, other in pairs
        if len(gap := paired(records, data, size, method, other)) > 1
    ]
    raw = [paired_p_value(gap) or 1.0 for *_, gap in found]
    rows = []
    for (size, method, other, gap), p, adjusted in zip(found, raw, holm(raw), strict=True):
        mean, se = mean_and_se(gap)
        word = "no difference shown" if adjusted >= 0.05 else "better" if mean < 0 else "worse"
        numbers = [f"{mean:+.2f} ± {se:.2f}", small(p), small(adjusted), word]
        rows.append([SIZES[size], method, other, *numbers])
    head = ["labels", "method", "minus", "difference, points", "p", "p (Holm)", "verdict"]
    return table([f"{TITLES[data]}: {head[0]}", *head[1:]], rows)


def held_out(records: Records, data: str, method: str) -> list[float]:
    """Errors of the search, in the order of seeds."""
    mine = [r for r in records if r["held_out"] and (r["data"], r["labels"]) == (data, 1000)]
    return [r["error"] for r in sorted(mine, key=lambda r: r["seed"]) if r["method"] == method]


def search_table(records: Records) -> str:
    """Held-out error of every variant of SHADOW with its difference to plain at the same points."""
    rows = []
    for method in ("plain", *SHADOW, *VARIANTS):
        cells = []
        for data in DATA:
            found = [held_out(records, data, name) for name in (method, "plain")]
            if not all(found):
                cells += ["–", "–"]
                continue
            mean, plain = (100 * math.fsum(errors) / len(errors) for errors in found)
            cells += [f"{mean:.2f}", f"{mean - plain:+.2f}"]
        if set(cells) != {"–"}:
            rows.append([method, *cells])
    return table(["variant", *(f"{TITLES[d]}{w}" for d in DATA for w in (" %", ", to plain"))], rows)


def pairs_worse(records: Records) -> str:
    """In how many pairs of runs each method had the greater test error."""
    rows = []
    for method in (m for m in ORDER if m != "plain"):
        gaps = {
            data: [g for size in SIZES for g in paired(records, data, size, method, "plain")] for data in DATA
        }
        if any(gaps.values()):
            rows.append([method, *(f"{sum(g > 0 for g in gaps[d])} of {len(gaps[d])}" for d in DATA)])
    return table(["worse than plain in", *(TITLES[data] for data in DATA)], rows)


def others(records: Records, data: str, method: str) -> list[tuple[str, str]]:
    return [(method, other) for other in methods_of(records, data) if other not in (method, LONG)]


def at_the_edge(records: Records) -> str:
    """Methods whose chosen learning rate is the least or greatest of its grid."""
    found = [
        f"{method} on {TITLES[data]} ({rate:g})"
        for data in DATA
        for method in (*PLAIN, *NOISE, *SHADOW)
        if any(
            r["held_out"] and (r["data"], r["labels"], r["method"]) == (data, 5000, method) for r in records
        )
        and (rate := best(records, data, (method,))["rate"]) in (RATES[data][0], RATES[data][-1])
    ]
    return f"At the end of the grid lies the choice of {', '.join(found)}." if found else ""


def text(records: Records) -> str:
    """Everything between the marks, from the records alone."""
    judged = sum(not record["held_out"] for record in records)
    parts = [f"{len(records)} trainings: {judged} judged on the test set, the others on held-out points."]
    parts += ["### Test error", "In %, mean ± standard error (number of seeds)."]
    parts += [error_table(records, data) for data in DATA]
    parts += ["![Test error minus that of plain training](figures/cnn-shadow.png)"]
    parts += ["### Against plain training", "Paired by seed; negative is better."]
    for data in DATA:
        names = [name for name in methods_of(records, data) if name != "plain"]
        parts.append(gap_table(records, data, [(name, "plain") for name in names]))
    parts += ["Pairs of runs (one seed, one number of labels):", pairs_worse(records)]
    parts += ["### SHADOW against everything else"]
    parts += [gap_table(records, data, others(records, data, "SHADOW")) for data in DATA]
    parts += [
        "### Which layer, weight and variant",
        "Held-out error with 1,000 labels, one seed.",
        search_table(records),
    ]
    parts += ["### What the nets do with their shadows"]
    parts += [shadow_table(records, data, size) for data in DATA for size in SIZES]
    parts += [
        "### The choice of learning rates",
        "Held-out error in %, 5,000 labels, one seed; the chosen learning rate in bold.",
    ]
    parts += [*(tuning_table(records, data) for data in DATA), at_the_edge(records)]
    return "\n\n".join(part for part in parts if part) + "\n"


def draw(records: Records, place: Path) -> None:
    """Differences to plain with their standard errors, one panel a data set and number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, grid = plt.subplots(len(DATA), len(SIZES), figsize=(10, 5.6), layout="constrained", squeeze=False)
    for row, data in zip(grid, DATA, strict=True):
        names = [name for name in methods_of(records, data) if name != "plain"][::-1]
        for axes, (size, title) in zip(row, SIZES.items(), strict=True):
            for height, name in enumerate(names):
                gap = paired(records, data, size, name, "plain")
                if len(gap) < 2:
                    continue
                mean, se = mean_and_se(gap)
                color = LIGHT[1] if name.startswith("SHADOW") else LIGHT[6]
                axes.errorbar(mean, height, xerr=se, fmt="o", color=color, capsize=3, markersize=4)
                axes.plot(gap, [height] * len(gap), "|", color=color, alpha=0.35)
            axes.axvline(0, color=GREY, linewidth=0.8)
            axes.set(yticks=range(len(names)), ylim=(-0.6, len(names) - 0.4))
            axes.set_yticklabels(names if axes is row[0] else [])
            axes.set_title(f"{TITLES[data]}, {title} labels", fontsize=10)
            axes.grid(axis="x", alpha=0.3)
    figure.supxlabel("test error minus that of plain training, points (mean ± standard error; ticks: seeds)")
    place.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(place, dpi=110, metadata={"Software": None})
    plt.close(figure)


def page() -> None:
    records = read(RESULTS)
    put_between_marks(DOCS / "cnn.md", text(records))
    draw(records, DOCS / "figures" / "cnn-shadow.png")


if __name__ == "__main__":
    page()
