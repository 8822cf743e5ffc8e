"""Keras' files, written with h5py as Keras lays them out; sums over its own indices are the oracle."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import h5py
import ml_dtypes
import numpy as np
import pytest
import torch

from obverse import BadInput
from obverse.weights import Weight, open_weights
from obverse.weights._readers import disk, hdf5

CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # float32 sums of a few dozen terms of size 1
Variables = dict[str, dict[str, Any]]  # of each layer, in order


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layer(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"class_name": kind, "config": {"name": name, **config}}


def model(*layers: dict[str, Any]) -> dict[str, Any]:
    return {"class_name": "Sequential", "config": {"name": "net", "layers": list(layers)}}


def keras2(path: Path, variables: Variables, config: Any = None, whole: bool = False, **data: Any) -> Path:
    """As Keras 1 and 2 write weights alone, or a whole model."""
    with h5py.File(path, "w") as file:
        root = file.create_group("model_weights") if whole else file
        root.attrs["layer_names"] = [name.encode() for name in variables]
        root.attrs["backend"] = b"tensorflow"
        if config is not None:
            file.attrs["model_config"] = json.dumps(config)
        for name, found in variables.items():
            group = root.create_group(name)
            group.attrs["weight_names"] = [one.encode() for one in found]
            for one, values in found.items():
                group.create_dataset(one, data=values, **data)
    return path


def keras3(target: Any, variables: dict[str, Any]) -> Any:
    """As Keras 3 writes weights: layers/dense/vars/0, …"""
    with h5py.File(target, "w") as file:
        for name, values in variables.items():
            file[name] = values
        file.create_group("optimizer/vars")["0"] = normal(50, 50)
    return target


def keras_archive(
    path: Path, variables: dict[str, Any], config: Any, method: int = zipfile.ZIP_STORED
) -> Path:
    stream = keras3(io.BytesIO(), variables)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.5.0"}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", stream.getvalue())
    return path


def by_name(path: Path) -> dict[str, Weight]:
    return {one.name: one for one in open_weights(path)}


def bias_of(weight: Weight) -> Any:
    bias = weight.load_bias()
    return None if bias is None else bias.numpy()


def applied(weight: Weight, x: Any) -> Any:
    """The matrix on inputs in torch's order: channels, then space."""
    return weight.load().numpy() @ np.moveaxis(x, -1, 0).ravel()


@pytest.mark.parametrize("whole", [False, True])
def test_kernels_do_what_they_do_in_keras(tmp_path, whole):
    space = {"conv1d": (3,), "conv2d": (3, 2), "conv3d": (2, 3, 2)}
    variables = {
        name: {f"{name}/kernel:0": normal(*sides, 5, 7), f"{name}/bias:0": normal(7, seed=1)}
        for name, sides in space.items()
    }
    variables["pool"] = {}
    variables["norm"] = {f"norm/{one}:0": normal(7) for one in ("gamma", "beta", "moving_mean")}
    variables["dense"] = {"dense/kernel:0": normal(6, 4), "dense/bias:0": normal(4, seed=1)}
    found = by_name(keras2(tmp_path / "m.h5", variables, whole=whole))
    assert list(found) == ["conv1d", "conv2d", "conv3d", "dense"]
    for name, sides in space.items():
        kernel, x = variables[name][f"{name}/kernel:0"], normal(*sides, 5, seed=2)
        one = found[name]
        assert (one.kind, one.rows, one.columns) == ("convolution", 7, 5 * int(np.prod(sides)))
        np.testing.assert_allclose(applied(one, x), np.tensordot(x, kernel, x.ndim), **CLOSE)
        np.testing.assert_array_equal(bias_of(one), variables[name][f"{name}/bias:0"])
    one, x = found["dense"], normal(6, seed=3)
    assert (one.kind, one.rows, one.columns) == ("linear", 4, 6)
    np.testing.assert_allclose(one.load().numpy() @ x, x @ variables["dense"]["dense/kernel:0"], **CLOSE)
    np.testing.assert_array_equal(bias_of(one), variables["dense"]["dense/bias:0"])


