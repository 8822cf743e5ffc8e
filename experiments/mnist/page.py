"""Rebuild docs/results.md, its figure and what the README says of them: no hand-made numbers.

python -m experiments.mnist.page
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse._core.text import listed
from obverse.claims import claims
from obverse.present.palette import LIGHT
from obverse.training._compare import paired_p_value

from .._lab.drawing import new_figure, save
from .._lab.places import DOCS, EXPERIMENTS, FIGURES, ROOT
from .._lab.result_files import read, with_names_of_today
from .._lab.tables import differences, gaps, holm, percent, put_between_marks, table
from .._lab.trials import key_of, read_results
from ..claims import papers
from . import labels as few
from . import width as wide

# Error in % and its standard error in a pilot run of 3 or 4 seeds, to be reproduced by the untuned part.
PILOT = {
    "backprop, rate .01": (6.07, 0.16),
    "backprop, rate .05": (5.10, 0.07),
    "same x twice, weight 4, rate .01": (5.09, 0.05),
    "SHADOW, weight 1, rate .01": (5.63, 0.07),
    "SHADOW, weight 4, rate .01": (5.03, 0.10),
    "dropout, rate .05": (4.68, 0.09),
    "noise, weight 4, rate .01": (4.16, 0.12),
}


def rate_and_weight(settings: Mapping) -> list[str]:
    settings = with_names_of_today(settings)
    return [f"{settings['lr']:g}", f"{settings['weight']:g}" if settings["weight"] else "–"]


def few_labels() -> str:
    untuned = read_results(few.FOLDER / "untuned.jsonl")
    tuning = read_results(few.FOLDER / "tuning.jsonl")
    final = read_results(few.FOLDER / "final.jsonl")
    fixed = {name: few.final_trials(replace(few.BASE, **change)) for name, change in few.UNTUNED.items()}
    chosen = {name: few.choose(name, tuning) for name in few.METHODS}
    finals = {name: few.final_trials(setting) for name, setting in chosen.items()}

    def of(results: dict, trials: dict, field: str) -> dict[str, list[float]]:
        return {name: [results[key_of(trial)][field] for trial in trials[name]] for name in trials}

    error, shadow, agree = (of(untuned, fixed, f) for f in ("test_error", "shadow_error", "label_agreement"))
    rows = []
    for name in fixed:
        mean, se = mean_and_se([100 * value for value in error[name]])
        assert se is not None
        pilot, pilot_se = PILOT[name]
        z = (mean - pilot) / sqrt(se**2 + pilot_se**2)
        measured = [percent(error[name]), f"{pilot:.2f} ± {pilot_se:.2f}", f"{z:+.1f}"]
        rows.append([name, *measured, percent(shadow[name]), percent(agree[name])])
    head = ["setting", "test error %", "pilot %", "z", "error on shadows %", "same label %"]
    first = table(head, rows)
    at_fixed = error["dropout, rate .05"]

    error, shadow, agree = (of(final, finals, f) for f in ("test_error", "shadow_error", "label_agreement"))
    rows = [
        [name, *rate_and_weight(vars(chosen[name])), *map(percent, (error[name], shadow[name], agree[name]))]
        for name in finals
    ]
    head = ["method", "lr", "weight", "test error %", "error on shadows %", "same label %"]
    second = table(head, rows)
    third = gaps([(name, "backprop") for name in finals if name != "backprop"], error)
    others = [other for other in finals if other != "SHADOW"]
    fourth = gaps([("SHADOW", other) for other in others], error)
    assert few.BASE.train_size is not None
    held_out = few.BASE.train_size // 5 * len(few.TUNING_SEEDS)
    noise = 100 * sqrt(0.045 * 0.955 / held_out)
    edges = [n for n, s in chosen.items() if s.lr in (max(t.lr for t in few.grid(n)), few.WEIGHTED_RATES[0])]
    edge = f"The best learning rate lay at the end of its grid for {', '.join(edges)}." if edges else ""
    put_into_readme(error, agree)
    count = len(few.FINAL_SEEDS)
    return f"""## 5,000 MNIST labels, tuned alike

784-500-500-10, batch 100, momentum 0.9, 25 epochs, pixels in [0, 1], norm-matched shadows from h̃2;
{count} seeds, each with its own 5,000 training points, the same for every method (paired); official test
set. `python -m experiments.mnist.labels` runs it; mean ± standard error throughout.

### Fixed learning rates

