"""Hostile weight files: safetensors, shards, .npz, .npy and .onnx. Not for pickles: see `pickles`."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from random import Random
from typing import Any

import numpy as np

from .case import OUTSIDE, SECRET, Case, Content, Sparse
from .mutate import changed_json, changed_zip, dump, number, some_bytes, text, zipped

SIZES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I64": 8,
    "I32": 4,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
DTYPES = (*SIZES, "F4", "F6_E2M3", "C64", "Q8", "\x1b[31mF32", "", "f32")
Entry = tuple[str, tuple[int, ...], bytes]  # type, shape, bytes
SIDE = 6


def audit(path: str, random: Random | None = None) -> tuple[str, ...]:
    """The audit of a file, as quick as it can be; now and then with a page or as JSON."""
    more: tuple[str, ...] = ()
    if random is not None and random.random() < 0.3:
        more = random.choice((("--json",), ("--out", "made"), ("--layers", "*"), ("--against", path)))
    return ("audit", path, "--samples", "2", *more)


def values(shape: tuple[int, ...], dtype: str, random: Random) -> bytes:
    """Numbers of this type: mostly normal ones, sometimes those that break arithmetic."""
    count = math.prod(shape)
    kind = random.randrange(12)
    if dtype in ("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL", "BF16") or kind == 0:
        return random.randbytes(count * SIZES[dtype])
    if dtype.startswith("I"):
        return np.frombuffer(random.randbytes(8 * count), np.int64).astype(f"i{SIZES[dtype]}").tobytes()
    made = np.array([random.gauss(0, 1) for _ in range(count)]).reshape(shape)
    largest = {"F64": 1.7e308, "F32": 3.4e38, "F16": 65504.0}[dtype]
    if kind == 1:
        made.flat[random.randrange(max(count, 1)) : 1] = random.choice((math.nan, math.inf, -math.inf))
    elif kind == 2:
        made *= largest / 8
    elif kind == 3:
        made *= {"F64": 1e-310, "F32": 1e-42, "F16": 1e-7}[dtype]
    elif kind == 4:
        made *= 0
    elif kind == 5:
        made = np.full(shape, random.choice((1.0, largest, -largest, 1e-30)))
    elif kind == 6 and count:
        made.flat[0] = largest
    elif kind == 7 and count:
        made.flat[random.randrange(count)] = random.choice((math.nan, math.inf, -math.inf))
    with np.errstate(over="ignore", under="ignore"):
        return made.astype({"F64": np.float64, "F32": np.float32, "F16": np.float16}[dtype]).tobytes()


def shape_like(shape: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """Another shape for a tensor that belongs to one of this shape."""
    choices = (
        *(shape, shape, shape[:1], shape[1:], shape[::-1], (1, *shape), (*shape, 1), (), (1,), (0,)),
        *(
            (5, 1, 1),
            (2000, 1, 1),
            tuple(1 for _ in shape),
            (shape[0], *(1 for _ in shape[1:])),
            (3 * shape[0],),
        ),
    )
    return random.choice(choices)


def names_and_shapes(random: Random) -> dict[str, tuple[int, ...]]:
    """One layer under names that mean something to the reader, its parts not always of matching shapes."""
    a, b = random.choice((1, 2, 3, SIDE, 12, 33)), random.choice((1, 2, SIDE, 8, 40))

    def other(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape_like(shape, random)

    base = random.choice(("fc", "features.0", "h.0.attn", "", "a" * 40, text(random)))
    dot = f"{base}." if base else ""
    layers: tuple[dict[str, tuple[int, ...]], ...] = (
        {f"{dot}weight": (a, b), f"{dot}bias": other((a,))},
        {f"{dot}weight": (a, b, 3, 3), f"{dot}bias": other((a,))},
        {f"{dot}weight_orig": (a, b), f"{dot}weight_mask": other((a, b))},
        {f"{dot}weight_v": (a, b), f"{dot}weight_g": other((a, 1))},
        {
            f"{dot}parametrizations.weight.original1": (a, b),
            f"{dot}parametrizations.weight.original0": other((a, 1)),
        },
        {
            f"{dot}weight_ih_l0": (4 * a, b),
            f"{dot}weight_hh_l0": other((4 * a, a)),
            f"{dot}bias_ih_l0": other((4 * a,)),
            f"{dot}bias_hh_l0": other((4 * a,)),
        },
        {
            f"{dot}weight_ih_l0": (3 * a, b),
            f"{dot}weight_hh_l0": (3 * a, a),
            f"{dot}bias_ih_l0": other((3 * a,)),
        },
        {
            f"{dot}weight_hr_l0": other((b, a)),
            f"{dot}weight_ih_l0": (4 * a, 3),
            f"{dot}weight_hh_l0": (4 * a, b),
        },
        {f"{dot}in_proj_weight": (3 * b, b), f"{dot}in_proj_bias": other((3 * b,))},
        {
            f"{dot}q_proj_weight": (a, b),
            f"{dot}k_proj_weight": other((a, b)),
            f"{dot}in_proj_bias": other((3 * a,)),
        },
        {
            f"{dot}c_attn.weight": (b, 3 * b),
            f"{dot}c_attn.bias": other((3 * b,)),
            f"{dot}c_fc.weight": other((b, 4 * b)),
        },
        {f"{dot}embed.weight": other((a, b)), "wte": (a, b)},
        {"W1": (a, b), "b1": other((b,)), text(random): other((a, b))},
        {text(random): (a, b), text(random): (b, a)},
        {
            f"{dot}weight": (a, b),
            f"{dot}weight_scale": other((a, 1)),
            f"{dot}weight_scale_inv": other((a, b)),
        },
    )
    return random.choice(layers)


def entries(random: Random) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for _ in range(random.choice((1, 1, 2))):
        for name, shape in names_and_shapes(random).items():
            dtype = random.choice(tuple(SIZES)) if random.random() < 0.35 else "F32"
            found[name] = (dtype, shape, values(shape, dtype, random))
    return found


def safetensors_bytes(tensors: dict[str, Entry], random: Random | None = None) -> bytes:
    """The file of these tensors; with `random`, its header changed."""
    header: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    if random is None:
        return framed(json.dumps(header).encode(), data)
    if random.random() < 0.2:
        header["__metadata__"] = random.choice(({"format": "pt"}, {text(random): text(random)}, {"a": 1}, []))
    entry = header[random.choice(list(header))] if random.random() < 0.6 else None
    kind = random.randrange(8)
    if not isinstance(entry, dict) or "shape" not in entry or kind >= 5:
        header = changed_json(header, random)
    elif kind == 0:
        entry["dtype"] = random.choice(DTYPES)
    elif kind == 1:
        entry["shape"] = [*entry["shape"][:2], number(random)]
    elif kind == 2:
        entry["data_offsets"] = [number(random), number(random)]
    elif kind == 3:
        entry["shape"] = [number(random) for _ in range(random.randrange(20))]
    else:
        entry["data_offsets"] = [0, len(data)]
    return framed(dump(header).encode(), data, random)


def framed(header: bytes, data: bytes, random: Random | None = None) -> bytes:
    size = len(header)
    if random is not None and random.random() < 0.1:
        size = number(random) % 2**64
    return struct.pack("<Q", size) + header + data


def safetensors(random: Random) -> Case:
    tensors = entries(random)
    if random.random() < 0.55:
        return Case({"m.safetensors": safetensors_bytes(tensors)}, audit("m.safetensors", random))
    whole = safetensors_bytes(tensors, random)
    content: Content = whole
    if random.random() < 0.2:
        content = some_bytes(whole, random)
    elif random.random() < 0.02:
        content = Sparse(struct.pack("<Q", random.choice((100, 2**27, 2**40))) + b"{", 2**31)
    return Case({"m.safetensors": content}, audit("m.safetensors", random))


def shards(random: Random) -> Case:
    """Two files and an index that says which tensor is in which."""
    first, second = entries(random), entries(random)
    names = dict.fromkeys(first, "model-1.safetensors") | dict.fromkeys(second, "model-2.safetensors")
    index: dict[str, Any] = {"metadata": {"total_size": 10}, "weight_map": names}
    files: dict[str, Content] = {
        "model-1.safetensors": safetensors_bytes(first, random if random.random() < 0.2 else None),
        "model-2.safetensors": safetensors_bytes(second),
        OUTSIDE: safetensors_bytes({f"{SECRET}.weight": ("F32", (2, 2), b"\0" * 16)}),
    }
    kind = random.randrange(6)
    if kind == 0:
        names[random.choice(list(names))] = text(random)
    elif kind == 1:
        names[f"{SECRET}.weight"] = random.choice((OUTSIDE, f"./{OUTSIDE}", "a/../../outside", "outside"))
    elif kind == 2:
        names[text(random)] = "model-1.safetensors"
    elif kind == 3:
        del files["model-2.safetensors"]
    content = dump(index if kind < 4 else changed_json(index, random)).encode()
    name = "model.safetensors.index.json"
    files[name] = some_bytes(content, random) if random.random() < 0.1 else content
    if random.random() < 0.02:
        files[name] = Sparse(content, 2**31)
    return Case(files, audit(random.choice((".", name)), random))


DESCRIPTIONS = (
    "<f4",
    "<f8",
    ">f4",
    "<f2",
    "|i1",
    "<u8",
    "<i8",
    "|b1",
    "<c8",
    "<c16",
    "<f16",
    "|O",
    "<U3",
    "|S4",
    "|V7",
    "<M8[s]",
    "<m8",
)


def npy_bytes(random: Random) -> bytes:
    """An array with a header of our own."""
    shape: Any = random.choice(((4, 6), (12, 5), (3, 3, 3), (7,), (), (0, 4), (2, 1, 1, 5)))
    descr: Any = random.choice(DESCRIPTIONS) if random.random() < 0.4 else "<f4"
    data = np.array([random.gauss(0, 1) for _ in range(math.prod(shape))], np.float32).tobytes()
    if random.random() < 0.5 and descr in DESCRIPTIONS and descr not in ("|O",):
        data = random.randbytes(math.prod(shape) * np.dtype(descr).itemsize)
    fortran: Any = random.random() < 0.2
    kind = random.randrange(10)
    if kind == 0:
        shape = tuple(number(random) for _ in range(random.randrange(1, 5)))
    elif kind == 1:
        shape = random.choice(
            ((-2, -12), (2**32, 2**32), (24, -1), ("a",), 24, [4, 6], (True, 24), (4.0, 6), (1,) * 70)
        )
    elif kind == 2:
        descr = random.choice(
            ([("a", "<f4")], [("a", "<f4", (3,))], "f4", "", "<f3", text(random), None, {"names": []})
        )
    elif kind == 3:
        fortran = random.choice((1, "x", None))
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape})
    if kind == 4:
        header = random.choice(
            (
                "__import__('os').system('touch EXECUTED')",
                header[:-1],
                header + "+1",
                "(" * 5000,
                "{" + "'a':1," * 3000 + "}",
            )
        )
    return npy_framed(header, data, random)


def npy_framed(header: str, data: bytes, random: Random) -> bytes:
    content = header.encode("utf-8", "replace") + b" " * (-len(header) % 16) + b"\n"
    version = random.choice((1, 1, 1, 1, 2, 3, 9))
    size = struct.pack("<H" if version == 1 else "<I", len(content) % 65536 if version == 1 else len(content))
    return b"\x93NUMPY" + bytes((version, 0)) + size + content + data


def npy(random: Random) -> Case:
    content = npy_bytes(random)
    if random.random() < 0.3:
        content = some_bytes(content, random)
    name = random.choice(("m.npy", "samples.npy"))
    return Case({name: content}, audit(name, random) if name == "m.npy" else ("unlabelled", name))


def npz(random: Random) -> Case:
    """Of weights, of a data set, or of samples."""
    kind = random.randrange(3)
    if kind == 0:
        members = {f"{name}.npy": npy_bytes(random) for name in names_and_shapes(random)}
    else:
        count = random.choice((0, 1, 2, 5, 12))
        x = np.array([random.random() for _ in range(count * 12)]).reshape(
            random.choice(((count, 12), (count, 3, 4), (count, 1, 3, 4), (count, 3, 4, 1)))
        )
        y = np.array(
            [
                random.choice((0, 1, 2, number(random) % 2**31)) if random.random() < 0.1 else 1
                for _ in range(count)
            ],
            "i8",
        ).astype(random.choice(("i8", "u1", "f4", "?")))
        members = {
            "x.npy": saved(x.astype(random.choice(("f4", "f8", "u1", "i4", "c8", "f2")))),
            "y.npy": saved(y),
        }
        if random.random() < 0.3:
            members = {
                f"{part}_{name}": content for name, content in members.items() for part in ("train", "test")
            }
        if random.random() < 0.4:
            members[random.choice(list(members))] = npy_bytes(random)
    compression = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    content = changed_zip(members, random) if random.random() < 0.6 else zipped(members, compression)
    words = (audit("m.npz", random), ("data", "m.npz"), ("unlabelled", "m.npz"))
    return Case({"m.npz": content}, words[kind])


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def onnx(random: Random) -> Case:
    """A graph of one to three nodes with initializers that do not always fit them."""
    from onnx import TensorProto, helper

    kinds = {
        "F32": TensorProto.FLOAT,
        "F64": TensorProto.DOUBLE,
        "F16": TensorProto.FLOAT16,
        "BF16": TensorProto.BFLOAT16,
        "I64": TensorProto.INT64,
        "I8": TensorProto.INT8,
        "U8": TensorProto.UINT8,
        "F8_E4M3": TensorProto.FLOAT8E4M3FN,
    }
    a, b = random.choice((1, 2, SIDE, 12)), random.choice((1, 3, SIDE))
    operators: dict[str, list[tuple[int, ...]]] = {
        "Gemm": [(a, b), (a,)],
        "MatMul": [(b, a)],
        "Conv": [(a, b, 3, 3), (a,)],
        "ConvTranspose": [(a, b, 3, 3), (b,)],
        "Gather": [(a, b)],
        "LSTM": [(1, 4 * a, b), (1, 4 * a, a), (1, 8 * a)],
        "GRU": [(2, 3 * a, b), (2, 3 * a, a), (2, 6 * a)],
        "DequantizeLinear": [(a, b), (a,), (a,)],
        "QLinearMatMul": [(a, b), (), (), (b, a), (b,), (b,)],
        "QLinearConv": [(), (), (a, b, 3, 3), (a,), (a,)],
    }
    nodes, tensors = [], []
    for place in range(random.choice((1, 1, 2, 3))):
        operator = random.choice(list(operators))
        names = []
        for index, shape in enumerate(operators[operator]):
            start = "onnx::" if random.random() < 0.3 else ""
            name = f"{start}{text(random) if random.random() < 0.1 else f'w{place}'}_{index}"
            name = name.encode("utf-8", "replace").decode()
            if random.random() < 0.3:
                shape = shape_like(shape or (1,), random)
            dtype = random.choice(tuple(kinds)) if random.random() < 0.3 or "Linear" in operator else "F32"
            tensor = TensorProto(
                name=name, data_type=kinds[dtype], dims=shape, raw_data=values(shape, dtype, random)
            )
            _spoil(tensor, random)
            tensors.append(tensor)
            names.append(name)
        node = helper.make_node(
            operator, ["x", *names], [f"y{place}"], name=random.choice(("", f"/n{place}", "\x1b[1mnode"))
        )
        for attribute in random.sample(
            ("group", "transA", "transB", "axis", "hidden_size", "block_size"), random.randrange(3)
        ):
            node.attribute.append(
                helper.make_attribute(attribute, max(-(2**63), min(2**63 - 1, number(random))))
            )
        if random.random() < 0.15:
            del node.input[random.randrange(len(node.input)) :]
        nodes.append(node)
        if operator in ("DequantizeLinear", "MatMul"):
            nodes.append(
                helper.make_node(
                    random.choice(("Add", "MatMul", "Gemm")), [f"y{place}", random.choice(names)], ["z"]
                )
            )
    content = helper.make_model(helper.make_graph(nodes, "g", [], [], tensors)).SerializeToString()
    if random.random() < 0.25:
        content = some_bytes(content, random)
    return Case({"m.onnx": content, "data.bin": bytes(400), OUTSIDE: bytes(400)}, audit("m.onnx", random))


def _spoil(tensor: Any, random: Random) -> None:
    """Dimensions, type or data that do not fit each other; now and then data in another file."""
    kind = random.randrange(14)
    if kind == 0:
        tensor.dims[:] = [max(-(2**63), min(2**63 - 1, number(random))) for _ in range(random.randrange(5))]
    elif kind == 1:
        tensor.data_type = random.choice((0, 1, 7, 8, 10, 14, 16, 17, 21, 22, 99))
    elif kind == 2:
        tensor.raw_data = tensor.raw_data[: random.randrange(len(tensor.raw_data) + 1)]
    elif kind == 3:
        tensor.ClearField("raw_data")
        tensor.float_data.extend([0.5] * random.choice((0, 1, math.prod(tensor.dims) % 1000)))
    elif kind == 4:
        size = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = tensor.EXTERNAL
        location = random.choice(
            (
                "data.bin",
                "data.bin",
                OUTSIDE,
                "/etc/passwd",
                text(random).replace("\ud800", "?").replace("\udfff", "?"),
            )
        )
        for key, value in (
            ("location", location),
            ("offset", str(random.choice((0, 4, number(random))))),
            ("length", str(random.choice((size, size, number(random))))),
        ):
            if random.random() < 0.9:
                tensor.external_data.add(key=key, value=value)