def test_square_matrices_are_turned_too(tmp_path):
    kernel = normal(5, 5)
    (found,) = open_weights(keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": kernel, "d/bias:0": normal(5)}}))
    np.testing.assert_array_equal(found.load().numpy(), kernel.T)


@pytest.mark.parametrize("known", ["by its class", "by its bias"])
def test_transposed_convolutions_have_outputs_before_inputs(tmp_path, known):
    kernel = normal(3, 3, 5, 4)  # height, width, out, in
    config = model(layer("up", "Conv2DTranspose")) if known == "by its class" else None
    path = keras2(tmp_path / "m.h5", {"up": {"up/kernel:0": kernel, "up/bias:0": normal(5)}}, config)
    (found,) = open_weights(path)
    assert (found.rows, found.columns) == (5, 36)
    x = normal(3, 3, 4, seed=1)
    np.testing.assert_allclose(applied(found, x), np.einsum("hwi,hwoi->o", x, kernel), **CLOSE)


def test_depthwise_and_separable_convolutions(tmp_path):
    deep, point = normal(3, 3, 40, 2), normal(1, 1, 80, 6)
    variables = {
        "deep": {"deep/depthwise_kernel:0": deep, "deep/bias:0": normal(80, seed=1)},
        "both": {
            "both/depthwise_kernel:0": deep,
            "both/pointwise_kernel:0": point,
            "both/bias:0": normal(6, seed=2),
        },
    }
    found = by_name(keras2(tmp_path / "m.h5", variables))
    assert [(one.name, one.rows, one.columns, one.groups) for one in found.values()] == [
        ("deep", 80, 9, 40),
        ("both.depthwise", 80, 9, 40),
        ("both.pointwise", 6, 80, 1),
    ]
    x = normal(3, 3, 40, seed=3)
    expected = np.einsum("hwi,hwim->im", x, deep).ravel()  # output i · multiplier + m
    patches = x.transpose(2, 0, 1).reshape(40, 9).repeat(2, 0)
    np.testing.assert_allclose((found["deep"].load().numpy() * patches).sum(1), expected, **CLOSE)
    np.testing.assert_array_equal(bias_of(found["deep"]), variables["deep"]["deep/bias:0"])
    assert bias_of(found["both.depthwise"]) is None
    np.testing.assert_array_equal(bias_of(found["both.pointwise"]), variables["both"]["both/bias:0"])


def test_convolutions_in_groups_are_taken_apart_where_the_architecture_says_so(tmp_path):
    kernel = normal(3, 3, 40, 80)
    config = model(layer("c", "Conv2D", groups=2))
    found = open_weights(keras2(tmp_path / "m.h5", {"c": {"c/kernel:0": kernel}}, config))
    assert [(one.name, one.rows, one.columns) for one in found] == [
        ("c (group 1 of 2)", 40, 360),
        ("c (group 2 of 2)", 40, 360),
    ]
    np.testing.assert_array_equal(
        found[1].load().numpy(), kernel[..., 40:].transpose(3, 2, 0, 1).reshape(40, 360)
    )


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gate(found: dict[str, Weight], side: str, name: str) -> Any:
    return found[f"r.weight_{side} ({name} gate)"]


def test_an_lstm_computes_what_it_does_in_keras(tmp_path):
    kernel, recurrent, bias = normal(6, 16), normal(4, 16, seed=1), normal(16, seed=2)
    variables = {"r": {"r/k/kernel:0": kernel, "r/k/recurrent_kernel:0": recurrent, "r/k/bias:0": bias}}
    variables = {"r": {name.replace("/k/", "/"): one for name, one in variables["r"].items()}}
    found = by_name(keras2(tmp_path / "m.h5", variables))
    assert len(found) == 8
    assert all((one.kind, one.rows) == ("recurrent", 4) for one in found.values())
    x, h, c = normal(6, seed=3), normal(4, seed=4), normal(4, seed=5)
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)  # Keras' order
    expected = sigmoid(f) * c + sigmoid(i) * np.tanh(g)

    def ours(name: str) -> Any:
        inner, outer = gate(found, "ih", name), gate(found, "hh", name)
        assert bias_of(outer) is None
        return inner.load().numpy() @ x + outer.load().numpy() @ h + bias_of(inner)

    state = sigmoid(ours("forget")) * c + sigmoid(ours("input")) * np.tanh(ours("cell"))
    np.testing.assert_allclose(state, expected, **CLOSE)
    np.testing.assert_allclose(ours("output"), o, **CLOSE)


