"""Weights in .onnx files: the initializers, turned the way their nodes use them. Not for running a graph.

The file itself is read whole (its format ends at 2 GB); data that it keeps in files of its own is read one
tensor at a time. Constants inside nodes, branches and loops are not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..._core import BadInput, require
from .disk import inside, read_span
from .layout import weights_in
from .naming import Layer
from .stored import FLOATING, Stored, Weight, printable

_DTYPES = {name: getattr(torch, name) for name in (*FLOATING, "complex64", "complex128")}
_NAMES = {"float": "float32", "double": "float64"}  # ONNX's names of types, where they are not torch's
_GATES = {"RNN": [0], "LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}  # where ONNX keeps torch's gates
_DO = "export the model again"


def open_onnx(path: Path) -> tuple[Weight, ...]:
    """The weights of the main graph; what the exporter only numbered is named after its node."""
    onnx = require("onnx", "onnx")
    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception as error:  # protobuf's errors have no class in common
        raise BadInput(f"an ONNX model in {path}", got=printable(str(error)), do=_DO) from None
    if not all(isinstance(one.name, str) for one in (*graph.initializer, *graph.node)):  # else bytes
        raise BadInput(f"names in UTF-8 in {path}", got="other bytes", do=_DO)
    types = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    stored = {one.name: _stored(path, one, types.get(one.data_type, "unknown")) for one in graph.initializer}
    recurrent: dict[str, Stored] = {}
    layers: dict[str, Layer] = {}
    titles = {name: name for name in stored}
    for node in graph.node:
        if gates := _gates(node, stored):
            recurrent |= gates
            for name in node.input[1:4]:
                titles.pop(name, None)
    added = {one: two for node in graph.node if node.op_type == "Add" for one, two in _pairs(node.input)}
    for node in graph.node:
        for name, layer in _layers(node, added):
            if name in titles and name not in layers:
                layers[name] = _checked(layer, stored[name], f"{printable(name)} in {path}")
                if name.startswith("onnx::") and node.name:
                    titles[name] = node.name
    # What no node uses as a weight and is one row is something to add or multiply by.
    named = {title: stored[name] if name in layers else _flat(stored[name]) for name, title in titles.items()}
    return weights_in(named | recurrent, str(path), {titles[name]: one for name, one in layers.items()})


def external_files(path: Path) -> set[Path]:
    """The files beside an ONNX file that it keeps data in."""
    graph = require("onnx", "onnx").load(str(path), load_external_data=False).graph
    entries = [entry for one in graph.initializer for entry in one.external_data if entry.key == "location"]
    return {inside(path.parent, entry.value, path) for entry in entries}


def _stored(path: Path, tensor: Any, kind: str) -> Stored:
    """Where the numbers of an initializer are, once they have been found to be as many as it says."""
    shape, name = tuple(tensor.dims), _NAMES.get(kind, kind.replace("float8e", "float8_e"))
    where = f"{printable(tensor.name)} in {path}"
    if any(side < 0 for side in shape):
        raise BadInput(f"a shape for {where}", got=shape, do=_DO)
    dtype = _DTYPES.get(name)
    if dtype is None:  # integers and the like
        return Stored(shape, name, partial(_no_numbers, where, name))
    count = math.prod(shape)
    if tensor.data_location == tensor.EXTERNAL:
        return Stored(shape, name, _external(path, tensor, dtype, count * dtype.itemsize, where))
    if tensor.HasField("raw_data"):
        got, needed = len(tensor.raw_data), count * dtype.itemsize
    else:
        from onnx.helper import tensor_dtype_to_field

        got = len(getattr(tensor, tensor_dtype_to_field(tensor.data_type)))
        needed = count * (1 + dtype.is_complex)
    if got != needed:
        raise BadInput(f"{needed:,} bytes or numbers for {where}", got=f"{got:,}", do=_DO)
    return Stored(shape, name, lambda: _values(tensor, dtype).reshape(shape))


def _flat(stored: Stored) -> Stored:
    """A vector as such, however many dimensions of one it has."""
    if len(stored.shape) < 2 or sum(side != 1 for side in stored.shape) > 1:
        return stored
    return replace(stored, shape=(math.prod(stored.shape),), load=lambda: stored.load().flatten())


def _no_numbers(where: str, kind: str) -> Tensor:
    raise BadInput(f"floating-point numbers for {where}", got=kind, do=_DO)


def _values(tensor: Any, dtype: torch.dtype) -> Tensor:
    from onnx.numpy_helper import to_array

    # through bytes: NumPy has no bfloat16 and float8 of its own, and torch does not take those of others
    return torch.frombuffer(bytearray(to_array(tensor).tobytes()), dtype=dtype)


def _external(path: Path, tensor: Any, dtype: torch.dtype, size: int, where: str) -> Callable[[], Tensor]:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    file = inside(path.parent, entries.get("location"), path)
    start, length = (
        _number(entries.get(key, default)) for key, default in (("offset", "0"), ("length", size))
    )
    room = file.stat().st_size
    if length != size or not 0 <= start <= room - size:
        got = f"{length:,} from {start:,} of {room:,}"
        raise BadInput(f"{size:,} bytes in {file.name} for {where}", got=got, do=_DO)
    shape = tuple(tensor.dims)
    return lambda: read_span(file, start, size, where).view(dtype).reshape(shape)


def _number(text: object) -> int:
    return int(str(text)) if str(text).isdecimal() and len(str(text)) < 20 else -1


def _pairs(inputs: Any) -> Iterator[tuple[str, str]]:
    if len(inputs) == 2:
        yield inputs[0], inputs[1]
        yield inputs[1], inputs[0]


def _layers(node: Any, added: Mapping[str, str]) -> Iterator[tuple[str, Layer]]:
    """The inputs of a node that are weights where they are stored, and how they lie."""
    inputs = [*node.input, "", "", ""]
    options = {option.name: option.i for option in node.attribute}
    if node.op_type == "Conv":
        yield inputs[1], Layer("convolution", groups=options.get("group", 1), bias=inputs[2])
    elif node.op_type == "ConvTranspose":
        groups = options.get("group", 1)
        yield inputs[1], Layer("convolution", inputs_first=True, groups=groups, bias=inputs[2])
    elif node.op_type == "Gemm":  # A · B + C, either of them transposed where the node says so
        yield inputs[1], Layer("linear", inputs_first=not options.get("transB", 0), bias=inputs[2])
        yield inputs[0], Layer("linear", inputs_first=bool(options.get("transA", 0)))
    elif node.op_type == "MatMul":
        bias = added.get(node.output[0]) if node.output else None
        yield inputs[1], Layer("linear", inputs_first=True, bias=bias)
        yield inputs[0], Layer("linear")
    elif node.op_type == "Gather":
        yield inputs[0], Layer("embedding")


def _checked(layer: Layer, stored: Stored, where: str) -> Layer:
    if layer.kind == "linear" and len(stored.shape) != 2:
        return Layer("matrix")  # a stack of matrices, which no one matrix stands for
    if layer.groups < 1 or (stored.shape and stored.shape[0] % layer.groups):
        side, got = "inputs" if layer.inputs_first else "outputs", f"{layer.groups} for shape {stored.shape}"
        raise BadInput(f"groups that divide the {side} of {where}", got=got, do=_DO)
    return layer


def _gates(node: Any, stored: Mapping[str, Stored]) -> dict[str, Stored]:
    """What a recurrent node reads (directions × gates · hidden × inputs), as torch names and orders it."""
    order = _GATES.get(node.op_type)
    inner, outer, bias = (stored.get(name) for name in [*node.input, "", "", "", ""][1:4])
    if not order or not inner or not outer or len(outer.shape) != 3 or len(inner.shape) != 3:
        return {}
    directions, rows, hidden = outer.shape
    if directions not in (1, 2) or rows != len(order) * hidden or inner.shape[:2] != (directions, rows):
        return {}
    parts = {}
    module = node.name or node.input[1]
    for direction in range(directions):
        suffix = "_l0" + "_reverse" * direction
        for side, one in (("ih", inner), ("hh", outer)):
            load = partial(_turned, one, direction, order, 0, one.shape[1:])
            parts[f"{module}.weight_{side}{suffix}"] = Stored(one.shape[1:], one.dtype, load)
        if bias and bias.shape == (directions, 2 * rows):
            for index, side in enumerate(("ih", "hh")):
                load = partial(_turned, bias, direction, order, index, (rows,))
                parts[f"{module}.bias_{side}{suffix}"] = Stored((rows,), bias.dtype, load)
    return parts


def _turned(stored: Stored, direction: int, order: list[int], block: int, shape: tuple[int, ...]) -> Tensor:
    """One direction with its gates in torch's order; `block` says which of the two biases."""
    blocks = stored.load()[direction].reshape(-1, len(order), math.prod(shape) // len(order))
    return blocks[block][order].reshape(shape)
