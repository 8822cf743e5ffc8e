"""Put the time of the audit beside WeightWatcher's into docs/compared.md, between its marks.

python -m experiments.compared.page
"""

from __future__ import annotations

from textwrap import fill
from typing import Any

from .._lab.places import BENCHMARKS, DOCS
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table

NAMES = ("weightwatcher_mlp", "weightwatcher_mlp_mp_fit", "weightwatcher_pair", "weightwatcher_pair_mp_fit")


def row(result: dict[str, Any]) -> list[str]:
    [analysis, net] = result["question"].removeprefix("audit ÷ WeightWatcher ").rsplit(", ", 1)
    seconds = result["details"]["median_seconds"]
    low, high = sorted(1 / ratio for ratio in result["spread"])
    faster = f"{1 / result['ratio']:.1f} ({low:.1f} to {high:.1f})"
    return [net, f"`{analysis}`", f"{seconds[analysis]:.0f}", f"{seconds['audit']:.1f}", faster]


def text() -> str:
    results = [read(BENCHMARKS / f"{name}.json") for name in NAMES]
    [version] = {result["details"]["weightwatcher"] for result in results}
    machine = results[0]["machine"]
    head = ["net", "WeightWatcher's analysis", "its seconds", "audit, seconds", "times faster"]
    about = (
        f"Both on random weights in one process, in turn, {results[0]['details']['repetitions']} times, on "
        f"{machine['cores']} cores ({machine['cpu']}), WeightWatcher {version}, torch {machine['torch']}; "
        "medians, and the range of the ratio. `make bench-weightwatcher` repeats it."
    )
    return f"{fill(about, 120)}\n\n{table(head, [row(result) for result in results])}\n"


def page() -> None:
    put_between_marks(DOCS / "compared.md", text())


if __name__ == "__main__":
    page()
