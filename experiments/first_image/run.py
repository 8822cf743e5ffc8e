"""What each layer of a public AlexNet still contains of a photo, and the same net with its weights shuffled.

python -m experiments.first_image.run --zoo DIR --photos DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

from obverse import Shadow

from ..zoo.nets import Net, images, load

NET, SIDE, PHOTOS = "alexnet-convolutions", 224, 32
RESULTS = Path(__file__).parent / "results"


def photo() -> Tensor:
    """The photo that matplotlib brings along, its upper square: 1 × 3 × 224 × 224 in [0, 1]."""
    import numpy as np
    from matplotlib import cbook
    from PIL import Image

    with Image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as image:
        side = min(image.size)
        square = image.convert("RGB").crop((0, 0, side, side)).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.asarray(square).copy()).permute(2, 0, 1)[None].float() / 255


def shuffle(net: nn.Module) -> None:
    """The entries of each weight in random order."""
    generator = torch.Generator().manual_seed(0)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            flat = module.weight.data.flatten()
            order = torch.randperm(len(flat), generator=generator)
            module.weight.data = flat[order].view_as(module.weight)


def row(net: Net, x: Tensor, others: Tensor) -> Tensor:
    """The photo, and what comes down from each layer of it, side by side: 3 × H × W."""
    shadow = Shadow(net, reverse="fitted", input_shape=(3, SIDE, SIDE))
    shadow.calibrate(net.prepare(others))
    found = [net.prepare.back(shadow.of(net.prepare(x), name))[0].clamp(0, 1) for name in shadow.layers]
    return torch.cat([x[0], *found], 2)


def run(zoo: Path = Path("zoo"), photos: Path = Path("imagenet-sample")) -> None:
    from PIL import Image

    torch.set_num_threads(1)
    x, (others, _) = photo(), images(photos, PHOTOS)
    net = load(NET, zoo)
    rows = [row(net, x, others)]
    shuffle(net)
    rows.append(row(net, x, others))
    levels = (255 * torch.cat(rows, 1)).round().to(torch.uint8).permute(1, 2, 0).numpy()
    RESULTS.mkdir(exist_ok=True)
    Image.fromarray(levels).save(RESULTS / "layers.jpg", quality=92, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--zoo", type=Path, default=Path("zoo"), help="folder of nets, as get-zoo lays them out"
    )
    parser.add_argument("--photos", type=Path, default=Path("imagenet-sample"), help="folder of JPEG photos")
    given = parser.parse_args()
    run(given.zoo, given.photos)
