"""What gradient norms foretell of SHADOW without momentum; protocol.py writes it before any of its runs.

With a weight w a step goes along g + w·g′, g backpropagation's gradient and g′ that of the shadows. Where
both point the same way this is a longer step and nothing else: backpropagation with a larger learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, isfinite, log
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from obverse.data import Dataset
from obverse.training import ClassifierTask, Settings

from .._lab.result_files import short

SEED = 100  # of the net that is looked at: none of the seeds that are run
STATES = (0, 100, 300, 500)  # steps of backpropagation after which it is looked at
POINTS = 2000  # of the training set, over which gradients are means
BATCH = 500
LEAST = 1e-9  # of a factor that is not above 0
WEIGHTS = tuple(2.0**b for b in range(-3, 4))


def flat_gradient(task: ClassifierTask, x: Tensor, y: Tensor, *, shadows: bool) -> tuple[float, Tensor]:
    """The mean loss of these points, or of their shadows, and its gradient as one vector."""
    parameters = list(task.net.parameters())
    total, found = 0.0, torch.zeros(sum(p.numel() for p in parameters))
    for start in range(0, len(x), BATCH):
        inputs, labels = x[start : start + BATCH], y[start : start + BATCH]
        if shadows:
            with torch.no_grad():
                inputs = task.loss.twin(inputs, task.shadow.infer(inputs, task.loss.layer))
        loss = F.cross_entropy(task.net(inputs), labels) * (len(labels) / len(x))
        gradients = torch.autograd.grad(loss, parameters)
        found += torch.cat([one.flatten() for one in gradients])
        total += float(loss.detach())
    return total, found


def look(task: ClassifierTask, weights: Sequence[float] = WEIGHTS) -> dict[str, Any]:
    """Of a net as it stands: the norms, the angle, and what each weight makes of a step.

    length: ‖g + w·g′‖ ÷ ‖g‖. progress: 1 + w·⟨g, g′⟩ ÷ ‖g‖², how much faster the loss on images falls to
    first order. polyak: loss ÷ ‖g‖², the step that would reach loss 0 if the loss were linear.
    """
    task.net.eval()
    x, y = task.train_x[:POINTS], task.train_y[:POINTS]
    loss, own = flat_gradient(task, x, y, shadows=False)
    twin_loss, twin = flat_gradient(task, x, y, shadows=True)
    norm, inner = float(own.norm()), float(own @ twin)
    return {
        "loss": loss,
        "loss_on_shadows": twin_loss,
        "norm": norm,
        "norm_on_shadows": float(twin.norm()),
        "cosine": inner / (norm * float(twin.norm())),
        "polyak": loss / norm**2,
        "length": {f"{w:g}": float((own + w * twin).norm()) / norm for w in weights},
        "progress": {f"{w:g}": 1 + w * inner / norm**2 for w in weights},
    }


def on_the_way(settings: Settings, data: Dataset, states: Sequence[int]) -> dict[str, dict[str, Any]]:
    """What is seen after so many steps of a training with these settings, by the number of steps."""
    torch.set_num_threads(1)
    task = ClassifierTask(replace(settings, seed=SEED), data)
    task.shadow.scale = 1.0
    found, step = {}, 0
    for state in states:
        for number in range(step, state):
            task.step(*divmod(number, task.steps_per_epoch))
        step = state
        found[str(state)] = look(task)
    return found


def middle(seen: Mapping[str, Mapping[str, Any]], name: str, weight: float) -> float:
    """The geometric mean of a factor over the states."""
    values = [max(one[name][f"{weight:g}"], LEAST) for one in seen.values()]
    return exp(sum(map(log, values)) / len(values))


def foretell(settings: Settings, data: Dataset, states: Sequence[int] = STATES) -> dict[str, Any]:
    """Factors on the way of backpropagation, with the largest learning rate."""
    seen = on_the_way(settings, data, states)
    factors = {name: {f"{w:g}": middle(seen, name, w) for w in WEIGHTS} for name in ("length", "progress")}
    return short({"lr": settings.lr, "states": seen, **factors})


def foretell_own(settings: Settings, data: Dataset, states: Sequence[int] = STATES) -> dict[str, Any]:
    """Factors of each weight on the way of SHADOW with that weight, which learns its shadows too."""
    found = {}
    for weight in WEIGHTS:
        seen = on_the_way(replace(settings, weight=weight), data, states)
        factors = {name: middle(seen, name, weight) for name in ("length", "progress")}
        if all(map(isfinite, factors.values())):  # a net that diverged foretells nothing
            found[f"{weight:g}"] = factors
    return short(found)
