"""TensorFlow.js: models laid out by hand as by its converter; sums over its indices are the oracle."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from obverse import BadInput
from obverse.weights import audit, open_weights
from obverse.weights.results import write_audit
from weights.made_audits import made_audit, made_layer

CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # float32 sums of a few dozen terms of size 1


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def entry(name: str, values: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "shape": list(values.shape), "dtype": values.dtype.name, **more}


def tfjs(
    folder: Path,
    weights: dict[str, Any],
    topology: Any = None,
    *,
    shard: int = 1000,
    entries: list[dict[str, Any]] | None = None,
    name: str = "model.json",
) -> Path:
    """The bytes of all weights, cut into shards without regard to where one ends."""
    content = b"".join(values.tobytes() for values in weights.values())
    parts = [content[at : at + shard] for at in range(0, len(content), shard)]
    paths = [f"group1-shard{at + 1}of{len(parts)}.bin" for at in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        (folder / path).write_bytes(part)
    listed = entries or [entry(one, values) for one, values in weights.items()]
    manifest = [{"paths": paths, "weights": listed}]
    (folder / name).write_text(json.dumps({"modelTopology": topology, "weightsManifest": manifest}))
    return folder / name


def layers_model(*layers: dict[str, Any]) -> dict[str, Any]:
    config = {"class_name": "Sequential", "config": {"layers": list(layers)}}
    return {"keras_version": "2.4.0", "backend": "tensorflow", "model_config": config}


WEIGHTS = {
    "conv1/kernel": normal(3, 3, 5, 7),
    "conv1/bias": normal(7, seed=1),
    "up/kernel": normal(3, 3, 6, 6),
    "lstm/lstm_cell/kernel": normal(6, 16),
    "lstm/lstm_cell/recurrent_kernel": normal(4, 16),
    "lstm/lstm_cell/bias": normal(16),
    "bn/gamma": normal(7),
    "fc/kernel": normal(10, 4),
    "fc/bias": normal(4, seed=1),
}
TOPOLOGY = layers_model({"class_name": "Conv2DTranspose", "config": {"name": "up"}})


@pytest.mark.parametrize("shard", [10**6, 1000, 7])
def test_a_layers_model_in_shards_of_any_size(tmp_path, shard):
    found = {one.name: one for one in open_weights(tfjs(tmp_path, WEIGHTS, TOPOLOGY, shard=shard))}
    assert {name: (one.kind, one.rows, one.columns) for name, one in found.items() if "gate" not in name} == {
        "conv1": ("convolution", 7, 45),
        "up": ("convolution", 6, 54),
        "fc": ("linear", 4, 10),
    }
    assert len(found) == 11
    conv = WEIGHTS["conv1/kernel"].transpose(3, 2, 0, 1).reshape(7, 45)
    np.testing.assert_array_equal(found["conv1"].load().numpy(), conv)
    np.testing.assert_array_equal(found["conv1"].load_bias().numpy(), WEIGHTS["conv1/bias"])
    up = WEIGHTS["up/kernel"].transpose(2, 3, 0, 1).reshape(6, 54)  # the class says that outputs come first
    np.testing.assert_array_equal(found["up"].load().numpy(), up)
    forget = found["lstm.lstm_cell.weight_ih (forget gate)"]
    np.testing.assert_array_equal(forget.load().numpy(), WEIGHTS["lstm/lstm_cell/kernel"][:, 4:8].T)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16"])
def test_quantized_weights_are_what_they_stand_for(tmp_path, dtype):
    values = normal(40, 30)
    levels, low = {"uint8": 255, "uint16": 65535, "float16": 1}[dtype], float(values.min())
    scale = float(values.max() - low) / levels
    packed = values.astype(dtype) if dtype == "float16" else np.round((values - low) / scale).astype(dtype)
    how = {"dtype": dtype} if dtype == "float16" else {"dtype": dtype, "scale": scale, "min": low}
    listed = [{"name": "fc/kernel", "shape": [40, 30], "dtype": "float32", "quantization": how}]
    (found,) = open_weights(tfjs(tmp_path, {"fc/kernel": packed}, entries=listed))
    # half a step; half a bit of 11 of numbers up to 4; and the rounding of float32
    error = {"float16": 2**-9}.get(dtype, scale / 2) + 1e-6
    assert 0 < np.abs(found.load().numpy().T - values).max() <= error


def node(name: str, op: str, *inputs: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "op": op, "input": list(inputs), "attr": attributes}


def test_a_graph_says_what_its_weights_are(tmp_path):
    weights = {
        "net/conv/kernel": normal(3, 3, 5, 7),
        "net/conv/bias": normal(7, seed=1),
        "net/fused/filter": normal(3, 3, 7, 6),
        "net/fused/offset": normal(6, seed=1),
        "net/deep/weights": normal(3, 3, 40, 2),
        "net/up/w": normal(4, 4, 6, 5),
        "net/fc/MatMul/ReadVariableOp": normal(8, 9),
        "net/fc/BiasAdd/ReadVariableOp": normal(9, seed=1),
        "net/back/w": normal(9, 8),
        "net/words": normal(30, 8),
        "net/shift": normal(1, 1, 1, 6),
        "net/table": normal(4, 3),
    }
    bias = base64.b64encode(b"BiasAdd").decode()
    nodes = [
        *(node(name, "Const") for name in weights),
        node("conv", "Conv2D", "x", "net/conv/kernel"),
        node("sum", "BiasAdd", "conv", "net/conv/bias"),
        node(
            "fused",
            "_FusedConv2D",
            "sum:0",
            "net/fused/filter",
            "net/fused/offset",
            fused_ops={"list": {"s": [bias]}},
        ),
        node("deep", "DepthwiseConv2dNative", "fused", "net/deep/weights"),
        node("up", "Conv2DBackpropInput", "shape", "net/up/w", "deep"),
        node("same", "Identity", "net/fc/MatMul/ReadVariableOp"),
        node("fc", "MatMul", "up", "same", "^up"),
        node("added", "AddV2", "net/fc/BiasAdd/ReadVariableOp", "fc"),
        node("back", "MatMul", "added", "net/back/w", transpose_b={"b": True}),
        node("looked", "GatherV2", "net/words", "back"),
        node("end", "Mul", "net/shift", "net/table"),
    ]
    found = {one.name: one for one in open_weights(tfjs(tmp_path, weights, {"node": nodes}))}
    assert {
        name: (one.kind, one.rows, one.columns, one.groups, one.load_bias() is not None)
        for name, one in found.items()
    } == {
        "net.conv.kernel": ("convolution", 7, 45, 1, True),
        "net.fused.filter": ("convolution", 6, 63, 1, True),
        "net.deep.weights": ("convolution", 80, 9, 40, False),
        "net.up.w": ("convolution", 6, 80, 1, False),
        "net.fc.MatMul": ("linear", 9, 8, 1, True),
        "net.back.w": ("linear", 9, 8, 1, False),
        "net.words": ("embedding", 30, 8, 1, False),
        "net.table": ("matrix", 4, 3, 1, False),
    }
    x = normal(4, 4, 5, seed=3)
    expected = np.einsum("hwi,hwoi->o", x, weights["net/up/w"])
    np.testing.assert_allclose(
        found["net.up.w"].load().numpy() @ np.moveaxis(x, -1, 0).ravel(), expected, **CLOSE
    )
    np.testing.assert_array_equal(
        found["net.fc.MatMul"].load().numpy(), weights["net/fc/MatMul/ReadVariableOp"].T
    )
    np.testing.assert_array_equal(found["net.back.w"].load().numpy(), weights["net/back/w"])
    np.testing.assert_array_equal(found["net.fused.filter"].load_bias().numpy(), weights["net/fused/offset"])


def test_texts_between_the_weights_are_passed_over(tmp_path):
    texts = b"".join(len(one).to_bytes(4, "little") + one for one in (b"a", b"", b"long" * 9))
    weights = {"words": np.frombuffer(texts, np.uint8), "fc/kernel": normal(6, 5)}
    listed = [
        {"name": "words", "shape": [3], "dtype": "string"},
        {"name": "fc/kernel", "shape": [6, 5], "dtype": "float32"},
    ]
    (found,) = open_weights(tfjs(tmp_path, weights, entries=listed, shard=11))
    np.testing.assert_array_equal(found.load().numpy(), weights["fc/kernel"].T)


def test_the_folder_of_a_model_is_the_model(tmp_path):
    tfjs(tmp_path, WEIGHTS, TOPOLOGY)
    assert len(open_weights(tmp_path)) == 11


def test_a_model_may_be_called_otherwise(tmp_path):
    assert len(open_weights(tfjs(tmp_path, WEIGHTS, TOPOLOGY, name="net.json"))) == 11


def test_the_command_takes_a_model_for_a_model_and_an_audit_for_an_audit(tmp_path, obverse):
    path = tfjs(tmp_path, {"fc/kernel": normal(60, 40)})
    done = obverse("audit", path, "--samples", "2")
    assert done.code == 0, done.err
    assert "fc" in done.out
    kept = tmp_path / "kept" / "model.json"
    kept.parent.mkdir()
    write_audit(made_audit(made_layer("of the audit")), kept)
    done = obverse("audit", kept)
    assert done.code == 0, done.err
    assert "of the audit" in done.out


def test_the_architecture_beside_an_h5_file_is_no_second_model(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"class_name": "Sequential", "config": []}))
    np.savez(tmp_path / "w.npz", a=normal(5, 4))
    (found,) = open_weights(tmp_path)
    assert found.name == "a"


def test_what_was_audited_is_the_weight(tmp_path):
    (layer,) = audit(tfjs(tmp_path, {"fc/kernel": normal(60, 40)}), samples=2).layers
    assert (layer.rows, layer.columns, layer.verdict) == (40, 60, "untouched")


def changed(folder: Path, change: Any) -> Path:
    path = tfjs(folder, {"fc/kernel": normal(6, 5), "fc/bias": normal(5)})
    model = json.loads(path.read_text())
    change(model["weightsManifest"][0], model)
    path.write_text(json.dumps(model))
    return path


def put(key: str, value: Any, at: int = 0) -> Any:
    return lambda group, _: group["weights"][at].update({key: value})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (put("shape", [6, 50]), "1,200 bytes from 0 for fc/kernel"),
        (put("shape", [2**40, 2**40]), "for fc/kernel"),
        (put("shape", [-6, -5]), "a shape for fc/kernel"),
        (put("shape", [6.0, 5]), "a shape for fc/kernel"),
        (put("shape", "65"), "a list of sides for fc/kernel"),
        (put("dtype", "float1"), "a known type of numbers for fc/kernel"),
        (put("dtype", {}), "a known type of numbers for fc/kernel"),
        (put("name", 3), "the name of each weight"),
        (put("name", "fc/kernel", at=1), "got fc/kernel twice"),
        (put("quantization", {"dtype": "int64"}), "a known type of numbers for fc/kernel"),
        (put("quantization", {"dtype": "uint8"}), "a number as scale of fc/kernel"),
        (put("quantization", {"dtype": "uint8", "scale": True, "min": 0}), "a number as scale of fc/kernel"),
        (put("quantization", 3), "a known type of numbers for fc/kernel"),
        (put("dtype", "string"), "a text's length in fc/kernel|at most .* texts in fc/kernel"),
        (lambda group, _: group.update(paths=["../outside.bin"]), "only files inside"),
        (lambda group, _: group.update(paths=["/etc/passwd"]), "only files inside"),
        (
            lambda group, _: group.update(paths=["missing.bin"]),
            r"the file missing\.bin that .* names; got none",
        ),
        (lambda group, _: group.update(paths=7), "a list of paths of shards"),
        (lambda group, _: group.update(weights=None), "a list of weights"),
        (lambda _, model: model.update(weightsManifest={}), 'a list of "weightsManifest"'),
        (lambda _, model: model.update(weightsManifest=[3]), "a list of paths of shards"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, change, sentence):
    (tmp_path / "m").mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(400))
    path = changed(tmp_path / "m", change)
    with pytest.raises(BadInput, match=sentence) as caught:
        open_weights(path)
    assert str(path) in str(caught.value)


def test_a_broken_model_json_is_no_audit(tmp_path, obverse):
    (tmp_path / "model.json").write_text("{")
    done = obverse("audit", tmp_path / "model.json")
    assert done.code == 2
    assert "a model of TensorFlow.js" in done.err
