"""Checkpoints: at every moment a complete pair lies on disk; what is not understood is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from obverse import BadInput
from obverse._core.files import WriteFailed
from obverse.training._checkpoint import load_checkpoint, save_checkpoint
from training.helpers import CRASH, ENVIRONMENT, files_below

TENSORS = {
    "weight": torch.arange(12.0).reshape(3, 4).T,  # not contiguous
    "half": torch.ones(2, dtype=torch.float16),
    "counts": torch.tensor([1, 2], dtype=torch.int64),
    "nothing": torch.empty(0),
}
EXTRA = {"loss_sum": 1 / 3, "records": 2}


def save(folder: Path, step: int = 7) -> Path:
    save_checkpoint(folder, step, TENSORS, EXTRA)
    return folder / "latest.json"


def change(pointer: Path, **values: object) -> None:
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | values))


def forge(folder: Path, content: bytes, step: int = 7) -> None:
    """A pair whose checksum is right for whatever content it has."""
    pointer = folder / "latest.json"
    if not pointer.exists():
        save(folder, step)
    (folder / f"step-{step:09d}.safetensors").write_bytes(content)
    change(pointer, sha256=hashlib.sha256(content).hexdigest())


def test_what_was_saved_comes_back(tmp_path):
    save(tmp_path / "new" / "folder")
    found = load_checkpoint(tmp_path / "new" / "folder")
    assert found is not None
    step, tensors, extra = found
    assert (step, extra) == (7, EXTRA)
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype


def test_no_checkpoint_is_none(tmp_path):
    assert load_checkpoint(tmp_path) is None
    assert load_checkpoint(tmp_path / "missing") is None


def test_only_the_last_pair_remains_and_other_files_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    save(tmp_path, 1)
    (tmp_path / ".step-000000002.safetensors.tmp").write_text("half")
    (tmp_path / "step-000000002.safetensors").write_text("without a pointer")
    save(tmp_path, 1_000_000_000)  # more digits than the name is padded to
    save(tmp_path, 1_000_000_001)
    assert files_below(tmp_path) == {"notes.txt", "latest.json", "step-1000000001.safetensors"}


@pytest.mark.parametrize("place", ["fsync", "replace"])
@pytest.mark.parametrize("call", range(1, 5))
def test_a_full_disk_at_any_call_leaves_a_whole_checkpoint_and_no_rubbish(tmp_path, monkeypatch, place, call):
    save(tmp_path, 1)
    calls = 0
    original = getattr(os, place)

    def fail(*args: object) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(*args)

    monkeypatch.setattr(os, place, fail)
    total = {"fsync": 4, "replace": 2}[place]  # the file and the folder, tensors and pointer
    if call > total:
        save(tmp_path, 2)
        assert calls == total
        return
    with pytest.raises(WriteFailed, match="No space left on device"):
        save(tmp_path, 2)
    monkeypatch.undo()
    found = load_checkpoint(tmp_path)
    assert found is not None
    # The pointer's own folder may fail to sync after the pointer is in place.
    assert found[0] == (2 if (place, call) == ("fsync", 4) else 1)
    assert not [name for name in files_below(tmp_path) if name.endswith(".tmp")]
    save(tmp_path, 3)
    assert files_below(tmp_path) == {"latest.json", "step-000000003.safetensors"}


KILLED_EVERYWHERE = """
import os, sys
sys.path.insert(0, {crash!r})
from pathlib import Path
import torch
from crash import arm
from obverse.training._checkpoint import load_checkpoint, save_checkpoint
folder = Path({folder!r})
for operation in ("write", "fsync", "replace", "after-replace", "unlink", "any"):
    for number in range(1, 100):
        save_checkpoint(folder, 1, {{"a": torch.full((1000,), 1.0)}}, {{"n": 1}})
        if (process := os.fork()) == 0:
            arm(operation, number)
            save_checkpoint(folder, 2, {{"a": torch.full((1000,), 2.0)}}, {{"n": 2}})
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        step, tensors, extra = load_checkpoint(folder)
        assert torch.equal(tensors["a"], torch.full((1000,), float(step))) and extra == {{"n": step}}
        print(operation, number, status, step)
        if status == 0:
            break
        save_checkpoint(folder, 3, {{"a": torch.zeros(1)}}, {{}})
        assert sorted(os.listdir(folder)) == ["latest.json", "step-000000003.safetensors"]
