"""Memorizing nets in files: back bit for bit, and what is no such file is refused."""

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse._core.files import WriteFailed
from obverse._core.tensors import save_tensors
from obverse.identity._memorize import NotMemorized, export, memorize, verify
from obverse.identity._saved import load_memory, save_memory
from obverse.nets._memory import SHAPES, ResidualMemory


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 4)), rng.integers(0, 5, 50)
    x[7], y[7] = x[3], y[3]
    return x, y


@pytest.fixture
def net(data) -> ResidualMemory:
    return memorize(*data)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_net_comes_back_bit_for_bit(net, data, tmp_path, as_text):
    path = tmp_path / "net.safetensors"
    save_memory(net, str(path) if as_text else path)
    back = load_memory(str(path) if as_text else path)
    expected, found = net.state_dict(), back.state_dict()
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    x = torch.from_numpy(data[0])
    torch.testing.assert_close(back(x), net(x), rtol=0, atol=1e-9)  # strides, and so sums, may differ
    assert not any(parameter.requires_grad for parameter in back.parameters())
    numbers = sum(tensor.numel() for tensor in expected.values())
    assert 8 * numbers < path.stat().st_size < 8 * numbers + 2000  # the numbers and a header
    assert [one.name for one in tmp_path.iterdir()] == ["net.safetensors"]


def test_a_loaded_net_is_verified_against_its_data(net, data, tmp_path):
    save_memory(net, tmp_path / "net")
    found = verify(load_memory(tmp_path / "net"), *data)
    facts = net.facts.to_dict()
    facts["gap"] = facts["closest"] = None  # not in the file
    assert found.to_dict() == facts
    assert (found.points, found.distinct, found.errors) == (50, 49, 0)


def test_float32_nets_are_saved_in_float32(net, data, tmp_path):
    copy = export(net, *data)
    save_memory(copy, tmp_path / "net")
    back = load_memory(tmp_path / "net")
    assert back.centre.dtype == torch.float32
    assert verify(back, *data).errors == 0
    assert all(torch.equal(one, copy.state_dict()[name]) for name, one in back.state_dict().items())


def test_export_of_a_loaded_net(net, data, tmp_path):
    save_memory(net, tmp_path / "net")
    copy = export(load_memory(tmp_path / "net"), *data)
    assert copy.facts.errors == 0
    x, y = data
    x = np.concatenate([x, x[:1] + 1e-12])
    y = np.append(y, (y[0] + 1) % 5)
    save_memory(memorize(x, y), tmp_path / "hard")
    with pytest.raises(NotMemorized, match=r"float32 .*labels are wrong; keep the net in float64") as caught:
        export(load_memory(tmp_path / "hard"), x, y)
    assert "points 0 and 0" not in str(caught.value)


def test_a_file_is_replaced_whole(net, data, tmp_path):
    path = tmp_path / "net"
    save_memory(net, path)
    other = memorize(*data, generator=torch.Generator().manual_seed(9))
    save_memory(other, path)
    assert torch.equal(load_memory(path).projection, other.projection)
    assert not torch.equal(net.projection, other.projection)


@pytest.mark.parametrize("name", list(SHAPES))
def test_files_with_other_tensors_are_refused_by_name(net, tmp_path, name):
    path, tensors = tmp_path / "net", net.state_dict()
    holed = tensors[name].clone(memory_format=torch.contiguous_format)
    holed.view(-1)[0] = float("nan")
    wrong = {
        "missing": {key: one for key, one in tensors.items() if key != name},
        "more": {**tensors, f"{name}_too": tensors[name].clone()},
        "smaller": {**tensors, name: tensors[name][..., :-1]} if tensors[name].shape[-1] > 1 else {},
        "flat": {**tensors, name: tensors[name].unsqueeze(0)},
        "empty": {**tensors, name: tensors[name][:0]},
        "nan": {**tensors, name: holed},
        "float32": {**tensors, name: tensors[name].float()},
        "whole": {**tensors, name: tensors[name].long()},
    }
    for kind, given in wrong.items():
        save_tensors(path, given)
        with pytest.raises(BadInput) as caught:
            load_memory(path)
        assert str(path) in str(caught.value), kind


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int64, torch.bool])
def test_files_in_other_types_are_refused(net, tmp_path, kind):
    save_tensors(tmp_path / "net", {name: one.to(kind) for name, one in net.state_dict().items()})
    with pytest.raises(BadInput, match="one floating type"):
        load_memory(tmp_path / "net")


def test_files_that_are_cut_or_none_are_refused(net, tmp_path):
    path = tmp_path / "net"
    save_memory(net, path)
    content = path.read_bytes()
    for damaged in (
        *(content[:size] for size in (0, 1, 8, 100, len(content) // 2, len(content) - 1)),
        content + b"x",
    ):
        path.write_bytes(damaged)
        with pytest.raises(BadInput, match="safetensors"):
            load_memory(path)
    path.write_text("weights, honestly")
    with pytest.raises(BadInput, match="safetensors"):
        load_memory(path)
    torch.save(net.state_dict(), path)  # a pickle
    with pytest.raises(BadInput, match="safetensors"):
        load_memory(path)


def test_paths_that_lead_nowhere(net, tmp_path):
    with pytest.raises(BadInput, match=r"^No such file or folder: '.*none'$"):
        load_memory(tmp_path / "none")
    with pytest.raises(BadInput, match="safetensors file"):
        load_memory(tmp_path)
    with pytest.raises(WriteFailed):
        save_memory(net, tmp_path / "no folder" / "net")
