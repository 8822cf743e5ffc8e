"""A limit on the memory that is taken for a net's weights, before it is taken. Not for making nets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import BadInput

_EACH = 4096  # bytes that a tensor counts for at least: it comes with a module around it
_SPARE = 2**24  # beyond what a file justifies: small nets, and what is drawn on the way
_COPIES = 4  # of the weights while they are made: a draw, a copy of it, …


class _Counted(TorchDispatchMode):
    """Refuses a new tensor that would take all new tensors together beyond the limit."""

    def __init__(self, limit: int, refusal: BadInput) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left, self.refusal = limit, refusal

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        schema = func._schema  # type: ignore[attr-defined]
        named = dict(zip((one.name for one in schema.arguments), args, strict=False)) | given
        made_new = "size" in named and not any(isinstance(one, Tensor) for one in named.values())
        if made_new:
            dtype = named.get("dtype") or torch.get_default_dtype()
            self.left -= max(_EACH, prod(named["size"]) * dtype.itemsize)
            if self.left < 0:
                raise self.refusal
        return func(*args, **given)


def machine_memory() -> int:
    """Bytes of memory in this machine; where it does not tell, more than any machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**50


@contextmanager
def bounded_weights(stored: int | None, what: str, got: object) -> Iterator[None]:
    """Refuse to make a net that is far larger than the `stored` bytes of its weights' file.

    Settings in an untrusted file say how wide a net is; the weights beside them show whether that is true.
    Without a file (None) the limit is the memory of the machine. `what` names the sizes, `got` says them.
    """
    limit = machine_memory() if stored is None else _COPIES * stored + _SPARE
    room = "memory" if stored is None else f"the {stored:,} bytes of the file"
    with _Counted(limit, BadInput(f"{what} whose weights fit into {room}", got=got, do="use smaller ones")):
        yield
