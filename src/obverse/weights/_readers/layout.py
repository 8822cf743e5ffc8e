"""Which stored tensors are weights, and which matrices they hold, by their names and shapes. Not for values.

The names are those of PyTorch and of the usual model files. A convolution is out × in·kh·kw; recurrent
weights are split into gates, fused attention weights into query, key and value where three equal blocks of
rows are what the name stands for, convolutions into their groups where these are known and large enough
to be judged, and the experts of a mixture that are stored in one tensor into one matrix each.
(`query_key_value` is left whole: there the three alternate from head to head, and the number of heads is not
in the file.)

Offsets: in recurrent layers the two biases add up, and weight_ih carries their sum, weight_hh none — but for
the new gate of a GRU, where each keeps its own: the reset gate stands between them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter

from torch import Tensor

from ..._core import BadInput
from .naming import (
    FUSED,
    Layer,
    bias_of,
    is_no_weight,
    is_vector,
    kind_of,
    stored_inputs_first,
    table_shape,
)
from .quantized import dequantized
from .state_dict import joined
from .stored import Packed, Part, Stored, Weight, printable, unread, weight

_LONGEST_NAME = 1000
_GROUP_FROM = 32  # rows and columns of a group that is taken apart by itself; fewer have no bulk
_GATES = {
    1: ("",),
    3: ("reset gate", "update gate", "new gate"),
    4: ("input gate", "forget gate", "cell gate", "output gate"),
}
_PROJECTIONS = ("query", "key", "value")
_RECURRENT = re.compile(r"(?P<module>(?:.*\.)?)weight_(?P<side>ih|hh|hr)(?P<layer>(?:_l\d+)?(?:_reverse)?)")
_SEPARATE = re.compile(r"(?P<module>(?:.*\.)?)(?P<which>[qkv])_proj_weight")
_SUFFIX = re.compile(r"(\.|(?<=_proj)_)weight$")
_PACKED = re.compile(r"(\.weight)?\.(qweight|weight|weight_packed|W_q|_data)$|_blocks$")
_EIGHT_BITS = {"int8", "uint8", "i8", "u8", "qint8", "quint8"}
# One tensor for all experts of a layer, experts × … × …; experts.3.w1 is one expert's own
_EXPERTS = re.compile(r"experts(?!\.\d)|_exps\.")


def weights_in(
    tensors: Mapping[str, Stored],
    origin: str,
    layers: Mapping[str, Layer] | None = None,
    *,
    file: bool = False,
) -> tuple[Weight, ...]:
    """The matrices in these tensors, in their order, each once; `layers` says more about some of them.

    A `file`, as anything of which no layers are known, lists what cannot be read as numbers.
    """
    for name in tensors:
        if len(name) > _LONGEST_NAME:
            raise BadInput(
                f"names of at most {_LONGEST_NAME} characters in {origin}",
                got=printable(name),
                do="shorten it",
            )
    # a module that computes with whole numbers knows their scales; a file of weights does not
    tensors, layers, quantized = joined(tensors, origin), layers or {}, file or layers is None
    known = dequantized(tensors, origin) if quantized else dict(tensors)
    tensors = {name: one for name, one in known.items() if isinstance(one, Stored)}
    gpt2 = any(
        len(one.shape) == 2 and one.shape[1] == 3 * one.shape[0]
        for name, one in tensors.items()
        if name.endswith("c_attn.weight")
    )
    found: list[Weight] = []
    unreadable: list[tuple[int, Weight]] = []  # and before which of the others they stand
    seen = set()
    for name, stored in known.items():
        if isinstance(stored, Packed):
            unreadable.append((len(found), unread(_PACKED.sub("", name), stored, origin)))
            continue
        if not _is_weight(name, stored, origin):
            if quantized and _is_quantized(name, stored):
                unreadable.append((len(found), unread(_SUFFIX.sub("", name), stored, origin)))
            continue
        if stored.identity is not None and stored.identity in seen:
            continue  # tied: the first name stands for both
        seen.add(stored.identity)
        parts = _matrices(name, stored, tensors, layers.get(name), origin, gpt2)
        found += [replace(one, tensor=name) for one in parts]
    if not found:
        kinds = Counter(
            f"matrices of {one.reason}"
            if isinstance(one, Packed)
            else f"{len(one.shape)}-dimensional {printable(one.dtype)}"
            for one in known.values()
        )
        raise BadInput(
            f"floating-point matrices in {origin}",
            got=", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5)) or "no tensors",
            do="audit a file with matrices: biases, norms and other vectors are not judged"
            if known and all(len(one.shape) < 2 for one in known.values())
            else "audit the floating-point weights; integers say nothing without their scales",
        )
    for at, one in reversed(unreadable):
        found.insert(at, one)
    return tuple(found)


def _is_quantized(name: str, stored: Stored) -> bool:
    """Whole numbers of eight bits, or what is called a weight: not positions, not masks."""
    last = name.rpartition(".")[2]
    if len(stored.shape) < 2 or min(stored.shape) < 1 or stored.floating or is_no_weight(name):
        return False
    return (
        bool(stored.unreadable)
        or stored.dtype in _EIGHT_BITS
        or (last.endswith("weight") and stored.dtype != "bool")
    )


def _is_weight(name: str, stored: Stored, origin: str) -> bool:
    if len(stored.shape) < 2 or is_no_weight(name):
        return False
    if stored.dtype.startswith("complex"):
        raise BadInput(
            f"real numbers in {printable(name)} of {origin}",
            got=stored.dtype,
            do="audit its real and imaginary parts",
        )
    if stored.floating and 0 in stored.shape:
        raise BadInput(
            f"at least one value in {printable(name)} of {origin}",
            got=f"shape {stored.shape}",
            do="remove the empty tensor",
        )
    return stored.floating and not is_vector(name, stored.shape)


def _matrices(
    name: str, stored: Stored, tensors: Mapping[str, Stored], layer: Layer | None, origin: str, gpt2: bool
) -> Iterator[Weight]:
    if match := _RECURRENT.fullmatch(name):
        yield from _recurrent(name, stored, tensors, match, origin)
        return
    base = _SUFFIX.sub("", name)
    last = base.rpartition(".")[2].lower()
    bias = bias_of(name, tensors, layer)
    shape = stored.shape
    inputs_first = layer.inputs_first if layer else stored_inputs_first(last, shape, gpt2, bias)
    groups = layer.groups if layer else 1
    rows, columns = shape[0], math.prod(shape[1:])
    if inputs_first:
        rows, columns = groups * shape[1], shape[0] // groups * math.prod(shape[2:])

    def whole(values: Tensor) -> Tensor:
        return outputs_first(values, groups) if inputs_first else values.flatten(1)

    if len(shape) == 2 and rows == 3 * columns and (last in FUSED or name.endswith("in_proj_weight")):
        for index, projection in enumerate(_PROJECTIONS):
            taken = slice(index * columns, (index + 1) * columns)
            part, offsets = Part(stored, _then(whole, taken)), _rows_of(bias, rows, taken)
            title = f"{base} ({projection})"
            yield weight(title, "attention", (columns, columns), part, origin, offsets=offsets)
        return
    offsets = _rows_of(bias, rows, slice(None))
    kind = layer.kind if layer else kind_of(name, base, shape, bool(offsets))
    if match := _SEPARATE.fullmatch(name):  # MultiheadAttention keeps the three biases in one
        kind, start = "attention", "qkv".index(match["which"]) * rows
        bias = tensors.get(f"{match['module']}in_proj_bias")
        offsets = _rows_of(bias, 3 * rows, slice(start, start + rows))
    if kind in ("embedding", "matrix") and layer is None and (table := table_shape(shape)):
        rows, columns = table
    module = layer.module if layer else None
    if groups > 1 and min(rows // groups, columns) >= _GROUP_FROM:
        for index in range(groups):
            taken = slice(index * (rows // groups), (index + 1) * (rows // groups))
            part, offsets = Part(stored, _then(whole, taken)), _rows_of(bias, rows, taken)
            title, size = f"{base} (group {index + 1} of {groups})", (rows // groups, columns)
            yield weight(
                title, kind, size, part, origin, offsets=offsets, module=module, first_output=taken.start
            )
        return
    if layer is None and len(shape) == 3 and _EXPERTS.search(name):
        yield from _experts(name, stored, tensors, origin)
        return
    part = Part(stored, whole, plain=shape == (rows, columns) and not inputs_first)
    yield weight(base, kind, (rows, columns), part, origin, offsets=offsets, module=module, groups=groups)


def _experts(name: str, stored: Stored, tensors: Mapping[str, Stored], origin: str) -> Iterator[Weight]:
    """One matrix for each expert; of those stored in × out, which the biases tell, turned."""
    count, *sides = stored.shape
    turned = any(
        len(one.shape) == 3 and (bias := tensors.get(f"{other}_bias")) is not None
        # what one of them tells holds for those of equal sides too
        and one.shape[1] != one.shape[2] and bias.shape == (one.shape[0], one.shape[2])
        for other, one in tensors.items()
        if _EXPERTS.search(other)
    )  # fmt: skip
    rows, columns = sides[::-1] if turned else sides
    bias = tensors.get(f"{name}_bias")
    fits = bias is not None and bias.floating and bias.shape == (count, rows)
    for index in range(count):
        part = Part(stored, partial(_expert, index=index, turned=turned))
        offsets = [Part(bias, itemgetter(index))] if bias is not None and fits else []
        title = f"{_SUFFIX.sub('', name)} (expert {index + 1} of {count})"
        yield weight(title, "linear", (rows, columns), part, origin, offsets=offsets)


def _expert(values: Tensor, *, index: int, turned: bool) -> Tensor:
    return values[index].T if turned else values[index]


def _recurrent(
    name: str, stored: Stored, tensors: Mapping[str, Stored], match: re.Match[str], origin: str
) -> Iterator[Weight]:
    module, side, suffix = match["module"], match["side"], match["layer"]
    rows, columns = stored.shape[0], math.prod(stored.shape[1:])
    gates: tuple[str, ...] = ("",)
    # With a projection, weight_hh reads its outputs and only weight_hr knows how wide the state is.
    wide = tensors.get(f"{module}weight_hr{suffix}") or tensors.get(f"{module}weight_hh{suffix}")
    if side != "hr" and wide and len(wide.shape) == 2 and wide.shape[1] and rows % wide.shape[1] == 0:
        gates = _GATES.get(rows // wide.shape[1], gates)
    hidden = rows // len(gates)
    for index, gate in enumerate(gates):
        taken = slice(index * hidden, (index + 1) * hidden)
        sides = {"ih": ("ih", "hh"), "hh": (), "hr": ()}[side] if gate != "new gate" else (side,)
        biases = [tensors.get(f"{module}bias_{one}{suffix}") for one in sides]
        offsets = [part for bias in biases for part in _rows_of(bias, rows, taken)]
        title = f"{name} ({gate})" if gate else name
        part = Part(stored, itemgetter(taken))
        yield weight(title, "recurrent", (hidden, columns), part, origin, offsets=offsets)


def _then(cut: Callable[[Tensor], Tensor], taken: slice) -> Callable[[Tensor], Tensor]:
    return lambda values: cut(values)[taken]


def outputs_first(values: Tensor, groups: int = 1) -> Tensor:
    """in × out/groups × … as out × in/groups · …"""
    inputs, outputs, *kernel = values.shape
    apart = values.reshape(groups, inputs // groups, outputs, *kernel)
    return apart.transpose(1, 2).reshape(groups * outputs, -1)


def _rows_of(bias: Stored | None, rows: int, taken: slice) -> list[Part]:
    """These values of a bias, if it is one: a floating-point number for each of `rows`."""
    if bias is None or not bias.floating or math.prod(bias.shape) != rows or rows not in (1, *bias.shape):
        return []
    return [Part(bias, lambda values: values.flatten()[taken])]
