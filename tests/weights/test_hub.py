"""Weights on a hub: only what is asked for is read, and right; every refusal is a sentence."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
import torch
from huggingface_hub import close_session, constants
from safetensors.torch import load, save, save_file

import obverse as library
from obverse._core import BadInput
from obverse.weights._readers.address import Address, is_address, parse_address, spoken
from obverse.weights._readers.open import open_weights, settled
from obverse.weights._readers.ranges import RemoteFile
from training.helpers import obverse as obverse_process
from weights.gguf_files import Raw, gguf_bytes
from weights.hub_server import Hub, cut, other, ranged, refused, serving, silent, use, whole

INDEX = "model.safetensors.index.json"
GUESS = 2**16  # what is asked for at first
SIDE = 128
BYTES = 4 * SIDE * SIDE  # of one layer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    found = Hub()
    with serving(found) as address:
        use(monkeypatch, address, tmp_path / "home")
        monkeypatch.setattr("obverse.weights._readers.ranges._PAUSE", 0.001)
        close_session()
        yield found
        close_session()  # or the server waits for the next request of a connection that is kept


def layers(count: int = 4, side: int = SIDE) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {f"layers.{n}.weight": torch.randn(side, side, generator=random) for n in range(count)}


def sharded(tensors: dict[str, torch.Tensor], shards: int) -> dict[str, bytes]:
    names = [f"model-{n + 1:05}-of-{shards:05}.safetensors" for n in range(shards)]
    where = {tensor: names[n % shards] for n, tensor in enumerate(tensors)}
    files = {one: save({name: tensors[name] for name in where if where[name] == one}) for one in names}
    return files | {INDEX: json.dumps({"metadata": {}, "weight_map": where}).encode(), "README.md": b"# net"}


def single(hub: Hub, count: int = 4, **more: bytes) -> str:
    """A repository of one file; returns the commit."""
    return hub.repository().commit({"model.safetensors": save(layers(count)), "config.json": b"{}"} | more)


def sentence(source: str) -> str:
    with pytest.raises(BadInput) as caught:
        _ = [(weight.load(), weight.load_bias()) for weight in open_weights(source)]
    return str(caught.value)


# Names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf://org/name", Address("org/name")),
        ("hf://models/org/name/", Address("org/name")),
        ("hf://org/name@v1.0", Address("org/name", "v1.0")),
        ("hf://org/name/sub/a.npz", Address("org/name", "", "sub/a.npz")),
        ("hf://org/name/a@b.npz", Address("org/name", "", "a@b.npz")),
        ("hf://org/name@main/a@b.npz", Address("org/name", "main", "a@b.npz")),
        ("hf://org/name@refs/pr/12/a.npz", Address("org/name", "refs/pr/12", "a.npz")),
        ("hf://org/name@feature%2Fx/a.npz", Address("org/name", "feature/x", "a.npz")),
    ],
)
def test_the_parts_of_a_name(text: str, expected: Address) -> None:
    assert is_address(text)
    assert parse_address(text) == expected
    assert parse_address(str(expected)) == expected
    assert parse_address(Path(text)) == expected, "a Path leaves one slash of two"


@pytest.mark.parametrize(
    "text",
    [
        "hf://",
        "hf://name",
        "hf://org/",
        "hf://org/name@",
        "hf://org@v1/name",
        "hf://org/name/../../other/name",
        "hf://org/name//etc/passwd",
        "hf://org/name/a\\b",
        "hf://org/name/a\0b",
        "hf://org/name@a%00b",
        "hf://datasets/org/name",
        "hf://spaces/org/name/a.npz",
    ],
)
def test_other_names_are_refused_without_a_request(hub: Hub, text: str) -> None:
    assert "hf://org/name" in sentence(text)
    assert not hub.log


def test_a_name_as_one_reads_it() -> None:
    commit = 4 * "0123456789"
    assert spoken(f"hf://org/name@{commit}/a.npz") == "org/name@012345678901/a.npz"
    assert spoken(f"hf://org/name@{commit}") == Address("org/name", commit).short.removeprefix("hf://")
    assert spoken(f"hf://org/name@{commit}0/a.npz") == f"org/name@{commit}0/a.npz", "no commit"
    assert spoken("hf://") == ""


def test_a_path_is_no_name() -> None:
    assert not is_address("runs/hf")
    assert not is_address(Path("hf/org/name"))
    assert settled("runs/first") == "runs/first"


def test_a_repository_s_name_is_checked_by_the_library(hub: Hub) -> None:
    assert "expected a repository as org/name; got org/a--b" in sentence("hf://org/a--b")
    assert not hub.log


# What is read


def test_shards_give_what_the_files_have(hub: Hub, tmp_path: Path) -> None:
    tensors = layers(5) | {"brain.weight": torch.randn(40, 50).bfloat16(), "brain.bias": torch.randn(40)}
    tensors |= {"eight.weight": torch.randn(33, 34).to(torch.float8_e4m3fn), "whole": torch.ones(3, 4).char()}
    hub.repository().commit(sharded(tensors, 3))
    save_file(tensors, tmp_path / "local.safetensors")
    ours = open_weights("hf://org/net")
    theirs = open_weights(tmp_path / "local.safetensors")
    assert [(one.name, one.kind, one.left_out) for one in ours] == [
        (one.name, one.kind, one.left_out) for one in theirs
    ]
    for one, two in zip(ours, theirs, strict=True):
        if one.left_out:
            continue
        assert torch.equal(one.load(), two.load())
        first, second = one.load_bias(), two.load_bias()
        assert (first is None) == (second is None)
        assert first is None or torch.equal(first, second)


def test_one_layer_out_of_many_is_one_range(hub: Hub, obverse: Any) -> None:
    """16 layers of 64 KiB in 2 shards: two headers are read, and the bytes of one layer."""
    files = sharded(layers(16), 2)
    commit = hub.repository().commit(files)
    done = obverse("audit", "hf://org/net", "--layers", "layers.11", "--quick")
    assert done.code == 0, done
    assert "1 layer" in done.out
    assert f"hf://org/net: {INDEX} of commit {commit[:12]} is audited" in done.err
    shard = files["model-00002-of-00002.safetensors"]
    start, stop = place(shard, "layers.11.weight")
    asked = [one.span for one in hub.from_storage()]
    assert sorted(asked) == sorted([f"bytes=0-{GUESS - 1}"] * 2 + [f"bytes={start}-{stop - 1}"])
    assert stop - start == BYTES
    assert sum(one.sent for one in hub.from_storage()) == 2 * GUESS + BYTES
    about = sum(one.sent for one in hub.log) - 2 * GUESS - BYTES
    assert about < 3000, "the list of files and the index"
    assert {one.method for one in hub.log if "resolve" in one.path and INDEX not in one.path} == {"GET"}


def place(file: bytes, name: str) -> tuple[int, int]:
    """From which byte of a safetensors file to which a tensor goes, by the format's definition."""
    (length,) = struct.unpack("<Q", file[:8])
    start, stop = json.loads(file[8 : 8 + length])[name]["data_offsets"]
    return 8 + length + start, 8 + length + stop


