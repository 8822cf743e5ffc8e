"""What an audit says of each layer and of a whole net, as plain values; how they are written and read.

Weights are shaped as PyTorch shapes them: a layer has `rows` outputs (the paper's m hidden units) and
`columns` inputs (the paper's n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..._core import FIXED, Record, counted, read_long_record, record_text, write_text
from ._parts import GRADES, Decomposition, Interval, Number
from ._rows import to_frame

Verdict = Literal[
    "untouched",
    "signal in a random bulk",
    "mostly signal",
    "structured otherwise",
    "cannot tell",
    "not judged",
]
QUANTIZED = "quantized"  # the kind of what holds no floating-point numbers: listed, not judged
VERDICTS: tuple[Verdict, ...] = (*GRADES, "not judged")


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
class Norms(Record):
    """How unequal the lines of a layer are without its signal: coefficients of variation of squared norms."""

    rows: Number
    columns: Number


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
    """One aspect of a layer in words; `random_like` is None where it cannot be told.

    The verdict rests on the parts; everything else is a remark.
    """

    aspect: Literal[
        "parts",
        "entries",
        "offsets",
        "dead",
        "mean",
        "norms",
        "correlations",
        "blocks",
        "recovery",
        "sample",
    ]
    random_like: bool | None
    sentence: str
    decides: bool = False  # whether the verdict rests on it, or it is a remark


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
    parts: Decomposition | None = None  # profile, signal and bulk
    values: tuple[float, ...] = ()  # singular values without the profile, ascending; thinned to a few hundred
    norms: Norms | None = None
    correlations: tuple[Correlations, ...] = ()
    blocks: Number | None = None  # contrast between blocks of the matrix that rows and columns don't explain
    reversal: tuple[Reversal, ...] = ()
    seconds: float = 0.0
    dead_rows: int = 0  # all zero: left out of everything that is measured
    dead_columns: int = 0
    mean_share: float = 0.0  # of the energy: the mean of all entries, taken off where it would be a direction
    p: float | None = None  # of noise that shows as much as the verdict rests on, for this layer alone
    family_p: float | None = None  # the same, adjusted for the number of layers in the audit (Holm)
    tensor: str = ""  # the stored tensor that it is, or a part of; empty in older files

    @property
    def random_share(self) -> Interval | None:
        """How much of the energy is like random numbers: the number to sort layers by."""
        return None if self.parts is None else self.parts.random_share

    def worst(self, source: Literal["random", "data"] = "random") -> Reversal | None:
        """The sparsity at which the layer surely does worst against its shuffled entries.

        By the lower end of the interval, which decides about the verdict.
        """
        found = [one for one in self.reversal if one.source == source]
        return max(found, key=lambda one: one.interval[0], default=None)

    @property
    def off(self) -> tuple[str, ...]:
        """The aspects that the verdict rests on, where it is not "untouched"; remarks are not among them."""
        return tuple(one.aspect for one in self.findings if one.decides and one.random_like is False)

    @property
    def ratio(self) -> Number | None:
        """Layer ÷ shuffled where it is worst among random h: the one number of reversibility."""
        worst = self.worst()
        return None if worst is None else worst.ratio

    @property
    def deciding(self) -> str:
        """What the verdict rests on, without the remarks."""
        return next((one.sentence for one in self.findings if one.decides), self.sentence)

    def __str__(self) -> str:
        return f"{self.name} ({self.rows} × {self.columns}): {self.sentence}"


FAMILY = 0.05  # chance of any false alarm in a whole audit
TESTS = 5  # of a layer: two edges, the distance, the mean, blocks


def layer_p(layer: LayerAudit) -> float | None:
    """Of the largest and smallest singular value and, where they decide, the others (Bonferroni)."""
    parts = layer.parts
    if parts is None:
        return None
    chances = [parts.directions[0].p if parts.directions else parts.upper_p, parts.lower_p]
    if layer.verdict == "structured otherwise" and parts.distance is not None:
        chances.append(parts.distance.p)
    if layer.mean_share and layer.entries is not None:
        chances.append(layer.entries.mean.p)
    if layer.verdict == "structured otherwise" != parts.grade and layer.blocks is not None:
        chances.append(layer.blocks.p)
    found = [p for p in chances if p is not None]
    return min(1.0, TESTS * min(found)) if found else None


def with_family(layers: Sequence[LayerAudit]) -> tuple[LayerAudit, ...]:
    """The same layers, each with its p adjusted for all of them: Holm's, which needs no independence."""
    chances = [layer_p(layer) for layer in layers]
    tested = sorted((p, at) for at, p in enumerate(chances) if p is not None)
    adjusted: dict[int, float] = {}
    so_far = 0.0
    for rank, (p, at) in enumerate(tested):
        so_far = max(so_far, min(1.0, (len(tested) - rank) * p))
        adjusted[at] = so_far
    return tuple(replace(layer, p=chances[at], family_p=adjusted.get(at)) for at, layer in enumerate(layers))


@dataclass(frozen=True)
class Audit(Record):
    """The layers of a net, judged by `thresholds`."""

    model: str
    layers: tuple[LayerAudit, ...]
    thresholds: dict[str, float]
    settings: dict[str, Any]  # seed, keep, samples, exact
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
        tail = f" ({too_small} not judged)" if too_small else ""
        return f"{counted(len(judged), 'layer')}: {', '.join(counts)}{tail}"

    @property
    def family(self) -> str:
        """What holds of all layers at once; empty where nothing was measured."""
        tested = [layer.family_p for layer in self.layers if layer.family_p is not None]
        if not tested:
            return ""
        found, level = sum(p < FAMILY for p in tested), f"{100 * FAMILY:g}{FIXED}%"
        if len(tested) == 1:
            return f"one layer was tested: it shows {'' if found else 'no '}more than noise does ({level})"
        of = f"of {counted(len(tested), 'layer')}"
        if not found:
            return f"tested all at once, none {of} shows more than noise does (Holm, {level})"
        return (
            f"tested all at once, {found} {of} {'shows' if found == 1 else 'show'} more than noise does "
            f"(Holm: were any layers mere noise, one of them would be named with a chance of {level} at most)"
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a layer; the columns are those of audit.csv."""
        return to_frame(self)

    def __iter__(self) -> Iterator[LayerAudit]:
        return iter(self.layers)

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"  {layer}" for layer in self.layers)])


FORMAT = 2  # 1: verdicts before layers were taken apart
NAME = "audit.json"
RECORD = "audit.jsonl"  # the layers so far, of an audit that is not finished
AGAINST = "against.json"  # the audit that it is compared with, beside it


def audit_text(audit: Audit) -> str:
    return record_text(audit, FORMAT)


def write_audit(audit: Audit, path: Path) -> None:
    """Write audit.json, whole or not at all."""
    write_text(path, audit_text(audit))


def read_audit(path: Path) -> Audit:
    """The audit in a file, or in the audit.json of a directory; of a net of many layers, layer by layer."""
    file = Path(path)
    file = file / NAME if file.is_dir() else file
    return read_long_record(file, Audit, "audit", FORMAT, key="layers", items=LayerAudit)
