"""Tensors from what people pass, and in safetensors files: never pickle, whole or not at all, data only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .errors import BadInput, NoSuchFile
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
    except FileNotFoundError:
        raise NoSuchFile(path) from None
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


def as_tensor(value: Any, what: str) -> Tensor:
    """What people have numbers in as a tensor: a tensor as it is, NumPy arrays and lists converted."""
    if isinstance(value, Tensor):
        return value
    import numpy as np

    try:
        if isinstance(value, np.ndarray):  # torch takes neither backward strides nor other byte orders
            plain = value.dtype.isnative and value.flags.writeable
            array: Tensor = torch.from_numpy(
                np.ascontiguousarray(value) if plain else np.array(value, value.dtype.newbyteorder("="))
            )
            return array
        found: Tensor = torch.as_tensor(value)
        return found
    except (TypeError, ValueError, RuntimeError) as error:
        shown = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise BadInput(f"{what} as a tensor or an array of numbers", got=shown, do="convert them") from error


def as_inputs(x: Any, net: nn.Module, what: str = "inputs") -> Tensor:
    """Inputs for a net: as a tensor, floating-point numbers in the type that the net computes with."""
    found = as_tensor(x, what)
    tensors = (*net.parameters(), *net.buffers())
    own = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), None)
    if own is None or found.dtype == own:
        return found
    if found.is_floating_point():  # within autocast the types are its business, but for float64
        mixed = torch.is_autocast_enabled(found.device.type) and torch.float64 not in (found.dtype, own)
        return found if mixed else found.to(own)
    if found.dtype in (torch.uint8, torch.bool):
        raise BadInput(
            f"{what} as floating-point numbers",
            got=str(found.dtype).removeprefix("torch."),
            do="convert them as for training: x.float() / 255 for most images",
        )
    return found


def output_of(found: Any) -> Any:
    """What a net returns: of a Hugging Face ModelOutput, or of anything else that has them, the logits."""
    return found if isinstance(found, Tensor) else getattr(found, "logits", found)
