"""How many samples does it take to see 1 % copies, 10⁴ images in place of 10⁶, 5 % of the modes missing?

    python -m experiments.metric_bench.plan [--data-root DIR] [--seconds N]

Every test at the strictest level of Holm's correction over seven of them at 5 %: it is found whatever the
other tests say. Counts of draws in which the fault is found are in results/plan.json, written as they come;
`obverse diversity --plan` prints the least size with 95 % of them.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import torch

from obverse.diversity import birthday_test, discrepancy, nearest, quality_test
from obverse.diversity._memorization import NEAR, sides

from .._lab.result_files import measure
from .spaces import Space, open_space

FILE = Path(__file__).parent / "results" / "plan.json"
TESTS = 7
ALPHA = 0.05 / TESTS
DRAWS = 40
DATA = 10_000  # training images, and held-out ones, beside which copies are looked for
COPIES = (500, 1000, 2000, 4000)
MODES = (500, 1000, 2000, 4000)
SUPPORT = (100, 150, 200, 250, 300)
FEW, MANY = 10_000, 1_000_000
BIRTHDAYS = 2000
SHUFFLES = 999


def generator_of(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def copies(space: Space, name: str, size: int) -> dict[str, int]:
    """1 % of the samples are training images."""
    generator, found = generator_of(name), 0
    for _ in range(DRAWS):
        order = torch.randperm(len(space.points), generator=generator)
        training, held_out = (space.points[order[start : start + DATA]] for start in (0, DATA))
        samples = space.points[order[2 * DATA : 2 * DATA + size]].clone()
        samples[: size // 100] = training[: size // 100]
        neighbours = [nearest(samples, one, NEAR) for one in (training, held_out)]
        p = sides(neighbours[0], neighbours[1], (DATA, DATA), SHUFFLES, generator).p
        found += p <= ALPHA
    return {"draws": DRAWS, "nearest to training": found}


def modes(space: Space, name: str, size: int) -> dict[str, int]:
    """5 of 100 modes are missing; beside two halves of as much held-out data."""
    generator = generator_of(name)
    found = {"recall": 0, "coverage": 0, "two-sample test": 0}
    for _ in range(DRAWS):
        order = torch.randperm(len(space.points), generator=generator)
        reference, other = (space.points[order[start : start + size]] for start in (0, size))
        gone = torch.randperm(int(space.modes.max()) + 1, generator=generator)
        rest = order[2 * size :]
        kept = rest[~torch.isin(space.modes[rest], gone[: len(gone) // 20])]
        samples = space.points[kept[:size]]
        tests = quality_test(samples, other, reference, generator=generator)
        for test in ("recall", "coverage"):
            found[test] += getattr(tests, test).p <= ALPHA
        real = torch.cat([reference, other])
        found["two-sample test"] += discrepancy(samples, real, generator=generator).p <= ALPHA
    return {"draws": DRAWS, **found}


def support(name: str, size: int, images: int) -> dict[str, int]:
    """One batch of equally likely images: is the effective support bounded below a million?"""
    generator, found = generator_of(name), 0

    def sampler(count: int, source: torch.Generator) -> torch.Tensor:
        return torch.randint(images, (count, 1), generator=source).double()

    for _ in range(BIRTHDAYS):
        bound = birthday_test(sampler, size, 1, generator=generator, show=1).support_bound
        found += bound is not None and bound < MANY
    return {"draws": BIRTHDAYS, "birthday test": found}


def entries(open_it: Callable[[], Space]) -> dict[str, Callable[[], dict[str, int]]]:
    made: dict[str, Callable[[], dict[str, int]]] = {}
    for size in SUPPORT:
        for images in (FEW, MANY):
            name = f"support {images}, {size}"
            made[name] = partial(support, name, size, images)
    for size in COPIES:
        name = f"copies, {size}"
        made[name] = lambda name=name, size=size: copies(open_it(), name, size)  # type: ignore[misc]
    for size in MODES:
        name = f"modes, {size}"
        made[name] = lambda name=name, size=size: modes(open_it(), name, size)  # type: ignore[misc]
    return made


def run(root: str | None, seconds: float, file: Path = FILE) -> None:
    """Until the time is over: an entry that has begun is finished."""
    start = perf_counter()
    opened: list[Space] = []

    def open_it() -> Space:
        if not opened:
            opened.append(open_space("mnist-features", root))
        return opened[0]

    def in_time(entry: Callable[[], dict[str, int]]) -> dict[str, int]:
        if perf_counter() - start > seconds:
            raise SystemExit("the time is over: run it again")
        return entry()

    settings = {"tests": TESTS, "draws": DRAWS, "data": DATA, "birthdays": BIRTHDAYS}
    measure(file, settings, {name: partial(in_time, one) for name, one in entries(open_it).items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data-root")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    asked = parser.parse_args()
    run(asked.data_root, asked.seconds)


if __name__ == "__main__":
    main()
