"""Tensors in safetensors files, never pickle: written whole or not at all, read as the data they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from .errors import BadInput
from .files import read_file, replace_atomically


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a safetensors file, whole or not at all; returns its SHA-256."""
    from safetensors.torch import save

    # Not save_file: it writes through a temporary file of its own, which a crash would leave behind, and
    # hides the cause of a failed write.
    content = save({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
    replace_atomically(path, lambda temporary: temporary.write_bytes(content))
    return hashlib.sha256(content).hexdigest()


def parse_tensors(content: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors in the bytes of a safetensors file; what is wrong is said of `path`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(content)
    except (SafetensorError, KeyError) as error:  # KeyError: a type of numbers that torch does not have
        raise BadInput(f"safetensors in {path}", got=error, do="restore it from a copy") from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        content = read_file(path, "tensors")
    except OSError as error:
        raise BadInput(f"a safetensors file {path}", got=error.strerror, do="check the path") from None
    return parse_tensors(content, path)


def load_weights(net: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy weights into a net; names, shapes and types must be exactly its own."""
    check_tensors(net.state_dict(), tensors, source)
    net.load_state_dict(dict(tensors))


def check_tensors(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor], source: str) -> None:
    """Refuse tensors from a file unless names, shapes and types are those of `own`."""
    wrong = sorted(set(own) ^ set(tensors)) or [
        f"{name} {tuple(tensor.shape)} {tensor.dtype}"
        for name, tensor in tensors.items()
        if tensor.shape != own[name].shape or tensor.dtype != own[name].dtype
    ]
    if wrong:
        expected = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in own.items())
        raise BadInput(
            f"the tensors {expected} in {source}", got=f"a difference in {', '.join(wrong)}", do="restore it"
        )
