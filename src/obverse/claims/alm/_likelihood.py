"""Footnote 2: where the likeliest h is close to the true one, the feedforward answer is close to both.

In the model (1) the likeliest h is the true one wherever more than k inputs are alive: what the footnote says
beside that is Theorem 2.3 once more. Small cases, exact: every support of at most k units is tried.
"""

from __future__ import annotations

from itertools import combinations
from math import inf, log1p

import torch
from torch import Tensor

from ..._core import BadInput
from .._claim import Claim, grid, measurement
from .._registry import register
from .._rules import Equal
from ..results import Setting, Value
from ._conditions import check_keep, check_layer
from ._hidden import draw_hidden

SOURCE = "Arora, Liang & Ma 2015, footnote 2"
EXACT = 1e-8  # relative; float64 and a few unknowns leave about 1e-13 of an equation that holds


def likeliest(weights: Tensor, x: Tensor, k: int, keep: float) -> Tensor:
    """The maximum-likelihood h ≥ 0 of at most k non-zeros for x = r(αWh) ⊙ mask, by trying every support.

    P(x|h) has a factor ρ for each j with x_j > 0, if αw_j·h = x_j (otherwise 0), and for each j with x_j = 0
    a factor 1 − ρ if w_j·h > 0. So h must solve the equations of the inputs that are alive, and of several
    solutions the likeliest leaves the fewest inputs to the mask. Supports of more units than there are
    inputs alive have a continuum of solutions, and are left out.
    """
    check_keep(keep)
    n, m = weights.shape
    alive = x > 0
    target = x[alive] * (keep * n / 2)  # x/α
    of_mask = log1p(-keep) if keep < 1 else -inf
    best, found = -inf, torch.zeros(m, dtype=x.dtype)
    for size in range(1, min(k, len(target)) + 1):
        supports = torch.tensor(list(combinations(range(m), size)))
        systems = weights[alive][:, supports].transpose(0, 1)  # supports × alive × size
        sides = target.expand(len(supports), -1).unsqueeze(-1)
        solved = torch.linalg.lstsq(systems, sides).solution
        small = EXACT * target.max()
        fits = ((systems @ solved - sides).abs() <= small).all(1) & (solved >= -small).all(1)
        for at in fits.squeeze(1).nonzero().flatten().tolist():
            h = torch.zeros(m, dtype=x.dtype).scatter(0, supports[at], solved[at, :, 0].clamp(min=0))
            masked = int((weights[~alive] @ h > small).sum())
            likelihood = masked * of_mask if masked else 0.0  # ρ for each that is alive is common to all h
            if likelihood > best:
                best, found = likelihood, h
    return found


def draw_case(setting: Setting, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """W, h and x = r(αWh) ⊙ mask, in float64."""
    check_layer(setting)
    n, m, t = setting["n"], setting["m"], setting["t"]
    weights = torch.randn(n, m, generator=generator, dtype=torch.float64)
    h = draw_hidden(1, m, setting["k"], setting["law"], generator)[0]
    mask = torch.rand(n, generator=generator, dtype=torch.float64) < t / n
    return weights, h, (2 / t * weights @ h).relu() * mask


@measurement("alm.likelihood.likeliest_is_true")
def likeliest_is_true(setting: Setting, generator: torch.Generator) -> list[float]:
    """1 where the likeliest h is the true one, 0 where not; over cases with more than k inputs alive."""
    found: list[float] = []
    tried = 0
    while len(found) < setting["trials"]:
        tried += 1
        if tried > 100 * setting["trials"]:
            raise BadInput(
                "more than k inputs alive in one of 100 draws at least",
                got=f"{len(found)} of {tried - 1} at k = {setting['k']}, t = {setting['t']}",
                do="raise t or lower k",
            )
        weights, h, x = draw_case(setting, generator)
        if int((x > 0).sum()) > setting["k"]:
            answer = likeliest(weights, x, setting["k"], setting["t"] / setting["n"])
            found.append(float(torch.dist(answer, h) <= 1e-6))  # EXACT, and what a system may amplify it by
    return found


def one(setting: Setting) -> float:
    check_layer(setting)
    return 1.0


CASE: dict[str, Value] = {"m": 10, "k": 3, "law": "half-normal"}

register(
    Claim(
        id="alm.footnote2.likeliest",
        title="The likeliest h is the true one",
        statement=(
            "Where more than k inputs are alive, the maximum-likelihood h for x = r(αWh) ⊙ mask, among all "
            "h ≥ 0 of at most k non-zeros, is the true h: that the feedforward answer is close to both, as "
            "footnote 2 has it, is then Theorem 2.3."
        ),
        source=SOURCE,
        grid=grid(n=(15, 30, 60), t=10, **CASE, trials=200),
        quick=grid(n=(15, 30), t=10, **CASE, trials=50),
        predict=one,
        measure=likeliest_is_true,
        rule=Equal(),
        quantity="share of cases with h_ML = h",
        axis="n",
        reading="exact",
        remark=(
            "Supports are enumerated: k + 1 random equations hold for no wrong one. With k inputs alive or "
            "fewer (346 of 1500 draws at n = 15) several h explain x, and the likeliest is the true one in "
            "56 of these 346."
        ),
    )
)
