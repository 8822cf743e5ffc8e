"""How many directions the fast search finds beside all singular values, on planted matrices. No timing.

Layers are log-normal profile × (signal + noise), all planted directions of one strength.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from itertools import product
from typing import Any

import torch
from decompose import THREADS
from measure import RESULTS, Outcome, machine
from torch import Tensor

from obverse.weights import decompose

SHAPES = ((1600, 1600), (1600, 4096), (2048, 2048))
RANKS = (1, 5, 40)
STRENGTHS = (1.2, 1.5, 2.0, 5.0)  # times the threshold


def planted(rows: int, columns: int, rank: int, strength: float, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    left, right = (
        torch.linalg.qr(torch.randn(side, rank, generator=generator)).Q for side in (rows, columns)
    )
    matrix = torch.randn(rows, columns, generator=generator)
    matrix.addmm_(left * strength * (rows * columns) ** 0.25, right.T)
    matrix *= (0.3 * torch.randn(rows, 1, generator=generator)).exp()
    matrix *= (0.3 * torch.randn(1, columns, generator=generator)).exp()
    return matrix.mul_(1 / math.sqrt(columns))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_known_args()  # repetitions would change nothing
    torch.set_num_threads(THREADS)
    table: list[dict[str, Any]] = []
    for at, ((rows, columns), rank, strength) in enumerate(product(SHAPES, RANKS, STRENGTHS)):
        matrix = planted(rows, columns, rank, strength, at)
        generator = torch.Generator().manual_seed(at)
        fast, exact = (decompose(matrix, exact=way, generator=generator) for way in (False, True))
        table.append(
            {
                "shape": [rows, columns],
                "planted": rank,
                "strength": strength,
                "fast": fast.rank,
                "exact": exact.rank,
                "scale": fast.summary.scale / exact.summary.scale - 1,
                "grades": [fast.grade, exact.grade],
            }
        )
        print(json.dumps(table[-1]), flush=True)
    apart = sum(row["fast"] != row["exact"] for row in table)
    outcome = Outcome(
        "decompose_agreement",
        f"share of {len(table)} planted matrices where fast and exact count differently",
        apart / len(table),
        0.05,
        details={"largest_difference": max(abs(row["fast"] - row["exact"]) for row in table), "table": table},
    )
    print(Outcome.header(), outcome, sep="\n")
    content = {**asdict(outcome), "holds": outcome.holds, "machine": machine()}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (RESULTS / f"{outcome.name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
