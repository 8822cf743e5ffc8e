"""What is said of the update of a layer. Not for measuring it."""

from __future__ import annotations

from ..._core import FIXED, NONE, counted, number
from .product import Standing
from .results import AdaptedLayer, OnBase

INITIAL = 0.01  # from this p on A is called as it was initialized


def sentence(
    rank: int, effective: float, shares: tuple[int, int], above: Standing | None, initial: float | None
) -> str:
    """The update alone: its rank is bounded by construction, which is no finding."""
    parts = [
        f"rank at most {rank} by construction; {counted(shares[0], 'direction')} carry 90{FIXED}% of its "
        f"energy, {shares[1]} carry 99{FIXED}% (effective rank {effective:.1f})"
    ]
    if shares[0] == 1:
        parts[0] = parts[0].replace("1 direction carry", "1 direction carries")
    if shares[1] == 1:
        parts[0] = parts[0].replace(" 1 carry", " 1 carries")
    if above is not None:
        parts.append(_standing(above))
    if initial is not None and initial >= INITIAL:
        parts.append("lora_A is still like the uniform random numbers it was initialized with")
    return "; ".join(parts)


def remark(layer: AdaptedLayer) -> str:
    """What the columns of a table do not say."""
    if layer.is_zero:
        return layer.sentence
    parts = [] if layer.on_base is None or not layer.on_base.note else [layer.on_base.note]
    if layer.initial_p is not None and layer.initial_p >= INITIAL:
        parts.append("lora_A still like its start")
    return "; ".join(parts)


def _standing(above: Standing) -> str:
    level = f"{100 / (above.draws + 1):g}{FIXED}%"
    if not above.count:
        return f"no direction exceeds the median one by more than random factors would have it ({level})"
    said = "direction exceeds" if above.count == 1 else "directions exceed"
    return f"at least {above.count} {said} the median one by more than random factors would have it ({level})"


def on_base(found: OnBase, rank: int) -> str:
    """The update beside its base."""
    parts = [f"its norm is {number(100 * found.relative)}{FIXED}% of the base layer's"]
    if found.above is not None:
        each = "direction is" if found.above == 1 else "directions are"
        none = "no direction is" if not found.above else f"{found.above} of {rank} {each}"
        parts.append(f"{none} strong enough to show in the base's bulk")
    if found.note:
        parts.append(found.note)
    if found.is_told:
        bound = "at least " if found.is_bound else ""
        parts.append(f"signal from base to base + adapter: {bound}{found.before} → {found.after} directions")
    return "; ".join(parts)


def uneven(layer: AdaptedLayer) -> str:
    """Directions beyond what random factors have; at least so many."""
    if layer.standing is None:
        return NONE
    return f"≥{layer.standing}" if layer.standing else "0"


def turn(found: OnBase) -> str:
    """The signal's directions before and after."""
    if not found.is_told:
        return NONE
    least = "≥" if found.is_bound else ""
    return f"{least}{found.before} → {least}{found.after}"
