"""The server of the page: 127.0.0.1 only, a token in every address, Host and Origin checked. Not for answers.

Every address begins with the token, which is compared in constant time. Host must be this server's own name,
so that a name somebody else points here (DNS rebinding) is refused; Origin, where a browser sends one, must
be this page's. Only `alive` needs no token: it answers the challenge of a page that has lost its server (see
address). Nobody without the token can make the server work or hold much memory: a connection that has not
shown it gets one short answer and is closed.
"""

from __future__ import annotations

import hmac
import json
import sys
import traceback
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any

from ..._core import BadInput, ObverseError, parse_json
from .address import (
    HOST,
    Address,
    SavedAddress,
    handover,
    new_token,
    remember,
    remembered,
    token_of,
)
from .assets import render
from .routes import ROUTES, Router
from .subject import Subject

MOST_BYTES = 2**20  # of a question: a drawing of 224 × 224 × 3 has about that
MOST_HEAD = 2**14  # of its headers
IDLE = 60  # seconds that a connection may say nothing
BRIEF = 10  # the same, before it has shown the token
NONCE = 64  # letters of a challenge
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


class Refused(Exception):
    """A request that is turned away: a status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Bounded:
    """What a connection reads from, with a limit on the lines of one head."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = MOST_HEAD

    def readline(self, size: int = -1) -> bytes:
        line: bytes = self._file.readline(self.left + 1 if size < 0 else min(size, self.left + 1))
        self.left -= len(line)
        if self.left < 0:
            raise ConnectionAbortedError("a head that is too long")
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Server(ThreadingHTTPServer):
    """One subject at one address. Start it with `serve_forever`; `close` ends it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, subject: Subject, port: int, secret: str, debug: bool = False) -> None:
        super().__init__((HOST, port), Handler)
        self.secret, self.salt = secret, new_token()
        self.at = Address(self.server_address[1], token_of(secret, self.salt))
        self.router = Router(subject, secret)
        self.debug = debug

    @cached_property
    def names(self) -> frozenset[str]:
        """What a Host header may say."""
        return frozenset({f"{HOST}:{self.at.port}", f"localhost:{self.at.port}"})

    @cached_property
    def pages(self) -> Mapping[str, tuple[bytes, str]]:
        """Every file of the page, by name: nothing else can be asked for."""
        return {name: (text.encode(), TYPES[name.rpartition(".")[2]]) for name, text in render().items()}

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """A client that went away is no news."""
        if self.debug and not isinstance(sys.exception(), OSError):
            traceback.print_exc()

    def close(self) -> bool:
        """Whether nothing is being answered any more."""
        self.server_close()
        return self.router.close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = BRIEF
    server_version, sys_version = "obverse", ""
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.rfile = Bounded(self.rfile)  # type: ignore[assignment]

    def handle_one_request(self) -> None:
        self.rfile.left = MOST_HEAD  # type: ignore[attr-defined]
        super().handle_one_request()

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def _answered(self, method: Any) -> None:
        try:
            content, kind = method()
            status = HTTPStatus.OK
        except Refused as refused:
            # what follows on this connection may be the rest of what was not read
            self.close_connection = True
            content, kind, status = f"{refused}\n".encode(), "text/plain; charset=utf-8", refused.status
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _get(self) -> tuple[bytes, str]:
        self._check_names()
        parts = self.path.split("/")
        if len(parts) == 3 and parts[1] == "alive":
            self.close_connection = True  # one question only
            server = self.server
            return _json(handover(server.secret, server.salt, server.at.port, _nonce(parts[2])))
        name = self._inside(parts)
        found = self.server.pages.get(name or "index.html")
        if found is None:
            raise Refused(
                HTTPStatus.NOT_FOUND, "expected a file of the page; got another name; reload the page"
            )
        return found

    def _post(self) -> tuple[bytes, str]:
        self._check_names()
        name = self._inside(self.path.split("/"))
        if name not in ROUTES:
            raise Refused(
                HTTPStatus.NOT_FOUND, "expected a question of the page; got another name; reload the page"
            )
        if self.headers.get_content_type() != "application/json":
            raise Refused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json; got another type; send JSON"
            )
        content = self._content()
        try:
            return _json(self.server.router.ask(name, _question(content)))
        except ObverseError as error:
            return _json({"error": str(error)})
        except Exception as error:
            if self.server.debug:
                traceback.print_exc()
            told = f"this is a bug: {type(error).__name__}: {error}; start it with --debug to see more"
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, told) from None

    def _check_names(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.names:
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"expected Host {HOST} with the port; got another; use the printed address",
            )
        for origin in self.headers.get_all("Origin", []):
            if origin != f"http://{hosts[0]}":
                raise Refused(
                    HTTPStatus.FORBIDDEN, "expected this page's own Origin; got another; use the page itself"
                )

    def _inside(self, parts: list[str]) -> str:
        """What is asked for behind the token."""
        given = parts[1] if len(parts) == 3 else ""
        if not hmac.compare_digest(given.encode(), self.server.at.token.encode()):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "expected the token of this server in the address; got another or none; "
                "use the whole address that obverse explore printed",
            )
        self.connection.settimeout(IDLE)
        return parts[2]

    def _content(self) -> bytes:
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 12:
            raise Refused(
                HTTPStatus.LENGTH_REQUIRED, "expected one Content-Length; got another number; send one"
            )
        if int(lengths[0]) > MOST_BYTES:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"expected at most {MOST_BYTES:,} bytes; got more; send less",
            )
        return self.rfile.read(int(lengths[0]))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a line a slider movement helps nobody."""


def _nonce(text: str) -> str:
    if not 0 < len(text) <= NONCE or not (text.isascii() and text.isalnum()):
        told = f"expected up to {NONCE} letters or digits; got others; send these"
        raise Refused(HTTPStatus.BAD_REQUEST, told)
    return text


def _question(content: bytes) -> dict[str, Any]:
    try:
        body = parse_json(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise BadInput("a question in JSON", got="something else", do="correct it") from None
    if not isinstance(body, dict):
        raise BadInput("a question as a JSON object", got=type(body).__name__, do="correct it")
    return body


def _json(value: Mapping[str, Any]) -> tuple[bytes, str]:
    return json.dumps(value, allow_nan=False).encode(), "application/json"


def serve(subject: Subject, port: int | None = None, *, debug: bool = False) -> Server:
    """A server that listens: at the port of the last time if that is free, else at another.

    A `port` that was asked for and is taken is an error.
    """
    last = remembered()
    secret = new_token() if last is None else last.secret
    if port is not None:
        try:
            server = Server(subject, port, secret, debug)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadInput(
                f"port {port} to be free", got=reason, do="leave out --port to get a free one"
            ) from None
    else:
        try:
            server = Server(subject, 0 if last is None else last.port, secret, debug)
        except OSError:
            server = Server(subject, 0, secret, debug)
    remember(SavedAddress(server.at.port, secret))
    return server
