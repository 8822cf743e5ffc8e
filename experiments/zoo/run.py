"""Is the random-like nets hypothesis true of networks that people use? Public nets, audited layer by layer.

    python -m experiments.zoo.run                       (gets 1.2 GB; or: make zoo)
    python -m experiments.zoo.run crepe magika          (some of them)
    python -m experiments.zoo.run --folder DIR          (where the files are, or shall be)
    python -m experiments.zoo.run --seconds 300         (stop after so long; the same command goes on)

manifest.json says which packages of public registries have the nets. Their files are read as data: nothing of
theirs is run. Each layer is written down when it is done, so that an interrupted run is resumed; a net whose
package is gone or changed is named, and the rest goes on. Results in results/nets; `make docs` makes pages.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import torch

from obverse._core import Interrupted, ObverseError, write_text
from obverse.weights.results import read_audit

from .._lab.places import RUNS
from . import figure_four, precision
from .fetch import fetch
from .layers import SAMPLES, SEED, Clock, audited, table
from .manifest import Net, named

RESULTS = Path(__file__).parent / "results"
FILES, PLACE = RUNS / "zoo" / "files", RUNS / "zoo"
UNFINISHED = 3


def measure(net: Net, files: Path, place: Path, results: Path, clock: Clock, jobs: int) -> bool:
    """Get it, audit it, write its table; False where the time was over."""
    result = results / "nets" / f"{net.name}.json"
    if result.exists():
        return True
    if clock.over:
        return False
    began = perf_counter()
    file = fetch(net, files) / net.model
    place = place / net.name
    place.mkdir(parents=True, exist_ok=True)
    done = place / "audit.json"
    try:
        found = read_audit(done) if done.exists() else audited(file, net.name, place, clock, jobs)
    except Interrupted as error:
        if not clock.over:
            raise
        print(f"{net.name}: {error}", flush=True)
        return False
    rows = table(found, file, place, clock)
    if rows is None:
        return False
    result.parent.mkdir(parents=True, exist_ok=True)
    settings = {"seed": SEED, "samples": SAMPLES, "alpha": found.thresholds["level"]}
    record = {"net": net.name, "summary": found.summary, "settings": settings, "layers": rows}
    write_text(result, json.dumps(record, allow_nan=False) + "\n")
    print(f"{net.name}: {found.summary}; {perf_counter() - began:.0f} s", flush=True)
    return True


def compare(folder: Path, out: Path, clock: Clock, wrong: Sequence[str]) -> bool:
    """Figure 4 and what rounding does, of nets that are there; False where the time was over."""
    for step in (figure_four, precision):
        if not set(step.NETS) & set(wrong) and not step.run(folder, out, clock):
            return False
    return True


def run(
    names: Sequence[str] = (),
    folder: Path = FILES,
    place: Path = PLACE,
    out: Path = RESULTS,
    seconds: float = float("inf"),
    jobs: int = 1,
) -> None:
    torch.set_num_threads(1)
    clock, wrong, left = Clock(seconds), [], 0
    nets = named(list(names))
    for net in nets:
        try:
            left += not measure(net, folder, place, out, clock, jobs)
        except ObverseError as error:
            wrong.append(net.name)
            print(f"{net.name}: {error}", flush=True)
    if not names and not left:
        left += not compare(folder, out, clock, wrong)
    done = len(nets) - left - len(wrong)
    print(f"{done} of {len(nets)} nets are done", flush=True)
    if left:
        print("the time is over, and something is left: the same command goes on", flush=True)
        sys.exit(UNFINISHED)
    if wrong:
        print(f"left out: {', '.join(wrong)}", flush=True)
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of nets, as in manifest.json [all]")
    parser.add_argument("--folder", type=Path, default=FILES, help="of the nets' files")
    parser.add_argument("--place", type=Path, default=PLACE, help="of what is not finished")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no layer after so long")
    parser.add_argument("--jobs", type=int, default=1, help="processes that audit a layer each")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
