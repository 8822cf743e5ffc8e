"""Files of torch.save: for sound ones torch.load is the oracle, the others must be refused at no cost."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from obverse._core.errors import BadInput
from obverse.weights._readers.open import open_weights
from obverse.weights._readers.torch import open_torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def little_memory() -> Iterator[None]:
    """What NumPy and Python take during the test, of which the largest tensor has a few hundred bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


def save(path: Path, content: Any, old: bool = False, **settings: Any) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=not old, **settings)
    return path


def refused(path: Path, sentence: str) -> str:
    with pytest.raises(BadInput, match=sentence) as caught:
        _ = [(weight.load(), weight.load_bias()) for weight in open_weights(path)]
    assert str(path) in str(caught.value)
    assert "weights_only" not in str(caught.value)
    return str(caught.value)


def sound_tensors() -> dict[str, Any]:
    store = torch.randn(6, 8)
    return {
        "plain.weight": torch.randn(3, 4),
        "half.weight": torch.randn(3, 4).half(),
        "brain.weight": torch.randn(3, 4).bfloat16(),
        "double.weight": torch.randn(3, 4).double(),
        "eight.weight": torch.randn(3, 4).to(torch.float8_e4m3fn),
        "turned.weight": store.T,
        "part.weight": store[2:5, 1:8:2],
        "expanded.weight": torch.randn(4).expand(3, 4),
        "parameter.weight": nn.Parameter(torch.randn(3, 4)),
        "bias": torch.randn(3),
        "steps": torch.tensor(3),
        "ints": torch.arange(6).reshape(2, 3),
        "flags": torch.ones(2, 2, dtype=torch.bool),
        "short": torch.zeros(2, 2, dtype=torch.uint16),
        "empty": torch.zeros(0),
    }


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("protocol", [2, 4])
def test_every_tensor_is_read_as_torch_reads_it(tmp_path: Path, old: bool, protocol: int) -> None:
    tensors = sound_tensors()
    path = save(tmp_path / "a.pt", OrderedDict(tensors), old, pickle_protocol=protocol)
    found = open_torch(path)
    # torch itself can't read back some of the new types from the old format, and protocol 4 not safely
    expected = torch.load(path, weights_only=True) if protocol == 2 and not old else tensors
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        stored = found[name]
        assert (stored.shape, f"torch.{stored.dtype}") == (tuple(tensor.shape), str(tensor.dtype)), name
        if tensor.numel():  # an empty one is never loaded
            assert torch.equal(stored.load().double(), tensor.detach().double()), name


@pytest.mark.parametrize("old", [False, True])
def test_what_a_checkpoint_holds_besides_is_passed_over(tmp_path: Path, old: bool) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    checkpoint = {
        "state_dict": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "losses": [1.5, 2.5, None, True, 10**12],
        "best": np.float64(0.5),
        "noise": np.arange(3),
        "seen": {1, 2},
        "shape": torch.Size([1, 2]),
        "device": torch.device("cpu"),
        "raw": b"bytes",
    }
    found = {one.name: one for one in open_weights(save(tmp_path / "a.ckpt", checkpoint, old))}
    assert list(found) == ["0", "2"]
    assert torch.equal(found["2"].load(), net[2].weight)
    assert torch.equal(found["2"].load_bias(), net[2].bias)  # type: ignore[arg-type]


def test_a_tensor_alone_is_named_after_the_file(tmp_path: Path) -> None:
    (weight,) = open_weights(save(tmp_path / "layer7.pt", torch.eye(3)))
    assert (weight.name, weight.rows) == ("layer7", 3)
    refused(save(tmp_path / "list.pt", [torch.eye(3)]), "a state dict .* got a list")
    refused(save(tmp_path / "none.pt", None), "a state dict .* got a NoneType")


