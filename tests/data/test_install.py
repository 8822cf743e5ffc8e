from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

from data.helpers import md5, peak_memory, tar_bytes
from obverse.data._download import WrongContent
from obverse.data._install import install
from obverse.data._sources import Download, File

CONTENT = b"the content of a file " * 50


def single(content: bytes = CONTENT) -> Download:
    return Download("http://x/a.gz", (File("a.gz", len(content), md5(content)),))


def archive(md5_of_archive: str | None = None) -> Download:
    files = tuple(File(f"set/{name}.bin", len(CONTENT), md5(CONTENT)) for name in "ab")
    return Download("http://x/set.tar.gz", files, md5_of_archive)


def put(folder: Path, content: bytes) -> Path:
    part = folder / "x.part"
    part.write_bytes(content)
    return part


def final_names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_gz_is_kept_as_it_came(tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT, 1)
    install(put(tmp_path, packed), single(), tmp_path)
    assert final_names(tmp_path) == ["a.gz"]
    assert (tmp_path / "a.gz").read_bytes() == packed


@pytest.mark.parametrize(
    ("packed", "sentence"),
    [
        (gzip.compress(CONTENT[:-1] + b"X"), "md5"),
        (gzip.compress(CONTENT[:-1]), "bytes, not"),
        (gzip.compress(CONTENT + b"X"), "more bytes"),
        (gzip.compress(CONTENT)[:-9], "unpacked"),
        (b"<html>please log in</html>", "unpacked"),
        (b"", "0 bytes, not"),
    ],
    # Not the bytes: gzip puts the time into them, and workers must agree on the names of the tests.
    ids=["changed", "shorter", "longer", "cut off", "a page", "empty"],
)
def test_wrong_content_gets_no_final_name(tmp_path: Path, packed: bytes, sentence: str) -> None:
    with pytest.raises(WrongContent, match=sentence):
        install(put(tmp_path, packed), single(), tmp_path)
    assert final_names(tmp_path) == ["x.part"]


def test_a_gzip_bomb_is_left_after_the_known_size(tmp_path: Path) -> None:
    """Its end is missing: who reads on to there would complain of that instead."""
    part = put(tmp_path, gzip.compress(bytes(64 * 2**20))[:-8])

    def refused() -> None:
        with pytest.raises(WrongContent, match="more bytes"):
            install(part, single(), tmp_path)

    assert peak_memory(refused) < 8 * 2**20


def test_only_expected_members_leave_an_archive(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    members = [("../evil", b"x"), ("/evil", b"x"), ("set/readme.html", b"x")]
    packed = tar_bytes([*members, ("set/a.bin", CONTENT), ("set/b.bin", CONTENT), ("set/a.bin", b"again")])
    install(put(folder, packed), archive(md5(packed)), folder)
    assert final_names(tmp_path) == ["in/set/a.bin", "in/set/b.bin"]
    assert (folder / "set" / "a.bin").read_bytes() == CONTENT


def link(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([("set/a.bin", CONTENT)], "lacks set/b.bin"),
        ([("set/a.bin", CONTENT), (link("set/b.bin"), b"")], "set/b.bin is not a file"),
        ([("set/a.bin", CONTENT), ("set/b.bin", CONTENT + b"x")], "set/b.bin is not a file of"),
        ([("set/a.bin", CONTENT), ("set/b.bin", CONTENT[::-1])], "md5"),
        ([("set/a.bin", CONTENT), ("junk", bytes(3 * 2**20)), ("set/b.bin", CONTENT)], "unpacks to more"),
    ],
)
def test_a_wrong_archive_leaves_nothing(
    tmp_path: Path, members: list[tuple[str, bytes]], sentence: str
) -> None:
    with pytest.raises(WrongContent, match=sentence):
        install(put(tmp_path, tar_bytes(members)), archive(), tmp_path)
    assert final_names(tmp_path) == ["x.part"]


def test_a_broken_archive_leaves_nothing(tmp_path: Path) -> None:
    packed = tar_bytes([("set/a.bin", CONTENT), ("set/b.bin", CONTENT)])
    for content in (packed[: len(packed) // 2], b"", b"<html>", gzip.compress(b"no tar" * 200)):
        with pytest.raises(WrongContent):
            install(put(tmp_path, content), archive(), tmp_path)
        assert final_names(tmp_path) == ["x.part"]


def test_the_md5_of_the_archive_comes_first(tmp_path: Path) -> None:
    packed = tar_bytes([("set/a.bin", CONTENT), ("set/b.bin", CONTENT)])
    with pytest.raises(WrongContent, match=r"not 000, for set\.tar\.gz"):
        install(put(tmp_path, packed), archive("000"), tmp_path)
    assert final_names(tmp_path) == ["x.part"]
