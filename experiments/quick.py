"""Every training experiment in small, two at a time, and its figures from what that measured.

    python experiments/quick.py

Embedded digits, into runs/quick; the published results are not touched. Says how long each took.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).parent
RUNS = ("paper_curves", "better_shadow", "unlabelled", "few_labels", "label_noise")
PAGES = ("make_few_labels_page", "make_unlabelled_page")


def run(name: str) -> tuple[str, float, str]:
    """(name, seconds, what went wrong) of one script."""
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    wrong = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return name, perf_counter() - started, wrong


def main() -> None:
    shutil.rmtree(Path("runs") / "quick", ignore_errors=True)
    failed = False
    for names, workers in ((RUNS, 2), (PAGES, 1)):
        with ThreadPoolExecutor(workers) as pool:
            for name, seconds, wrong in pool.map(run, names):
                print(f"{name}: {seconds:.0f} s{' FAILED: ' + wrong if wrong else ''}", flush=True)
                failed = failed or bool(wrong)
    if failed:
        sys.exit(1)
    figures = sorted((Path("runs") / "quick").rglob("*.svg"))
    print(f"figures: {', '.join(map(str, figures))}")


if __name__ == "__main__":
    main()
