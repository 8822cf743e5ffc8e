"""`obverse report` and `obverse sample`: called here, tested where they are written."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("command", ["report", "sample"])
def test_a_directory_without_a_run_is_one_sentence(obverse, tmp_path, command):
    done = obverse(command, tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(("obverse: expected ", "obverse: No such file or folder: "))
    assert done.err.count("\n") == 1


def test_a_page_and_a_picture_of_a_run(obverse, small, tmp_path):
    assert obverse("train", *small).code == 0
    page, picture = tmp_path / "page.html", tmp_path / "picture.png"
    done = obverse("report", tmp_path / "run", "--out", page)
    assert (done.code, done.out, done.err) == (0, f"page: {page}\n", "")
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    done = obverse("sample", tmp_path / "run", "--out", picture, "--per-class", "1")
    assert (done.code, done.out, done.err) == (0, f"image: {picture}\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")