@pytest.mark.parametrize("reset_after", [True, False])
def test_a_gru_computes_what_it_does_in_keras(tmp_path, reset_after):
    kernel, recurrent = normal(6, 12), normal(4, 12, seed=1)
    bias = normal(2, 12, seed=2) if reset_after else normal(12, seed=2)
    variables = {"r": {"r/kernel:0": kernel, "r/recurrent_kernel:0": recurrent, "r/bias:0": bias}}
    found = by_name(keras2(tmp_path / "m.h5", variables))
    inner, outer = bias if reset_after else (bias, np.zeros(12, np.float32))
    for at, name in enumerate(("update", "reset", "new")):  # Keras' order
        part = slice(4 * at, 4 * at + 4)
        ih, hh = gate(found, "ih", name), gate(found, "hh", name)
        np.testing.assert_array_equal(ih.load().numpy(), kernel[:, part].T)
        np.testing.assert_array_equal(hh.load().numpy(), recurrent[:, part].T)
        if name == "new" and reset_after:  # the reset gate stands between the two
            np.testing.assert_array_equal(bias_of(ih), inner[part])
            np.testing.assert_array_equal(bias_of(hh), outer[part])
        else:
            np.testing.assert_allclose(bias_of(ih), inner[part] + outer[part], **CLOSE)


def test_embeddings_and_layers_inside_layers(tmp_path):
    variables = {
        "words": {"words/embeddings:0": normal(50, 8)},
        "bert": {
            "bert/encoder/layer_._0/attention/self/query/kernel:0": normal(8, 8),
            "bert/encoder/layer_._0/attention/self/query/bias:0": normal(8),
            "bert/encoder/layer_._1/output/dense/kernel:0": normal(32, 8),
        },
    }
    found = by_name(keras2(tmp_path / "m.h5", variables))
    assert [(one.name, one.kind, one.rows, one.columns) for one in found.values()] == [
        ("words", "embedding", 50, 8),
        ("bert.encoder.layer.0.attention.self.query", "linear", 8, 8),
        ("bert.encoder.layer.1.output.dense", "linear", 8, 32),
    ]


def test_layers_that_share_a_name_of_a_variable_are_kept_apart(tmp_path):
    variables = {name: {"dense/kernel:0": normal(4, 3)} for name in ("one", "two")}
    assert list(by_name(keras2(tmp_path / "m.h5", variables))) == ["dense", "two.dense"]


def test_names_of_keras_1(tmp_path):
    theano, kernel = normal(7, 5, 3, 3), normal(3, 3, 5, 7)
    variables = {
        "dense_1": {"dense_1_W": normal(6, 4), "dense_1_b": normal(4, seed=1)},
        "convolution2d_1": {"convolution2d_1_W": theano, "convolution2d_1_b": normal(7)},
        "convolution2d_2": {"convolution2d_2_W": kernel, "convolution2d_2_b": normal(7)},
        "lstm_1": {"lstm_1_W_i": normal(6, 4), "lstm_1_U_i": normal(4, 4), "lstm_1_b_i": normal(4, seed=1)},
        "embedding_1": {"embedding_1_W": normal(30, 8)},
    }
    found = open_weights(keras2(tmp_path / "m.h5", variables))
    assert [(one.kind, one.rows, one.columns, bias_of(one) is None) for one in found] == [
        ("linear", 4, 6, False),
        ("convolution", 7, 45, False),
        ("convolution", 7, 45, False),
        ("recurrent", 4, 6, False),
        ("recurrent", 4, 4, True),
        ("embedding", 30, 8, True),
    ]
    np.testing.assert_array_equal(found[1].load().numpy(), theano.reshape(7, 45))
    np.testing.assert_array_equal(found[2].load().numpy(), kernel.transpose(3, 2, 0, 1).reshape(7, 45))


