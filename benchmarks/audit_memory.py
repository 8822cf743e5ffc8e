"""Peak memory of a fresh process that audits one large layer, against three times the layer plus 500 MB."""

from __future__ import annotations

import subprocess
import sys

from measure import Outcome, publish

MEGABYTE = 10**6
ALLOWED = 500 * MEGABYTE  # beside the layers: torch and SciPy alone take about two thirds of it

# Rows, columns, and whether all singular values are computed.
LAYERS = {
    "6000 × 6000, exact": (6000, 6000, 1),
    "9216 × 4096, exact": (9216, 4096, 1),
    "12000 × 12000, Lanczos": (12000, 12000, 0),
}
IMPORTS = "import torch, scipy.stats"
AUDIT = """
import sys, torch
from obverse import audit
rows, columns, exact = map(int, sys.argv[1:])
weight = torch.empty(rows, columns).normal_(generator=torch.Generator().manual_seed(0))
audit({"layer.weight": weight}, exact=bool(exact))
"""
# Not getrusage: its maximum starts from that of the process which started this one.
PEAK = """
from pathlib import Path
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def peak_bytes(program: str, *arguments: float) -> int:
    """The largest resident memory of a new process that runs this; Linux only."""
    command = [sys.executable, "-c", program + PEAK, *map(str, arguments)]
    return 1024 * int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memory_ratio(repetitions: int) -> Outcome:
    """Peak memory of an audit ÷ (3 × the layer + 500 MB), the worst of three layers, each measured once."""
    peaks = {name: peak_bytes(AUDIT, *layer) for name, layer in LAYERS.items()}
    sizes = {name: 4 * rows * columns for name, (rows, columns, _) in LAYERS.items()}
    ratios = {name: peaks[name] / (3 * sizes[name] + ALLOWED) for name in LAYERS}
    worst = max(ratios, key=ratios.__getitem__)
    return Outcome(
        "audit_memory",
        f"peak memory ÷ (3 × layer + 500 MB), {worst}",
        ratios[worst],
        1.0,
        details={
            "ratios": ratios,
            "peak_megabytes": {name: peak / MEGABYTE for name, peak in peaks.items()},
            "layer_megabytes": {name: size / MEGABYTE for name, size in sizes.items()},
            "imports_alone_megabytes": peak_bytes(IMPORTS) / MEGABYTE,
        },
    )


if __name__ == "__main__":
    publish(memory_ratio, repetitions=2)
