"""An audit as a flat table: audit.csv, and a pandas DataFrame."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from ..._core import printable, require

if TYPE_CHECKING:
    from ._audit import Audit, LayerAudit

_FORMULA = ("=", "+", "-", "@")  # a spreadsheet runs a cell that begins so
_REVERSAL = {
    "sparsity": "sparsity",
    "kept": "kept",
    "error": "layer.error.value",
    "error_spread": "layer.error.spread",
    "shuffled": "shuffled.error.value",
    "gaussian": "gaussian.error.value",
    "predicted": "predicted.error.value",
    "own_bias": "own_bias.value",
    "deviation": "layer.deviation.value",
    "ratio": "ratio.value",
    "ratio_low": "interval.0",
    "ratio_high": "interval.1",
}
_COSINES = {
    "rms": "rms.value",
    "rms_p": "rms.p",
    "largest": "largest.value",
    "largest_p": "largest.p",
    "ks": "ks.value",
}
# Column: where it stands, from the parts that `_row` names. Add columns at will; do not rename any.
_PLACES = {
    "layer": "layer.name",
    "kind": "layer.kind",
    "rows": "layer.rows",
    "columns": "layer.columns",
    "verdict": "layer.verdict",
    "random_share": "layer.parts.random_share.value",
    "random_share_low": "layer.parts.random_share.low",
    "random_share_high": "layer.parts.random_share.high",
    "random_share_is_bound": "layer.parts.random_share.is_bound",
    "rank": "layer.parts.rank",
    "rank_low": "layer.parts.rank_interval.0",
    "rank_high": "layer.parts.rank_interval.1",
    "rank_is_bound": "layer.parts.rank_is_bound",
    "signal_share": "layer.parts.signal_share.value",
    "signal_share_low": "layer.parts.signal_share.low",
    "signal_share_high": "layer.parts.signal_share.high",
    "p": "layer.p",
    "family_p": "layer.family_p",
    "remarks": "aspects",
    "entries_mean": "layer.entries.mean.value",
    "entries_mean_p": "layer.entries.mean.p",
    "entries_scale": "layer.entries.scale.value",
    "entries_skew": "layer.entries.skew.value",
    "entries_skew_p": "layer.entries.skew.p",
    "entries_kurtosis": "layer.entries.kurtosis.value",
    "entries_kurtosis_p": "layer.entries.kurtosis.p",
    "entries_ks": "layer.entries.ks.value",
    "entries_ks_p": "layer.entries.ks.p",
    "entries_anderson": "layer.entries.anderson.value",
    "entries_anderson_p": "layer.entries.anderson.p",
    "entries_best_law": "layer.entries.best_law",
    "entries_freedom": "layer.entries.freedom",
    "entries_zeros": "layer.entries.zeros",
    "entries_distinct": "layer.entries.distinct",
    "entries_step": "layer.entries.step",
    "offsets_mean": "layer.offsets.mean",
    "offsets_std": "layer.offsets.std",
    "offsets_ratio": "layer.offsets.ratio.value",
    "offsets_ratio_spread": "layer.offsets.ratio.spread",
    "offsets_near_mean": "layer.offsets.near_mean",
    "method": "layer.parts.method",
    "profile_share": "layer.parts.profile_share.value",
    "bulk_scale": "layer.parts.scale",
    "lower_edge": "layer.parts.lower",
    "upper_edge": "layer.parts.upper",
    "distance": "layer.parts.distance.value",
    "distance_excess": "layer.parts.distance.excess",
    "distance_null": "layer.parts.distance.null",
    "distance_spread": "layer.parts.distance.spread",
    "distance_p": "layer.parts.distance.p",
    "bulk_kurtosis": "layer.parts.kurtosis",
    "largest_strength": "largest",
    "values_below": "below",
    "lower_p": "layer.parts.lower_p",
    "null_directions": "layer.parts.null_directions",
    "row_norms": "layer.norms.rows.value",
    "row_norms_p": "layer.norms.rows.p",
    "column_norms": "layer.norms.columns.value",
    "column_norms_p": "layer.norms.columns.p",
    "mean_share": "layer.mean_share",
    "dead_rows": "layer.dead_rows",
    "dead_columns": "layer.dead_columns",
    **{f"row_cosine_{name}": f"row_cosines.{place}" for name, place in _COSINES.items()},
    **{f"column_cosine_{name}": f"column_cosines.{place}" for name, place in _COSINES.items()},
    "blocks": "layer.blocks.value",
    "blocks_p": "layer.blocks.p",
    **{f"recovery_{name}": f"random.{place}" for name, place in _REVERSAL.items()},
    **{f"data_recovery_{name}": f"data.{place}" for name, place in _REVERSAL.items()},
    "seconds": "layer.seconds",
    "sentence": "layer.sentence",
}
COLUMNS = tuple(_PLACES)


def rows(audit: Audit) -> list[dict[str, Any]]:
    """One flat row a layer, always with the same columns; None where nothing was measured.

    `recovery_…` and `data_recovery_…` are at the sparsity where the layer does worst against its shuffled
    entries.
    """
    return [_row(layer) for layer in audit.layers]


def to_csv(audit: Audit) -> str:
    """The rows as comma-separated text; texts that a spreadsheet would run get a leading apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows(audit):
        writer.writerow([_cell(row[name]) for name in COLUMNS])
    return text.getvalue()


def to_frame(audit: Audit) -> Any:
    """The rows as a pandas DataFrame."""
    pandas = require("pandas", "notebook")
    return pandas.DataFrame(rows(audit), columns=COLUMNS)


def _row(layer: LayerAudit) -> dict[str, Any]:
    sides = {one.side: one for one in layer.correlations}
    directions = () if layer.parts is None else layer.parts.directions
    parts = {
        "layer": layer,
        "aspects": ", ".join(
            one.aspect for one in layer.findings if one.random_like is False and not one.decides
        ),
        "largest": max((one.strength for one in directions), default=None),
        "below": None if layer.parts is None else len(layer.parts.below),
        "row_cosines": sides.get("rows"),
        "column_cosines": sides.get("columns"),
        "random": layer.worst("random"),
        "data": layer.worst("data"),
    }
    return {column: _look_up(parts, place) for column, place in _PLACES.items()}


def _look_up(parts: dict[str, Any], place: str) -> Any:
    first, *names = place.split(".")
    value = parts[first]
    for name in names:
        if value is None:
            return None
        value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