def test_names_too_many_for_one_attribute(tmp_path):
    path = keras2(tmp_path / "m.h5", {name: {f"{name}/kernel:0": normal(4, 3)} for name in ("a", "b", "c")})
    with h5py.File(path, "r+") as file:
        del file.attrs["layer_names"]
        file.attrs["layer_names0"], file.attrs["layer_names1"] = [b"a", b"b"], [b"c"]
    assert list(by_name(path)) == ["a", "b", "c"]


THREE = {
    "layers/conv2d/vars/0": normal(3, 3, 5, 7),
    "layers/conv2d/vars/1": normal(7, seed=1),
    "layers/conv2d_transpose/vars/0": normal(3, 3, 5, 4),
    "layers/depthwise_conv2d/vars/0": normal(3, 3, 40, 1),
    "layers/embedding/vars/0": normal(30, 8),
    "layers/batch_normalization/vars/0": normal(7),
    "layers/lstm/cell/vars/0": normal(6, 16),
    "layers/lstm/cell/vars/1": normal(4, 16),
    "layers/lstm/cell/vars/2": normal(16),
    "layers/multi_head_attention/query_dense/vars/0": normal(6, 2, 5),
    "layers/multi_head_attention/query_dense/vars/1": normal(2, 5),
    "layers/multi_head_attention/output_dense/vars/0": normal(2, 5, 6),
    "layers/multi_head_attention/output_dense/vars/1": normal(6),
    "layers/dense/vars/0": normal(10, 4),
    "layers/dense/vars/1": normal(4, seed=1),
    "layers/dense_1/vars/0": normal(4, 3),
}
ATTENTION = "multi_head_attention"
SHAPES = {
    "conv2d": ("convolution", 7, 45),
    "conv2d_transpose": ("convolution", 5, 36),
    "dense": ("linear", 4, 10),
    "dense_1": ("linear", 3, 4),
    "depthwise_conv2d": ("convolution", 40, 9),
    "embedding": ("embedding", 30, 8),
    **{
        f"lstm.cell.weight_ih ({one} gate)": ("recurrent", 4, 6)
        for one in ("input", "forget", "cell", "output")
    },
    **{
        f"lstm.cell.weight_hh ({one} gate)": ("recurrent", 4, 4)
        for one in ("input", "forget", "cell", "output")
    },
    f"{ATTENTION}.output_dense": ("linear", 6, 10),
    f"{ATTENTION}.query_dense": ("linear", 10, 6),
}


def test_the_numbered_variables_of_keras_3(tmp_path):
    found = by_name(keras3(tmp_path / "m.weights.h5", THREE))
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items()} == SHAPES
    x = normal(6, seed=3)
    query, output = found[f"{ATTENTION}.query_dense"], found[f"{ATTENTION}.output_dense"]
    heads = np.einsum("i,ihd->hd", x, THREE[f"layers/{ATTENTION}/query_dense/vars/0"])
    np.testing.assert_allclose(query.load().numpy() @ x, heads.ravel(), **CLOSE)
    np.testing.assert_array_equal(bias_of(query), THREE[f"layers/{ATTENTION}/query_dense/vars/1"].ravel())
    back = np.einsum("hd,hdo->o", heads, THREE[f"layers/{ATTENTION}/output_dense/vars/0"])
    np.testing.assert_allclose(output.load().numpy() @ heads.ravel(), back, **CLOSE)


