"""Tables that fit the terminal: which columns stay, how names are shortened."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obverse._core import NONE
from obverse.present import table as grid
from obverse.present.table import GAP, Column, fit, open_console, print_grid, shorten, shorten_all

COLUMNS = [
    Column("layer", ("model.layers.3.mlp.down_proj", "out")),
    Column("size", ("123456", "1"), drop=1),
    Column("law", ("normal", NONE), drop=2),
    Column("none", (NONE, NONE)),
    Column("ratio", ("1.00", "2.00"), "so far", frozenset({1})),
]


def titles(width: int) -> list[str]:
    return [column.title for column in fit(COLUMNS, width)]


def test_columns_go_in_their_order_and_empty_ones_first():
    assert titles(200) == ["layer", "size", "law", "ratio"]
    # 20 letters of the name, and 6 + 6 + 5 with a gap before each
    assert titles(20 + 17 + 3 * GAP) == ["layer", "size", "law", "ratio"]
    assert titles(20 + 17 + 3 * GAP - 1) == ["layer", "size", "ratio"]
    assert titles(20 + 11 + 2 * GAP - 1) == ["layer", "ratio"]
    assert titles(1) == ["layer", "ratio"], "these two always stay"


@pytest.mark.parametrize("width", [30, 34, 43, 60, 100])
def test_a_table_is_no_wider_than_it_may_be(monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    print_grid(open_console(), COLUMNS, "a star")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert "2.00*" in lines[3]
    assert "ratio: so far; *: a star" in "\n".join(lines)


def test_names_have_the_room_that_is_left():
    assert fit(COLUMNS, 200)[0].cells[0] == "model.layers.3.mlp.down_proj"
    assert fit(COLUMNS, 20 + 17 + 3 * GAP)[0].cells == ("m.l.3.mlp.down_proj", "out")


def test_a_first_column_of_dashes_stays():
    assert [column.title for column in fit([Column("layer", (NONE,)), Column("b", ("1",))], 80)] == [
        "layer",
        "b",
    ]


def test_no_rows_are_a_table_of_titles(capsys):
    print_grid(open_console(), [Column("layer", ()), Column("b", ())], "a star")
    assert capsys.readouterr().out.split() == ["layer", "b", *["─" * 8]]


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("h1", 10, "h1"),
        ("model.layers.31.self_attn.q_proj", 32, "model.layers.31.self_attn.q_proj"),
        ("model.layers.31.self_attn.q_proj", 31, "m.layers.31.self_attn.q_proj"),
        ("model.layers.31.self_attn.q_proj", 24, "m.l.31.self_attn.q_proj"),
        ("model.layers.31.self_attn.q_proj", 15, "m.l.31.s.q_proj"),
        ("model.layers.31.self_attn.q_proj", 14, "m.l.31.s.q_p"),
        ("features.denseblock3.denselayer12.conv2.weight", 20, "f.d3.d12.c2.weight"),
        ("a_name_without_any_dots_in_it", 10, "a_n…_in_it"),
        ("", 10, ""),
        ("....", 3, ".…."),
    ],
)
def test_names_are_shortened(name, width, short):
    assert shorten(name, width) == short


@given(st.text(max_size=60), st.integers(4, 40))
def test_a_short_name_fits_and_one_that_fits_is_left_alone(name, width):
    assert len(shorten(name, width)) <= width
    if len(name) <= width:
        assert shorten(name, width) == name


def test_layers_of_a_transformer_stay_apart_in_20_letters():
    parts = ("self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj")
    names = [f"model.layers.{at}.{part}" for at in range(64) for part in parts]
    assert len({shorten(name, 20) for name in names}) == len(names)


def test_the_examples_are_true():
    assert doctest.testmod(grid).failed == 0


def test_gates_of_a_recurrent_layer_stay_apart():
    gates = ("input", "forget", "cell", "output")
    names = [
        f"lstm.weight_{side}_l{at} ({gate} gate)"
        for at in range(3)
        for side in ("ih", "hh")
        for gate in gates
    ]
    for width in (24, 20, 16):
        short = shorten_all(names, width)
        assert len(set(short)) == len(names)
        assert max(map(len, short)) <= width
    assert shorten_all(names, 20)[:2] == ("l.w_ih_l0 (input g)", "l.w_ih_l0 (forget g)")


@given(st.lists(st.text("ab.1_ (", max_size=14), unique=True, max_size=8), st.integers(3, 14))
def test_names_that_differ_stay_different(names, width):
    assert len(set(shorten_all(names, width))) == len(names)


def test_a_column_goes_rather_than_what_tells_names_apart():
    names = tuple(f"a.weight_{side}_l{at} (gate)" for side in ("ih", "hh") for at in range(3))
    columns = [Column("layer", names), Column("b", ("1234567890",) * 6, drop=1)]
    for width in (10, 20, 30, 40):
        assert len(set(fit(columns, width)[0].cells)) == 6
