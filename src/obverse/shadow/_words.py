"""What a survey of shadows says, in plain sentences; for the page and the terminal. Not for measuring."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from .._core import NONE, named
from .._core import percent as _percent

if TYPE_CHECKING:
    from .results import LayerSurvey, Reading, Survey

HALF = 0.5  # from here on most shadows keep the label of their input
SHUFFLED = "the same net with the entries of each weight shuffled"
SWITCHES = (
    "The positions of the maxima in max pooling were borrowed from the inputs (--switches): these shadows "
    "are not functions of h alone, but know more of the inputs than h says."
)
NORMS = (
    "Each shadow was given the norm of its input (--match-norm), one number that h does not say. Layers that "
    "draw too faintly look better for it."
)
RANDOM = (
    "The net has random weights: none were given. What follows is about its architecture, not about training."
)


FITTED = (
    "The fitted reverse (--reverse fitted): linear maps found on training inputs, not the transposed "
    "weights. It shows what h contains, not what the weights generate. Nets with shuffled and with fresh "
    "random weights can give good images, too: compare with them."
)
NO_UNTRAINED = "There is no untrained control: some module of the net has weights and no reset_parameters."


percent = partial(_percent, decimals=1, missing=NONE)


def digits(value: float | None) -> str:
    """Three significant digits, and no more than a person wants to read of a number that is out of range."""
    if value is None:
        return NONE
    return f"{value:.3g}" if value < 1e4 or value >= 1e6 else f"{value:,.0f}"


def cosine(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}".replace("-", "−")


def subject(survey: Survey) -> str:
    """What was measured, on what."""
    weights = f" with the weights of {named(survey.weights)}" if survey.weights else ""
    data = f" of {named(survey.data)}" if survey.data else ""
    error = "" if survey.test_error is None else f", {percent(survey.test_error)} % of which it gets wrong"
    return f"{_name(survey.model)}{weights}, on {survey.samples:,} test inputs{data}{error}."


def reach(readings: Iterable[Reading]) -> int:
    """How many layers, from the bottom up, keep the label of most inputs."""
    return sum(1 for _ in takewhile(lambda one: (one.agreement or 0.0) >= HALF, readings))


def summary(survey: Survey) -> str:
    """How far up the net can still draw its input."""
    layers = survey.layers
    unlabelled = layers[0].own.agreement is None
    if unlabelled or _says_one_thing(survey):
        first, last = layers[0], layers[-1]
        why = "gives no labels to compare" if unlabelled else "gives most inputs the same label"
        return (
            f"The net {why}. The cosine of input and shadow is "
            f"{cosine(first.own.cosine)} from {_name(first.name)} and {cosine(last.own.cosine)} from "
            f"{_name(last.name)} (shuffled weights: {cosine(first.shuffled.cosine)} and "
            f"{cosine(last.shuffled.cosine)})."
        )
    count, other = (reach(getattr(one, side) for one in layers) for side in ("own", "shuffled"))
    if count == 0:
        return f"Not even shadows from the lowest layer keep the label of most inputs: {_at(layers[0])}."
    which = ("Fitted shadows" if survey.reverse == "fitted" else "Shadows") + (
        " from every layer"
        if count == len(layers)
        else f" from the lowest {count} of {len(layers)} layers"
        if count > 1
        else " from the lowest layer only"
    )
    rest = f"; {_at(layers[count])}" if count < len(layers) else ""
    control = "none" if other == 0 else "all" if other == len(layers) else f"the lowest {other}"
    return (
        f"{which} keep the label of most inputs (with shuffled weights: {control}): "
        f"{_at(layers[count - 1])}{rest}."
    )


def kept(survey: Survey) -> str:
    """How many layers tell an input from others; empty for a file that does not say."""
    known = [
        (one.own.error, min(one.own.unrelated, one.own.varying), one.own.found)
        for one in survey.layers
        if one.own.error is not None and one.own.unrelated is not None and one.own.varying is not None
    ]
    if not known:
        return ""
    better = sum(error < control for error, control, _ in known)
    found = [share for _, _, share in known if share is not None]
    whose = "fitted shadow" if survey.reverse == "fitted" else "shadow"
    again = (
        f" {percent(min(found))} % to {percent(max(found))} % of the inputs are found again among "
        f"{survey.among} by the h of their {whose} (by chance: {percent(1 / survey.among)} %)."
        if found and survey.among > 1
        else ""
    )
    return (
        f"{better} of {len(known)} layers get h back better than h of another input and than the mean of h "
        f"would be.{again}"
    )


def notices(survey: Survey) -> list[str]:
    """What must be known to read the numbers."""
    found = []
    if survey.reverse == "fitted":
        found.append(FITTED)
        if all(one.untrained is None for one in survey.layers):
            found.append(NO_UNTRAINED)
    if survey.random_weights:
        found.append(RANDOM)
    if survey.switches:
        found.append(SWITCHES)
    if survey.match_norm:
        found.append(NORMS)
    if _says_one_thing(survey):
        found.append(
            "The net gives most inputs and most shadows of some layer the same label, so that agreement "
            "there means little: compare it with chance."
        )
    elif survey.test_error is not None and survey.test_error >= HALF and not survey.random_weights:
        found.append(
            f"The net is wrong on {percent(survey.test_error)} % of these inputs: check that weights, data "
            "and --normalize belong together."
        )
    if any(one.own.error is None or one.shuffled.error is None for one in survey.layers):
        found.append("Where a recovery error is missing, h was zero for every input, or not finite.")
    return found


def _says_one_thing(survey: Survey) -> bool:
    """Whether inputs and shadows of some layer share a label for the most part, whichever are compared."""
    return any((one.own.chance or 0.0) >= HALF for one in survey.layers)


def _at(layer: LayerSurvey) -> str:
    own, shuffled = percent(layer.own.agreement), percent(layer.shuffled.agreement)
    return f"{own} % at {_name(layer.name)} ({shuffled} %)"


def _name(name: str) -> str:
    return named(name, "(no name)")
