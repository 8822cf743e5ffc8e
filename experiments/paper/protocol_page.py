"""The part of docs/paper.md on the paper's own protocol, from results/protocol-*. See page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import exp, log
from pathlib import Path
from typing import Any

from .._lab.tables import gaps, percent, small, table
from . import protocol
from .protocol import ARMS, COLUMNS, NARROW, PARTS, WIDE
from .protocol_curves import (
    PAIRS,
    SHOWN,
    SIGNIFICANT,
    Curves,
    between,
    column_of,
    curves_of,
    epoch_of,
    gained,
    mean_curve,
    over_seeds,
    speed,
    title,
)
from .run import RATES, WEIGHTS

FIGURE = "paper-protocol"


def prediction(folder: Path) -> dict[str, Any]:
    place = folder / protocol.PREDICTION
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    return found


def foretold(found: Mapping[str, Any]) -> str:
    """What was seen on the way of backpropagation, state by state."""
    rows = []
    for part in PARTS:
        for state, seen in found.get(part, {}).get("states", {}).items():
            rows.append(
                [
                    title(part),
                    state,
                    f"{seen['norm_on_shadows'] / seen['norm']:.1f}",
                    f"{seen['cosine']:.2f}",
                    f"{seen['polyak']:.2g}",
                ]
            )
    return table(["net", "steps", "‖g′‖ ÷ ‖g‖", "cosine of g, g′", "loss ÷ ‖g‖²"], rows)


def factors(found: Mapping[str, Any]) -> str:
    """Each weight's two factors, on the way of SHADOW with that weight and on that of backpropagation."""
    rows = []
    for part in PARTS:
        own = found.get(part, {}).get("own", {})
        for weight, seen in own.items():
            plain = found[part]
            rows.append(
                [
                    title(part),
                    weight,
                    f"{seen['length']:.1f}",
                    f"{seen['progress']:.1f}",
                    f"{plain['length'][weight]:.1f}",
                    f"{plain['progress'][weight]:.1f}",
                ]
            )
    head = ["net", "weight", "step ×", "progress ×", "step ×, backprop's way", "progress ×, backprop's way"]
    return table(head, rows)


def chosen(folder: Path, part: str) -> dict[str, tuple[float, float]]:
    records = protocol.read(folder / f"protocol-{part}.jsonl").values()
    return {r["arm"]: (r["settings"]["lr"], r["settings"]["weight"]) for r in records}


def results(curves: Curves, last: int, steps: Mapping[str, tuple[float, float]], early: int) -> str:
    rows = []
    for arm, seeds in curves.items():
        lr, weight = steps[arm]
        rows.append(
            [
                arm,
                f"{lr:.3g}",
                f"{weight:g}" if weight else "–",
                str(len(seeds)),
                percent(over_seeds(seeds, early)),
                percent(over_seeds(seeds, last)),
            ]
        )
    head = ["method", "lr", "weight", "seeds", f"error % after {early:,} steps", f"after {last:,} steps"]
    return table(head, rows)


def compared(curves: Curves, column: str, last: int) -> str:
    """Paired differences at the end of what all have."""
    pairs = [pair for pair in PAIRS[column] if set(pair) <= set(curves)]
    if not pairs or min(len(curves[arm]) for pair in pairs for arm in pair) < 2:
        return "Too few seeds for a paired test."
    errors = {arm: over_seeds(seeds, last) for arm, seeds in curves.items()}
    return gaps(pairs, errors)


def told(curves: Curves, arm: str, other: str, last: int, factor: float | None, steps_per_epoch: int) -> str:
    """One sentence: by how much, how many steps sooner, and what was foretold."""
    found = gained(curves, arm, other, last)
    if found is None:
        return f"{arm} against {other} was not run."
    mean, error, p = found
    word = "less" if mean >= 0 else "more"
    size = f"{abs(mean):.2f}" + ("" if error is None else f" ± {error:.2f}")
    sure = "one seed" if p is None else f"p {small(p)}" + ("" if p < SIGNIFICANT else ", not significant")
    sentence = f"{arm} has {size} points {word} error than {other} after {last:,} steps ({sure})"
    quick, late = (between(curves[name], steps_per_epoch) for name in (arm, other))
    quicker = speed(quick, late)
    then = f"the error that {other} has after {max(late):,}"
    if quicker is None:
        return f"{sentence}, and does not reach {then}."
    more = f", and reaches {then} in {quicker:.1f} times fewer steps"
    return f"{sentence}{more}" + ("." if factor is None else f" (foretold: {factor:.1f}).")


