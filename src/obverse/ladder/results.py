"""What `obverse ladder` writes and its page shows, as values: ladder.json. Not for measuring: see measure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from .._core import Record, read_record
from ._words import verdict

FORMAT = 1
NAME = "ladder.json"
NET = "net.safetensors"
MOST_EDGES = 2000  # in a file; what goes beyond is in the levels
MOST_MATRICES = 12
LARGEST = 32  # rows and columns of a P that is kept
LONGEST = 1e9  # seconds
HIGHEST = 1000  # level
MOST_LEVELS = 200
MOST_MEASURED = 400
FURTHEST = 1e300  # nothing in a file is larger

Kind = Literal["teacher", "net"]


def _is_share(value: float | None) -> bool:
    return value is None or value <= 1


def _all(values: Any) -> bool:
    return all(value is None or abs(value) <= FURTHEST for value in values)


@dataclass(frozen=True)
class Explained(Record):
    """How much of the average over inputs the events explain, see agreement; None: too little to explain.

    `forward`: E[f_β | z_α]. `backward`: E[g_α | z_β]. `weight`: ΔW, from the true averages at both ends.
    `recursive`: ΔW from the whole recursion.
    """

    forward: float | None
    backward: float | None
    weight: float | None
    recursive: float | None

    checks: ClassVar[Any] = (
        (
            "shares of at most 1",
            lambda one: all(map(_is_share, (one.forward, one.backward, one.weight, one.recursive))),
        ),
    )


@dataclass(frozen=True)
class Gaps(Record):
    """How far both sides are apart, as a share of the larger one; `focus` and `broadness` as distances."""

    focus: float | None  # None where contents are continuous
    focus_chance: float | None  # what as many drawn inputs show where focus holds; None: every input
    broadness: float
    forward: float
    backward: float
    weight: float
    recursive: float
    fourth: float

    checks: ClassVar[Any] = (("finite gaps", lambda one: _all(one.to_dict().values())),)


@dataclass(frozen=True)
class EdgeFound(Record):
    """One edge."""

    parent: str
    child: str
    gaps: Gaps
    explained: Explained


@dataclass(frozen=True)
class RegionFound(Record):
    """One region; decorrelation is None for the lowest, which have no ReLU."""

    name: str
    level: int
    events: int
    nodes: int
    decorrelation: float | None
    decorrelation_back: float | None

    checks: ClassVar[Any] = (
        ("a level that can be drawn", lambda one: 0 <= one.level <= HIGHEST),
        ("finite gaps", lambda one: _all((one.decorrelation, one.decorrelation_back))),
    )


@dataclass(frozen=True)
class LevelFound(Record):
    """All regions of a level and the edges up into them.

    Gaps and decorrelation are medians, `worst` the largest of any edge; `explained` is of all edges together.
    """

    level: int
    regions: int
    edges: int
    events: int  # of the region with most
    nodes: int
    gaps: Gaps
    worst: Gaps
    decorrelation: float
    decorrelation_back: float
    explained: Explained

    checks: ClassVar[Any] = (("finite gaps", lambda one: _all((one.decorrelation, one.decorrelation_back))),)


@dataclass(frozen=True)
class Matrix(Record):
    """P(z_β | z_α) of an edge, its first rows and columns; `shape` is that of the whole."""

    parent: str
    child: str
    shape: tuple[int, int]
    rows: tuple[tuple[float, ...], ...]

    checks: ClassVar[Any] = (
        (
            f"rows of the same length, at most {LARGEST} × {LARGEST}",
            lambda one: (
                1 <= len(one.rows) <= LARGEST
                and 1 <= len(one.rows[0]) <= LARGEST
                and len({len(row) for row in one.rows}) == 1
            ),
        ),
        ("probabilities", lambda one: all(0 <= value <= 1 for row in one.rows for value in row)),
    )


@dataclass(frozen=True)
class Measured(Record):
    """A real net on images, by level: with how many events, on which images, and with what weights."""

    net: Literal["start", "trained"]
    images: Literal["clustered", "held out"]
    shuffled: bool  # the control: events dealt to the images at random
    events: int
    loss: float
    reformulated_loss: float
    levels: tuple[LevelFound, ...]


@dataclass(frozen=True)
class Training(Record):
    """Descent on inputs and on events from the same start, see dynamics."""

    lr: float
    steps: tuple[int, ...]
    loss_inputs: tuple[float, ...]
    loss_events: tuple[float, ...]
    loss_carried: tuple[float, ...]
    largest: tuple[float, ...]
    apart: tuple[float, ...]

    renamed: ClassVar = {"rate": "lr"}

    checks: ClassVar[Any] = (
        (
            "as many of each as steps, which ascend",
            lambda one: (
                len(one.steps) >= 1
                and list(one.steps) == sorted({abs(step) for step in one.steps})
                and {
                    len(values)
                    for values in (
                        one.loss_inputs,
                        one.loss_events,
                        one.loss_carried,
                        one.largest,
                        one.apart,
                    )
                }
                == {len(one.steps)}
            ),
        ),
    )


@dataclass(frozen=True)
class Ladder(Record):
    """A teacher and a student, or a real net and its images: how far events tell what inputs do.

    `edges`, `matrices` are cut where there are too many: `edges_total`. `measured`: of a real net with other
    numbers of events, other images, and as it was before training. `worst_error`, `worst_recursive_error`:
    standard errors of `worst` and `worst_recursive`, None where no inputs were drawn, where all is exact, and
    where they would take long.
    """

    kind: Kind
    subject: str  # the graph and its summary, or the data
    settings: dict[str, Any]
    inputs: int
    sampled: bool
    loss: float
    reformulated_loss: float
    worst_error: float | None
    worst_recursive_error: float | None
    accuracy: float | None  # of a real net, on held-out images
    regions: tuple[RegionFound, ...]
    edges: tuple[EdgeFound, ...]
    edges_total: int
    levels: tuple[LevelFound, ...]
    matrices: tuple[Matrix, ...]
    measured: tuple[Measured, ...]
    training: Training | None
    seconds: float
    versions: dict[str, str]

    checks: ClassVar[Any] = (
        ("a time that can be read", lambda one: 0 <= one.seconds <= LONGEST),
        ("finite losses", lambda one: _all((one.loss, one.reformulated_loss))),
        (
            "standard errors ≥ 0",
            lambda one: all(
                error is None or 0 <= error <= FURTHEST
                for error in (one.worst_error, one.worst_recursive_error)
            ),
        ),
        ("at least one input", lambda one: one.inputs >= 1),
        ("an accuracy from 0 to 1", lambda one: one.accuracy is None or 0 <= one.accuracy <= 1),
        (
            f"from 1 to {MOST_LEVELS} levels",
            lambda one: 1 <= len(one.levels) <= MOST_LEVELS,
        ),
        ("edges and regions", lambda one: bool(one.edges and one.regions)),
        (f"at most {MOST_MEASURED} measurements", lambda one: len(one.measured) <= MOST_MEASURED),
        (f"at most {MOST_EDGES:,} edges", lambda one: len(one.edges) <= min(MOST_EDGES, one.edges_total)),
        (f"at most {MOST_MATRICES} matrices", lambda one: len(one.matrices) <= MOST_MATRICES),
        (
            "regions with names of their own",
            lambda one: len({region.name for region in one.regions}) == len(one.regions),
        ),
        (
            "edges between regions, from a lower level to a higher one",
            lambda one: _are_edges({region.name: region.level for region in one.regions}, one.edges),
        ),
    )

    @property
    def worst(self) -> float:
        """The largest relative gap of any ΔW, edge by edge."""
        return max(level.worst.weight for level in self.levels)

    @property
    def worst_recursive(self) -> float:
        """The same through the whole recursion."""
        return max(level.worst.recursive for level in self.levels)

    def __str__(self) -> str:
        return f"{self.subject}: {verdict(self)}"


def _are_edges(levels: dict[str, int], edges: tuple[EdgeFound, ...]) -> bool:
    return all(
        edge.parent in levels and edge.child in levels and levels[edge.child] < levels[edge.parent]
        for edge in edges
    )


def read_ladder(path: Path) -> Ladder:
    """The record in a file, or in the ladder.json of a directory."""
    return read_record(path / NAME if path.is_dir() else path, Ladder, "ladder", FORMAT)
