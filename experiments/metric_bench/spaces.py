"""Real images and what they are compared by: pixels, or features of a net that is trained here on others.

A draw deals disjoint sets from the images that the net has not seen: a training set, two halves of held-out
data, and what generators with a known fault are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from obverse.data import load

APART = 10_000  # images that the net is trained on, and nothing else
WIDTH = 32
STEPS = 1500
MODES = 10  # a class, by k-means


@dataclass(frozen=True, eq=False)
class Space:
    """Images in one order for all draws, with what belongs to each."""

    name: str
    images: Tensor
    labels: Tensor
    modes: Tensor  # 10 a class, numbered through
    points: Tensor
    features: Callable[[Tensor], Tensor]  # images → points
    scores: Callable[[Tensor], Tensor] | None  # points → class scores
    size: int  # of every set of a draw


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows of a space: what the generator was trained on, two halves of held-out data, and all the rest."""

    training: Tensor
    reference: Tensor
    other: Tensor
    rest: Tensor


def deal(space: Space, generator: torch.Generator) -> Dealt:
    order = torch.randperm(len(space.images), generator=generator)
    one, two, three = (order[start * space.size : (start + 1) * space.size] for start in range(3))
    return Dealt(one, two, three, order[3 * space.size :])


def open_space(name: str, root: str | None = None, size: int | None = None) -> Space:
    """`digits` and `mnist` by pixels; `mnist-features` by the last hidden layer of a small net."""
    data = load(name.split("-")[0], root)
    images = torch.cat([data.train_x, data.test_x])
    labels = torch.cat([data.train_y, data.test_y])
    scores = None
    if name.endswith("-features"):
        apart = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
        body, head = trained(images[apart[:APART]], labels[apart[:APART]])
        images, labels = images[apart[APART:]], labels[apart[APART:]]
        scores = without_gradients(head)
        features = without_gradients(body)
    else:
        features = flattened
    points = torch.cat([features(part) for part in images.split(2000)])
    usual = 300 if name == "digits" else 1000
    return Space(name, images, labels, modes_of(points, labels), points, features, scores, size or usual)


def flattened(images: Tensor) -> Tensor:
    return images.flatten(1)


def without_gradients(net: nn.Module) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        with torch.no_grad():
            found: Tensor = net(x)
        return found

    return run


def trained(images: Tensor, labels: Tensor) -> tuple[nn.Module, nn.Module]:
    """A net with two hidden layers; its second one, before the rectifier, is what images are compared by."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inputs = images[0].numel()
        body = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, WIDTH))
        head = nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, int(labels.max()) + 1))
        optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3, weight_decay=1e-4)
        for _ in range(STEPS):
            rows = torch.randint(len(images), (128,))
            loss = nn.functional.cross_entropy(head(body(images[rows])), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return body.requires_grad_(False), head.requires_grad_(False)


def modes_of(points: Tensor, labels: Tensor) -> Tensor:
    """Ten modes of each class: k-means of 1,000 of its points by a few steps, the others to the nearest."""
    from sklearn.cluster import KMeans

    modes = torch.zeros(len(points), dtype=torch.int64)
    for label in range(int(labels.max()) + 1):
        rows = (labels == label).nonzero().flatten()
        found = KMeans(MODES, n_init=1, max_iter=20, random_state=0).fit(points[rows[:1000]].numpy())
        modes[rows] = MODES * label + torch.from_numpy(found.predict(points[rows].numpy())).long()
    return modes
