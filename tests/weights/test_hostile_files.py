"""Files made to crash or fill the memory of whoever reads them: refused in a sentence, or read as they are.

Each case is one that once did. Memory is measured where a refusal alone would not show it.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from obverse import BadInput
from obverse.weights import audit, open_weights
from obverse.weights._readers.torch_pickle import read_pickle


def load_all(source: Any) -> list[torch.Tensor]:
    return [weight.load() for weight in open_weights(source)]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((64, 1), torch.float32),
        ((1,), torch.float32),
        ((3, 5), torch.float32),
        ((1000, 1, 1), torch.float32),
        ((64, 64, 1), torch.bool),
        ((64, 64), torch.complex64),
    ],
)
def test_a_pruning_mask_of_another_form_than_its_weight_is_refused(tmp_path, shape, dtype):
    tensors = {"h.weight_orig": torch.randn(64, 64), "h.weight_mask": torch.ones(shape, dtype=dtype)}
    save_file(tensors, tmp_path / "net.safetensors")
    with pytest.raises(BadInput, match=r"h\.weight_mask of .* with a number for each of the 64×64"):
        load_all(tmp_path / "net.safetensors")


@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bool, torch.int64, torch.half]
)
def test_a_pruning_mask_of_any_type_of_numbers_is_applied(tmp_path, dtype):
    dense, kept = torch.randn(8, 6), torch.rand(8, 6) < 0.5
    save_file({"h.weight_orig": dense, "h.weight_mask": kept.to(dtype)}, tmp_path / "net.safetensors")
    (found,) = load_all(tmp_path / "net.safetensors")
    assert torch.equal(found, torch.where(kept, dense, torch.zeros(())))


def test_weights_with_one_direction_and_two_lengths_are_two_weights():
    direction, lengths = torch.randn(4, 3), [torch.rand(4, 1) + 1, torch.rand(4, 1) + 2]
    state = {f"{name}.weight_v": direction for name in "ab"}
    state |= {f"{name}.weight_g": length for name, length in zip("ab", lengths, strict=True)}
    first, second = load_all(state)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("size", [1e20, 1e37, 1e-25, 1e-40])
def test_layers_whose_squares_leave_float32_are_not_judged(size):
    torch.manual_seed(0)
    ordinary, extreme = torch.randn(40, 40), torch.randn(40, 40) * size
    found = audit({"a.weight": ordinary, "b.weight": extreme}, samples=4)
    assert [layer.verdict == "not judged" for layer in found.layers] == [False, True]
    assert "cannot be measured in float32: the largest entry is" in found.layers[1].sentence
    json.dumps(found.to_dict(), allow_nan=False)
    spoilt = ordinary.clone()
    spoilt[3, 4] = 3e38
    assert audit({"a.weight": spoilt}, samples=4).layers[0].verdict == "not judged"
    offset = {"a.weight": ordinary, "a.bias": torch.full((40,), 1e30)}
    assert "the largest bias is 1e+30" in audit(offset, samples=4).layers[0].sentence


def test_an_onnx_length_of_whole_numbers_is_no_length(tmp_path):
    onnx = pytest.importorskip("onnx")
    arrays = {"h.weight_v": np.ones((4, 3), np.float32), "h.weight_g": np.ones((4, 1), np.int8)}
    masked = {"h.weight_orig": np.ones((4, 3), np.float32), "h.weight_mask": np.ones((4, 3), np.int8)}
    for number, named in enumerate((arrays, masked)):
        graph = onnx.helper.make_graph(
            [], "g", [], [], [onnx.numpy_helper.from_array(array, name) for name, array in named.items()]
        )
        (tmp_path / f"{number}.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    (alone,) = load_all(tmp_path / "0.onnx")  # without its length the direction is what there is
    assert alone.shape == (4, 3)
    with pytest.raises(BadInput, match=r"floating-point numbers for h\.weight_mask"):
        load_all(tmp_path / "1.onnx")


@pytest.mark.parametrize("name", ["\ud800.safetensors", "a\udfff", ""])
def test_a_shard_whose_name_no_file_can_have_is_refused(tmp_path, name):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"h.weight": name}}))
    with pytest.raises(BadInput) as refused:
        open_weights(index)
    assert str(refused.value).encode()


def test_a_tensor_under_a_name_that_utf_8_cannot_write_is_refused_in_a_sentence_that_it_can(tmp_path):
    save_file({"h.weight": torch.ones(2, 2)}, tmp_path / "a.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"h\ud800": "a.safetensors"}}))
    with pytest.raises(BadInput) as refused:
        open_weights(index)
    assert str(refused.value).encode()


def test_a_type_in_a_header_does_not_steer_the_terminal(tmp_path):
    header = json.dumps({"h": {"dtype": "F\x1b[2J32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
    with pytest.raises(BadInput) as refused:
        load_all(path)
    assert "\x1b" not in str(refused.value)


# --- pickles, put together instruction by instruction ---

PROTOCOL, STOP, MARK = b"\x80\x02", b".", b"("


def name_of(module: str, name: str) -> bytes:
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def storage(identity_more: bytes = b"") -> bytes:
    parts = text("storage") + name_of("torch", "FloatStorage") + text("0") + text("cpu") + b"K\x04"
    return MARK + parts + identity_more + b"tQ"


def peak_of(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [b"l", b"t"], ids=["a list", "a tuple"])
def test_a_long_shape_that_is_used_again_and_again_takes_no_memory_again(kind):
    count, uses = 20_000, 200
    numbers = MARK + b"K\x01" * count
    shape = (b"]" + numbers + b"e" if kind == b"l" else numbers + b"t") + b"q\x00"
    call = name_of("torch._utils", "_rebuild_tensor_v2") + MARK + storage() + b"K\x00h\x00h\x00\x89Nt" + b"R"
    content = PROTOCOL + b"}q\x01" + shape
    content += b"".join([b"h\x01", text("a"), call, b"s"] * uses) + STOP

    def read() -> None:
        with pytest.raises(BadInput):
            read_pickle(io.BytesIO(content), "a test")

    assert peak_of(read) < 4 * 2**20  # a copy for each would take 200 · 2 · 160 kB = 64 MB


def test_a_long_reference_to_a_storage_is_refused_before_it_is_taken_apart():
    content = PROTOCOL + storage(b"K\x01" * 10_000) + STOP
    with pytest.raises(BadInput, match="another form"):
        read_pickle(io.BytesIO(content), "a test")


def test_numbers_of_one_hash_as_names_take_no_longer_than_others():
    prime = 2**61 - 1  # a whole number's hash is its remainder
    content = pickle.dumps({prime * number: None for number in range(1, 4)}, protocol=2)
    assert read_pickle(io.BytesIO(content), "a test") == {}
    count = 20_000
    keys = b"".join(b"\x8a\x0a" + (prime * number).to_bytes(10, "little") + b"N" for number in range(count))
    began = time.process_time()
    assert read_pickle(io.BytesIO(PROTOCOL + b"}(" + keys + b"u" + STOP), "a test") == {}
    assert time.process_time() - began < 5  # 0.1 s; 20,000² / 2 comparisons take more than 10


def test_a_name_of_torch_that_brings_in_a_package_does_not(tmp_path):
    with pytest.raises(BadInput, match=r"calls torch\._inductor"):
        read_pickle(io.BytesIO(PROTOCOL + name_of("torch", "_inductor") + STOP), "a test")


def test_what_is_no_file_is_not_waited_for(tmp_path):
    (tmp_path / "net.safetensors").symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="got something else"):
        open_weights(tmp_path / "net.safetensors")
