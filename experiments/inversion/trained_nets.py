"""The four nets that shadows of images are measured on: a CNN and a residual net, on MNIST and on CIFAR-10.

    python -m experiments.inversion.trained_nets --data-root DIR   (DIR/mnist and DIR/cifar10: official files)

SGD with Nesterov momentum, batch 100, a step size that rises and falls once (one cycle), pixels in [0, 1], no
augmentation. Weights stay in runs/ and are not part of the repository: the seed brings the same nets back, to
the bit on the same machine. `load_trained` trains what is absent: two to ten minutes a net on one core. Every
epoch is kept: with --seconds training stops after the epoch in which these are over, and goes on when it is
called again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse._core.files import replace_atomically
from obverse._core.random import BATCHES, INITIAL, derive_generator
from obverse.data import Dataset, load
from obverse.nets import small_cnn, small_resnet

from .._lab.places import RUNS

WEIGHTS = RUNS / "trained-nets"
BATCH = 100
SEED = 0


@dataclass(frozen=True)
class Recipe:
    """A net, its data, how it is trained, and the layers looked at: early, middle, highest hidden."""

    title: str
    make: Callable[..., nn.Sequential]
    data: str
    widths: tuple[int, ...]
    epochs: int
    rate: float
    decay: float
    layers: tuple[str, str, str]

    def build(self, data: Dataset) -> nn.Sequential:
        return self.make(
            data.input_shape, len(data.classes), self.widths, generator=derive_generator(SEED, INITIAL)
        )

    @property
    def file(self) -> Path:
        """Named by all that decides what the trained net is."""
        widths = "-".join(map(str, self.widths))
        settings = f"{self.epochs}-{self.rate:g}-{self.decay:g}-{SEED}"
        return WEIGHTS / f"{self.make.__name__}-{widths}-{self.data}-{settings}.safetensors"

    @property
    def unfinished(self) -> Path:
        return self.file.with_suffix(".epochs.pt")


CNN_LAYERS = ("conv1", "conv2", "conv3")
RESNET_LAYERS = ("stem.0", "stage2.0", "stage3.0")
RECIPES = {
    "cnn-mnist": Recipe("CNN on MNIST", small_cnn, "mnist", (16, 32, 64), 4, 0.1, 1e-4, CNN_LAYERS),
    "resnet-mnist": Recipe(
        "residual net on MNIST", small_resnet, "mnist", (16, 32, 64), 2, 0.2, 5e-4, RESNET_LAYERS
    ),
    "cnn-cifar10": Recipe("CNN on CIFAR-10", small_cnn, "cifar10", (32, 64, 128), 8, 0.1, 5e-4, CNN_LAYERS),
    "resnet-cifar10": Recipe(
        "residual net on CIFAR-10", small_resnet, "cifar10", (16, 32, 64), 6, 0.2, 5e-4, RESNET_LAYERS
    ),
}


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained net in evaluation mode, without gradients to its weights, and the data it was trained on."""

    name: str
    recipe: Recipe
    net: nn.Sequential
    data: Dataset


def load_trained(name: str, data_root: str | None = None, seconds: float = inf) -> Trained | None:
    """One of RECIPES by its name; trained now where no earlier run has left it, None if time was short."""
    from safetensors.torch import load_file, save_file

    recipe = RECIPES[name]
    data = load(recipe.data, data_root)
    net = recipe.build(data)
    if recipe.file.exists():
        net.load_state_dict(load_file(recipe.file))
    else:
        started = time.perf_counter()
        if not train(net, data, recipe, started + seconds):
            return None
        print(f"{name}: trained in {time.perf_counter() - started:.0f} s", flush=True)
        recipe.file.parent.mkdir(parents=True, exist_ok=True)
        tensors = {key: tensor.contiguous() for key, tensor in net.state_dict().items()}
        replace_atomically(recipe.file, lambda place: save_file(tensors, place))
        recipe.unfinished.unlink(missing_ok=True)
    return Trained(name, recipe, net.eval().requires_grad_(False), data)


def train(net: nn.Module, data: Dataset, recipe: Recipe, until: float = inf) -> bool:
    """Whether it came to the end; else what is done is kept for the next time."""
    # faster on a CPU; what is saved has no memory format
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    batches = -(-len(data.train_x) // BATCH)
    optimizer = torch.optim.SGD(
        net.parameters(), recipe.rate, momentum=0.9, nesterov=True, weight_decay=recipe.decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, epochs=recipe.epochs, steps_per_epoch=batches, cycle_momentum=False
    )
    parts: dict[str, Any] = {"net": net, "optimizer": optimizer, "schedule": schedule}
    first = 0
    if recipe.unfinished.exists():
        kept = torch.load(recipe.unfinished, weights_only=True)
        first = kept["epochs"]
        for part, one in parts.items():
            one.load_state_dict(kept[part])
    for epoch in range(first, recipe.epochs):
        if time.perf_counter() > until:
            return False
        net.train()
        order = torch.randperm(len(data.train_x), generator=derive_generator(SEED, BATCHES, epoch))
        for rows in order.split(BATCH):
            loss = F.cross_entropy(net(data.train_x[rows]), data.train_y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        error = test_error(net, data.test_x, data.test_y)
        print(f"  epoch {epoch + 1}: loss {loss.item():.3f}, test error {100 * error:.2f} %", flush=True)
        kept = {part: one.state_dict() for part, one in parts.items()} | {"epochs": epoch + 1}
        recipe.unfinished.parent.mkdir(parents=True, exist_ok=True)
        replace_atomically(recipe.unfinished, partial(torch.save, kept))
    net.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return True


@torch.no_grad()
def test_error(net: nn.Module, x: Tensor, y: Tensor) -> float:
    net.eval()
    labels = torch.cat([net(rows).argmax(1) for rows in x.split(1000)])
    return float((labels != y).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"out of {', '.join(RECIPES)}; all of them by default")
    parser.add_argument("--data-root", help="folder that holds mnist/ and cifar10/")
    parser.add_argument("--seconds", type=float, default=inf, help="begin no epoch after so many")
    arguments = parser.parse_args()
    until = time.perf_counter() + arguments.seconds
    for name in arguments.names or RECIPES:
        print(name, flush=True)
        found = load_trained(name, arguments.data_root, until - time.perf_counter())
        if found is None:
            print("  time is up; call again to go on", flush=True)
            return
        error = test_error(found.net, found.data.test_x, found.data.test_y)
        print(f"  test error {100 * error:.2f} %", flush=True)


if __name__ == "__main__":
    main()
