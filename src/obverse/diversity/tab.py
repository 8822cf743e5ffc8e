"""The birthday room: draws from a known law, who collides, and what the test concludes. Not for pictures."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._core import BadInput, clopper_pearson, lower_limit
from ..present import Fields, Subject, Tab
from ._bounds import effective_support_bound, popular_estimate
from ._counts import effective_support

LAWS = ("uniform", "a favourite", "zipf")
MOST_SUPPORT = 100_000
MOST_SIZE = 1000
MOST_BATCHES = 1000
AT_ONCE = 20  # batches in one request
FAVOURITE = 0.1  # the chance of the one picture that comes up too often
MOST_GROUPS = 60  # of equal draws that are told of a batch

Chances = npt.NDArray[np.float64]


@lru_cache(maxsize=8)
def chances(law: str, support: int) -> Chances:
    """The probabilities of the N pictures."""
    if law == "zipf":
        found = 1 / np.arange(1, support + 1)
    else:
        found = np.ones(support)
        if law == "a favourite" and support > 1:
            found[0] = FAVOURITE / (1 - FAVOURITE) * (support - 1)
    result: Chances = found / found.sum()
    return result


@lru_cache(maxsize=64)
def collision_chance(law: str, support: int, size: int) -> float:
    """The chance that two of M draws are equal: 1 − M! e_M(p), exactly.

    b_j, the chance that j draws are all different and all among the first i pictures, grows with i by
    j·p_i·b_{j−1}. Equal chances have the closed form.
    """
    if size > support:
        return 1.0
    if law == "uniform":
        return float(-np.expm1(np.log1p(-np.arange(size) / support).sum()))
    apart = np.zeros(size + 1)
    apart[0] = 1.0
    steps = np.arange(1, size + 1)
    for chance in chances(law, support):
        apart[1:] += chance * steps * apart[:-1]
    return float(1 - apart[size])


def birthday_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """Some batches, beginning with number `first`, and what follows from all of them so far.

    The page counts: `collisions`, `pairs` and `chains` of the batches before `first` come with the request.
    """
    support, size = fields.whole("support", 1, MOST_SUPPORT), fields.whole("size", 2, MOST_SIZE)
    law, seed = fields.choice("law", LAWS), fields.whole("seed", 0, 10**6)
    first, count = fields.whole("first", 0, MOST_BATCHES), fields.whole("count", 0, AT_ONCE)
    confidence = fields.number("confidence", 0.5, 0.999)
    most = size * (size - 1) // 2 * max(first, 1)
    collisions = fields.whole("collisions", 0, first)
    pairs = fields.whole("pairs", 0, most)
    chains = fields.whole("chains", 0, 2 * size * most)
    if first + count > MOST_BATCHES:
        raise BadInput(f"at most {MOST_BATCHES} batches", got=first + count, do="stop there")
    found = [_batch(chances(law, support), size, [seed, first + number]) for number in range(count)]
    collisions += sum(batch["pairs"] > 0 for batch in found)
    pairs += sum(batch["pairs"] for batch in found)
    chains += sum(batch["chains"] for batch in found)
    p = chances(law, support)
    return {
        "batches": found,
        "collisions": collisions,
        "pairs": pairs,
        "chains": chains,
        "done": first + count,
        "truth": {
            "support": support,
            "effective": float(1 / np.square(p).sum()),
            "collision": _exact(law, support, size),
        },
        "told": _estimate(size, first + count, collisions, pairs, chains, confidence),
    }


def _exact(law: str, support: int, size: int) -> float | None:
    """The true chance of a collision, where it can be had in a moment."""
    return collision_chance(law, support, size) if law == "uniform" or support <= 10_000 else None


def _batch(p: Chances, size: int, seed: list[int]) -> dict[str, Any]:
    """One batch: who has the same birthday, as lists of places in the room."""
    random = np.random.default_rng(seed)
    drawn = np.minimum(np.searchsorted(np.cumsum(p), random.random(size), side="right"), len(p) - 1)
    order = np.argsort(drawn, kind="stable")
    cuts = np.flatnonzero(np.diff(drawn[order])) + 1
    groups = [group for group in np.split(order, cuts) if len(group) > 1]
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    return {
        "pairs": int((sizes * (sizes - 1) // 2).sum()),
        "chains": int((sizes * (sizes - 1) * (sizes - 2)).sum()),
        "groups": [{"day": int(drawn[group[0]]), "who": group.tolist()} for group in groups[:MOST_GROUPS]],
    }


def _estimate(
    size: int, batches: int, collisions: int, pairs: int, chains: int, confidence: float
) -> dict[str, Any] | None:
    """What the test says of a generator that drew these batches; nothing before the first."""
    if batches == 0:
        return None
    low, high = clopper_pearson(collisions, batches, confidence)
    limit = lower_limit(collisions, batches, confidence)
    counted = effective_support(
        [pairs, *[0] * (batches - 1)], [chains, *[0] * (batches - 1)], size, confidence
    )
    return {
        "chance": collisions / batches,
        "low": low,
        "high": high,
        "bound": effective_support_bound(limit, size) if limit > 0 else None,
        "popular": popular_estimate(collisions / batches, size) if 0 < collisions < batches else None,
        "counted": None if counted.value is None else [counted.value, counted.low, counted.high],
    }


TABS = (
    Tab(
        "birthday.js",
        "diversity/tab.js",
        {"birthday": birthday_answer},
        lambda subject: {"birthday": {"most_support": MOST_SUPPORT, "at_once": AT_ONCE}},
    ),
)
