"""What the numbers say, in plain sentences. Not for computing them; and nothing they do not carry."""

from __future__ import annotations

from pathlib import PurePath

from .._core import FIXED, counted, listed, mean_and_se, p_value, percent, quoted, signed, spelled
from ..data import NAMES
from . import Settings
from ._compare import Row
from ._shown import Missing, Results

CLOSE = 0.01  # one point: the distance at which shadow error is said to follow real error
FAILED = 0.5  # an error from which closeness of shadow and real error says nothing good
SIGNIFICANT = 0.05
MANY = 5  # more variants than this are left to the table


def data_name(settings: Settings) -> str:
    """The data set without the folders it lies in, which would name the machine or its user."""
    return settings.data if settings.data in NAMES else PurePath(settings.data).name or settings.data


def title(results: Results) -> str:
    name = data_name(results.settings)
    if results.is_comparison:
        count = len(results.plan)
        word = spelled(count).capitalize()
        return f"{word} {'way' if count == 1 else 'ways'} to train a net on {name}"
    return f"A net trained on {name}"


def lead(results: Results, variant: str) -> str:
    """What the images at the top are, and how many shadows the trained net takes for their images."""
    named = {row.variant: row for row in results.table.rows}
    row = named.get(variant, results.table.rows[0])
    whose = f" ({row.variant})" if results.is_comparison else ""
    said = (
        "Run backwards with its own weights, from a hidden layer down, a net generates an image: its "
        f"shadow. Above: images of {data_name(results.settings)} that it was not trained on, their shadows "
        f"by the net before training, and by the trained net{whose}."
    )
    if row.label_agreement is None:
        return said
    agreed = f"{percent(row.label_agreement, decimals=1)}{FIXED}%"
    return f"{said} The trained net gives {agreed} of the shadows the label it gives their images."


def summary(results: Results) -> list[str]:
    """What stands at the top: short paragraphs, one a question."""
    if not results.is_comparison:
        return [" ".join(part for part in (_one_run(results), _untrained(results)) if part)]
    judged = " ".join(part for part in (_errors(results), _judged(results)) if part)
    parts = (_tracking(results), _untrained(results), _caveat(results))
    return [_what_was_compared(results), judged, " ".join(part for part in parts if part)]


def missing(results: Results) -> str:
    """Which runs are not there yet; empty when all are."""
    if not results.missing:
        return ""
    if not results.is_comparison:
        epoch, last = results.missing[0].epoch, results.settings.epochs
        return (
            f"This run is not finished: it has reached epoch {epoch} of {last}. The numbers are provisional."
        )
    planned = len(results.plan) * len(results.seeds)
    gaps = listed([_gap(one, results.plan[one.variant].epochs) for one in results.missing], most=20)
    verb = "run is" if len(results.missing) == 1 else "runs are"
    return (
        f"{len(results.missing)} of {planned} planned {verb} not finished and left out: {gaps}. "
        f"They go on with: obverse compare --resume {quoted(results.name)}"
    )


def _gap(one: Missing, epochs: int) -> str:
    state = "not begun" if one.epoch is None else f"at epoch {one.epoch} of {epochs}"
    return f"{one.variant} with seed {one.seed} ({state})"


def _net(settings: Settings) -> str:
    if settings.net == "allconv":
        return _allconv(settings)
    if not settings.hidden:
        return "A net without hidden layers"
    widths = listed([str(width) for width in settings.hidden])
    layers = "hidden layers" if len(settings.hidden) > 1 else "a hidden layer"
    return f"A ReLU net with {layers} of {widths} units"


def _allconv(settings: Settings) -> str:
    count = 1 + 2 * settings.blocks * len(settings.widths)
    kind = "residual net" if settings.shortcut else "net without shortcuts"
    norm = " and batch norm" if settings.norm else ""
    widths = listed([str(width) for width in settings.widths])
    return f"An all-convolutional {kind} of {count} convolutions{norm}, with {widths} channels,"


def _points(settings: Settings) -> str:
    drawn = "" if settings.train_size is None else f" ({settings.train_size:,} training points)"
    return f"{data_name(settings)}{drawn}"


def _what_was_compared(results: Results) -> str:
    settings, count = results.settings, len(results.seeds)
    seeds = "one seed" if count == 1 else f"{spelled(count)} seeds"
    pairing = "" if count == 1 else ", so that their differences can be taken seed by seed"
    return (
        f"{_net(settings)} was trained on {_points(settings)} in "
        f"{spelled(len(results.plan))} ways, with {seeds} each; runs with the same seed see the same "
        f"batches{pairing}."
    )


def _errors(results: Results) -> str:
    rows = results.table.rows
    last = {run.final["epoch"] for runs in results.runs.values() for run in runs}
    when = f"after {counted(max(last), 'epoch')}" if len(last) == 1 else "at the last epoch"
    name = results.error_name
    if len(rows) > MANY:
        best, worst = min(rows, key=lambda row: row.test_error), max(rows, key=lambda row: row.test_error)
        return (
            f"The {name} {when} lies between {_error(best)} ({best.variant}) and {_error(worst)} "
            f"({worst.variant})."
        )
    each = listed([f"{_error(row)} for {row.variant}" for row in rows])
    spread = " (mean ± standard error)" if any(row.test_error_se is not None for row in rows) else ""
    return f"The {name} {when}{spread} is {each}."


def _error(row: Row) -> str:
    return f"{percent(row.test_error, row.test_error_se)}{FIXED}%"


