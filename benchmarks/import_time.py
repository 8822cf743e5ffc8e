"""What `import obverse` costs over `import torch`, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys

from measure import Outcome, alternate, compare, publish


def import_ratio(repetitions: int) -> Outcome:
    """import obverse ÷ import torch, whole processes."""

    def run(module: str) -> None:
        subprocess.run([sys.executable, "-c", f"import torch, {module}"], check=True)

    sides = {
        "torch and obverse": lambda: run("obverse"),
        "torch": lambda: run("torch"),
    }
    seconds = alternate(sides, max(7, repetitions))
    return compare("import_time", "import obverse ÷ import torch", 1.20, seconds)


if __name__ == "__main__":
    publish(import_ratio, repetitions=11)
