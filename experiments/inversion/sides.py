"""What run.py compares: shadows and the optimizer, each timed from x on. Not run by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from obverse.shadow import Shadow
from obverse.shadow._controls import Shuffled
from obverse.shadow._recovery import relative_error

from .peer import invert
from .trained_nets import Trained


@dataclass(frozen=True)
class Plan:
    """How much is measured. `iterations` of the optimizer, `refine` steps of the shadow: where to look."""

    images: int = 100
    batch: int = 50
    singles: int = 7  # images inverted one at a time, for the seconds at batch 1
    calibration: int = 200  # training images that choose the shadow's scales
    tuning: int = 8  # training images that choose the optimizer's settings
    iterations: tuple[int, ...] = (25, 50, 100, 200, 400)
    refine: tuple[int, ...] = (1, 2, 5, 10, 20, 40)
    seed: int = 0


QUICK = Plan(8, 4, 2, 64, 4, (2, 5, 10), (1, 2), 0)
Marked = dict[int, tuple[float, Tensor]]  # steps done → seconds until then, the images
Method = Callable[[Tensor], Marked]


def features_of(net: nn.Sequential, layer: str) -> nn.Sequential:
    """The part of the net up to a layer, behind its ReLU: what the optimizer runs, and no more."""
    first, children = layer.partition(".")[0], list(net.named_children())
    end = [name for name, _ in children].index(first) + 1
    while isinstance(children[end][1], nn.ReLU):
        end += 1
    return nn.Sequential(*(module for _, module in children[:end]))


def once(run: Callable[[Tensor], Tensor], steps: int = 0, repetitions: int = 1) -> Method:
    """A method with one result; quick ones are run some times for the median of their seconds."""

    def method(x: Tensor) -> Marked:
        seconds = []
        for _ in range(repetitions):
            start = perf_counter()
            found = run(x)
            seconds.append(perf_counter() - start)
        return {steps: (median(seconds), found)}

    return method


def optimizer(
    features: nn.Module,
    marks: tuple[int, ...],
    settings: Mapping[str, Any],
    seed: int,
    start: Callable[[Tensor], Tensor] | None = None,
) -> Method:
    """The peer from noise, or from what `start` makes of x; the time counts from x, as for shadows."""

    def method(x: Tensor) -> Marked:
        found: Marked = {}
        begin = perf_counter()

        def mark(done: int, image: Tensor) -> None:
            if done in marks:
                found[done] = (perf_counter() - begin, image)

        with torch.no_grad():
            target = features(x)
        first = None if start is None else start(x)
        generator = torch.Generator().manual_seed(seed)
        invert(
            features,
            target,
            x.shape[1:],
            max(marks),
            start=first,
            generator=generator,
            on_iteration=mark,
            **settings,
        )
        return found

    return method


def tuned(features: nn.Module, x: Tensor, plan: Plan) -> dict[str, Any]:
    """The optimizer's settings with the least recovery error at the last iteration, on training images.

    One setting after the other, each from a short list: method and step size, then the weight of total
    variation, that of the norm, and the spread of the noise it starts from.
    """
    with torch.no_grad():
        target = features(x)

    def error(settings: Mapping[str, Any]) -> float:
        _, found = optimizer(features, plan.iterations[-1:], settings, plan.seed)(x)[plan.iterations[-1]]
        with torch.no_grad():
            result = relative_error(features(found), target)
        return result if result == result else float("inf")  # diverged

    best: dict[str, Any] = {"method": "adam", "rate": 0.1, "tv": 0.1, "norm": 0.001, "spread": 0.1}
    least = error(best)
    rates = [("adam", 0.05), ("adam", 0.2), ("momentum", 1.0), ("momentum", 3.0), ("momentum", 10.0)]
    rounds: list[list[dict[str, Any]]] = [
        [{"method": method, "rate": rate} for method, rate in rates],
        [{"tv": 0.01}, {"tv": 1.0}],
        [{"norm": 0.01}],
        [{"spread": 0.5}],
    ]
    for changes in rounds:
        tried = [(error(best | change), best | change) for change in changes]
        found, settings = min(tried, key=lambda pair: pair[0])
        if found < least:
            least, best = found, settings
    return best


class Shadows:
    """The shadows of one net and of the same net with shuffled weights; scales chosen on training images."""

    def __init__(self, trained: Trained, plan: Plan) -> None:
        some = trained.data.train_x[: plan.calibration]
        shuffled = Shuffled(trained.net, plan.seed).refresh()
        self.theory, self.calibrated = Shadow(trained.net), Shadow(trained.net)
        self.shuffled, self.shuffled_calibrated = Shadow(shuffled), Shadow(shuffled)
        self.calibrated.calibrate(some)
        self.shuffled_calibrated.calibrate(some)


def methods(
    shadows: Shadows, features: nn.Module, layer: str, settings: Mapping[str, Any], plan: Plan
) -> dict[str, Method]:
    """Everything that is compared on one layer, by name."""
    theory, calibrated = shadows.theory, shadows.calibrated

    def control(shadow: Shadow, **options: Any) -> Method:
        return once(lambda x: shadow.from_hidden(x, theory.infer(x, layer), layer, **options))

    def refined(steps: int) -> Method:
        return once(lambda x: calibrated.of(x, layer, refine=steps), steps)

    return {
        "shadow": once(lambda x: theory.of(x, layer), repetitions=5),
        "shadow, calibrated": once(lambda x: calibrated.of(x, layer), repetitions=5),
        "shadow, match_norm": once(lambda x: theory.of(x, layer, match_norm=True), repetitions=5),
        "shuffled": control(shadows.shuffled),
        "shuffled, calibrated": control(shadows.shuffled_calibrated),
        "shuffled, match_norm": control(shadows.shuffled, match_norm=True),
        **{f"refine {steps}": refined(steps) for steps in plan.refine},
        "optimizer": optimizer(features, plan.iterations, settings, plan.seed),
        "optimizer from shadow": optimizer(
            features, plan.iterations, settings, plan.seed, lambda x: calibrated.of(x, layer)
        ),
    }


def alternate(sides: Mapping[str, Method], batches: list[Tensor]) -> dict[str, list[Marked]]:
    """Each side on each batch; the order turns round from batch to batch."""
    for method in sides.values():  # warm up
        method(batches[0][:1])
    found: dict[str, list[Marked]] = {name: [] for name in sides}
    for number, x in enumerate(batches):
        gc.collect()
        for name, method in list(sides.items())[:: 1 if number % 2 == 0 else -1]:
            found[name].append(method(x))
    return found
