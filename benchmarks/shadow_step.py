"""How much longer a training step takes with SHADOW: forward, backward, SGD with momentum, zero_grad.

The arithmetic limit counts matrix products only. The optimizer runs once in either step, so that a step
that wastes nothing comes out below the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from measure import BATCH, SIZES, Outcome, alternate, compare, paper_net, publish, random_batch
from torch import Tensor
from torch.nn import functional as F

from obverse.shadow import ShadowLoss


def arithmetic_limit(sizes: tuple[int, ...]) -> float:
    """Multiplications of a SHADOW step over those of a plain step; the optimizer's own are left out."""
    matrices = [a * b for a, b in pairwise(sizes)]
    # Forward, gradient of the weights, gradient of the input (not needed for the first layer).
    plain = 3 * sum(matrices) - matrices[0]
    generation = sum(matrices[:-1])  # from the highest hidden layer down
    return (2 * plain + generation) / plain


def step_ratio(repetitions: int) -> Outcome:
    """SHADOW step ÷ plain step, 784-5000-5000-10."""
    net = paper_net()
    x, y = random_batch(BATCH)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    shadow_loss = ShadowLoss(net)

    def step_with(loss: Callable[[], Tensor]) -> Callable[[], None]:
        def step() -> None:
            loss().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    sides = {
        "shadow": step_with(lambda: shadow_loss(x, y)),
        "plain": step_with(lambda: F.cross_entropy(net(x), y)),
    }
    seconds = alternate(sides, repetitions)
    limit = arithmetic_limit(SIZES)
    return compare(
        "shadow_step", "SHADOW step ÷ plain step", 2.40, seconds,
        arithmetic_limit=limit, sizes=SIZES, batch=BATCH,
    )  # fmt: skip


if __name__ == "__main__":
    publish(step_ratio, repetitions=31)