def _judged(results: Results) -> str:
    reference, *others = results.table.rows
    others = [row for row in others if row.difference is not None]
    if not others:
        return ""
    if all(row.difference_se is None for row in others):
        return "There is one run a variant, so whether the differences are more than chance cannot be said."
    tested = [row for row in others if row.p_value is not None]
    if not tested:
        return ""
    found = [row for row in tested if row.p_value is not None and row.p_value < SIGNIFICANT]
    if not found:
        smallest = min(tested, key=lambda row: row.p_value or 0.0)
        return (
            f"None of the differences to {reference.variant} is significant at the "
            f"{100 * SIGNIFICANT:g}{FIXED}% level (closest: {_difference(smallest)}). That is not proof that "
            "there are none."
        )
    said = f"Against {reference.variant}, paired by seed: {listed([_difference(row) for row in found])}"
    rest = len(tested) - len(found)
    if rest:
        said += f"; the other {'difference is' if rest == 1 else f'{rest} differences are'} not significant"
    if len(tested) == 1:
        return said + "."
    limit = SIGNIFICANT / len(tested)
    strict = [row.variant for row in found if row.p_value is not None and row.p_value < limit]
    kept = listed(strict) if strict else "none of them"
    corrected = f"Corrected for {spelled(len(tested))} comparisons (p{FIXED}<{FIXED}{limit:.3f})"
    return f"{said}. {corrected}, {kept} would remain."


def _difference(row: Row) -> str:
    assert row.difference is not None
    return f"{row.variant} {signed(row.difference, row.difference_se)} points, p{FIXED}{_equals(row.p_value)}"


def _equals(p: float | None) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"={FIXED}{text}"


def gap(results: Results, variant: str) -> tuple[float, float | None]:
    """Shadow error minus real error at the last epoch, paired within each run."""
    return mean_and_se([run.final["shadow_error"] - run.final["test_error"] for run in results.runs[variant]])


def _tracking(results: Results) -> str:
    gaps = {variant: gap(results, variant) for variant in results.shadowed}
    if not gaps:
        return ""
    if len(gaps) > MANY:
        count = sum(abs(mean) <= CLOSE for mean, _ in gaps.values())
        return (
            f"The error on shadows is within one point of the {results.error_name} for "
            f"{spelled(count) if count else 'none'} of the {spelled(len(gaps))}."
        )
    near = [name for name, (mean, _) in gaps.items() if abs(mean) <= CLOSE]
    far = [name for name in gaps if name not in near]
    parts = []
    if near:
        each = listed([f"{name} ({signed(*gaps[name])} points)" for name in near])
        parts.append(f"is within one point of the {results.error_name} for {each}")
    if far:
        each = listed([f"{name} ({signed(*gaps[name])} points)" for name in far])
        parts.append(
            f"is more than one point from {'it' if near else f'the {results.error_name}'} for {each}"
        )
    return f"The error on shadows {', and '.join(parts)}."


def _untrained(results: Results) -> str:
    """A net whose units have died gives one answer to everything, and so agrees with itself perfectly."""
    rows = [row for row in results.table.rows if row.variant in results.shadowed]
    names = [row.variant for row in rows if row.test_error >= FAILED]
    if not names:
        return ""
    where = f"the error of {listed(names)}" if results.is_comparison else "such an error"
    return (
        f"At {where}, closeness of the two means little: a net that gives every input the same "
        "answer has it too."
    )


def _caveat(results: Results) -> str:
    lrs = {settings.lr for settings in results.plan.values()}
    common = f" (lr {lrs.pop():g} for all)" if len(lrs) == 1 else ""
    said = f"Nothing here was tuned variant by variant{common}."
    if any(settings.weight > 0 and not settings.normalize for settings in results.plan.values()):
        said += " A second loss term also lengthens each step, which by itself can change the error."
    shadowed = [one for one in results.plan.values() if one.has_shadows]
    kinds = {(one.layer, one.keep, one.smooth, one.match_norm) for one in shadowed}
    if len(kinds) > 1:
        said += (
            " Each variant is measured on shadows made its own way (layer, sampling, smoothing), so their "
            "shadow errors, same labels and recovery errors do not compare like with like."
        )
    return said


def _one_run(results: Results) -> str:
    settings, row = results.settings, results.table.rows[0]
    how = (
        f"with shadows of weight {settings.weight:g}"
        if settings.weight and settings.control is None
        else f"with the control “{settings.control}” in place of shadows"
        if settings.weight
        else "by plain backpropagation"
    )
    dropout = f" and dropout {settings.dropout:g}" if settings.dropout else ""
    run = results.runs[row.variant][0]
    return (
        f"{_net(settings)} was trained on {_points(settings)} {how}{dropout}. After {run.final['epoch']} of "
        f"{settings.epochs} epochs its {results.error_name} is {percent(row.test_error)}{FIXED}%"
        f"{_on_shadows(row)} It is one run: another seed would give somewhat different numbers."
    )


def _on_shadows(row: Row) -> str:
    if row.shadow_error is None:
        return "."
    distance = row.shadow_error - row.test_error
    near = f"{signed(distance)} points away" if abs(distance) > CLOSE else "within one point of it"
    return (
        f"; on the shadows of the same images it is {percent(row.shadow_error)}{FIXED}%, {near}. Image and "
        f"shadow get the same label for {percent(row.label_agreement)}{FIXED}% of them."
    )