def test_a_long_header_is_read_to_its_end(hub: Hub) -> None:
    tensors = {f"layers.{n}.{'x' * 200}.weight": torch.full((2, 2), float(n)) for n in range(400)}
    hub.repository().commit({"model.safetensors": save(tensors)})
    found = open_weights("hf://org/net")
    assert len(found) == 400
    assert len(hub.from_storage()) == 2
    assert float(found[7].load()[0, 0]) == 7.0


def test_a_file_shorter_than_the_first_request(hub: Hub) -> None:
    hub.repository().commit({"model.safetensors": save({"a.weight": torch.ones(2, 3)})})
    (one,) = open_weights("hf://org/net")
    assert torch.equal(one.load(), torch.ones(2, 3))


def test_nothing_is_asked_for_of_an_empty_tensor(hub: Hub) -> None:
    single(hub)
    file, _ = RemoteFile(parse_address(settled("hf://org/net"))).begin(10)
    hub.log.clear()
    assert file.read(100, 0, "nothing").view(torch.float32).shape == (0,)
    assert not hub.log


def test_a_tensor_that_several_matrices_are_cut_from_is_fetched_once(hub: Hub) -> None:
    fused = torch.randn(3 * 40, 40)
    hub.repository().commit({"model.safetensors": save({"attn.in_proj_weight": fused} | layers(2))})
    weights = open_weights("hf://org/net")
    parts = [one for one in weights if one.kind == "attention"]
    assert len(parts) == 3
    before = len(hub.from_storage())
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda one: one.load(), parts))
    assert torch.equal(torch.cat(found), fused)
    assert len(hub.from_storage()) == before + 1


def test_threads_read_side_by_side(hub: Hub) -> None:
    tensors = layers(12, 64)
    hub.repository().commit(sharded(tensors, 3))
    weights = open_weights("hf://org/net")
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda one: one.load(), weights * 3))
    for one, values in zip(weights * 3, found, strict=True):
        assert torch.equal(values, tensors[f"{one.name}.weight"])


def test_one_tensor_is_in_memory_at_a_time(hub: Hub) -> None:
    """NumPy's memory is traced, and that of the server, which is in this process."""
    side = 1024
    file = save(layers(6, side))
    hub.repository().commit({"model.safetensors": file})
    weights = open_weights("hf://org/net")
    weights[0].load()
    hub.blobs = dict(hub.blobs)  # made before the trace begins
    tracemalloc.start()
    try:
        for one in weights:
            one.load()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    tensor = 4 * side * side
    assert peak < 3 * tensor < len(file) / 2, "the tensor here, and the slice that the server sends"


