"""A long JSON file read item by item: what comes out is what json.loads makes of the whole text."""

from __future__ import annotations

import json
import random

import pytest

from obverse import BadInput
from obverse._core import long_json
from obverse._core.long_json import read_long_json


def read(path, text, key="items"):
    path.write_text(text, encoding="utf-8")
    items: list[object] = []
    return read_long_json(path, "a list", key, items.append), items


def value(rng, depth=0):
    """Anything that JSON has, with spaces, escapes and signs of several bytes."""
    made = [
        lambda: rng.randrange(-(10**12), 10**12),
        lambda: rng.random() * 10.0 ** rng.randrange(-20, 20),
        lambda: rng.choice([None, True, False, "", 'ü\\n"漢字', "[1, 2]", "}"]),
        lambda: [value(rng, depth + 1) for _ in range(rng.randrange(4))],
        lambda: {f"k{at}": value(rng, depth + 1) for at in range(rng.randrange(4))},
    ]
    return rng.choice(made[: 3 if depth > 3 else 5])()


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
@pytest.mark.parametrize("indent", [None, 3])
def test_it_reads_what_json_reads(tmp_path, monkeypatch, chunk, indent):
    monkeypatch.setattr(long_json, "CHUNK", chunk)
    rng = random.Random(chunk)
    for _ in range(20):
        whole = {"format": 2, "before": value(rng), "items": [value(rng) for _ in range(5)], "after": 12345}
        rest, items = read(tmp_path / "a.json", json.dumps(whole, indent=indent, ensure_ascii=False))
        assert {**rest, "items": items} == whole


@pytest.mark.parametrize("whole", [{}, {"items": []}, {"items": 3}, {"a": 1}])
def test_an_object_without_such_a_list_is_read_too(tmp_path, whole):
    rest, items = read(tmp_path / "a.json", json.dumps(whole))
    assert (rest, items) == ({name: one for name, one in whole.items() if name != "items" or one == 3}, [])


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"items": [1, 2', '{"items": [1 2]}', '{"items": [1, 2]} 3', '{"items": [NaN]}',
        '{"items": [1e999]}', '{"a": 1, "a": 2}', '{1: 2}', '{"a" 1}', '{"items": [1,]}',
        '{"items": [' + 100_000 * "[",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(tmp_path, text):
    with pytest.raises(BadInput, match="a list in JSON"):
        read(tmp_path / "a.json", text)


def test_files_items_and_their_number_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(long_json, "MOST", 3)
    with pytest.raises(BadInput, match="more than 3 items"):
        read(tmp_path / "a.json", '{"items": [1, 2, 3, 4]}')
    monkeypatch.setattr(long_json, "CHUNK", 4)
    monkeypatch.setattr(long_json, "LONGEST", 10)
    with pytest.raises(BadInput, match="Unterminated string"):
        read(tmp_path / "a.json", '{"items": ["' + 1000 * "x" + '"]}')
    monkeypatch.setattr(long_json, "LARGEST", 10)
    with pytest.raises(BadInput, match="at most 10 bytes"):
        read(tmp_path / "a.json", '{"items": [1, 2, 3]}')


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "a.json").write_bytes(b'{"items": ["\xff"]}')
    with pytest.raises(BadInput, match="a list in JSON"):
        read_long_json(tmp_path / "a.json", "a list", "items", print)
