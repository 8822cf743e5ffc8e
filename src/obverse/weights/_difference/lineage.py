"""Do two checkpoints come from one initialization? A permutation test over the rows of matching layers.

Hidden units have no order of their own: training treats them alike, so of an independent training any order
of them is as likely as any other. Matching rows of a hidden layer are then no more alike than rows matched at
random, and the share of random matchings that do at least as well is an exact p-value. Not so for the rows of
an output layer (classes), of an embedding (tokens), of attention (heads hold theirs together), nor for what
a residual connection ties to other layers. So a layer is asked only where its rows are hidden units and none
of the layers asked before it has the same: each p-value is then uniform whatever those before it are, and all
of them are independent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .._readers.stored import Weight
from .results import LayerLineage, Lineage

DRAWS = 9999  # matchings at random; as many draws for all layers together
ROWS = 1024  # of a layer, at most
FEWEST = 8  # rows: 40,320 matchings, more than are drawn
LAYERS = 16  # of a checkpoint, at most: more do not make it surer
_BATCH = 2**21  # of cosines looked up at a time

# The first matrix of the two in a transformer's block: its rows are units of that block alone
_INNER = re.compile(
    r"(^|\.)(fc1|lin1|linear1|up_proj|c_fc|dense_h_to_4h|wi|w3|w12|ff1|intermediate\.dense|mlp\.0|mlp\.fc1)$"
)
_NEVER = re.compile(
    r"attn|attention|(^|[._])([qkvo]|query|key|value)(_proj)?$|embed|(^|[._])(wte|wpe|lm_head|head|classifier|"
    r"output|logits?|score|out|pooler|norm)($|[._])"
)
_KINDS = ("linear", "convolution", "matrix")


def hidden_layers(weights: Sequence[Weight]) -> tuple[Weight, ...]:
    """The layers whose rows are hidden units, and units of none of those asked before."""
    usable = [
        one
        for one in weights
        if one.kind in _KINDS
        and one.groups == 1
        and one.rows >= FEWEST
        and one.columns > 1
        and one.rows != one.columns
        and "(" not in one.name  # a part of a tensor
        and not _NEVER.search(one.name.lower())
    ]
    found = [one for one in usable if _INNER.search(one.name.lower())]
    for one in usable:
        # an output is read by no other layer; the last one may be an output all the same
        read = one is not weights[-1] and any(
            _reads(other, one.rows) for other in weights if other is not one
        )
        tied = any(other.rows == one.rows or _reads(other, one.rows, images=False) for other in found)
        if read and not tied and one not in found:
            found.append(one)
    return tuple(found[:LAYERS])


def _reads(one: Weight, units: int, *, images: bool = True) -> bool:
    """Whether its columns can be these units: one each, or the kernel of each, or a square image of each."""
    times, rest = divmod(one.columns, units)
    if rest or not times:
        return False
    return times == 1 or one.kind == "convolution" or (images and math.isqrt(times) ** 2 == times)


@torch.no_grad()
def lineage(
    pairs: Sequence[tuple[str, Callable[[], Tensor], Callable[[], Tensor]]],
    *,
    alpha: float,
    generator: torch.Generator,
    draws: int = DRAWS,
) -> Lineage:
    """Of hidden layers, each with how to load it from tuned and from base: one shape, rows out."""
    layers = []
    for name, tuned, base in pairs:
        found = match_rows(tuned(), base(), generator=generator, draws=draws)
        if found is not None:
            layers.append(LayerLineage(name, *found))
    if not layers:
        return Lineage(None, (), alpha, draws)
    return Lineage(combined([one.p for one in layers], generator, draws), tuple(layers), alpha, draws)


def match_rows(
    tuned: Tensor, base: Tensor, *, generator: torch.Generator, draws: int = DRAWS
) -> tuple[int, float, float] | None:
    """How many rows were compared, their mean cosine, and its p-value among random matchings."""
    rows = min(len(tuned), ROWS)
    if len(tuned) > ROWS:
        chosen = torch.linspace(0, len(tuned) - 1, ROWS).long()
        tuned, base = tuned[chosen], base[chosen]
    here, there = _directions(tuned), _directions(base)
    if rows < FEWEST or not bool(here.any()) or not bool(there.any()):
        return None
    cosines = here @ there.T
    own = float(cosines.diagonal().sum())
    as_high, left = 0, draws
    at = torch.arange(rows)
    while left:
        some = min(left, max(1, _BATCH // rows))
        orders = torch.rand(some, rows, generator=generator).argsort(1)
        sums = cosines[at, orders].sum(1)
        # ties count, also those that differ by the order of the sum
        as_high += int((sums >= own - 1e-9 * rows).sum())
        left -= some
    return rows, own / rows, (1 + as_high) / (1 + draws)


def _directions(matrix: Tensor) -> Tensor:
    """Rows of length 1, without what they have in common."""
    rows = matrix.double()
    rows = rows - rows.mean(0)
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, rows / torch.where(lengths > 0, lengths, 1.0), 0.0)


def combined(chances: Sequence[float], generator: torch.Generator, draws: int = DRAWS) -> float:
    """One p-value of independent ones, (1 + #) / (1 + draws) each: the share of draws of as small a product.

    Of a single layer it is its own.
    """
    if len(chances) == 1:
        return chances[0]
    own = sum(math.log(p) for p in chances)
    drawn = torch.randint(1, draws + 2, (draws, len(chances)), generator=generator).double() / (draws + 1)
    return (1 + int((drawn.log_().sum(1) <= own + 1e-9).sum())) / (1 + draws)