def test_the_audit_of_a_repository_is_that_of_its_file(hub: Hub, tmp_path: Path) -> None:
    commit = single(hub, 2)
    save_file(layers(2), tmp_path / "local.safetensors")
    settings: dict[str, Any] = {"samples": 4, "exact": False}
    ours = library.audit("hf://org/net", generator=torch.Generator().manual_seed(3), **settings)
    theirs = library.audit(
        tmp_path / "local.safetensors", generator=torch.Generator().manual_seed(3), **settings
    )
    assert ours.model == f"hf://org/net@{commit}/model.safetensors"
    assert [replace(one, seconds=0) for one in ours.layers] == [
        replace(one, seconds=0) for one in theirs.layers
    ]


@pytest.mark.parametrize("shape", [(600, 90), (90, 600)])
def test_a_matrix_too_large_for_memory_is_fetched_once(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shape: tuple[int, int]
) -> None:
    """It is read many times, a few lines each; the numbers are those of the file on disk."""
    monkeypatch.setattr("obverse.weights._layer.LARGE", 10_000)
    monkeypatch.setattr("obverse.weights._readers.stored.BAND", 9000)
    random = torch.Generator().manual_seed(0)
    tensors = {f"{name}.weight": torch.randn(shape, generator=random).bfloat16() for name in "ab"}
    hub.repository().commit({"model.safetensors": save(tensors)})
    save_file(tensors, tmp_path / "local.safetensors")
    ours, theirs = (
        library.audit(one, samples=4, generator=torch.Generator().manual_seed(3))
        for one in ("hf://org/net", tmp_path / "local.safetensors")
    )
    assert "chosen at random" in ours.layers[0].sentence
    assert [replace(one, seconds=0) for one in ours.layers] == [
        replace(one, seconds=0) for one in theirs.layers
    ]
    assert len(hub.from_storage()) == 1 + 2


def test_where_there_is_no_room_for_a_large_matrix(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("obverse.weights._layer.LARGE", 1000)

    single(hub)

    def full(*words: object) -> IO[bytes]:
        return open("/dev/full", "r+b", buffering=0)

    monkeypatch.setattr("obverse.weights._readers.held.tempfile.TemporaryFile", full)
    with pytest.raises(BadInput, match=r"room for a large tensor in .*; got No space left.*set TMPDIR"):
        library.audit("hf://org/net")


# The commit


def test_a_name_is_settled_once_and_means_the_same_for_ever(hub: Hub) -> None:
    first = single(hub)
    name = settled("hf://org/net")
    assert name == f"hf://org/net@{first}/model.safetensors"
    weights = open_weights(name)
    second = hub.repository().commit({"model.safetensors": save({"layers.0.weight": torch.zeros(9, 9)})})
    hub.log.clear()
    assert torch.equal(weights[1].load(), layers()["layers.1.weight"]), "opened before, read after"
    assert torch.equal(open_weights(name)[2].load(), layers()["layers.2.weight"]), "opened again"
    assert all(first in one.path for one in hub.log if "resolve" in one.path)
    assert not any(one.path.startswith("/api") for one in hub.log), "nobody is asked what is meant"
    assert settled("hf://org/net") == f"hf://org/net@{second}/model.safetensors"


def test_branches_tags_and_references(hub: Hub) -> None:
    main = single(hub)
    branch = hub.repository().commit({"model.safetensors": save(layers(1))}, "refs/pr/1")
    assert branch != main
    assert len(open_weights("hf://org/net@refs/pr/1")) == 1
    assert len(open_weights("hf://org/net@main")) == 4
    assert len(open_weights(f"hf://org/net@{branch}")) == 1


def test_another_process_opens_the_settled_name(hub: Hub, tmp_path: Path) -> None:
    """With HF_ENDPOINT, HF_HOME and HF_TOKEN from the environment, as a worker does."""
    hub.repository().token = "secret"
    commit = single(hub)
    code = f"""
from obverse.weights import open_weights
weights = open_weights("hf://org/net@{commit}/model.safetensors")
print(len(weights), float(weights[3].load().sum()))
"""
    env = {
        "HF_ENDPOINT": str(constants.ENDPOINT),
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": "secret",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    expected = float(layers()["layers.3.weight"].sum())
    assert done.stdout.split() == ["4", str(expected)]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"X_Repo_Commit": "0" * 40}, "got one of commit 000000000000"),
        ({"X_Linked_Etag": '"another"', "ETag": '"another"'}, "got one with another entity tag than before"),
    ],
)
def test_a_file_that_becomes_another_is_noticed(hub: Hub, headers: dict[str, str], said: str) -> None:
    single(hub)
    weights = open_weights("hf://org/net")
    hub.headers = dict(headers)
    with pytest.raises(
        BadInput, match=r"expected the same file hf://org/net@.* as when it was opened"
    ) as caught:
        weights[0].load()
    assert said in str(caught.value)
    assert "start again: it was changed while it was read" in str(caught.value)


