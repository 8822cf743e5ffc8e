"""Which metric finds which fault, how often, and how often it blames real data?

    python -m experiments.metric_bench.bench SPACE [--data-root DIR] [--seconds N]

SPACE: digits, mnist-features or mnist. Every draw is one line of runs/metric_bench/SPACE.jsonl, written as it
is done; a run stops after N seconds, and the next one resumes: draws of real data first, then faults, some
draws of each before more of any. What is counted of them is in results/SPACE.json.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from obverse._core.files import write_text

from .._lab.places import RUNS
from .faults import FAULTS, make, strengths
from .measures import GROUPS, draw_of, measured
from .spaces import Space, deal, open_space
from .summary import summary

RESULTS = Path(__file__).parent / "results"
DRAWN = RUNS / "metric_bench"
NULLS = 500
DRAWS = {"digits": 40, "mnist-features": 20, "mnist": 10}
ROUND = 5  # draws of every fault before more of any
DIGITS = 4  # significant ones that are kept


def one(space: Space, fault: str, strength: float, number: int, groups: Collection[str]) -> dict[str, Any]:
    """These metrics of one generator beside its training set and held-out data, all dealt anew."""
    seed = zlib.crc32(f"{space.name} {fault} {strength} {number}".encode())
    generator = torch.Generator().manual_seed(seed)
    dealt = deal(space, generator)
    images = make(space, fault, strength, dealt, generator)
    found, seconds = measured(draw_of(space, images, dealt, generator), groups)
    return {
        "fault": fault,
        "strength": strength,
        "draw": number,
        "groups": list(groups),
        "found": {name: [rounded(value), rounded(p)] for name, (value, p) in found.items()},
        "seconds": {name: rounded(value) for name, value in seconds.items()},
    }


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def asked_for(space: Space, nulls: int) -> Iterator[tuple[str, float, int]]:
    """In an order in which a part is of use: some real data, some of every fault, and so on."""
    draws = DRAWS[space.name]
    yield from (("null", 0.0, number) for number in range(nulls // 2))
    for start in range(0, draws, ROUND):
        for fault in FAULTS:
            if fault != "null":
                for strength in strengths(space, fault):
                    for number in range(start, min(start + ROUND, draws)):
                        yield fault, strength, number
        if start == ROUND:
            yield from (("null", 0.0, number) for number in range(nulls // 2, nulls))
    yield from (("null", 0.0, number) for number in range(nulls // 2, nulls))


def run(space: Space, folder: Path, seconds: float, nulls: int = NULLS) -> int:
    """What is not in the file yet, until the time is over; how many draws are left."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{space.name}.jsonl"
    known = {key_of(line): set(line["groups"]) for line in lines(file)}
    todo: list[tuple[str, float, int, list[str]]] = []
    for cell in dict.fromkeys(asked_for(space, nulls)):
        groups = [group for group in GROUPS if group not in known.get(cell, ())]
        if groups:
            todo.append((*cell, groups))
    start = perf_counter()
    with file.open("a", encoding="utf-8") as written:
        for place, (fault, strength, number, groups) in enumerate(todo):
            if perf_counter() - start > seconds:
                return len(todo) - place
            written.write(
                json.dumps(one(space, fault, strength, number, groups), separators=(",", ":")) + "\n"
            )
            written.flush()
    return 0


def key_of(line: dict[str, Any]) -> tuple[str, float, int]:
    return line["fault"], line["strength"], line["draw"]


def lines(file: Path) -> list[dict[str, Any]]:
    """One for each draw: metrics that were measured later are put together with the others."""
    if not file.exists():
        return []
    found: dict[tuple[str, float, int], dict[str, Any]] = {}
    for text in file.read_text(encoding="utf-8").splitlines():
        if not text.endswith("}"):
            continue  # cut off in the middle
        line = json.loads(text)
        before = found.setdefault(key_of(line), line)
        if before is not line:
            for name in ("found", "seconds"):
                before[name].update(line[name])
            before["groups"] += line["groups"]
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("space", choices=tuple(DRAWS))
    parser.add_argument("--data-root")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--drawn", type=Path, default=DRAWN, help="where single draws are kept")
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    space = open_space(asked.space, asked.data_root)
    left = run(space, asked.drawn, asked.seconds)
    asked.out.mkdir(parents=True, exist_ok=True)
    counted = summary(space.name, space.size, lines(asked.drawn / f"{space.name}.jsonl"))
    write_text(asked.out / f"{space.name}.json", json.dumps(counted, allow_nan=False) + "\n")
    print(f"{asked.space}: {left} draws left", flush=True)


if __name__ == "__main__":
    main()
