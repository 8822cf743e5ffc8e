from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from data.helpers import (
    IDX_NAMES,
    Reply,
    Site,
    held,
    idx_contents,
    ignore_range,
    md5,
    other,
    slow,
    status,
    tiny_cifar100,
    tiny_mnist,
    truncated,
)
from obverse._core.errors import BadInput
from obverse.data._fetch import ensure, locate
from obverse.data._sources import File, Known


@pytest.fixture
def known(site: Site) -> Known:
    known, site.files = tiny_mnist(site.base)
    return known


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "mnist"


def data_files(folder: Path) -> list[str]:
    """Everything but the lock, which is hidden."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name[0] != ".")


def test_downloads_once(site: Site, known: Known, folder: Path) -> None:
    ensure("mnist", known, folder)
    assert data_files(folder) == sorted(IDX_NAMES)
    for name, content in zip(IDX_NAMES, idx_contents(), strict=True):
        assert gzip.decompress((folder / name).read_bytes()) == content
    ensure("mnist", known, folder)
    assert len(site.asked) == 4


def test_only_what_is_missing_is_asked_for(site: Site, known: Known, folder: Path) -> None:
    folder.mkdir()
    for name, content in zip(IDX_NAMES[:3], idx_contents()[:3], strict=True):
        (folder / name.removesuffix(".gz")).write_bytes(content)
    ensure("mnist", known, folder)
    assert site.asked == [(f"/{IDX_NAMES[3]}", None)]
    assert locate(folder, known.files[0]) == folder / IDX_NAMES[0].removesuffix(".gz")
    assert locate(folder, known.files[3]) == folder / IDX_NAMES[3]


def test_a_hiccup_is_not_even_noticed(site: Site, known: Known, folder: Path) -> None:
    site.plan = [status(500), truncated(100)]
    ensure("mnist", known, folder)
    assert data_files(folder) == sorted(IDX_NAMES)
    assert [span for _, span in site.asked[:3]] == [None, None, "bytes=100-"]


@pytest.mark.parametrize(
    ("reply", "reason", "tries"),
    [
        (status(500), "HTTP 500", 3),
        (status(404), "HTTP 404", 1),
        (other(b"<html>please log in</html>"), "can't be unpacked", 1),
        (other(gzip.compress(idx_contents()[2])), "bytes, not", 1),
        (other(gzip.compress(bytes(16 + 5 * 784))), "md5", 1),
        (other(bytes(2**20 + 10_000)), "more than", 1),
    ],
)
def test_failures_leave_nothing_and_say_what_to_do(
    site: Site, known: Known, folder: Path, reply: Reply, reason: str, tries: int
) -> None:
    site.usual = reply
    with pytest.raises(BadInput, match=reason) as caught:
        ensure("mnist", known, folder)
    assert len(site.asked) == tries
    assert not folder.exists()
    for words in (str(folder.absolute()), site.base, *IDX_NAMES):
        assert words in str(caught.value)
    site.usual, site.asked = ignore_range, []
    ensure("mnist", known, folder)
    assert site.asked[0] == (f"/{IDX_NAMES[0]}", None)


def test_a_body_cut_every_time_leaves_a_part_that_the_next_call_resumes(
    site: Site, known: Known, folder: Path
) -> None:
    first = f"/{IDX_NAMES[0]}"
    site.plan = [truncated(100), status(500), status(500)]
    with pytest.raises(BadInput, match="HTTP 500"):
        ensure("mnist", known, folder)
    assert data_files(folder) == [IDX_NAMES[0] + ".part"]
    assert (folder / (IDX_NAMES[0] + ".part")).read_bytes() == site.files[first][:100]
    site.asked = []
    ensure("mnist", known, folder)
    assert site.asked[0] == (first, "bytes=100-")
    assert data_files(folder) == sorted(IDX_NAMES)


def test_a_part_of_something_else_is_thrown_away(site: Site, known: Known, folder: Path) -> None:
    folder.mkdir()
    (folder / (IDX_NAMES[0] + ".part")).write_bytes(b"stale" * 20)
    ensure("mnist", known, folder)
    assert [span for _, span in site.asked[:2]] == ["bytes=100-", None]
    assert data_files(folder) == sorted(IDX_NAMES)


def test_offline_says_which_files_belong_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("obverse.data._fetch._PAUSES", (0.0, 0.0))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        archive = base + "cifar-100-binary.tar.gz"
        for name, (known, _), origin, place in (
            ("mnist", tiny_mnist(base), base, tmp_path / "mnist"),
            ("cifar100", tiny_cifar100(base), archive, tmp_path / "cifar100" / "cifar-100-binary"),
        ):
            with pytest.raises(BadInput) as caught:
                ensure(name, known, tmp_path / name)
            sentence = str(caught.value)
            assert "refused" in sentence
            names = ", ".join(Path(file.path).name for file in known.files)
            assert f"put {names} (from {origin}) into {place}" in sentence
            assert data_files(tmp_path / name) == []


def test_an_archive_is_unpacked_and_removed(site: Site, tmp_path: Path) -> None:
    known, site.files = tiny_cifar100(site.base)
    ensure("cifar100", known, tmp_path)
    assert data_files(tmp_path) == ["cifar-100-binary/test.bin", "cifar-100-binary/train.bin"]


def test_a_wrong_archive_leaves_nothing(site: Site, tmp_path: Path) -> None:
    known, site.files = tiny_cifar100(site.base)
    site.usual = other(b"not the archive")
    with pytest.raises(BadInput, match=r"md5 .* for cifar-100-binary\.tar\.gz"):
        ensure("cifar100", known, tmp_path)
    assert data_files(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(known: Known, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadInput, match=r"a folder to write mnist to at .*/file/mnist.*OBVERSE_DATA"):
        ensure("mnist", known, tmp_path / "file" / "mnist")


# Waits for a line on stdin once everything slow is imported, so that two of them start together.
CHILD = """
import json, sys
from pathlib import Path
from obverse.data._fetch import ensure
from obverse.data._sources import idx_set
base, md5, folder = json.loads(sys.argv[1])
known = idx_set(base, tuple("0123456789"), tuple(md5), 5, 3)
print("ready", flush=True)
sys.stdin.readline()
ensure("mnist", known, Path(folder))
"""


def child(base: str, folder: Path) -> subprocess.Popen[str]:
    arguments = json.dumps([base, [md5(content) for content in idx_contents()], str(folder)])
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD, arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_two_processes_at_once_ask_once(site: Site, known: Known, folder: Path) -> None:
    site.usual = slow(0.2)  # the second is at the lock long before the first is done
    with child(site.base, folder) as one, child(site.base, folder) as two:
        for process in (one, two):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in (one, two):
            _, errors = process.communicate(timeout=30)
            assert (process.returncode, errors) == (0, "")
    assert sorted(site.asked) == sorted((f"/{name}", None) for name in IDX_NAMES)
    assert data_files(folder) == sorted(IDX_NAMES)


def test_a_killed_process_leaves_a_part_to_resume_and_no_lock(site: Site, known: Known, folder: Path) -> None:
    release = threading.Event()
    site.plan = [held(1000, release)]
    part = folder / (IDX_NAMES[0] + ".part")
    with child(site.base, folder) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        deadline = time.monotonic() + 120
        while not part.exists() or part.stat().st_size < 1000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        process.communicate()
    release.set()
    assert data_files(folder) == [part.name]
    ensure("mnist", known, folder)
    assert site.asked[1] == (f"/{IDX_NAMES[0]}", "bytes=1000-")
    assert data_files(folder) == sorted(IDX_NAMES)


def test_threads_share_the_lock_too(site: Site, known: Known, folder: Path) -> None:
    site.usual = slow(0.05)
    threads = [threading.Thread(target=ensure, args=("mnist", known, folder)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.asked) == 4


def test_files_without_gz_have_one_place(tmp_path: Path) -> None:
    assert locate(tmp_path, File("a/b.bin", 1, None)) == tmp_path / "a" / "b.bin"
