"""The figures of docs/ladder.md from results. Used by page.py."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from obverse.present.palette import GREY, LIGHT, MARKERS

from .._lab.drawing import new_figure, save, tidy
from .._lab.result_files import error, mean


def _line(axes: Any, index: int, x: Sequence[float], y: Sequence[dict[str, float]], label: str) -> None:
    """Means with bars of one standard error."""
    axes.errorbar(
        x,
        [one["mean"] for one in y],
        [one["error"] for one in y],
        color=LIGHT[index],
        marker=MARKERS[index],
        markersize=5,
        linewidth=1.2,
        label=label,
    )


def draw_dynamics(entries: dict[str, Any], place: Path) -> None:
    """How far the two descents are apart, and what the student of events is worth, by bits lost."""
    figure = new_figure(11, 3.6)
    first, second, third = figure.subplots(1, 3)
    graded = [entry for name, entry in entries.items() if name.startswith("graded/")]
    bits = [entry["lost_bits"]["mean"] for entry in graded]
    exact = [entry["largest"] for name, entry in entries.items() if name.startswith("exact/")]
    exact += [entry["largest"] for entry in graded if not entry["broadness"]["mean"]]
    for entry in graded:
        first.scatter(
            entry["each"]["lost_bits"], entry["each"]["apart"], s=9, color=LIGHT[0], alpha=0.35, linewidths=0
        )
    first.plot(bits, [entry["apart"]["mean"] for entry in graded], color=LIGHT[0], label="after 1,000 steps")
    first.plot(
        bits,
        [entry["first"]["mean"] for entry in graded],
        color=LIGHT[1],
        linestyle="--",
        label="after one step",
    )
    first.set_ylim(0, 2)
    tidy(first, "the two descents drift apart", "bits lost, mean over regions", "‖difference‖ ÷ way gone")
    first.legend(frameon=False, fontsize=8, loc="upper left")
    first.annotate(
        f"nothing lost: every parameter\nwithin {max(exact):.0e}",
        (0, 0),
        (0.45, 0.05),
        fontsize=8,
        arrowprops={"arrowstyle": "->", "color": GREY},
    )
    for index, (key, label) in enumerate(
        (
            ("loss_inputs", "by inputs"),
            ("loss_carried", "by events, on inputs"),
            ("loss_events", "by events, as they tell"),
        )
    ):
        _line(second, index, bits, [entry[key] for entry in graded], label)
    second.set_yscale("log")
    tidy(second, "the loss after 1,000 steps", "bits lost, mean over regions", "loss")
    second.legend(frameon=False, fontsize=8, loc="lower left")
    names = [name.removeprefix("named/") for name in entries if name.startswith("named/")]
    width = 0.26
    for index, (key, label) in enumerate(
        (
            ("loss_inputs", "by inputs"),
            ("loss_carried", "by events, on inputs"),
            ("loss_events", "as they tell"),
        )
    ):
        values = [entries[f"named/{name}"][key] for name in names]
        third.bar(
            [at + (index - 1) * width for at in range(len(names))],
            [one["mean"] for one in values],
            width,
            yerr=[one["error"] for one in values],
            color=LIGHT[index],
            label=label,
        )
    third.set_xticks(range(len(names)), [name.upper() if name != "majority" else name for name in names])
    tidy(third, "teachers that sum up", "", "loss after 1,000 steps")
    third.set_ylim(0, 1.5)
    third.legend(frameon=False, fontsize=8, loc="upper left")
    save(figure, place)


def draw_selectivity(found: dict[str, Any], norm: str, place: Path) -> None:
    """Share that events explain along training: by teacher, by level, of gradients and of activations."""
    kinds = [name.split("/")[0] for name in found["entries"] if name.endswith(f"/{norm}")]
    figure = new_figure(3.1 * len(kinds), 5.4)
    grid = figure.subplots(2, len(kinds), sharex=True, squeeze=False)
    steps = found["settings"]["at"]
    for column, kind in enumerate(kinds):
        entry = found["entries"][f"{kind}/{norm}"]
        for row, (side, title) in enumerate((("gradient", "gradients g"), ("active", "activations f"))):
            axes = grid[row][column]
            for index, level in enumerate(sorted(entry["contents"])):
                name = f"{side} {level}"
                values = [entry["true"][str(step)][name]["explained"] for step in steps]
                _line(axes, index, [step + 1 for step in steps], values, f"level {level}")
                for source, key, style in (
                    ("true", "chance explained", ":"),
                    ("shuffled", "explained", "--"),
                ):
                    other = [entry[source][str(step)][name][key]["mean"] for step in steps]
                    axes.plot(
                        [step + 1 for step in steps], other, color=LIGHT[index], linestyle=style, linewidth=1
                    )
            axes.set_xscale("log")
            axes.set_ylim(0, None)
            tidy(axes, f"{kind}: {title}", "step + 1" if row else "", "share explained" if not column else "")
    last = grid[0][-1]
    last.plot([], [], color=GREY, linestyle="--", linewidth=1, label="the same, trained on shuffled labels")
    last.plot([], [], color=GREY, linestyle=":", linewidth=1, label="events shuffled among contents")
    figure.legend(
        *last.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    save(figure, place)


def draw_overfitting(found: dict[str, Any], place: Path) -> None:
    """First gradients, losses and the way of the spurious part, by number of samples."""
    entries, last = found["entries"], str(found["settings"]["steps"])
    rows = [entry for name, entry in entries.items() if name.startswith("samples/") and entry["samples"]]
    samples = [row["samples"] for row in rows]
    figure = new_figure(11, 3.6)
    first, second, third = figure.subplots(1, 3)
    _line(first, 0, samples, [row["gradient_true"] for row in rows], "first gradient, true side")
    _line(first, 1, samples, [row["gradient_spurious"] for row in rows], "first gradient, spurious side")
    _line(first, 2, samples, [row["epsilon"] for row in rows], "ε")
    first.plot(samples, [0.5 / sqrt(n) for n in samples], color=GREY, linestyle="--", label="1/(2√n)")
    first.set(xscale="log", yscale="log")
    tidy(first, "what a sample pretends", "samples n", "root mean square")
    curves = [row["curve"][last] for row in rows]
    _line(second, 0, samples, [curve["train"] for curve in curves], "training")
    _line(second, 1, samples, [curve["test"] for curve in curves], "all inputs")
    _line(second, 2, samples, [curve["spurious"] for curve in curves], "by spurious events")
    second.set(xscale="log", yscale="log", ylim=(1e-5, None))
    tidy(second, f"the loss after {int(last):,} steps", "samples n", "loss")
    steps = [step for step in found["settings"]["at"] if step]
    for index, n in enumerate((8, 32, 128, 512, 2048)):
        curve = entries[f"samples/{n}"]["curve"]
        _line(third, index, steps, [curve[str(step)]["spurious"] for step in steps], f"n = {n:,}")
    third.set(xscale="log", yscale="log", ylim=(2e-6, None))
    tidy(third, "the spurious part along training", "step", "loss by spurious events")
    for axes in (first, second, third):
        axes.legend(frameon=False, fontsize=8)
    save(figure, place)


def draw_sgd(found: dict[str, Any], place: Path) -> None:
    """Where the reformulation of a batch is exact; flatness and generalization by batch size."""
    entries = found["entries"]
    gaps = [entry for name, entry in entries.items() if name.startswith("gap/")]
    runs = sorted(
        (entry for name, entry in entries.items() if name.startswith("batch/")), key=lambda one: one["batch"]
    )
    sizes = [run["batch"] for run in runs]
    figure = new_figure(11, 3.6)
    first, second, third = figure.subplots(1, 3)
    for index, (key, label) in enumerate((("start", "at the start"), ("trained", "half-way trained"))):
        _line(first, index, [gap["batch"] for gap in gaps], [gap[key] for gap in gaps], label)
    _batches(first, [gap["batch"] for gap in gaps])
    tidy(first, "events that sum up: steps by P̃ of the batch", "batch size", "off by, ÷ the step of SGD")
    settings = found["settings"]
    matched = {
        "steps": f"after {settings['steps']:,} steps",
        "epochs": f"after {settings['epochs']} epochs",
        "loss": f"at training loss {settings['loss']}",
    }
    for index, (key, label) in enumerate(matched.items()):
        for axes, number in ((second, "trace"), (third, "test")):
            values = [[one for one in run[key].get(number, ()) if one is not None] for run in runs]
            kept = [(size, own) for size, own in zip(sizes, values, strict=True) if len(own) > 1]
            _line(
                axes,
                index,
                [size for size, _ in kept],
                [{"mean": mean(own), "error": error(own)} for _, own in kept],
                label,
            )
            _batches(axes, sizes)
    tidy(second, "flatness", "batch size", "trace of the Hessian")
    tidy(third, "generalization", "batch size", "loss on all inputs")
    for axes in (first, second):
        axes.legend(frameon=False, fontsize=8)
    save(figure, place)


def _batches(axes: Any, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()


def draw_real(found: dict[str, Any], place: Path) -> None:
    """How much of ΔW events explain, by level and number of events: before training and at the end."""
    nets = {"digits-unshared": "digits", "mnist-unshared": "MNIST"}
    figure = new_figure(11, 5.4)
    grid = figure.subplots(2, 3, sharex=True, squeeze=False)
    for row, (net, title) in enumerate(nets.items()):
        own = [one for one in found["explained"] if one["net"] == net and one["images"] == "clustered"]
        stages = sorted({one["epochs"] for one in own})
        shown = ((stages[0], "pixels", "before training"), (stages[-1], "pixels", "trained"))
        for at, level in enumerate(("above the pixels", "level 2", "the top")):
            axes = grid[row][at]
            for index, (epochs, kind, label) in enumerate(
                (*shown, (stages[-1], "dealt at random", "control"))
            ):
                lines = sorted(
                    (one for one in own if (one["epochs"], one["kind"]) == (epochs, kind)),
                    key=lambda one: one["events"],
                )
                values = [dict(zip(("mean", "error"), one["weight"][at], strict=True)) for one in lines]
                _line(axes, index, [one["events"] for one in lines], values, label)
            axes.axhline(0, color=GREY, linewidth=0.8)
            axes.set_xscale("log", base=2)
            axes.set_xticks([2, 4, 8, 16, 32], ["2", "4", "8", "16", "32"])
            axes.set_ylim(-1, 1.05)  # where events mislead by more, they do
            tidy(
                axes,
                f"{title}: {level}",
                "events a region" if row else "",
                "" if at else "share of ΔW explained",
            )
    grid[0][0].legend(frameon=False, fontsize=8, loc="lower right")
    save(figure, place)
