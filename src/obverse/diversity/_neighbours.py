"""The nearest points of a reference set, exactly. Not for pairs within one set: see pairs.

As there: candidates by a matrix product in float32, measured by their differences in float64. What float32
can't decide for sure is decided in float64.
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from .._core import BadInput, Progress
from ._distances import BLOCK, Rows, approximate, centre, exact, margin, rows
from ._sources import flat_points

_SPARE = 8  # candidates beyond k: nearly always enough to be sure


def nearest(
    queries: Tensor,
    reference: Tensor,
    k: int = 1,
    *,
    same: bool = False,
    block: int = BLOCK,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor]:
    """(distance float64, index), n × k, the nearest first.

    `same`: the queries are the reference, and a point is not its own neighbour (an equal one is).
    """
    reference = flat_points(reference, "the reference", constant=True)
    queries = reference if same else _queries(queries, reference)
    if not 1 <= k <= len(reference) - same:
        raise BadInput(f"k from 1 to {len(reference) - same}", got=k, do="use more points, or a smaller k")
    middle = centre(reference)
    found = []
    total = -(-len(queries) // block)
    for number, start in enumerate(range(0, len(queries), block)):
        part = queries[start : start + block]
        own = torch.arange(start, start + len(part)) if same else None
        found.append(_block(part, reference, middle, k, own, block))
        if progress:
            progress(number + 1, total, "nearest neighbours")
    return torch.cat([distance for distance, _ in found]), torch.cat([index for _, index in found])


def _queries(queries: Tensor, reference: Tensor) -> Tensor:
    if not isinstance(queries, Tensor) or queries.ndim < 1 or len(queries) == 0:
        raise BadInput("at least one query", got="none", do="give some")
    if len(queries) == 1:  # one point is no sample, but may be asked about
        queries = flat_points(torch.cat([queries, queries]), "the queries", constant=True)[:1]
    else:
        queries = flat_points(queries, "the queries", constant=True)
    if queries.shape[1] != reference.shape[1]:
        raise BadInput(
            f"queries of {reference.shape[1]} dimensions, as the reference", got=queries.shape[1], do="check"
        )
    return queries


def _block(
    part: Tensor, reference: Tensor, middle: Tensor, k: int, own: Tensor | None, block: int
) -> tuple[Tensor, Tensor]:
    squared, index, sure = _ranked(part, reference, middle, k, own, block, torch.float32)
    again = (~sure).nonzero().flatten()
    if len(again):
        mine = None if own is None else own[again]
        middle = part[again].to(torch.float64).mean(0)
        squared[again], index[again], sure = _ranked(
            part[again], reference, middle, k, mine, block, torch.float64
        )
        for row in again[~sure].tolist():
            squared[row], index[row] = _by_differences(part[row], reference, k, own, row)
    return squared.sqrt(), index


def _by_differences(
    point: Tensor, reference: Tensor, k: int, own: Tensor | None, row: int
) -> tuple[Tensor, Tensor]:
    """One query without any shortcut: for points that even float64 norms can't distinguish."""
    every = torch.arange(len(reference))
    squared = exact(point[None], reference, torch.zeros_like(every), every)
    if own is not None:
        squared[own[row]] = inf
    return squared.topk(k, largest=False, sorted=True)


def _ranked(
    part: Tensor,
    reference: Tensor,
    middle: Tensor,
    k: int,
    own: Tensor | None,
    block: int,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """(squared distances, indices, whether nothing that was left out can be nearer) of each query."""
    a = rows(part, middle, dtype)
    value = torch.empty(len(part), 0, dtype=dtype)
    index = torch.empty(len(part), 0, dtype=torch.int64)
    off = 0.0
    for start in range(0, len(reference), block):
        b = rows(reference[start : start + block], middle, dtype)
        around = approximate(a, b)
        off = max(off, margin(a, b))
        if own is not None:
            _forget(around, own, start, b)
        low, place = around.topk(min(k + _SPARE, around.shape[1]), dim=1, largest=False)
        value, index = torch.cat([value, low], 1), torch.cat([index, place + start], 1)
        value, order = value.topk(min(k + _SPARE, value.shape[1]), dim=1, largest=False)
        index = index.gather(1, order)
    candidates = index.shape[1]
    true = exact(part, reference, torch.arange(len(part)).repeat_interleave(candidates), index.flatten())
    true = true.reshape(len(part), candidates)
    if own is not None:
        true[index == own[:, None]] = inf
    true, order = true.sort(dim=1, stable=True)
    index = index.gather(1, order)
    whole = candidates == len(reference)
    last = true[:, k - 1]
    # Nothing is nearer than an equal point.
    sure = (value[:, -1].to(torch.float64) - off >= last) | (last == 0) | whole
    return true[:, :k].clone(), index[:, :k].clone(), sure


def _forget(around: Tensor, own: Tensor, start: int, b: Rows) -> None:
    """No point is its own neighbour."""
    inside = (own >= start) & (own < start + len(b.values))
    around[inside.nonzero().flatten(), own[inside] - start] = inf
