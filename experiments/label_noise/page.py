"""Put the tables of wrong labels into docs/label-noise.md, between its marks, and draw its figure.

    python -m experiments.label_noise.page
    python -m experiments.label_noise.page --quick      (what --quick runs left, into their own folder)

A method is shown where all its seeds are there. Nothing is computed from anything but the result files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obverse._core.statistics import mean_and_se

from .._lab.drawing import new_figure, save, tidy
from .._lab.quick_pages import asked_for_quick, page_of
from .._lab.tables import gaps, percent, put_between_marks, table
from ..few_labels import run as few
from ..few_labels.page import STYLES, TITLES, Chosen, against_plain, questions, spell
from . import run as noise

NoiseErrors = dict[str, list[dict[str, Any]]]  # by method, the records of the seeds


def noise_results(plan: noise.Plan, folder: Path) -> dict[str, tuple[NoiseErrors, Chosen]]:
    """Final records and chosen settings by kind of mistakes; methods with all seeds only."""
    tuning = few.read(folder / "tuning.jsonl", noise.NoisyTrial)
    final = few.read(folder / "final.jsonl", noise.NoisyTrial)
    found: dict[str, tuple[NoiseErrors, Chosen]] = {}
    for mistakes in plan.mistakes:
        records, chosen = {}, {}
        for method in noise.METHODS:
            if all(few.key_of(t) in tuning for t in noise.tuning_trials(plan, mistakes, method)):
                setting = noise.choose(plan, mistakes, method, tuning)
                keys = [few.key_of(t) for t in noise.final_trials(plan, mistakes, method, setting)]
                if all(key in final for key in keys):
                    records[method], chosen[method] = [final[key] for key in keys], setting
        if "plain" in records:
            found[mistakes] = (records, chosen)
    return found


def noise_page(plans: dict[noise.Plan, dict[str, tuple[NoiseErrors, Chosen]]], figure: str) -> str:
    parts = [
        f"![Test error along training with wrong labels]({figure})",
        "Test error after each epoch, mean over seeds, band ± one standard error.",
    ]
    for plan, found in plans.items():
        for mistakes, (records, chosen) in found.items():
            parts += [f"## {TITLES[plan.data]}, {mistakes}", *noise_part(plan, records, chosen)]
    if not any(plan.data == "cifar10" and found for plan, found in plans.items()):
        parts += ["## CIFAR-10 with human labels", noise.NOT_RUN]
    return "\n\n".join(parts) + "\n"


def noise_part(plan: noise.Plan, records: NoiseErrors, chosen: Chosen) -> list[str]:
    end = {m: [r["error"] for r in rs] for m, rs in records.items()}
    best = {m: [r["test_error"][noise.best_epoch(r)] for r in rs] for m, rs in records.items()}
    rows = [
        [
            method,
            spell(chosen[method], method, plan.data),
            percent(end[method]),
            percent(best[method]),
            f"{mean_and_se([noise.best_epoch(r) + 1 for r in rs])[0]:.1f}",
            percent([r["memorized"] for r in rs]),
            percent([r["seen_through"] for r in rs]),
        ]
        for method, rs in records.items()
    ]
    head = [
        "method",
        "lr, knob",
        "at the end",
        "at the best epoch",
        "that epoch",
        "memorized",
        "seen through",
    ]
    pairs = [*against_plain(end), *questions(end)]
    return [
        table(head, rows),
        "Test error at the end, paired over seeds:",
        gaps(pairs, end),
        "Test error at the best epoch:",
        gaps(pairs, best),
    ]


def draw_noise(plans: dict[noise.Plan, dict[str, tuple[NoiseErrors, Chosen]]], place: Path) -> None:
    panels = [(plan, name, records) for plan, found in plans.items() for name, (records, _) in found.items()]
    figure = new_figure(4.4 * len(panels), 3.8)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (plan, name, records) in zip(axes, panels, strict=True):
        epochs = range(1, plan.epochs + 1)
        for method, runs in records.items():
            color, marker = STYLES[method]
            points = [mean_and_se([100 * run["test_error"][epoch - 1] for run in runs]) for epoch in epochs]
            low, high = ([mean + sign * (se or 0.0) for mean, se in points] for sign in (-1, 1))
            axis.plot(epochs, [mean for mean, _ in points], color=color, marker=marker, ms=4, label=method)
            axis.fill_between(epochs, low, high, color=color, alpha=0.15, linewidth=0)
        axis.set_yscale("log")  # the end matters, and the first epochs are far above it
        low, high = axis.get_ylim()
        axis.set_yticks(ticks := [t for t in (6, 8, 10, 12, 15, 20, 30, 50, 80) if low <= t <= high], ticks)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        tidy(axis, f"{TITLES[plan.data]}, {name}", "epoch", "test error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save(figure, place)


def page(quick: bool = False) -> None:
    folder = noise.QUICK_FOLDER if quick else noise.FOLDER
    plans = {
        each: noise_results(each, folder) for each in ((noise.QUICK,) if quick else (noise.FULL, noise.CIFAR))
    }
    place = page_of("label-noise", quick)
    if any(plans.values()):
        draw_noise(plans, place.parent / "figures" / "label-noise.svg")
        put_between_marks(place, noise_page(plans, "figures/label-noise.svg"))


if __name__ == "__main__":
    page(asked_for_quick(__doc__))
