from __future__ import annotations

import pytest

from obverse._core import FIXED, NONE, at_most, counted, listed, named, percent, shape, unbroken, whole


def test_percent_has_one_form_with_options():
    assert percent(0.042) == "4.20"
    assert percent(0.042, 0.0012) == f"4.20{FIXED}±{FIXED}0.12"
    assert percent(0.042, 0.0012, decimals=1, unit=" %") == f"4.2{FIXED}±{FIXED}0.1 %"
    assert percent(None) == "—"
    assert percent(None, unit=" %", missing=NONE) == NONE


@pytest.mark.parametrize(
    ("items", "most", "expected"),
    [
        ("a", None, "a"),
        ("ab", None, "a and b"),
        ("abc", None, "a, b and c"),
        ("abc", 3, "a, b and c"),
        ("abc", 2, "a, b and 1 more"),
        ("abcd", 1, "a and 3 more"),
    ],
)
def test_a_list_names_at_most_so_many_and_counts_the_rest(items, most, expected):
    assert listed(list(items), most) == expected


def test_at_most_so_many_and_how_many_more():
    assert at_most([1, 2, 3], 2) == ([1, 2], 1)
    assert at_most((1, 2), 5) == ((1, 2), 0)


def test_counts_and_shapes():
    assert [counted(count, "layer") for count in (0, 1, 1200)] == ["0 layers", "1 layer", "1,200 layers"]
    assert counted(2, "batch", "batches") == "2 batches"
    assert (shape((3, 32, 32)), shape(())) == ("3×32×32", "1")
    assert (whole(12_000), whole(10**15)) == ("12,000", "more than 10¹⁵")


def test_names_of_any_origin_are_bounded():
    assert named("a\nb\x1b") == "a b"
    assert named(" \x00", "no name") == "no name"
    assert len(named("x" * 1000)) == 120


def test_signs_stay_beside_their_numbers():
    assert unbroken("4 % ± 1 %", " %") == f"4{FIXED}% ± 1{FIXED}%"
