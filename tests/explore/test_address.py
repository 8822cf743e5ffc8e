"""Port and token: kept for this user alone, and not believed from anybody else."""

from __future__ import annotations

import json
import os
import stat

import pytest

from obverse.explore.address import Address, doorway, new_token, remember, remembered


def test_what_was_remembered_comes_back_and_is_private(keeper):
    address = Address(4321, new_token())
    remember(address, keeper)
    assert remembered(keeper) == address
    assert stat.S_IMODE(keeper.stat().st_mode) == 0o600
    assert [one.name for one in keeper.parent.iterdir()] == [keeper.name]


def test_tokens_are_long_and_never_the_same():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 43  # 256 bits


def test_a_file_that_others_may_read_is_not_believed(keeper):
    remember(Address(4321, new_token()), keeper)
    for mode in (0o640, 0o604, 0o620, 0o602):
        keeper.chmod(mode)
        assert remembered(keeper) is None


def test_a_link_is_not_followed(keeper, tmp_path):
    remember(Address(4321, new_token()), tmp_path / "real.json")
    keeper.symlink_to(tmp_path / "real.json")
    assert remembered(keeper) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "not json",
        "[" * 900,
        json.dumps({"port": 80, "token": "a" * 43}),
        json.dumps({"port": "4321", "token": "a" * 43}),
        json.dumps({"port": True, "token": "a" * 43}),
        json.dumps({"port": 4321, "token": "short"}),
        json.dumps({"port": 4321, "token": "a" * 42 + "/"}),
        json.dumps({"port": 4321, "token": "é" * 43}),
        json.dumps({"port": 4321, "token": "a" * 5000}),
    ],
)
def test_a_file_that_says_something_else_is_not_believed(keeper, text):
    keeper.write_text(text)
    keeper.chmod(0o600)
    assert remembered(keeper) is None


def test_nothing_to_remember_in_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    remember(Address(4321, new_token()), tmp_path / "file" / "address.json")
    assert remembered(tmp_path / "file" / "address.json") is None


def test_the_way_in_is_a_private_file():
    path = doorway(Address(4321, "t" * 43))
    assert f"http://127.0.0.1:4321/{'t' * 43}/" in path.read_text()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.parent.stat().st_uid == os.getuid()
