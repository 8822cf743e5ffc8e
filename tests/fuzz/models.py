"""Hostile models of other tools: GGUF, Keras, TensorFlow.js, llama2.c, TorchScript and pickled arrays."""

from __future__ import annotations

import io
import json
import math
import pickle
import struct
import warnings
from functools import cache
from random import Random
from typing import Any

import numpy as np

from weights.gguf_files import Raw, gguf_bytes, pair
from weights.gguf_files import text as gguf_text

from .case import OUTSIDE, SECRET, Case, Content, Sparse
from .mutate import changed_json, changed_zip, dump, number, some_bytes, text, unzipped, zipped
from .pickles import changed_pickle
from .weights import SIDE, audit, names_and_shapes, values

# Number, entries of a block, bytes of a block: some are types that gguf doesn't dequantize or know.
BLOCKS = (
    *((0, 1, 4), (1, 1, 2), (28, 1, 8), (30, 1, 2), (24, 1, 1), (2, 32, 18), (3, 32, 20), (6, 32, 22)),
    *((8, 32, 34), (12, 256, 144), (14, 256, 210), (16, 256, 66), (19, 256, 50), (29, 256, 56), (39, 32, 17)),
    *((15, 256, 292), (4, 32, 20), (36, 32, 18), (99, 1, 1), (2**32 - 1, 1, 1)),
)
PARTS = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf")