def test_an_archive_gives_the_layers_the_names_they_have_in_the_model(tmp_path):
    config = model(
        layer("input", "InputLayer"),
        layer("stem", "Conv2D", groups=1),
        layer("hidden", "Dense"),
        layer("logits", "Dense"),
    )
    some = {name: one for name, one in THREE.items() if "/dense" in name or "/conv2d/" in name}
    found = by_name(keras_archive(tmp_path / "m.keras", some, config))
    assert list(found) == ["stem", "hidden", "logits"]
    np.testing.assert_array_equal(found["logits"].load().numpy(), THREE["layers/dense_1/vars/0"].T)
    np.testing.assert_array_equal(bias_of(found["stem"]), THREE["layers/conv2d/vars/1"])


@pytest.mark.parametrize("dtype", ["<f2", "<f8", ">f4", ">f8", "bfloat16"])
def test_every_type_of_numbers(tmp_path, dtype):
    kernel = normal(6, 5)
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        values = kernel.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        file.create_dataset("layers/dense/vars/0", data=values)
        if dtype == "bfloat16":
            file["layers/dense/vars/0"].attrs["dtype"] = "bfloat16"
    (found,) = open_weights(path)
    np.testing.assert_array_equal(found.load().numpy(), values.astype(np.float32).T)


@pytest.mark.parametrize(
    "packing",
    [
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"shuffle": True},
        {"fletcher32": True},
        {},
    ],
    ids=str,
)
def test_packed_numbers_are_unpacked(tmp_path, packing):
    kernel = normal(37, 29)
    path = keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": kernel}}, chunks=(8, 10), **packing)
    (found,) = open_weights(path)
    np.testing.assert_array_equal(found.load().numpy(), kernel.T)


def test_numbers_in_the_head_of_the_file(tmp_path):
    path, kernel = tmp_path / "m.h5", normal(5, 4)
    with h5py.File(path, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(kernel.shape)
        group = file.create_group("layers/dense/vars")
        h5py.h5d.create(group.id, b"0", h5py.h5t.IEEE_F32LE, space, plist).write(space, space, kernel)
    (found,) = open_weights(path)
    np.testing.assert_array_equal(found.load().numpy(), kernel.T)


def test_only_the_tensor_asked_for_is_read(tmp_path, monkeypatch):
    variables = {name: {f"{name}/kernel:0": normal(40, 30)} for name in "abc"}
    weights = open_weights(keras2(tmp_path / "m.h5", variables))
    lengths, real = [], disk.read_span

    def span(path: Path, start: int, length: int, what: str) -> torch.Tensor:
        lengths.append(length)
        return real(path, start, length, what)

    monkeypatch.setattr(hdf5, "read_span", span)
    weights[1].load()
    assert lengths == [4800]


# --- what is not followed, and what does not fit ---


def test_links_are_not_followed(tmp_path):
    outside = keras2(tmp_path / "outside.h5", {"d": {"d/kernel:0": normal(5, 4)}})
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file["layers/dense/vars/0"] = normal(4, 3)
        file["layers/dense_1"] = h5py.ExternalLink(str(outside), "/d")
        file["layers/dense_2"] = h5py.SoftLink("/layers/dense")
        file["again"] = file["layers"]  # a second name of the same group
        file["layers/self"] = file["layers"]
    assert [one.rows for one in open_weights(path)] == [3]


def test_a_listed_variable_behind_a_link_is_refused(tmp_path):
    path = keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": normal(5, 4)}})
    with h5py.File(path, "r+") as file:
        del file["d/d/kernel:0"]
        file["d/d/kernel:0"] = h5py.ExternalLink("/etc/passwd", "/x")
    with pytest.raises(BadInput, match=r"the variable d/kernel:0 that .* lists; got none there"):
        open_weights(path)


def test_numbers_in_other_files_are_left_out_by_name(tmp_path):
    path, other = tmp_path / "m.h5", tmp_path / "numbers"
    other.write_bytes(normal(5, 4).tobytes())
    with h5py.File(path, "w") as file:
        file["layers/dense/vars/0"] = normal(4, 3)
        file.create_dataset("layers/dense_1/vars/0", (5, 4), "f4", external=str(other))
        layout = h5py.VirtualLayout((5, 4), "f4")
        layout[:] = h5py.VirtualSource(str(other), "x", (5, 4))
        file.create_virtual_dataset("layers/dense_2/vars/0", layout)
    first, second, third = open_weights(path)
    assert first.rows == 3
    for one in (second, third):
        assert one.left_out.startswith("numbers in another file, which is not read")


def test_filters_beyond_the_usual_are_not_loaded(tmp_path):
    path = keras2(tmp_path / "m.h5", {"a": {"a/kernel:0": normal(4, 3)}})
    with h5py.File(path, "r+") as file:
        file["a"].create_dataset("x", data=normal(5, 4), chunks=(5, 4), compression="lzf")
        file["a"].attrs["weight_names"] = [b"a/kernel:0", b"x"]
    _, second = open_weights(path)
    assert second.left_out.startswith("numbers packed by filter 32000, which is not loaded")


def test_zeros_without_end_are_refused(tmp_path):
    path = tmp_path / "m.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "layers/dense/vars/0", (10**6, 10**6), "f4", chunks=(1000, 1000), compression="gzip"
        )
    with pytest.raises(BadInput, match=r"the numbers of layers/dense/vars/0 in .* to fit the file"):
        open_weights(path)


