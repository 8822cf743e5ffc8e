"""Arrays without a framework: pickles, and which way their kernels lie. Not for .npy headers: see numpy.

Files of arrays come from everywhere. Where variables are called kernel, they lie as in Keras and Flax; where
they are called weight, as in PyTorch. Else all convolutions of a file are taken to lie the same way: H × W ×
in × out if the first sides are the smaller ones over the whole file, out × in × H × W if not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

from ..._core import BadInput
from .disk import Window
from .keras_config import Config
from .keras_layout import as_torch, convolution
from .layout import weights_in
from .naming import Layer
from .pickle_arrays import arrays_in, stored_array
from .stored import Stored, Weight
from .torch_pickle import read_pickle

_NAMES = {"weights": "weight", "biases": "bias"}
_DO = "write it with numpy.savez(path, **arrays)"
Named = Mapping[tuple[str, ...], Stored]


def open_pickle(path: Path, start: int = 0) -> tuple[Weight, ...]:
    """The arrays in a pickle, which is followed and never run; it begins at `start` in the file."""
    with path.open("rb") as file:
        window = Window(file, 0, path.stat().st_size)
        window.seek(start)
        if window.read(1) != b"\x80":
            raise BadInput(f"a file of torch.save or a pickle of arrays in {path}", got="other bytes", do=_DO)
        window.seek(start)
        content = read_pickle(cast(BinaryIO, window), str(path))
    arrays = arrays_in(content)
    named = {name or (path.stem,): one for name, one in arrays.items()}
    return array_weights(
        {name: stored_array(path, ".".join(name), one) for name, one in named.items()}, str(path)
    )


def named_weights(tensors: Mapping[str, Stored], origin: str) -> tuple[Weight, ...]:
    """Of a file of names and tensors; where they are called kernels, as JAX calls them, these are turned."""
    parts = {tuple(re.split(r"[./]", name)): one for name, one in tensors.items()}
    kernels = any(name[-1] == "kernel" and len(one.shape) > 1 for name, one in parts.items())
    if kernels and len(parts) == len(tensors):
        return array_weights(parts, origin)
    return weights_in(tensors, origin)


def array_weights(arrays: Named, origin: str) -> tuple[Weight, ...]:
    """The weights among arrays by their names, kernels turned as PyTorch has them."""
    if any(name[-1] == "kernel" for name in arrays):
        tensors, layers = as_torch(arrays, Config())
        return weights_in(tensors, origin, layers, file=True)
    turned = not any(name[-1] == "weight" for name in arrays) and _outputs_last(arrays)
    tensors, layers = {}, {}
    for path, one in arrays.items():
        name = ".".join((*path[:-1], _NAMES.get(path[-1], path[-1])))
        tensors[name] = one
        if turned and 3 <= len(one.shape) <= 5:
            tensors[name], layers[name] = convolution(one), Layer("convolution")
        elif turned and len(one.shape) == 2 and "emb" not in name.lower():
            layers[name] = Layer("linear", inputs_first=True)
    return weights_in(tensors, origin, layers, file=True)


def _outputs_last(arrays: Named) -> bool:
    """Whether kernels begin with their height and width: the sizes of all of them together tell."""
    shapes = [one.shape for one in arrays.values() if one.floating and min(one.shape, default=0) > 0]
    kernels = [shape for shape in shapes if 4 <= len(shape) <= 5]
    kernels = kernels or [shape for shape in shapes if len(shape) == 3]
    # how much smaller their space is if it stands first than if it stands last
    return sum(math.log(math.prod(shape[2:]) / math.prod(shape[:-2])) for shape in kernels) > 0
