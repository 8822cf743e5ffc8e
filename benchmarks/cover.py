"""The share of the library's lines that `make test` runs, from coverage's report. `make cover` calls it.

Code that runs in processes that the tests start is not counted: the figure is a lower bound.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from measure import RESULTS, machine


def summarize(report: dict[str, Any]) -> dict[str, Any]:
    """Of everything and of each package, in per cent of lines and branches together, as coverage counts."""
    parts: dict[str, list[int]] = {}
    for name, file in report["files"].items():
        below = Path(name).parts[Path(name).parts.index("obverse") + 1 :]
        found, total = parts.setdefault(below[0] if len(below) > 1 else "obverse", [0, 0])
        counts = file["summary"]
        found += counts["covered_lines"] + counts.get("covered_branches", 0)
        total += counts["num_statements"] + counts.get("num_branches", 0)
        parts[below[0] if len(below) > 1 else "obverse"] = [found, total]
    whole = [sum(column) for column in zip(*parts.values(), strict=True)]
    return {
        "name": "coverage",
        "question": "share of lines and branches that make test runs, in per cent",
        "percent": _percent(*whole),
        "packages": {name: _percent(*counts) for name, counts in sorted(parts.items())},
        "coverage": report["meta"]["version"],
    }


def _percent(found: int, total: int) -> float:
    return round(100 * found / total, 1) if total else 100.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="JSON that coverage wrote")
    parser.add_argument("--out", type=Path, default=RESULTS / "coverage.json")
    arguments = parser.parse_args()
    found = summarize(json.loads(arguments.report.read_text(encoding="utf-8")))
    text = json.dumps({**found, "machine": machine()}, indent=2, ensure_ascii=False)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    print(f"{found['percent']} % of lines and branches; {arguments.out}")


if __name__ == "__main__":
    main()
