"""What a request may say, and what it is told otherwise."""

from __future__ import annotations

from math import inf, nan

import pytest

from obverse._core.errors import BadInput
from obverse.present.fields import Fields


def test_numbers_within_their_bounds():
    fields = Fields({"a": 0.5, "b": 3, "c": True, "list": [0, 0.5, 1]})
    assert fields.number("a", 0, 1) == 0.5
    assert fields.whole("b", 3, 3) == 3
    assert fields.flag("c") is True
    assert fields.flag("absent") is False
    assert fields.several("list", 3, 0, 1) == [0, 0.5, 1]
    assert Fields({"d": "x"}).choice("d", ["x", "y"]) == "x"
    assert fields.has("a")
    assert not fields.has("d")


@pytest.mark.parametrize(
    "value",
    [None, "1", True, [], {}, nan, inf, -inf, 1.01, -0.01, 10**400],
    ids=lambda value: repr(value)[:9],
)
def test_what_is_no_number_in_range_is_refused(value):
    with pytest.raises(BadInput, match=r"expected a from 0 to 1; got .*; move it"):
        Fields({"a": value}).number("a", 0, 1)


@pytest.mark.parametrize("value", [1.5, 0, 11, None, "3"])
def test_what_is_no_whole_number_in_range_is_refused(value):
    with pytest.raises(BadInput, match="expected a "):
        Fields({"a": value}).whole("a", 1, 10)


@pytest.mark.parametrize("value", ["c", 1, None, ["a"], {"a": 1}])
def test_what_is_not_offered_is_refused(value):
    with pytest.raises(BadInput, match="out of a, b"):
        Fields({"a": value}).choice("a", ["a", "b"])


@pytest.mark.parametrize("value", ["true", 1, []])
def test_what_is_neither_true_nor_false_is_refused(value):
    with pytest.raises(BadInput, match="true or false"):
        Fields({"a": value}).flag("a")


@pytest.mark.parametrize("value", [None, "abc", [1, 2, 3, 4], [1, 2, "3"], [1, 2, nan], [1, 2, 9]])
def test_what_is_no_list_of_numbers_or_too_long_is_refused(value):
    with pytest.raises(BadInput):
        Fields({"a": value}).several("a", 3, 0, 5)


def test_what_came_is_told_in_few_letters():
    with pytest.raises(BadInput) as told:
        Fields({"a": "x" * 10_000}).number("a", 0, 1)
    assert len(str(told.value)) < 200
