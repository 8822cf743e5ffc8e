"""What do layers of public trained nets still contain? The fitted reverse and its controls, on photos.

    python -m experiments.architectures.trained --zoo DIR --images DIR --net mobilenet-v2 [--layers 8]

Fitted on 60 images of ImageNet, measured on 30 others, some layers of each net, evenly chosen from the lowest
to the highest. Each layer is written down when it is done, and none is measured twice.
"""

from __future__ import annotations

import argparse
import resource
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from obverse import Shadow
from obverse.shadow import relative_error

from .._lab.result_files import measure
from ..zoo.nets import NAMES, images, load

RESULTS = Path(__file__).parent / "results"
FIT, TEST, LAYERS = 60, 30, 8


def chosen(names: tuple[str, ...], count: int) -> list[str]:
    """So many names from the first to the last, evenly."""
    places = {round(at * (len(names) - 1) / max(1, count - 1)) for at in range(count)}
    return [names[place] for place in sorted(places)]


@torch.no_grad()
def one_layer(shadow: Shadow, x: Tensor, layer: str) -> dict[str, Any]:
    began = perf_counter()
    h = shadow.infer(x, layer)
    twin = shadow.of(x, layer)
    recovered = shadow.infer(twin, layer)
    centre = x.mean(0)
    cosine = torch.nn.functional.cosine_similarity((twin - centre).flatten(1), (x - centre).flatten(1))
    nearest = torch.cdist(recovered.flatten(1), h.flatten(1)).argmin(1)
    return {
        "layer": layer,
        "shape": list(h.shape[1:]),
        "error": relative_error(recovered, h),
        "unrelated": relative_error(h.roll(1, 0), h),
        "mean": relative_error(h.mean(0, keepdim=True).expand_as(h), h),
        "found": float((nearest == torch.arange(len(h))).double().mean()),
        "cosine": float(cosine.mean()),
        "inputs": shadow.fitted(layer).inputs,
        "seconds": perf_counter() - began,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def run(
    zoo: Path | None = None,
    folder: Path | None = None,
    name: str = "mobilenet-v2",
    layers: int = LAYERS,
    only: int | None = None,
) -> None:
    if zoo is None or folder is None:
        print("Trained nets are measured only where --zoo and --images say where they and the images are.")
        return
    net = load(name, zoo)
    x, _ = images(folder, FIT + TEST)
    x = net.prepare(x)
    tested = torch.arange(len(x)) % 3 == 2
    shadow = Shadow(net, input_shape=tuple(x.shape[1:]), reverse="fitted")
    names = chosen(shadow.layers, layers)
    fit, test = x[~tested], x[tested]
    shadow.calibrate(fit)
    settings = {"fit": len(fit), "test": len(test), "layers": layers}
    wanted = names if only is None else names[only : only + 1]
    entries = {one: partial(one_layer, shadow, test, one) for one in wanted}
    measure(RESULTS / "trained" / f"{name}.json", settings, entries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--zoo", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--net", choices=NAMES, default="mobilenet-v2")
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--only", type=int, help="the layer at this place alone")
    asked = parser.parse_args()
    run(asked.zoo, asked.images, asked.net, asked.layers, asked.only)


if __name__ == "__main__":
    main()
