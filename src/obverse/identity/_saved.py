"""A memorizing net as a safetensors file, and back. Not for what was measured on it: that is JSON."""

from __future__ import annotations

from pathlib import Path

from .._core import BadInput, NoSuchFile, load_tensors, save_tensors
from ..nets import ResidualMemory


def save_memory(net: ResidualMemory, path: str | Path) -> None:
    """Write the net's tensors, whole or not at all."""
    save_tensors(Path(path), net.state_dict())


def load_memory(path: str | Path) -> ResidualMemory:
    """The net in a file; names, sizes and types that are not those of such a net are refused."""
    try:
        return ResidualMemory(load_tensors(Path(path)))
    except NoSuchFile:
        raise
    except BadInput as error:
        raise BadInput(f"a memorizing net in {path}", got=f"this: {error}", do="restore it") from None