def test_a_mirror_without_commit_and_tag_will_do(hub: Hub) -> None:
    single(hub)
    hub.headers = dict.fromkeys(("X_Repo_Commit", "ETag", "X_Linked_Etag", "X_Linked_Size"))
    assert torch.equal(open_weights("hf://org/net")[0].load(), layers()["layers.0.weight"])


def test_a_commit_that_is_gone_is_named(hub: Hub) -> None:
    commit = single(hub)
    weights = open_weights("hf://org/net")
    hub.repository().commits.clear()
    with pytest.raises(BadInput, match=f"a branch, tag or commit of org/net; got {commit}"):
        weights[0].load()


# Which file


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        (("model.safetensors", "pytorch_model.bin", "README.md", "onnx/model.onnx"), "model.safetensors"),
        (("weights.npz", "README.md"), "weights.npz"),
        (("unet/a.safetensors", "vae/b.safetensors", "c.npz"), "c.npz"),
    ],
)
def test_the_file_that_is_meant(hub: Hub, files: tuple[str, ...], taken: str) -> None:
    hub.repository().commit(dict.fromkeys(files, b"-"))
    assert settled("hf://org/net").endswith(f"/{taken}")


def test_shards_count_as_one_file_and_a_folder_can_be_named(hub: Hub) -> None:
    files = {f"text/{name}": data for name, data in sharded(layers(), 2).items()}
    hub.repository().commit(files | {"other.safetensors": b"-"})
    assert settled("hf://org/net").endswith("/other.safetensors")
    assert settled("hf://org/net/text").endswith(f"/text/{INDEX}")
    assert len(open_weights("hf://org/net/text")) == 4


def test_the_parts_of_a_split_gguf_are_fetched_together(hub: Hub) -> None:
    parts = {
        f"m-{at + 1:05}-of-00002.gguf": gguf_bytes({f"blk.{at}.a.weight": Raw((5, 4), 0, bytes(80))})
        for at in range(2)
    }
    hub.repository().commit(parts | {"README.md": b"# net"})
    assert [one.name for one in open_weights("hf://org/net")] == ["blk.0.a", "blk.1.a"]


def test_where_several_are_meant_none_is_taken(hub: Hub) -> None:
    hub.repository().commit({"consolidated.safetensors": b"-"} | sharded(layers(), 2))
    said = sentence("hf://org/net")
    assert f"expected one file of weights in hf://org/net; got consolidated.safetensors and {INDEX};" in said
    assert "name the file to audit: hf://org/net/…" in said
    hub.repository("org/nested").commit({"a/x.safetensors": b"-", "b/y.npz": b"-", "README.md": b""})
    assert "got none but in its folders: a/x.safetensors and b/y.npz" in sentence("hf://org/nested")
    hub.repository("org/none").commit({"README.md": b""})
    assert "got none; name the file" in sentence("hf://org/none")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "hf://org/net/no.npz",
            "expected no.npz in hf://org/net; got neither a file nor a folder of that name",
        ),
        ("hf://org/net/config.json", "expected a name that ends in .safetensors, .*; got config.json"),
        (
            "hf://org/net@{commit}/no.npz",
            "expected the file no.npz in org/net; got none at revision {commit}",
        ),
        ("hf://org/net@{commit}/no.safetensors", "expected the file no.safetensors in org/net; got none at"),
        ("hf://org/net@v9", "expected a branch, tag or commit of org/net; got v9"),
        ("hf://org/none", "the repository org/none on http.*; got none of that name, or a private one .*401"),
        ("hf://org/private", "got none of that name, or a private one .*check the name, and log in with"),
        (
            "hf://org/gated",
            "expected access to org/gated, a gated repository; got HTTP status 401; accept its",
        ),
    ],
)
def test_what_a_hub_does_not_give(hub: Hub, name: str, said: str) -> None:
    import re

    commit = single(hub)
    hub.repository("org/private").token = "secret"
    hub.repository("org/gated").gated = True
    assert re.search(said.replace("{commit}", commit), sentence(name.replace("{commit}", commit)))


