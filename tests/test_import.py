"""`import obverse` stays light: heavy packages are imported where they are used."""

import subprocess
import sys

import pytest

HEAVY = ("scipy.stats", "sklearn", "matplotlib", "typer")


@pytest.mark.parametrize("module", ["obverse", "obverse.shadow"])
def test_import_loads_no_heavy_package(module):
    # A fresh process: in this one other tests may have imported anything.
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
