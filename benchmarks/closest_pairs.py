"""Closest pairs among pictures: against a plain blocked search, and against scikit-learn's brute force.

The plain search is what one would write: blocks of the upper triangle by a matrix product in float32, ten
times as many candidates as wanted, these measured again in float64. It promises nothing where float32 can't
tell; ours does. scikit-learn finds each point's nearest neighbour, which holds the closest pair. And memory:
what a search among 50,000 pictures takes beside them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from math import inf

import torch
from measure import RESULTS, Outcome, alternate, compare, machine
from torch import Tensor

from obverse.diversity._pairs import closest_pairs

POINTS, MANY, COLUMNS, PAIRS = 10_000, 50_000, 3072, 10
GIGABYTE = 10**9
FRESH = """
import json, sys, time, torch
from pathlib import Path
from obverse.diversity._pairs import closest_pairs
def status(name):
    return 1024 * int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0])
rows, columns = map(int, sys.argv[1:])
points = torch.empty(rows, columns).uniform_(generator=torch.Generator().manual_seed(0))
closest_pairs(points[:64], 2)
before, start = status("VmRSS"), time.perf_counter()
closest_pairs(points, 10)
print(json.dumps([status("VmHWM") - before, time.perf_counter() - start]))
"""


def pictures(rows: int, columns: int) -> Tensor:
    """Smooth random pictures with a little noise, of which five are there twice, nearly."""
    generator = torch.Generator().manual_seed(0)
    factors = torch.rand(min(64, columns), columns, generator=generator)
    weights = torch.rand(rows, len(factors), generator=generator)
    points = weights @ factors / len(factors) + 0.05 * torch.rand(rows, columns, generator=generator)
    points[-5:] = points[:5] + 1e-5
    return points


def blocked(points: Tensor, k: int = PAIRS, block: int = 2048) -> Tensor:
    """The k smallest distances by the plain search."""
    norms, keep = points.square().sum(1), 10 * k
    starts = range(0, len(points), block)
    values, pairs = torch.empty(0), torch.empty(0, 2, dtype=torch.int64)
    for i in starts:
        for j in range(i, len(points), block):
            a, b = points[i : i + block], points[j : j + block]
            squared = torch.addmm(norms[j : j + block], a, b.T, alpha=-2).add_(norms[i : i + block, None])
            if i == j:
                squared.masked_fill_(torch.ones_like(squared, dtype=torch.bool).tril_(), inf)
            if len(values) < keep:
                found = squared.flatten().topk(min(keep, squared.numel()), largest=False).indices
                found = torch.stack([found // squared.shape[1], found % squared.shape[1]], 1)
            else:
                found = (squared < values.max()).nonzero()
            values = torch.cat([values, squared[found[:, 0], found[:, 1]]])
            pairs = torch.cat([pairs, found + torch.tensor([i, j])])
            best = values.topk(min(keep, len(values)), largest=False).indices
            values, pairs = values[best], pairs[best]
    apart = points[pairs[:, 0]].double() - points[pairs[:, 1]].double()
    distances: Tensor = apart.norm(dim=1)
    return distances.sort().values[:k]


def brute(points: Tensor) -> float:
    """The smallest distance by scikit-learn."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(points.numpy())
    return float(search.kneighbors(points.numpy())[0][:, 1].min())


def contest(points: Tensor, repetitions: int) -> list[Outcome]:
    """Ours ÷ the plain search, ours ÷ scikit-learn: three sides in turn in one process."""
    ours = closest_pairs(points, PAIRS).distance
    if not torch.allclose(ours, blocked(points), rtol=1e-12):
        raise SystemExit("the two searches disagree")
    sides = {
        "obverse": lambda: closest_pairs(points, PAIRS),
        "blocked search": lambda: blocked(points),
        "scikit-learn": lambda: brute(points),
    }
    seconds = alternate(sides, repetitions, warm_up=1)
    size = f"{len(points):,} × {points.shape[1]:,}"
    return [
        compare(
            f"closest_pairs_{name}",
            f"closest pairs ÷ {side}, {size}",
            bar,
            {each: seconds[each] for each in ("obverse", side)},
            size=list(points.shape),
            closest_by_each={"obverse": float(ours[0]), "scikit-learn": brute(points)},
        )
        for name, side, bar in (("blocked", "blocked search", 1.2), ("sklearn", "scikit-learn", 0.286))
    ]  # 0.286: 3.5 times as fast


def memory(rows: int, columns: int) -> Outcome:
    """Peak memory of a fresh process beside the points, over 1 GB; one run. Linux only."""
    command = [sys.executable, "-c", FRESH, str(rows), str(columns)]
    extra, seconds = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return Outcome(
        "closest_pairs_memory",
        f"peak memory beside {rows:,} × {columns:,} points ÷ 1 GB",
        extra / GIGABYTE,
        1.0,
        details={
            "megabytes": extra / 10**6,
            "points_megabytes": 4 * rows * columns / 10**6,
            "seconds": seconds,
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7, help="runs of each side")
    parser.add_argument("--points", type=int, default=POINTS, help="pictures in the contest")
    parser.add_argument("--many", type=int, default=MANY, help="pictures in the run for memory")
    parser.add_argument("--columns", type=int, default=COLUMNS, help="values a picture has")
    arguments = parser.parse_args()
    where = machine()
    outcomes = contest(pictures(arguments.points, arguments.columns), max(2, arguments.repetitions))
    outcomes.append(memory(arguments.many, arguments.columns))
    print(Outcome.header(), *outcomes, sep="\n")
    for outcome in outcomes:
        print(f"    {outcome.name}: {json.dumps(outcome.details)}")
    if (arguments.points, arguments.many, arguments.columns) != (POINTS, MANY, COLUMNS):
        return  # a trial: nothing to publish
    RESULTS.mkdir(exist_ok=True)
    for outcome in outcomes:
        content = {**asdict(outcome), "holds": outcome.holds, "machine": where}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (RESULTS / f"{outcome.name}.json").write_text(text)


if __name__ == "__main__":
    main()