"""


def test_kill_9_at_every_operation_of_a_write_leaves_a_whole_checkpoint(tmp_path):
    script = KILLED_EVERYWHERE.format(crash=str(CRASH.parent), folder=str(tmp_path / "checkpoint"))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    killed = {
        kind: [step for name, _, code, step in lines if (name, code) == (kind, "-9")] for kind, *_ in lines
    }
    # Half a write loses the new checkpoint; so does every crash before its pointer is in place.
    assert killed["write"] == ["1", "1"]
    assert killed["replace"] == ["1", "1"]
    assert killed["after-replace"] == ["1", "2"]
    assert killed["fsync"] == ["1", "1", "1", "2"]
    assert set(killed["unlink"]) == {"1", "2"}
    assert len(killed["any"]) == sum(len(steps) for kind, steps in killed.items() if kind != "any")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"format": 2}, "checkpoint format 1; got 2"),
        ({"format": None}, "checkpoint format 1; got None"),
        ({"sha256": "0" * 64}, "checksum"),
        ({"sha256": None}, "checksum"),
        ({"file": "../step-000000007.safetensors"}, r"\.\./step"),
        ({"file": "/etc/passwd"}, "/etc/passwd"),
        ({"file": "step-000000008.safetensors"}, "step-000000007"),
        ({"file": 5}, "got 5"),
        ({"step": 8}, "step-000000008"),
        ({"step": -7}, "got -7"),
        ({"step": True}, "got True"),
        ({"step": 7.0}, r"got 7\.0"),
        ({"step": 10**300}, "step-1000"),
        ({"extra": [1]}, r"got 7, \[1\]"),
    ],
    ids=str,
)
def test_a_pointer_that_says_something_else_is_refused(tmp_path, values, said):
    change(save(tmp_path), **values)
    with pytest.raises(BadInput, match=said):
        load_checkpoint(tmp_path)


def test_a_file_outside_the_folder_is_refused_even_if_all_the_rest_is_right(tmp_path):
    folder = tmp_path / "checkpoint"
    pointer = save(folder)
    outside = tmp_path / "step-000000007.safetensors"
    (folder / outside.name).rename(outside)
    for name in (f"../{outside.name}", str(outside)):
        change(pointer, file=name)
        with pytest.raises(BadInput, match="the file step-000000007"):
            load_checkpoint(folder)


def test_missing_and_damaged_tensors_are_refused(tmp_path):
    save(tmp_path)
    path = tmp_path / "step-000000007.safetensors"
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(BadInput, match="No such file"):
        load_checkpoint(tmp_path)
    path.mkdir()
    with pytest.raises(BadInput, match="directory"):
        load_checkpoint(tmp_path)
    path.rmdir()
    path.write_bytes(content[:-1])
    with pytest.raises(BadInput, match="checksum"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("cut", [0, 4, 8, 50, -1])
def test_truncated_tensors_with_the_right_checksum_are_refused(tmp_path, cut):
    save(tmp_path)
    forge(tmp_path, (tmp_path / "step-000000007.safetensors").read_bytes()[:cut])
    with pytest.raises(BadInput, match="safetensors in"):
        load_checkpoint(tmp_path)


def test_nan_in_a_pointer_is_refused(tmp_path):
    pointer = save(tmp_path)
    pointer.write_text(pointer.read_text().replace('"records": 2', '"records": NaN'))
    with pytest.raises(BadInput, match="NaN"):
        load_checkpoint(tmp_path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save(folder)
    return folder


def refused_or_the_same(folder: Path) -> None:
    try:
        found = load_checkpoint(folder)
    except BadInput:
        return
    assert found is not None
    assert torch.equal(found[1]["weight"], TENSORS["weight"])


edits = st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3)), min_size=1, max_size=4)


def edited(content: bytes, changes: list[tuple[int, bytes]]) -> bytes:
    """Up to four places overwritten, or with empty bytes one byte cut out."""
    for place, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + max(1, len(new)) :]
    return content


@given(edits)
def test_a_pointer_with_changed_bytes_is_refused_or_harmless(saved, changes):
    original = (saved / "latest.json").read_bytes()
    try:
        (saved / "latest.json").write_bytes(edited(original, changes))
        refused_or_the_same(saved)
    finally:
        (saved / "latest.json").write_bytes(original)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(["format", "file", "sha256", "step", "extra", "other"]), json_values, min_size=1
    )
)
def test_a_pointer_with_changed_values_is_refused_or_harmless(saved, values):
    original = (saved / "latest.json").read_bytes()
    try:
        change(saved / "latest.json", **values)
        refused_or_the_same(saved)
    finally:
        (saved / "latest.json").write_bytes(original)


@given(edits)
def test_changed_tensors_with_the_right_checksum_are_tensors_or_refused(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("forged")
    save(folder)
    content = (folder / "step-000000007.safetensors").read_bytes()
    header = 8 + struct.unpack("<Q", content[:8])[0]
    forge(folder, edited(content[:header], changes) + content[header:])
    try:
        found = load_checkpoint(folder)
        assert found is not None
        assert all(isinstance(tensor, torch.Tensor) for tensor in found[1].values())
    except BadInput:
        pass


@pytest.mark.parametrize("dtype", ["F8_E8M0", "F4", "F6_E2M3", "C64", "X32", "BOOL"])
def test_a_type_of_numbers_that_is_not_known_is_refused(tmp_path, dtype):
    header = json.dumps({"a": {"dtype": dtype, "shape": [8], "data_offsets": [0, 4]}}).encode()
    save(tmp_path)
    forge(tmp_path, struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(BadInput):
        load_checkpoint(tmp_path)