def test_checksums_may_be_missing(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        path = save(tmp_path / "a.pt", {"a.weight": torch.eye(3)})
    finally:
        torch.serialization.set_crc32_options(True)
    assert torch.equal(open_weights(path)[0].load(), torch.eye(3))


def test_tied_tensors_are_listed_once(tmp_path: Path) -> None:
    one = torch.randn(3, 4)
    for old in (False, True):
        path = save(tmp_path / f"{old}.pt", {"a.weight": one, "b.weight": one, "c.weight": one.clone()}, old)
        assert [weight.name for weight in open_weights(path)] == ["a", "c"]


class Code:
    """A pickle of this would make a file."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)


def codes(marker: Path) -> dict[str, Any]:
    return {
        "os": Code(os.mkdir, str(marker)),
        "exec": Code(builtins.exec, f"import os; os.mkdir({str(marker)!r})"),
        "eval": Code(builtins.eval, f"__import__('os').mkdir({str(marker)!r})"),
        "memory": Code(bytearray, 10**11),
        "import": Code(__import__, "this"),
        "getattr": Code(builtins.getattr, "a", "upper"),
        "torch": Code(torch.load, str(marker)),
        "zeros": Code(torch.zeros, 10**6, 10**6),
        "array": Code(np.zeros, 10**11),
    }


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", list(codes(Path())))
@pytest.mark.parametrize("form", ["zip", "old", "plain"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_code_is_named_and_not_run(tmp_path: Path, name: str, form: str, protocol: int) -> None:
    marker = tmp_path / "made"
    content = {"a.weight": torch.eye(3) if form != "plain" else 0, "extra": codes(marker)[name]}
    path = tmp_path / "evil.pt"
    if form == "plain":
        path.write_bytes(pickle.dumps(content, protocol=protocol))
    else:
        save(path, content, form == "old", pickle_protocol=protocol)
    sentence = refused(path, r"a pickle that calls \S+; nothing of it was run")
    assert "save only the tensors" in sentence
    assert not marker.exists()


@pytest.mark.parametrize("old", [False, True])
def test_whole_modules_are_refused_with_what_to_do(tmp_path: Path, old: bool) -> None:
    path = save(tmp_path / "net.pt", nn.Sequential(nn.Linear(3, 3)), old)
    assert "net.state_dict()" in refused(path, r"a pickle that calls torch\.nn\.modules\.")
    assert "Custom" in refused(save(tmp_path / "own.pt", Custom(), old), "a pickle that calls")


class Scripted(nn.Module):
    """Modules in a module, one of them twice, and a list of tensors, which is none of its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.blocks = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 5, bias=False))
        self.again = self.first
        self.sizes = [1, 2, 3]

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.first(x)).sum() + self.blocks(torch.ones(5)).sum()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torchscript_is_read_as_data(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Scripted()
    torch.jit.script(net).save(str(tmp_path / "script.pt"))
    found = {one.name: one for one in open_weights(tmp_path / "script.pt")}
    assert list(found) == ["first", "blocks.0", "blocks.2"]
    for name, one in found.items():
        module = net.get_submodule(name)
        assert torch.equal(one.load(), module.weight.flatten(1))
        bias = one.load_bias()
        assert bias is None if module.bias is None else torch.equal(bias, module.bias)


def test_an_archive_of_torchscript_without_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "script.pt"
    with zipfile.ZipFile(path, "w") as archive:  # as torch.jit.save lays it out
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py", "version"):
            archive.writestr(f"script/{name}", b"")
    refused(path, "a sound pickle in data.pkl")


def test_an_object_of_another_class_than_torchscripts_is_refused(tmp_path: Path) -> None:
    content = b"\x80\x02c__torch__x\nNet\n)\x81}b."
    path = tmp_path / "script.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("script/data.pkl", content)
    refused(path, "a pickle that calls __torch__x.Net")


def repacked(
    path: Path, change: Callable[[str, bytes], bytes], method: int = zipfile.ZIP_STORED, tail: bytes = b""
) -> Path:
    """The same archive with some of its members changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, change(name, content))
    path.write_bytes(path.read_bytes() + tail)
    return path


def test_compressed_archives_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "bomb.pt", {"a.weight": torch.zeros(500, 500)})
    repacked(path, lambda name, content: content, zipfile.ZIP_DEFLATED)
    refused(path, r"plain bytes in bomb/data\.pkl of .* got compressed or encrypted")


def with_pickle(path: Path, change: Callable[[bytes], bytes]) -> Path:
    return repacked(path, lambda name, content: change(content) if name.endswith("data.pkl") else content)


def binint(number: int) -> bytes:
    return b"J" + struct.pack("<i", number)


def tensor_file(
    path: Path, shape: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, count: int = 12
) -> Path:
    """A state dict of one tensor with any description, over a storage of 12 float32."""
    sizes = [b"(" + b"".join(map(binint, one)) + b"t" for one in (shape, stride)]
    content = (
        b"\x80\x02}X\x08\x00\x00\x00a.weightctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage"
        b"ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
        + binint(count)
        + b"tQ"
        + binint(offset)
        + sizes[0]
        + sizes[1]
        + b"\x89}tRs."
    )
    save(path, {"a.weight": torch.arange(12.0).reshape(3, 4)})
    return with_pickle(path, lambda _: content)


def test_the_description_that_the_lies_below_start_from_is_sound(tmp_path: Path) -> None:
    (weight,) = open_weights(tensor_file(tmp_path / "a.pt", (2, 3), (4, 1), 5))
    assert weight.load().tolist() == [[5, 6, 7], [9, 10, 11]]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "lie",
    [
        {"shape": (3, 5), "stride": (4, 1)},  # one number past the end
        {"shape": (3, 4), "stride": (4, 1), "offset": 1},
        {"shape": (3, 4), "stride": (5, 1)},
        {"shape": (30000, 40000), "stride": (40000, 1)},
        {"shape": (2**30, 2**30), "stride": (0, 0)},  # 12 numbers that would unfold to 4 EiB
        {"shape": (40000, 40000), "stride": (0, 0)},
        {"shape": (2**31 - 1, 4), "stride": (0, 1)},
        {"shape": (3, 4), "stride": (-4, 1), "offset": 11},
        {"shape": (-3, -4), "stride": (4, 1)},
        {"shape": (3, 4), "stride": (4,)},
        {"shape": (1,) * 65, "stride": (1,) * 65},
        {"shape": (3, 4), "stride": (4, 1), "offset": -1},
        {"shape": (3, 4), "stride": (4, 1), "count": 13},
        {"shape": (3, 4), "stride": (4, 1), "count": 11},
        {"shape": (3, 4), "stride": (4, 1), "count": -12},
    ],
)
def test_descriptions_that_do_not_fit_are_refused_by_name(tmp_path: Path, lie: dict[str, Any]) -> None:
    path = tensor_file(tmp_path / "a.pt", **lie)
    refused(path, r"a\.weight|a storage without a size|a shape or strides that are none")


def test_a_missing_record_is_named(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", {"a.weight": torch.eye(3), "b.weight": torch.ones(2, 2)})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("data/1")}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    refused(path, r"the data of b\.weight in .* got no record 1")


def test_sizes_beyond_the_archive_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", {"a.weight": torch.eye(3)})
    raw = bytearray(path.read_bytes())
    entry = raw.index(b"PK\x01\x02", raw.index(b"PK\x01\x02") + 1)
    while b"data/0" not in raw[entry : entry + 60]:
        entry = raw.index(b"PK\x01\x02", entry + 1)
    raw[entry + 20 : entry + 28] = struct.pack("<II", 2**31, 2**31)  # compressed and plain size
    path.write_bytes(raw)
    refused(path, r"a/data/0 of .* to fit the file; got 2,147,483,648 bytes")


def test_the_other_byte_order_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", {"a.weight": torch.eye(3)})
    repacked(path, lambda name, content: b"big" if name.endswith("byteorder") else content)
    refused(path, "little-endian")


def test_old_files_that_are_cut_short_or_lie_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", {"a.weight": torch.randn(30, 40)}, old=True)
    content = path.read_bytes()
    for length in (len(content) - 1, len(content) - 4800, 200, 60, 20, 5, 1):
        path.write_bytes(content[:length])
        refused(
            path, r"1,200 numbers in storage \d+" if length > 200 else "a sound pickle|a file of torch.save"
        )
    at = content.rindex(struct.pack("<q", 1200))  # the count before the numbers
    path.write_bytes(content[:at] + struct.pack("<q", 2**60) + content[at + 8 :])
    refused(path, r"1,200 numbers in storage \d+")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"garbage",
        b"\x80\x02.",
        b"\x80\x02}",
        b"\x80\x02R.",
        b"\x80\x02(.",
        b"\x80\x02t.",
        b"\x80\x02h\x05.",
        b"\x80\x02}}u.",
        b"\x80\x02](u.",
        b"\x80\x02}]]s.",  # an unhashable key
        b"\x80\x02Q.",
        b"\x80\x02}Q.",
        b"\x80\x02N\x85Q.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}R.",
        b"\x80\x02ctorch\nFloatStorage\n)R.",
        b"\x80\x02ctorch.storage\nUntypedStorage\nJ\x00\x00\x00\x70\x85R.",
        b"\x80\x02ctorch\nfloat32\n)R.",
        b"\x80\x02ccollections\nOrderedDict\n]\x85R.",
        b"\x80\x02NN\x93.",
        b"\x80\x04\x8c\x05torchN\x93.",
        b"\x80\x02X\xff\xff\xff\xffabc.",
        b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
        b"\x80\x04\x96\xff\xff\xff\xff\x03\x00\x00\x00abc.",
        b"\x80\x02r\xff\xff\xff\xff.",
        b"\x80\x02Nr\xff\xff\xff\xff.",  # a place in the memo that an array would fill 32 GB for
        b"(ios\nsystem\n.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02Pid\n.",
    ],
)
def test_broken_pickles_are_refused_and_cost_nothing(tmp_path: Path, pickled: bytes) -> None:
    path = save(tmp_path / "a.pt", {"a.weight": torch.eye(3)})
    with_pickle(path, lambda _: pickled)
    refused(path, r"a sound pickle|tensors and plain values|a state dict")


@pytest.mark.usefixtures("little_memory")
def test_a_value_that_unfolds_without_end_is_not_unfolded(tmp_path: Path) -> None:
    doubled = b"".join(b"q%ch%c\x86" % (n, n) for n in range(100))  # ((…, …), (…, …)) a hundred deep
    for start, end in ((b"", b"."), (b"", b"Q."), (b"", b")R."), (b"", b"N\x93."), (b"}", b"Ns.")):
        path = save(tmp_path / "a.pt", {"a.weight": torch.eye(3)})
        with_pickle(path, lambda _, start=start, end=end: b"\x80\x02" + start + b")" + doubled + end)
        refused(path, "expected")


@pytest.mark.usefixtures("little_memory")
def test_very_long_names_in_deep_checkpoints_are_not_multiplied(tmp_path: Path) -> None:
    checkpoint = {"n" * 10**6: {f"part{i}": {"epoch": i} for i in range(2000)}}
    path = save(tmp_path / "a.pt", checkpoint)
    refused(path, "a state dict")


LIMITED = """
import resource, sys
from pathlib import Path
import torch
from obverse._core.errors import BadInput
from obverse.weights._readers.open import open_weights
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
for name in sys.argv[1:]:
    try:
        for weight in open_weights(Path(name)):
            weight.load()
        print("read", name)
    except BadInput as error:
        print("refused", error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the limit is set from Linux's own numbers")
def test_bombs_stay_within_300_megabytes(tmp_path: Path) -> None:
    """Under a hard limit of address space, which an allocation of the promised size would hit."""
    repeated = tensor_file(tmp_path / "repeated.pt", (40000, 40000), (0, 0))
    bomb = tmp_path / "bomb.npz"
    header = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": (75, 2**20)}
    np.lib.format.write_array_header_1_0(header, about)
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w") as member,
    ):
        member.write(header.getvalue())
        for _ in range(75):
            member.write(bytes(2**22))
    fine = save(tmp_path / "fine.pt", {"a.weight": torch.eye(30)})
    command = [sys.executable, "-c", LIMITED, *map(str, (repeated, bomb, fine))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["refused", "refused", "read"], lines
    assert "a.weight" in lines[0]
    assert "at most 100 times the size of the file in a.npy" in lines[1]