def test_numbers_that_were_never_written_are_refused(tmp_path):
    for place, options in enumerate(({}, {"chunks": (10, 10), "compression": "gzip"})):
        path = tmp_path / f"{place}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("layers/dense/vars/0", (20, 10), "f4", **options)
        with pytest.raises(BadInput, match="layers/dense/vars/0"):
            open_weights(path)


def test_a_piece_that_unfolds_to_more_than_it_should_is_cut_off(tmp_path):
    path = keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": normal(8, 8)}}, chunks=(8, 8), compression="gzip")
    with h5py.File(path, "r+") as file:
        file["d/d/kernel:0"].id.write_direct_chunk((0, 0), __import__("zlib").compress(bytes(10**6)))
    (found,) = open_weights(path)
    with pytest.raises(BadInput, match="pieces of 256 bytes for d/kernel:0"):
        found.load()


def test_a_heap_of_texts_that_has_no_end_is_refused(tmp_path):
    """The library walks from object to object, and one that takes no room keeps it there."""
    path = keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": normal(8, 8)}}, config=model(layer("d", "Dense")))
    content = bytearray(path.read_bytes())
    place = content.index(b"GCOL") + 16
    while struct.unpack_from("<H", content, place)[0]:
        place += 16 + -(-struct.unpack_from("<Q", content, place + 8)[0] // 8) * 8
    (free,) = struct.unpack_from("<Q", content, place + 8)
    assert len(open_weights(path)) == 1
    struct.pack_into("<Q", content, place + 8, free - 64)
    content[place + free - 64 : place + free] = bytes(64)
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"a sound HDF5 file in .*; got a heap without an end"):
        open_weights(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: content[:200], "a sound HDF5 file"),
        (lambda content: b"\x89HDF\r\n\x1a\n" + bytes(500), "a sound HDF5 file"),
        (lambda content: bytes(512) + content, "an HDF5 file from its first byte|a sound HDF5 file"),
        (lambda content: b"PK\x03\x04" + content, r"a sound \.keras file"),
    ],
)
def test_broken_files_are_refused(tmp_path, change, sentence):
    path = keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": normal(8, 8)}})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadInput, match=sentence) as caught:
        open_weights(path)
    assert str(path) in str(caught.value)


def test_archives_that_are_packed_or_lack_the_weights_are_refused(tmp_path):
    packed = keras_archive(tmp_path / "a.keras", THREE, {}, zipfile.ZIP_DEFLATED)
    with pytest.raises(BadInput, match=r"plain bytes in config\.json|plain bytes in model\.weights\.h5"):
        open_weights(packed)
    with zipfile.ZipFile(tmp_path / "b.keras", "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(BadInput, match=r"model\.weights\.h5 in .*; got config\.json"):
        open_weights(tmp_path / "b.keras")


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    path = keras2(tmp_path / "m.h5", {"d": {"d/kernel:0": normal(8, 8)}})
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'obverse\[keras\]'"):
        open_weights(path)
