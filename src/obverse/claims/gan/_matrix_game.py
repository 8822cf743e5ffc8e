"""Zero-sum games with a payoff matrix: the row player pays, the column player is paid.

Rows are generators, columns discriminators: F(u, v) = E_real D_v − E_{G_u} D_v. Exact best responses and
values. Not for nets that are trained against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import torch
from torch import Tensor


@dataclass(frozen=True)
class Play:
    """A mixed strategy of each side."""

    rows: Tensor
    columns: Tensor

    def gap(self, payoff: Tensor) -> float:
        """max_v F(rows, v) − min_u F(u, columns): what both sides together could still win."""
        return float((self.rows @ payoff).max() - (payoff @ self.columns).min())


def pure_gap(payoff: Tensor) -> float:
    """min_u max_v F − max_v min_u F over single rows and columns: 0 where there is a pure equilibrium."""
    return float(payoff.amax(1).min() - payoff.amin(0).max())


def best_rows(payoff: Tensor) -> tuple[float, Tensor]:
    """min over mixtures x of max_v (x F)_v, with x: a linear program, exact to rounding."""
    import numpy as np
    from scipy.optimize import linprog

    count, others = payoff.shape
    limits = np.hstack([payoff.T.numpy(), -np.ones((others, 1))])  # (x F)_v ≤ value
    found = linprog(
        np.r_[np.zeros(count), 1.0],
        A_ub=limits,
        b_ub=np.zeros(others),
        A_eq=np.r_[np.ones(count), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
        method="highs",
    )
    return float(found.x[-1]), torch.from_numpy(found.x[:-1])


def solve(payoff: Tensor) -> Play:
    """An equilibrium in mixed strategies: each side's linear program."""
    return Play(best_rows(payoff)[1], best_rows(-payoff.T)[1])


def hedge(payoff: Tensor, rounds: int) -> Play:
    """Multiplicative weights: columns by what they have gained so far, each time against the best row.

    The rows are a uniform mixture of `rounds` pure ones. The rate is that of the regret bound √(2 ln n · T)
    for gains in [−1, 1] and n columns.
    """
    rate = sqrt(2 * log(payoff.shape[1]) / rounds)
    gained, played = payoff.new_zeros(payoff.shape[1]), payoff.new_zeros(payoff.shape[0])
    mixed = torch.zeros_like(gained)
    for _ in range(rounds):
        columns = torch.softmax(rate * gained, 0)
        row = int((payoff @ columns).argmin())
        gained, mixed = gained + payoff[row], mixed + columns
        played[row] += 1
    return Play(played / rounds, mixed / rounds)
