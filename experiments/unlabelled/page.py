"""Put the tables of errors into docs/unlabelled.md, between its marks, and draw its figure.

python -m experiments.unlabelled.page
python -m experiments.unlabelled.page --quick    (what --quick runs left, into their own folder)
"""

from __future__ import annotations

from pathlib import Path

from obverse._core.statistics import mean_and_se
from obverse.present.palette import GREY, LIGHT

from .._lab.drawing import new_figure, save, tidy
from .._lab.quick_pages import asked_for_quick, page_of
from .._lab.result_files import read
from .._lab.tables import errors_of, paired, percent, put_between_marks, table
from . import run as few

# Errors in % of fully connected nets with 100 MNIST labels, as their papers print them.
PUBLISHED = [
    ("plain net", "25.8", "Lee 2013"),
    ("pseudo-labels with denoising pretraining", "10.5", "Lee 2013"),
    ("deep generative model M1+M2", "3.3", "Kingma et al. 2014"),
    ("virtual adversarial training", "2.1", "Miyato et al. 2015"),
    ("ladder network", "1.1", "Rasmus et al. 2015"),
]
AGAINST = [
    ("noise", "plain"),
    ("shadows", "plain"),
    ("sampled shadows", "plain"),
    ("shadow denoising", "plain"),
    ("shadows", "noise"),
    ("sampled shadows", "noise"),
    ("noise + shadow denoising", "noise"),
    (few.LATE, "noise"),
    ("noise + shadow denoising", "noise + another decoder"),
    ("noise + another decoder", "noise"),
    ("shadows of noisy x", "noise"),
    ("shadows of noisy h", "noise"),
    ("shadows from h1 and h2", "noise"),
    ("shuffled shadows", "plain"),
    ("shadows, net's label", "plain"),
    ("pseudo-labels", "plain"),
    ("dropout", "plain"),
]


def classic(folder: Path) -> str:
    tuning, final = read(folder / "tuning.json"), read(folder / "final.json")
    errors, shadow = errors_of(final["entries"]), errors_of(final["entries"], "shadow_error")
    rows = []
    for name in errors:
        rate, strength = few.choose(tuning["entries"], name)
        weight = f"{strength:g}" if strength else "–"
        measured = [percent(errors[name]), percent(shadow[name])]
        rows.append([name, f"{rate:g}", weight, str(len(errors[name])), *measured])
    ours = table(["method", "lr", "strength", "seeds", "test error %", "error on shadows %"], rows)
    merged = [(name, value, source) for name, value, source in PUBLISHED]
    longer = {
        kind: (read(folder / f"{kind}-tuning.json"), read(folder / f"{kind}.json")) for kind in few.LONGER
    }
    for long_tuning, long in longer.values():
        for name, values in errors_of(long["entries"]).items():
            mean, se = mean_and_se([100 * value for value in values])
            spread = "" if se is None else f" ± {se:.1f}"
            rate, factor, denoise = few.choose_long(long_tuning["entries"], name)
            chosen = f"{len(values)} seeds; lr {rate:g}, weight {factor:g}, denoise {denoise:g}"
            row = f"**here: {name}, {long['settings']['steps']:,} steps**"
            merged.append((row, f"{mean:.1f}{spread}", chosen))
    merged.sort(key=lambda row: -float(row[1].split()[0]))
    steps = final["settings"]["steps"]
    about = (
        f"784-500-500-10, Adam, {few.BASE.batch_size} labelled and 100 unlabelled points a step, "
        f"{steps:,} steps, "
        "the learning rate divided by ten after three quarters of them. Every method had the same 6 trials, "
        "3 learning rates × 2 strengths (the weight of the second batch; of denoising ten times that; "
        f"6 learning rates for plain and dropout), each {tuning['settings']['steps']} steps, "
        f"judged on {few.HELD_OUT:,} held-out points. "
        "Then each seed has labels of its own, the same for every method. Mean ± standard error. "
        "`python -m experiments.unlabelled.run` runs it."
    )
    return (
        f"## 100 labels\n\n{about}\n\n{ours}\n\n"
        f"![Error of each method](figures/unlabelled.svg)\n\n"
        f"Paired over seeds, two-sided t test, Holm's adjustment:\n\n{paired(AGAINST, errors)}\n\n"
        f"### Longer, and beside the published numbers\n\n"
        f"All {few.LABELS} labels in every step; 3 trials each on the held-out points: "
        + " and ".join(
            f"{tried['settings']['steps']:,} steps long for the runs of {found['settings']['steps']:,} steps"
            for tried, found in longer.values()
        )
        + ".\n\n"
        f"{table(['method', 'test error %', 'source'], merged)}\n\n"
        f"The longer runs, paired over seeds:\n\n"
        + "".join(
            f"{found['settings']['steps']:,} steps:\n\n{paired(AGAINST, errors_of(found['entries']))}\n\n"
            for _, found in longer.values()
        )
    )


def draw(folder: Path, place: Path) -> None:
    """Every seed as a point, the mean as a line."""
    errors = errors_of(read(folder / "final.json")["entries"])
    order = sorted(errors, key=lambda name: -mean_and_se(errors[name])[0])
    figure = new_figure(7.5, 0.6 + 0.3 * len(order))
    axes = figure.add_subplot()
    for row, name in enumerate(order):
        values = [100 * value for value in errors[name]]
        mean, _ = mean_and_se(values)
        colour = LIGHT[0] if "shadow" in name else LIGHT[1] if "noise" in name else GREY
        axes.plot(values, [row] * len(values), "o", markersize=4, alpha=0.6, color=colour)
        axes.plot([mean, mean], [row - 0.35, row + 0.35], color=colour, linewidth=2)
    axes.set_yticks(range(len(order)), order)
    tidy(axes, "100 MNIST labels and 59,900 pictures without", "test error, %", "")
    axes.set_xlim(left=0)
    save(figure, place)


def page(quick: bool = False) -> None:
    folder = few.QUICK_FOLDER if quick else few.FOLDER
    place = page_of("unlabelled", quick)
    put_between_marks(place, classic(folder))
    draw(folder, place.parent / "figures" / "unlabelled.svg")


if __name__ == "__main__":
    page(asked_for_quick(__doc__))
