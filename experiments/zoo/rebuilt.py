"""Is every rebuilt net the one that was trained? Its labels, and what it finds alike, on images of ImageNet.

python -m experiments.zoo.rebuilt --zoo DIR --images DIR
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from .._lab.result_files import measure
from .nets import NAMES, check, images, load

FILE = Path(__file__).parent / "results" / "rebuilt.json"


def run(zoo: Path | None = None, folder: Path | None = None, count: int = 60) -> None:
    if zoo is None or folder is None:
        print("Rebuilt nets are checked only where --zoo and --images say where they and the images are.")
        return
    x, y = images(folder, count)

    def one(name: str) -> dict[str, Any]:
        return check(load(name, zoo), x, y)

    measure(FILE, {"images": len(x)}, {name: partial(one, name) for name in NAMES})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    asked = parser.parse_args()
    run(asked.zoo, asked.images)


if __name__ == "__main__":
    main()
