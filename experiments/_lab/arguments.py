"""The command line of experiments that only ask where their results shall go."""

from __future__ import annotations

import argparse
from pathlib import Path


def folder_asked_for(about: str | None, usual: Path) -> Path:
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=usual, help="folder for the results")
    folder: Path = parser.parse_args().out
    return folder
