"""Put the tables of experiments/results into docs/unlabelled.md and docs/better-shadow.md; draw the figure.

python experiments/make_unlabelled_page.py
python experiments/make_unlabelled_page.py --quick    (what --quick runs left, into their own folder)
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import better_shadow as better
import unlabelled as few
from drawing import new_figure, save, tidy
from make_results import DOCS, differences, gap_table, percent, put_between_marks, table

from obverse._core.statistics import mean_and_se
from obverse.present.palette import GREY, LIGHT

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


def read(place: Path) -> Any:
    return json.loads(place.read_text(encoding="utf-8"))


def errors_of(entries: Mapping[str, Any], field: str = "test_error") -> dict[str, list[float]]:
    """The numbers of each method, in the order of the seeds."""
    found: dict[str, dict[int, float]] = {}
    for key, entry in entries.items():
        name, seed = key.rsplit("|", 1)
        if field in entry:
            found.setdefault(name, {})[int(seed)] = entry[field]
    return {name: [numbers[seed] for seed in sorted(numbers)] for name, numbers in found.items()}


def paired(pairs: Sequence[tuple[str, str]], errors: Mapping[str, list[float]]) -> str:
    """The table of differences over the seeds that both have."""
    seen = [pair for pair in pairs if all(len(errors.get(name, ())) > 1 for name in pair)]
    if not seen:
        return "One seed is not enough for a test."
    found = []
    for name, other in seen:
        count = min(len(errors[name]), len(errors[other]))
        found.append(differences(errors[name][:count], errors[other][:count]))
    return gap_table(seen, found)


def classic(folder: Path) -> str:
    tuning, final = read(folder / "tuning.json"), read(folder / "final.json")
    errors, shadow = errors_of(final["entries"]), errors_of(final["entries"], "shadow_error")
    rows = []
    for name in errors:
        rate, strength = few.choose(tuning["entries"], name)
        weight = f"{strength:g}" if strength else "–"
        measured = [percent(errors[name]), percent(shadow[name])]
        rows.append([name, f"{rate:g}", weight, str(len(errors[name])), *measured])
    ours = table(["method", "rate", "strength", "seeds", "test error %", "error on shadows %"], rows)
    merged = [(name, value, source) for name, value, source in PUBLISHED]
    longer = {
        kind: (read(folder / f"{kind}-tuning.json"), read(folder / f"{kind}.json")) for kind in few.LONGER
    }
    for long_tuning, long in longer.values():
        for name, values in errors_of(long["entries"]).items():
            mean, se = mean_and_se([100 * value for value in values])
            spread = "" if se is None else f" ± {se:.1f}"
            rate, weight, denoise = few.choose_long(long_tuning["entries"], name)
            chosen = f"{len(values)} seeds; rate {rate:g}, weight {weight:g}, denoise {denoise:g}"
            row = f"**here: {name}, {long['settings']['steps']:,} steps**"
            merged.append((row, f"{mean:.1f}{spread}", chosen))
    merged.sort(key=lambda row: -float(row[1].split()[0]))
    steps = final["settings"]["steps"]
    about = (
        f"784-500-500-10, Adam, {few.BASE.batch_size} labelled and 100 unlabelled points a step, {steps:,} "
        "steps, the rate divided by ten after three quarters of them. Every method had the same 6 trials, "
        "3 rates × 2 strengths (the weight of the second batch; of denoising ten times that; 6 rates for "
        f"plain and dropout), each {tuning['settings']['steps']} steps, judged on {few.HELD_OUT:,} held-out "
        "points. "
        "Then each seed has labels of its own, the same for every method. Mean ± standard error. "
        "`python experiments/unlabelled.py` runs it."
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


def improved(folder: Path) -> str:
    tuning = read(folder / "mnist-tuning.json")["entries"]
    final, prices = read(folder / "mnist-final.json"), read(folder / "mnist-costs.json")["entries"]["costs"]
    errors = errors_of(final["entries"])
    rows = []
    for name in errors:
        rate, strength, held = better.choose(tuning, name)
        weight = f"{strength:g}" if strength else "–"
        steps = round(final["settings"]["budget"] / prices[name])
        rows.append([name, f"{rate:g}", weight, str(steps), f"{100 * held:.2f}", percent(errors[name])])
    head = ["variant", "rate", "strength", "steps", "held-out error %", "test error %"]
    best = better.winner(tuning) if all(name in errors for name in better.OURS) else None
    with_shadows = [name for name in errors if name in better.OURS]
    parts = [
        f"## Chosen on MNIST\n\n{better.LABELS:,} labels, 784-500-500-10, batch 100, momentum 0.9; as many "
        f"steps as fit into the processor time of {final['settings']['budget']} steps with dropout. Every "
        f"variant had the same 6 trials (3 rates × 2 strengths, or 6 rates) on {better.HELD_OUT:,} held-out "
        "points; second batches enter as (L + wL′)/(1 + w), so that a rate is the same step for all. The "
        "test errors are of fresh seeds. "
        "`python experiments/better_shadow.py` runs it.",
        table(head, rows),
        "Paired over seeds, two-sided t test, Holm's adjustment within each table:",
        paired([(name, "dropout") for name in errors if name != "dropout"], errors),
        paired([(name, "noise") for name in with_shadows], errors),
    ]
    verdicts = []
    for name in better.UNUSED:
        place = folder / f"{name}-final.json"
        found = errors_of(read(place)["entries"]) if place.exists() else {}
        if best is None or best not in found:
            parts.append(f"## Not used to choose: {name}\n\nNot run.")
            continue
        shown = table(["variant", "test error %"], [[way, percent(values)] for way, values in found.items()])
        compared = paired([(best, "dropout"), (best, "noise"), ("noise", "dropout")], found)
        parts.append(f"## Not used to choose: {name}\n\n{shown}\n\n{compared}")
        verdicts.append(_beats(found, best, "dropout") and _beats(found, best, "noise"))
    if best is not None and verdicts:
        says = (
            f"**{best}** did best on the held-out MNIST points among the variants with a shadow in them. "
            + (
                "It beats both dropout and plain noise on every data set that was not used to choose it, and "
                "is recommended where time is what limits."
                if all(verdicts)
                else "It does not beat both dropout and plain noise on every data set that was not used to "
                "choose it. So there is no recommended default: `weight` and `denoise` stay what the user "
                "asks for."
            )
        )
        parts.insert(0, says)
    return "\n\n".join(parts) + "\n"


def _beats(errors: Mapping[str, list[float]], name: str, other: str) -> bool:
    from obverse.training._compare import paired_p_value

    gap = [a - b for a, b in zip(errors[name], errors[other], strict=True)]
    p = paired_p_value(gap)
    return p is not None and p < 0.05 and sum(gap) < 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="from and into the folder of the --quick runs")
    quick = parser.parse_args().quick
    pages = few.QUICK_FOLDER.parent if quick else DOCS
    if quick:
        for name in ("unlabelled.md", "better-shadow.md"):
            shutil.copy(DOCS / name, pages / name)
    put_between_marks(pages / "unlabelled.md", classic(few.QUICK_FOLDER if quick else few.FOLDER))
    draw(few.QUICK_FOLDER if quick else few.FOLDER, pages / "figures" / "unlabelled.svg")
    put_between_marks(pages / "better-shadow.md", improved(better.QUICK_FOLDER if quick else better.FOLDER))


if __name__ == "__main__":
    main()
