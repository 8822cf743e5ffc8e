"""All pages of the docs from their results, or all training experiments in small.

python -m experiments docs      (make docs: pages and figures from what is in results/, measuring nothing)
python -m experiments quick     (make experiments-quick: embedded digits, into runs/quick, two at a time)
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from time import perf_counter

from ._lab.places import EXPERIMENTS
from ._lab.quick_pages import QUICK

RUNS = ("paper", "better_shadow", "unlabelled", "few_labels", "label_noise")
PAGES = ("few_labels", "label_noise", "unlabelled", "better_shadow")


def docs() -> None:
    """Every page, in the order of the folders' names."""
    for file in sorted(EXPERIMENTS.glob("*/page.py")):
        name = file.parent.name
        import_module(f"{__package__}.{name}.page").page()
        print(f"{name}: written", flush=True)


def quick() -> None:
    """Every training experiment in small and the pages of that; says how long each took."""
    shutil.rmtree(QUICK, ignore_errors=True)
    failed = False
    for names, script, workers in ((RUNS, "run", 2), (PAGES, "page", 1)):
        with ThreadPoolExecutor(workers) as pool:
            for name, seconds, wrong in pool.map(in_process, names, [script] * len(names)):
                print(f"{name}: {seconds:.0f} s{' FAILED: ' + wrong if wrong else ''}", flush=True)
                failed = failed or bool(wrong)
    if failed:
        sys.exit(1)
    print(f"figures: {', '.join(map(str, sorted(QUICK.rglob('*.svg'))))}")


def in_process(name: str, script: str) -> tuple[str, float, str]:
    """(name, seconds, what went wrong) of `run(quick=True)` or `page(quick=True)`, on one thread."""
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"from {__package__}.{name}.{script} import {script}; {script}(quick=True)"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    wrong = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return name, perf_counter() - started, wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("docs", "quick"))
    {"docs": docs, "quick": quick}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
