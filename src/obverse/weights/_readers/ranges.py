"""Some bytes of a file on a hub, by HTTP ranges, each checked. Not for what the bytes mean.

What comes back is exactly what was asked for, of the commit and the size that the file had when opened,
or nothing. A connection that is cut is resumed where it was, a few times.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from .address import Address, is_commit
from .hub_errors import is_transport, library, refusals, status_of
from .stored import printable

TRIES = 5  # in a row that bring next to nothing
_PROGRESS = 2**20  # bytes of one try that are more than that
_PAUSE = 0.2  # seconds before the second try, twice as long before each further one
_PASSING = (408, 425, 500, 502, 503, 504)  # statuses that may be another one a second later
_BUSY = (429,)  # the library waits as long as the server says
_SPAN = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


@dataclass(frozen=True)
class RemoteFile:
    """A file of one commit; size and entity tag are known once its first bytes have been read."""

    address: Address
    size: int | None = None
    tag: str = ""

    @property
    def name(self) -> str:
        return printable(self.address.short)

    @cached_property
    def url(self) -> str:
        place = self.address
        url: str = library().hf_hub_url(place.repository, place.path, revision=place.revision)
        return url

    @cached_property
    def headers(self) -> dict[str, str]:
        from ... import __version__

        build = library("utils").build_hf_headers
        headers: dict[str, str] = build(library_name="obverse", library_version=__version__)
        return headers | {"Accept-Encoding": "identity"}  # ranges of the file, not of what it is packed into

    def begin(self, length: int) -> tuple[RemoteFile, bytes]:
        """The file with its size known, and its first bytes: `length` of them if it has as many."""
        content = bytearray()
        known = _fetch(self, 0, length, "the beginning", lambda at, chunk: content.extend(chunk))
        return known, bytes(content)

    def read(self, start: int, length: int, what: str) -> Tensor:
        """These bytes; the caller has checked that the file has them."""
        if not length:
            return torch.empty(0, dtype=torch.uint8)
        try:
            content = np.empty(length, np.uint8)
        except MemoryError:
            got = f"{length:,} bytes"
            raise BadInput(
                f"{what} of {self.name} to fit memory", got=got, do="use another machine"
            ) from None

        def put(at: int, chunk: bytes) -> None:
            content[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)

        _fetch(self, start, start + length, what, put)
        return torch.from_numpy(content)

    def hand_on(self, start: int, length: int, what: str, put: Callable[[bytes], object]) -> None:
        """The same bytes to `put`, as they come."""
        _fetch(self, start, start + length, what, lambda at, chunk: put(chunk))


def _fetch(
    file: RemoteFile, start: int, stop: int, what: str, put: Callable[[int, bytes], object]
) -> RemoteFile:
    """Hands the bytes from `start` to `stop`, or to the end of the file, to `put` as they come."""
    done, left, pause = 0, TRIES, _PAUSE
    while True:
        before, reason = done, "the connection was closed"
        try:
            with _answer(file, start + done, stop, what) as (file, response):
                stop = min(stop, file.size or 0)
                for chunk in response.iter_raw():  # unbuffered: what is gathered first, a cut would lose
                    if start + done + len(chunk) > stop:
                        raise _wrong(file, what, f"more than the {stop - start:,} bytes that were asked for")
                    put(done, chunk)
                    done += len(chunk)
        except Exception as error:
            if not is_transport(error) and status_of(error) not in _PASSING:
                with refusals(file.address):
                    raise
            reason = str(error).partition("\n")[0] or type(error).__name__
        if file.size is not None and start + done == stop:
            return file
        left, pause = (TRIES, _PAUSE) if done - before >= _PROGRESS else (left - 1, pause)
        if left < 1:
            raise BadInput(
                f"{what} of {file.name}, {stop - start:,} bytes",
                got=f"{done:,} in {TRIES} tries, the last of which ended with: {printable(reason)}",
                do="check the network and try again; nothing of it was used",
            )
        time.sleep(pause)
        pause *= 2


@contextmanager
def _answer(file: RemoteFile, start: int, stop: int, what: str) -> Iterator[tuple[RemoteFile, Any]]:
    """The answer to one request, checked but not read, and the file as it says that it is."""
    utils = library("utils")
    with utils.http_stream_backoff(
        "GET",
        file.url,
        headers=file.headers | {"Range": f"bytes={start}-{stop - 1}"},
        timeout=library().constants.HF_HUB_DOWNLOAD_TIMEOUT,
        max_retries=TRIES,
        retry_on_exceptions=(),
        retry_on_status_codes=_BUSY,
    ) as response:
        if response.status_code == 416:
            size = response.headers.get("Content-Range", "").rpartition("/")[2]
            if file.size is None and size == "0":
                raise BadInput(f"weights in {file.name}", got="an empty file", do="name another file")
            raise _wrong(file, what, f"a file that ends at {printable(size) or 'less'} bytes")
        utils.hf_raise_for_status(response)
        yield _checked(file, response, start, stop, what), response


def _checked(file: RemoteFile, response: Any, start: int, stop: int, what: str) -> RemoteFile:
    """The file with size and tag, if this is what was asked for and nothing contradicts what is known."""
    packing = response.headers.get("Content-Encoding", "identity")
    if response.status_code != 206 or packing != "identity":
        got = f"HTTP status {response.status_code}, the whole file"
        raise BadInput(
            f"bytes {start:,} to {stop:,} of {file.name} from a server that gives ranges",
            got=got if packing == "identity" else f"bytes packed by {printable(packing)}",
            do=f"download it whole: hf download {file.address.repository} {printable(file.address.path)}"
            f" --revision {printable(file.address.revision)}",
        )
    span = response.headers.get("Content-Range", "")
    match = _SPAN.fullmatch(span)
    first, last, size = map(int, match.groups()) if match else (-1, -1, -1)
    if file.size not in (None, size) and match:
        raise _changed(file, f"one of {size:,} bytes, before of {file.size:,}")
    if first != start or last != min(stop, size) - 1:
        raise _wrong(file, what, f"the range {printable(span)!r} instead of bytes {start}-{stop - 1}")
    tag = ""
    for one in (
        *response.history,
        response,
    ):  # a hub sends on to its storage: what it says itself comes first
        if commit := one.headers.get("X-Repo-Commit"):
            if is_commit(file.address.revision) and commit != file.address.revision:
                raise _changed(file, f"one of commit {printable(commit)[:12]}")
            tag = one.headers.get("X-Linked-Etag") or one.headers.get("ETag") or ""
            break
    if file.size is not None and file.tag != tag:
        raise _changed(file, "one with another entity tag than before")
    return replace(file, size=size, tag=tag)


def _changed(file: RemoteFile, got: str) -> BadInput:
    do = "start again: it was changed while it was read"
    return BadInput(f"the same file {file.name} as when it was opened", got=got, do=do)


def _wrong(file: RemoteFile, what: str, got: str) -> BadInput:
    do = "try again later; the server is at fault"
    return BadInput(f"{what} of {file.name}", got=got, do=do)
