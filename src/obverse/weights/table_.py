"""What an audit or a comparison of two says in the terminal. Not for files: see obverse.weights._tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..present.table import NONE, Column, open_console, print_grid, say
from ._against import CLEAR, Change, Comparison, LayerChange
from ._tables import rows
from .results import Audit, Verdict

COLOURS: dict[Verdict, str] = {
    "random-like": "green",
    "random-like bulk with spikes": "yellow",
    "not random-like": "red",
    "not judged": "dim",
}
SHORT: dict[Verdict, str] = {
    "random-like": "random-like",
    "random-like bulk with spikes": "spikes",
    "not random-like": "not",
    "not judged": "not judged",
}
CONSTANT = 1e6  # |mean| / std of offsets that are all the same but for rounding
NORMAL = "distance of the entries to a normal law"
LAW = "distance of the singular values to the Marchenko–Pastur law"
RATIO = "recovery error ÷ that of the same entries shuffled, at the sparsity where it is largest"


def print_audit(audit: Audit) -> None:
    """The table, a sentence about each layer that is not random-like, the summary."""
    console = open_console()
    print_grid(console, audit_columns(audit), "not as random entries have it")
    for layer in audit.layers:
        if layer.verdict == "not random-like":
            say(console, f"{layer.name}: {layer.sentence}")
    say(console, audit.summary, "bold")


def print_comparison(comparison: Comparison) -> None:
    """The table of what changed, the layers that only one audit has, the summary."""
    console = open_console()
    say(console, f"{comparison.before} → {comparison.after}")
    if comparison.layers:
        print_grid(console, comparison_columns(comparison), f"changed by more than {CLEAR:g} standard errors")
    for side, names in (("before", comparison.only_before), ("after", comparison.only_after)):
        if names:
            say(console, f"only {side}: {', '.join(names)}")
    for note in comparison.notes:
        say(console, f"note: {note}")
    say(console, comparison.summary, "bold")


def audit_columns(audit: Audit) -> list[Column]:
    """All there is to show; `grid` leaves out what has no room."""
    table = rows(audit)

    def column(
        title: str,
        cell: Callable[[dict[str, Any]], str],
        meaning: str = "",
        *,
        needs: str = "layer",
        aspect: str = "",
        **look: Any,
    ) -> Column:
        """`cell` of each row that has a value in the column `needs`; a finding about `aspect` marks it."""
        cells = tuple(NONE if row[needs] is None else cell(row) for row in table)
        marked = frozenset(
            at
            for at, layer in enumerate(audit.layers)
            if cells[at] != NONE
            and any(one.aspect == aspect and not one.random_like for one in layer.findings)
        )
        return Column(title, cells, meaning, marked, **look)

    return [
        column("layer", lambda row: str(row["layer"]), left=True),
        column("shape", lambda row: f"{row['rows']}×{row['columns']}", drop=1),
        column(
            "law",
            lambda row: str(row["entries_best_law"]).removeprefix("Student "),
            "that fits the entries best",
            needs="entries_best_law",
            left=True,
            drop=7,
        ),
        column(
            "KS",
            lambda row: f"{row['entries_ks']:.3f}",
            NORMAL,
            needs="entries_ks",
            aspect="entries",
            drop=2,
        ),
        column(
            "offsets",
            lambda row: _ratio(row["offsets_ratio"]),
            "|mean|/std of the biases",
            needs="offsets_ratio",
            aspect="offsets",
            drop=8,
        ),
        column("spectrum", _distance, f"{LAW} (+ spikes)", needs="spectrum_distance", aspect="spectrum"),
        column(
            "norms",
            lambda row: f"{max(row['row_norms'], row['column_norms']):.2f}",
            "spread of the squared norms of rows or columns",
            needs="row_norms",
            aspect="norms",
            drop=5,
        ),
        column(
            "cosine",
            _cosine,
            "between rows or columns, over chance",
            aspect="correlations",
            drop=6,
        ),
        column(
            "ratio",
            lambda row: _ratio(row["recovery_ratio"]),
            RATIO,
            needs="recovery_ratio",
            aspect="recovery",
        ),
        column(
            "95 %",
            lambda row: f"{_ratio(row['recovery_ratio_low'])}–{_ratio(row['recovery_ratio_high'])}",
            needs="recovery_ratio",
            drop=4,
        ),
        column(
            "verdict", _verdict, left=True, styles=tuple(COLOURS[layer.verdict] for layer in audit.layers)
        ),
    ]


def comparison_columns(comparison: Comparison) -> list[Column]:
    layers = comparison.layers

    def column(
        title: str, changes: list[Change | None], digits: int, meaning: str = "", drop: int = 0
    ) -> Column:
        cells = tuple(
            NONE if one is None else f"{one.before:.{digits}f} → {one.after:.{digits}f}" for one in changes
        )
        marked = frozenset(at for at, one in enumerate(changes) if one is not None and one.clear)
        return Column(title, cells, meaning, marked, drop)

    return [
        Column("layer", tuple(one.name for one in layers), left=True),
        Column(
            "verdict",
            tuple(_turn(one) for one in layers),
            left=True,
            styles=tuple(
                COLOURS[one.verdict_after] if one.verdict_before != one.verdict_after else ""
                for one in layers
            ),
        ),
        column("ratio", [one.ratio for one in layers], 2, RATIO),
        column("spectrum", [one.distance for one in layers], 3, LAW, drop=1),
        column("spikes", [one.spikes for one in layers], 0, drop=2),
        column("KS", [one.ks for one in layers], 3, NORMAL, drop=3),
    ]


def _ratio(value: float) -> str:
    if value >= CONSTANT:
        return "∞"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _distance(row: dict[str, Any]) -> str:
    """With ≈ where the spectrum is an estimated density, and the number of spikes where there are any."""
    estimated = "≈" if row["spectrum_method"] == "lanczos" else ""
    spikes = f" +{row['spikes']}" if row["spikes"] else ""
    return f"{estimated}{row['spectrum_distance']:.3f}{spikes}"


def _cosine(row: dict[str, Any]) -> str:
    found = [row[name] for name in ("row_cosine_rms", "column_cosine_rms") if row[name] is not None]
    return f"{max(found):.2f}" if found else NONE


def _verdict(row: dict[str, Any]) -> str:
    if row["verdict"] != "random-like bulk with spikes" or row["spikes"] is None:
        return str(row["verdict"])
    return f"bulk, {row['spikes']} spike{'s'[: row['spikes'] != 1]}"


def _turn(one: LayerChange) -> str:
    if one.verdict_before == one.verdict_after:
        return one.verdict_after.removeprefix("random-like ")  # "bulk with spikes" says it too
    return f"{SHORT[one.verdict_before]} → {SHORT[one.verdict_after]}"
