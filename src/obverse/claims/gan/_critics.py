"""What the best discriminator of a class finds between samples and their law: exactly, or by training one.

A class is a set of D_θ; its distance is sup_θ |E D_θ over the samples − E D_θ over the law|. The law is
uniform on cells, on [0, 1] or on a circle, or standard normal. Not for what theory says of it: see
generalization.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput

SAMPLES_A_PERIOD = 8  # of a wave of the largest frequency
HELD_ENTRIES = 2**21  # of a block of waves × points
RESTARTS = 2
RATE = 0.1  # of Adam, falling to 0 along a line
HELD_OUT = 8192


def cell_counts(cells: int, size: int, trials: int, generator: torch.Generator) -> Tensor:
    """How many of `size` points fall into each of equally likely cells: trials × cells."""
    drawn = torch.randint(cells, (trials, size), generator=generator)
    counts = torch.zeros(trials, cells, dtype=torch.float64)
    return counts.scatter_add_(1, drawn, torch.ones(1, 1, dtype=torch.float64).expand(trials, size))


def cells_distance(counts: Tensor) -> Tensor:
    """D_θ(x) = θ_k in the k-th of p cells, θ ∈ [0, 1]^p: the best D is 1 where there are too many points."""
    shares = counts / counts.sum(1, keepdim=True)
    return (shares - 1 / counts.shape[1]).clamp(min=0).sum(1)


def ball_distance(points: Tensor) -> Tensor:
    """D_v(x) = ⟨v, x⟩ with ‖v‖ ≤ 1, for a law with mean 0: the best v points to the mean. trials × m × p."""
    distance: Tensor = points.mean(1).norm(dim=1)
    return distance


def waves_distance(points: Tensor, frequency: float) -> Tensor:
    """D(x) = ½ + a/2·cos(2πLθx), a ∈ [−1, 1] and θ ∈ [0, 1], for the uniform law on [0, 1]. trials × m.

    Over a grid of θ. As a function of θ the distance has no frequency above L: near its largest value it
    falls no faster than a cosine, and the grid misses at most a factor 1/cos(π/8) = 1.08.
    """
    steps = int(frequency * SAMPLES_A_PERIOD)
    turns = torch.arange(1, steps + 1, dtype=points.dtype) / SAMPLES_A_PERIOD  # Lθ
    best = points.new_zeros(len(points))
    for some in turns.split(max(1, HELD_ENTRIES // points.numel())):
        waves = (2 * torch.pi * some[:, None, None] * points).cos().mean(2)  # turns × trials
        best = torch.maximum(best, (waves - torch.sinc(2 * some)[:, None]).abs().amax(0) / 2)
    return best


def arcs_distance(points: Tensor, weights: Tensor) -> Tensor:
    """D the indicator of any arc of a circle of length 1, against weighted points on it (Kuiper's statistic).

    Both are trials × T; the weights sum to one.
    """
    order = points.argsort(1)
    places, after = points.gather(1, order), weights.gather(1, order).cumsum(1)
    before = after - weights.gather(1, order)
    return (after - places).amax(1) + (places - before).amax(1)


def parameters(inputs: int, hidden: int) -> int:
    """p of `trained_distance`: weights and biases of both layers."""
    return hidden * (inputs + 2) + 1


def trained_distance(points: Tensor, hidden: int, steps: int, generator: torch.Generator) -> Tensor:
    """What ReLU nets with one hidden layer and D ∈ [0, 1] find between points and N(0, I), one net for each
    of the trials (trials × m × d).

    Adam on all points and on as many fresh draws of the law at every step. Of two starts the better one
    counts, by draws that were never trained on; what it finds is measured with others.
    """
    trials, size, inputs = points.shape
    if hidden < 1 or steps < 1:
        raise BadInput("hidden units and steps ≥ 1", got=f"{hidden} and {steps}", do="raise them")
    x = points.repeat_interleave(RESTARTS, 0)
    count = len(x)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=points.dtype)

    first, offsets = normal(count, inputs, hidden) / inputs**0.5, normal(count, 1, hidden)
    second, offset = normal(count, hidden, 1) / hidden**0.5, points.new_zeros(count, 1, 1)
    weights = [first, offsets, second, offset]
    for weight in weights:
        weight.requires_grad_()

    def mean(of: Tensor) -> Tensor:
        active = torch.baddbmm(offsets, of, first).relu()
        return (active.bmm(second) + offset).sigmoid().mean((1, 2))

    adam = torch.optim.Adam(weights, lr=RATE)
    for step in range(steps):
        adam.param_groups[0]["lr"] = RATE * (1 - step / steps)
        fresh = normal(trials, size, inputs).repeat_interleave(RESTARTS, 0)
        found = mean(x) - mean(fresh)
        adam.zero_grad()
        (-found.sum()).backward()
        adam.step()
    with torch.no_grad():
        chosen, measured = (mean(x) - mean(normal(count, HELD_OUT, inputs)) for _ in range(2))
    best = chosen.view(trials, RESTARTS).argmax(1, keepdim=True)
    return measured.view(trials, RESTARTS).gather(1, best).squeeze(1).to(torch.float64)
