"""Files of the manifest from the registries, into a folder. Not for reading them as weights.

An archive is read as data: nothing in it is run or installed, nothing is written but the files of the
manifest, and each of these only if its size and its checksum are those of the manifest.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import urlopen

from obverse._core import BadInput

from .manifest import File, Net

PYPI, NPM = "https://pypi.org/simple", "https://registry.npmjs.org"
LISTING = 2**26  # bytes of a page that lists archives, at most
PIECE = 2**20
TIMEOUT = 120


def fetch(net: Net, folder: Path, *, index: str = "", registry: str = "") -> Path:
    """The folder of this net, with all its files; what is there already and right stays."""
    place = folder / net.name
    missing = [file for file in net.files if not is_right(place / file.name, file)]
    if not missing:
        return place
    with tempfile.TemporaryDirectory() as temporary:
        archive = Path(temporary) / "archive"
        address = on_npm(net, registry) if net.registry == "npm" else on_pypi(net, index)
        download(address, archive, net.archive_bytes, net.archive)
        place.mkdir(parents=True, exist_ok=True)
        try:
            unpack(archive, net, missing, place)
        except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise BadInput(f"{net.archive} as an archive", got=error, do="download it again") from None
    return place


def is_right(path: Path, file: File) -> bool:
    """Whether the file is there, whole and unchanged."""
    if not path.is_file() or path.stat().st_size != file.bytes:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def on_pypi(net: Net, index: str = "") -> str:
    """The address of the archive, from the index's page of the package."""
    name = re.sub(r"[-_.]+", "-", net.package).lower()
    page = f"{(index or pip_index()).rstrip('/')}/{name}/"
    listed = read_address(page, f"{net.package} in the package index").decode("utf-8", "replace")
    for reference in re.findall(r'href="([^"]+)"', listed):
        address = urljoin(page, html.unescape(reference)).partition("#")[0]
        if address.rpartition("/")[2] == net.archive:
            return address
    raise BadInput(f"{net.archive} in the package index", got="no such file", do="look for a newer version")


def on_npm(net: Net, registry: str = "") -> str:
    """The address of the archive, from what the registry says of the package."""
    page = f"{(registry or npm_registry()).rstrip('/')}/{quote(net.package, safe='@')}"
    try:
        listed: Any = json.loads(read_address(page, f"{net.package} in the npm registry"))
        address = listed["versions"][net.version]["dist"]["tarball"]
    except (ValueError, KeyError, TypeError):
        raise BadInput(
            f"version {net.version} of {net.package} in the npm registry",
            got="no such version",
            do="look for a newer version",
        ) from None
    if not isinstance(address, str) or urlsplit(address).scheme not in ("http", "https"):
        raise BadInput(f"an address of {net.archive}", got=repr(address)[:200], do="try another registry")
    return address


def pip_index() -> str:
    """The package index that pip is set up with."""
    found = os.environ.get("PIP_INDEX_URL") or said_by(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    )
    return found or PYPI


def npm_registry() -> str:
    """The registry that npm is set up with, where there is npm."""
    found = os.environ.get("NPM_CONFIG_REGISTRY") or said_by(["npm", "config", "get", "registry"])
    return found if found.startswith("http") else NPM


def said_by(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def read_address(address: str, what: str) -> bytes:
    with opened(address, what) as stream:
        content = stream.read(LISTING + 1)
    if len(content) > LISTING:
        raise BadInput(f"{what}: a page of at most {LISTING:,} bytes", got="more", do="try another registry")
    return content


def download(address: str, into: Path, size: int, what: str) -> None:
    """Whole, and not a byte more than is expected."""
    got = 0
    with opened(address, what) as stream, into.open("wb") as file:
        while got <= size and (piece := stream.read(PIECE)):
            got += len(piece)
            file.write(piece)
    if got != size:
        found = f"more than {size:,}" if got > size else f"{got:,}"
        raise BadInput(f"{what} of {size:,} bytes", got=found, do="the package has changed: leave it out")


def opened(address: str, what: str) -> Any:
    try:
        return urlopen(address, timeout=TIMEOUT)
    except HTTPError as error:
        raise BadInput(what, got=f"HTTP status {error.code}", do="it may have been removed") from None
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise BadInput(what, got=reason, do="check the connection, and run this again") from None


def unpack(archive: Path, net: Net, files: list[File], place: Path) -> None:
    """Write these files of the archive, each only if it is what the manifest says."""
    wanted = {file.path: file for file in files}
    if net.archive.endswith((".whl", ".zip")):
        with zipfile.ZipFile(archive) as opened_zip:
            for info in opened_zip.infolist():
                if info.filename in wanted:
                    with opened_zip.open(info) as stream:
                        keep(stream, info.file_size, wanted.pop(info.filename), place)
    else:
        with tarfile.open(archive) as opened_tar:
            for member in opened_tar:
                if member.isfile() and member.name in wanted:
                    content = opened_tar.extractfile(member)
                    assert content is not None
                    keep(content, member.size, wanted.pop(member.name), place)
    if wanted:
        raise BadInput(f"{next(iter(wanted))} in {net.archive}", got="no such file", do="leave this net out")


def keep(stream: IO[bytes], size: int, file: File, place: Path) -> None:
    content = stream.read(file.bytes + 1) if size == file.bytes else b""
    if len(content) != file.bytes:
        raise BadInput(f"{file.bytes:,} bytes in {file.path}", got=f"{size:,}", do="the package has changed")
    if (found := hashlib.sha256(content).hexdigest()) != file.sha256:
        raise BadInput(
            f"{file.path} with the checksum {file.sha256[:12]}…",
            got=f"{found[:12]}…",
            do="the package has changed: leave it out",
        )
    temporary = place / f"{file.name}.part"
    temporary.write_bytes(content)
    temporary.replace(place / file.name)
