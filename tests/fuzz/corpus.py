"""Every case that ever failed, as small as it can be. The fast tests run them all."""

from __future__ import annotations

import io
import json
import math
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .case import OUTSIDE, SECRET, Case, Content, Link, Sparse
from .mutate import unzipped, zipped
from .pickles import TENSOR, long, saved, string
from .weights import Entry, audit, safetensors_bytes
from .weights import saved as array

KEPT: dict[str, Callable[[], Case]] = {}


def kept(make: Callable[[], Case]) -> Callable[[], Case]:
    KEPT[make.__name__.strip("_").replace("_", " ")] = make
    return make


def matrix(*shape: int, first: float | None = None, dtype: type[Any] = np.float32) -> Entry:
    """Normal entries; `first` in place of the first one."""
    values = np.random.RandomState(0).standard_normal(shape)
    if first is not None:
        values.flat[0] = first
    name = {np.float32: "F32", np.float64: "F64"}[dtype]
    return name, shape, values.astype(dtype).tobytes()


def weights(**tensors: Entry) -> Case:
    return Case({"m.safetensors": safetensors_bytes(tensors)}, audit("m.safetensors"))


# --- weights ---


@kept
def mask_of_another_shape() -> Case:
    return weights(weight_orig=matrix(40, 30), weight_mask=matrix(20, 15))


@kept
def mask_of_float8() -> Case:
    return weights(weight_orig=matrix(40, 30), weight_mask=("F8_E4M3", (40, 30), bytes(1200)))


@kept
def mask_that_unfolds_the_weight() -> Case:
    return weights(weight_orig=matrix(64, 64), weight_mask=matrix(100_000, 1, 1))


@kept
def a_layout_of_bitsandbytes_that_is_infinite() -> Case:
    """int8 with SCB, its format a float."""
    numbers = ("I8", (40, 30), bytes(range(240)) * 5)
    form = ("F64", (1,), struct.pack("<d", math.inf))
    tensors = {"a.weight": numbers, "a.SCB": matrix(40), "a.weight_format": form, "b.weight": matrix(40, 33)}
    return weights(**tensors)


@kept
def weights_that_overflow_in_a_product() -> Case:
    return weights(weight=matrix(33, 33, first=3.4e38))


@kept
def weights_that_are_all_as_large_as_can_be() -> Case:
    return weights(weight=("F32", (40, 30), np.full(1200, 3.4e38, np.float32).tobytes()))


@kept
def lengths_that_overflow() -> Case:
    return weights(
        weight_v=matrix(40, 30), weight_g=("F32", (40, 1), np.full(40, 3e38, np.float32).tobytes())
    )


@kept
def biases_whose_sum_overflows() -> Case:
    large = ("F32", (40,), np.full(40, 3e38, np.float32).tobytes())
    return weights(
        weight_ih_l0=matrix(40, 30), weight_hh_l0=matrix(40, 40), bias_ih_l0=large, bias_hh_l0=large
    )


@kept
def type_with_an_escape() -> Case:
    header = json.dumps({"a": {"dtype": "\x1b[31mF32", "shape": [1, 1], "data_offsets": [0, 4]}}).encode()
    return Case(
        {"m.safetensors": struct.pack("<Q", len(header)) + header + b"\0" * 4}, audit("m.safetensors")
    )


@kept
def shard_with_a_lone_surrogate() -> Case:
    index = json.dumps({"weight_map": {"a.weight": "\ud800.safetensors"}}).encode()
    return Case({"model.safetensors.index.json": index}, audit("model.safetensors.index.json"))


@kept
def index_without_an_end() -> Case:
    return Case({"model.safetensors.index.json": Sparse(b"{", 2**31)}, audit("model.safetensors.index.json"))


def onnx(dims: list[int], scale: list[int]) -> Case:
    from onnx import TensorProto, helper

    kinds = (
        ("w", TensorProto.INT8, dims, 1),
        ("s", TensorProto.FLOAT, scale, 4),
        ("z", TensorProto.INT8, scale, 1),
    )
    tensors = [
        TensorProto(name=name, data_type=kind, dims=sides, raw_data=bytes(size * math.prod(sides)))
        for name, kind, sides, size in kinds
    ]
    dequantize = helper.make_node("DequantizeLinear", ["w", "s", "z"], ["y"])
    multiply = helper.make_node("MatMul", ["x", "y"], ["o"])
    graph = helper.make_graph([dequantize, multiply], "g", [], [], tensors)
    return Case({"m.onnx": helper.make_model(graph).SerializeToString()}, audit("m.onnx"))


@kept
def onnx_scale_without_the_right_dimensions() -> Case:
    return onnx([40, 30], [2, 2, 2])


@kept
def onnx_scale_without_dimensions_for_a_number() -> Case:
    return onnx([], [3])


# --- pickles ---


def pickled(content: bytes) -> Case:
    members = unzipped(saved("plain"))
    members[next(name for name in members if name.endswith("data.pkl"))] = content
    return Case({"m.pt": zipped(members)}, audit("m.pt"))


