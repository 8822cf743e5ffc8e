"""Where samples come from: a function that draws them, a tensor, a file, a folder. Not for measuring them.

A finite pool hands out each of its samples once: batches drawn with replacement would show the collisions
of the pool with itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._core import BadInput, output_of
from ..data import load_unlabelled

Sampler = Callable[[int, torch.Generator], Tensor]
FeatureMap = Callable[[Tensor], Tensor]  # pictures (n, …) → features (n, d)

LARGEST = 1e17  # norm of a sample: its square is far from where float32 ends


class Source:
    """Samples on demand, checked: finite, floating, of one shape.

    `left` is how many a pool still has (None: as many as one likes); `broken` names unreadable pictures.
    """

    def __init__(
        self, draw: Sampler | None, pool: Tensor | None, name: str, broken: tuple[str, ...] = ()
    ) -> None:
        self._sampler, self._pool, self.name, self.broken = draw, pool, name, broken
        self._order: Tensor | None = None
        self._used = 0
        self._shape: tuple[int, ...] | None = None if pool is None else tuple(pool.shape[1:])

    @property
    def left(self) -> int | None:
        return None if self._pool is None else len(self._pool) - self._used

    @property
    def pool(self) -> Tensor | None:
        """All samples of a pool, in their own order."""
        return self._pool

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """`count` samples that were not handed out before."""
        if self._pool is None:
            return self._fresh(count, generator)
        if self._order is None:
            self._order = torch.randperm(len(self._pool), generator=generator)
        if count > len(self._pool) - self._used:
            raise BadInput(
                f"{count:,} samples of {self.name} that were not used yet",
                got=f"{self.left:,} of {len(self._pool):,}",
                do="use smaller or fewer batches, or more samples",
            )
        rows = self._order[self._used : self._used + count]
        self._used += count
        return self._pool[rows]

    def _fresh(self, count: int, generator: torch.Generator) -> Tensor:
        assert self._sampler is not None
        try:
            with torch.no_grad():
                found = self._sampler(count, generator)
        except TypeError as error:  # of another signature, most often
            raise BadInput(f"sampler(n, generator) of {self.name}", got=error, do="take these two") from error
        if not isinstance(found, Tensor) or found.ndim < 1 or len(found) != count:
            got = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise BadInput(
                f"a tensor of {count} samples from {self.name}",
                got=got,
                do="return one row a sample: sampler(n, generator) → (n, …)",
            )
        found = checked_samples(found, self.name)
        if self._shape is not None and tuple(found.shape[1:]) != self._shape:
            raise BadInput(
                f"samples of one shape from {self.name}, {self._shape} as before",
                got=tuple(found.shape[1:]),
                do="make them equal",
            )
        self._shape = tuple(found.shape[1:])
        return found


def open_source(source: Any, *, name: str | None = None, latent: int | Sequence[int] | None = None) -> Source:
    """A Source of a function `sampler(n, generator)`, a tensor, an array, a .npy or .npz file, a folder.

    An nn.Module is a generator, from normal seeds of the size or shape `latent` to samples. A function of n
    alone draws from torch's global generator.
    """
    if latent is not None:
        source = _of_generator(source, latent)
        name = name or source.__name__
    if isinstance(source, Source):
        return source
    if isinstance(source, nn.Module):
        raise BadInput(
            f"latent, the size of the seeds of the generator {type(source).__name__}",
            got="none",
            do="pass latent=100, or whatever it takes, or a function sampler(n, generator)",
        )
    if isinstance(source, Tensor | np.ndarray):
        title = name or "the samples"
        x = source if isinstance(source, Tensor) else _tensor(source, title)
        if x.ndim < 1 or len(x) < 2:
            got = len(x) if x.ndim else "a single number"
            raise BadInput(f"at least two samples in {title}", got=got, do="add some")
        return Source(None, checked_samples(x, title), title)
    if isinstance(source, str | Path):
        found = load_unlabelled(Path(source))
        title = name or Path(source).name or str(source)
        if len(found.x) < 2:
            raise BadInput(f"at least two samples in {title}", got=len(found.x), do="add some")
        return Source(None, checked_samples(found.x, title), title, found.broken)
    if callable(source):
        source = _with_generator(source)
        return Source(source, None, name or str(getattr(source, "__name__", "the generator")))
    raise BadInput(
        "a function sampler(n, generator), a tensor, an array, a .npy or .npz file, or a folder of pictures",
        got=type(source).__name__,
        do="give one of these",
    )


def _of_generator(net: Any, latent: int | Sequence[int]) -> Sampler:
    """A net as a sampler: normal seeds in, samples out, in evaluation mode; its mode is put back."""
    shape = (latent,) if isinstance(latent, int) else tuple(latent)
    if not isinstance(net, nn.Module) or not shape or min(shape) < 1:
        got = type(net).__name__ if not isinstance(net, nn.Module) else f"latent={latent}"
        raise BadInput(
            "an nn.Module and the size or shape of its seeds, latent ≥ 1", got=got, do="correct it"
        )
    like = next((one for one in net.parameters() if one.is_floating_point()), torch.empty(0))

    def sampler(count: int, generator: torch.Generator) -> Tensor:
        seeds = torch.empty(count, *shape, device=generator.device).normal_(generator=generator)
        modes = {module: module.training for module in net.modules()}
        try:
            found: Tensor = output_of(net.eval()(seeds.to(like)))
            return found
        except RuntimeError as error:
            raise BadInput(
                f"a generator {type(net).__name__} that takes seeds of shape {shape}",
                got=str(error).splitlines()[0][:200],
                do="pass the latent that it was made for",
            ) from error
        finally:
            for module, mode in modes.items():
                module.training = mode

    sampler.__name__ = type(net).__name__
    return sampler


def _with_generator(function: Callable[..., Tensor]) -> Sampler:
    """As it is where it takes n and a generator; one of n alone has torch's global one, seeded from ours."""
    try:
        inspect.signature(function).bind(1, None)
        return function
    except ValueError:  # nothing is known of it
        return function
    except TypeError:
        pass
    try:
        inspect.signature(function).bind(1)
    except TypeError:
        return function  # called, and refused with its own words

    def sampler(count: int, generator: torch.Generator) -> Tensor:
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            found: Any = function(count)
        return _tensor(found, "the samples") if isinstance(found, np.ndarray) else found

    return sampler


