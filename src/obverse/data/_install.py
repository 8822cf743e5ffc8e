"""Checks what was downloaded and puts it under its final name, whole or not at all. Not for the network."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from .._core import sync_folder
from ._download import WrongContent
from ._sources import Download, File

_CHUNK = 2**20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def install(part: Path, source: Download, folder: Path) -> None:
    """Move `part` (.gz), or the expected members of it (.tar.gz), into `folder`; `part` is then gone."""
    if source.md5 is not None and (found := _md5(part)) != source.md5:
        raise WrongContent(f"md5 {found}, not {source.md5}, for {source.name}")
    try:
        if source.name.endswith(".tar.gz"):
            _install_members(part, source, folder)
        else:
            with gzip.open(part) as stream:
                _check(stream, source.files[0])
            _rename({part: folder / source.files[0].path})
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise WrongContent(f"{source.name} can't be unpacked ({error})") from error


def _install_members(part: Path, source: Download, folder: Path) -> None:
    """Only regular files of exactly the expected names and sizes leave the archive."""
    wanted = {file.path: file for file in source.files}
    staged: dict[Path, Path] = {}
    try:
        with tarfile.open(part, "r|gz") as archive:
            for member in archive:
                # Before the stream is read on: what has to be unpacked is bounded like the rest.
                if member.offset_data + member.size > source.limit:
                    raise WrongContent(f"{source.name} unpacks to more than {source.limit:,} bytes")
                file = wanted.pop(member.name, None)
                if file is None:
                    continue
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or member.size != file.size:
                    raise WrongContent(f"{member.name} is not a file of {file.size:,} bytes")
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary = target.with_name(target.name + ".tmp")
                staged[temporary] = target
                with content, temporary.open("wb") as out:
                    _check(content, file, out)
                    out.flush()
                    os.fsync(out.fileno())
        if wanted:
            raise WrongContent(f"{source.name} lacks {', '.join(wanted)}")
        _rename(staged)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)
    part.unlink()


def _check(stream: _Readable, file: File, copy: IO[bytes] | None = None) -> None:
    """Read no more than the known size; compare size and checksum of the uncompressed content."""
    digest = hashlib.md5(usedforsecurity=False)
    size = 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > file.size:
            break
        digest.update(chunk)
        if copy is not None:
            copy.write(chunk)
    if size != file.size:
        got = f"{size:,}" if size < file.size else "more"
        raise WrongContent(f"{got} bytes, not {file.size:,}, in {file.path}")
    if file.md5 is not None and digest.hexdigest() != file.md5:
        raise WrongContent(f"md5 {digest.hexdigest()}, not {file.md5}, for the content of {file.path}")


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _rename(names: dict[Path, Path]) -> None:
    for temporary, target in names.items():
        os.replace(temporary, target)
    # So that the new names outlive a power cut too; not every system opens folders.
    for folder in {target.parent for target in names.values()}:
        with suppress(OSError):
            sync_folder(folder)
