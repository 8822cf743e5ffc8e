"""What do the rules of use call signal in noise, and which of them find a signal that is there?

    python -m experiments.selection.bench [--out DIR] [--small]

Noise: how many directions each rule calls signal (or keeps) where there are none. Order: how often a rule
puts a matrix with a planted signal before one of noise of the same shape. Ranks: how often the rank of a
low-rank update is exactly found in normal noise. Each cell is written as it is done.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .._lab.result_files import measure
from ..parts.matrices import noise, planted
from .rules import counts, scores

RESULTS = Path(__file__).parent / "results"
DRAWS_LARGE = {(1024, 4096): 4, (4096, 4096): 1, (4096, 14336): 1}
SMALL = ((512, 512), (512, 2048), (512, 1376), (512, 1792))  # of the same proportions
DRAWS = 40
SPREADS = (0.0, 0.5)  # of the logarithms of the scales of rows and columns
ORDERED = ((256, 256), (256, 896))
TIMES = (0.8, 1.0, 1.2, 1.5, 2.0, 3.0)  # of the threshold below which noise hides a direction
PLANTED = 5
PAIRS = 30
UPDATES = ((256, 256), (256, 896), (512, 512))
RANKS = (1, 4, 16)
STRENGTHS = (1.2, 1.5, 2.0, 4.0)


def generator_of(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def on_noise(name: str, rows: int, columns: int, spread: float, draws: int) -> dict[str, Any]:
    """The counts of every rule in every draw."""
    generator = generator_of(name)
    found: dict[str, list[int]] = {}
    for _ in range(draws):
        for rule, many in counts(noise("normal", rows, columns, spread, generator)).items():
            found.setdefault(rule, []).append(many)
    return {"side": min(rows, columns), "draws": draws, "counts": found}


def in_order(name: str, rows: int, columns: int, times: float, spread: float) -> dict[str, Any]:
    """Of pairs, one with a signal and one without: how often the first is preferred; ties are halves.

    Both have unequal rows and columns, where `spread` is not 0, as weights have them.
    """
    generator = generator_of(name)
    won: dict[str, float] = {}
    for _ in range(PAIRS):
        taught = scores(planted(rows, columns, PLANTED, times, spread, generator).matrix)
        plain = scores(noise("normal", rows, columns, spread, generator))
        for rule in taught:
            win = 1.0 if taught[rule] > plain[rule] else 0.5 if taught[rule] == plain[rule] else 0.0
            won[rule] = won.get(rule, 0.0) + win
    return {"pairs": PAIRS, "won": won}


def exact_ranks(name: str, rows: int, columns: int, rank: int, times: float) -> dict[str, Any]:
    """In how many draws each rule counts exactly the rank that was planted."""
    generator = generator_of(name)
    exact: dict[str, int] = {}
    total: dict[str, int] = {}
    for _ in range(PAIRS):
        matrix = planted(rows, columns, rank, times, 0.0, generator).matrix
        for rule, many in counts(matrix).items():
            exact[rule] = exact.get(rule, 0) + (many == rank)
            total[rule] = total.get(rule, 0) + many
    return {"draws": PAIRS, "exact": exact, "total": total}


def run(out: Path = RESULTS, small: bool = False) -> None:
    cells: dict[str, Callable[[], Any]] = {}
    for rows, columns in SMALL:
        for spread in SPREADS:
            name = f"{rows}×{columns}, {spread:g}"
            cells[name] = partial(on_noise, name, rows, columns, spread, DRAWS)
    measure(out / "noise.json", {"draws": DRAWS}, cells)
    cells = {}
    for rows, columns in UPDATES:
        for rank in RANKS:
            for times in STRENGTHS:
                name = f"{rows}×{columns}, normal, rank {rank}, {times:g}"
                cells[name] = partial(exact_ranks, name, rows, columns, rank, times)
    measure(out / "ranks.json", {"draws": PAIRS}, cells)
    cells = {}
    for rows, columns in ORDERED:
        for spread in SPREADS:
            for times in TIMES:
                name = f"{rows}×{columns}, {spread:g}, {times:g}"
                cells[name] = partial(in_order, name, rows, columns, times, spread)
    measure(out / "order.json", {"pairs": PAIRS, "rank": PLANTED}, cells)
    if not small:
        cells = {}
        for (rows, columns), draws in DRAWS_LARGE.items():
            name = f"{rows}×{columns}, 0"
            cells[name] = partial(on_noise, name, rows, columns, 0.0, draws)
        measure(out / "noise_large.json", {"draws": list(DRAWS_LARGE.values())}, cells)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--small", action="store_true", help="no matrices of thousands of rows")
    asked = parser.parse_args()
    run(asked.out, asked.small)