def _tensor(array: np.ndarray[Any, Any], name: str) -> Tensor:
    """A copy where torch needs one: other byte orders, backward strides, memory that is only to be read."""
    if array.dtype.kind not in "fu":
        raise BadInput(f"floating samples, or bytes, in {name}", got=array.dtype, do="convert them")
    plain = array.dtype.isnative and array.flags.writeable and array.flags.c_contiguous
    return torch.from_numpy(array if plain else np.array(array, array.dtype.newbyteorder("="), order="C"))


def checked_samples(x: Tensor, name: str) -> Tensor:
    """Floating samples on the CPU, one a row; bytes are taken for grey levels."""
    x = x.detach().cpu()
    if x.ndim == 1:
        x = x[:, None]
    if x.dtype == torch.uint8:
        x = x.to(torch.float32) / 255
    elif x.dtype in (torch.float16, torch.bfloat16):
        x = x.to(torch.float32)
    if x.dtype not in (torch.float32, torch.float64):
        raise BadInput(f"floating samples, or bytes, from {name}", got=x.dtype, do="convert them: x.float()")
    if x[:1].numel() == 0:
        raise BadInput(f"samples with values from {name}", got=f"shape {tuple(x.shape)}", do="check them")
    if x.layout != torch.strided:
        raise BadInput(f"dense samples from {name}", got=x.layout, do="convert them: x.to_dense()")
    # One pass finds NaN and infinity, and values whose squares no longer fit into float32.
    norms = torch.linalg.vector_norm(x.flatten(1), dim=1)
    if not bool((norms <= LARGEST).all()):
        _refuse_infinite(x, norms, name)
    return x


def _refuse_infinite(x: Tensor, norms: Tensor, name: str) -> None:
    wrong = (~torch.isfinite(x.flatten(1)).all(1)).nonzero().flatten()
    if not len(wrong):
        raise BadInput(
            f"values of at most {LARGEST:g} in {name}",
            got=f"a norm of {float(norms.max()):g}",
            do="scale them",
        )
    raise BadInput(
        f"finite values in {name}",
        got=f"NaN or infinity in {len(wrong):,} of {len(x):,} samples, first in number {int(wrong[0])}",
        do="leave these out, or mend the generator",
    )


def flat_points(
    x: Tensor | np.ndarray[Any, Any], name: str = "the samples", *, constant: bool = False
) -> Tensor:
    """Samples or features as points, n × d: at least two, finite, and unless `constant` not all the same."""
    x = _tensor(x, name) if isinstance(x, np.ndarray) else x
    if not isinstance(x, Tensor) or x.ndim < 1 or len(x) < 2:
        got = len(x) if isinstance(x, Tensor) and x.ndim else type(x).__name__
        raise BadInput(f"at least two points in {name}", got=got, do="add some")
    points = checked_samples(x, name).flatten(1)
    if not constant and bool((points == points[0]).all()):
        raise BadInput(
            f"points that differ in {name}", got=f"{len(points):,} times the same", do="check them"
        )
    return points
