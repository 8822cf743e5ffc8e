"""Paths between seeds of a generator, decoded to strips of pictures. Not for judging them: see smoothness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from .._core import BadInput

Decode = Callable[[Tensor], Tensor]
Kind = Literal["linear", "spherical"]
KINDS: tuple[Kind, ...] = ("linear", "spherical")
OPPOSITE = 1e-4  # radians from a half turn: the great circle between such seeds is rounding
ALONE = 1e-3  # of its size, by which a picture may change with the seeds beside it: float32 in other blocks


def check_seeds(seeds: Tensor, least: int = 1) -> None:
    """A float matrix of finite numbers, one seed a row."""
    if seeds.ndim != 2 or len(seeds) < least or seeds.shape[1] < 1 or not seeds.is_floating_point():
        raise BadInput(
            f"seeds as a float matrix of at least {least} {'row' if least == 1 else 'rows'}",
            got=f"{seeds.dtype} of shape {tuple(seeds.shape)}",
            do="pass one seed a row, e.g. torch.randn(8, latent)",
        )
    if not bool(torch.isfinite(seeds).all()):
        raise BadInput("finite seeds", got="NaN or infinity", do="draw them again")


def between(start: Tensor, end: Tensor, share: Tensor | float, kind: Kind = "spherical") -> Tensor:
    """The point that is `share` of the way from each row of `start` to the same row of `end`.

    linear: (1 − t)·a + t·b. In many dimensions its middle is nearer to 0 than Gaussian seeds ever are.
    spherical: the direction turns evenly along the great circle, and the length goes evenly from ‖a‖ to ‖b‖.
    A share for each row, or one for all.
    """
    check_seeds(start)
    check_seeds(end)
    if start.shape != end.shape:
        raise BadInput(
            "as many ends as starts, of one length",
            got=f"{tuple(start.shape)} and {tuple(end.shape)}",
            do="pair them row by row",
        )
    if kind not in KINDS:
        raise BadInput(f"a path out of {', '.join(KINDS)}", got=repr(kind), do="pass one of these")
    t = torch.as_tensor(share, dtype=start.dtype, device=start.device)
    t = t.reshape(-1, 1) if t.ndim else t
    if kind == "linear":
        return (1 - t) * start + t * end
    lengths = start.norm(dim=1, keepdim=True), end.norm(dim=1, keepdim=True)
    if not bool((lengths[0] > 0).all() and (lengths[1] > 0).all()):
        raise BadInput("seeds that are not 0 for a spherical path", got="0", do="use kind='linear'")
    one, other = start / lengths[0], end / lengths[1]
    # exact for small angles and near a half turn alike, unlike arccos
    angle = 2 * torch.atan2((one - other).norm(dim=1, keepdim=True), (one + other).norm(dim=1, keepdim=True))
    if bool((angle > torch.pi - OPPOSITE).any()):
        raise BadInput(
            "seeds that are not opposite for a spherical path",
            got="a pair half a turn apart, where every great circle will do",
            do="use kind='linear' or other seeds",
        )
    sine = angle.sin()
    turned = torch.where(
        sine > torch.finfo(start.dtype).eps ** 0.5,  # below, sin x is x as far as the digits go
        (((1 - t) * angle).sin() * one + (t * angle).sin() * other) / sine.clamp(min=1e-30),
        (1 - t) * one + t * other,
    )
    found: Tensor = ((1 - t) * lengths[0] + t * lengths[1]) * turned
    return found


def path(start: Tensor, end: Tensor, steps: int = 8, kind: Kind = "spherical") -> Tensor:
    """Seeds from each row of `start` to the same row of `end`, both among them: pairs × steps × latent."""
    if steps < 2:
        raise BadInput("at least 2 steps", got=steps, do="count both ends")
    shares = torch.linspace(0, 1, steps, dtype=start.dtype, device=start.device)
    return torch.stack([between(start, end, share, kind) for share in shares], dim=1)


@torch.no_grad()
def decode_all(decode: Decode, seeds: Tensor, batch_size: int = 256) -> Tensor:
    """What the generator makes of each seed, in blocks: checked to be finite, one picture a seed."""
    check_seeds(seeds)
    made = [decode(part) for part in seeds.split(batch_size)]
    for pictures, part in zip(made, seeds.split(batch_size), strict=True):
        if not isinstance(pictures, Tensor) or len(pictures) != len(part) or pictures.ndim < 2:
            raise BadInput(
                f"a tensor of {len(part)} pictures from decode, one for each seed",
                got=tuple(pictures.shape) if isinstance(pictures, Tensor) else type(pictures).__name__,
                do="pass a function of seeds (n × latent) to pictures (n × …)",
            )
        if not bool(torch.isfinite(pictures).all()):
            raise BadInput("finite pictures from decode", got="NaN or infinity", do="check the generator")
    return torch.cat(made)


def check_alone(decode: Decode, seeds: Tensor) -> None:
    """Refuse a generator whose picture of a seed depends on the other seeds: batch norm left in training."""
    seed = seeds[:1]
    # three rows: batch norm makes ±1 of any two
    here, there = (
        decode_all(decode, torch.cat([seed, other, torch.zeros_like(seed)]))[0].double()
        for other in (-seed, torch.zeros_like(seed))
    )
    if float((here - there).norm()) > ALONE * max(float(here.norm()), 1e-12):
        raise BadInput(
            "decode that makes the same picture of a seed whatever stands beside it",
            got="another one in another batch",
            do="call .eval() on the generator, and draw nothing at random in decode",
        )


def strips(
    decode: Decode,
    start: Tensor,
    end: Tensor,
    steps: int = 8,
    *,
    kind: Kind = "spherical",
    batch_size: int = 256,
) -> Tensor:
    """The pictures along each path: pairs × steps × picture."""
    seeds = path(start, end, steps, kind)
    pictures = decode_all(decode, seeds.flatten(0, 1), batch_size)
    return pictures.reshape(*seeds.shape[:2], *pictures.shape[1:])
