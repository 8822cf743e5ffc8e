"""What does each layer of a public ImageNet net still know of its input? Curves with controls, and images.

    python -m experiments.retention.run --zoo DIR --images DIR

Of the convolutions of AlexNet: a survey by the fitted reverse and one by the transpose, on images that
nothing was fitted on; then some images by every way down. Each piece is written down once it is there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse._core import record_text, write_text
from obverse.shadow import Surveyor, survey
from obverse.shadow._beside import Beside
from obverse.shadow.results import FORMAT

from .._lab.places import RUNS
from ..zoo.nets import images, load

FOLDER = Path(__file__).parent / "results"
IMAGES = RUNS / "retention" / "images.safetensors"  # too large for the repository
NET = "alexnet-convolutions"
CALIBRATION, MEASURED, BATCH = 100, 100, 50
SHOWN = (3, 21, 57)  # of the measured images
LAYERS = {"features.0": "conv 1", "features.3": "conv 2", "features.6": "conv 3", "features.8": "conv 4",
          "features.10": "conv 5"}  # fmt: skip
SIDE = 112  # pixels of an image that is kept


def run(zoo: Path | None = None, folder: Path | None = None) -> None:
    if zoo is None or folder is None:
        print("Needs --zoo and --images, which say where the weights and the images are.")
        return
    torch.set_num_threads(1)
    net = load(NET, zoo)
    x, _ = images(folder, CALIBRATION + MEASURED)
    x = net.prepare(x)
    fitted_on, x = x[::2], x[1::2]
    FOLDER.mkdir(exist_ok=True)
    tools: dict[str, Surveyor] = {}
    for reverse in ("fitted", "transpose"):
        file = FOLDER / f"alexnet-{reverse}.json"
        if file.exists() and (reverse == "transpose" or IMAGES.exists()):
            continue
        tools[reverse] = Surveyor(net, fitted_on, reverse=reverse)
        if not file.exists():
            found = survey(
                tools[reverse], x, layers=list(LAYERS), model="AlexNet", weights=NET, data="ImageNet"
            )
            write_text(file, record_text(found, FORMAT))
            print(found, flush=True)
    if "fitted" in tools:
        keep_images(net.prepare.back, tools["fitted"], x[list(SHOWN)])


@torch.no_grad()
def keep_images(back: Any, tool: Surveyor, x: Tensor) -> None:
    """The images of every way down, as bytes, small."""
    from safetensors.torch import save_file

    def small(found: Tensor) -> Tensor:
        pixels = torch.nn.functional.adaptive_avg_pool2d(back(found).clamp(0, 1), SIDE)
        return (pixels * 255).round().to(torch.uint8).contiguous()

    kept = {"original": small(x)}
    beside = Beside(tool, seconds=10_000)
    for layer, found in beside.draw(x, list(LAYERS)):
        kept |= {f"{layer}|{way}": small(shown) for way, shown in found.items()}
    print(*beside.missing)
    IMAGES.parent.mkdir(parents=True, exist_ok=True)
    save_file(kept, IMAGES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    asked = parser.parse_args()
    run(asked.zoo, asked.images)


if __name__ == "__main__":
    main()