def progress_of(found: Mapping[str, Any], part: str, weight: float) -> float | None:
    value: float | None = found.get(part, {}).get("own", {}).get(f"{weight:g}", {}).get("progress")
    return value


def part_text(folder: Path, part: str, found: Mapping[str, Any]) -> str:
    curves, steps = curves_of(folder, part), chosen(folder, part)
    per_epoch = epoch_of(part)
    said = [f"### {title(part)}\n"]
    missing = []
    for column in COLUMNS:
        mine, last = column_of(curves, column, per_epoch)
        if not mine:
            missing.append(column)
            continue
        epochs = f"{last // per_epoch} epoch" + ("s" if last > per_epoch else "")
        absent = [arm for arm in SHOWN[column] if arm not in mine]
        left = f" Not run so far: {', '.join(absent)}." if absent else ""
        weights = {arm: progress_of(found, part, steps[arm][1]) for arm, _ in PAIRS[column] if arm in steps}
        sentences = " ".join(
            told(mine, arm, other, last, weights.get(arm) if column == COLUMNS[0] else None, per_epoch)
            for arm, other in PAIRS[column]
            if {arm, other} <= set(mine)
        )
        early = min(step for step in mean_curve(next(iter(mine.values()))))
        said.append(
            f"*{column.capitalize()}*, {epochs}.{left} {sentences}\n\n{results(mine, last, steps, early)}\n\n"
            f"{compared(mine, column, last)}\n"
        )
    if missing:
        said.append(f"Not run here: {', '.join(missing)}.\n")
    return "\n".join(said)


def choices(folder: Path) -> str:
    """What was chosen, and how often at the edge of the grid."""
    rows = []
    for part in PARTS:
        for arm, (lr, weight) in chosen(folder, part).items():
            if ARMS[arm].like is not None:
                continue
            edge = []
            if lr == protocol.LARGEST:
                edge.append("the largest lr of the grid")
            if weight and weight in (2.0 ** WEIGHTS[0], 2.0 ** WEIGHTS[1]):
                word = "largest" if weight > 1 else "smallest"
                edge.append(f"the {word} weight of the grid")
            rows.append([title(part), arm, f"{lr:g}", f"{weight:g}" if weight else "–", ", ".join(edge)])
    return table(["net", "method", "lr", "weight", "at the edge"], rows)


def on_fewer_points(folder: Path) -> str:
    """Which methods were not chosen by the candidates on file, but by the same climb on fewer points."""
    said = []
    for part in PARTS:
        tried = protocol.read(folder / f"protocol-{part}-tuning.jsonl")
        for arm, (lr, weight) in chosen(folder, part).items():
            if ARMS[arm].like is not None:
                continue
            a, b = round(log(lr / 0.001, 4)), round(log(weight, 2)) if weight else None
            near = [(a - 1, b), (a, b), (a + 1, b)]
            near += [] if b is None else [(a, b - 1), (a, b + 1)]
            keys = [
                f"{arm}, a = {x}" + ("" if y is None else f", b = {y}")
                for x, y in near
                if RATES[0] <= x <= RATES[1] and (y is None or WEIGHTS[0] <= y <= WEIGHTS[1])
            ]
            if not all(key in tried for key in keys):
                said.append(f"{arm} on {title(part)}")
    if not said:
        return ""
    return (
        f"The choices of {'; '.join(said)} are of the same climb on the first 2,000 of the held-out points; "
        "the same command makes them anew on all."
    )


def verdict(folder: Path, found: Mapping[str, Any]) -> str:
    """Whether the paper's picture appears, and what is left of it; of the data sets that were run."""
    seen: dict[str, list[str]] = {"faster": [], "not": [], "kept": [], "gone": []}
    for part in NARROW:
        curves = curves_of(folder, part)
        for column, yes, no in ((COLUMNS[0], "faster", "not"), (COLUMNS[1], "kept", "gone")):
            mine, last = column_of(curves, column, epoch_of(part))
            arm, other = PAIRS[column][0]
            gap = gained(mine, arm, other, last) if mine else None
            if gap is None:
                continue
            better = gap[0] > 0 and gap[2] is not None and gap[2] < SIGNIFICANT
            seen[yes if better else no].append(title(part))
    lines = []
    if seen["faster"]:
        lines.append(
            f"In the paper's own protocol SHADOW is significantly better than backpropagation, without "
            f"dropout, on {' and '.join(seen['faster'])}, as far as it was run: the paper's picture appears."
        )
    if seen["not"]:
        lines.append(f"It does not, or not significantly, on {' and '.join(seen['not'])}.")
    if seen["gone"]:
        lines.append(
            f"Against backpropagation with steps as long as SHADOW's it is not significantly better on "
            f"{' and '.join(seen['gone'])}."
        )
    if seen["kept"]:
        lines.append(
            f"Against backpropagation with steps as long as SHADOW's it is still significantly better on "
            f"{' and '.join(seen['kept'])}."
        )
    return " ".join(lines) if lines else "Nothing of it has been run yet."


