"""What `obverse diversity` writes and its page shows, as values: diversity.json. Not for measuring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .._core import Record, read_record
from ._assessment import Assessment, assessment
from ._birthday import Birthday
from ._dimension import Dimension
from ._discrepancy import Discrepancy
from ._memorization import Memorization
from ._moments import Moments
from ._quality import Quality
from ._quality_test import QualityTest
from ._smoothness import PathLength
from ._vendi import Vendi
from ._verdict import outlook, verdict

FORMAT = 1
NAME = "diversity.json"
LONGEST = 1e9  # seconds
FURTHEST = 1e300  # nothing in a file is larger
MOST_BROKEN = 20  # names that are kept
MOST_LABELS = 100
MOST_DIRECTIONS = 100
MOST_CLOSE = 100


@dataclass(frozen=True)
class Skipped(Record):
    """A test that was not run, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class DirectionsFound(Record):
    """Principal directions: the change of a picture for a unit step along each, see directions."""

    strengths: tuple[float, ...]
    shares: tuple[float, ...] | None
    seeds: int
    reach: float  # of the strips, to either side
    latent: int

    checks: ClassVar[Any] = (
        (f"at most {MOST_DIRECTIONS} directions", lambda one: len(one.strengths) <= MOST_DIRECTIONS),
        (
            "a share for each direction",
            lambda one: one.shares is None or len(one.shares) == len(one.strengths),
        ),
    )


@dataclass(frozen=True)
class LabelFound(Record):
    """The direction of a label: growth of its log-probability a unit step; `agreement`: share of seeds."""

    label: str
    slope: float
    error: float
    agreement: float


@dataclass(frozen=True)
class Diversity(Record):
    """All that was found of a generator, and what was not looked for.

    `quality_real`, `dimension_real`, …: the same of real data, to compare with. `broken` are names of
    pictures that could not be read, the first of `broken_total`.
    """

    subject: str
    shape: tuple[int, ...]
    pool: int | None  # samples there are; None: as many as one likes
    samples: int  # looked at by all tests but the birthday test
    train: int | None
    real: int | None
    features: str
    birthday: Birthday
    memorization: Memorization | None
    quality: Quality | None
    quality_real: Quality | None
    moments: Moments | None
    vendi: Vendi | None
    vendi_real: Vendi | None
    dimension: Dimension | None
    dimension_real: Dimension | None
    smoothness: PathLength | None
    directions: DirectionsFound | None
    labels: tuple[LabelFound, ...]
    label_accuracy: float | None  # of the classifier behind the labels and the inception score
    broken: tuple[str, ...]
    broken_total: int
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    settings: dict[str, Any]
    seconds: float
    versions: dict[str, str]
    distinct: int | None = None  # of `examined` samples, those that are not equal to an earlier one
    distinct_real: int | None = None  # the same of the real data
    p_distinct: float | None = None  # that there are so few by chance, see duplicates
    discrepancy: Discrepancy | None = None
    quality_test: QualityTest | None = None

    derived: ClassVar[tuple[str, ...]] = ("verdict", "assessment")
    checks: ClassVar[Any] = (
        (
            "as many different samples as there are samples at most",
            lambda one: one.distinct is None or 1 <= one.distinct <= one.examined,
        ),
        ("a p-value", lambda one: one.p_distinct is None or 0 <= one.p_distinct <= 1),
        ("a time that can be read", lambda one: 0 <= one.seconds <= LONGEST),
        ("finite numbers", lambda one: all(abs(value) <= FURTHEST for value in numbers(one))),
        (
            "batches of at least two samples",
            lambda one: one.birthday.batch_size >= 2 and one.birthday.batches >= 1,
        ),
        ("a confidence in (0, 1)", lambda one: 0 < one.birthday.confidence < 1),
        (
            "collisions in as many batches as there are",
            lambda one: 0 <= one.birthday.collisions <= one.birthday.batches,
        ),
        (
            "a bound, or how many pictures there are at least",
            lambda one: (
                one.birthday.constant
                or one.birthday.support_bound is not None
                or one.birthday.support_at_least is not None
            ),
        ),
        (f"at most {MOST_CLOSE} pairs", lambda one: len(one.birthday.closest) <= MOST_CLOSE),
        (f"at most {MOST_LABELS} labels", lambda one: len(one.labels) <= MOST_LABELS),
        ("a shape", lambda one: len(one.shape) >= 1 and min(one.shape) >= 1),
    )

    @property
    def examined(self) -> int:
        """How many samples were compared for being equal: all that there are, or those of the other tests."""
        return self.samples if self.pool is None else self.pool

    @property
    def assessment(self) -> Assessment:
        """What is certain, the worst first: a function of all the rest."""
        return assessment(self)

    @property
    def verdict(self) -> str:
        """The worst fault that is certain, as a sentence; or that none was found, and by how many tests."""
        return verdict(self)

    def __str__(self) -> str:
        """The verdict, then what has to be said at once."""
        return "\n".join([f"{self.subject}: {self.verdict}", *outlook(self)])


def numbers(value: Any) -> list[float]:
    """Every number in a record, however deep."""
    if isinstance(value, Record):
        return numbers(list(vars(value).values()))
    if isinstance(value, tuple | list):
        return [number for item in value for number in numbers(item)]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return [value]


def read_diversity(path: Path) -> Diversity:
    """The record in a file, or in the diversity.json of a directory."""
    return read_record(path / NAME if path.is_dir() else path, Diversity, "diversity test", FORMAT)
