"""Is every rebuilt net that classifies the one that was trained? Its labels, on images of ImageNet.

python -m experiments.zoo.rebuilt --zoo DIR --images DIR
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from .._lab.result_files import measure
from .nets import accuracy, images, load

CLASSIFIERS = ("mobilenet-v2", "efficientnet-lite0", "resnet50-imagenet")
FILE = Path(__file__).parent / "results" / "rebuilt.json"


def run(zoo: Path | None = None, folder: Path | None = None, count: int = 60) -> None:
    if zoo is None or folder is None:
        print("Rebuilt nets are checked only where --zoo and --images say where they and the images are.")
        return
    x, y = images(folder, count)

    def one(name: str) -> dict[str, Any]:
        return {"accuracy": accuracy(load(name, zoo), x, y)}

    measure(FILE, {"images": len(x)}, {name: partial(one, name) for name in CLASSIFIERS})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    asked = parser.parse_args()
    run(asked.zoo, asked.images)


if __name__ == "__main__":
    main()
