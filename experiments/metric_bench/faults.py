"""Generators with a fault of known kind and strength, made of real images. Not for finding the fault."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import torch
from torch import Tensor
from torch.nn import functional

from .spaces import Dealt, Space

Make = Callable[[Space, Dealt, float, torch.Generator], Tensor]
NEIGHBOURS = 5


def null(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """Real images like all others."""
    return space.images[dealt.rest[: space.size]].clone()


def some(space: Space, share: float, generator: torch.Generator) -> Tensor:
    """Which samples have the fault: so many, any of them."""
    return torch.randperm(space.size, generator=generator)[: round(share * space.size)]


def copies(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """A share of the samples is equal to training images."""
    made = null(space, dealt, 0, generator)
    rows = some(space, strength, generator)
    made[rows] = space.images[dealt.training[: len(rows)]]
    return made


def shifted(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """… to training images shifted by a pixel."""
    made = null(space, dealt, 0, generator)
    rows = some(space, strength, generator)
    made[rows] = space.images[dealt.training[: len(rows)]].roll(1, dims=-1)
    return made


def flipped(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """… to training images mirrored."""
    made = null(space, dealt, 0, generator)
    rows = some(space, strength, generator)
    made[rows] = space.images[dealt.training[: len(rows)]].flip(-1)
    return made


def noisy_copies(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """… to training images with noise of a tenth of the range."""
    made = null(space, dealt, 0, generator)
    rows = some(space, strength, generator)
    made[rows] = with_noise(space.images[dealt.training[: len(rows)]], 0.1, generator)
    return made


def memorized(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """All samples are training images, with noise of that deviation."""
    return with_noise(space.images[dealt.training], strength, generator)


def classes(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """Classes of that share of all are missing; the last of them in part."""
    many = int(space.labels.max()) + 1
    gone = torch.randperm(many, generator=generator)[: ceil(strength * many)]
    return without(space, dealt, space.labels, gone, strength * many - len(gone) + 1, generator)


def modes(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """That share of the modes inside classes is missing."""
    many = int(space.modes.max()) + 1
    gone = torch.randperm(many, generator=generator)[: round(strength * many)]
    return without(space, dealt, space.modes, gone, 1.0, generator)


def without(
    space: Space, dealt: Dealt, of: Tensor, gone: Tensor, last: float, generator: torch.Generator
) -> Tensor:
    """Images of other kinds than these; of the last of these only the share `last` is missing."""
    kinds = of[dealt.rest]
    missing = torch.isin(kinds, gone[:-1])
    spared = torch.rand(len(kinds), generator=generator) >= last
    missing |= (kinds == gone[-1]) & ~spared
    return space.images[dealt.rest[~missing][: space.size]]


def few(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """No more than so many different images, all equally likely."""
    rows = torch.randint(int(strength), (space.size,), generator=generator)
    return space.images[dealt.rest[rows]]


def few_varied(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """… each time with a little noise, a fiftieth of the range."""
    return with_noise(few(space, dealt, strength, generator), 0.02, generator)


def blur(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """Every image blurred, by a Gaussian of that deviation in pixels."""
    made = null(space, dealt, 0, generator)
    reach = max(1, ceil(3 * strength))
    at = torch.arange(-reach, reach + 1.0)
    kernel = torch.exp(-(at**2) / (2 * strength**2))
    kernel /= kernel.sum()
    channels = made.shape[1]
    for shape, pad in (((1, -1), (0, reach)), ((-1, 1), (reach, 0))):
        weight = kernel.reshape(1, 1, *shape).expand(channels, 1, -1, -1)
        made = functional.conv2d(made, weight, padding=pad, groups=channels)
    return made


def noise(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """Every image with noise of that deviation."""
    return with_noise(null(space, dealt, 0, generator), strength, generator)


def smooth(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """Every image moved by that share of the way to the mean of its five nearest real ones."""
    made = null(space, dealt, 0, generator)
    others = space.images[dealt.rest[space.size : 3 * space.size]]
    if len(others) < NEIGHBOURS:
        others = space.images[dealt.rest]
    nearest = torch.cdist(made.flatten(1), others.flatten(1)).topk(NEIGHBOURS, largest=False).indices
    return (1 - strength) * made + strength * others[nearest].mean(1)


def ghosts(space: Space, dealt: Dealt, strength: float, generator: torch.Generator) -> Tensor:
    """A share of the samples is the mean of two images."""
    made = null(space, dealt, 0, generator)
    rows = some(space, strength, generator)
    made[rows] = (made[rows] + made[rows.roll(1)]) / 2
    return made


def with_noise(images: Tensor, deviation: float, generator: torch.Generator) -> Tensor:
    """Not cut off at the ends of the range: then black would stay black."""
    return images + deviation * torch.randn(images.shape, generator=generator)


FAULTS: dict[str, tuple[Make, tuple[float, ...]]] = {
    "null": (null, (0.0,)),
    "exact copies": (copies, (0.005, 0.01, 0.02, 0.05, 0.1)),
    "copies with noise": (noisy_copies, (0.01, 0.02, 0.05, 0.1)),
    "copies shifted": (shifted, (0.02, 0.05, 0.1, 0.2)),
    "copies mirrored": (flipped, (0.02, 0.05, 0.1, 0.2)),
    "memorized, noise": (memorized, (0.05, 0.1, 0.2, 0.4)),
    "missing classes": (classes, (0.05, 0.1, 0.2, 0.5)),
    "missing modes": (modes, (0.01, 0.02, 0.05, 0.1, 0.2)),
    "few images": (few, (100, 1000, 10_000)),
    "few images, varied": (few_varied, (100, 1000, 10_000)),
    "blur": (blur, (0.3, 0.4, 0.5, 0.7)),
    "noise": (noise, (0.02, 0.05, 0.1, 0.2)),
    "over-smooth": (smooth, (0.1, 0.2, 0.4)),
    "ghosts": (ghosts, (0.01, 0.02, 0.05, 0.1)),
}
MIDDLE = {  # the strength at which the figure shows each fault
    "exact copies": 0.02,
    "copies with noise": 0.05,
    "copies shifted": 0.1,
    "copies mirrored": 0.1,
    "memorized, noise": 0.2,
    "missing classes": 0.1,
    "missing modes": 0.05,
    "few images": 1000,
    "few images, varied": 1000,
    "blur": 0.5,
    "noise": 0.1,
    "over-smooth": 0.2,
    "ghosts": 0.05,
}
DIGITS_FEW = (50, 100, 200)  # of the 897 images that are left


def strengths(space: Space, fault: str) -> tuple[float, ...]:
    if space.name == "digits" and fault.startswith("few images"):
        return DIGITS_FEW
    return FAULTS[fault][1]


def make(space: Space, fault: str, strength: float, dealt: Dealt, generator: torch.Generator) -> Tensor:
    return FAULTS[fault][0](space, dealt, strength, generator)
