"""How far is the fitted reverse of a layer from the transpose? Layer by layer, net by net, seed by seed.

    python -m experiments.reverses.run --data-root DIR                  (DIR/mnist: the official files)
    python -m experiments.reverses.run --data-root DIR --seconds 300    (that long; call it again to go on)

A plain CNN of four convolutions and a plain net of ten layers, of MNIST: as they begin, trained, and trained
with shadows. From h of each layer one map is fitted by ridge regression to what the layer read, as the fitted
reverse does; it is compared with the transposed weights, entry by entry, as they are, then without the
profile of rows and columns, then bulk with bulk and signal with signal (decompose). Every net is written down
once it is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from obverse._core.random import BATCHES, SPLIT, derive_generator
from obverse.data import Dataset, load
from obverse.shadow import Shadow, ShadowLoss
from obverse.weights import decompose

from .._lab.result_files import measure

FOLDER = Path(__file__).parent / "results"
FILE = FOLDER / "reverses.json"
SEEDS = 3
TRAINED_ON, EPOCHS, BATCH, RATE = 2_500, 4, 100, 0.05
FITTED_ON = 512
STATES = ("untrained", "trained", "SHADOW-trained")


def cnn() -> nn.Sequential:
    """Four convolutions and a linear layer, wide enough to be taken apart but for the first."""
    sizes = ((1, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1))
    return nn.Sequential(*_convolutions(sizes), nn.Flatten(), nn.Linear(64 * 7 * 7, 10))


def ten_layers() -> nn.Sequential:
    """Eight convolutions and two linear layers."""
    sizes = ((1, 32, 2), *[(32, 32, 1)] * 3, (32, 32, 2), *[(32, 32, 1)] * 3)
    return nn.Sequential(
        *_convolutions(sizes), nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def _convolutions(sizes: tuple[tuple[int, int, int], ...]) -> list[nn.Module]:
    made: list[nn.Module] = []
    for before, after, stride in sizes:
        made += [nn.Conv2d(before, after, 3, stride, 1), nn.ReLU()]
    return made


NETS: dict[str, Callable[[], nn.Sequential]] = {"CNN": cnn, "ten layers": ten_layers}


def initial(name: str, seed: int) -> nn.Sequential:
    """He's normal weights, biases of 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = NETS[name]()
        for module in net:
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                module.bias.data.zero_()  # type: ignore[union-attr]
    return net


def train(net: nn.Sequential, data: Dataset, seed: int, weight: float) -> float:
    """SGD with momentum, one cycle; the test error. `weight` is that of the shadows, 0 for plain training."""
    rows = torch.randperm(len(data.train_y), generator=derive_generator(seed, SPLIT))[:TRAINED_ON]
    x, y = data.train_x[rows], data.train_y[rows]
    loss = ShadowLoss(net, weight, normalize=True)
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, epochs=EPOCHS, steps_per_epoch=TRAINED_ON // BATCH, cycle_momentum=False
    )
    net.train()
    for epoch in range(EPOCHS):
        order = torch.randperm(TRAINED_ON, generator=derive_generator(seed, BATCHES, epoch))
        for some in order.split(BATCH):
            optimizer.zero_grad()
            loss(x[some], y[some]).backward()
            optimizer.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        wrong = [net(part).argmax(1) != label for part, label in
                 zip(data.test_x.split(1000), data.test_y.split(1000), strict=True)]  # fmt: skip
    return float(torch.cat(wrong).double().mean())