def accuracy(folder: Path, found: Mapping[str, Any]) -> str:
    """How well the foretold speed met the measured one: the geometric mean of their ratio."""
    ratios = []
    for part in PARTS:
        curves, steps = curves_of(folder, part), chosen(folder, part)
        mine, _ = column_of(curves, COLUMNS[0], epoch_of(part))
        for arm, other in PAIRS[COLUMNS[0]]:
            if {arm, other} <= set(mine):
                quick, late = (between(mine[name], epoch_of(part)) for name in (arm, other))
                measured = speed(quick, late)
                predicted = progress_of(found, part, steps[arm][1])
                if measured and predicted:
                    ratios.append(measured / predicted)
    if not ratios:
        return ""
    middle = exp(sum(map(log, ratios)) / len(ratios))
    less = " The sign is as foretold, the size is not." if 0 < max(ratios) < 0.75 else ""
    return (
        f" Over {len(ratios)} comparisons the measured factor is {middle:.2f} times the foretold one "
        f"(from {min(ratios):.2f} to {max(ratios):.2f}).{less}"
    )


def not_run(folder: Path) -> str:
    wide = [title(part) for part in WIDE if not curves_of(folder, part)]
    narrow = [title(part) for part in NARROW if not curves_of(folder, part)]
    absent = ", ".join([*narrow, *wide])
    return f"Not run at all here: {absent}." if absent else ""


def text(folder: Path) -> str:
    found = prediction(folder)
    if not found:
        return ""
    shown = "\n".join(part_text(folder, part, found) for part in PARTS if curves_of(folder, part))
    tuned = "; ".join(f"{title(part)}: {PARTS[part].tuning_steps:,} steps" for part in PARTS)
    return f"""## The paper's protocol, to the letter

{verdict(folder, found)}

Plain SGD without momentum, learning rates 4^a·0.001 with a from −2 to 2 and nothing larger, weights 2^b with
b from −3 to 3, batches of 100, x′ = r(W₁ r(W₂ h̃₂)) without any scale, with and without dropout 0.5. Rates and
weights were chosen on 10,000 held-out points, in short runs where the paper trains to the end ({tuned}), by
the climb described [above](#what-was-run), within this grid. *Equal step length* is backpropagation with the
learning rate times ‖g + w·g′‖ ÷ ‖g‖, as foretold from gradient norms; *momentum 0.9* chooses rate and weight
anew from the same grid. Products are in bfloat16. `python -m experiments.paper.protocol --data-root DIR` runs
it and goes on where it stopped: longer runs continue the shorter ones.

![Errors under the paper's protocol, with equal steps, with momentum](figures/{FIGURE}.svg)

Mean over seeds, band ± one standard error. Between the ends of epochs errors are those of the first 2,000
test images, on which alone it is told how many times fewer steps one method needs. {not_run(folder)}

### What gradient norms foretold

On a net of another seed: g is backpropagation's gradient, g′ that of the shadows, both over 2,000 training
images. First on the way of backpropagation at the largest learning rate. A loss ÷ ‖g‖² far above
{protocol.LARGEST:g} says that the grid's largest rate is small for it:

{foretold(found)}

A weight w makes the step ‖g + w·g′‖ ÷ ‖g‖ times as long (*step ×*), and the loss on images falls
1 + w⟨g, g′⟩ ÷ ‖g‖² times as fast (*progress ×*): geometric means over the start and 100, 300 and 500 steps,
on the way of SHADOW with that weight, which learns its shadows too, and on that of backpropagation, which
does not. If SHADOW is a larger learning rate and nothing else, its progress is how many times fewer steps it
needs. What is seen on the way of backpropagation was written before all runs; that on the way of SHADOW
before those on CIFAR, and after the first on MNIST, of which it uses nothing.{accuracy(folder, found)}

{factors(found)}

### What was chosen

{choices(folder)}

{on_fewer_points(folder)}

{shown}
"""
