"""Port and token: kept for this user alone, and not believed from anybody else."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat

import pytest

from obverse.app._explorer.address import (
    Address,
    SavedAddress,
    doorway,
    handover,
    new_token,
    remember,
    remembered,
    token_of,
)


def test_what_was_remembered_comes_back_and_is_private(keeper):
    kept = SavedAddress(4321, new_token())
    remember(kept, keeper)
    assert remembered(keeper) == kept
    assert stat.S_IMODE(keeper.stat().st_mode) == 0o600
    assert [one.name for one in keeper.parent.iterdir()] == [keeper.name]


def test_tokens_are_long_and_never_the_same():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(bytes.fromhex(token)) for token in tokens} == {32}  # 256 bits


def test_a_file_that_others_may_read_is_not_believed(keeper):
    remember(SavedAddress(4321, new_token()), keeper)
    for mode in (0o640, 0o604, 0o620, 0o602):
        keeper.chmod(mode)
        assert remembered(keeper) is None


def test_a_link_is_not_followed(keeper, tmp_path):
    remember(SavedAddress(4321, new_token()), tmp_path / "real.json")
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
        json.dumps({"port": 80, "secret": "ab" * 32}),
        json.dumps({"port": "4321", "secret": "ab" * 32}),
        json.dumps({"port": True, "secret": "ab" * 32}),
        json.dumps({"port": 4321, "secret": "ab" * 31}),
        json.dumps({"port": 4321, "secret": "xy" * 32}),
        json.dumps({"port": 4321, "secret": " ".join(["ab"] * 32)}),
        json.dumps({"port": 4321, "secret": 5}),
        json.dumps({"port": 4321, "secret": "ab" * 5000}),
    ],
)
def test_a_file_that_says_something_else_is_not_believed(keeper, text):
    keeper.write_text(text)
    keeper.chmod(0o600)
    assert remembered(keeper) is None


def test_nothing_to_remember_in_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    remember(SavedAddress(4321, new_token()), tmp_path / "file" / "address.json")
    assert remembered(tmp_path / "file" / "address.json") is None


def test_the_way_in_is_a_private_file():
    path = doorway(Address(4321, "t" * 43))
    assert f"http://127.0.0.1:4321/{'t' * 43}/" in path.read_text()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.parent.stat().st_uid == os.getuid()


def test_a_new_token_is_handed_to_who_knows_the_secret():
    secret, salt = new_token(), new_token()
    told = handover(secret, salt, 4321, "abc")

    def mac(text: str, key: str = secret) -> str:
        return hmac.new(bytes.fromhex(key), text.encode(), hashlib.sha256).hexdigest()

    assert told == {"salt": salt, "proof": mac(f"proof abc 4321 {salt}")}
    assert token_of(secret, salt) == mac(f"token {salt}")
    assert told["proof"] != mac(f"proof abc 4321 {salt}", new_token())


def test_an_answer_is_good_for_one_challenge_at_one_port_of_one_start():
    secret, first, second = new_token(), new_token(), new_token()
    said = [(first, 4321, "abc"), (first, 4321, "abd"), (first, 4322, "abc"), (second, 4321, "abc")]
    assert len({handover(secret, *one)["proof"] for one in said}) == 4
    assert token_of(secret, first) != token_of(secret, second)
    for one in said:
        assert token_of(secret, one[0]) not in str(handover(secret, *one))
