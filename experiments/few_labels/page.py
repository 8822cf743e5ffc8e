"""Put the tables of few labels into docs/few-labels.md, between its marks, and draw its figure.

    python -m experiments.few_labels.page
    python -m experiments.few_labels.page --quick      (what --quick runs left, into their own folder)

A method is shown where all its seeds are there. Nothing is computed from anything but the result files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse.present.palette import GREY, LIGHT
from obverse.training._compare import paired_p_value

from .._lab.drawing import new_figure, save, tidy
from .._lab.quick_pages import asked_for_quick, page_of
from .._lab.tables import differences, gaps, holm, percent, put_between_marks, table
from . import run as few
from .methods import EVERY, FITTED, METHODS, REFIT

TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "digits": "Digits, 8×8"}
# A colour each that colour-blind readers can distinguish, and a marker each for print.
STYLES = {
    "plain": (LIGHT[6], "o"),
    "dropout": (LIGHT[4], "s"),
    "denoising pretraining": (LIGHT[5], "D"),
    "noise": (LIGHT[2], "^"),
    "SHADOW": (LIGHT[1], "v"),
    "SHADOW consistency": (LIGHT[3], "P"),
    "SHADOW + dropout": (LIGHT[0], "X"),
    "label smoothing": (GREY, "*"),
}
# What the parts of a shadow add: each pair differs in one thing.
QUESTIONS = (
    ("SHADOW", "noise"),
    ("SHADOW", "shuffled shadows"),
    ("SHADOW consistency", "SHADOW"),
    ("SHADOW consistency", "noise consistency"),
    ("SHADOW consistency", "shuffled consistency"),
    ("noise + SHADOW", "noise"),
    ("SHADOW + dropout", "dropout"),
)
# The same for shadows by the fitted reverse; with what they are compared comes from the cells above.
FITTED_QUESTIONS = (
    ("fitted", "plain"),
    ("fitted", "SHADOW"),
    ("fitted", "fitted, shuffled weights"),
    ("fitted", "noise"),
    ("fitted", "mixup"),
    ("fitted consistency", "plain"),
    ("fitted consistency", "fitted"),
    ("fitted consistency", "SHADOW consistency"),
    ("fitted consistency", "noise consistency"),
)
BESIDE = ("plain", "SHADOW", "SHADOW consistency", "noise", "noise consistency", "mixup")
Errors = dict[str, list[float]]  # by method, one a seed
Chosen = dict[str, few.Setting]


def few_results(plan: few.Plan, folder: Path) -> dict[few.Cell, tuple[Errors, Chosen]]:
    """Test errors and chosen settings of each cell, methods with all seeds only."""
    tuning, final = few.read(folder / "tuning.jsonl"), few.read(folder / "final.jsonl")
    found: dict[few.Cell, tuple[Errors, Chosen]] = {}
    for cell in plan.cells:
        errors, chosen = {}, {}
        for method in cell.methods:
            if all(few.key_of(trial) in tuning for trial in few.tuning_trials(plan, cell, method)):
                setting = few.choose(plan, cell, method, tuning)
                keys = [few.key_of(trial) for trial in few.final_trials(plan, cell, method, setting)]
                if all(key in final for key in keys):
                    errors[method], chosen[method] = [final[key]["error"] for key in keys], setting
        if "plain" in errors or (errors and set(cell.methods) <= set(FITTED)):
            found[cell] = (errors, chosen)
    return found


def against_plain(errors: Errors) -> list[tuple[str, str]]:
    return [(method, "plain") for method in errors if method != "plain"]


def questions(errors: Errors) -> list[tuple[str, str]]:
    return [pair for pair in QUESTIONS if pair[0] in errors and pair[1] in errors]


def few_page(
    plan: few.Plan,
    found: dict[few.Cell, tuple[Errors, Chosen]],
    longer: dict[few.Cell, tuple[Errors, Chosen]],
    fitted: dict[few.Cell, tuple[Errors, Chosen]],
    figure: str,
) -> str:
    parts = [
        f"![Error against the number of labels, and its difference from plain training]({figure})",
        "Top: test error; bottom: paired difference from plain training; bars: ± one standard error.",
        "## In short",
        "In how many of the cells below (a data set with a number of labels) the first is better or worse "
        "than the second: paired t tests over the seeds, p < 0.05 after Holm's adjustment within the cell.",
        summary(found, lambda errors: (against_plain(errors), questions(errors))),
    ]
    together = beside(found, fitted)
    if together:
        parts += ["## Shadows by the fitted reverse", *fitted_part(plan, together)]
    for data in dict.fromkeys(cell.data for cell in found):
        parts += [f"## {TITLES[data]}", *data_part(plan, {c: r for c, r in found.items() if c.data == data})]
    if longer:
        parts += ["## Longer", *longer_part(plan, longer)]
    there = found | longer
    missing = [
        f"{name_of(cell)}: {', '.join(gone) if cell in there else 'all'}"
        for cell in (*plan.cells, *plan.longer)
        if (gone := [m for m in cell.methods if m not in there.get(cell, ({}, {}))[0]])
    ]
    if missing:
        parts.append("Planned and not complete: " + "; ".join(missing) + ".")
    short = [
        f"{TITLES[cell.data]}, {cell.labels:,} labels"
        for cell in plan.fitted
        if set(fitted.get(cell, ({}, {}))[0]) != set(cell.methods)
    ]
    if short:
        parts.append(f"Planned and not complete with shadows by the fitted reverse: {'; '.join(short)}.")
    return "\n\n".join(parts) + "\n"


def summary(
    found: dict[few.Cell, tuple[Errors, Chosen]],
    groups: Callable[[Errors], Sequence[Sequence[tuple[str, str]]]],
) -> str:
    """How often each comparison came out which way, over all cells; p values are adjusted within a group."""
    counts: dict[tuple[str, str], list[int]] = {}
    sizes: dict[tuple[str, str], list[float]] = {}
    for errors, _ in found.values():
        for pairs in groups(errors):
            gap = [differences(errors[name], errors[other]) for name, other in pairs]
            adjusted = holm([paired_p_value(each) or 1.0 for each in gap])
            for pair, each, p in zip(pairs, gap, adjusted, strict=True):
                mean = mean_and_se(each)[0]
                counts.setdefault(pair, [0, 0, 0])[2 if p >= 0.05 else int(mean > 0)] += 1
                sizes.setdefault(pair, []).append(mean)
    order = [(method, "plain") for method in METHODS] + [*QUESTIONS, *FITTED_QUESTIONS]
    rows = [
        [*pair, *map(str, counts[pair]), f"{min(sizes[pair]):+.2f} to {max(sizes[pair]):+.2f}"]
        for pair in order
        if pair in counts
    ]
    return table(["method", "against", "better", "worse", "cannot tell", "mean differences, points"], rows)


def beside(
    found: dict[few.Cell, tuple[Errors, Chosen]], fitted: dict[few.Cell, tuple[Errors, Chosen]]
) -> dict[few.Cell, tuple[Errors, Chosen]]:
    """Fitted shadows and what they are compared with, cell by cell; all of them have the same seeds."""
    usual = {(cell.data, cell.labels, cell.steps): results for cell, results in found.items()}
    together = {}
    for cell, (errors, chosen) in fitted.items():
        if (cell.data, cell.labels, cell.steps) in usual:
            others, theirs = usual[cell.data, cell.labels, cell.steps]
            names = [name for name in BESIDE if name in others]
            together[cell] = (
                {name: others[name] for name in names} | errors,
                {name: theirs[name] for name in names} | chosen,
            )
    return together


def fitted_questions(errors: Errors) -> list[tuple[str, str]]:
    return [pair for pair in FITTED_QUESTIONS if pair[0] in errors and pair[1] in errors]


def fitted_part(plan: few.Plan, together: dict[few.Cell, tuple[Errors, Chosen]]) -> list[str]:
    """Errors and settings of fitted shadows in one table, and how often which comparison came out how."""
    names = [name for name in (*BESIDE, *FITTED) if any(name in errors for errors, _ in together.values())]
    head = ["data", "labels", *names]
    rows = [
        [TITLES[cell.data], f"{cell.labels:,}", *(percent(errors[m]) if m in errors else "–" for m in names)]
        for cell, (errors, _) in together.items()
    ]
    settings = [
        [
            TITLES[cell.data],
            f"{cell.labels:,}",
            *(spell(chosen.get(method), method, cell.data) for method in FITTED),
        ]
        for cell, (_, chosen) in together.items()
    ]
    return [
        f"The shadows of these runs go down by maps fitted to the labelled points themselves, fitted anew "
        f"every {REFIT} steps on the last 256 of them, and tuned as everything else here. Test error in %, "
        f"mean ± standard error of {len(plan.seeds)} seeds; the other methods are those of the tables below.",
        table(head, rows),
        "In how many of these cells the first is better or worse than the second, p < 0.05 after Holm's "
        "adjustment over these comparisons within the cell:",
        summary(together, lambda errors: (fitted_questions(errors),)),
        "Chosen: the learning rate (a star: the smallest or the largest of those tried) and the weight.",
        table(["data", "labels", *FITTED], settings),
    ]


def data_part(plan: few.Plan, found: dict[few.Cell, tuple[Errors, Chosen]]) -> list[str]:
    """What was run on one data set, its errors, the settings chosen, and the tests cell by cell."""
    cells = list(found)
    methods = [m for m in METHODS if any(m in errors for errors, _ in found.values())]
    steps = ", ".join(f"{cell.steps} with {cell.labels:,}" for cell in cells)
    head = ["method", *(f"{cell.labels:,} labels" for cell in cells)]
    errors = [[m, *(percent(found[c][0][m]) if m in found[c][0] else "–" for c in cells)] for m in methods]
    settings = [
        [m, EVERY[m].knob or "–", *(spell(found[c][1].get(m), m, c.data) for c in cells)] for m in methods
    ]
    left = [m for m in METHODS if m not in methods]
    out = f" Not run on it: {', '.join(left)}." if left else ""
    parts = [
        f"Steps: {steps} labels.{out} Test error in %, mean ± standard error of {len(plan.seeds)} seeds:",
        table(head, errors),
        "Chosen: the learning rate, then the method's own knob. A star: the learning rate is the smallest "
        "or the largest of those tried.",
        table(["method", "knob", *head[1:]], settings),
    ]
    for cell in cells:
        parts += tested(f"{TITLES[cell.data]}, {cell.labels:,} labels", found[cell][0])
    return parts


def tested(title: str, errors: Errors) -> list[str]:
    """The paired tests of a cell."""
    parts = [f"### {title}", gaps(against_plain(errors), errors)]
    if pairs := questions(errors):
        parts += ["What each part adds:", gaps(pairs, errors)]
    return parts


def name_of(cell: few.Cell) -> str:
    return f"{TITLES[cell.data]}, {cell.labels:,} labels, {cell.steps:,} steps"


def longer_part(plan: few.Plan, found: dict[few.Cell, tuple[Errors, Chosen]]) -> list[str]:
    """Some methods again, tuned and trained for many more steps."""
    methods = [m for m in METHODS if any(m in errors for errors, _ in found.values())]
    rows = []
    for m in methods:
        cells = [
            f"{percent(errors[m])} ({spell(chosen[m], m, cell.data)})" if m in errors else "–"
            for cell, (errors, chosen) in found.items()
        ]
        rows.append([m, *cells])
    parts = [
        "Some methods again, tuned and trained for many more steps. Test error in %, mean ± standard error "
        f"of {len(plan.seeds)} seeds; in brackets what was chosen:",
        table(["method", *map(name_of, found)], rows),
    ]
    for cell, (errors, _) in found.items():
        parts += tested(name_of(cell), errors)
    return parts


def spell(setting: few.Setting | None, method: str, data: str) -> str:
    if setting is None:
        return "–"
    rate, strength = setting
    rates = [rate for rate, _ in few.grid(method, data)]
    edge = "\\*" if rate in (min(rates), max(rates)) else ""
    return f"{rate:g}{edge}" + ("" if strength is None else f", {strength:g}")


def draw_few(plan: few.Plan, found: dict[few.Cell, tuple[Errors, Chosen]], place: Path) -> None:
    names = list(dict.fromkeys(cell.data for cell in found))
    figure = new_figure(3.6 * len(names), 6.0)
    axes = figure.subplots(2, len(names), squeeze=False)
    for column, data in enumerate(names):
        cells = [cell for cell in found if cell.data == data]
        top, bottom = axes[0][column], axes[1][column]
        for number, (method, (color, marker)) in enumerate(STYLES.items()):
            mine = [cell for cell in cells if method in found[cell][0]]
            labels = [cell.labels for cell in mine]
            each = [found[cell][0] for cell in mine]
            style = {"color": color, "marker": marker, "markersize": 5, "linewidth": 1.3, "label": method}
            curve(top, labels, [[100 * e for e in errors[method]] for errors in each], style)
            if method != "plain":
                moved = [label * 1.04 ** (number - len(STYLES) / 2) for label in labels]  # bars side by side
                curve(bottom, moved, [differences(errors[method], errors["plain"]) for errors in each], style)
        bottom.axhline(0, color=GREY, linewidth=1)
        for axis in (top, bottom):
            axis.set_xscale("log")
            axis.set_xticks(ticks := [cell.labels for cell in cells], [f"{tick:,}" for tick in ticks])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        tidy(top, TITLES[data], "labels", "test error, %" if column == 0 else "")
        tidy(bottom, "", "labels", "minus plain training, points" if column == 0 else "")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, 2 * len(names)), frameon=False)
    save(figure, place)


def curve(axis: Any, x: Sequence[float], values: Sequence[Sequence[float]], style: dict[str, Any]) -> None:
    points = [mean_and_se(each) for each in values]
    axis.errorbar(x, [mean for mean, _ in points], yerr=[se or 0.0 for _, se in points], capsize=2, **style)


def page(quick: bool = False) -> None:
    plan = few.QUICK if quick else few.FULL
    folder = few.QUICK_FOLDER if quick else few.FOLDER
    place = page_of("few-labels", quick)
    if found := few_results(plan, folder):
        draw_few(plan, found, place.parent / "figures" / "few-labels.svg")
        longer = few_results(replace(plan, cells=plan.longer), folder)
        fitted = few_results(replace(plan, cells=plan.fitted), folder)
        put_between_marks(place, few_page(plan, found, longer, fitted, "figures/few-labels.svg"))


if __name__ == "__main__":
    page(asked_for_quick(__doc__))
