"""Fitted shadows in training: fits that follow the weights. Not for the loss itself (see loss)."""

from __future__ import annotations

import torch
from torch import Tensor

from .._core import BadInput
from ._shadow import Shadow

RECENT = 256  # inputs of a fit


class Refit:
    """Fits the ways down of some shadows anew every `every` batches, on the last inputs at today's weights.

    At the first batch only those that were never calibrated are fitted. Inputs that came more than once count
    once: the strength of a ridge is chosen on held-out inputs, which must not be among the others.
    """

    def __init__(self, *shadows: Shadow, every: int) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 0:
            raise BadInput(
                "refit ≥ 0 batches", got=repr(every), do="use 0 to keep the fits of calibrate as they are"
            )
        self.shadows = tuple(one for one in shadows if one.reverse == "fitted")
        self.every = every
        self._batches = 0
        self._recent: Tensor | None = None

    @torch.no_grad()
    def see(self, x: Tensor) -> None:
        """Take note of a batch, before anything is generated for it; fit if it is time to."""
        if not self.shadows or self.every == 0:
            return
        x = x.detach()
        if self._recent is not None and self._recent.shape[1:] == x.shape[1:]:
            x = torch.cat((self._recent.to(x), x))
        self._recent = x[-RECENT:]
        due = self._batches > 0 and self._batches % self.every == 0
        for shadow in self.shadows:
            if due or not shadow.is_calibrated:
                shadow.calibrate(distinct(self._recent))
        self._batches += 1


def distinct(x: Tensor) -> Tensor:
    """The rows of x without those that came before, in the order in which they came."""
    _, group = torch.unique(x.flatten(1), dim=0, return_inverse=True)
    first = torch.full((int(group.max()) + 1,), len(x), device=x.device)
    first.scatter_reduce_(0, group, torch.arange(len(x), device=x.device), "amin")
    return x[first.sort().values]