@torch.no_grad()
def fitted_matrix(shadow: Shadow, layer: str) -> tuple[Tensor, float]:
    """The map that is fitted from h of a layer to what the layer read, shaped as its weight (out × in, for a
    convolution out × channels × window), and the share of its energy that lies where the weight has entries.

    Of a convolution from the answer to one unit in the middle: maps are the same everywhere.
    """
    way = shadow.fitted(layer)
    top = shadow.layer(layer)
    index = top.stage.inputs[0]
    while (
        index,
        -1,
    ) not in way.maps:  # what only passes on (a flatten) is fitted together with what it reads
        index = shadow.graph.stages[index].inputs[0]
    step, module = way.maps[index, -1], top.stage.module
    assert isinstance(module, nn.Conv2d | nn.Linear)
    if isinstance(module, nn.Linear):
        pulses = torch.eye(module.out_features)
        answer = (step([pulses]) - step([torch.zeros(1, module.out_features)])).flatten(1)
        return answer, 1.0
    height, width = shadow.graph.shapes(shadow.input_shape or ())[top.output.node][1:]
    place = (height // 2, width // 2)
    pulses = torch.zeros(module.out_channels, module.out_channels, height, width)
    pulses[torch.arange(module.out_channels), torch.arange(module.out_channels), place[0], place[1]] = 1
    answer = step([pulses]) - step([torch.zeros(1, module.out_channels, height, width)])
    top_left = [at * module.stride[d] - int(module.padding[d]) for d, at in enumerate(place)]
    window = answer[
        :,
        :,
        top_left[0] : top_left[0] + module.kernel_size[0],
        top_left[1] : top_left[1] + module.kernel_size[1],
    ]
    inside = float(window.square().sum() / answer.square().sum())
    return window.flatten(1), inside


def cosine(a: Tensor, b: Tensor) -> float | None:
    size = float(a.double().norm() * b.double().norm())
    return float((a.double() * b.double()).sum()) / size if size > 0 else None


def compared(weight: Tensor, fitted: Tensor) -> dict[str, Any]:
    """Cosines of two matrices, whole and part by part; each has its own parts, those of `decompose`."""
    found: dict[str, Any] = {"whole": cosine(weight, fitted), "entries": weight.numel()}
    parts = [decompose(one, generator=torch.Generator().manual_seed(0)) for one in (weight, fitted)]
    found["rank"], found["fitted_rank"] = (one.rank for one in parts)

    def even(matrix: Tensor, number: int) -> Tensor:
        """Without the profile; an empty row or column stays 0."""
        rows, columns = (1 / one.clamp(min=1e-30) * (one > 0) for one in
                         (parts[number].row_scales, parts[number].column_scales))  # fmt: skip
        return matrix.double() * rows[:, None] * columns

    matrices = (weight, fitted)
    found["profile_off"] = cosine(*(even(one, number) for number, one in enumerate(matrices)))
    found["bulk"] = cosine(*(even(parts[number].bulk(), number) for number in range(2)))
    ranks = min(found["rank"], found["fitted_rank"])
    found["signal"] = cosine(*(one.signal() for one in parts)) if ranks > 0 else None
    return found


def one_net(name: str, state: str, seed: int, root: str | None) -> dict[str, Any]:
    data = load("mnist", root)
    net = initial(name, seed)
    error = (
        None if state == "untrained" else train(net, data, seed, 1.0 if state == "SHADOW-trained" else 0.0)
    )
    net.eval()
    shadow = Shadow(net, reverse="fitted")
    rows = torch.randperm(len(data.train_y), generator=derive_generator(seed, SPLIT))[:FITTED_ON]
    shadow.calibrate(data.train_x[rows])
    layers = []
    for layer in shadow.maps:
        fitted, inside = fitted_matrix(shadow, layer)
        weight = net.get_parameter(f"{layer}.weight").detach().flatten(1)
        layers.append({"layer": layer, "inside": inside} | compared(weight, fitted))
    return {"test_error": error, "layers": layers}


def run(data_root: str | None = None, seconds: float = inf) -> None:
    until = perf_counter() + seconds
    settings = {
        "net": "32 and 64 channels",
        "trained_on": TRAINED_ON,
        "epochs": EPOCHS,
        "rate": RATE,
        "fitted_on": FITTED_ON,
    }
    for seed in range(SEEDS):
        for name in NETS:
            for state in STATES:
                if perf_counter() < until:
                    key = f"{name}|{state}|{seed}"
                    measure(FILE, settings, {key: partial(one_net, name, state, seed, data_root)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/")
    parser.add_argument("--seconds", type=float, default=inf, help="begin no net after so many")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
