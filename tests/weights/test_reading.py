"""audit.json: what is written comes back the same; what is out of order is refused by name."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import obverse._core.records
from obverse import BadInput
from obverse.weights import results
from obverse.weights.results import Number, audit_text, read_audit, write_audit
from weights.made_audits import made_audit, made_layer, made_parts, made_reversal, unmeasured

WHOLE = made_audit(
    made_layer("h1", rank=2, wanting=("entries", "blocks")),
    made_layer("h2", parts=made_parts(method="krylov"), offsets=None, correlations=()),
    made_layer("h3", reversal=(replace(made_reversal(source="data"), own_bias=None),), blocks=None),
    unmeasured("a name, with a \x1b[31mcolour,\n a line break and 汉字"),
    data=True,
    nothing=None,
    some=(1, 2.5, "three"),
)


def plain() -> dict[str, Any]:
    """The content of a sound file, to be spoilt."""
    value: dict[str, Any] = json.loads(audit_text(WHOLE))
    return value


def refused(tmp_path: Path, content: Any) -> str:
    path = tmp_path / "audit.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_audit(path)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 1500
    return said


def test_what_is_written_is_read_back_the_same(tmp_path):
    write_audit(WHOLE, tmp_path / "audit.json")
    found = read_audit(tmp_path / "audit.json")
    assert found == WHOLE
    assert [type(layer) for layer in found.layers] == [type(layer) for layer in WHOLE.layers]
    assert audit_text(found) == audit_text(WHOLE)
    assert read_audit(tmp_path) == WHOLE, "a directory stands for the audit.json in it"


def test_an_empty_audit_is_an_audit(tmp_path):
    write_audit(made_audit(), tmp_path / "audit.json")
    assert read_audit(tmp_path) == made_audit()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_last_bit(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("audit") / "audit.json"
    written = made_audit(made_layer(blocks=Number(value)))
    write_audit(written, path)
    blocks = read_audit(path).layers[0].blocks
    assert blocks is not None
    assert (blocks.value, math.copysign(1, blocks.value)) == (value, math.copysign(1, value))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_never_written(tmp_path, value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_audit(made_audit(made_layer(blocks=Number(value))), tmp_path / "audit.json")
    assert list(tmp_path.iterdir()) == []


def at(path: str) -> tuple[Callable[[Any], Any], Any]:
    """Where in the JSON a dotted path leads: its parent and the last key."""
    *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]

    def parent(value: Any) -> Any:
        for part in outer:
            value = value[part]
        return value

    return parent, last


LAYER = "layers.0"
WRONG: list[tuple[str, Any, str]] = [
    ("format", 1, "an audit of format 2; got format 1 in"),
    ("format", True, "format True"),
    ("format", "1", "format '1'"),
    ("model", 3, "a text of at most 10,000 letters for the audit.model in"),
    ("model", "x" * 10_001, "a text of at most 10,000 letters"),
    ("model", "\ud800", "without lone surrogates"),
    ("seconds", "1", "a number for the audit.seconds"),
    ("seconds", True, "a number"),
    ("seconds", None, "a number"),
    ("seconds", 10**400, "a number"),
    ("layers", {}, "a list for the audit.layers"),
    ("layers.0", [], "a mapping for the audit.layers[0]"),
    ("thresholds", [], "a mapping of at most 65,536 names for the audit.thresholds"),
    ("thresholds.level", "0.1", "a number for the audit.thresholds.'level'"),
    ("settings.seed", {"deep": 1}, "a number, a text, true, false or null for the audit.settings.'seed'"),
    ("settings.seed", [[1]], "a number, a text, true, false or null for the audit.settings.'seed'[0]"),
    ("settings.seed", 2**63, "a whole number"),
    ("versions.torch", 2.5, "a text"),
    (f"{LAYER}.rows", 64.0, "a whole number for the audit.layers[0].rows in"),
    (f"{LAYER}.rows", True, "a whole number"),
    (f"{LAYER}.rows", 0, "rows and columns ≥ 1 for the audit.layers[0]"),
    (
        f"{LAYER}.verdict",
        "fine",
        "'untouched' or 'signal in a random bulk' or 'mostly signal' or 'structured otherwise' or",
    ),
    (f"{LAYER}.verdict", ["untouched"], "got a list of 1"),
    (f"{LAYER}.findings.0.aspect", "smell", "for the audit.layers[0].findings[0].aspect in"),
    (f"{LAYER}.findings.0.random_like", 0, "true or false"),
    (f"{LAYER}.entries", 5, "a mapping for the audit.layers[0].entries"),
    (f"{LAYER}.entries.ks.p", "small", "a number for the audit.layers[0].entries.ks.p in"),
    (f"{LAYER}.entries.quantiles.1", [0.0], "a list of 2 for the audit.layers[0].entries.quantiles[1]"),
    (f"{LAYER}.entries.quantiles.1.1", None, "a number for the audit.layers[0].entries.quantiles[1][1]"),
    (f"{LAYER}.entries.histogram.counts", [1, 2, 3], "one more edge than counts"),
    (f"{LAYER}.entries.histogram.counts", [1, -1, 1, 1], "counts ≥ 0"),
    (f"{LAYER}.entries.histogram.edges", [0, 2, 1, 3, 4], "edges in ascending order"),
    (f"{LAYER}.values.2", "big", "the audit.layers[0].values[2]"),
    (f"{LAYER}.parts.directions.1.p", [], "the audit.layers[0].parts.directions[1].p"),
    (f"{LAYER}.reversal.0.interval", [1, 2, 3], "a list of 2"),
    (f"{LAYER}.reversal.0.layer", None, "a mapping for the audit.layers[0].reversal[0].layer"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG, ids=[f"{one[0]}-{one[1]!r:.20}" for one in WRONG])
def test_a_wrong_field_is_refused_by_name(tmp_path, path, value, said):
    content = plain()
    parent, last = at(path)
    parent(content)[last] = value
    assert said in refused(tmp_path, content)


def records(value: Any) -> list[dict[str, Any]]:
    """Every JSON object that stands for a record; mappings of free names are none."""
    if isinstance(value, list):
        return [found for item in value for found in records(item)]
    if not isinstance(value, dict):
        return []
    free = ("likelihoods", "matters_from", "thresholds", "settings", "versions")
    return [value] + [found for name, item in value.items() if name not in free for found in records(item)]


def later(names: tuple[str, ...]) -> set[str]:
    """The fields with a default, of the kind of record that has these fields."""
    kinds = [kind for kind in vars(results).values() if isinstance(kind, type) and is_dataclass(kind)]
    (kind,) = (kind for kind in kinds if {one.name for one in fields(kind)} == set(names) - {"format"})
    return {one.name for one in fields(kind) if one.default is not MISSING}


def test_every_field_of_every_record_is_needed_and_no_other_is_taken(tmp_path):
    content = plain()
    kinds = {tuple(record): number for number, record in enumerate(records(content))}
    for names, number in kinds.items():
        for name in names:
            spoilt = copy.deepcopy(content)
            del records(spoilt)[number][name]
            if name in later(names):  # older files do not have it
                path = tmp_path / "audit.json"
                path.write_text(json.dumps(spoilt), encoding="utf-8")
                read_audit(path)
                continue
            said = refused(tmp_path, spoilt)
            assert f"the field {name} for" in said or (name == "format" and "format None" in said)
        spoilt = copy.deepcopy(content)
        records(spoilt)[number]["extra"] = 1
        assert "got 'extra'" in refused(tmp_path, spoilt)
    assert len(kinds) == 14, "all kinds of records"


def test_lengths_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(obverse._core.records, "MAX_ITEMS", 3)
    said = refused(tmp_path, plain())
    assert "at most 3 items for the audit.layers in" in said
    assert "; got a list of 4; " in said
    content = plain() | {"layers": []}
    assert "at most 3 names for the audit.thresholds" in refused(tmp_path, content)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 2, "seconds": NaN}',
        '{"format": 2, "seconds": -Infinity}',
        '{"format": 2, "seconds": 1e999}',
        '{"format": ' + "[" * 50_000 + "]" * 50_000 + "}",
        '{"format": 2, "settings": {"a": ' + "[" * 500 + "]" * 500 + "}}",
    ],
    ids=lambda text: text[:30],
)
def test_what_is_not_sound_json_is_refused(tmp_path, text):
    assert "expected " in refused(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file or folder: "):
        read_audit(tmp_path)
    with pytest.raises(BadInput, match="No such file or folder: "):
        read_audit(tmp_path / "other.json")


def test_a_size_beyond_the_bound_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("obverse._core.files.MAX_JSON", 1000)
    assert "an audit of at most 1,000 bytes" in refused(tmp_path, audit_text(WHOLE))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_whatever_stands_anywhere_is_read_or_refused(tmp_path_factory, data):
    """Any value in place of any other: an audit or one BadInput, never another exception."""
    content = plain()
    place: Any = content
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner) or data.draw(st.integers(0, 3)) == 0:
            place[key] = data.draw(VALUES)
            break
        place = inner
    path = tmp_path_factory.mktemp("audit") / "audit.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with suppress(BadInput):
        read_audit(path)
