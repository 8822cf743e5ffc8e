"""How much longer h → x → ĥ takes with a streamed W than its multiplications would at torch's full speed.

Drawing W and the masks is part of it. Beside the ratio: one pass of an n = 10⁶, m = 10⁴ layer, its seconds
and the peak memory of its process.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

import torch
from measure import Outcome, alternate, compare, publish

from obverse.claims.alm._layer import reverse_and_infer
from obverse.claims.alm._stream import Weights

SQUARE = 4096  # side of the plain product
BATCHES = (512, 1024, 2048)  # the bar is for the last; drawing W costs the same whatever the batch
LAYERS = {"10000 × 2000": (10_000, 2000), "2000 × 10000": (2000, 10_000), "40000 × 500": (40_000, 500)}
KEEP = 0.1
BAR = 2.0  # half of the plain speed

LARGE = """
import sys, torch
from pathlib import Path
from time import perf_counter
from obverse.claims.alm._layer import reverse_and_infer
from obverse.claims.alm._stream import Weights
n, m, batch = map(int, sys.argv[1:])
h = torch.rand(batch, m, generator=torch.Generator().manual_seed(0))
start = perf_counter()
reverse_and_infer(Weights(n, m, seed=1), h, 0.1)
print(perf_counter() - start, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def large(n: int, m: int, batch: int) -> dict[str, float]:
    """One pass in a process of its own; W would take 4nm bytes."""
    command = [sys.executable, "-c", LARGE, *map(str, (n, m, batch))]
    seconds, kilobytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return {
        "inputs": n,
        "units": m,
        "batch": batch,
        "seconds": float(seconds),
        "peak_megabytes": int(kilobytes) / 1000,
        "megabytes_of_weights": 4 * n * m / 1e6,
    }


def layer_ratio(name: str, batch: int, repetitions: int) -> Outcome:
    """Streamed layer ÷ as many multiplications in a plain product of two square matrices."""
    n, m = LAYERS[name]
    random = torch.Generator().manual_seed(0)
    left, right = (torch.randn(SQUARE, SQUARE, generator=random) for _ in range(2))
    weights, h = Weights(n, m, seed=1), torch.rand(batch, m, generator=random)
    sides = {"streamed": lambda: reverse_and_infer(weights, h, KEEP), "product": lambda: left @ right}
    seconds = alternate(sides, repetitions)
    gigaflops = 2e-9 * SQUARE**3 / median(seconds["product"])
    more = 2 * n * m * batch / SQUARE**3  # two products with W, in multiplications
    seconds["product"] = [more * one for one in seconds["product"]]
    question = f"streamed layer ÷ plain product, {name}, batch {batch}"
    return compare("claims_stream", question, BAR, seconds, plain_gigaflops=gigaflops)


def stream_ratio(repetitions: int) -> Outcome:
    """Streamed layer ÷ as many multiplications in a plain product, the slowest of three shapes."""
    shares: dict[str, dict[str, float]] = {}
    for batch in BATCHES:
        outcomes = {name: layer_ratio(name, batch, repetitions) for name in LAYERS}
        shares[f"batch {batch}"] = {name: 1 / one.ratio for name, one in outcomes.items()}
    slowest = max(outcomes.values(), key=lambda outcome: outcome.ratio)
    slowest.details["share_of_plain_speed"] = shares
    slowest.details["large"] = large(1_000_000, 10_000, 16)
    return slowest


if __name__ == "__main__":
    publish(stream_ratio, repetitions=7)
