"""Where the page is found: port and token, kept in a file that only its owner can read. Not for serving.

They are kept so that a page that is still open goes on by itself when the command is started again.
"""

from __future__ import annotations

import html
import json
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..files import cache_folder

HOST = "127.0.0.1"
LONGEST = 1000  # bytes of the file


@dataclass(frozen=True)
class Address:
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"


def new_token() -> str:
    """256 random bits, safe in an address."""
    return secrets.token_urlsafe(32)


def keeper() -> Path:
    return cache_folder() / "explore" / "address.json"


def remembered(path: Path | None = None) -> Address | None:
    """The address of the last time; None where there is none, or others could have read or written it."""
    path = keeper() if path is None else path
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            private = about.st_uid == os.getuid() and not stat.S_IMODE(about.st_mode) & 0o077
            if not private or about.st_size > LONGEST:
                return None
            told = json.loads(file.read(LONGEST))
        port, token = told["port"], told["token"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(port) is not int or not 1024 <= port < 65536 or not isinstance(token, str):
        return None
    fits = len(token) >= 43 and all(letter.isalnum() or letter in "-_" for letter in token)
    return Address(port, token) if fits and token.isascii() else None


def remember(address: Address, path: Path | None = None) -> None:
    """Write it for this user alone; where that fails, an open page will not find a new start."""
    path = keeper() if path is None else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(dir=path.parent)  # readable by its owner alone
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"port": address.port, "token": address.token}, file)
        os.replace(made, path)
    except OSError:
        return


def doorway(address: Address) -> Path:
    """A private file that leads to the page: others can see a browser's command line, which names this."""
    folder = Path(tempfile.mkdtemp(prefix="obverse-"))  # 0700
    path = folder / "explore.html"
    url = html.escape(address.url, quote=True)
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">'
        f'<title>obverse</title><a href="{url}">obverse explore</a>\n',
        encoding="utf-8",
    )
    return path
