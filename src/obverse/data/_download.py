"""Brings the bytes of one address into a .part file, from where it left off. Not for judging them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from .._core import download_progress

_CHUNK = 2**18
_TIMEOUT = 30.0  # seconds without a byte


class Trouble(Exception):
    """The bytes did not come; `again` says whether another try makes sense."""

    def __init__(self, what: str, again: bool = True) -> None:
        super().__init__(what)
        self.again = again


class WrongContent(Exception):
    """The bytes came and are not the ones expected: they must be thrown away."""


def download(url: str, part: Path, limit: int) -> None:
    """Complete `part` with what is missing of `url`, at most `limit` bytes in all."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "obverse", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = cast(HTTPResponse, urlopen(Request(url, headers=headers), timeout=_TIMEOUT))
    except HTTPError as error:
        with error:
            if error.code != 416:
                again = error.code >= 500 or error.code in (408, 429)
                raise Trouble(f"HTTP {error.code} {error.reason}", again) from error
            if _content_range(error.headers)[1] == have:
                return  # an earlier call was stopped between the last byte and the check
            part.unlink()
            raise Trouble("nothing to resume from: the partial file was longer than the source") from error
    except (OSError, HTTPException) as error:
        raise Trouble(str(getattr(error, "reason", error)) or type(error).__name__) from error
    with response:
        start, total = _extent(response)
        if start not in (0, have):
            part.unlink(missing_ok=True)
            raise Trouble("the server resumed at the wrong byte")
        if total is not None and total > limit:
            raise WrongContent(f"{total:,} bytes, more than the {limit:,} it can have")
        # A server that ignores Range sends everything: then the partial file is overwritten.
        with (
            part.open("ab" if start else "wb") as out,
            download_progress(url.rsplit("/", 1)[-1], start, total) as advance,
        ):
            size = _receive(response, out, start, limit, advance)
            os.fsync(out.fileno())
    if total is not None and size < total:
        raise Trouble(f"the connection ended after {size:,} of {total:,} bytes")


def _receive(
    response: HTTPResponse,
    out: IO[bytes],
    size: int,
    limit: int,
    advance: Callable[[int], None],
) -> int:
    while True:
        try:
            chunk = response.read1(_CHUNK)  # what is there: little is lost if the rest never comes
        except (OSError, HTTPException) as error:
            raise Trouble(f"the connection broke after {size:,} bytes ({error})") from error
        if not chunk:
            return size
        size += len(chunk)
        if size > limit:
            raise WrongContent(f"more than the {limit:,} bytes it can have")
        out.write(chunk)
        out.flush()
        advance(len(chunk))


def _extent(response: HTTPResponse) -> tuple[int, int | None]:
    """First byte sent, and the size of the whole, if the server tells."""
    if response.status == 206:
        start, total = _content_range(response.headers)
        return (-1 if start is None else start), total
    if response.status != 200:
        raise Trouble(f"HTTP {response.status} {response.reason}")
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _content_range(headers: Message) -> tuple[int | None, int | None]:
    """`bytes 100-199/200` → (100, 200); `bytes */200` → (None, 200)."""
    found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(?:(\d+)|\*)", headers.get("Content-Range", "").strip())
    if found is None:
        return None, None
    start, total = found.groups()
    return (None if start is None else int(start)), (None if total is None else int(total))