def test_a_token_opens_a_private_repository_and_stays_on_the_hub(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    single(hub)
    hub.repository().token = "secret"
    monkeypatch.setenv("HF_TOKEN", "wrong")
    assert "none of that name, or a private one (HTTP status 404)" in sentence("hf://org/net")
    hub.repository().gated = True
    assert "a gated repository; got HTTP status 403" in sentence("hf://org/net")
    hub.log.clear()
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert torch.equal(open_weights("hf://org/net")[0].load(), layers()["layers.0.weight"])
    assert all(one.authorized for one in hub.log if not one.path.startswith("/storage"))
    assert hub.from_storage()
    assert not any(one.authorized for one in hub.from_storage()), "which is another host"


# The connection


def test_a_cut_connection_is_resumed_where_it_was(hub: Hub) -> None:
    single(hub)
    hub.plan = [None, cut(1000), refused(503), cut(0), cut(2000)]
    found = open_weights("hf://org/net")[0].load()
    assert torch.equal(found, layers()["layers.0.weight"])
    starts = [
        int(one.span.removeprefix("bytes=").split("-")[0]) for one in hub.from_storage()[1:] if one.span
    ]
    assert [one - starts[0] for one in starts] == [0, 1000, 1000, 1000, 3000]


def test_what_progresses_is_given_more_tries(hub: Hub) -> None:
    """Eight cuts, each after 1.5 MiB: more than the tries in a row."""
    tensor = torch.randn(2048, 2048)
    hub.repository().commit({"model.safetensors": save({"a.weight": tensor})})
    hub.plan = [None, *[cut(3 * 2**19)] * 8]
    assert torch.equal(open_weights("hf://org/net")[0].load(), tensor)


@pytest.mark.parametrize("reply", [cut(100), cut(0), refused(503), refused(500)])
def test_a_connection_that_stays_cut_is_given_up(hub: Hub, reply: Any) -> None:
    single(hub)
    weights = open_weights("hf://org/net")
    hub.usual = reply
    before = len(hub.from_storage())
    with pytest.raises(
        BadInput, match=r"expected layers\.0\.weight of hf://org/net@.*, 65,536 bytes"
    ) as caught:
        weights[0].load()
    assert "in 5 tries" in str(caught.value)
    assert "nothing of it was used" in str(caught.value)
    assert len(hub.from_storage()) == before + 5
    hub.usual = Hub().usual
    assert torch.equal(weights[0].load(), layers()["layers.0.weight"]), "and asked again, it is read"


def test_a_server_that_falls_silent_is_asked_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.1)
    single(hub)
    hub.plan = [ranged, silent(0.3)]
    assert torch.equal(open_weights("hf://org/net")[0].load(), layers()["layers.0.weight"])
    assert len(hub.from_storage()) == 3


def test_a_busy_server_is_waited_for(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", waited.append)
    single(hub)
    hub.plan = [refused(429, Retry_After="7")]
    assert len(open_weights("hf://org/net")) == 4
    assert waited == [8.0], "a second more than it says"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            whole,
            "a server that gives ranges; got HTTP status 200, the whole file; download it whole: hf",
        ),
        (other(first=1), "the range 'bytes 33"),
        (other(last=-1), "the range 'bytes 33"),
        (other(last=5, body=5), "the range 'bytes 33"),
        (other(body=7), "more than the 65,536 bytes that were asked for"),
        (other(body=-7), "got 65,529 in 5 tries, the last of which ended with"),
        (other(size=1), "as when it was opened; got one of"),
        (refused(206), "the range '' instead of bytes"),
        (refused(416, Content_Range="bytes */99"), "got a file that ends at 99 bytes"),
        (refused(403), "expected to be allowed to read hf://org/net@"),
        (refused(404), "got HTTP status 404"),
        (refused(206, Content_Encoding="gzip"), "got bytes packed by gzip"),
        (refused(302, Location="ftp://localhost/x"), "unsupported protocol"),
    ],
)
def test_a_server_at_fault_is_refused(hub: Hub, reply: Any, said: str) -> None:
    single(hub)
    weights = open_weights("hf://org/net")
    hub.usual = reply
    with pytest.raises(BadInput) as caught:
        weights[0].load()
    assert said in str(caught.value)
    assert "hf://org/net@" in str(caught.value)


def test_a_server_that_ignores_ranges_is_refused_before_it_sends_the_file(hub: Hub) -> None:
    single(hub)
    hub.usual = whole
    assert "a server that gives ranges; got HTTP status 200, the whole file" in sentence("hf://org/net")


