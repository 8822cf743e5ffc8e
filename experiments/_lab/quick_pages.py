"""Pages of quick runs: the same page from small results, in runs/quick and not in the docs."""

from __future__ import annotations

import argparse
from pathlib import Path

from obverse._core.files import write_text

from .places import DOCS

QUICK = Path("runs") / "quick"


def page_of(name: str, quick: bool) -> Path:
    """The page in the docs; of a quick run an empty one, as the words of the docs are about the full runs."""
    if not quick:
        return DOCS / f"{name}.md"
    QUICK.mkdir(parents=True, exist_ok=True)
    write_text(QUICK / f"{name}.md", f"# {name}, quick run\n\n<!-- results -->\n<!-- end of results -->\n")
    return QUICK / f"{name}.md"


def asked_for_quick(about: str | None) -> bool:
    """Whether the command line says --quick."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="from and into the folder of the --quick runs")
    return bool(parser.parse_args().quick)
