from __future__ import annotations

import io
import socket
import threading
from pathlib import Path

import pytest

from data.helpers import Site, good, held, ignore_range, other, status, truncated, without_length, wrong_range
from obverse.data import _download as module
from obverse.data._download import Trouble, WrongContent, download

BODY = bytes(range(256)) * 20


@pytest.fixture
def part(site: Site, tmp_path: Path) -> Path:
    site.files["/file"] = BODY
    return tmp_path / "file.part"


@pytest.mark.parametrize("reply", [good, without_length])
def test_brings_the_whole_body(site: Site, part: Path, reply: object) -> None:
    site.usual = reply
    download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == BODY
    assert site.asked == [("/file", None)]


def test_a_truncated_body_stays_and_is_resumed(site: Site, part: Path) -> None:
    site.plan = [truncated(1000)]
    with pytest.raises(Trouble, match="ended after 1,000 of 5,120 bytes"):
        download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == BODY[:1000]
    download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == BODY
    assert site.asked == [("/file", None), ("/file", "bytes=1000-")]


def test_a_stalled_connection_is_given_up_and_resumed(
    site: Site, part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.1)
    release = threading.Event()
    site.plan = [held(2000, release)]
    with pytest.raises(Trouble, match=r"broke after 2,000 bytes .*timed out"):
        download(site.base + "file", part, len(BODY))
    release.set()
    assert part.read_bytes() == BODY[:2000]
    monkeypatch.undo()
    download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == BODY
    assert site.asked[1] == ("/file", "bytes=2000-")


def test_a_server_that_ignores_range_is_read_from_the_start(site: Site, part: Path) -> None:
    part.write_bytes(BODY[:100])
    site.usual = ignore_range
    download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == BODY
    assert site.asked == [("/file", "bytes=100-")]


def test_a_complete_part_needs_no_body(site: Site, part: Path) -> None:
    part.write_bytes(BODY)
    download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == BODY


def test_a_part_longer_than_the_source_is_thrown_away(site: Site, part: Path) -> None:
    part.write_bytes(BODY + b"more")
    with pytest.raises(Trouble, match="nothing to resume from"):
        download(site.base + "file", part, 2 * len(BODY))
    assert not part.exists()


def test_a_range_that_starts_elsewhere_is_not_appended(site: Site, part: Path) -> None:
    part.write_bytes(BODY[:100])
    site.plan = [wrong_range]
    with pytest.raises(Trouble, match="wrong byte"):
        download(site.base + "file", part, len(BODY))
    assert not part.exists()


@pytest.mark.parametrize(
    ("code", "again"), [(500, True), (503, True), (429, True), (404, False), (204, True)]
)
def test_other_answers_write_nothing(site: Site, part: Path, code: int, again: bool) -> None:
    site.usual = status(code)
    with pytest.raises(Trouble, match=f"HTTP {code}") as caught:
        download(site.base + "file", part, len(BODY))
    assert caught.value.again is again
    assert not part.exists()


def test_a_refused_connection_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as closed:  # bound, not listening: nobody else can take the port
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(Trouble, match="refused"):
            download(f"http://127.0.0.1:{closed.getsockname()[1]}/file", tmp_path / "file.part", 10)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("reply", [good, without_length])
def test_more_than_the_limit_is_wrong_content(site: Site, part: Path, reply: object) -> None:
    site.usual = reply
    with pytest.raises(WrongContent, match="5,119"):
        download(site.base + "file", part, len(BODY) - 1)
    assert not part.exists() or part.stat().st_size < len(BODY)


def test_the_bar_is_for_terminals_only(
    site: Site, part: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    download(site.base + "file", part, len(BODY))
    assert capsys.readouterr() == ("", "")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    part.write_bytes(BODY[:1000])
    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", terminal)
        download(site.base + "file", part, len(BODY))
    assert "file" in terminal.getvalue()
    assert "5.1/5.1 kB" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_a_page_in_place_of_the_file_is_brought_as_it_is(site: Site, part: Path) -> None:
    """A captive portal: judging the content is install's part."""
    site.usual = other(b"<html>")
    download(site.base + "file", part, len(BODY))
    assert part.read_bytes() == b"<html>"
