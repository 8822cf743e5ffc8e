"""What an audit says, as plain values. Not for computing them, nor for showing them.

Weights are shaped as PyTorch shapes them: a layer has `rows` outputs (the paper's m hidden units) and
`columns` inputs (the paper's n).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

from .._core import ObverseError, Record, counted, printable, read_record, record_text, write_text

Verdict = Literal[
    "random-like", "random-like bulk with spikes", "cannot tell", "not random-like", "not judged"
]
VERDICTS: tuple[Verdict, ...] = (
    "random-like",
    "random-like bulk with spikes",
    "cannot tell",
    "not random-like",
    "not judged",
)


@dataclass(frozen=True)
class Number(Record):
    """A measured number beside what random entries of that shape would give.

    `spread` is the standard deviation under that null where `null` is given, and otherwise the standard
    error of `value`; `p` is the chance of so extreme a value under the null.
    """

    value: float
    spread: float | None = None
    null: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class Histogram(Record):
    """Counts between `edges` (one more than counts); what lies beyond the edges is in the outer bins."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("one more edge than counts", lambda record: len(record.edges) == len(record.counts) + 1),
        ("edges in ascending order", lambda record: record.edges == tuple(sorted(record.edges))),
        ("counts ≥ 0", lambda record: min(record.counts, default=0) >= 0),
    )
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Entries(Record):
    """The distribution of a layer's entries, and how far from normal it is."""

    count: int
    used: int  # entries in the Kolmogorov–Smirnov and Anderson–Darling distances and the likelihoods
    mean: Number
    scale: Number  # standard deviation
    skew: Number
    kurtosis: Number  # excess: 0 for a normal law
    ks: Number  # Kolmogorov–Smirnov distance to the fitted normal
    anderson: Number  # Anderson–Darling A² against the fitted normal
    best_law: str  # normal, Laplace, Student t or uniform
    likelihoods: dict[str, float]  # mean log-likelihood an entry, minus that of the normal (nats)
    freedom: float | None  # degrees of freedom of the fitted Student t
    matters_from: dict[str, float]  # |mean|/scale, |skew|, |kurtosis| that change the recovery error by 10 %
    zeros: float  # the share of entries that are exactly 0
    distinct: int | None  # how many different values there are, where that is few
    step: float | None  # the grid they lie on, where they do
    histogram: Histogram  # of (entry − mean) / scale
    quantiles: tuple[tuple[float, float], ...]  # (normal, observed), both standardized


@dataclass(frozen=True)
class Offsets(Record):
    """The biases of a layer: the paper finds them nearly constant (|mean| / std > 5)."""

    count: int
    mean: float
    std: float
    ratio: Number  # |mean| / std, at most 1e9 (constant offsets)
    near_mean: float  # the share within ±10 % of the mean
    histogram: Histogram


@dataclass(frozen=True)
class Spike(Record):
    """A singular value beyond what noise reaches."""

    value: float  # as observed
    strength: float  # of the planted rank-one part, the noise's inflation taken off
    share: float  # of the layer's energy ‖W‖²
    p: float  # of noise reaching so far (Tracy–Widom)


@dataclass(frozen=True)
class Spectrum(Record):
    """Singular values against the Marchenko–Pastur law (quarter circle when square).

    They are those of the live rows and columns with the mean of all entries taken off. From a Lanczos
    density, the numbers of spikes, of values below and of null directions are lower bounds.
    """

    method: Literal["exact", "lanczos"]
    scale: float  # of the entries, as fitted to the bulk
    lower: float  # the law's edges
    upper: float
    distance: Number  # Kolmogorov–Smirnov distance of the bulk to the fitted law
    rescaled: Number  # the same when rows and columns are first given equal norms
    row_norms: Number  # coefficient of variation of the squared norms of rows
    column_norms: Number
    spikes: tuple[Spike, ...]
    spike_share: float  # of the energy
    stable_rank: Number  # ‖W‖²_F / ‖W‖²
    null_directions: int  # singular values that are zero
    values: tuple[float, ...]  # singular values, ascending; thinned to at most a few hundred quantiles
    error: float | None = None  # of the distance, where the spectrum is a Lanczos density
    critical: float = 0.0  # the distance that noise exceeds with the chance `level`
    rescaled_error: float | None = None  # of `rescaled`, where that is from a density
    below: int = 0  # singular values below what noise has
    mean_share: float = 0.0  # of the energy: the mean of all entries

    @property
    def is_estimated(self) -> bool:
        """Whether it is a density: counts are lower bounds then."""
        return self.method == "lanczos"


@dataclass(frozen=True)
class Correlations(Record):
    """Cosines between the rows (or the columns) of a layer: N(0, 1/length) for random entries."""

    side: Literal["rows", "columns"]
    used: int  # so many rows or columns were compared with each other
    length: int
    rms: Number  # root mean square of √length · cosine: 1 for random entries
    largest: Number  # largest |cosine|
    ks: Number  # distance of √length · cosine to N(0, 1)
    histogram: Histogram  # of √length · cosine


