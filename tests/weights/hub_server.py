"""A hub on loopback, as huggingface_hub speaks to it, that can be told to fail; and what it was asked."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

STORED = (".safetensors", ".bin", ".pt", ".npz", ".gguf", ".onnx")  # kept beside git: a redirect leads there


@dataclass
class Repository:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    token: str = ""  # that it takes to read it
    gated: bool = False

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Puts these files on a branch, and returns the commit."""
        text = repr(sorted((name, hashlib.sha1(data).hexdigest()) for name, data in files.items()))
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.commits[commit] = files
        self.branches[branch] = commit
        return commit


@dataclass
class Asked:
    method: str
    path: str
    span: str | None
    authorized: bool
    status: int = 0
    sent: int = 0  # bytes of the body


Reply = Callable[["Handler", bytes], None]


class Hub:
    """Repositories, how the storage answers next, and the log."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.plan: list[Reply | None] = []  # the storage's next answers, in turn; None for the usual one
        self.usual: Reply = ranged
        self.status: int = 0  # of every answer, if it is to refuse them all
        self.headers: dict[str, str | None] = {}  # in place of those of a resolved file; None leaves one out
        self.log: list[Asked] = []
        self.lock = threading.Lock()
        self.blobs: dict[str, bytes] = {}

    def repository(self, name: str = "org/net") -> Repository:
        return self.repositories.setdefault(name, Repository())

    def from_storage(self) -> list[Asked]:
        return [one for one in self.log if one.path.startswith("/storage/") and one.method == "GET"]

    def sent(self) -> int:
        return sum(one.sent for one in self.log)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20
    server: Server

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub = self.server.hub
        self.asked = Asked(
            self.command, self.path, self.headers.get("Range"), bool(self.headers.get("Authorization"))
        )
        with hub.lock:
            hub.log.append(self.asked)
        path = unquote(urlsplit(self.path).path)
        if hub.status:
            self.reply(hub.status)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            self.about(match[1], match[2] or "main")
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/(refs/pr/\d+|[^/]+)/(.+)", path):
            self.resolve(match[1], match[2], match[3])
        elif path.startswith("/storage/"):
            with hub.lock:
                reply = (hub.plan.pop(0) if hub.plan else None) or hub.usual
            reply(self, hub.blobs[path.removeprefix("/storage/")])
        else:
            self.reply(404)

    def found(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """The commit, or the refusal of the real hub is sent."""
        repository = self.server.hub.repositories.get(name)
        right = f"Bearer {repository.token}" if repository else ""
        given = self.headers.get("Authorization")
        if repository and repository.gated and given != right:
            self.reply(
                403 if given else 401, X_Error_Code="GatedRepo", X_Error_Message="Access is restricted."
            )
        elif repository is None or (repository.token and given != right):
            self.reply(
                404 if given else 401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found"
            )
        else:
            commit = repository.branches.get(revision, revision)
            if commit in repository.commits:
                return commit, repository.commits[commit]
            self.reply(404, X_Error_Code="RevisionNotFound", X_Error_Message=f"Invalid rev id: {revision}")
        return None

    def about(self, name: str, revision: str) -> None:
        if found := self.found(name, revision):
            commit, files = found
            siblings = [{"rfilename": one} for one in files]
            about = {"_id": "0", "id": name, "sha": commit, "siblings": siblings, "private": False}
            self.reply(200, json.dumps(about).encode(), Content_Type="application/json")

    def resolve(self, name: str, revision: str, file: str) -> None:
        found = self.found(name, revision)
        if found is None:
            return
        commit, files = found
        if file not in files:
            self.reply(
                404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found", X_Repo_Commit=commit
            )
            return
        data, hub = files[file], self.server.hub
        stored = file.endswith(STORED)
        digest = (hashlib.sha256 if stored else hashlib.sha1)(data).hexdigest()
        headers: dict[str, Any] = {"X_Repo_Commit": commit, "ETag": f'"{digest}"', "Accept_Ranges": "bytes"}
        if stored:
            hub.blobs[digest] = data
            port = self.server.server_address[1]
            headers |= {"X_Linked_Size": len(data), "X_Linked_Etag": f'"{digest}"'}
            # another host, so that a token that is sent there shows
            headers["Location"] = f"http://localhost:{port}/storage/{digest}?signed=1"
        headers = {one: value for one, value in (headers | hub.headers).items() if value is not None}
        if stored:
            self.reply(302, **headers)
        else:
            ranged(self, data, **headers)

    def reply(self, status: int, body: bytes = b"", *, length: int | None = None, **headers: Any) -> None:
        self.asked.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
            self.asked.sent += len(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for every answer

    def __init__(self, hub: Hub, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.hub = hub

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""


def span_of(handler: Handler, data: bytes) -> tuple[int, int] | None:
    """Start and stop of the range that is asked for."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range") or "")
    if match is None:
        return None
    return int(match[1]), min(int(match[2]) + 1 if match[2] else len(data), len(data))


def ranged(handler: Handler, data: bytes, **headers: Any) -> None:
    """As storage does it."""
    span = span_of(handler, data)
    if span is None:
        handler.reply(200, data, **headers)
    elif span[0] >= len(data):
        handler.reply(416, Content_Range=f"bytes */{len(data)}")
    else:
        start, stop = span
        handler.reply(206, data[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(data)}", **headers)


def whole(handler: Handler, data: bytes) -> None:
    """Range is ignored."""
    handler.reply(200, data)


def cut(count: int) -> Reply:
    """The connection ends after so many bytes of the body."""

    def reply(handler: Handler, data: bytes) -> None:
        start, stop = span_of(handler, data) or (0, len(data))
        about = {"Content_Range": f"bytes {start}-{stop - 1}/{len(data)}"}
        handler.reply(206, data[start : start + count], length=stop - start, **about)
        handler.close_connection = True

    return reply


def other(first: int = 0, last: int = 0, body: int = 0, size: int = 0) -> Reply:
    """A range that differs from what was asked for: in its ends, in its body, in the size of the file."""

    def reply(handler: Handler, data: bytes) -> None:
        start, stop = span_of(handler, data) or (0, len(data))
        sent = (data + bytes(abs(body)))[start : stop + body]
        about = f"bytes {start + first}-{stop - 1 + last}/{len(data) + size}"
        handler.reply(206, sent, Content_Range=about)

    return reply


def silent(seconds: float) -> Reply:
    """No answer, for longer than the client waits."""

    def reply(handler: Handler, data: bytes) -> None:
        time.sleep(seconds)
        ranged(handler, data)

    return reply


def refused(status: int, **headers: str) -> Reply:
    return lambda handler, data: handler.reply(status, **headers)


@contextmanager
def serving(hub: Hub, port: int = 0) -> Iterator[str]:
    """The address of the hub while it runs."""
    server = Server(hub, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def use(monkeypatch: Any, address: str, home: Path) -> None:
    """As HF_ENDPOINT and HF_HOME in the environment of a new process."""
    from huggingface_hub import constants

    for name, value in {
        "ENDPOINT": address,
        "HUGGINGFACE_CO_URL_TEMPLATE": address + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_TELEMETRY": True,
        "HF_HUB_DISABLE_XET": True,
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
