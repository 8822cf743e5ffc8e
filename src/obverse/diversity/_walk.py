"""What lies between the seeds of a generator: paths, directions, labels, with a strip of pictures for each.

Not for the measurements themselves: see smoothness and directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ._directions import direction_strips, principal_directions, regressed_direction
from ._interpolation import Decode, decode_all, strips
from ._labels import LinearScores
from ._run import Run
from ._smoothness import PathLength, path_length
from .results import DirectionsFound, LabelFound

STEPS = 9  # pictures of a strip
STRIPS = 5  # paths, and directions
SEEDS = 64  # at which the Jacobian is averaged
REACH = 3.0  # standard deviations of a seed to either side
SCORED = 4000  # seeds for labels: half of them for the regression, half to test it
MOST_LABELS = 12
AT_A_TIME = 1024  # pictures


@dataclass(frozen=True, eq=False)
class Walked:
    """What lies between seeds."""

    smoothness: PathLength | None = None
    directions: DirectionsFound | None = None
    labels: tuple[LabelFound, ...] = ()
    paths: Tensor | None = None
    along: Tensor | None = None
    towards: Tensor | None = None


def walk(
    run: Run,
    decode: Decode | None,
    latent: int | None,
    scores: LinearScores | None,
    names: tuple[str, ...],
    pairs: int,
) -> Walked:
    """All of it, as far as there is a generator and a classifier; `names` are those of its labels."""
    if decode is None or latent is None:
        run.skip(
            "paths between seeds, directions",
            "these are samples without their generator, so there are no seeds to move",
        )
        return Walked()
    seeds = torch.randn(max(SEEDS, 2 * STRIPS), latent, generator=run.generator)
    smooth = run.attempt(
        "paths between seeds",
        lambda: path_length(
            decode,
            latent,
            features=run.features,
            pairs=pairs,
            confidence=run.confidence,
            generator=run.generator,
            progress=run.bar("paths between seeds"),
        ),
    )
    made = run.attempt("strips", lambda: strips(decode, seeds[:STRIPS], seeds[STRIPS : 2 * STRIPS], STEPS))
    principal = run.attempt(
        "directions",
        lambda: principal_directions(
            decode,
            seeds,
            min(STRIPS, latent),
            generator=run.generator,
            progress=run.bar("directions"),
        ),
    )
    along, found = None, None
    if principal is not None:
        along = torch.cat(
            [direction_strips(decode, seeds[:1], one, reach=REACH, steps=STEPS) for one in principal.vectors]
        )
        found = DirectionsFound(
            tuple(principal.strengths.tolist()), principal.shares, principal.seeds, REACH, latent
        )
    labels, towards = _labels(run, decode, seeds, scores, names)
    return Walked(smooth, found, labels, made, along, towards)


def _labels(
    run: Run, decode: Decode, seeds: Tensor, scores: LinearScores | None, names: tuple[str, ...]
) -> tuple[tuple[LabelFound, ...], Tensor | None]:
    """A direction for each label: its log-probability, regressed on seeds."""
    if scores is None:
        run.skip("directions for labels", "there are no pictures with labels")
        return (), None
    latent = seeds.shape[1]
    drawn = torch.randn(max(SCORED, 8 * latent), latent, generator=run.generator)
    likely = run.attempt(
        "directions for labels",
        lambda: torch.cat(
            [scores(decode_all(decode, part)).log_softmax(1) for part in drawn.split(AT_A_TIME)]
        ),
    )
    if likely is None:
        return (), None
    found, rows = [], []
    for label, name in list(enumerate(names))[:MOST_LABELS]:
        one = run.attempt(f"direction for {name}", partial(regressed_direction, drawn, likely[:, label]))
        if one is not None:
            found.append(LabelFound(name, one.slope, one.error, one.agreement))
            rows.append(direction_strips(decode, seeds[:1], one.vector, reach=REACH, steps=STEPS))
    return tuple(found), torch.cat(rows) if rows else None
