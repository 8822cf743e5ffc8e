"""`make fuzz`: all formats, on all processors; figures in benchmarks/results/fuzz.json.

Exit code 1 if a case failed, or if there was no time for all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from measure import RESULTS, machine

from .judge import MEMORY, PASSED, SECONDS
from .worker import FORMATS

Job = dict[str, Any]
BATCH = 12  # cases that share a process, unless one of them fails


def work(jobs: queue.SimpleQueue[Job], done: list[Job], until: float) -> None:
    """One worker process, until there is nothing left to do or no time."""
    command = [sys.executable, "-m", "fuzz.worker"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while time.monotonic() < until:
            batch = taken(jobs)
            if not batch:
                break
            process.stdin.write(json.dumps(batch) + "\n")
            process.stdin.flush()
            for answer in json.loads(process.stdout.readline()):
                done.append(answer)
                if answer["outcome"] not in PASSED:
                    case = f"{answer['format']} {answer['seed']} {answer['number']}"
                    print(f"{case}: {answer['outcome']}: {ascii(answer['detail'])[:400]}", flush=True)
        process.stdin.close()


def taken(jobs: queue.SimpleQueue[Job]) -> list[Job]:
    """The next few."""
    found: list[Job] = []
    with suppress(queue.Empty):
        while len(found) < BATCH:
            found.append(jobs.get_nowait())
    return found


def figures(done: list[Job], seed: int, seconds: float) -> dict[str, Any]:
    """Counts by outcome, of all and of each format; the worst of time and memory."""

    def counted(some: list[Job]) -> dict[str, Any]:
        counts = Counter(one["outcome"] for one in some)
        failed = {kind: counts[kind] for kind in counts if kind not in PASSED}
        return {
            "cases": len(some),
            "refused": counts["refused"],
            "accepted": counts["accepted"],
            "failed": failed,
            "most_processor_seconds": max((one["processor"] for one in some), default=0),
            "most_megabytes": max((one["megabytes"] for one in some), default=0),
        }

    return {
        "name": "fuzz",
        "seed": seed,
        **counted(done),
        "seconds": round(seconds),
        "bounds_of_a_case": {"processor_seconds": SECONDS, "megabytes": MEMORY},
        "formats": {kind: counted([one for one in done if one["format"] == kind]) for kind in FORMATS},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other cases")
    parser.add_argument("--share", type=float, default=1.0, help="so much of the usual number of cases")
    parser.add_argument("--only", choices=FORMATS, help="one format")
    parser.add_argument("--case", type=int, help="one case of it, by its number")
    parser.add_argument("--minutes", type=float, default=15.0, help="the most that all of it may take")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    counts = {kind: range(max(1, int(count * given.share))) for kind, (count, _) in FORMATS.items()}
    if given.only:
        counts = {given.only: counts[given.only] if given.case is None else range(given.case, given.case + 1)}
    # In turn, so that a run that ends early has seen something of every format.
    order = sorted(
        (number / len(numbers), kind, number) for kind, numbers in counts.items() for number in numbers
    )
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for _, kind, number in order:
        jobs.put({"format": kind, "seed": given.seed, "number": number})
    where, begin, done = machine(), time.monotonic(), list[Job]()
    until = begin + 60 * given.minutes
    threads = [threading.Thread(target=work, args=(jobs, done, until)) for _ in range(given.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = figures(done, given.seed, time.monotonic() - begin)
    print(
        f"{found['cases']:,} of {len(order):,} cases: {found['refused']:,} refused, "
        f"{found['accepted']:,} accepted, failed: {found['failed'] or 'none'}"
    )
    if given.case is not None:
        print(json.dumps(done, indent=2))
    elif not given.only and given.share == 1 and len(done) == len(order):
        (RESULTS / "fuzz.json").write_text(
            json.dumps(found | {"machine": where}, indent=2, ensure_ascii=False) + "\n"
        )
    return int(bool(found["failed"]) or len(done) < len(order))


if __name__ == "__main__":
    sys.exit(main())
