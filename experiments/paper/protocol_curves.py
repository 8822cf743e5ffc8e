"""What runs of the paper's protocol have in common: whole epochs, the same seeds. See protocol_page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from obverse._core.statistics import mean_and_se
from obverse.training._compare import paired_p_value

from . import protocol
from .protocol import BOTH, COLUMNS, DROPOUT, DROPOUT_STEP, PARTS, PLAIN, SHADOW, STEP

DATA = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
LATER = ", momentum"
SHOWN = {  # the lines of each column, with colour and marker
    COLUMNS[0]: {PLAIN: 0, SHADOW: 1, DROPOUT: 2, BOTH: 3},
    COLUMNS[1]: {STEP: 0, SHADOW: 1, DROPOUT_STEP: 2, BOTH: 3},
    COLUMNS[2]: {PLAIN + LATER: 0, SHADOW + LATER: 1, DROPOUT + LATER: 2, BOTH + LATER: 3},
}
PAIRS = {  # what each column asks
    COLUMNS[0]: ((SHADOW, PLAIN), (BOTH, DROPOUT)),
    COLUMNS[1]: ((SHADOW, STEP), (BOTH, DROPOUT_STEP)),
    COLUMNS[2]: ((SHADOW + LATER, PLAIN + LATER), (BOTH + LATER, DROPOUT + LATER)),
}
Curve = dict[int, float]  # error by step
Curves = dict[str, dict[int, Curve]]  # by arm and seed
SIGNIFICANT = 0.05


def curves_of(folder: Path, part: str) -> Curves:
    """What is there, with the untrained net left out; of what diverged there is no curve."""
    found: Curves = {}
    for record in protocol.read(folder / f"protocol-{part}.jsonl").values():
        if not record["diverged"]:
            curve = {point["step"]: point["test_error"] for point in record["curve"] if point["step"]}
            found.setdefault(record["arm"], {})[record["settings"]["seed"]] = curve
    return found


def epoch_of(part: str) -> int:
    """Steps of an epoch."""
    return {"mnist": 600, "cifar10": 500, "cifar100": 500}[PARTS[part].data]


def title(part: str) -> str:
    return f"{DATA.get(PARTS[part].data, PARTS[part].data)}, width {PARTS[part].width}"


def column_of(curves: Curves, column: str, steps_per_epoch: int) -> tuple[Curves, int]:
    """The arms of a column over the seeds that all of them have to the end of the same whole epoch.

    An arm that was not begun is left out; so is a seed that another arm does not have.
    """
    there = {arm: curves[arm] for arm in SHOWN[column] if curves.get(arm)}
    if not there:
        return {}, 0
    lengths = {
        arm: {seed: max(curve, default=0) // steps_per_epoch for seed, curve in seeds.items()}
        for arm, seeds in there.items()
    }
    usual = max(max(of_arm.values()) for of_arm in lengths.values())
    best: tuple[int, int, int] = (0, 0, 0)  # arms, seeds, epochs
    for epochs in range(1, usual + 1):
        arms = [arm for arm, of_arm in lengths.items() if max(of_arm.values()) >= epochs]
        seeds = set.intersection(*({s for s, n in lengths[arm].items() if n >= epochs} for arm in arms))
        best = max(best, (len(arms), len(seeds), epochs))
    epochs = best[2]
    arms = [arm for arm, of_arm in lengths.items() if epochs and max(of_arm.values()) >= epochs]
    if not arms:
        return {}, 0
    seeds = set.intersection(*({s for s, n in lengths[arm].items() if n >= epochs} for arm in arms))
    last = epochs * steps_per_epoch
    return {
        arm: {
            seed: {step: error for step, error in there[arm][seed].items() if step <= last}
            for seed in sorted(seeds)
        }
        for arm in arms
    }, last


def over_seeds(seeds: Mapping[int, Curve], step: int) -> list[float]:
    return [curve[step] for curve in seeds.values()]


def mean_curve(seeds: Mapping[int, Curve]) -> Curve:
    steps = sorted(set.intersection(*(set(curve) for curve in seeds.values())))
    return {step: mean_and_se(over_seeds(seeds, step))[0] for step in steps}


def between(seeds: Mapping[int, Curve], steps_per_epoch: int) -> Curve:
    """The mean curve without the ends of epochs: all of it measured on the same test images."""
    return {step: error for step, error in mean_curve(seeds).items() if step % steps_per_epoch}


def speed(quick: Curve, late: Curve) -> float | None:
    """How many times fewer steps the first curve needs for the error that the other ends with.

    None if it never has it. Between two measurements the error is taken to fall as a straight line.
    """
    end = max(late)
    goal, before = late[end], (0, float("nan"))
    for step, error in quick.items():
        if error <= goal:
            earlier, height = before
            if earlier == 0 or height == error:
                return end / step
            return end / (earlier + (step - earlier) * (height - goal) / (height - error))
        before = (step, error)
    return None


def gained(
    curves: Curves, arm: str, other: str, last: int
) -> tuple[float, float | None, float | None] | None:
    """Points by which the first is better, their standard error and p; None where one is not there."""
    if not {arm, other} <= set(curves):
        return None
    gap = [
        100 * (b - a)
        for a, b in zip(over_seeds(curves[arm], last), over_seeds(curves[other], last), strict=True)
    ]
    mean, error = mean_and_se(gap)
    return mean, error, paired_p_value(gap) if len(gap) > 1 else None
