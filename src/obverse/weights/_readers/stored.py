"""A tensor where it lies, and the matrix to audit that is cut from it. Not for naming: see layout.

Nothing is read when weights are listed: `load` reads one tensor when it is asked to, so a file of any size
needs the memory of its largest layer only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..._core import BadInput, text
from ..results import QUANTIZED

# What can be judged as it stands. Integers need a scale that is stored elsewhere, and packed 4- and 6-bit
# floats are no numbers to torch.
FLOATING = frozenset(
    {
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
    }
)


LONGEST = 200  # characters of a name that is shown
BAND = 2**23  # entries that are read at a time of a matrix too large to be read whole


@dataclass(frozen=True)
class Stored:
    """A tensor in memory or in a file: what it is, and how to read it."""

    shape: tuple[int, ...]
    dtype: str  # in torch's words: float32, int8, …
    load: Callable[[], Tensor]
    identity: Hashable = None  # equal for two names of one tensor
    read: Callable[[slice, slice], Tensor] | None = None  # some rows and columns of two, where that is cheap
    unreadable: str = ""  # why its numbers cannot be had, where they cannot

    @property
    def floating(self) -> bool:
        return self.dtype in FLOATING and not self.unreadable


@dataclass(frozen=True)
class Packed:
    """Numbers that are recognized and not read: the shape they would have, and what they are."""

    shape: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Weight:
    """One matrix to audit; `load` brings it into memory only when asked.

    What `load` and `load_bias` give may share memory with the net: it is to be read, not written to.
    """

    name: str  # features.0, attention.in_proj (query), rnn.weight_ih_l0 (input gate), …
    kind: str  # linear, convolution, recurrent, attention, embedding, quantized, or matrix
    rows: int  # outputs
    columns: int  # inputs; in · kh · kw for convolutions
    load: Callable[[], Tensor]  # rows × columns, float32, contiguous, finite
    load_bias: Callable[[], Tensor | None]  # one float32 value a row
    module: str | None = None  # the module whose output is h before its ReLU, where a module was given
    tensor: str = ""  # the stored tensor that it is a part of, e.g. features.0.weight
    cut: Callable[[Tensor], Tensor] | None = None  # which part: that tensor → these entries
    first_output: int = 0  # of the module, where it gives more outputs than these rows
    groups: int = 1  # of a convolution, each with inputs of its own: no one matrix maps inputs to outputs
    left_out: str = ""  # why it cannot be read as numbers, where it cannot
    source: str = ""  # what open_weights was given: a path or an address; empty in memory
    place: int = 0  # among the weights of its source
    load_stored: Callable[[], Tensor] | None = None  # as `load`, in the precision of the file
    bands: Callable[[], Iterator[Tensor]] | None = None  # lines of its longer side, a few at a time, float32

    def as_stored(self) -> Tensor:
        """The same entries in the precision in which they are stored, where that is known."""
        return self.load() if self.load_stored is None else self.load_stored()

    @property
    def in_groups(self) -> str:
        """Why the groups of a convolution, too small to be judged, are no matrix to take apart either."""
        outputs, values = self.rows // self.groups, f"value{'s' * (self.columns > 1)}"
        what = f"{self.groups:,} groups of {outputs:,} × {self.columns:,}"
        if outputs == 1:
            what = f"{self.groups:,} kernels of {self.columns:,} {values}"
        return (
            f"a convolution of {what}, each reading channels of its own: too small to judge one by one, and "
            "not one matrix together"
        )


@dataclass(frozen=True)
class Part:
    """Some entries of a stored tensor, as `cut` takes them out."""

    stored: Stored
    cut: Callable[[Tensor], Tensor]
    plain: bool = False  # all of it, as rows × columns


def weight(
    name: str,
    kind: str,
    size: tuple[int, int],
    part: Part,
    origin: str,
    *,
    offsets: Sequence[Part] = (),
    module: str | None = None,
    first_output: int = 0,
    groups: int = 1,
) -> Weight:
    """`part` as a rows × columns matrix; its bias is the sum of `offsets`."""
    title = printable(name)

    def load() -> Tensor:
        matrix = part.cut(part.stored.load().detach()).to(torch.float32).reshape(size).contiguous()
        return finite(matrix, f"{title} of {origin}")

    def load_stored() -> Tensor:
        values = part.cut(part.stored.load().detach()).reshape(size).contiguous()
        finite(values if values.dtype.itemsize > 1 else values.float(), f"{title} of {origin}")
        return values

    def load_bias() -> Tensor | None:
        values = [one.cut(one.stored.load().detach()).to(torch.float32).reshape(size[0]) for one in offsets]
        if not values:
            return None
        total = values[0].contiguous() if len(values) == 1 else torch.stack(values).sum(0)
        return finite(total, f"the bias of {title} of {origin}")

    def bands() -> Iterator[Tensor]:
        assert part.stored.read is not None
        rows, columns = size
        length, width = max(size), min(size)
        height, every = max(1, BAND // width), slice(None)
        for start in range(0, length, height):
            lines = slice(start, min(start + height, length))
            band = part.stored.read(*((lines, every) if rows >= columns else (every, lines))).float()
            finite(band, f"{title} of {origin}")
            yield band if rows >= columns else band.T.contiguous()

    return Weight(
        title,
        kind,
        *size,
        load,
        load_bias,
        module,
        cut=part.cut,
        first_output=first_output,
        groups=groups,
        load_stored=load_stored,
        bands=bands if part.plain and part.stored.read is not None else None,
    )


def unread(name: str, stored: Stored | Packed, origin: str) -> Weight:
    """Packed or whole numbers: listed, so that nobody takes them for audited."""
    title = printable(name)
    if isinstance(stored, Packed):
        dtype, what = stored.reason, f"{stored.reason}; dequantize them first"
    else:  # safetensors says i8 and u8
        full = {"i": "int", "u": "uint"}
        dtype = re.sub(r"^[iu](?=\d)", lambda found: full[found[0]], printable(stored.dtype))
        plain = f"{dtype} numbers, which say nothing without their scales; dequantize them first"
        what = stored.unreadable or plain

    def load() -> Tensor:
        raise BadInput(f"floating-point numbers in {title} of {origin}", got=dtype, do="dequantize it")

    rows, columns = max(1, stored.shape[0]), max(1, math.prod(stored.shape[1:]))
    return Weight(title, QUANTIZED, rows, columns, load, lambda: None, tensor=name, left_out=what)


def block_order(name: str) -> tuple[int, int]:
    """Sorts names by their block, where a file has all blocks of one kind in a row: input, blocks, output."""
    match = re.match(r"(blk|layers)\.(\d{1,6})\.", name)
    return (1, int(match[2])) if match else (2 if name.startswith(("output", "norm")) else 0, 0)


def printable(name: str) -> str:
    """A name as one can show it, of bounded length: a file may call its tensors anything.

    Of a long one the end is kept: that is where the layers of a block differ.
    """
    if len(name) > LONGEST:
        name = f"{name[: LONGEST // 2 - 1]}…{name[-LONGEST // 2 :]}"
    return text.printable(name)


def finite(values: Tensor, what: str) -> Tensor:
    """Refuse NaN and infinity, saying where; the check itself takes no memory."""
    low, high = torch.aminmax(values)  # NaN wins both
    if bool(torch.isfinite(low) & torch.isfinite(high)):
        return values
    wrong = ~torch.isfinite(values)
    nans, first = int(values.isnan().sum()), int(wrong.flatten().byte().argmax())
    place = [int(index) for index in torch.unravel_index(torch.tensor(first), values.shape)]
    raise BadInput(
        f"finite float32 values in {what}",
        got=f"{nans:,} NaN and {int(wrong.sum()) - nans:,} infinite values, the first at {place} "
        f"of {' × '.join(map(str, values.shape))}",
        do="audit a checkpoint from before they appeared",
    )
