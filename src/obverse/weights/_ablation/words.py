"""What an ablation says in words, for the page and the terminal. Not for computing anything."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core import FIXED, NONE, counted, listed, named, number, p_value, plain
from .bend import CLEAR, FEWEST, SHARE
from .results import Ablation, LayerAblation, Measure, Score, Treatment, show

CONTROLS: tuple[Treatment, ...] = ("random directions removed", "noise added", "rounded")
MEANINGS: dict[Treatment, str] = {
    "signal only": "The bulk is removed; the signal’s directions stay, at their own singular values.",
    "bulk resampled": "The bulk is replaced by fresh normal numbers of its scale and profile.",
    "bulk shuffled": "The entries of the bulk, without their profile, change places at random.",
    "signal removed": "The signal’s directions are taken out whole.",
    "directions random": "The signal’s directions are replaced by random ones with the same singular values.",
    "random directions removed": "Control: as many random directions are taken out as the signal has.",
    "noise added": "Control: normal noise on all entries, with the energy that “signal removed” takes out.",
    "rounded": "Control: entries rounded to so few bits that the rounding errors have the bulk’s energy.",
}


def percentage(measure: Measure) -> bool:
    return measure != "loss"


def scaled(measure: Measure, value: float) -> float:
    """As it stands on an axis: shares in percent."""
    return 100 * value if percentage(measure) else value


def unit(measure: Measure) -> str:
    return f"{measure},{FIXED}%" if percentage(measure) else measure


def value(measure: Measure, score: Score | None) -> str:
    return NONE if score is None else show(measure, score.value).removesuffix(" %")


def change(measure: Measure, score: Score | None) -> str:
    """With its sign and standard error, in points for shares."""
    if score is None or score.change is None:
        return NONE
    moved = scaled(measure, score.change)
    sign = "+" if moved > 0 else "−" if moved < 0 else ""
    size = f"{abs(moved):.1f}" if percentage(measure) else number(abs(moved))
    if score.error is None:
        return sign + size
    error = scaled(measure, score.error)
    return f"{sign}{size} ± {error:.1f}" if percentage(measure) else f"{sign}{size} ± {number(error)}"


def is_clear(score: Score | None) -> bool:
    """Whether the change is more than three of its standard errors."""
    if score is None or score.change is None:
        return score is not None
    return abs(score.change) > CLEAR * (score.error or 0.0)


def sentences(found: Ablation) -> list[str]:
    """What stands below the headline."""
    layers, said = found.treated, []
    if len(layers) > 1:
        for treatment, words in (
            ("bulk resampled", "A fresh random bulk in one layer at a time"),
            ("signal removed", "Removing the signal of one layer at a time"),
            ("random directions removed", "Removing as many random directions (control)"),
        ):
            effects = [(layer.name, layer.effect(treatment)) for layer in layers]  # type: ignore[arg-type]
            moves = [(name, effect.score) for name, effect in effects if effect is not None]
            if moves:
                said.append(f"{words} {_range(found.measure, moves)}.")
    empty = [named(layer.name, "(no name)") for layer in layers if layer.rank == 0]
    if empty:
        said.append(
            f"No direction stands out in {listed(empty, most=5)}: “signal only” leaves nothing there, and a "
            "fresh bulk replaces everything."
        )
    said += _about_the_curve(found)
    again = [(one.treatment, one.recalibrated) for one in found.together if one.recalibrated is not None]
    if again:
        numbers = [f"{treatment} {show(found.measure, score.value)}" for treatment, score in again]
        if found.recalibrated is not None:
            numbers.insert(0, f"untreated {show(found.measure, found.recalibrated.value)}")
        said.append(
            f"With batch-norm statistics estimated anew on {found.recalibration_inputs:,} inputs without "
            f"labels, all layers at once: {', '.join(numbers)}."
        )
    left = [layer for layer in found.layers if not layer.effects]
    if left:
        reasons = [
            f"{named(layer.name, '(no name)')} ({plain(layer.sentence.removeprefix('cannot tell: '))})"
            for layer in left
        ]
        said.append(f"Not treated: {listed(reasons, most=3)}.")
    return said


def _range(measure: Measure, moves: Sequence[tuple[str, Score]]) -> str:
    known = [(score.change, name) for name, score in moves if score.change is not None]
    if len(known) < len(moves):
        return f"makes the {measure} of {counted(len(moves) - len(known), 'layer')} infinite"
    (low, lowest), (high, highest) = min(known), max(known)
    points = " points" if percentage(measure) else ""
    ends = [
        f"{_signed(measure, one)}{points} ({named(name, 'no name')})"
        for one, name in ((low, lowest), (high, highest))
    ]
    return f"changes the {measure} by between {ends[0]} and {ends[1]}"


def _signed(measure: Measure, moved: float) -> str:
    return change(measure, Score(0.0, moved, None))


def _about_the_curve(found: Ablation) -> list[str]:
    """Whether the curve bends where the decomposition puts the rank."""
    layers = [layer for layer in found.treated if layer.at_rank is not None]
    if not layers:
        return []
    moves = [layer.at_rank.change for layer in layers if layer.at_rank and layer.at_rank.change is not None]
    said = []
    if len(moves) == len(layers):
        points = " points" if percentage(found.measure) else ""
        mean = sum(moves) / len(moves)
        worst = max(moves) if found.measure == "loss" else min(moves)
        said.append(
            f"Keeping only the signal’s k directions of a layer changes the {found.measure} by "
            f"{_signed(found.measure, mean)}{points} on average, "
            f"{_signed(found.measure, worst)}{points} at worst."
        )
    bent = sum(layer.needed is not None for layer in layers)
    reach = f"{100 * SHARE:.0f} % of what all directions add"
    if found.correlation is None and bent < FEWEST:
        said.append(
            f"Too few layers to say whether k is where the curve bends: {counted(bent, 'layer')} with a bend."
        )
    elif found.correlation is None:
        said.append(f"No rank correlation of k and bend: one of them is the same in all {bent} layers.")
    else:
        said.append(
            f"Over {bent} layers, k and the number of directions with which {reach} is reached have a rank "
            f"correlation of {found.correlation.value:.2f} (p = {p_value(found.correlation.p)})."
        )
    return said


def about(layer: LayerAblation) -> str:
    """k and the side it is out of."""
    return f"{layer.rank} of {min(layer.rows, layer.columns)}"


def bend_of(layer: LayerAblation) -> str:
    return (
        NONE
        if layer.needed is None
        else f"{layer.needed:.0f}"
        if layer.needed >= 10
        else f"{layer.needed:.1f}"
    )


def subject(found: Ablation) -> str:
    error = found.untreated.spread or 0.0
    points = f" ± {100 * error:.1f}" if percentage(found.measure) else f" ± {number(error)}"
    own = show(found.measure, found.untreated.value).removesuffix(" %")
    after = " %" if percentage(found.measure) else ""
    against = " with the untreated net’s own answers" if found.measure == "agreement" else ""
    what = f"{found.measure.capitalize()}{against} on {found.inputs:,} inputs"
    return plain(f"{what}; untreated {own}{points}{after}.")
