"""Every claim of every paper at full settings, and its results published: half an hour.

    python -m experiments.claims.run       (or: make claims)

Sweeps live in runs/ and are resumed there. What is published is results/NAME/claims.json; `make docs` makes
pages with plots of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .._lab.places import ROOT, RUNS

RESULTS = Path(__file__).parent / "results"
SWEEPS = {
    "reversibility": ("alm.*",),
    "trained": ("alm.sec4.*", "--long"),
    "hypothesis": ("alm.hypothesis.*", "--long"),
    "identity": ("identity.*",),
    "ladder": ("ladder.*",),
    "generative": ("vae.*", "gan.*"),
    "tools": ("tools.*",),
}


def run() -> None:
    for name, chosen in SWEEPS.items():
        folder = RUNS / f"claims-{name}"
        command = [sys.executable, "-m", "obverse", "claims", "run", *chosen, "--out", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True)
        published = RESULTS / name
        published.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "claims.json", published / "claims.json")


if __name__ == "__main__":
    run()
