"""State dicts as they are saved: inside a checkpoint, weights in two parts. Not for reading files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch import Tensor

from ..._core import BadInput, shape
from .stored import Stored, printable

_USUAL = ("state_dict", "model_state_dict", "model")
_DEEPEST = 8  # of mappings in mappings; a checkpoint has two or three
_WHOLE = {"bool", "uint8", "int8", "int16", "int32", "int64", "u8", "i8", "i16", "i32", "i64"}
_ORIGINAL = re.compile(r"(?P<module>(?:.*\.)?)parametrizations\.(?P<weight>\w+)\.original1")

T = TypeVar("T")


def find_tensors(checkpoint: Mapping[Any, object], tensor: type[T], origin: str) -> dict[str, T]:
    """The one mapping of names to tensors in a checkpoint: itself, or nested as {"state_dict": …}.

    Only names are followed, so the moments that an optimizer keeps by number are not taken for weights.
    """
    found: dict[tuple[str, ...], dict[str, T]] = {}
    seen: set[int] = set()
    level: list[tuple[tuple[str, ...], Mapping[Any, object]]] = [((), checkpoint)]
    for _ in range(_DEEPEST):
        below = []
        for path, mapping in level:
            if id(mapping) in seen:  # the same mapping twice, or one that holds itself
                continue
            seen.add(id(mapping))
            named = {name: value for name, value in mapping.items() if isinstance(name, str)}
            tensors = {name: value for name, value in named.items() if isinstance(value, tensor)}
            if any(len(getattr(value, "shape", ())) > 1 for value in tensors.values()):
                found[path] = tensors
            else:
                below += [
                    ((*path, name), value) for name, value in named.items() if isinstance(value, Mapping)
                ]
        level = below
    if len(found) > 1:
        usual = [path for path in found if path[-1] in _USUAL]
        if len(usual) != 1:
            raise BadInput(
                f"one state dict in {origin}",
                got=", ".join(".".join(map(printable, path)) for path in sorted(found)[:10]),
                do="save the one to audit alone: torch.save(checkpoint[…], path)",
            )
        return found[usual[0]]
    if not found:
        raise BadInput(
            f"a state dict (names and their matrices) in {origin}",
            got=f"a mapping of {len(checkpoint)} values without one",
            do="save it with: torch.save(net.state_dict(), path)",
        )
    return next(iter(found.values()))


def joined(tensors: Mapping[str, Stored], origin: str) -> dict[str, Stored]:
    """The same tensors, with the weight itself where its parts are stored.

    Weight norm keeps a length g and a direction v (w = g·v/‖v‖), pruning the dense weight and a mask.
    Spectral norm keeps the weight before it is divided by a number, which is taken as it is.
    """
    used: set[str] = set()
    result: dict[str, Stored] = {}
    for name, stored in tensors.items():
        whole, other = _parts(name)
        if name.endswith("_orig"):
            mask = tensors.get(other)
            used.add(other)
            if mask is not None and not _is_mask(mask, stored):
                raise BadInput(
                    f"{printable(other)} of {origin} with a number for each of the {shape(stored.shape)} in "
                    f"{printable(name)}",
                    got=f"{printable(mask.dtype)} of shape {shape(mask.shape)}",
                    do="prune it again, or leave the mask out",
                )
            result[whole] = _combined(stored, mask, _masked) if mask is not None else stored
        elif whole and (length := tensors.get(other)) is not None and _is_length(length, stored):
            used.add(other)
            result[whole] = _combined(stored, length, _scaled)
        else:
            result[name] = stored
    return {name: stored for name, stored in result.items() if name not in used}


def _parts(name: str) -> tuple[str, str]:
    """The weight that this tensor is the main part of, and the name of its other part; or empty."""
    if name.endswith("_v"):
        return name[:-2], f"{name[:-2]}_g"
    if name.endswith("_orig"):
        return name[:-5], f"{name[:-5]}_mask"
    if match := _ORIGINAL.fullmatch(name):
        return match["module"] + match["weight"], f"{name[:-1]}0"
    return "", ""


def _is_mask(mask: Stored, dense: Stored) -> bool:
    """A plain number for each entry: another shape would repeat the weight, as often as it says."""
    return mask.shape == dense.shape and (mask.floating or mask.dtype in _WHOLE)


def _is_length(length: Stored, direction: Stored) -> bool:
    """One number for each slice of the direction along one side, or one for all of it."""
    if not length.floating or not direction.floating:
        return False
    if not length.shape:
        return len(direction.shape) > 1
    if len(length.shape) != len(direction.shape):
        return False
    fits = all(one in (1, side) for one, side in zip(length.shape, direction.shape, strict=True))
    return fits and sum(one != 1 for one in length.shape) <= 1


def _combined(main: Stored, other: Stored, combine: Callable[[Tensor, Tensor], Tensor]) -> Stored:
    identity = None if None in (main.identity, other.identity) else (main.identity, other.identity)
    return Stored(main.shape, main.dtype, lambda: combine(main.load(), other.load()), identity)


def _masked(dense: Tensor, mask: Tensor) -> Tensor:
    # in float32: torch does not multiply floats of 8 bits
    return dense.detach().float() * mask.detach().float()


def _scaled(direction: Tensor, length: Tensor) -> Tensor:
    direction, length = direction.detach().float(), length.detach().float()
    sides = [side for side in range(direction.ndim) if length.ndim == 0 or length.shape[side] == 1]
    norm: Tensor = direction.norm(dim=sides, keepdim=True)
    return direction * (length / norm)
