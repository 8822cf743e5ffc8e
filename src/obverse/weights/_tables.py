"""An audit as a flat table, one row a layer: CSV and pandas. Not for people: see the page or print it."""

from __future__ import annotations

import csv
import io
from importlib import import_module
from typing import Any

from .._core import ObverseError, printable
from .results import Audit, LayerAudit

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
    "not_random_like": "aspects",
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
    "spectrum_method": "layer.spectrum.method",
    "spectrum_scale": "layer.spectrum.scale",
    "spectrum_upper": "layer.spectrum.upper",
    "spectrum_distance": "layer.spectrum.distance.value",
    "spectrum_distance_null": "layer.spectrum.distance.null",
    "spectrum_distance_spread": "layer.spectrum.distance.spread",
    "spectrum_distance_p": "layer.spectrum.distance.p",
    "spectrum_rescaled": "layer.spectrum.rescaled.value",
    "spectrum_rescaled_p": "layer.spectrum.rescaled.p",
    "spectrum_error": "layer.spectrum.error",
    "row_norms": "layer.spectrum.row_norms.value",
    "row_norms_p": "layer.spectrum.row_norms.p",
    "column_norms": "layer.spectrum.column_norms.value",
    "column_norms_p": "layer.spectrum.column_norms.p",
    "spikes": "spikes",
    "largest_spike": "largest_spike",
    "spike_share": "layer.spectrum.spike_share",
    "stable_rank": "layer.spectrum.stable_rank.value",
    "null_directions": "layer.spectrum.null_directions",
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
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ObverseError(
            "expected the package 'pandas' to be installed; got none; install it with: pip install pandas"
        ) from error
    return pandas.DataFrame(rows(audit), columns=COLUMNS)


def _row(layer: LayerAudit) -> dict[str, Any]:
    sides = {one.side: one for one in layer.correlations}
    spikes = () if layer.spectrum is None else layer.spectrum.spikes
    parts = {
        "layer": layer,
        "aspects": ", ".join(one.aspect for one in layer.findings if not one.random_like),
        "spikes": None if layer.spectrum is None else len(spikes),
        "largest_spike": max((spike.strength for spike in spikes), default=None),
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
