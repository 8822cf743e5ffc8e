"""One W, many h: the experiment behind Theorems 2.3 and 2.4, and the search for offsets that serve all h.

Knows no closed form. Not for fresh W in every trial: see ..layer.
"""

from __future__ import annotations

from math import log, sqrt

import torch
from torch import Tensor

from ..results import Setting
from ._conditions import check_layer
from ._hidden import draw_hidden
from ._layer import reverse_and_infer
from ._offset_search import one_offset
from ._stream import Weights, draw_seed

CALIBRATION = 40  # draws of h that an offset is searched on; their error is flat around the best one


def proof_delta(m: int, t: float) -> float:
    """The δ of Lemma 2.5 with its constants: all m entries of noise √(2/t) below it but once in 100 draws."""
    return sqrt(2 / t) * sqrt(2 * log(100 * m))


def infer_many(
    setting: Setting, generator: torch.Generator, count: int, *, drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """`count` draws of h with ‖h‖ = 1 and their ĥ = Wᵀx under one W, each with its own mask."""
    check_layer(setting)
    n, m = setting["n"], setting["m"]
    weights = Weights(n, m, draw_seed(generator))
    h = draw_hidden(count, m, setting["k"], setting["law"], generator)
    return h, reverse_and_infer(weights, h, setting["t"] / n, drop=drop)


def recover_with_one_offset(setting: Setting, generator: torch.Generator, drop: float = 0.0) -> Tensor:
    """‖r(ĥ − θ) − h‖² for so many `trials`, at the θ that is best on other draws of h under the same W."""
    h, inferred = infer_many(setting, generator, CALIBRATION + setting["trials"], drop=drop)
    return errors_at(
        inferred[CALIBRATION:], h[CALIBRATION:], one_offset(inferred[:CALIBRATION], h[:CALIBRATION])
    )


def errors_at(inferred: Tensor, h: Tensor, theta: Tensor | float) -> Tensor:
    """‖r(ĥ − θ) − h‖² / ‖h‖² of each row (the left side of eq. 9)."""
    return ((inferred - theta).relu() - h).square().sum(1) / h.square().sum(1)
