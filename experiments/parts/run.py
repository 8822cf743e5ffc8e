"""Does the decomposition find signal where there is none, and does it find what there is?

    python -m experiments.parts.run [--out DIR] [--rows 64 128 …] [--no-checkpoints]

Noise of ten kinds, with and without log-normal scales of rows and columns: how often the largest singular
value, the smallest one and the distance to the law are beyond what is allowed in a share alpha of cases. And
planted signals of rank 1, 5 and 5 % of the shorter side at multiples of the threshold below which noise hides
them: how often they are found, how exactly, and how near the rebuilt signal is to the best there is. And what
the whole audit says of checkpoints of noise. Each cell is written as it is done: an interrupted run resumes
where it stopped.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from obverse.weights import audit, decompose
from obverse.weights._decomposition.marchenko_pastur import edge_probability
from obverse.weights.results import FAMILY

from .._lab.result_files import measure
from .matrices import NOISE, Planted, noise, planted

RESULTS = Path(__file__).parent / "results"
HEIGHTS = (64, 128, 256, 512, 1024, 2048, 4096)
MATRICES = {64: 200, 128: 100, 256: 200, 512: 400, 1024: 40, 2048: 40}  # per cell of noise
LEVELS = (0.05, 0.01, 0.001)
ALPHA = 0.01  # of the planted signals, and of the grades of noise
RATIOS = {64: (1, 2, 4, 8), 128: (1, 2, 4, 8), 256: (1, 4)}  # 1 elsewhere
SPREADS = (1.0, 0.5, 0.0)
TIMES = (1.5, 1.2, 2.0, 1.0)
DRAWS = {256: 100, 4096: 2}  # per cell of planted signals
CHECKPOINTS, LAYERS = 10, 50  # of noise of each kind, audited whole
LARGE = ((5, 1.2), (300, 1.5), (205, 1.2))  # ranks and strengths in 4,096 rows and columns


def generator_of(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def false_alarms(
    name: str, kind: str, rows: int, columns: int, spread: float, matrices: int
) -> dict[str, Any]:
    """Counts of matrices beyond each level at the upper edge, at the lower one, and off the law."""
    generator = generator_of(name)
    found: dict[str, list[float]] = {"upper": [], "lower": [], "distance": []}
    grades: dict[str, int] = {}
    for _ in range(matrices):
        matrix = noise(kind, rows, columns, spread, generator)
        summary = decompose(matrix, alpha=ALPHA, generator=generator).summary
        largest = summary.directions[0].p if summary.directions else summary.upper_p
        distance = summary.distance.p if summary.distance else None
        found["upper"].append(1.0 if largest is None else largest)
        found["lower"].append(1.0 if summary.lower_p is None else summary.lower_p)
        found["distance"].append(1.0 if distance is None else distance)
        grades[summary.grade] = grades.get(summary.grade, 0) + 1
    counts = {part: [sum(p < level for p in values) for level in LEVELS] for part, values in found.items()}
    return {"matrices": matrices, "counts": counts, "grades": grades}


def audited(name: str, kind: str) -> dict[str, Any]:
    """What the audit says of checkpoints of noise: verdicts, remarks, and checkpoints with a layer named.

    Layers of 64 to 256 rows and up to 512 columns, each with one of the three profiles.
    """
    generator = generator_of(name)
    verdicts: dict[str, int] = {}
    remarks: dict[str, int] = {}
    named = 0
    for _ in range(CHECKPOINTS):
        net = {}
        for at in range(LAYERS):
            rows = int(torch.randint(64, 257, (), generator=generator))
            columns = int(torch.randint(rows, 2 * rows + 1, (), generator=generator))
            net[f"{at}.weight"] = noise(kind, rows, columns, SPREADS[at % len(SPREADS)], generator)
        found = audit(net, samples=8, generator=generator)
        named += any(layer.family_p is not None and layer.family_p < FAMILY for layer in found)
        for at, layer in enumerate(found):
            verdicts[layer.verdict] = verdicts.get(layer.verdict, 0) + 1
            even = not SPREADS[at % len(SPREADS)]
            for finding in layer.findings:
                false = finding.aspect in FALSE or (finding.aspect == "recovery" and even)
                if false and finding.random_like is False:
                    remarks[finding.aspect] = remarks.get(finding.aspect, 0) + 1
    return {"layers": CHECKPOINTS * LAYERS, "verdicts": verdicts, "remarks": remarks, "named": named}


# Remarks false of every noise. Others tell of tails and scales; so does recovery where scales differ.
FALSE = ("mean", "correlations", "blocks")


def power(
    name: str, rows: int, columns: int, rank: int, times: float, spread: float, draws: int
) -> dict[str, Any]:
    """Shares of matrices in which all directions were found, and no more; errors of strengths and signal."""
    generator = generator_of(name)
    count = dict.fromkeys(("exact", "too many", "low", "interval", "at least", "share covered"), 0)
    directions, bar = 0, 0
    strengths, errors, edges = [], [], []
    for _ in range(draws):
        truth = planted(rows, columns, rank, times, spread, generator)
        parts = decompose(truth.matrix, alpha=ALPHA, generator=generator)
        directions += min(parts.rank, rank)
        low, high = parts.summary.rank_interval
        count["exact"] += parts.rank == rank
        count["too many"] += parts.rank > rank
        count["low"] += low <= rank
        count["interval"] += low <= rank <= high
        count["at least"] += parts.summary.rank_is_bound
        bar += low <= rank and (rank <= high or parts.summary.rank_is_bound)
        energy = float(truth.signal.square().sum())
        share = energy / (energy + rows * columns)
        between = parts.summary.signal_share
        count["share covered"] += between is not None and between.low <= share <= between.high
        if parts.rank == rank:
            seen = [one.strength / parts.summary.scale for one in parts.summary.directions]
            strengths.append(sum(seen) / len(seen) / float(truth.strengths[0]))
        if rows <= SMALL:
            edges.append(torch.linalg.svdvals((truth.matrix / truth.profile).double())[: rank + 2].tolist())
            if parts.rank == rank:
                errors.append(error_against_oracle(truth, parts.signal() / truth.profile))
    return {
        "draws": draws,
        "directions": directions / (rank * draws),
        **count,
        "true": bar,
        "strength": sum(strengths) / len(strengths) if strengths else None,
        "error": sum(errors) / len(errors) if errors else None,
        "oracle": sum(seen_by_oracle(one, rows, columns) == rank for one in edges) if edges else None,
        "best": best_threshold(edges, rank) if edges else None,
    }


SMALL = 1024  # rows up to which the oracles' singular values are computed


def seen_by_oracle(values: list[float], rows: int, columns: int) -> int:
    """How many an oracle counts that knows profile and scale, by Tracy–Widom for as many rows less."""
    for taken, value in enumerate(values):
        if edge_probability(value, rows - taken, columns - taken, 1.0) >= ALPHA:
            return taken
    return len(values)


def best_threshold(values: list[list[float]], rank: int) -> int:
    """In how many matrices the rank is right with the one threshold that is best for these very matrices.

    No rule that compares singular values with a fixed number can do better, at any level.
    """
    weakest, next_ones = [one[rank - 1] for one in values], [one[rank] for one in values]
    return max(
        sum(top > at >= after for top, after in zip(weakest, next_ones, strict=True)) for at in next_ones
    )


def error_against_oracle(truth: Planted, estimate: torch.Tensor) -> float:
    """Of the rebuilt signal, without the profile, over that of an oracle.

    The oracle knows the noise, and of each seen direction how much of the truth lies in it: it keeps the seen
    directions with the values that are best for this very matrix.
    """
    seen = truth.matrix / truth.profile
    left, _, right = torch.linalg.svd(seen, full_matrices=False)
    rank = len(truth.strengths)
    best = torch.einsum("ik,ij,kj->k", left[:, :rank], truth.signal, right[:rank])
    oracle = (left[:, :rank] * best) @ right[:rank]
    return float((estimate - truth.signal).norm() / (oracle - truth.signal).norm())


def noise_cells(rows: int) -> dict[str, Callable[[], Any]]:
    """All shapes and profiles where they take seconds, fewer of the larger ones."""
    cells: dict[str, Callable[[], Any]] = {}
    for spread in SPREADS if rows <= 64 else (1.0,):
        for ratio in RATIOS.get(rows, (1,)):
            for kind in NOISE:
                name = f"{kind}, {rows}×{ratio * rows}, {spread:g}"
                cells[name] = partial(false_alarms, name, kind, rows, ratio * rows, spread, MATRICES[rows])
    return cells


def planted_cells(rows: int) -> dict[str, Callable[[], Any]]:
    cells: dict[str, Callable[[], Any]] = {}
    ranks = (1, 5, math.ceil(0.05 * rows))
    wanted = LARGE if rows > SMALL else [(rank, times) for times in TIMES for rank in ranks]
    for rank, times in wanted:
        for ratio in RATIOS.get(rows, (1,)):
            name = f"rank {rank}, {times:g} × threshold, {rows}×{ratio * rows}, 0.5"
            cells[name] = partial(power, name, rows, ratio * rows, rank, times, 0.5, DRAWS[rows])
    return cells


def run(out: Path = RESULTS, heights: Sequence[int] = HEIGHTS, checkpoints: bool = True) -> None:
    for rows in heights:
        if rows in DRAWS:
            measure(out / f"planted_{rows}.json", {"draws": DRAWS[rows], "alpha": ALPHA}, planted_cells(rows))
        if rows in MATRICES:
            about = {"levels": LEVELS, "matrices": MATRICES[rows]}
            measure(out / f"noise_{rows}.json", about, noise_cells(rows))
    if checkpoints:
        about = {"checkpoints": CHECKPOINTS, "layers": LAYERS}
        measure(
            out / "audited.json", about, {kind: partial(audited, f"audited, {kind}", kind) for kind in NOISE}
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=HEIGHTS, help="shorter sides, none for no matrices"
    )
    parser.add_argument("--no-checkpoints", action="store_true", help="no audits of checkpoints of noise")
    asked = parser.parse_args()
    run(asked.out, asked.rows, not asked.no_checkpoints)
