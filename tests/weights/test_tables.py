"""The flat table of an audit: stable columns, the right numbers in them, CSV that no spreadsheet runs."""

from __future__ import annotations

import builtins
import csv
import io
import math
import sys
from dataclasses import replace

import pytest

from obverse import ObverseError
from obverse._core.text import printable
from obverse.weights.results import COLUMNS, Audit, rows, to_csv, to_frame
from weights.made_audits import made_audit, made_layer, made_reversal, unmeasured

AUDIT = made_audit(
    made_layer(
        "h1", "signal in a random bulk", ratio=1.5, distance=0.08, rank=3, wanting=("norms", "blocks")
    ),
    made_layer(
        "h2",
        offsets=None,
        reversal=(
            made_reversal(1.1, sparsity=2.0),
            made_reversal(1.3, sparsity=7.0),
            made_reversal(2.0, "data", 9.5),
        ),
    ),
    unmeasured(),
)


def test_a_row_holds_the_numbers_of_its_layer():
    first, second, small = rows(AUDIT)
    expected = {
        "layer": "h1",
        "kind": "linear",
        "rows": 64,
        "columns": 100,
        "verdict": "signal in a random bulk",
        "random_share": 1 - 0.06,
        "random_share_low": 0.99 - 0.06,
        "random_share_high": 1.01 - 0.06,
        "rank": 3,
        "rank_low": 3,
        "rank_high": 4,
        "rank_is_bound": False,
        "signal_share": 0.06,
        "p": 1e-8,
        "family_p": 2e-8,
        "remarks": "norms, blocks",
        "entries_mean": -0.01,
        "entries_ks": 0.004,
        "entries_ks_p": 0.2,
        "entries_best_law": "Student t",
        "entries_freedom": 17.5,
        "offsets_ratio": 5.0,
        "offsets_near_mean": 0.3,
        "method": "exact",
        "profile_share": 0.05,
        "distance": 0.08,
        "distance_null": 0.008,
        "distance_spread": 0.002,
        "distance_p": 0.4,
        "row_norms": 0.05,
        "column_norms": 0.07,
        "largest_strength": 5.5,
        "values_below": 0,
        "row_cosine_rms": 1.01,
        "column_cosine_rms": 0.98,
        "blocks": 0.03,
        "recovery_sparsity": 5.0,
        "recovery_error": 0.3 * 1.5,
        "recovery_shuffled": 0.3,
        "recovery_own_bias": 0.6,
        "recovery_ratio": 1.5,
        "recovery_ratio_low": 1.46,
        "recovery_ratio_high": 1.54,
        "seconds": 0.25,
    }
    assert {name: first[name] for name in expected} == expected
    assert first["data_recovery_ratio"] is None
    # The worst sparsity of each source.
    assert (second["recovery_ratio"], second["recovery_sparsity"]) == (1.3, 7.0)
    assert (second["data_recovery_ratio"], second["data_recovery_sparsity"]) == (2.0, 9.5)
    assert second["offsets_ratio"] is second["largest_strength"] is None
    assert second["rank"] == 0
    measured = {name for name, value in small.items() if value is not None}
    assert measured == {
        "layer", "kind", "rows", "columns", "verdict", "remarks", "seconds", "sentence",
        "dead_rows", "dead_columns", "mean_share",
    }  # fmt: skip


def test_the_columns_are_the_same_for_every_layer():
    assert all(tuple(row) == COLUMNS for row in rows(AUDIT))
    assert len(set(COLUMNS)) == len(COLUMNS) > 60


def test_the_recovery_ratio_is_the_one_number_of_the_layer():
    for layer, row in zip(AUDIT.layers, rows(AUDIT), strict=True):
        assert row["recovery_ratio"] == (None if layer.ratio is None else layer.ratio.value)
        assert (layer.worst("random") is None) == (layer.ratio is None)


def test_csv_gives_every_value_back():
    found = list(csv.DictReader(io.StringIO(to_csv(AUDIT))))
    assert tuple(found[0]) == COLUMNS
    for read, row in zip(found, rows(AUDIT), strict=True):
        for name, value in row.items():
            same = float(read[name]) == value if isinstance(value, float) else read[name] == str(value)
            assert same or (value is None and read[name] == ""), name


def test_csv_of_no_layers_is_a_line_of_titles():
    assert to_csv(made_audit()) == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", '=HYPERLINK("x","y")']
)
def test_a_spreadsheet_runs_no_cell(name):
    spoilt = made_audit(made_layer(name, sentence=name, kind=name))
    (row,) = csv.DictReader(io.StringIO(to_csv(spoilt)))
    for column in ("layer", "kind", "sentence"):
        assert not row[column].lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))
        assert row[column].removeprefix("'") == printable(name)
    assert row["entries_mean"] == "-0.01", "numbers are left alone"


def test_a_name_with_commas_quotes_and_line_breaks_is_one_cell():
    name = 'a,b "c"\nd\x1b[31m\x00\ud800'
    text = to_csv(made_audit(made_layer(name)))
    assert text.encode()  # a lone surrogate would not be
    assert len(text.splitlines()) == 2
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["layer"] == r'a,b "c"\nd\x1b[31m\x00\ud800'


def test_a_frame_has_the_same_rows():
    import pandas

    frame = AUDIT.to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame.shape == (3, len(COLUMNS))
    assert frame["recovery_ratio"].dtype == float
    assert frame["recovery_ratio"].tolist()[:2] == [1.5, 1.3]
    assert math.isnan(frame["recovery_ratio"][2])
    assert frame["layer"].tolist() == ["h1", "h2", "out"]
    pandas.testing.assert_frame_equal(frame, to_frame(AUDIT))
    assert to_frame(made_audit()).shape == (0, len(COLUMNS))


def test_without_pandas_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ObverseError, match=r"expected the package 'pandas' .* pip install 'obverse\[notebook\]'"
    ):
        AUDIT.to_frame()


def test_rows_and_csv_need_no_pandas(monkeypatch):
    real = builtins.__import__

    def without_pandas(name: str, *arguments: object, **keywords: object) -> object:
        assert not name.startswith("pandas")
        return real(name, *arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    whole: Audit = replace(AUDIT, model="other")
    assert len(rows(whole)) == to_csv(whole).count("\n") - 1
