"""Pickles of NumPy arrays: for sound ones pickle itself is the oracle; nothing in any of them is run."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from obverse import BadInput
from obverse.weights import open_weights


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def kernels() -> dict[str, Any]:
    """As TensorFlow keeps them: H × W × in × out, in × out."""
    return {
        "conv1": {"weights": normal(11, 11, 3, 8), "biases": normal(8, seed=1)},
        "conv2": {"weights": normal(3, 3, 8, 8), "biases": normal(8, seed=2), "mean": normal(8)},
        "fc": {"weights": normal(8, 8), "biases": normal(8, seed=3)},
    }


def turned(kernel: Any) -> Any:
    return kernel.transpose(-1, -2, *range(kernel.ndim - 2)).reshape(kernel.shape[-1], -1)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".ckpt", ".npy", ".bin"])
def test_arrays_of_every_protocol(tmp_path, protocol, suffix):
    expected, path = kernels(), tmp_path / f"net{suffix}"
    if suffix == ".npy":
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": ()})
            pickle.dump(np.array(expected, dtype=object), file, protocol=protocol)
        assert np.load(path, allow_pickle=True).item()["fc"]["biases"].shape == (8,)
    else:
        path.write_bytes(pickle.dumps(expected, protocol=protocol))
    found = {one.name: one for one in open_weights(path)}
    assert list(found) == ["conv1", "conv2", "fc"]
    for name, one in found.items():
        np.testing.assert_array_equal(one.load().numpy(), turned(expected[name]["weights"]))
        np.testing.assert_array_equal(one.load_bias().numpy(), expected[name]["biases"])


def python_2(arrays: dict[str, Any]) -> bytes:
    """As Python 2 wrote it: text and bytes are one kind of string."""

    def short(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    content = b"\x80\x02}("
    for name, array in arrays.items():
        sides = b"(" + b"".join(b"J" + struct.pack("<i", side) for side in array.shape) + b"t"
        dtype = b"cnumpy\ndtype\n(" + short(array.dtype.str[1:].encode()) + b"K\x00K\x01tR"
        dtype += b"(K\x03" + short(b"<") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        data = b"T" + struct.pack("<i", array.nbytes) + array.tobytes()
        content += short(name.encode()) + b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t"
        content += short(b"b") + b"tR(K\x01" + sides + dtype + b"\x89" + data + b"tb"
    return content + b"u."


def test_arrays_of_python_2(tmp_path):
    arrays = {"a": normal(40, 30), "b": normal(4, 3, seed=1)}
    (tmp_path / "m.pkl").write_bytes(python_2(arrays))
    assert pickle.loads(python_2(arrays), encoding="latin1")["a"].shape == (40, 30)  # noqa: S301
    for one in open_weights(tmp_path / "m.pkl"):
        np.testing.assert_array_equal(one.load().numpy(), arrays[one.name])


def test_kernels_as_flax_keeps_them(tmp_path):
    net = {"Conv_0": {"kernel": normal(3, 3, 2, 2), "bias": normal(2)}, "Dense_0": {"kernel": normal(6, 5)}}
    (tmp_path / "m.ckpt").write_bytes(pickle.dumps({"params": net}))
    conv, dense = open_weights(tmp_path / "m.ckpt")
    assert (conv.name, conv.kind, dense.kind) == ("params.Conv_0", "convolution", "linear")
    np.testing.assert_array_equal(conv.load().numpy(), turned(net["Conv_0"]["kernel"]))
    np.testing.assert_array_equal(dense.load().numpy(), net["Dense_0"]["kernel"].T)


def test_kernels_in_pytorchs_order_stay_as_they_are(tmp_path):
    arrays = {"conv1": [normal(8, 3, 11, 11), normal(8)], "conv2": [normal(8, 8, 3, 3), normal(8, seed=1)]}
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(arrays))
    for one in open_weights(tmp_path / "m.pkl"):
        values, bias = arrays[one.name]
        np.testing.assert_array_equal(one.load().numpy(), values.reshape(8, -1))
        np.testing.assert_array_equal(one.load_bias().numpy(), bias)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_and_orders(tmp_path, dtype, order):
    values = np.array(normal(6, 5), dtype=dtype, order=order)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([values, "text", 3, None, {"x": (normal(4, 3),)}]))
    first, second = open_weights(tmp_path / "m.pkl")
    assert (first.name, second.name) == ("0", "4.x.0")
    np.testing.assert_array_equal(first.load().numpy(), values.astype(np.float32))


def test_one_array_is_named_after_its_file(tmp_path):
    (tmp_path / "net.pkl").write_bytes(pickle.dumps(normal(6, 5)))
    assert [one.name for one in open_weights(tmp_path / "net.pkl")] == ["net"]


def test_numbers_stay_in_the_file_until_they_are_asked_for(tmp_path):
    for protocol in (2, 4):
        arrays = {str(at): normal(500, 500, seed=at) for at in range(8)}  # 1 MB each
        (tmp_path / "m.pkl").write_bytes(pickle.dumps(arrays, protocol=protocol))
        del arrays
        tracemalloc.start()
        weights = open_weights(tmp_path / "m.pkl")
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(weights) == 8
        assert kept < 2**20


class Calls:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('run')",)


class Plain:
    pass


@pytest.mark.parametrize(
    "value",
    [Calls(), {"a": normal(4, 3), "b": Calls()}, Plain(), {"a": Plain()}, lambda: 0, np.random.default_rng],
    ids=["calls", "calls beside", "object", "object beside", "function", "numpy's function"],
)
def test_what_would_call_something_is_refused(tmp_path, value):
    try:
        content = pickle.dumps(value)
    except Exception:
        content = b"\x80\x04cnumpy.random\ndefault_rng\n."
    (tmp_path / "m.pkl").write_bytes(content)
    with pytest.raises(
        BadInput, match=r"nothing of it was run|that no state dict needs|no module of TorchScript"
    ):
        open_weights(tmp_path / "m.pkl")


def state(shape: bytes, dtype: bytes, data: bytes) -> bytes:
    """An array with this state, alone in a dict under a."""
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    return b"\x80\x03}X\x01\x00\x00\x00a" + array + b"(K\x01" + shape + dtype + b"\x89" + data + b"tbs."


def kind(name: str, order: str = "<") -> bytes:
    text = b"X" + struct.pack("<I", len(name)) + name.encode()
    return (
        b"cnumpy\ndtype\n("
        + text
        + b"K\x00K\x01tR(K\x03X\x01\x00\x00\x00"
        + order.encode()
        + b"NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb"
    )


FOUR_BY_THREE, BYTES = b"K\x04K\x03\x86", b"C\x30" + bytes(48)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (state(b"K\x04K\x04\x86", kind("f4"), BYTES), "64 bytes for a in .*float32 of shape"),
        (state(b"J\xff\xff\xff\xffK\x03\x86", kind("f4"), BYTES), "a shape for a"),
        (state(b"X\x01\x00\x00\x00x", kind("f4"), BYTES), "a shape for a"),
        (state(b"\x8a\x08" + b"\xff" * 7 + b"\x1fK\x03\x86", kind("f4"), BYTES), "a shape for a|for a in"),
        (state(FOUR_BY_THREE, kind("f4"), b"N"), "the numbers of a in .*got none"),
        (state(FOUR_BY_THREE, kind("f3"), BYTES), "floating-point matrices"),
        (state(FOUR_BY_THREE, kind("O8"), BYTES), "floating-point matrices"),
        (state(FOUR_BY_THREE, kind("f4", "?"), BYTES), "floating-point matrices"),
        (state(FOUR_BY_THREE, b"N", BYTES), "floating-point matrices"),
        (b"\x80\x03}.", "floating-point matrices"),
        (b"\x80\x03N.", "floating-point matrices"),
        (b"\x80\x03", "a sound pickle"),
        (b"just text", "a file of torch.save or a pickle of arrays"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "m.pkl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=sentence) as caught:
        open_weights(path)
    assert str(path) in str(caught.value)


def test_lists_that_hold_themselves_end(tmp_path):
    cycle: list[Any] = [normal(4, 3)]
    cycle.append(cycle)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(cycle))
    assert [one.name for one in open_weights(tmp_path / "m.pkl")] == ["0"]
