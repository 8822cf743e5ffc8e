"""All tests of a generator that the data at hand allow, one after the other. Not for the tests themselves.

What could not be run is in the record with the reason, and so is the same measurement of real data against
real data: a number alone says little.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from .._core import BadInput, Progress, or_global, shape, versions
from ._birthday import Birthday, birthday_test
from ._dimension import Dimension, intrinsic_dimension
from ._discrepancy import Discrepancy, discrepancy
from ._duplicates import duplicates
from ._features import Features
from ._interpolation import Decode
from ._labels import LinearScores, fit_scores
from ._memorization import Memorization, memorization
from ._moments import Moments, moments
from ._quality import Quality, quality
from ._quality_test import QualityTest, quality_test
from ._run import Run
from ._scales import scale_notes
from ._sources import Source, open_source
from ._vendi import Vendi, vendi
from ._walk import walk
from .results import MOST_BROKEN, Diversity

Labelled = tuple[Tensor, Tensor, tuple[str, ...]]  # pictures, labels, names of the labels

SAMPLES = 5000  # for everything but the birthday test
DRAWN = 10_000  # pictures of data that is given as a function
FEWEST = 10  # samples
SHOWN = 12  # pictures of a kind
WIDEST = 1024  # features up to which FID takes seconds

NO_REAL = "real data that the generator was not trained on was not given"


@dataclass(frozen=True, eq=False)
class Pictures:
    """rows × columns × the shape of a sample, each; None where there are none."""

    samples: Tensor | None = None
    pairs: Tensor | None = None  # the closest pairs, side by side
    nearest: Tensor | None = None  # a sample, and the training image nearest to it
    paths: Tensor | None = None  # between two seeds
    directions: Tensor | None = None  # one direction a row
    labels: Tensor | None = None  # one label a row


def assess(
    source: Any,
    *,
    train: Any = None,
    real: Any = None,
    features: Features | None = None,
    decode: Decode | None = None,
    latent: int | None = None,
    labelled: Labelled | None = None,
    batch_size: int | None = None,
    batches: int | None = None,
    threshold: float | None = None,
    confidence: float = 0.95,
    budget: int = 100_000,
    samples: int = SAMPLES,
    paths: int = 512,
    quick: bool = False,
    generator: torch.Generator | None = None,
    settings: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> tuple[Diversity, Pictures]:
    """Every test that the inputs allow, and the pictures that belong to them.

    `source`: a function `sampler(n, generator)`, a tensor, an array, a file, a folder. `train`: what the
    generator was trained on, as one of these. `real`: real data that it was not trained on, drawn as the
    training set was. `features`: what pictures are compared by (pixels unless given); of near-duplicates it
    decides what near means. `decode` and `latent` of a generator with Gaussian seeds: what lies between
    seeds. `labelled`: pictures with labels, to find directions for these. `quick` is a first look: at most
    1,000 samples, 20,000 for the birthday test, and 128 paths. The other options are those of the birthday
    test.
    """
    started = time.perf_counter()
    if quick:
        budget, samples, paths = min(budget, 20_000), min(samples, 1000), min(paths, 128)
    if samples < FEWEST:
        raise BadInput(f"at least {FEWEST} samples", got=samples, do=f"{SAMPLES} are usual")
    generator = or_global(generator)
    opened = open_source(source)
    pool = None if opened.pool is None else len(opened.pool)
    run = Run(features, generator, confidence, progress)
    own = _some(opened, samples, generator)
    data = {name: _data(x, name, own, generator) for name, x in (("train", train), ("real", real))}
    given = {name: x for name, (x, _) in data.items()}
    notes += tuple(note for _, unread in data.values() for note in unread) + scale_notes(own, given)
    birthday = birthday_test(
        opened,
        batch_size,
        batches,
        threshold,
        confidence,
        generator,
        real=given["real"],
        features=run.features,
        budget=budget,
        show=SHOWN,
        progress=run.bar("birthday test"),
    )
    scores = _scores(run, labelled)
    compared = _Compared(run, own, given["train"], given["real"], scores)
    nearest = compared.nearest()
    equal = duplicates(own if opened.pool is None else opened.pool, given["real"], generator=generator)
    walked = walk(run, decode, latent, scores, () if labelled is None else labelled[2], paths)
    found = Diversity(
        subject=opened.name,
        shape=tuple(own.shape[1:]),
        pool=pool,
        samples=len(own),
        train=_count(given["train"]),
        real=_count(given["real"]),
        features="pixels" if features is None else features.name,
        birthday=Birthday(**{field.name: getattr(birthday, field.name) for field in fields(Birthday)}),
        memorization=compared.memorization,
        quality=compared.quality,
        quality_real=compared.quality_real,
        moments=compared.moments,
        vendi=compared.vendi,
        vendi_real=compared.vendi_real,
        dimension=compared.dimension,
        dimension_real=compared.dimension_real,
        smoothness=walked.smoothness,
        directions=walked.directions,
        labels=walked.labels,
        label_accuracy=None if scores is None else scores.accuracy,
        broken=opened.broken[:MOST_BROKEN],
        broken_total=len(opened.broken),
        skipped=tuple(run.skipped),
        notes=notes,
        settings=dict(settings or {}),
        seconds=time.perf_counter() - started,
        versions=versions(),
        distinct=equal.distinct,
        distinct_real=equal.distinct_real,
        p_distinct=equal.p,
        discrepancy=compared.discrepancy,
        quality_test=compared.quality_test,
    )
    pictures = Pictures(
        samples=_grid(own),
        pairs=birthday.pictures,
        nearest=nearest,
        paths=walked.paths,
        directions=walked.along,
        labels=walked.towards,
    )
    return found, pictures


def _count(x: Tensor | None) -> int | None:
    return None if x is None else len(x)


def _some(source: Source, count: int, generator: torch.Generator) -> Tensor:
    """Samples for all tests but the birthday test, which must not lose any of a pool to them."""
    if source.pool is None:
        return source.draw(count, generator)
    return source.pool[torch.randperm(len(source.pool), generator=generator)[:count]]


def _grid(own: Tensor) -> Tensor:
    """Some samples as two rows."""
    columns = max(1, min(12, len(own) // 2))
    return own[: 2 * columns].reshape(-1, columns, *own.shape[1:])


def _data(
    source: Any, name: str, own: Tensor, generator: torch.Generator
) -> tuple[Tensor | None, tuple[str, ...]]:
    """All pictures of a pool, some of a function, with what could not be read of them."""
    if source is None:
        return None, ()
    opened = open_source(source, name=f"the {name} data")
    x = opened.draw(DRAWN, generator) if opened.pool is None else opened.pool
    if x.shape[1:] != own.shape[1:]:
        raise BadInput(
            f"{name} data of the shape of the samples, {_shape(own)}", got=_shape(x), do="make them equal"
        )
    if len(x) < FEWEST:
        raise BadInput(f"at least {FEWEST} pictures of {name} data", got=len(x), do="add some")
    if not opened.broken:
        return x, ()
    count, names = len(opened.broken), ", ".join(opened.broken[:5])
    return x, (f"{count:,} unreadable picture{'s' if count > 1 else ''} of the {name} data: {names}",)


def _shape(x: Tensor) -> str:
    return shape(x.shape[1:])


class _Compared:
    """The samples beside training and real data, in features."""

    def __init__(
        self,
        run: Run,
        own: Tensor,
        train: Tensor | None,
        real: Tensor | None,
        scores: LinearScores | None,
    ) -> None:
        self._own, self._train = own, train
        points = run.points(own, "features of the samples")
        of_train = None if train is None else run.points(train, "features of the training set")
        of_real = None if real is None else run.points(real, "features of the real data")
        self.memorization = self._copies(run, points, of_train, of_real)
        self.quality, self.quality_real, self.quality_test = self._marks(run, points, of_real)
        self.moments = self._moments(run, points, of_real, None if scores is None else scores(own))
        self.discrepancy = self._differs(run, points, of_real)
        self.vendi, self.vendi_real = self._vendi(run, points, of_real)
        self.dimension = run.attempt(
            "dimension of the samples", lambda: _dimension(run, points, "dimension of the samples")
        )
        data = of_real if of_real is not None else of_train
        self.dimension_real = None
        if data is None:
            run.skip("dimension of the data", "there is neither training nor real data")
        else:
            some = data[torch.randperm(len(data), generator=run.generator)[: len(points)]]
            self.dimension_real = run.attempt(
                "dimension of the data", lambda: _dimension(run, some, "dimension of the data")
            )

    def nearest(self) -> Tensor | None:
        """The samples closest to the training set, each beside its training image."""
        if self.memorization is None or self._train is None:
            return None
        pairs = self.memorization.closest[:SHOWN]
        return torch.stack([torch.stack([self._own[one.sample], self._train[one.training]]) for one in pairs])

    @staticmethod
    def _copies(run: Run, points: Tensor, train: Tensor | None, real: Tensor | None) -> Memorization | None:
        what = "copies of training images"
        if train is None:
            run.skip(what, "the training set was not given")
            return None
        return run.attempt(
            what,
            lambda: memorization(
                points,
                train,
                real,
                confidence=run.confidence,
                generator=run.generator,
                progress=run.bar(what),
            ),
        )

    @staticmethod
    def _marks(
        run: Run, points: Tensor, real: Tensor | None
    ) -> tuple[Quality | None, Quality | None, QualityTest | None]:
        """Against one half of the real data; and the other half against it, to compare with."""
        what = "precision, recall, density, coverage"
        if real is None:
            run.skip(what, NO_REAL)
            return None, None, None
        order = torch.randperm(len(real), generator=run.generator)
        size = min(len(points), len(real) // 2)
        reference, other = real[order[:size]], real[order[size : 2 * size]]
        own = points[:size]
        found = run.attempt(what, lambda: quality(own, reference, progress=run.bar(what)))
        again = f"{what} of real data"
        beside = run.attempt(again, lambda: quality(other, reference, progress=run.bar(again)))
        tested = f"{what} beside real data"
        return (
            found,
            beside,
            run.attempt(
                tested,
                lambda: quality_test(
                    own, other, reference, generator=run.generator, progress=run.bar(tested)
                ),
            ),
        )

    @staticmethod
    def _moments(run: Run, points: Tensor, real: Tensor | None, logits: Tensor | None) -> Moments | None:
        what = "FID, KID"
        if real is None:
            run.skip(what, NO_REAL)
            return None
        if points.shape[1] > WIDEST:
            run.skip(
                what,
                f"{points.shape[1]:,} features would take many minutes: compare by an encoder with fewer",
            )
            return None
        return run.attempt(
            what,
            lambda: moments(points, real, logits=logits, generator=run.generator, progress=run.bar(what)),
        )

    @staticmethod
    def _differs(run: Run, points: Tensor, real: Tensor | None) -> Discrepancy | None:
        what = "two-sample test"
        if real is None:
            run.skip(what, NO_REAL)
            return None
        return run.attempt(
            what, lambda: discrepancy(points, real, generator=run.generator, progress=run.bar(what))
        )

    @staticmethod
    def _vendi(run: Run, points: Tensor, real: Tensor | None) -> tuple[Vendi | None, Vendi | None]:
        """Of as many samples as real data: the score grows with their number."""
        what = "Vendi score"
        size = len(points) if real is None else min(len(points), len(real))
        found = run.attempt(what, lambda: vendi(points[:size], progress=run.bar(what)))
        if real is None:
            run.skip(f"{what} of real data", NO_REAL)
            return found, None
        some = real[torch.randperm(len(real), generator=run.generator)[:size]]
        again = f"{what} of real data"
        return found, run.attempt(again, lambda: vendi(some, progress=run.bar(again)))


def _dimension(run: Run, points: Tensor, what: str) -> Dimension:
    return intrinsic_dimension(
        points, confidence=run.confidence, generator=run.generator, progress=run.bar(what)
    )


def _scores(run: Run, labelled: Labelled | None) -> LinearScores | None:
    """A classifier of pictures that have labels."""
    if labelled is None:
        return None
    what = "classifier"
    x, y, names = labelled
    return run.attempt(
        what, lambda: fit_scores(x, y, len(names), generator=run.generator, progress=run.bar(what))
    )
