"""The same question of a public net: MobileNetV2 trained on ImageNet, on a sample of its images.

    python -m experiments.compression.zoo --weights mobilenet_v2.pth --images DIR

The file is torchvision's; DIR holds images of 224 × 224 whose names begin with the number of their class.
90 of them are for testing, 45 others, without labels, for the statistics of batch norms. All layers are
treated at once: one at a time would take hours on a core.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from obverse.weights import open_weights
from obverse.weights._ablation.ablate import Bench, _taken_apart
from obverse.weights._ablation.scores import evaluating, test_of
from obverse.weights._ablation.treatments import TREATMENTS
from obverse.weights._readers.module import weights_of
from obverse.weights.results import ALPHA

from .._lab.result_files import measure
from .run import RESULTS, compared

FILE = RESULTS / "mobilenet-v2.json"
IMAGES, UNLABELLED = 90, 45  # for testing, and for batch norms
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def conv(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU6())


class Block(nn.Module):
    """Widen, filter each channel, narrow; with a shortcut where the shape stays."""

    def __init__(self, inputs: int, outputs: int, stride: int, widen: int) -> None:
        super().__init__()
        inner = inputs * widen
        layers: list[nn.Module] = [] if widen == 1 else [conv(inputs, inner, 1)]
        layers += [conv(inner, inner, 3, stride, inner), nn.Conv2d(inner, outputs, 1, bias=False)]
        self.conv = nn.Sequential(*layers, nn.BatchNorm2d(outputs))
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.conv(x)
        return x + found if self.shortcut else found


class MobileNetV2(nn.Module):
    """With the names of torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv(3, 32, 3, 2)]
        inputs = 32
        for widen, outputs, count, stride in STAGES:
            for at in range(count):
                layers.append(Block(inputs, outputs, stride if at == 0 else 1, widen))
                inputs = outputs
        self.features = nn.Sequential(*layers, conv(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.classifier(self.features(x).mean((2, 3)))
        return found


def load(weights: Path) -> MobileNetV2:
    net = MobileNetV2()
    net.load_state_dict(torch.load(weights, weights_only=True))
    assert len(open_weights(weights)) == len(weights_of(net))
    return net.eval()


def images(folder: Path) -> tuple[Tensor, Tensor, Tensor]:
    """(test inputs, their classes, inputs without labels), evenly over the classes."""
    import numpy as np
    from PIL import Image

    files = sorted(folder.glob("*.jpg"))
    count = IMAGES + UNLABELLED
    chosen = [files[at * len(files) // count] for at in range(count)]
    x = torch.stack([torch.from_numpy(np.array(Image.open(file).convert("RGB"))) for file in chosen])
    scaled = x.permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(one).reshape(3, 1, 1) for one in (MEAN, STD))
    y = torch.tensor([int(file.name.partition("_")[0]) for file in chosen])
    scaled = (scaled - mean) / std
    labelled = torch.arange(count) % 3 != 2
    return scaled[labelled], y[labelled], scaled[~labelled]


def at_once(net: nn.Module, x: Tensor, y: Tensor, unlabelled: Tensor) -> dict[str, Any]:
    """All layers at once under every treatment."""
    with evaluating(net):
        test = test_of(net, x, y, None, 60)
        taken = [_taken_apart(net, weight, ALPHA, 0) for weight in weights_of(net)]
        able = [one for one in taken if one.parts.grade != "cannot tell"]
        bench = Bench(net, test, unlabelled, 0)
        effects = [effect.to_dict() for effect in bench.effects(able, TREATMENTS)]
    layers = [
        {"name": one.weight.name, "shape": list(one.parts.matrix.shape), "rank": one.parts.rank}
        for one in able
    ]
    return {"untreated": float(test.untreated.mean()), "together": effects, "layers": layers}


def run(weights: Path | None = None, folder: Path | None = None) -> None:
    if weights is None or folder is None:
        print("MobileNetV2 is measured only where --weights and --images say where it is.")
        return
    net, (x, y, unlabelled) = load(weights), images(folder)
    measure(
        FILE,
        {"images": IMAGES, "unlabelled": UNLABELLED},
        {
            "need|0": partial(at_once, net, x, y, unlabelled),
            "sizes|0": partial(compared, net, x, y, unlabelled, curves=False),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    asked = parser.parse_args()
    run(asked.weights, asked.images)


if __name__ == "__main__":
    main()
