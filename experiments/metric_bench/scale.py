"""The nearest of 1,000,000 points of 512 features for each of 50,000: how long, in how much memory?

    python -m experiments.metric_bench.scale FOLDER [--blocks N]

FOLDER gets two files of normal points, 2.2 GB in all. Some blocks of 2,048 queries are timed, each in a
process of its own; what all 25 take follows from their number.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time
from typing import Any

import numpy as np

from obverse._core.files import write_text

from .._lab.machine import machine

FILE = Path(__file__).parent / "results" / "scale.json"
QUERIES, REFERENCE, WIDTH = 50_000, 1_000_000, 512
BLOCK = 2048
AT_ONCE = 20_000  # rows


def write_points(path: Path, rows: int) -> None:
    if path.exists():
        return
    random = np.random.default_rng(rows)
    made = np.lib.format.open_memmap(path.with_suffix(".part"), "w+", np.float32, (rows, WIDTH))
    for start in range(0, rows, AT_ONCE):
        part = made[start : start + AT_ONCE]
        part[:] = random.standard_normal(part.shape, dtype=np.float32)
    made.flush()
    path.with_suffix(".part").rename(path)


def timed(folder: Path, start: int) -> dict[str, float]:
    """One block, as a worker does it; memory that is its own, and with what is mapped, at the highest."""
    from obverse import __version__
    from obverse.diversity._files import Block, Search, points_of, search_block

    paths = folder / "queries.npy", folder / "reference.npy"
    search = Search(points_of(paths[0]), points_of(paths[1]), 1, BLOCK, __version__)
    own, over = [0.0], Event()

    def watch() -> None:
        while not over.wait(0.1):
            own[0] = max(own[0], memory("RssAnon"))

    watching = Thread(target=watch)
    watching.start()
    wall, work = perf_counter(), process_time()
    found = search_block(Block(search, str(paths[0]), str(paths[1]), start))
    assert isinstance(found, np.ndarray)
    took = perf_counter() - wall, process_time() - work
    over.set()
    watching.join()
    return {
        "seconds": took[0],
        "processor": took[1],
        "own": own[0],
        "peak": memory("VmHWM"),
        "nearest": float(found[0].mean()),
    }


def memory(name: str) -> float:
    """A line of /proc/self/status, in bytes."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status[name].split()[0]) * 1024


def worker(folder: Path, start: int, pipe: Any) -> None:
    pipe.send(timed(folder, start))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=1)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    write_points(asked.folder / "queries.npy", QUERIES)
    write_points(asked.folder / "reference.npy", REFERENCE)
    context = multiprocessing.get_context("spawn")
    blocks = []
    for number in range(asked.blocks):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=worker, args=(asked.folder, number * BLOCK, theirs))
        process.start()
        theirs.close()
        blocks.append({name: float(f"{value:.3g}") for name, value in ours.recv().items()})
        process.join()
    settings = {"queries": QUERIES, "reference": REFERENCE, "width": WIDTH, "block": BLOCK}
    made = {"settings": settings, "machine": machine(), "blocks": blocks}
    write_text(FILE, json.dumps(made) + "\n")
    print(json.dumps(made), file=sys.stderr)


if __name__ == "__main__":
    main()