def test_no_network(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        said = sentence("hf://org/net")
    assert said.startswith(f"expected to reach {address}; got ")
    assert "HF_HUB_OFFLINE=1" in said


@pytest.mark.parametrize("status", [500, 418])
def test_a_hub_that_is_down(hub: Hub, status: int) -> None:
    hub.status = status
    assert "expected an answer about hf://org/net from http://127.0.0.1" in sentence("hf://org/net")


def test_another_server_than_a_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    single(hub)
    monkeypatch.setattr("weights.hub_server.json.dumps", lambda value: "<html>")
    assert "expected the interface of a hub at http://127.0.0.1" in sentence("hf://org/net")
    monkeypatch.setattr("weights.hub_server.json.dumps", lambda value: "[1]")
    assert "check HF_ENDPOINT" in sentence("hf://org/net")
    monkeypatch.setattr("weights.hub_server.json.dumps", lambda value: '{"id": "org/net", "sha": "main"}')
    assert "expected the commit of hf://org/net as 40 digits" in sentence("hf://org/net")


def test_a_size_that_is_no_number(hub: Hub) -> None:
    hub.repository().commit(sharded(layers(), 2))
    hub.headers = {"Content_Range": "many"}
    assert "expected the interface of a hub at http://127.0.0.1" in sentence(f"hf://org/net/{INDEX}")
    hub.headers = {"X_Linked_Size": "many"}
    assert "bytes of hf://org/net@" in (said := sentence(f"hf://org/net/{INDEX}"))
    assert "got no size; check HF_ENDPOINT" in said


def test_a_password_in_the_endpoint_is_not_shown(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(constants.ENDPOINT).replace("http://", "http://me:password@")
    monkeypatch.setattr(constants, "ENDPOINT", place)
    said = sentence("hf://org/none")
    assert "password" not in said
    assert "on http://127.0.0.1:" in said


def test_the_server_dies_half_way(hub: Hub, obverse: Any, tmp_path: Path) -> None:
    """What was measured is kept, and not asked for again; until then nothing looks like a result."""
    commit = single(hub)
    command = ("audit", "hf://org/net", "--quick", "--out", tmp_path / "out")
    hub.plan = [ranged, ranged]  # the header and one layer
    hub.usual = cut(10)
    done = obverse(*command)
    assert done.code == 2
    assert ", 65,536 bytes; got 50 in 5 tries" in done.err
    assert "in 5 tries" in done.err
    assert not (tmp_path / "out" / "audit.json").exists()
    hub.usual = ranged
    hub.log.clear()
    hub.repository().commit({"model.safetensors": save(layers(2))})
    done = obverse(*command)
    assert (done.code, hub.from_storage()) == (2, hub.from_storage()[:1]), (
        "main is another commit: not resumed"
    )
    hub.repository().branches["main"] = commit
    hub.log.clear()
    done = obverse(*command)
    assert done.code == 0, done
    assert len(hub.from_storage()) == 1 + 3, "the header, and three layers out of four"
    assert len(json.loads((tmp_path / "out" / "audit.json").read_text())["layers"]) == 4


# Headers


def entry(shape: list[Any], start: int, stop: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def made(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"", "weights in hf://org/net@.*; got an empty file"),
        (b"1234", "expected safetensors in hf://org/net@.*; got 4 bytes"),
        (made({}, length=10**9), "got a header of 1,000,000,000 bytes in a file of 10"),
        (made(b"{", length=1), "got another header .JSONDecodeError"),
        (made([1]), "got another header .AttributeError"),
        (made({"a": 1}), "got another header .TypeError"),
        (made({"a": {"dtype": "F32"}}), "got another header .KeyError"),
        (made({"a.weight": entry([8, 8], 0, 256)}, bytes(100)), "bytes 0 to 256 of 100"),
        (made({"a.weight": entry([2**40, 2**20], 0, 2**62)}, bytes(9)), r"a\.weight: F32 of shape .* of 9"),
        (made({"a.weight": entry([2, 2], 0, 12)}, bytes(12)), "at bytes 0 to 12 of 12"),
        (made({"a.weight": entry([2, -2], 0, 16)}, bytes(16)), "got another header .ValueError"),
        (made({"a.weight": entry([2, 2], 0, 16)}, bytes(20)), "got 4 bytes after the last tensor"),
        (made({"a": entry([4], 0, 16), "b": entry([4], 8, 24)}, bytes(24)), "got b from byte 8 .* at 16"),
        (made({"\x1b[2J": entry([4], 4, 20)}, bytes(20)), r"\\x1b\[2J from byte 4 on"),
        (made({"a.weight": entry([2, 2], 0, 16, "F99")}, bytes(16)), r"a\.weight: F99 of shape"),
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused_before_anything_of_it_is_read(
    hub: Hub, file: bytes, said: str
) -> None:
    import re

    hub.repository().commit({"model.safetensors": file})
    found = sentence("hf://org/net")
    assert re.search(said, found), found
    assert len(hub.from_storage()) <= 1


def test_a_header_that_is_too_long_is_not_read(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("obverse.weights._readers.remote._LONGEST_HEADER", 1000)
    hub.repository().commit({"model.safetensors": made({"__metadata__": {"x": "y" * 2000}})})
    assert "expected a header of at most 1,000 bytes in hf://org/net@" in sentence("hf://org/net")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (
            {"weight_map": {"a.weight": "../../secret.safetensors"}},
            "expected files of org/net in hf://org/net@",
        ),
        ({"weight_map": {"a.weight": "/etc/x.safetensors"}}, "got /etc/x.safetensors"),
        ({"weight_map": {"a.weight": "a.bin"}}, "got a.bin"),
        ({"weight_map": {"a.weight": 5}}, "got 5"),
        (
            {"weight_map": {"a.weight": "no.safetensors"}},
            "expected the file no.safetensors in org/net; got none",
        ),
        (
            {"weight_map": {"b.weight": "model.safetensors"}},
            "expected the tensor b.weight in model.safetensors",
        ),
        ({"weight_map": {}}, "tensors and their files"),
        ({}, "tensors and their files"),
    ],
)
def test_an_index_that_lies_is_refused(hub: Hub, index: Any, said: str) -> None:
    shard = save({"a.weight": torch.ones(2, 2)})
    commit = hub.repository().commit({INDEX: json.dumps(index).encode(), "model.safetensors": shard})
    assert said in sentence(f"hf://org/net@{commit}/{INDEX}")


def test_an_index_of_any_size_is_not_fetched(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("obverse.weights._readers.remote.MAX_JSON", 100)
    hub.repository().commit(sharded(layers(), 2))
    assert "expected at most 100 bytes of hf://org/net@" in sentence(f"hf://org/net/{INDEX}")
    assert not [one for one in hub.log if one.method == "GET" and INDEX in one.path]


# The cache


def downloaded(*names: str) -> None:
    from huggingface_hub import hf_hub_download

    for name in names:
        hf_hub_download("org/net", name)


@pytest.mark.parametrize("shards", [1, 2])
def test_what_is_in_the_cache_is_read_there(hub: Hub, monkeypatch: pytest.MonkeyPatch, shards: int) -> None:
    files = sharded(layers(), 2) if shards > 1 else {"model.safetensors": save(layers())}
    commit = hub.repository().commit(files)
    downloaded(*files)
    hub.log.clear()
    name = f"hf://org/net@{commit}/{INDEX if shards > 1 else 'model.safetensors'}"
    for one in open_weights(name):
        assert torch.equal(one.load(), layers()[f"{one.name}.weight"])
    assert not hub.log, "a commit and a file that are there: nobody is asked"
    assert len(open_weights("hf://org/net")) == 4
    assert [one.path for one in hub.log] == ["/api/models/org/net"], "what main is now"
    hub.log.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert settled("hf://org/net") == name
    assert settled("hf://org/net@main") == name
    for one in open_weights("hf://org/net"):
        assert torch.equal(one.load(), layers()[f"{one.name}.weight"])
    assert not hub.log


def test_offline_what_is_not_there_is_named(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sharded(layers(), 2)
    commit = hub.repository().commit(files)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    said = sentence("hf://org/net")
    assert said.startswith("expected hf://org/net in the cache ")
    assert (
        "as HF_HUB_OFFLINE is set; got no such copy; unset it, or download with: hf download org/net" in said
    )
    assert "hf download org/net x.safetensors --revision v1" in sentence("hf://org/net@v1/x.safetensors")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    downloaded(INDEX, "model-00001-of-00002.safetensors")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.log.clear()
    said = sentence("hf://org/net")
    assert f"hf://org/net@{commit[:12]}/model-00002-of-00002.safetensors in the cache" in said
    assert f"hf download org/net model-00002-of-00002.safetensors --revision {commit}" in said
    assert not hub.log


def test_a_shard_that_is_in_the_cache_is_not_asked_for(hub: Hub) -> None:
    hub.repository().commit(sharded(layers(), 2))
    downloaded("model-00001-of-00002.safetensors")
    hub.log.clear()
    for one in open_weights("hf://org/net"):
        assert torch.equal(one.load(), layers()[f"{one.name}.weight"])
    assert not any("00001" in one.path for one in hub.log)
    assert any("00002" in one.path for one in hub.log)


def test_other_formats_are_downloaded_once_through_the_cache(hub: Hub, tmp_path: Path) -> None:
    content = BytesIO()
    np.savez(content, w=np.arange(40 * 50, dtype=np.float32).reshape(40, 50))
    commit = hub.repository().commit({"weights.npz": content.getvalue(), "README.md": b""})
    hub.plan = [cut(100)]  # resumed by the library
    (one,) = open_weights("hf://org/net")
    assert float(one.load()[39, 49]) == 1999.0
    assert (tmp_path / "home/hub/models--org--net/snapshots" / commit / "weights.npz").is_file()
    hub.log.clear()
    (one,) = open_weights(f"hf://org/net@{commit}/weights.npz")
    assert float(one.load()[39, 49]) == 1999.0
    assert not hub.log


def test_a_pickle_on_a_hub_is_not_run(hub: Hub, tmp_path: Path) -> None:
    hub.repository().commit(
        {"pytorch_model.bin": b"cos\nsystem\n(S'touch " + bytes(tmp_path / "ran") + b"'\ntR."}
    )
    assert "pytorch_model.bin" in sentence("hf://org/net")
    assert not (tmp_path / "ran").exists()


# The command


def test_against_a_repository(hub: Hub, obverse: Any, tmp_path: Path) -> None:
    single(hub)
    save_file(layers(), tmp_path / "local.safetensors")
    done = obverse("audit", tmp_path / "local.safetensors", "--against", "hf://org/net", "--quick")
    assert done.code == 0, done
    assert "4 layers in both" in " ".join(done.out.split())


def test_the_record_names_commit_and_file(hub: Hub, obverse: Any, tmp_path: Path) -> None:
    commit = single(hub, 1)
    done = obverse("audit", "hf://org/net", "--quick", "--out", tmp_path / "out")
    assert done.code == 0, done
    about = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert about["model"] == f"hf://org/net@{commit}/model.safetensors"
    page = (tmp_path / "out" / "audit.html").read_text(encoding="utf-8")
    assert f"What in org/net@{commit[:12]}/model.safetensors is signal" in page


@pytest.mark.slow
def test_processes_open_the_repository_themselves(hub: Hub, tmp_path: Path) -> None:
    hub.repository().commit(sharded(layers(6), 2))
    env = {"HF_ENDPOINT": str(constants.ENDPOINT), "HF_HOME": str(tmp_path / "home")}
    found = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        words = ["audit", "hf://org/net", "--quick", "--jobs", jobs, "--out", str(out)]
        done = obverse_process(*words, **env)
        assert done.returncode == 0, done.stderr
        layers_of = json.loads((out / "audit.json").read_text())["layers"]
        found.append([one | {"seconds": 0} for one in layers_of])
    assert found[0] == found[1]
    assert len(found[0]) == 6


def test_what_needs_a_run_says_so(hub: Hub, obverse: Any) -> None:
    done = obverse("audit", "hf://org/net", "--data", "own")
    assert (done.code, hub.log) == (2, [])
    assert "weights alone cannot be run; got hf://org/net" in done.err
    done = obverse("audit", "hf://org/net", "--ablate", "--data", "digits")
    assert (done.code, hub.log) == (2, [])
    assert "hf://org/net" in done.err
    single(hub)
    done = obverse("audit", "hf://org/net", "--against", "initial")
    assert done.code == 2
    assert "for --against initial: weights alone cannot be run; got hf://org/net" in done.err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, obverse: Any) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    done = obverse("audit", "hf://org/net")
    assert done.code == 2
    assert "pip install 'obverse[hub]'" in done.err


def test_a_version_of_the_library_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.utils", type("old", (), {}))
    monkeypatch.setitem(sys.modules, "huggingface_hub.utils", type("old", (), {}))  # type: ignore[arg-type]
    assert "expected huggingface_hub 1.0 or later" in sentence("hf://org/net")


def test_the_format_s_own_library_agrees() -> None:
    """`place`, by which the ranges are judged, against safetensors itself."""
    file = save(layers(3))
    start, stop = place(file, "layers.1.weight")
    assert torch.equal(
        torch.frombuffer(bytearray(file[start:stop]), dtype=torch.float32).reshape(SIDE, SIDE),
        load(file)["layers.1.weight"],
    )


# Adapters


def adapter(rank: int = 4) -> dict[str, bytes]:
    random = torch.Generator().manual_seed(1)
    sides = {"A": (rank, SIDE), "B": (SIDE, rank)}
    tensors = {
        f"base_model.model.layers.{n}.lora_{side}.weight": torch.randn(shape, generator=random)
        for n in range(2)
        for side, shape in sides.items()
    }
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": ["layers.0", "layers.1"]}
    return {"adapter_model.safetensors": save(tensors), "adapter_config.json": json.dumps(config).encode()}


@pytest.mark.parametrize("folder", ["", "checkpoint-7/"])
def test_an_adapter_is_fetched_and_audited_as_one_on_disk(hub: Hub, tmp_path: Path, folder: str) -> None:
    files = adapter()
    hub.repository("org/lora").commit({f"{folder}{name}": data for name, data in files.items()})
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    source = f"hf://org/lora@main/{folder}".rstrip("/") if folder else "hf://org/lora"
    one, other = (
        library.weights.audit_adapter(place, generator=torch.Generator().manual_seed(0))
        for place in (source, tmp_path)
    )
    assert one.layers == other.layers
    assert one.model == source


def test_the_command_says_which_adapter_it_audits_and_needs_no_download(
    hub: Hub, obverse: Any, tmp_path: Path
) -> None:
    commit = hub.repository("org/lora").commit(adapter())
    done = obverse("audit", "hf://org/lora", "--out", tmp_path / "out")
    assert "layers.0" in done.out
    found = json.loads((tmp_path / "out" / "adapter.json").read_text())
    assert found["model"] == f"hf://org/lora@{commit}/adapter_model.safetensors"
    hub.repository().commit({"model.safetensors": save(layers(2))})
    with_base = obverse("audit", "hf://org/lora", "--base", "hf://org/net")
    assert "of base" in with_base.out
    wrong = obverse("audit", "hf://org/lora", "--quick")
    assert wrong.code == 2
    assert "for an adapter; got --quick" in wrong.err


def test_an_adapter_without_its_configuration_is_refused(hub: Hub) -> None:
    files = adapter()
    del files["adapter_config.json"]
    hub.repository("org/lora").commit(files)
    with pytest.raises(BadInput, match=r"adapter_config\.json"):
        library.weights.audit_adapter("hf://org/lora")
