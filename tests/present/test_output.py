"""How a command that measures ends, with a result and a page of the test's own."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
import typer

from obverse._core import Record
from obverse.present import ResultType, deliver


@dataclass(frozen=True)
class Found(Record):
    number: int


KIND = ResultType(
    "found.json", Found, 3, read=lambda path: None, page=lambda path: "<p>", html="f.html", rank=99
)


def table(found: Found) -> None:
    typer.echo(f"the number is {found.number}")


def beside(out):
    (out / "beside.txt").write_text("")
    return (f"beside: {out / 'beside.txt'}",)


def test_people_get_a_table_and_are_told_where_the_files_are(tmp_path, capsys):
    deliver(Found(7), KIND, table, out=tmp_path, as_json=False, quick="7 in place of 700", files=beside)
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "note: --quick: 7 in place of 700; a first look, not a result",
        "the number is 7",
        f"beside: {tmp_path / 'beside.txt'}",
        f"page: {tmp_path / 'f.html'}",
    ]
    assert said.err == ""
    assert json.loads((tmp_path / "found.json").read_text()) == {"format": 3, "number": 7}
    assert (tmp_path / "f.html").read_text() == "<p>"


def test_programs_get_json_alone_on_stdout(tmp_path, capsys):
    deliver(Found(7), KIND, table, out=tmp_path, as_json=True, quick="less", files=beside)
    said = capsys.readouterr()
    assert json.loads(said.out) == {"format": 3, "number": 7}
    assert [line.partition(":")[0] for line in said.err.splitlines()] == ["note", "beside", "page"]


@pytest.mark.parametrize("as_json", [False, True])
def test_without_out_nothing_is_written(tmp_path, monkeypatch, capsys, as_json):
    monkeypatch.chdir(tmp_path)
    deliver(Found(7), KIND, table, out=None, as_json=as_json, files=beside)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""
