"""Which constants of a TensorFlow graph are weights, and how they lie, by the operations that use them.

Functions inside the graph, such as the bodies of loops, are not looked at.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._core import BadInput
from .keras_layout import convolution, depthwise
from .naming import Layer
from .stored import Stored

_CONVOLUTIONS = {"Conv1D", "Conv2D", "_FusedConv2D", "FusedConv2D", "Conv3D"}
_TRANSPOSED = {"Conv2DBackpropInput", "Conv3DBackpropInputV2"}
_DEPTHWISE = {"DepthwiseConv2dNative", "DepthwiseConv2D", "FusedDepthwiseConv2dNative"}
_PRODUCTS = {"MatMul", "_FusedMatMul", "FusedMatMul", "BatchMatMul", "BatchMatMulV2"}
_LOOKUPS = {"Gather", "GatherV2", "ResourceGather"}
_SUMS = {"BiasAdd", "Add", "AddV2"}
_THROUGH = {"Identity", "ReadVariableOp", "Enter", "ExpandDims"}
_ENDING = re.compile(r"/(ReadVariableOp|read|merged_input|resource)$")
_MOST_STEPS = 16  # from a weight to where it is used

Known = tuple[dict[str, Stored], str, dict[str, Layer]]


def graph_weights(tensors: Mapping[str, Stored], nodes: list[Any], path: Path) -> Known:
    """The tensors as torch has them, where they are from, and what is known of them."""
    known = {one["name"]: one for one in nodes if isinstance(one, dict) and isinstance(one.get("name"), str)}
    inputs = {name: _inputs(one) for name, one in known.items()}
    biases: dict[str, str] = {}  # of the output of a node
    for name, one in known.items():
        if one.get("op") in _SUMS and len(inputs[name]) == 2:
            for output, added in (inputs[name], inputs[name][::-1]):
                biases.setdefault(output, added)
    turned: dict[str, tuple[Stored, Layer]] = {}
    for name, one in known.items():
        for weight, stored, layer in _used(one, inputs[name], tensors, known, inputs):
            if weight not in turned:
                bias = inputs[name][2] if _has_bias(one, inputs[name]) else biases.get(name)
                found = _source(bias, tensors, known, inputs) if bias else None
                turned[weight] = stored, replace(layer, bias=found)
    result: dict[str, Stored] = {}
    layers: dict[str, Layer] = {}
    titles = _titles(tensors)
    for name, stored in tensors.items():
        title = titles[name]
        if name in turned:
            result[title], layer = turned[name]
            layers[title] = replace(layer, bias=titles[layer.bias] if layer.bias else None)
        elif sum(side != 1 for side in stored.shape) < 2:
            result[title] = Stored((max((*stored.shape, 1)),), stored.dtype, _flattened(stored))
        else:
            result[title], layers[title] = stored, Layer("matrix")
    if len(result) < len(tensors):
        raise BadInput(f"each weight once in {path}", got="two of one name", do="convert the model again")
    return result, str(path), layers


def _flattened(stored: Stored) -> Any:
    return lambda: stored.load().flatten()


def _titles(tensors: Mapping[str, Stored]) -> dict[str, str]:
    """Names without what only says how a weight is read, where that leaves them apart."""
    short = {name: _ENDING.sub("", name) for name in tensors}
    counts: dict[str, int] = {}
    for one in short.values():
        counts[one] = counts.get(one, 0) + 1
    chosen = {name: one if counts[one] == 1 else name for name, one in short.items()}
    return {name: one.replace("/", ".") for name, one in chosen.items()}


def _inputs(node: Mapping[str, Any]) -> list[str]:
    """The nodes whose outputs it reads; those it only waits for begin with ^."""
    given = node.get("input")
    names = [one for one in given if isinstance(one, str)] if isinstance(given, list) else []
    return [re.sub(r":\d+$", "", one) for one in names if not one.startswith("^")]


def _source(
    name: str, tensors: Mapping[str, Stored], known: Mapping[str, Any], inputs: Mapping[str, list[str]]
) -> str | None:
    """The weight that comes out of this node unchanged."""
    for _ in range(_MOST_STEPS):
        if name in tensors:
            return name
        if name not in known or known[name].get("op") not in _THROUGH or not inputs[name]:
            return None
        name = inputs[name][0]
    return None


def _used(
    node: Mapping[str, Any],
    given: list[str],
    tensors: Mapping[str, Stored],
    known: Mapping[str, Any],
    inputs: Mapping[str, list[str]],
) -> Iterator[tuple[str, Stored, Layer]]:
    """The weights that this node uses as such, as torch has them."""
    sources = [_source(one, tensors, known, inputs) for one in given[:2]]
    first, second = [one or "" for one in [*sources, None, None][:2]]
    sides = len(tensors[second].shape) if second else 0
    op = node.get("op")
    if op in _CONVOLUTIONS | _TRANSPOSED and 3 <= sides <= 5:
        yield second, convolution(tensors[second], transposed=op in _TRANSPOSED), Layer("convolution")
    elif op in _DEPTHWISE and sides == 4:
        groups = max(1, tensors[second].shape[2])
        yield second, depthwise(tensors[second]), Layer("convolution", groups=groups)
    elif op in _PRODUCTS:
        if sides == 2:
            turned = _flag(node, "transpose_b") or _flag(node, "adj_y")
            yield second, tensors[second], Layer("linear", inputs_first=not turned)
        if first and len(tensors[first].shape) == 2:
            turned = _flag(node, "transpose_a") or _flag(node, "adj_x")
            yield first, tensors[first], Layer("linear", inputs_first=turned)
    elif op in _LOOKUPS and first and len(tensors[first].shape) == 2:
        yield first, tensors[first], Layer("embedding")


def _attribute(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    attributes = node.get("attr")
    value = attributes.get(name) if isinstance(attributes, dict) else None
    return value if isinstance(value, dict) else {}


def _flag(node: Mapping[str, Any], name: str) -> bool:
    return _attribute(node, name).get("b") is True


def _has_bias(node: Mapping[str, Any], given: list[str]) -> bool:
    """Whether the third input of a fused operation is added to what comes out of it."""
    listed = _attribute(node, "fused_ops").get("list")
    names = listed.get("s") if isinstance(listed, dict) else None
    if len(given) < 3 or not isinstance(names, list) or not names or not isinstance(names[0], str):
        return False
    try:
        return base64.b64decode(names[0]) == b"BiasAdd"
    except (binascii.Error, ValueError):
        return False
