"""Where things lie in the repository."""

from __future__ import annotations

from pathlib import Path

EXPERIMENTS = Path(__file__).parent.parent
ROOT = EXPERIMENTS.parent
DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"
BENCHMARKS = ROOT / "benchmarks" / "results"
RUNS = ROOT / "runs"  # what is not part of the repository
