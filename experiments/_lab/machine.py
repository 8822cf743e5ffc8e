"""The machine that a result was measured on, as the benchmarks say it."""

from __future__ import annotations

import sys

from .places import BENCHMARKS

sys.path.append(str(BENCHMARKS.parent))  # scripts, not a package

from measure import machine

__all__ = ["machine"]
