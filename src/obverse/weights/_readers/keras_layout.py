"""Keras' variables as PyTorch has them: names, shapes, gates. Not for reading files.

Kernels are in × out, H × W × in × out, H × W × in × multiplier where depthwise, H × W × out × in where
transposed; gates are input, forget, cell, output in an LSTM, and update, reset, new in a GRU. A kernel whose
class is not known is recognized by its dimensions and its bias.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from .keras_config import VARIABLES, Config, Path
from .naming import Layer
from .stored import Stored

Found = tuple[str, Stored, Layer | None]  # a tensor under the name that torch would give it

_KERNELS = {"kernel", "depthwise_kernel", "pointwise_kernel", "recurrent_kernel"}
_NO_WEIGHT = re.compile(
    r"gamma|beta|moving_\w+|mean|variance|count|alpha|scale|seed_generator_state|iterations?|learning_rate"
)
_GATES = {1: [0], 3: [1, 0, 2], 4: [0, 1, 2, 3]}  # where Keras keeps torch's gates
_ATTENTION = {"query", "key", "value", "attention_output", "query_dense", "key_dense", "value_dense"}


def as_torch(variables: Mapping[Path, Stored], config: Config) -> tuple[dict[str, Stored], dict[str, Layer]]:
    """The same tensors, weights of convolutions and recurrent layers turned; and what they are."""
    groups: dict[Path, dict[str, Stored]] = {}
    for path, stored in variables.items():
        groups.setdefault(path[:-1], {})[path[-1]] = stored
    tensors: dict[str, Stored] = {}
    layers: dict[str, Layer] = {}
    for path, found in groups.items():
        kind, settings = config.kind(path)
        if path[-1:] == ("vars",):
            path, found = path[:-1], _called(found, kind)
        title = re.sub(r"(^|\.)_\.(?=_?\d)", r"\1", ".".join(_shown(path, config)))
        for name, stored, layer in _layer(found, kind, settings, path):
            whole = f"{title}.{name}" if title else name
            while whole in tensors:
                whole += "_"
            tensors[whole] = stored
            if layer is not None:
                bias = f"{title}.{layer.bias}" if layer.bias and title else layer.bias
                layers[whole] = replace(layer, bias=bias)
    return tensors, layers


def _shown(path: Path, config: Config) -> Iterator[str]:
    """The path as a name in torch; a layer that says only where it lies, by the name it has in the model."""
    for at, part in enumerate(path):
        part = re.sub(r"\._(?=\d)", ".", part)  # layer_._0, as some have it
        if part == "layers" and at == 0 and len(path) > 1:
            continue
        yield config.places.get(part, part) if path[:at] == ("layers",) else part.replace("_.", ".")


def _called(found: Mapping[str, Stored], kind: str) -> dict[str, Stored]:
    """The variables 0, 1, … of a layer by their names."""
    names = VARIABLES.get(kind)
    if names is None:
        names = ("kernel", "bias") if len(found) == 2 and _pair(found) else ()
    called = {}
    for number, stored in found.items():
        at = int(number) if number.isdecimal() and len(number) < 4 else -1
        name = names[at] if 0 <= at < len(names) else number
        # a normalization without its scale begins with its shift: neither is a weight
        called[name if name not in called else number] = stored
    return called


def _pair(found: Mapping[str, Stored]) -> bool:
    first, second = found.get("0"), found.get("1")
    return bool(first and second and len(second.shape) == 1 and first.shape[-1:] == second.shape)


def _layer(
    found: Mapping[str, Stored], kind: str, settings: Mapping[str, Any], path: Path
) -> Iterator[Found]:
    kernel, recurrent, bias = (found.get(name) for name in ("kernel", "recurrent_kernel", "bias"))
    turned = _recurrent(kernel, recurrent, bias) if kernel and recurrent else []
    if turned:
        yield from turned
        return
    for name, stored in found.items():
        if name in _KERNELS and len(stored.shape) >= 2:
            yield from _kernel(name, stored, bias, kind, settings, path, "pointwise_kernel" in found)
        elif name == "embeddings" and len(stored.shape) == 2:
            yield "weight", stored, Layer("embedding")
        elif name == "bias":
            yield "bias", _flat(stored), None
        elif not _NO_WEIGHT.fullmatch(name):
            yield from _old(name, found)


def _kernel(
    name: str,
    stored: Stored,
    bias: Stored | None,
    kind: str,
    settings: Mapping[str, Any],
    path: Path,
    separable: bool,
) -> Iterator[Found]:
    sides = len(stored.shape)
    own = {"depthwise_kernel": "depthwise.weight", "pointwise_kernel": "pointwise.weight"}
    title = own[name] if separable and name in own else "weight"
    layer = Layer("convolution", bias="bias" if title == "pointwise.weight" else None)
    if name == "recurrent_kernel":
        title = "recurrent.weight"
    if name == "depthwise_kernel" and sides > 2:
        yield title, depthwise(stored), Layer("convolution", groups=max(1, stored.shape[-2]))
    elif sides == 2:
        yield title, stored, Layer("linear", inputs_first=True)
    elif kind in ("einsum_dense", "multi_head_attention") or (sides == 3 and _is_of_attention(path)):
        yield title, *_heads(stored, bias, path)
    elif kind.startswith("locally_connected") or sides > 5:
        yield title, stored, Layer("matrix")  # one for each place
    else:
        groups = settings.get("groups", 1)
        fits = type(groups) is int and groups > 0 and stored.shape[-1] % groups == 0
        transposed = kind.endswith("_transpose") or (
            not kind and bias is not None and bias.shape == stored.shape[-2:-1] != stored.shape[-1:]
        )
        if fits and groups > 1:
            layer = Layer("convolution", groups=groups)
        yield title, convolution(stored, transposed=transposed), layer


def _is_of_attention(path: Path) -> bool:
    """Whether a kernel of three sides is a projection into heads, or, as Flax calls it, out of them."""
    out = path[-1:] == ("out",) and any("att" in part.lower() for part in path[:-1])
    return out or bool(_ATTENTION & set(path))


def convolution(stored: Stored, *, transposed: bool = False) -> Stored:
    """… × in × out (… × out × in where transposed) as out × in × …"""
    *space, inner, outer = range(len(stored.shape))
    order = (inner, outer, *space) if transposed else (outer, inner, *space)
    return _permuted(stored, order, tuple(stored.shape[one] for one in order))


def depthwise(stored: Stored) -> Stored:
    """… × in × multiplier as in · multiplier × 1 × …"""
    *space, inputs, multiplier = range(len(stored.shape))
    kernel = stored.shape[:-2]
    shape = (stored.shape[inputs] * stored.shape[multiplier], 1, *kernel)
    return _permuted(stored, (inputs, multiplier, *space), shape)


def _permuted(stored: Stored, order: Sequence[int], shape: tuple[int, ...]) -> Stored:
    identity = None if stored.identity is None else (stored.identity, tuple(order))

    def load() -> Tensor:
        return stored.load().permute(*order).reshape(shape)

    return replace(stored, shape=shape, load=load, identity=identity, read=None)


def _heads(stored: Stored, bias: Stored | None, path: Path) -> tuple[Stored, Layer]:
    """in × heads × size, or heads × size × out in the output layer, as one matrix."""
    output = any(re.match(r"_?(attention_)?output", part) for part in path) or path[-1:] == ("out",)
    inputs = len(stored.shape) - 1 if output else 1
    if bias is not None and stored.shape[-len(bias.shape) :] == bias.shape:
        inputs = len(stored.shape) - len(bias.shape)
    elif not (output or any(part.strip("_").removesuffix("_dense") in _ATTENTION for part in path)):
        return stored, Layer("matrix")
    shape = math.prod(stored.shape[:inputs]), math.prod(stored.shape[inputs:])
    whole = replace(stored, shape=shape, load=lambda: stored.load().reshape(shape), identity=None, read=None)
    return whole, Layer("linear", inputs_first=True)


def _flat(bias: Stored) -> Stored:
    """One number for each output: heads × size is the same numbers in the same order."""
    if len(bias.shape) == 1:
        return bias
    return replace(
        bias, shape=(math.prod(bias.shape),), load=lambda: bias.load().flatten(), identity=None, read=None
    )


def _recurrent(kernel: Stored, recurrent: Stored, bias: Stored | None) -> list[Found]:
    if len(recurrent.shape) != 2 or len(kernel.shape) != 2:
        return []
    units, width = recurrent.shape
    order = _GATES.get(width // units) if units and width % units == 0 else None
    if order is None or kernel.shape[1] != width:
        return []
    found: list[Found] = []
    for side, one in (("ih", kernel), ("hh", recurrent)):
        shape = (width, one.shape[0])
        turned = replace(one, shape=shape, load=_ordered(one, order, shape), identity=None, read=None)
        found.append((f"weight_{side}", turned, None))
    if bias is not None and math.prod(bias.shape) in (width, 2 * width):  # two: one for each kernel
        for at, side in enumerate(("ih", "hh")[: math.prod(bias.shape) // width]):
            load = _ordered(bias, order, (width,), at)
            found.append(
                (f"bias_{side}", replace(bias, shape=(width,), load=load, identity=None, read=None), None)
            )
    return found


def _ordered(stored: Stored, order: list[int], shape: tuple[int, ...], at: int | None = None) -> Any:
    """One kernel, or one of its biases, with the gates in torch's order."""

    def load() -> Tensor:
        values = stored.load()
        values = values.t() if at is None else values.reshape(-1, shape[0])[at]
        return values.reshape(len(order), -1, *shape[1:])[order].reshape(shape)

    return load


def _old(name: str, found: Mapping[str, Stored]) -> Iterator[Found]:
    """Names of Keras 1, lstm_1_W_i and the like; and what any other layer calls its variables."""
    stored = found[name]
    match = re.fullmatch(r"(?P<layer>.*_)?(?P<what>[WU])(?P<gate>_[ifcozrh])?", name)
    if not match or not 2 <= len(stored.shape) <= 5:
        yield name, stored, None
        return
    bias = f"{match['layer'] or ''}b{match['gate'] or ''}" if match["what"] == "W" else None
    if len(stored.shape) > 2:
        offsets = found.get(bias or "")
        # Theano's order is torch's, and only the bias tells
        turned = offsets is not None and offsets.shape == stored.shape[:1] != stored.shape[-1:]
        yield name, stored if turned else convolution(stored), Layer("convolution", bias=bias)
    elif name.startswith("embedding"):
        yield name, stored, Layer("embedding")
    else:
        kind = "recurrent" if match["gate"] else "linear"
        yield name, stored, Layer(kind, inputs_first=True, bias=bias)