@dataclass(frozen=True)
class Recovered(Record):
    """How one matrix gives h back; errors are ‖ĥ − h‖² / ‖h‖², means over draws of h."""

    error: Number  # at the best uniform threshold
    threshold: float  # that threshold over ‖h‖
    deviation: Number  # ‖Wᵀx − h‖∞ / ‖h‖ (Lemma 2.5's δ)


@dataclass(frozen=True)
class Reversal(Record):
    """h → x → ĥ through the layer and through its controls, at one sparsity."""

    source: Literal["random", "data"]  # where h comes from
    sparsity: float  # k: non-zeros of h (their mean, for data)
    kept: float  # t: inputs kept
    samples: int
    layer: Recovered
    shuffled: Recovered  # the same entries in random order
    gaussian: Recovered  # fresh normal entries
    predicted: Recovered  # the closed form for normal entries
    own_bias: Number | None  # the layer's error at its own bias in place of the best threshold
    ratio: Number  # layer ÷ shuffled
    interval: tuple[float, float]  # 95 % confidence of the ratio
    peak: float  # ‖h‖∞ / ‖h‖
    peak_bound: float  # √(log k / k), which the theorem wants the peak not to exceed by much
    sparse_enough: bool  # k < t
    dense_enough: bool  # t < k²


@dataclass(frozen=True)
class Finding(Record):
    """One aspect of a layer in words; `random_like` is None where it cannot be told."""

    aspect: Literal[
        "entries", "offsets", "dead", "mean", "spectrum", "norms", "correlations", "blocks", "recovery"
    ]
    random_like: bool | None
    sentence: str
    decides: bool = True  # whether the verdict rests on it, or it is a remark


@dataclass(frozen=True)
class LayerAudit(Record):
    """Everything about one weight matrix; what was not measured is None."""

    checks: ClassVar[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
        ("rows and columns ≥ 1", lambda record: min(record.rows, record.columns) >= 1),
    )
    name: str
    kind: str  # linear, convolution, …
    rows: int
    columns: int
    verdict: Verdict
    sentence: str
    findings: tuple[Finding, ...] = ()
    entries: Entries | None = None
    offsets: Offsets | None = None
    spectrum: Spectrum | None = None
    correlations: tuple[Correlations, ...] = ()
    blocks: Number | None = None  # contrast between blocks of the matrix that rows and columns don't explain
    reversal: tuple[Reversal, ...] = ()
    seconds: float = 0.0
    dead_rows: int = 0  # all zero: left out of everything that is measured
    dead_columns: int = 0

    def worst(self, source: Literal["random", "data"] = "random") -> Reversal | None:
        """The sparsity at which the layer surely does worst against its shuffled entries.

        By the lower end of the interval, which decides about the verdict.
        """
        found = [one for one in self.reversal if one.source == source]
        return max(found, key=lambda one: one.interval[0], default=None)

    @property
    def off(self) -> tuple[str, ...]:
        """The aspects that decide against random-like; remarks are not among them."""
        return tuple(one.aspect for one in self.findings if one.decides and one.random_like is False)

    @property
    def ratio(self) -> Number | None:
        """Layer ÷ shuffled where it is worst among random h: the one number of reversibility."""
        worst = self.worst()
        return None if worst is None else worst.ratio

    def __str__(self) -> str:
        return f"{self.name} ({self.rows} × {self.columns}): {self.sentence}"


@dataclass(frozen=True)
class Audit(Record):
    """The layers of a net, judged by `thresholds`."""

    model: str
    layers: tuple[LayerAudit, ...]
    thresholds: dict[str, float]
    settings: dict[str, Any]  # seed, keep, samples, budget
    versions: dict[str, str]
    seconds: float

    def count(self, verdict: Verdict) -> int:
        return sum(layer.verdict == verdict for layer in self.layers)

    @property
    def summary(self) -> str:
        """One line about the whole net."""
        judged = [layer for layer in self.layers if layer.verdict != "not judged"]
        if not judged:
            return f"no layer of {len(self.layers)} is large enough to judge"
        counts = [f"{self.count(verdict)} {verdict}" for verdict in VERDICTS[:-1] if self.count(verdict)]
        too_small = len(self.layers) - len(judged)
        tail = f" ({too_small} too small to judge)" if too_small else ""
        return f"{counted(len(judged), 'layer')}: {', '.join(counts)}{tail}"

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a layer; the columns are those of audit.csv."""
        return to_frame(self)

    def __iter__(self) -> Iterator[LayerAudit]:
        return iter(self.layers)

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"  {layer}" for layer in self.layers)])


FORMAT = 1
NAME = "audit.json"
AGAINST = "against.json"  # the audit that it is compared with, beside it


def audit_text(audit: Audit) -> str:
    return record_text(audit, FORMAT)


def write_audit(audit: Audit, path: Path) -> None:
    """Write audit.json, whole or not at all."""
    write_text(path, audit_text(audit))


def read_audit(path: Path) -> Audit:
    """The audit in a file, or in the audit.json of a directory."""
    file = Path(path)
    return read_record(file / NAME if file.is_dir() else file, Audit, "audit", FORMAT)


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
    "values_below": "layer.spectrum.below",
    "mean_share": "layer.spectrum.mean_share",
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
        "aspects": ", ".join(one.aspect for one in layer.findings if one.random_like is False),
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
