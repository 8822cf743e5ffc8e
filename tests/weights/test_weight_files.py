"""Opening weights: every format tells the same, folders are understood, nothing costs more than a layer."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file
from torch import Tensor, nn

from obverse._core.errors import BadInput
from obverse.weights._readers.module import weights_of
from obverse.weights._readers.open import SUFFIXES, open_weights
from weights.gguf_files import Raw, gguf_bytes, pair


def net() -> nn.Module:
    torch.manual_seed(0)
    parts = {
        "conv": nn.Conv2d(3, 5, 3),
        "rnn": nn.LSTM(4, 3),
        "attention": nn.MultiheadAttention(6, 2),
        "norm": nn.BatchNorm1d(3),
        "fc": nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)),
        "embed": nn.Embedding(7, 6),
    }
    return nn.ModuleDict(parts)


State = dict[str, Tensor]


def as_zip(state: State) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def as_old(state: State) -> bytes:
    buffer = io.BytesIO()
    torch.save({"model": state, "epoch": 1}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def as_arrays(state: State) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: tensor.numpy() for name, tensor in state.items()})
    return buffer.getvalue()


def as_pickle(state: State) -> bytes:
    return pickle.dumps({name: tensor.numpy() for name, tensor in state.items()})


def as_gguf(state: State) -> bytes:
    floats = {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}
    return gguf_bytes(
        {name: Raw(tuple(one.shape[::-1]), 0, one.numpy().tobytes()) for name, one in floats.items()},
        pair("general.alignment", 4, struct.pack("<I", 8)),
        alignment=8,
    )


FORMATS: dict[str, tuple[str, Callable[[State], bytes]]] = {
    "safetensors": ("a.safetensors", save),
    "zip": ("a.pt", as_zip),
    "old": ("a.pth", as_old),
    "npz": ("A.NPZ", as_arrays),
    "pickle": ("a.pkl", as_pickle),
    "gguf": ("a.gguf", as_gguf),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_tells_the_same_as_the_net(tmp_path: Path, kind: str) -> None:
    module = net()
    name, write = FORMATS[kind]
    path = tmp_path / name
    path.write_bytes(write(module.state_dict()))
    expected = {one.name: one for one in weights_of(module)}
    found = {one.name: one for one in open_weights(path)}
    assert found.keys() == expected.keys()
    assert len(found) == 1 + 8 + 3 + 1 + 1 + 1
    for name, weight in found.items():
        same = expected[name]
        assert (weight.kind, weight.rows, weight.columns) == (same.kind, same.rows, same.columns)
        assert torch.allclose(
            weight.load(), same.load(), rtol=1e-6
        )  # a rounding of float32, in the weight norm
        bias, other = weight.load_bias(), same.load_bias()
        assert (bias is None) == (other is None)
        assert bias is None or other is None or torch.equal(bias, other)


def test_a_folder_of_a_run_is_its_model(tmp_path: Path) -> None:
    save_file({"a.weight": torch.eye(3)}, tmp_path / "model.safetensors")
    for name in ("config.json", "metrics.jsonl"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "checkpoint").mkdir()
    torch.save({"b.weight": torch.eye(3)}, tmp_path / "other.pt")
    assert [one.name for one in open_weights(tmp_path)] == ["a"]


def test_the_only_file_of_a_folder_is_taken_and_several_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"one file of weights in .* got none"):
        open_weights(tmp_path)
    torch.save({"b.weight": torch.eye(3)}, tmp_path / "last.pt")
    assert [one.name for one in open_weights(tmp_path)] == ["b"]
    torch.save({"b.weight": torch.eye(3)}, tmp_path / "best.pt")
    with pytest.raises(BadInput, match=r"got best\.pt, last\.pt; name the file"):
        open_weights(tmp_path)


def test_no_name_is_usual_enough_to_be_taken_for_another(tmp_path: Path) -> None:
    """model.safetensors beside other weights: either may be meant, unless training wrote the folder."""
    save_file({"a.weight": torch.eye(3)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    torch.save({"b.weight": torch.eye(3)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"got model\.safetensors, pytorch_model\.bin; name the file"):
        open_weights(tmp_path)
    for number in range(30):
        (tmp_path / f"{number:02}.npy").write_bytes(b"")
    with pytest.raises(BadInput, match=r"got 00\.npy, .*, 19\.npy and 12 more; name the file"):
        open_weights(tmp_path)


def test_shards_are_one_model_and_what_lies_beside_them_another(tmp_path: Path) -> None:
    save_file({"a.weight": torch.eye(3)}, tmp_path / "part-1.safetensors")
    index = {"weight_map": {"a.weight": "part-1.safetensors"}}
    (tmp_path / "any.safetensors.index.json").write_text(json.dumps(index))
    assert [one.name for one in open_weights(tmp_path)] == ["a"]
    save_file({"b.weight": torch.eye(3)}, tmp_path / "adapter.safetensors")
    with pytest.raises(BadInput, match=r"got adapter\.safetensors, any\.safetensors\.index\.json; name"):
        open_weights(tmp_path)


def test_what_is_no_file_of_weights(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file or folder: "):
        open_weights(tmp_path / "missing.pt")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(BadInput, match=r"\.safetensors, .*\.onnx, .*; got .*notes\.txt"):
        open_weights(tmp_path / "notes.txt")
    os.mkfifo(tmp_path / "pipe.pt")  # reading it would wait for ever
    with pytest.raises(BadInput, match="got something else"):
        open_weights(tmp_path / "pipe.pt")
    (tmp_path / "loop.pt").symlink_to(tmp_path / "loop.pt")
    with pytest.raises(BadInput, match="loop"):
        open_weights(tmp_path / "loop.pt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "a.pt")
    (tmp_path / "a.pt").chmod(0)
    with pytest.raises(BadInput, match="Permission denied"):
        open_weights(tmp_path / "a.pt")


def test_reading_that_fails_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"a.weight": torch.eye(3)}, tmp_path / "a.pt")
    (weight,) = open_weights(tmp_path / "a.pt")

    def broken(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", broken)
    with pytest.raises(BadInput, match=r"to read .*a\.pt; got Permission denied"):
        open_weights(tmp_path / "a.pt")
    with pytest.raises(BadInput, match=r"a\.weight in .*a\.pt; got Permission denied"):
        weight.load()


@pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix != ".onnx"])
@pytest.mark.parametrize(
    "content", [b"", b"x", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x80", b"{}", bytes(100)]
)
def test_other_bytes_are_refused_under_every_suffix(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        open_weights(path)
    assert str(path) in str(caught.value)
    if not content:
        assert "an empty file" in str(caught.value)


def test_a_file_that_shrinks_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"a.weight": torch.eye(30)}, path)
    (weight,) = open_weights(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BadInput, match=r"3,600 bytes of a\.weight in .* don't change the file"):
        weight.load()


ONE_AT_A_TIME = """
import resource, sys
from pathlib import Path
import torch
from obverse.weights._readers.open import open_weights
torch.set_num_threads(1)
warm = open_weights(Path(sys.argv[1]))[0].load()
del warm
for name in sys.argv[2:]:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak counts from here
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * resource.getpagesize()
    total = sum(float(weight.load().sum()) for weight in open_weights(Path(name)))
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    print(total, peak - before)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak can't be measured")
def test_only_one_tensor_is_in_memory_at_a_time(tmp_path: Path) -> None:
    """8 tensors of 8 MB: the peak is that of one or two, not of 64 MB."""
    state = {f"{n}.weight": torch.full((2048, 1024), float(n)) for n in range(8)}
    small = tmp_path / "small.pt"
    torch.save({"a.weight": torch.eye(3)}, small)
    paths = []
    for kind, (name, write) in FORMATS.items():
        (tmp_path / kind).mkdir()
        paths.append(tmp_path / kind / name)
        paths[-1].write_bytes(write(state))
    # the first is read twice: what the libraries take for themselves is not counted
    command = [sys.executable, "-c", ONE_AT_A_TIME, str(small), *map(str, (paths[0], *paths))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    for kind, line in zip(FORMATS, run.stdout.splitlines()[1:], strict=True):
        total, grown = map(float, line.split())
        assert total == sum(range(8)) * 2**21
        assert grown < 32 * 2**20, kind


def few() -> State:
    generator = torch.Generator().manual_seed(0)
    return {"a.weight": torch.randn(3, 4, generator=generator), "a.bias": torch.randn(3, generator=generator)}


SOUND = {kind: write(few()) for kind, (_, write) in FORMATS.items()}


def only_bad_input(path: Path, content: bytes) -> None:
    """Either it can be read, or the one kind of error names the file; and it takes next to no memory."""
    path.write_bytes(content)
    sentence = str(path)
    tracemalloc.start()
    try:
        for weight in open_weights(path):
            weight.load()
            weight.load_bias()
    except BadInput as error:
        sentence = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert str(path) in sentence
    assert peak < 8 * 2**20


@pytest.mark.parametrize("kind", FORMATS)
@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_changed_bytes_give_only_bad_input(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    content = bytearray(SOUND[kind])
    places = st.integers(0, len(content) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=6)):
        content[place] = value
    only_bad_input(tmp_path_factory.getbasetemp() / f"changed-{FORMATS[kind][0]}", bytes(content))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_cut_gives_only_bad_input(tmp_path: Path, kind: str) -> None:
    content = SOUND[kind]
    for length in {*range(0, len(content), 41), *range(len(content) - 30, len(content))}:
        only_bad_input(tmp_path / FORMATS[kind][0], content[:length])


@settings(deadline=None, max_examples=60)
@given(header=st.binary(max_size=60), rest=st.binary(max_size=30), suffix=st.sampled_from(SUFFIXES[:-1]))
def test_random_bytes_give_only_bad_input(
    tmp_path_factory: pytest.TempPathFactory, header: bytes, rest: bytes, suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"random{suffix}"
    only_bad_input(path, struct.pack("<Q", len(header)) + header + rest)
    only_bad_input(path, b"\x80\x02" + header + b"." + rest)
