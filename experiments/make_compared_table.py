"""Put the time of the audit beside WeightWatcher's into docs/compared.md, between its marks.

python experiments/make_compared_table.py
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from make_results import DOCS, put_between_marks, table

FOLDER = Path(__file__).parent.parent / "benchmarks" / "results"
NAMES = ("weightwatcher_mlp", "weightwatcher_mlp_mp_fit", "weightwatcher_pair", "weightwatcher_pair_mp_fit")


def row(result: dict[str, Any]) -> list[str]:
    [analysis, net] = result["question"].removeprefix("audit ÷ WeightWatcher ").rsplit(", ", 1)
    seconds = result["details"]["median_seconds"]
    low, high = sorted(1 / ratio for ratio in result["spread"])
    faster = f"{1 / result['ratio']:.1f} ({low:.1f} to {high:.1f})"
    return [net, f"`{analysis}`", f"{seconds[analysis]:.0f}", f"{seconds['audit']:.1f}", faster]


def text() -> str:
    results = [json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES]
    [version] = {result["details"]["weightwatcher"] for result in results}
    machine = results[0]["machine"]
    head = ["net", "WeightWatcher's analysis", "its seconds", "audit, seconds", "times faster"]
    about = (
        f"Both on random weights in one process, in turn, {results[0]['details']['repetitions']} times, on "
        f"{machine['cores']} cores ({machine['cpu']}), WeightWatcher {version}, torch {machine['torch']}; "
        "medians, and the range of the ratio. `make bench-weightwatcher` repeats it."
    )
    return f"{fill(about, 120)}\n\n{table(head, [row(result) for result in results])}\n"


def main() -> None:
    put_between_marks(DOCS / "compared.md", text())
    print(json.dumps({"written": "docs/compared.md"}))


if __name__ == "__main__":
    main()
