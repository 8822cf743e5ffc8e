"""The nets of the experiment: trained here, kept in runs/, the same from the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from obverse._core.random import BATCHES, INITIAL, derive_generator, derive_seed
from obverse._core.tensors import load_tensors, load_weights, save_tensors
from obverse.data import Dataset

from .._lab.places import RUNS

FOLDER = RUNS / "compression"
BATCH = 100


def mlp(inputs: int, width: int) -> nn.Sequential:
    """Two hidden layers of one width."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(inputs, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def normed_mlp(inputs: int, width: int) -> nn.Sequential:
    """Four hidden layers of one width with batch norm."""
    layers: list[nn.Module] = [nn.Flatten()]
    for at in range(4):
        layers += [nn.Linear(inputs if at == 0 else width, width), nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def cnn() -> nn.Sequential:
    """Three convolutions with batch norm and pooling, two linear layers; for 28 × 28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1),
        nn.BatchNorm2d(48),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1),
        nn.BatchNorm2d(96),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(96 * 9, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


@dataclass(frozen=True)
class Plan:
    """One kind of net and how it is trained: SGD, momentum 0.9, a rate that falls linearly to 0."""

    name: str
    data: str
    make: Callable[[], nn.Sequential]
    points: int  # training points; the first ones
    epochs: int
    lr: float
    weight_decay: float
    test: int  # test points; the first ones
    seeds: tuple[int, ...]


PLANS = (
    Plan(
        "MLP with norm, digits", "digits", lambda: normed_mlp(64, 256), 1297, 40, 0.05, 1e-3, 500, (0, 1, 2)
    ),
    Plan("plain MLP, digits", "digits", lambda: mlp(64, 256), 1297, 40, 0.1, 3e-3, 500, (0, 1, 2)),
    Plan("MLP, MNIST", "mnist", lambda: mlp(784, 512), 30_000, 5, 0.1, 5e-4, 4000, (0, 1)),
    Plan("CNN, MNIST", "mnist", cnn, 12_000, 3, 0.05, 5e-4, 1000, (0,)),
)
QUICK = (
    Plan("MLP with norm, digits", "digits", lambda: normed_mlp(64, 128), 1000, 8, 0.05, 1e-3, 300, (0,)),
)


def trained(plan: Plan, seed: int, data: Dataset, folder: Path = FOLDER) -> nn.Sequential:
    """From its file if there is one."""
    file = folder / f"{plan.name.replace(', ', '-').replace(' ', '-')}-{seed}-{plan.epochs}.safetensors"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, INITIAL))
        net = plan.make()
    if file.is_file():
        load_weights(net, load_tensors(file), str(file))
        return net.eval()
    train(net, plan, seed, data)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_tensors(file, net.state_dict())
    return net.eval()


def train(net: nn.Module, plan: Plan, seed: int, data: Dataset) -> None:
    x, y = data.train_x[: plan.points], data.train_y[: plan.points]
    generator = derive_generator(seed, BATCHES)
    optimizer = torch.optim.SGD(net.parameters(), lr=plan.lr, momentum=0.9, weight_decay=plan.weight_decay)
    steps = plan.epochs * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    net.train()
    for _ in range(plan.epochs):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
