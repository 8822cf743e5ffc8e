from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from obverse import BadInput
from obverse._core import (
    FIXED,
    NONE,
    at_most,
    counted,
    in_percent,
    listed,
    named,
    percent,
    plain,
    printable,
    shape,
    unbroken,
    whole,
)
from obverse.present.template import environment, render_page


def test_printable_spells_out_all_that_is_not_seen_and_nothing_else():
    """Beside the Unicode database, letter by letter."""
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        if unicodedata.category(letter) == "Cn":  # of which a newer Unicode may make anything
            continue
        changed = printable(letter) != letter
        assert changed == (unicodedata.category(letter) in hidden), hex(number)


def test_what_is_spelled_out_can_be_written_and_tells_names_apart():
    names = ["a\x1b[2J", "a\ud800", "a\u202eb", "a\nb", "a\x01", "a\x02", f"a{FIXED}b"]
    shown = [printable(name) for name in names]
    assert "\n".join(shown).encode()
    assert len(set(shown)) == len(names)
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert plain("a\n b\x1b") == "a b\\x1b"


def test_every_sentence_of_an_error_is_clean_and_bounded():
    said = str(BadInput("a \x1b]0;name\x07", got="x\udc80" * 10_000, do="c\rd"))
    assert len(said) <= 4000
    assert said.encode()
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", said)
    assert said.startswith("expected a \\x1b]0;name\\x07; got x\\udc80")
    assert said.endswith("; c\\rd")


def test_a_page_has_no_control_characters_wherever_they_come_from(monkeypatch):
    from jinja2 import DictLoader

    engine = environment()
    engine.loader = DictLoader({"a": "<p>{{ text }}</p>\n{{ svg | markup }}{{ script }}"})
    monkeypatch.setattr("obverse.present.template.environment", lambda: engine)
    page = render_page("a", text="\x1b[2J <b>\x00\ud800", svg="<text>\u202e</text>")
    assert page == "<p>\\x1b[2J &lt;b&gt;\\x00\\ud800</p>\n<text>\\u202e</text>"


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
    assert named("a\nb\x1b") == r"a b\x1b"
    assert named(" \n", "no name") == "no name"
    assert named(" \x00", "no name") == r"\x00"
    assert len(named("x" * 1000)) == 120


def test_signs_stay_beside_their_numbers():
    assert unbroken("4 % ± 1 %", " %") == f"4{FIXED}% ± 1{FIXED}%"


def test_in_percent_says_a_hundred_only_where_it_is_all_and_zero_only_of_nothing():
    shares = (0.0, 2e-5, 0.0123, 0.4567, 0.9989, 0.99998, 1.0)
    said = [in_percent(share).replace(FIXED, " ") for share in shares]
    assert said == ["0 %", "less than 0.1 %", "1.2 %", "45.7 %", "99.9 %", "more than 99.9 %", "100 %"]