The pilot is an earlier run of 3 or 4 seeds with other subsets; z compares the two with both standard errors.
A weight w multiplies the step size by about 1 + w, so rows of unequal step size do not compare methods.

{first}

### Tuned learning rates and weights

Every method chose among 15 settings by its error on 1,000 held-out training points, averaged over
{len(few.TUNING_SEEDS)} splits, and was then trained on all 5,000: 5 learning rates × 3 weights (¼, 1, 4), or
15 learning rates over the same range of step sizes where there is no weight. {edge} Tuning is itself noisy:
{held_out:,} held-out answers tell an error of 4.5 % only to ± {noise:.2f}, so a few tenths of a point
between methods
may be luck of the choice. Dropout shows it: at lr .05 it has {percent(at_fixed)} (table above), at the
learning rate it chose {percent(error["dropout"])}.

{second}

Against backpropagation (paired t test over seeds, two-sided):

{third}

SHADOW against everything else:

{fourth}
"""


def compared(name: str, errors: Mapping[str, list[float]]) -> dict[str, str]:
    """By how much one method is better or worse than each other one, by paired tests with Holm's p-values."""
    found = {other: differences(errors[name], errors[other]) for other in errors if other != name}
    adjusted = holm([paired_p_value(gap) or 1.0 for gap in found.values()])
    said = {}
    for (other, gap), p in zip(found.items(), adjusted, strict=True):
        mean, _ = mean_and_se(gap)
        better = f"{'better' if mean < 0 else 'worse'} by {abs(mean):.2f} points"
        said[other] = better if p < 0.05 else "no significant difference"
    return said


def put_into_readme(errors: Mapping[str, list[float]], agree: Mapping[str, list[float]]) -> None:
    """What was measured, in sentences, between the two marks."""
    published = papers.published()
    noise, against = "control: noise", compared("SHADOW", errors)
    shadows = (
        f"**Tuned alike, SHADOW training brings consistency and no accuracy.** MNIST with "
        f"{few.BASE.train_size:,} labels, 784-500-500-10, {len(few.FINAL_SEEDS)} seeds: test error "
        f"{percent(errors['SHADOW'])} % with shadows, {percent(errors['backprop'])} % without "
        f"({against['backprop']}), {percent(errors[noise])} % with plain noise in "
        f"their place (SHADOW: {against[noise]}). An image and its shadow get "
        f"the same label in {percent(agree['SHADOW'])} % of cases, without shadows in "
        f"{percent(agree['backprop'])} %."
    )
    needs = read(EXPERIMENTS / "compression" / "results" / "mlp-mnist.json")["entries"]["need|0"]
    small = read(EXPERIMENTS / "compression" / "results" / "mobilenet-v2.json")["entries"]["need|0"]
    signal = (
        "**Some nets need only their signal; compact ones need everything.** In an MLP on MNIST, "
        f"{listed(ranks(needs))} directions carry the layers that can be judged: accuracy is "
        f"{share(needs, 'untreated')} % untreated, {share(needs, 'bulk resampled')} % with the rest replaced "
        f"by random numbers, {share(needs, 'signal removed')} % without the signal. MobileNetV2, on 90 "
        f"images, falls from {share(small, 'untreated')} % to {share(small, 'bulk resampled')} % under the "
        "same treatment ([ablation](docs/ablation.md))."
    )
    verdicts = Counter(
        published[id][1].verdict
        for id, claim in claims().items()
        if claim.reading == "as printed" and not id.startswith("tools.")
    )
    theorems = (
        f"**{verdicts['held']} statements hold as printed, {verdicts['failed']} do not.** They are those of "
        "five texts of theory that could be made to run, each against a simulation that does not know what "
        "is predicted; why each of the others fails is said, and what is true in its place where that is "
        "known ([what the papers say](docs/papers.md))."
    )
    items = "".join(
        textwrap.fill(f"- {text}", 120, subsequent_indent="  ") + "\n" for text in (shadows, signal, theorems)
    )
    put_between_marks(ROOT / "README.md", items)


def ranks(need: Mapping[str, Any]) -> list[str]:
    """k of all, of every layer that was taken apart."""
    return [f"{one['rank']} of {min(one['rows'], one['columns'])}" for one in need["layers"] if one["rank"]]


