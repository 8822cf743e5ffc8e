"""Where random numbers come from: a generator, torch's global one, or a stream for each row of a batch.

`generator=None` means torch's global generator everywhere, so that `torch.manual_seed` settles what follows;
only where streams are set do these come first (`use_streams`).

A torch.Generator gives its numbers to a batch in one row, so that what a sample gets depends on the samples
before it. Here the numbers of a sample are a function of its own seed and of how many draws were made, and of
nothing else: a batch cut into parts, on however many processes, gets the same numbers as the whole.

The function is the mixing step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", 2014) on a counter, in integer arithmetic that wraps: the same bits on every device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import pi, prod

import numpy as np
import torch
from torch import Tensor

from .errors import BadInput


def _signed(value: int) -> int:
    """64 bits as the whole number that int64 shows for them."""
    return value - (1 << 64) if value >= 1 << 63 else value


_STEP = _signed(0x9E3779B97F4A7C15)  # the golden ratio: from one number of a row to the next
_DRAW = _signed(0xD1342543DE82EF95)  # another odd number: from one draw to the next
_FIRST, _SECOND = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)


def mix(z: Tensor) -> Tensor:
    """A bijection of 64-bit numbers, each bit of the result a hash of all bits. Works in place on int64."""
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        # torch shifts the sign in from the left; what came from it is masked out.
        z ^= (z >> shift).bitwise_and_((1 << (64 - shift)) - 1)
        if factor != 1:
            z *= factor
    return z


class Streams:
    """A stream of random numbers for each sample of a batch.

    `seeds` is an int64 tensor, one seed a sample; neighbouring seeds give unrelated numbers. Every method is
    one draw for all samples and returns len(seeds) × shape on the device of the seeds. The next draw gives
    new numbers. The row of a sample depends on its seed and on the number of draws before, never on the other
    rows.
    """

    def __init__(self, seeds: Tensor) -> None:
        if seeds.dtype != torch.int64 or seeds.dim() != 1:
            raise BadInput(
                "seeds as an int64 tensor with one dimension",
                got=f"{seeds.dtype} of shape {tuple(seeds.shape)}",
                do="use seed + torch.arange(samples)",
            )
        self._keys = mix(seeds.clone())
        self._draws = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def device(self) -> torch.device:
        return self._keys.device

    def bits(self, count: int) -> Tensor:
        """64 random bits as an int64, `count` a sample."""
        keys = mix(self._keys + _signed(self._draws * _DRAW % (1 << 64)))
        self._draws += 1
        return mix(keys[:, None] + torch.arange(1, count + 1, device=self.device) * _STEP)

    def bernoulli(self, keep: float, shape: Sequence[int]) -> Tensor:
        """True with probability `keep` (to 32 bits)."""
        count = prod(shape)
        halves = self.bits(-(-count // 2)).flatten().view(torch.int32)
        halves = halves.reshape(len(self), count + count % 2)[:, :count]
        # Where all are kept the bound is beyond what int32 can hold.
        limit = round(keep * 2**32) - 2**31
        below = halves < limit if limit < 2**31 else torch.ones_like(halves, dtype=torch.bool)
        return below.reshape(len(self), *shape)

    def uniform(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Uniform in [0, 1), with all the bits that the type has there: 24 in float32, 53 in float64."""
        kept = {torch.float32: 24, torch.float64: 53}.get(dtype)
        if kept is None:
            raise BadInput("float32 or float64", got=dtype, do="draw in float32 and convert")
        whole = (self.bits(prod(shape)) >> (64 - kept)).bitwise_and_((1 << kept) - 1)
        return whole.to(dtype).mul_(2.0**-kept).reshape(len(self), *shape)

    def integers(self, high: int, shape: Sequence[int]) -> Tensor:
        """Whole numbers from 0 to high − 1."""
        if not 1 <= high < 2**31:  # the remainder favours small numbers by high/2⁶³
            raise BadInput("high from 1 to 2³¹ − 1", got=high, do="draw several smaller numbers")
        positive = self.bits(prod(shape)).bitwise_and_((1 << 63) - 1)
        return positive.remainder_(high).reshape(len(self), *shape)

    def normal(self, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
        """Standard normal, two from 64 bits (Box and Muller), at most 6.8 from 0."""
        count = prod(shape)
        bits = self.bits(-(-count // 2))
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        # Half a step off 0, whose logarithm would be infinite.
        radius, angle = (
            half.to(exact).add_(0.5).mul_(2.0**-32)
            for half in ((bits >> 32).bitwise_and_(2**32 - 1), bits.bitwise_and_(2**32 - 1))
        )
        radius, angle = radius.log_().mul_(-2).sqrt_(), angle.mul_(2 * pi)
        pair = torch.stack((radius * angle.cos(), radius * angle.sin()), -1)
        return pair.flatten(1)[:, :count].reshape(len(self), *shape).to(dtype)


_CURRENT: ContextVar[Streams | None] = ContextVar("streams", default=None)


def current_streams() -> Streams | None:
    return _CURRENT.get()


@contextmanager
def use_streams(streams: Streams) -> Iterator[Streams]:
    """Inside, everything random that is not given a generator draws from these streams."""
    token = _CURRENT.set(streams)
    try:
        yield streams
    finally:
        _CURRENT.reset(token)


Source = torch.Generator | Streams | None  # None: the current streams, and without any torch's own numbers


def mask_like(x: Tensor, keep: float, source: Source = None) -> Tensor:
    """1 with probability `keep`, else 0, shaped like x, as bool or as x's type."""
    streams = _streams(x, source)
    if streams is not None:
        return streams.bernoulli(keep, x.shape[1:])
    assert not isinstance(source, Streams)
    return torch.empty_like(x).bernoulli_(keep, generator=source)


def noise_like(x: Tensor, std: float, source: Source = None) -> Tensor:
    """Gaussian with mean 0, shaped like x."""
    streams = _streams(x, source)
    if streams is not None:
        return streams.normal(x.shape[1:], x.dtype).mul_(std)
    assert not isinstance(source, Streams)
    return torch.empty_like(x).normal_(std=std, generator=source)


def _streams(x: Tensor, source: Source) -> Streams | None:
    streams = current_streams() if source is None else source
    if not isinstance(streams, Streams):
        return None
    if len(streams) != len(x):
        raise BadInput(
            f"a batch of {len(streams)}, one for each stream of random numbers",
            got=f"a tensor of shape {tuple(x.shape)}",
            do="keep samples in the first dimension, or pass a torch.Generator",
        )
    return streams


INITIAL, BATCHES, STEPS, EVALUATION, SPLIT, SAMPLES, UNLABELLED = range(7)  # the streams of a run


def seed_global(seed: int) -> None:
    """`torch.manual_seed`, for places that call it at every step.

    Without an accelerator, torch keeps the call for the day when CUDA starts, with a text of the whole stack:
    most of a millisecond, where the CPU's generator, the only one then, takes a microsecond.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def or_global(generator: torch.Generator | None) -> torch.Generator:
    """The generator that was given, or torch's global one on the CPU."""
    if generator is None:
        return torch.default_generator
    if not isinstance(generator, torch.Generator):
        raise BadInput(
            "a torch.Generator, or None for torch's global one",
            got=type(generator).__name__,
            do="pass torch.Generator().manual_seed(0), or another seed",
        )
    return generator


def derive_seed(*path: int) -> int:
    """A 63-bit seed that depends on every number of the path."""
    return int(np.random.SeedSequence(path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def derive_generator(*path: int) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(*path))
