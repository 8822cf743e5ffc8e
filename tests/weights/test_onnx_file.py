"""ONNX: onnx's own reference evaluator is the oracle for which way a weight lies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch.nn import functional as F

from obverse._core.errors import BadInput, MissingExtra
from obverse.weights._readers.open import open_weights
from obverse.weights._readers.stored import Weight


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def model(path: Path, nodes: list[Any], x: Any, weights: dict[str, Any]) -> Any:
    """A saved graph that maps x to y; returns what the reference makes of x."""
    proto = onnx_model(nodes, x.shape, weights)
    path.write_bytes(proto.SerializeToString())
    return ReferenceEvaluator(proto).run(None, {"x": x})[0]


def onnx_model(nodes: list[Any], shape: tuple[int, ...], weights: dict[str, Any]) -> Any:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
            for name, value in weights.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def only(path: Path) -> Weight:
    (weight,) = open_weights(path)
    return weight


def bias_of(weight: Weight) -> Any:
    bias = weight.load_bias()
    return np.zeros(weight.rows, np.float32) if bias is None else bias.numpy()


def refused(path: Path, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        _ = [(weight.load(), weight.load_bias()) for weight in open_weights(path)]
    assert str(path) in str(caught.value)


CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # float32 sums of a few dozen terms of size 1


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_is_turned_as_it_says(tmp_path: Path, transposed: int) -> None:
    x, bias = array(2, 4), array(3, seed=2)
    weight = array(3, 4, seed=1) if transposed else array(4, 3, seed=1)
    node = helper.make_node("Gemm", ["x", "fc.weight", "b"], ["y"], transB=transposed)
    y = model(tmp_path / "a.onnx", [node], x, {"fc.weight": weight, "b": bias})
    found = only(tmp_path / "a.onnx")
    assert (found.name, found.kind, found.rows, found.columns) == ("fc", "linear", 3, 4)
    np.testing.assert_allclose(x @ found.load().numpy().T + bias_of(found), y, **CLOSE)


def test_vectors_of_many_dimensions_are_no_layers(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Mul", ["c", "s"], ["y"]),
    ]
    weights = {"w": array(4, 3, seed=1), "b": array(1, 1, 3, seed=2), "s": array(1, 3, seed=3)}
    model(tmp_path / "a.onnx", nodes, array(2, 5, 4), weights)
    found = only(tmp_path / "a.onnx")
    assert (found.name, found.rows, found.columns) == ("w", 3, 4)
    np.testing.assert_array_equal(bias_of(found), weights["b"].ravel())


def test_matmul_has_its_inputs_first_and_its_bias_behind_it(tmp_path: Path) -> None:
    x = array(2, 5, 4)
    nodes = [
        helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["z"], name="/fc/MatMul"),
        helper.make_node("Add", ["b", "z"], ["y"]),
    ]
    weights = {"onnx::MatMul_7": array(4, 3, seed=1), "b": array(3, seed=2)}
    y = model(tmp_path / "a.onnx", nodes, x, weights)
    found = only(tmp_path / "a.onnx")
    assert (found.name, found.rows, found.columns) == ("/fc/MatMul", 3, 4)
    np.testing.assert_allclose(x @ found.load().numpy().T + bias_of(found), y, **CLOSE)


@pytest.mark.parametrize("turned", [False, True])
def test_weights_on_the_left_have_their_outputs_first(tmp_path: Path, turned: bool) -> None:
    x, weight = array(4, 2), array(4, 3, seed=1) if turned else array(3, 4, seed=1)
    node = (
        helper.make_node("Gemm", ["w", "x"], ["y"], transA=1)
        if turned
        else helper.make_node("MatMul", ["w", "x"], ["y"])
    )
    y = model(tmp_path / "a.onnx", [node], x, {"w": weight})
    np.testing.assert_allclose(only(tmp_path / "a.onnx").load().numpy() @ x, y, **CLOSE)


def test_convolutions(tmp_path: Path) -> None:
    x = array(1, 4, 3, 3)
    node = helper.make_node("Conv", ["x", "c.weight", "c.bias"], ["y"])
    y = model(
        tmp_path / "a.onnx", [node], x, {"c.weight": array(5, 4, 3, 3, seed=1), "c.bias": array(5, seed=2)}
    )
    found = only(tmp_path / "a.onnx")
    assert (found.name, found.kind, found.rows, found.columns) == ("c", "convolution", 5, 36)
    np.testing.assert_allclose(found.load().numpy() @ x.ravel() + bias_of(found), y.ravel(), **CLOSE)

    x = array(1, 4, 1, 1)
    node = helper.make_node("ConvTranspose", ["x", "c.weight"], ["y"], group=2)
    weight = array(4, 3, 2, 2, seed=1)
    (tmp_path / "b.onnx").write_bytes(onnx_model([node], x.shape, {"c.weight": weight}).SerializeToString())
    # torch keeps these weights as ONNX does; onnx's reference fails on groups
    y = F.conv_transpose2d(torch.from_numpy(x), torch.from_numpy(weight), groups=2).numpy()
    found = only(tmp_path / "b.onnx")
    assert (found.rows, found.columns) == (6, 8)
    kernels = found.load().numpy().reshape(2, 3, 2, 2, 2)  # group, output, input, height, width
    expected = np.einsum("gi,goihw->gohw", x.reshape(2, 2), kernels)
    np.testing.assert_allclose(expected.reshape(1, 6, 2, 2), y, **CLOSE)


def test_embeddings_and_what_no_node_explains(tmp_path: Path) -> None:
    table = array(7, 4)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["z"]),
        helper.make_node("Add", ["x", "z"], ["y"]),
        helper.make_node("Mul", ["other", "other"], ["unused"]),
    ]
    weights = {"table": table, "ids": np.array([0, 3]), "other": array(3, 5)}
    model(tmp_path / "a.onnx", nodes, array(2, 4), weights)
    found = {one.name: (one.kind, one.rows, one.columns) for one in open_weights(tmp_path / "a.onnx")}
    assert found == {"table": ("embedding", 7, 4), "other": ("matrix", 3, 5)}


def step(kind: str, found: dict[str, Weight], suffix: str, x: Any) -> Any:
    """One step from a state of zeros: only weight_ih and the offsets have a say."""

    def gate(name: str) -> Any:
        weight = found[f"rnn.weight_ih{suffix}{f' ({name} gate)' if name else ''}"]
        return x @ weight.load().numpy().T + bias_of(weight)

    def sigmoid(z: Any) -> Any:
        return 1 / (1 + np.exp(-z))

    if kind == "RNN":
        return np.tanh(gate(""))
    if kind == "LSTM":
        return sigmoid(gate("output")) * np.tanh(sigmoid(gate("input")) * np.tanh(gate("cell")))
    inner = bias_of(found[f"rnn.weight_hh{suffix} (new gate)"])
    new = np.tanh(gate("new") + sigmoid(gate("reset")) * inner)
    return (1 - sigmoid(gate("update"))) * new


@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("LSTM", 4), ("GRU", 3)])
def test_recurrent_nodes_give_the_gates_of_torch(tmp_path: Path, kind: str, gates: int) -> None:
    x, hidden = array(1, 2, 4), 3
    weights = {
        "W": array(1, gates * hidden, 4, seed=1),
        "R": array(1, gates * hidden, hidden, seed=2),
        "B": array(1, 2 * gates * hidden, seed=3),
    }
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    node = helper.make_node(kind, ["x", "W", "R", "B"], ["y"], name="rnn", hidden_size=hidden, **more)
    y = model(tmp_path / "a.onnx", [node], x, weights)
    found = {one.name: one for one in open_weights(tmp_path / "a.onnx")}
    assert len(found) == 2 * gates
    np.testing.assert_allclose(step(kind, found, "_l0", x[0]), y[0, 0], **CLOSE)
    # the state's weights lie in the same order as the input's
    order = {"RNN": [0], "LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2]}[kind]
    inner = np.concatenate([one.load().numpy() for name, one in found.items() if "_hh_" in name])
    np.testing.assert_array_equal(
        inner, weights["R"][0].reshape(gates, hidden, hidden)[order].reshape(-1, hidden)
    )


def test_both_directions_of_a_recurrent_node(tmp_path: Path) -> None:
    x = array(1, 2, 4)
    weights = {"W": array(2, 12, 4, seed=1), "R": array(2, 12, 3, seed=2), "B": array(2, 24, seed=3)}
    node = helper.make_node(
        "LSTM", ["x", "W", "R", "B"], ["y"], name="rnn", hidden_size=3, direction="bidirectional"
    )
    proto = onnx_model([node], x.shape, weights)
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    found = {one.name: one for one in open_weights(tmp_path / "a.onnx")}
    assert len(found) == 16
    for back, suffix in enumerate(("_l0", "_l0_reverse")):  # one direction at a time, as two plain nodes
        single = {name: value[back : back + 1] for name, value in weights.items()}
        plain = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], hidden_size=3)
        y = model(tmp_path / "b.onnx", [plain], x, single)
        np.testing.assert_allclose(step("LSTM", found, suffix, x[0]), y[0, 0], **CLOSE)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("dtype", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_types_of_numbers(tmp_path: Path, raw: bool, dtype: str) -> None:
    values = [0.5, -2.0, 1.5, 0.0, 4.0, -0.25]  # exact in all of them
    kind = getattr(TensorProto, dtype)
    if raw:
        names = {
            "FLOAT8E4M3FN": torch.float8_e4m3fn,
            "FLOAT8E5M2": torch.float8_e5m2,
            "BFLOAT16": torch.bfloat16,
        }
        as_torch = names.get(
            dtype, {"FLOAT": torch.float32, "DOUBLE": torch.float64}.get(dtype, torch.float16)
        )
        content = torch.tensor(values).to(as_torch).view(torch.uint8).numpy().tobytes()
        tensor = helper.make_tensor("w", kind, [2, 3], content, raw=True)
    else:
        tensor = helper.make_tensor("w", kind, [2, 3], values)
    proto = onnx_model([helper.make_node("Identity", ["x"], ["y"])], (1,), {"w": tensor})
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    assert only(tmp_path / "a.onnx").load().flatten().tolist() == values


def external(folder: Path, location: str, size: int = 48, **entries: Any) -> Path:
    """A model whose weight `fc.weight` (4 × 3) is said to be in another file."""
    folder.mkdir(exist_ok=True)
    tensor = numpy_helper.from_array(array(4, 3), "fc.weight")
    (folder / "data.bin").write_bytes(bytes(16) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": 16, "length": size, **entries}.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    node = helper.make_node("MatMul", ["x", "fc.weight"], ["y"])
    path = folder / "a.onnx"
    path.write_bytes(onnx_model([node], (2, 4), {"fc.weight": tensor}).SerializeToString())
    return path


def test_external_data_is_read_from_its_place(tmp_path: Path) -> None:
    for entries in ({}, {"length": None}):
        weight = only(external(tmp_path, "data.bin", **entries))
        np.testing.assert_array_equal(weight.load().numpy(), array(4, 3).T)


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"location": "../secret.bin"}, "only files inside"),
        ({"location": "link.bin"}, "only files inside"),
        ({"location": "/etc/hostname"}, "only files inside"),
        ({"location": "none.bin"}, r"the file none\.bin .* got none"),
        ({"location": None}, "the name of a file"),
        ({"location": "data.bin", "size": 47}, r"48 bytes in data\.bin for fc\.weight"),
        ({"location": "data.bin", "offset": 17}, r"48 bytes in data\.bin for fc\.weight"),
        ({"location": "data.bin", "offset": -16}, r"48 bytes in data\.bin for fc\.weight"),
        ({"location": "data.bin", "offset": "x"}, r"48 bytes in data\.bin for fc\.weight"),
        ({"location": "data.bin", "offset": "9" * 5000}, r"48 bytes in data\.bin for fc\.weight"),
    ],
)
def test_external_data_stays_in_its_folder_and_its_bounds(
    tmp_path: Path, entries: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(100))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    refused(external(folder, **entries), sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dims": [4, 4]}, "64 bytes or numbers for fc.weight .* got 48"),
        ({"dims": [10**6, 10**6]}, "for fc.weight .* got 48"),
        ({"dims": [-4, -3]}, r"a shape for fc\.weight .* got \(-4, -3\)"),
        ({"dims": [0, 3], "raw_data": b""}, r"at least one value in fc\.weight"),
        ({"data_type": 14, "dims": [2, 3]}, "real numbers in fc.weight"),
        ({"data_type": 3}, "got 1 2-dimensional int8"),
        ({"data_type": 999}, "got 1 2-dimensional unknown"),
        ({"raw_data": b"\xff" * 48}, "finite float32 values in fc .* got 12 NaN"),
    ],
)
def test_initializers_that_are_not_what_they_say(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    tensor = numpy_helper.from_array(array(4, 3), "fc.weight")
    for field, value in change.items():
        if field == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, field, value)
    node = helper.make_node("MatMul", ["x", "fc.weight"], ["y"])
    path = tmp_path / "a.onnx"
    path.write_bytes(onnx_model([node], (2, 4), {"fc.weight": tensor}).SerializeToString())
    refused(path, sentence)


def test_strange_graphs_are_refused_or_read(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    for content in (b"x", b"\xff" * 100, b"PK\x03\x04"):
        path.write_bytes(content)
        refused(path, "an ONNX model in|floating-point matrices")
    for groups in (0, -1, 3):
        node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], group=groups)
        path.write_bytes(onnx_model([node], (1, 4, 1, 1), {"w": array(4, 3, 2, 2)}).SerializeToString())
        refused(path, "groups that divide the inputs of w")
    nodes = [helper.make_node(op, [], []) for op in ("MatMul", "Gemm", "Conv", "LSTM", "Add", "Gather")]
    nodes.append(helper.make_node("LSTM", ["x", "w", "w", "w"], ["y"]))
    path.write_bytes(onnx_model(nodes, (1,), {"w": array(4, 3)}).SerializeToString())
    assert (only(path).name, only(path).kind) == ("w", "matrix")


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_changed_bytes_give_only_bad_input(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R", "B"], ["z"], name="rnn", hidden_size=2),
        helper.make_node("Gemm", ["z", "fc.weight", "fc.bias"], ["y"], transB=1),
    ]
    weights = {"W": array(1, 8, 3), "R": array(1, 8, 2), "B": array(1, 16), "fc.weight": array(4, 2)}
    content = bytearray(onnx_model(nodes, (1, 2, 3), {**weights, "fc.bias": array(4)}).SerializeToString())
    places = st.integers(0, len(content) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=6)):
        content[place] = value
    path = tmp_path_factory.getbasetemp() / "changed.onnx"
    path.write_bytes(bytes(content[: data.draw(st.none() | places)]))
    sentence = str(path)
    try:
        for weight in open_weights(path):
            weight.load()
            weight.load_bias()
    except BadInput as error:
        sentence = str(error)
    assert str(path) in sentence


def test_without_the_extra_the_way_to_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    (tmp_path / "a.onnx").write_bytes(b"x")
    with pytest.raises(MissingExtra, match=r"obverse\[onnx\]"):
        open_weights(tmp_path / "a.onnx")
