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

from obverse.errors import BadInput
from obverse.explore import serve
from obverse.explore.address import remembered
from obverse.explore.assets import render
from obverse.explore.routes import ROUTES
from obverse.explore.server import HEADERS, MOST_BYTES, MOST_CONNECTIONS, Server

from .conftest import TOKEN
from .load import run_clients


def ask(server, method="GET", path=None, body=None, headers=None, host=None):
    """One request on a connection of its own."""
    port = server.address_kept.port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    text = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.putrequest(method, path or f"/{TOKEN}/", skip_host=True)
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
        found = ask(server, path=f"/{TOKEN}/{name}")
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
        f"/{TOKEN}",
        f"/{TOKEN[:-1]}/",
        f"/{TOKEN}b/",
        f"/{TOKEN.upper()}/",
        f"/x/{TOKEN}/",
        f"/?token={TOKEN}",
        "/%61/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_shown(server, path, method):
    found = ask(server, method, path, body=None if method == "GET" else {})
    assert found.status == 403
    assert "expected the token" in found.text
    assert TOKEN not in found.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]", ""])
def test_another_host_name_is_refused(server, host):
    """What a name that is pointed at this machine (DNS rebinding) would send."""
    found = ask(server, host=host or " ")
    assert found.status == 421
    assert TOKEN not in found.text


def test_localhost_with_the_port_is_this_machine_too(server):
    assert ask(server, host=f"localhost:{server.address_kept.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_another_page_is_refused_even_with_the_token(server, origin):
    found = ask(server, "POST", f"/{TOKEN}/about", {}, {"Origin": origin})
    assert found.status == 403
    assert "Origin" in found.text


def test_the_page_itself_is_not(server):
    origin = f"http://127.0.0.1:{server.address_kept.port}"
    assert (
        json.loads(ask(server, "POST", f"/{TOKEN}/about", {}, {"Origin": origin}).text)["net"]["name"]
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
        with pytest.raises(OSError), socket.create_connection((address, server.address_kept.port), timeout=2):
            pass


def test_the_challenge_proves_the_token_and_does_not_tell_it(server):
    found = ask(server, path="/alive/abc123")
    expected = hmac.new(TOKEN.encode(), b"abc123", hashlib.sha256).hexdigest()
    assert json.loads(found.text) == {"proof": expected}
    assert ask(server, path="/alive/").status == 400
    assert ask(server, path=f"/alive/{'a' * 65}").status == 400
    assert ask(server, path="/alive/a%20b").status == 400


@pytest.mark.parametrize(
    "name", ["nothing", "../serve.py", "..%2f..%2fetc%2fpasswd", "", "About", "style.css.j2"]
)
def test_other_names_are_refused(server, name):
    assert ask(server, "POST", f"/{TOKEN}/{name}", {}).status in (403, 404)
    if name:
        assert ask(server, path=f"/{TOKEN}/{name}").status in (403, 404)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"1", b"\xff\xfe", b'{"a": NaN}', b"[" * 10_000, b'{"a": 1e999}']
)
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_what_is_no_question_gets_a_sentence(server, name, body):
    found = ask(server, "POST", f"/{TOKEN}/{name}", body)
    assert found.status == 200
    assert json.loads(found.text)["error"].startswith("expected ")


@pytest.mark.parametrize("name", sorted(set(ROUTES) - {"about"}))
def test_an_empty_question_gets_a_sentence(server, name):
    assert json.loads(ask(server, "POST", f"/{TOKEN}/{name}", {}).text)["error"].startswith("expected ")


def test_forms_and_other_types_are_refused(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert ask(server, "POST", f"/{TOKEN}/about", {}, {"Content-Type": kind}).status == 415


@pytest.mark.parametrize("length", [None, "-1", "x", "1e3", "9" * 30])
def test_a_body_of_unknown_length_is_refused(server, length):
    headers = {"Content-Length": length}
    assert ask(server, "POST", f"/{TOKEN}/about", {}, headers).status == 411


def test_a_body_that_is_too_large_is_not_read(server):
    found = ask(server, "POST", f"/{TOKEN}/about", b"", {"Content-Length": str(MOST_BYTES + 1)})
    assert found.status == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_refused(server, method):
    assert ask(server, method).status == 501


def test_a_bug_is_told_and_the_server_goes_on(server, monkeypatch):
    def broken(subject, fields):
        raise RuntimeError("something odd")

    monkeypatch.setitem(ROUTES, "about", broken)
    found = ask(server, "POST", f"/{TOKEN}/about", {})
    assert found.status == 500
    assert "this is a bug: RuntimeError: something odd" in found.text
    monkeypatch.undo()
    assert ask(server, "POST", f"/{TOKEN}/about", {}).status == 200


def test_a_connection_is_used_again(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.address_kept.port, timeout=30)
    for _ in range(3):
        connection.request(
            "POST",
            f"/{TOKEN}/preset",
            json.dumps({"kind": "tree", "leaves": 4}),
            {"Content-Type": "application/json"},
        )
        response = connection.getresponse()
        assert json.loads(response.read())["leaves"] == 4
        assert response.headers["Connection"] != "close"
    connection.close()


def test_more_connections_than_there_is_room_for_are_turned_away(subject, monkeypatch):
    monkeypatch.setattr("obverse.explore.server.MOST_CONNECTIONS", 2)
    crowded = Server(subject, 0, TOKEN)
    threading.Thread(target=crowded.serve_forever, daemon=True).start()
    port = crowded.address_kept.port
    try:
        with socket.create_connection(("127.0.0.1", port)):
            with socket.create_connection(("127.0.0.1", port)):
                third = socket.create_connection(("127.0.0.1", port), timeout=10)
                with third, contextlib.suppress(ConnectionError):
                    third.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    assert third.recv(100) == b""
            for _ in range(100):  # until the thread of the one that left is gone
                with contextlib.suppress(ConnectionError, http.client.HTTPException):
                    assert ask(crowded).status == 200
                    break
                time.sleep(0.05)
            else:
                pytest.fail("no room again after a connection was closed")
    finally:
        crowded.shutdown()
        crowded.close()
    assert MOST_CONNECTIONS >= 50 * 6  # fifty browsers


def closed(server):
    """Bound, but never served: only the socket has to go."""
    server.close()
    return server.address_kept


def test_the_next_start_has_the_same_address(subject):
    first = closed(serve(subject))
    assert remembered() == first
    assert closed(serve(subject)) == first


def test_where_the_port_is_taken_port_and_token_are_new(subject):
    first = serve(subject)
    second = closed(serve(subject))
    assert second.port != first.address_kept.port
    assert second.token != first.token
    closed(first)


def test_a_port_that_was_asked_for_and_is_taken_is_told(subject):
    first = serve(subject)
    with pytest.raises(BadInput, match=r"to be free; got .*; leave out --port"):
        serve(subject, first.address_kept.port)
    address = closed(first)
    again = closed(serve(subject, address.port))
    assert again == address


def test_fifty_clients_at_once_for_a_moment(server):
    """The long form, a minute with memory watched, is slow: see test_load."""
    found = run_clients(server.address_kept, clients=50, seconds=3)
    assert found.errors == []
    assert found.answers >= 50