def _gguf_tensors(random: Random) -> dict[Any, Raw]:
    found: dict[Any, Raw] = {}
    names = [name for _ in range(random.choice((1, 1, 2))) for name in names_and_shapes(random)]
    names += [
        f"blk.{random.randrange(3)}.{one}" for one in ("attn_qkv.weight", "ffn_up_exps.weight", "attn_q.bias")
    ]
    for name in random.sample(names, min(len(names), random.choice((1, 2, 4)))):
        kind, block, size = random.choice(BLOCKS) if random.random() < 0.6 else BLOCKS[0]
        sides = [block * random.choice((1, 1, 2)) * (SIDE if block == 1 else 1)]
        sides += [random.choice((1, 2, SIDE, 40)) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
        count = math.prod(sides)
        content = values((count,), "F32", random) if kind == 0 else random.randbytes(count // block * size)
        start = None
        change = random.randrange(25)
        if change == 0:
            sides[random.randrange(len(sides))] = number(random) % 2**64
        elif change == 1:
            sides = [number(random) % 2**64 for _ in range(random.randrange(7))]
        elif change == 2:
            start = number(random) % 2**64
        elif change == 3:
            content = content[: random.randrange(len(content) + 1)]
        if random.random() < 0.1:
            name = text(random)
        found[name.encode("utf-8", "replace")] = Raw(tuple(sides), kind, content, start)
    return found


def _gguf_pair(random: Random) -> bytes:
    key = random.choice(
        ("general.alignment", "general.architecture", "split.count", "tokenizer.ggml.tokens", "x")
    )
    kind = random.choice((*range(13), 99, 2**32 - 1))
    content = random.randbytes(8)
    if kind == 8:
        content = gguf_text(text(random).encode("utf-8", "replace"))
    elif kind == 9:
        inner = random.choice((0, 4, 6, 8, 8, 9, 50))
        count = random.choice((0, 1, 3, number(random) % 2**64))
        content = struct.pack("<IQ", inner, count) + b"".join(gguf_text("ab") for _ in range(3))
    if random.random() < 0.3:
        kind, content = (
            4,
            struct.pack("<I", random.choice((0, 1, 3, 8, 32, 64, 2**31, number(random) % 2**32))),
        )
    return pair(key, kind, content)


def _gguf_bytes(random: Random) -> bytes:
    pairs = [_gguf_pair(random) for _ in range(random.choice((0, 0, 1, 3)))]
    count = number(random) % 2**64 if random.random() < 0.08 else None
    version = random.choice((2, 1, 0, 4, 3 << 24, 2**32 - 1)) if random.random() < 0.1 else 3
    content = gguf_bytes(_gguf_tensors(random), *pairs, version=version, count=count)
    return some_bytes(content, random) if random.random() < 0.25 else content


def gguf(random: Random) -> Case:
    if random.random() < 0.85:
        content: Content = _gguf_bytes(random)
        if random.random() < 0.03:
            content = Sparse(gguf_bytes({}, pair("x", 9, struct.pack("<IQ", 8, 2**22)))[:80], 2**31)
        return Case({"m.gguf": content}, audit("m.gguf", random))
    files: dict[str, Content] = {name: _gguf_bytes(random) for name in PARTS}
    if random.random() < 0.3:
        del files[random.choice(PARTS)]
    if random.random() < 0.3:
        files["m-00003-of-00002.gguf"] = files["m-99999-of-99999.gguf"] = b"GGUF"
    return Case(files, audit(random.choice((".", *files)), random))


def _variables(random: Random) -> dict[str, tuple[int, ...]]:
    a, b = random.choice((1, 2, SIDE, 12)), random.choice((1, 3, SIDE))
    choices: tuple[dict[str, tuple[int, ...]], ...] = (
        {"dense/kernel:0": (b, a), "dense/bias:0": (a,)},
        {"conv2d/kernel:0": (3, 3, b, a), "conv2d/bias:0": (a,)},
        {"conv2d_transpose/kernel:0": (3, 3, a, b), "conv2d_transpose/bias:0": (a,)},
        {
            "deep/depthwise_kernel:0": (3, 3, b, 2),
            "deep/pointwise_kernel:0": (1, 1, 2 * b, a),
            "deep/bias:0": (a,),
        },
        {"lstm/kernel:0": (b, 4 * a), "lstm/recurrent_kernel:0": (a, 4 * a), "lstm/bias:0": (4 * a,)},
        {"gru/kernel:0": (b, 3 * a), "gru/recurrent_kernel:0": (a, 3 * a), "gru/bias:0": (2, 3 * a)},
        {"words/embeddings:0": (a, b)},
        {"a/query/kernel:0": (b, 2, a), "a/query/bias:0": (2, a), "a/output_dense/kernel:0": (2, a, b)},
        {"conv1d/kernel:0": (3, b, a), "l_W": (b, a), "lstm_U_i": (a, a), "l_b": (a,)},
    )
    found = dict(random.choice(choices))
    if random.random() < 0.3:
        name = random.choice(list(found))
        found[name] = tuple(random.choice((0, 1, 2, 5, 12)) for _ in range(random.randrange(7)))
    return found


CONFIGS = (
    *("{", "[]", "3", "[" * 3000, '{"config": {"layers": 3}}', '{"config": {"layers": [{"class_name": 3}]}}'),
    json.dumps({"config": {"layers": [{"class_name": "Conv2D", "config": {"name": "dense", "groups": 0}}]}}),
    json.dumps(
        {"config": {"layers": [{"class_name": "x" * 500, "config": {"name": "\x1b[31m", "groups": -3}}]}}
    ),
)


def _h5_bytes(random: Random) -> bytes:
    """A sound file with odd things in it: links, packed and missing numbers, lists that are none."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w", libver=random.choice((None, "latest"))) as file:
        root = file.create_group("model_weights") if random.random() < 0.3 else file
        listed = random.random() < 0.5
        variables = _variables(random)
        layers = sorted({name.split("/")[0] for name in variables})
        if listed:
            root.attrs["layer_names"] = [one.encode() for one in layers]
        if random.random() < 0.3:
            file.attrs["model_config"] = random.choice(CONFIGS)
        for place, (name, shape) in enumerate(variables.items()):
            where = f"{name.split('/')[0]}/{name}" if listed else f"layers/{name.split('/')[0]}/vars/{place}"
            _dataset(root, where, shape, random)
        for one in layers if listed else ():
            names = [name.encode() for name in variables if name.split("/")[0] == one]
            wrong = (3, [1.5, 2.0], [b"missing"], [b"../../outside"], [b"a\x1b[31m"], "kernel:0", [b""])
            root[one].attrs["weight_names"] = names if random.random() < 0.85 else random.choice(wrong)
        kind = random.randrange(10)
        target = root[random.choice(list(root))] if len(root) else root
        if isinstance(target, h5py.Group):
            if kind == 0:
                target["linked"] = h5py.ExternalLink(OUTSIDE, "/a")
            elif kind == 1:
                target["linked"] = h5py.SoftLink(random.choice(("/", "..", "/missing", OUTSIDE)))
            elif kind == 2:
                target["itself"] = target
            elif kind == 3:
                target.create_dataset("0", (SIDE, SIDE), "f4", external=OUTSIDE)
            elif kind == 4:
                target[random.choice(("x", "\x1b[31mred", "é" * 90, "y" * 1200))] = np.ones((3, 4), "f4")
    return stream.getvalue()


def _dataset(group: Any, name: str, shape: tuple[int, ...], random: Random) -> None:
    numbers = np.frombuffer(values(shape, "F32", random), np.float32).reshape(shape)
    dtype = random.choice(("<f4", "<f4", "<f4", "<f2", ">f8", "<i4", "|u1", "?", "<c8", "|V2", "|S3"))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = numbers.view("V4")[...].astype("V2") if dtype == "|V2" else numbers.astype(dtype)
    options: dict[str, Any] = {}
    if shape and min(shape) > 0 and random.random() < 0.4:
        options = {"chunks": tuple(random.randrange(1, side + 1) for side in shape)}
        for key, value in (
            ("compression", random.choice(("gzip", "lzf"))),
            ("shuffle", True),
            ("fletcher32", True),
        ):
            if random.random() < 0.4:
                options[key] = value
    if random.random() < 0.1:
        large = tuple(random.choice((10, 2**20, 2**40)) for _ in range(random.randrange(1, 4)))
        group.create_dataset(name, large, "f4", chunks=tuple(min(side, 1000) for side in large))
        return
    dataset = group.create_dataset(name, data=numbers, **options)
    if dtype == "|V2":
        dataset.attrs["dtype"] = "bfloat16"
    if options and random.random() < 0.1:
        dataset.id.write_direct_chunk(
            (0,) * len(shape), random.choice((b"\0", random.randbytes(50), bytes(5000)))
        )


def keras(random: Random) -> Case:
    content = _h5_bytes(random)
    if random.random() < 0.45:
        content = _hit(content, random)
    name = random.choice(("m.h5", "m.hdf5", "m.keras"))
    if random.random() < 0.3:
        members = {
            "metadata.json": b"{}",
            "config.json": random.choice(CONFIGS).encode(),
            "model.weights.h5": content,
        }
        content = changed_zip(members, random) if random.random() < 0.5 else zipped(members)
    return Case(
        {name: content, OUTSIDE: SECRET.encode() * 50}, audit(random.choice((name, name, ".")), random)
    )


def _hit(content: bytes, random: Random) -> bytes:
    """Changes where something is: most of an HDF5 file is empty."""
    if random.random() < 0.3:
        return some_bytes(content, random)
    data = bytearray(content)
    places = [at for at, one in enumerate(data) if one]
    for _ in range(random.randrange(1, 5)):
        data[random.choice(places)] = random.choice((0, 1, 2, 127, 128, 255, random.randrange(256)))
    return bytes(data)


OPERATIONS = (
    *(
        "Conv2D",
        "_FusedConv2D",
        "DepthwiseConv2dNative",
        "Conv2DBackpropInput",
        "MatMul",
        "GatherV2",
        "Identity",
    ),
    *("BiasAdd", "AddV2", "Const", "Mul"),
)


def _graph(names: list[str], random: Random) -> list[Any]:
    nodes: list[Any] = [{"name": name, "op": "Const"} for name in names]
    for at in range(random.randrange(1, 6)):
        inputs = [random.choice([*names, "x", f"n{random.randrange(6)}", "^x"]) for _ in range(3)]
        attributes = {
            "transpose_b": {"b": True},
            "fused_ops": {"list": {"s": [random.choice(("Qmlhc0FkZA==", "?"))]}},
        }
        nodes.append({"name": f"n{at}", "op": random.choice(OPERATIONS), "input": inputs, "attr": attributes})
    return nodes


def tfjs(random: Random) -> Case:
    entries, data = [], b""
    names = [name.removesuffix(":0") for name in _variables(random)]
    for name, shape in zip(names, _variables(random).values(), strict=False):
        entry: dict[str, Any] = {"name": name, "shape": list(shape), "dtype": "float32"}
        size, count = 4, math.prod(shape)
        if random.random() < 0.3:
            packed, size = random.choice((("uint8", 1), ("uint16", 2), ("float16", 2), ("int8", 1)))
            entry["quantization"] = {"dtype": packed, "scale": 0.01, "min": -1}
        elif random.random() < 0.2:
            entry["dtype"], size = random.choice(
                (("int32", 4), ("bool", 1), ("complex64", 8), ("string", 9), ("q", 1))
            )
        content = values(shape, "F32", random) if size == 4 else random.randbytes(count * size)
        data += content
        entries.append(entry)
    step = random.choice((1, 7, 100, 10**6)) if len(data) < 3000 else 1000
    parts = [data[at : at + step] for at in range(0, len(data), step)]
    files: dict[str, Content] = {f"shard{at}.bin": part for at, part in enumerate(parts)}
    files[OUTSIDE] = SECRET.encode() * 100
    topology: Any = (
        {"node": _graph(names, random)} if random.random() < 0.4 else {"model_config": {"config": {}}}
    )
    paths: list[Any] = [name for name in files if name != OUTSIDE]
    if random.random() < 0.1:
        paths[-1:] = [random.choice((OUTSIDE, "/etc/passwd", text(random), "missing.bin", 3, "."))]
    model: Any = {"modelTopology": topology, "weightsManifest": [{"paths": paths, "weights": entries}]}
    if random.random() < 0.6:
        model = changed_json(model, random)
    content = dump(model).encode("utf-8", "replace")
    if random.random() < 0.1:
        content = some_bytes(content, random)
    files["model.json"] = Sparse(content, 2**31) if random.random() < 0.01 else content
    return Case(files, audit(random.choice(("model.json", "model.json", ".")), random))


def llama2c(random: Random) -> Case:
    numbers = [8, 12, random.choice((0, 1, 2)), 2, random.choice((1, 2)), random.choice((20, -20)), 4]
    dim, hidden, layers, heads, kv, words, length = numbers
    kept = abs(words) * dim * (1 + (words < 0)) + dim
    kept += layers * (2 * dim + 2 * dim * dim + 2 * dim * dim // heads * kv + 3 * dim * hidden)
    new = random.random() < 0.4
    kept += 0 if new else length * dim // heads
    if random.random() < 0.4:
        numbers[random.randrange(7)] = max(-(2**31), min(2**31 - 1, number(random)))
    head = struct.pack("<7i", *numbers)
    if new:
        version = random.choice((1, 1, 1, 2, 3))
        head = (struct.pack("<Ii", 0x616B3432, version) + head + bytes((words > 0,))).ljust(256, b"\0")
    content = head + values((kept,), "F32", random)
    if random.random() < 0.3:
        parts = [struct.pack("<fi", 0, 1 + at % 3) + b"x" * (1 + at % 3) for at in range(abs(words))]
        tokenizer = struct.pack("<i", 3) + b"".join(parts)
        content += some_bytes(tokenizer, random) if random.random() < 0.5 else tokenizer
    if random.random() < 0.3:
        content = some_bytes(content, random)
    name = random.choice(("m.bin", "m.bin", "m.data"))
    if random.random() < 0.02:
        return Case({name: Sparse(content, 2**31)}, audit(name, random))
    return Case({name: content}, audit(name, random))


@cache
def _script() -> bytes:
    """A real archive of TorchScript."""
    import torch
    from torch import nn

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = torch.jit.script(nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Conv2d(2, 3, 3)))
        stream = io.BytesIO()
        torch.jit.save(net, stream)
    return stream.getvalue()


def script(random: Random) -> Case:
    members = unzipped(_script())
    main = next(name for name in members if name.endswith("/data.pkl"))
    if random.random() < 0.7:
        members[main] = changed_pickle(members[main], random)
    content = changed_zip(members, random) if random.random() < 0.4 else zipped(members)
    if random.random() < 0.15:
        content = some_bytes(_script(), random)
    return Case({"m.pt": content}, audit("m.pt", random))


def _arrays(random: Random) -> Any:
    found: dict[str, Any] = {}
    for name, shape in _variables(random).items():
        array = np.frombuffer(values(shape, "F32", random), np.float32).reshape(shape)
        with np.errstate(all="ignore"):
            array = array.astype(random.choice(("<f4", "<f4", "<f2", ">f8", "<i8", "?", "<c8", "O", "<U3")))
        found[name.partition("/")[2] or name] = np.asfortranarray(array) if random.random() < 0.2 else array
    kind = random.randrange(6)
    if kind == 0:
        return {"params": {"layer": found}}
    if kind == 1:
        return [list(found.values()), "text", 3]
    if kind == 2:
        return next(iter(found.values()))
    if kind == 3:
        cycle: list[Any] = list(found.values())
        cycle.append(cycle)
        return cycle
    return found


def pickled(random: Random) -> Case:
    content = pickle.dumps(_arrays(random), random.choice((2, 2, 3, 4, 5)))
    if random.random() < 0.7:
        content = changed_pickle(content, random)
    if random.random() < 0.15:
        content = some_bytes(content, random)
    name = random.choice(("m.pkl", "m.ckpt", "m.bin", "m.npy"))
    if name == "m.npy":
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": ()})
        content = stream.getvalue() + content
    if random.random() < 0.01:
        return Case({name: Sparse(content, 2**31)}, audit(name, random))
    return Case({name: content}, audit(name, random))