def share(need: Mapping[str, Any], treatment: str) -> str:
    """Accuracy in % with all layers treated at once."""
    if treatment == "untreated":
        whole = need["untreated"]
        return f"{100 * (whole['value'] if isinstance(whole, dict) else whole):.1f}"
    [found] = [one for one in need["together"] if one["treatment"] == treatment]
    return f"{100 * found['score']['value']:.1f}"


def full_width() -> str:
    curves = wide.read(wide.FOLDER / "curves.jsonl")
    tuning = [r for r in wide.read(wide.FOLDER / "tuning.jsonl") if r["last"]]
    arms = list(dict.fromkeys(record["arm"] for record in curves))
    last = {arm: sorted((r for r in curves if r["arm"] == arm and r["last"]), key=seed_of) for arm in arms}
    fields = ("test_error", "shadow_error", "label_agreement")
    rows = [
        [arm, *rate_and_weight(rs[0]), str(len(rs)), *(percent([r[f] for r in rs]) for f in fields)]
        for arm, rs in last.items()
    ]
    head = ["method", "lr", "weight", "seeds", "test error %", "error on shadows %", "same label %"]
    pairs = [
        ("SHADOW", "backprop"),
        ("SHADOW", "control: SHADOW's step"),
        ("dropout", "backprop"),
        ("SHADOW + dropout", "dropout"),
        ("SHADOW", "dropout"),
    ]
    gap = gaps(pairs, {arm: [r["test_error"] for r in rs] for arm, rs in last.items()})
    draw_curves(curves, arms)
    candidates = [[r["arm"], *rate_and_weight(r), f"{100 * r['test_error']:.2f}"] for r in tuning]
    grid = table(["method", "lr", "weight", "held-out error %"], candidates)
    steps = max(r["step"] for r in curves)
    return f"""## MNIST at the paper's width

784-5000-5000-10, all 60,000 training points, batch 100, momentum 0.9, {steps} steps ({steps / 600:g} epochs),
dropout 0.5 where there is any; learning rates and weights from the paper's grid, chosen on 10,000 held-out
points after {wide.TUNING_STEPS} steps. A weight w also multiplies the step by about 1 + w, so the
control is plain
backpropagation with that step.
`python -m experiments.mnist.width` runs it. After {steps} steps nothing has converged: these are the
first epochs of the paper's curves, not their end.

{table(head, rows)}

Paired over seeds:

{gap}

![Error on real images and on their shadows during the first epochs](figures/mnist-width-5000.svg)

Curves: error on the first {wide.CURVE_POINTS:,} test images, mean over seeds, band ± one standard error;
dashed: error on their shadows; the untrained net is left out. The candidates of the tuning:

{grid}
"""


def seed_of(record: dict) -> int:
    return record["seed"]


def draw_curves(curves: list[dict], arms: list[str]) -> None:
    figure = new_figure(9, 4.2)
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    colors = LIGHT[:3]
    groups = {
        "without dropout": [arm for arm in arms if "dropout" not in arm],
        "with dropout": [arm for arm in arms if "dropout" in arm],
    }
    for axes, (title, some) in zip(panels, groups.items(), strict=True):
        for arm, color in zip(some, colors[: len(some)], strict=True):
            draw_arm(axes, [r for r in curves if r["arm"] == arm], arm, color)
        axes.set(title=title, xlabel="steps of 100 images", yscale="log")
        axes.set_yticks(ticks := [2, 3, 4, 5, 7, 10, 15], labels=[str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("error, %")
    save(figure, FIGURES / "mnist-width-5000.svg")


def draw_arm(axes: Any, curves: list[dict], arm: str, color: str) -> None:
    """Error on images and, dashed, on their shadows; mean over seeds and a band of one standard error."""
    for field, style in (("test_error", "-"), ("shadow_error", "--")):
        steps = sorted({r["step"] for r in curves if not r["last"]} - {0})
        points = [mean_and_se([100 * r[field] for r in curves if r["step"] == step]) for step in steps]
        name = arm if field == "test_error" else f"{arm}, on shadows"
        axes.plot(steps, [mean for mean, _ in points], style, color=color, label=name)
        low, high = zip(*((mean - (se or 0.0), mean + (se or 0.0)) for mean, se in points), strict=True)
        axes.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)


def page() -> None:
    parts = [few_labels()]
    if (wide.FOLDER / "curves.jsonl").exists():
        parts.append(full_width())
    text = (
        "# Measured results\n\nMade by `python -m experiments.mnist.page` from experiments/mnist/results.\n\n"
    )
    (DOCS / "results.md").write_text(text + "\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    page()
