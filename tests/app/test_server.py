"""The server: who may ask, what it says to others, and that it stays up."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import re
import socket
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from app.conftest import SECRET, serving
from app.load import run_clients
from obverse._core.errors import BadInput
from obverse.app._explorer import serve
from obverse.app._explorer.address import remembered
from obverse.app._explorer.assets import render
from obverse.app._explorer.routes import ROUTES
from obverse.app._explorer.server import HEADERS, MOST_BYTES, MOST_HEAD


def ask(server, method="GET", path=None, body=None, headers=None, host=None):
    """One request on a connection of its own."""
    port = server.at.port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.putrequest(method, path or f"/{server.at.token}/", skip_host=True)
    sent = {"Host": host or f"127.0.0.1:{port}"} | (
        {} if text is None else {"Content-Length": str(len(text))}
    )
    if text is not None:
        sent["Content-Type"] = "application/json"
    for name, value in (sent | (headers or {})).items():
        if value is not None:
            connection.putheader(name, value)
    try:
        connection.endheaders(text)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    return SimpleNamespace(status=response.status, text=content.decode(), headers=response.headers)


def test_the_page_and_its_files_are_there(server):
    assert "obverse explore" in ask(server).text
    for name in render():
        found = ask(server, path=f"/{server.at.token}/{name}")
        assert found.status == 200
        for header, value in HEADERS.items():
            assert found.headers[header] == value


def test_the_page_asks_nobody_else():
    """No address of another host in any file, and no script or style inside the document."""
    for name, text in render().items():
        assert set(re.findall(r"\w+://[^\s\"'`)]*", text)) <= {"http://www.w3.org/2000/svg"}, name
    assert "<style" not in render()["index.html"]
    assert "style=" not in render()["index.html"]
    assert "<script>" not in render()["index.html"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/app.js",
        "//",
        "/TOKEN",
        "/TOKENb/",
        "/bTOKEN/",
        "/x/TOKEN/",
        "/?token=TOKEN",
        "/%61/",
        f"/{'a' * 64}/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_shown(server, path, method):
    found = ask(server, method, path.replace("TOKEN", server.at.token), body=None if method == "GET" else {})
    assert found.status == 403
    assert "expected the token" in found.text
    assert server.at.token not in found.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]", ""])
def test_another_host_name_is_refused(server, host):
    """What a name that is pointed at this machine (DNS rebinding) would send."""
    found = ask(server, host=host or " ")
    assert found.status == 421
    assert server.at.token not in found.text


def test_localhost_with_the_port_is_this_machine_too(server):
    assert ask(server, host=f"localhost:{server.at.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_another_page_is_refused_even_with_the_token(server, origin):
    found = ask(server, "POST", f"/{server.at.token}/about", {}, {"Origin": origin})
    assert found.status == 403
    assert "Origin" in found.text


def test_the_page_itself_is_not(server):
    origin = f"http://127.0.0.1:{server.at.port}"
    assert (
        json.loads(ask(server, "POST", f"/{server.at.token}/about", {}, {"Origin": origin}).text)["net"][
            "name"
        ]
        == "a net"
    )


def test_only_this_machine_is_served(server):
    assert server.server_address[0] == "127.0.0.1"
    others = [
        one.address
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    ]
    for address in others:
        with pytest.raises(OSError), socket.create_connection((address, server.at.port), timeout=2):
            pass


def test_the_challenge_hands_over_what_makes_the_token_and_a_proof(server):
    told = json.loads(ask(server, path="/alive/abc123").text)
    assert set(told) == {"salt", "proof"}
    assert server.at.token not in str(told)

    def mac(text: str) -> str:
        return hmac.new(bytes.fromhex(SECRET), text.encode(), hashlib.sha256).hexdigest()

    assert told["proof"] == mac(f"proof abc123 {server.at.port} {told['salt']}")
    assert server.at.token == mac(f"token {told['salt']}")
    assert ask(server, path="/alive/").status == 400
    assert ask(server, path=f"/alive/{'a' * 65}").status == 400
    assert ask(server, path="/alive/a%20b").status == 400


@pytest.mark.parametrize(
    "name", ["nothing", "../serve.py", "..%2f..%2fetc%2fpasswd", "", "About", "style.css.j2"]
)
def test_other_names_are_refused(server, name):
    assert ask(server, "POST", f"/{server.at.token}/{name}", {}).status in (403, 404)
    if name:
        assert ask(server, path=f"/{server.at.token}/{name}").status in (403, 404)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"1", b"\xff\xfe", b'{"a": NaN}', b"[" * 10_000, b'{"a": 1e999}']
)
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_what_is_no_question_gets_a_sentence(server, name, body):
    found = ask(server, "POST", f"/{server.at.token}/{name}", body)
    assert found.status == 200
    assert json.loads(found.text)["error"].startswith("expected ")


@pytest.mark.parametrize("name", sorted(set(ROUTES) - {"about"}))
def test_an_empty_question_gets_a_sentence(server, name):
    found = json.loads(ask(server, "POST", f"/{server.at.token}/{name}", {}).text)
    assert found["error"].startswith("expected ")


def test_forms_and_other_types_are_refused(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert ask(server, "POST", f"/{server.at.token}/about", {}, {"Content-Type": kind}).status == 415


@pytest.mark.parametrize("length", [None, "-1", "x", "1e3", "9" * 30])
def test_a_body_of_unknown_length_is_refused(server, length):
    headers = {"Content-Length": length}
    assert ask(server, "POST", f"/{server.at.token}/about", {}, headers).status == 411


def test_a_body_that_is_too_large_is_not_read(server):
    found = ask(server, "POST", f"/{server.at.token}/about", b"", {"Content-Length": str(MOST_BYTES + 1)})
    assert found.status == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(server, method):
    assert ask(server, method).status == 501


def test_a_bug_is_told_and_the_server_goes_on(server, monkeypatch):
    def broken(subject, fields):
        raise RuntimeError("something odd")

    monkeypatch.setitem(ROUTES, "about", broken)
    found = ask(server, "POST", f"/{server.at.token}/about", {})
    assert found.status == 500
    assert "this is a bug: RuntimeError: something odd" in found.text
    monkeypatch.undo()
    assert ask(server, "POST", f"/{server.at.token}/about", {}).status == 200


def test_a_connection_is_used_again(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.at.port, timeout=30)
    for _ in range(3):
        connection.request(
            "POST",
            f"/{server.at.token}/preset",
            json.dumps({"kind": "tree", "leaves": 4}),
            {"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        assert json.loads(response.read())["leaves"] == 4
        assert response.headers["Connection"] != "close"
    connection.close()


def held(port: int, count: int, stack: contextlib.ExitStack) -> list[socket.socket]:
    address = ("127.0.0.1", port)
    return [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(count)]


@pytest.mark.parametrize("path", ["", "/alive/x", "/", "/TOKEN/"])
def test_connections_without_the_token_keep_nobody_out(subject, path):
    """Idle ones, and those that ask without end and read no answer."""
    with serving(subject) as crowded, contextlib.ExitStack() as stack:
        line = path.replace("TOKEN", "a" * 64)
        question = f"GET {line} HTTP/1.1\r\nHost: 127.0.0.1:{crowded.at.port}\r\n\r\n".encode()
        for one in held(crowded.at.port, 100, stack):
            one.setblocking(False)
            with contextlib.suppress(OSError):
                one.sendall(question * 1000 if path else b"")
        assert ask(crowded).status == 200


def test_silent_connections_without_the_token_are_closed(subject, monkeypatch):
    monkeypatch.setattr("obverse.app._explorer.server.Handler.timeout", 0.2)  # for BRIEF
    with serving(subject) as server, contextlib.ExitStack() as stack:
        (silent,) = held(server.at.port, 1, stack)
        known = stack.enter_context(contextlib.closing(http.client.HTTPConnection(*server.server_address)))
        known.request("GET", f"/{server.at.token}/")
        assert known.getresponse().read()
        assert silent.recv(1) == b""  # closed, without an answer
        time.sleep(0.4)  # twice as long as the silence allowed to those that have not shown it
        known.request("GET", f"/{server.at.token}/")
        assert known.getresponse().status == 200


def test_without_the_token_a_connection_asks_once(server):
    with socket.create_connection(("127.0.0.1", server.at.port), timeout=60) as one:
        head = f"HTTP/1.1\r\nHost: 127.0.0.1:{server.at.port}\r\n\r\n"
        one.sendall(f"GET /alive/x {head}GET /alive/y {head}".encode())
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := one.recv(65536):
                answer += part
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"Connection: close" in answer


def held_up(monkeypatch: pytest.MonkeyPatch, question: str) -> tuple[threading.Event, threading.Event]:
    """A question that is answered only when it is let go on: (it has begun, go on)."""
    begun, go_on = threading.Event(), threading.Event()

    def slowly(subject, fields):
        begun.set()
        go_on.wait(120)
        return {}

    monkeypatch.setitem(ROUTES, question, slowly)
    return begun, go_on


def test_a_long_head_is_not_kept(server):
    """Headers without end: the connection ends at 16 KiB; http.server alone would take 6 MiB."""
    with socket.create_connection(("127.0.0.1", server.at.port), timeout=60) as one:
        one.sendall(b"GET / HTTP/1.1\r\nX-1: " + b"a" * (MOST_HEAD - 100))
        one.sendall(b"\r\nX-2: " + b"a" * 200)  # and no end of the line
        with contextlib.suppress(ConnectionError):
            assert one.recv(100) == b""
    assert ask(server).status == 200


def test_the_others_are_answered_while_a_shadow_takes_long(subject, monkeypatch):
    begun, go_on = held_up(monkeypatch, "shadow")
    with serving(subject) as busy:
        first = threading.Thread(target=ask, args=(busy, "POST", f"/{busy.at.token}/shadow", {}))
        first.start()
        assert begun.wait(60)
        assert ask(busy, "POST", f"/{busy.at.token}/about", {}).status == 200
        go_on.set()
        first.join()


def closed(server):
    """Bound, but never served: only the socket has to go."""
    server.close()
    return server.at


def test_the_next_start_has_the_same_port_and_secret_and_another_token(subject):
    first = serve(subject)
    address = closed(first)
    assert remembered().port == address.port
    second = serve(subject)
    assert closed(second).port == address.port
    assert second.secret == first.secret
    assert second.at.token != address.token


def test_where_the_port_is_taken_another_is_found(subject):
    first = serve(subject)
    second = closed(serve(subject))
    assert second.port != first.at.port
    closed(first)


def test_a_port_that_was_asked_for_and_is_taken_is_told(subject):
    first = serve(subject)
    with pytest.raises(BadInput, match=r"to be free; got .*; leave out --port"):
        serve(subject, first.at.port)
    address = closed(first)
    assert closed(serve(subject, address.port)).port == address.port


@pytest.mark.slow
def test_fifty_clients_at_once_for_a_moment(server):
    """The long form, a minute with memory watched, is slow: see test_load."""
    found = run_clients(server.at, clients=50, seconds=3)
    assert found.errors == []
    assert found.answers >= 50
