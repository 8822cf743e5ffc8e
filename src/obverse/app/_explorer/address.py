"""Where the page is found, and how an open page finds it again. Not for serving.

The token in the address is new at every start: made of a secret and a salt. What stays, in a file that only
its owner can read, is the port and the secret. The page has the secret from the server that made it and never
sends it. After a loss it asks with a challenge: the server proves that it knows the secret and says the new
salt, of which the page makes the token. So somebody else who takes the port in between hears at most a token
that is good for nothing, and cannot pass on what our server answers at another port, which is part of the
proof.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import json
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..._core import cache_folder

HOST = "127.0.0.1"
LONGEST = 1000  # bytes of the file
BYTES = 32  # of a token and of a secret, which are written as hexadecimal digits


@dataclass(frozen=True)
class Address:
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"


@dataclass(frozen=True)
class SavedAddress:
    """What stays from one start to the next."""

    port: int
    secret: str


def new_token() -> str:
    """256 random bits."""
    return secrets.token_hex(BYTES)


def token_of(secret: str, salt: str) -> str:
    """The token of one start; nobody finds it from the salt alone."""
    return _mac(secret, f"token {salt}")


def handover(secret: str, salt: str, port: int, nonce: str) -> dict[str, str]:
    """The answer to a challenge: the salt of the token, and a proof of who says so."""
    return {"salt": salt, "proof": _mac(secret, f"proof {nonce} {port} {salt}")}


def _mac(secret: str, text: str) -> str:
    return hmac.new(bytes.fromhex(secret), text.encode(), hashlib.sha256).hexdigest()


def keeper() -> Path:
    return cache_folder() / "explore" / "address.json"


def remembered(path: Path | None = None) -> SavedAddress | None:
    """What the last start saved; None where there is nothing, or others could have read or written it."""
    path = keeper() if path is None else path
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            private = about.st_uid == os.getuid() and not stat.S_IMODE(about.st_mode) & 0o077
            if not private or about.st_size > LONGEST:
                return None
            told = json.loads(file.read(LONGEST))
        port, secret = told["port"], told["secret"]
        fits = type(port) is int and 1024 <= port < 65536 and len(bytes.fromhex(secret)) == BYTES
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return SavedAddress(port, secret) if fits and len(secret) == 2 * BYTES else None


def remember(saved: SavedAddress, path: Path | None = None) -> None:
    """Write it for this user alone; where that fails, an open page will not find a new start."""
    path = keeper() if path is None else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(dir=path.parent)  # readable by its owner alone
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"port": saved.port, "secret": saved.secret}, file)
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