@kept
def pickle_with_one_long_shape_for_many_tensors() -> Case:
    """30,000 sides, 3,000 times: 1.4 GB, if each tensor had a copy of its own."""
    shape = b"]q\x00(" + b"K\x01" * 30_000 + b"e"
    tensors = b"".join(string(str(index)) + TENSOR for index in range(3000))
    return pickled(b"\x80\x02" + shape + b"0}(" + tensors + b"u.")


@kept
def pickle_with_keys_that_hash_alike() -> Case:
    """A dict of Python compares each with all before it: 30,000 take a minute."""
    keys = b"".join(long(index * (2**61 - 1)) + b"N" for index in range(30_000))
    return pickled(b"\x80\x02}(" + keys + b"u.")


# --- models of other tools ---


@kept
def heap_of_texts_without_an_end() -> Case:
    """Less free space than there is, and then an object without room: HDF5's library walks on the spot."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file.attrs["model_config"] = "{}"
        file["layers/dense/vars/0"] = np.ones((40, 30), np.float32)
    content = bytearray(stream.getvalue())
    free = content.index(b"GCOL") + 16 + 24  # behind the one text
    struct.pack_into("<Q", content, free + 8, 64)
    return Case({"m.h5": bytes(content)}, audit("m.h5"))


# --- data sets ---


def png(side: int) -> bytes:
    """One that says how large it is and has no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    empty = b"IDAT" + zlib.compress(b"")
    chunks = (
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        for part in (header, empty)
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@kept
def image_beyond_the_limit_of_the_library() -> Case:
    return Case({"d/a/0.png": png(60_000)}, ("data", "d"))


@kept
def samples_beyond_the_limit_of_the_library() -> Case:
    return Case({"d/0.png": png(60_000)}, ("unlabelled", "d"))


@kept
def class_folder_with_a_control_character() -> Case:
    return Case({"d/\x9b31m/2.png": b""}, ("data", "d"))


@kept
def image_of_another_mode_in_a_folder_with_an_escape() -> Case:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("F", (6, 6)).save(stream, "TIFF")
    return Case({"d/\x1b[31mred/0.png": stream.getvalue()}, ("data", "d"))


def renamed(name: str, *words: str) -> Case:
    return Case(
        {"m.npz": zipped({name: array(np.zeros((2, 2))), "y.npy": array(np.zeros(2))})}, (*words, "m.npz")
    )


@kept
def array_with_a_line_break_in_its_name_in_a_data_set() -> Case:
    return renamed("a\rb", "data")


@kept
def array_with_a_line_break_in_its_name_among_samples() -> Case:
    return renamed("a\rb", "unlabelled")


@kept
def array_whose_name_turns_the_direction_of_writing() -> Case:
    return renamed("\u202eevil", "unlabelled")


# --- run directories ---


def run(*words: str, **files: Content) -> Case:
    """`config` and `metrics` are written under their own names, all else as it is called."""
    names = {"config": "config.json", "metrics": "metrics.jsonl"}
    config = json.dumps({"format": 1, "settings": {"hidden": [4]}, "environment": {}}).encode()
    placed = {
        f"run/{names.get(name, name)}": content for name, content in ({"config": config} | files).items()
    }
    return Case({**placed, OUTSIDE: SECRET.encode()}, words or ("report", "run"))


@kept
def config_without_an_end() -> Case:
    return run(config=Sparse(b'{"format": 1}', 2**31))


@kept
def metrics_without_an_end() -> Case:
    return run(metrics=Sparse(b"{}\n", 2**31))


@kept
def metrics_with_a_lone_surrogate() -> Case:
    return run(metrics=b'{}\n"\\ud800"\n{}\n')


@kept
def settings_of_a_giant() -> Case:
    """A net of 6 GB, to be made before training as its settings say."""
    config = {"format": 1, "settings": {"hidden": [40_000, 40_000], "data": "x.npz"}, "environment": {}}
    tensors = safetensors_bytes({"a": matrix(2, 2)})
    files: dict[str, Content] = {"config": json.dumps(config).encode(), "model.safetensors": tensors}
    case = run("audit", "run", "--against", "initial", "--samples", "2", **files)
    data = zipped({"x.npy": array(np.zeros((4, 3))), "y.npy": array(np.array([0, 1, 0, 1]))})
    return Case({**case.files, "x.npz": data}, case.words)


def linked(name: str, *words: str) -> Case:
    record = json.dumps(
        {"test_error": 0.5, "shadow_error": 0.5, "label_agreement": 0.5, "seconds": 1.0}
    ).encode()
    return run(*words, metrics=record + b"\n", **{name: Link("../../outside")})


@kept
def link_in_place_of_the_page() -> Case:
    return linked("report.html")


@kept
def link_in_place_of_the_lock() -> Case:
    return linked(".lock", "train", "--resume", "run")


@kept
def link_in_place_of_the_metrics() -> Case:
    case = run("train", "--resume", "run")
    return Case({**case.files, "run/metrics.jsonl": Link("../../outside")}, case.words)
