"""Rebuild docs/paper.md and its figures from results/: no hand-made numbers.

python -m experiments.paper.page
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from obverse._core.statistics import mean_and_se
from obverse.training._compare import paired_p_value

from .._lab.places import DOCS
from .._lab.tables import gaps, holm, percent, small, table
from ..mnist import width as wide
from . import protocol_figure, protocol_page
from . import run as paper
from .figures import (
    DATA,
    LAYERS,
    Curves,
    Point,
    audits,
    curves_of,
    draw_all,
    only,
    recovery,
    save,
    width_5000,
)
from .training import read

SHOWN = ("test_error", "shadow_error", "label_agreement")
HEAD = ["method", "lr", "weight", "seeds", "test error %", "error on shadows %", "same label %"]


def at(curves: Curves, step: int, value: Callable[[Point], float | None]) -> dict[str, dict[int, float]]:
    """By arm and seed, a value at one step; arms that were not measured there are left out."""
    found = {
        arm: {seed: value(p) for seed, curve in seeds.items() for p in curve if p["step"] == step}
        for arm, seeds in curves.items()
    }
    return {
        arm: {s: v for s, v in values.items() if v is not None} for arm, values in found.items() if values
    }


def field(name: str) -> Callable[[Point], float | None]:
    return lambda point: point.get(name)


def last_step(curves: Curves) -> int:
    """The last step that every arm has."""
    return min(max(point["step"] for point in curve) for seeds in curves.values() for curve in seeds.values())


def chosen(folder: Path, part: str) -> dict[str, tuple[float, float]]:
    records = read(folder / f"{part}.jsonl").values()
    return {r["arm"]: (r["settings"]["lr"], r["settings"]["weight"]) for r in records}


def final_table(curves: Curves, settings: Mapping[str, tuple[float, float]], step: int) -> str:
    values = {name: at(curves, step, field(name)) for name in SHOWN}
    rows = []
    for arm in curves:
        rate, weight = settings[arm]
        shown = [percent(list(values[name][arm].values())) for name in SHOWN]
        rows.append([arm, f"{rate:g}", f"{weight:g}" if weight else "–", str(len(curves[arm])), *shown])
    return table(HEAD, rows)


def paired(found: Mapping[str, Mapping[int, float]], pairs: Sequence[tuple[str, str]]) -> str:
    """The table of paired differences over the seeds that all named arms have."""
    there = [(a, b) for a, b in pairs if {a, b} <= set(found) and len(set(found[a]) & set(found[b])) > 1]
    named = {arm for pair in there for arm in pair}
    seeds = sorted(set.intersection(*(set(found[arm]) for arm in named))) if named else []
    if len(seeds) < 2:
        return "Too few seeds for a paired test."
    return gaps(there, {arm: [found[arm][seed] for seed in seeds] for arm in named})


def tuning_table(folder: Path, part: str) -> str:
    rows = []
    for r in read(folder / f"{part}-tuning.jsonl").values():
        s = r["settings"]
        error = "diverged" if r["diverged"] else f"{100 * r['test_error']:.2f}"
        rows.append([r["arm"], f"{s['lr']:g}", f"{s['weight']:g}" if s["weight"] else "–", error])
    return table(["method", "lr", "weight", "held-out error %"], rows)


def tracking(curves: Curves, step: int) -> str:
    """How far the error on shadows is from the real one, by arm."""
    real, twin = at(curves, step, field("test_error")), at(curves, step, field("shadow_error"))
    parts = []
    for arm in curves:
        above = [100 * (twin[arm][seed] - real[arm][seed]) for seed in real[arm]]
        mean, se = mean_and_se(above)
        parts.append(f"{arm} {mean:+.2f}" + ("" if se is None else f" ± {se:.2f}"))
    return ", ".join(parts)


def ends(curves: Curves, pairs: Sequence[tuple[str, str]], first: int) -> str:
    """The differences at the end and at the first measurement."""
    step = last_step(curves)
    return f"""After {step:,} steps:

{paired(at(curves, step, field("test_error")), pairs)}

After {first}, at the first measurement:

{paired(at(curves, first, field("test_error")), pairs)}

Error on shadows minus error on images after {step:,} steps, in points: {tracking(curves, step)}.
"""


KS, BULK = "entries, distance to a normal law", "spectrum, distance to Marchenko–Pastur"
SPIKES, MOVED = "spikes, share of the energy", "moved, ‖W − W₀‖ / ‖W₀‖"
RANDOM, OWN = "random h, error ÷ shuffled", "own h, error ÷ shuffled"
DOWN_UP = "h down to pixels and up, error"


def quantities() -> dict[str, Callable[[Point], float | None]]:
    """What is said of the weights, by name."""
    found: dict[str, Callable[[Point], float | None]] = {}
    for layer in LAYERS:
        found[f"{layer}: {KS}"] = audits("ks", layer)
        found[f"{layer}: {BULK}"] = audits("distance", layer)
        found[f"{layer}: {SPIKES}"] = audits("spike_share", layer)
        found[f"{layer}: {MOVED}"] = audits("moved", layer)
        found[f"{layer}: {RANDOM}"] = audits("recovery_ratio", layer)
        found[f"{layer}: {OWN}"] = audits("own_ratio", layer)
        found[f"{layer}: {DOWN_UP}"] = recovery(layer)
    return found


AUDITED = (
    (paper.SHADOW, paper.BACKPROP),
    (paper.BOTH, paper.DROPOUT),
)


def number(values: Sequence[float], sign: str = "") -> str:
    """Mean ± standard error, with a digit more where it is small."""
    mean, se = mean_and_se(values)
    digits = 4 if abs(mean) < 0.02 else 3
    return f"{mean:{sign}.{digits}f}" + ("" if se is None else f" ± {se:.{digits}f}")


def audit_values(curves: Curves) -> str:
    """Every quantity at the end, by arm, beside the untrained net."""
    rows, arms, step = [], list(curves), last_step(curves)
    for name, value in quantities().items():
        start = at(curves, 0, value)[arms[0]]
        end = at(curves, step, value)
        rows.append([name, number(list(start.values())), *(number(list(end[arm].values())) for arm in arms)])
    return table(["quantity", "untrained", *arms], rows)


def audit_gaps(curves: Curves) -> str:
    """What SHADOW changes of each quantity at the end, paired over seeds; Holm over the whole table."""
    step = last_step(curves)
    pairs = [pair for pair in AUDITED if set(pair) <= set(curves)]
    cells: dict[str, list[str]] = {}
    raw: list[float] = []
    for name, value in quantities().items():
        found = at(curves, step, value)
        for arm, other in pairs:
            seeds = sorted(set(found[arm]) & set(found[other]))
            gap = [found[arm][seed] - found[other][seed] for seed in seeds]
            raw.append(paired_p_value(gap) or 1.0)
            cells.setdefault(name, []).append(number(gap, "+"))
    adjusted = iter(zip(raw, holm(raw), strict=True))
    rows = []
    for name, row in cells.items():
        marked = []
        for cell, (p, corrected) in zip(row, adjusted, strict=False):
            marked.append(f"**{cell}** ({small(p)})" if corrected < 0.05 else f"{cell} ({small(p)})")
        rows.append([name, *marked])
    return table(["quantity", *(f"{arm} − {other}" for arm, other in pairs)], rows)


def wide_settings(folder: Path) -> dict[str, tuple[float, float]]:
    old = wide.read(wide.FOLDER / "curves.jsonl")
    return {r["arm"]: (r["rate"], r["weight"]) for r in old} | chosen(folder, "mnist-5000")


def epochs(part: str, steps: int) -> str:
    points = {"mnist": 60_000, "cifar10": 50_000}[paper.PARTS[part].base.data]
    return f"{steps:,} steps, {100 * steps / points:g} epochs"


def shape_of(part: str) -> str:
    """Data set and layers, as `MNIST, 784-1000-1000-10`."""
    settings = paper.PARTS[part].base
    ends = {"mnist": (784, 10), "cifar10": (3072, 10), "cifar100": (3072, 100)}[settings.data]
    return f"{DATA[settings.data]}, {'-'.join(map(str, (ends[0], *settings.hidden, ends[1])))}"


def short(part: str) -> str:
    """Data set and width, as `MNIST at width 1000`."""
    settings = paper.PARTS[part].base
    return f"{DATA[settings.data]} at width {settings.hidden[0]}"


def diverged(folder: Path, part: str) -> str:
    """A sentence for each arm that did not reach its end with every seed; nothing if all did."""
    records = list(read(folder / f"{part}.jsonl").values())
    lines = []
    for arm in dict.fromkeys(record["arm"] for record in records):
        mine = [record["diverged"] for record in records if record["arm"] == arm]
        if any(mine):
            rest = f"; what is said of it is of the other {mine.count(False)}" if not all(mine) else ""
            lines.append(f"{arm} diverged with {sum(mine)} of {len(mine)} seeds{rest}.")
    return " ".join(lines)


def told(curves: Curves, arm: str, other: str, step: int) -> str:
    """One sentence: who is better, by how much, and whether three seeds can tell."""
    found = at(curves, step, field("test_error"))
    if not {arm, other} <= set(found):
        return f"{arm} against {other} was not run."
    seeds = sorted(set(found[arm]) & set(found[other]))
    gap = [100 * (found[arm][seed] - found[other][seed]) for seed in seeds]
    mean, se = mean_and_se(gap)
    p = paired_p_value(gap)
    clear = "" if p is not None and p < 0.05 else ", which is not significant"
    better = "less" if mean < 0 else "more"
    if se is None:
        return f"{arm} has {abs(mean):.2f} points {better} error than {other} after {step:,} steps (1 seed)."
    return (
        f"{arm} has {abs(mean):.2f} ± {se:.2f} points {better} error than {other} "
        f"after {step:,} steps ({len(seeds)} seeds, p {small(1.0 if p is None else p)}){clear}."
    )


def everywhere(parts: Mapping[str, Curves], arm: str, other: str) -> str:
    """The same comparison on every data set and width, at the end."""
    return " ".join(
        f"{name}: {told(curves, arm, other, last_step(curves))}" for name, curves in parts.items()
    )


def summary(folder: Path, parts: Mapping[str, Curves], variants: Curves, full: Curves) -> str:
    """What the paper shows beside what is seen here; `full` has the unscaled arm, at width 5000."""
    v, w = last_step(variants), last_step(full)
    apart = " ".join(
        f"{name}: {tracking(only(curves, paper.FOUR), last_step(curves))}." for name, curves in parts.items()
    )
    seventh = [told(variants, arm, paper.SHADOW, v) for arm in (paper.SAMPLING, paper.SMOOTHING)]
    unscaled = [diverged(folder, "mnist-5000")]
    unscaled += [told(full, paper.UNSCALED, arm, w) for arm in (paper.BACKPROP, paper.SHADOW)]
    rows = [
        [
            "Figure 5: without dropout the error drops much faster with SHADOW, and an advantage stays",
            everywhere(parts, paper.SHADOW, paper.BACKPROP),
        ],
        ["Figure 3: with dropout too", everywhere(parts, paper.BOTH, paper.DROPOUT)],
        ["the error on shadows tracks the real one", f"Error on shadows minus real error, points. {apart}"],
        [
            "Figure 6: from h̃3 similar to or better than from h̃2",
            told(variants, paper.OUTPUT, paper.SHADOW, v),
        ],
        ["Figure 7: sampling similar, smoothing better at the end", " ".join(seventh)],
        ["width 5000, x' without any scale, MNIST", " ".join(filter(None, unscaled))],
    ]
    return table(["the paper", "here"], rows)


RUN = """Two hidden ReLU layers, He's Gaussian start, batch 100, constant learning rate, pixels in [0, 1].
Momentum 0.9 is ours; the paper does not speak of it. Products are in bfloat16 for {half}; everywhere
else, and for
weights, sums and all that is measured, in float32. Shadows come from h̃2 and get the norm of their image,
unless it says otherwise. Learning rates 4^a·0.001 and weights 2^b, b from −3 to 3, are the paper's. They were
chosen on 10,000 held-out points in one short run each ({tuning}): from the paper's largest learning rate
to the better neighbour until none is better, then in the same way from weight 1, and again in turn
until neither moves.
Where the best learning rate lies beyond the paper's a ≤ 2, larger ones were tried too (not at width 5000).
On CIFAR-10 at width 5000 backprop alone chose its learning rate; the others have the same, and SHADOW the
weight that it chose at width 1000. The paper trains every candidate to its end. Final runs use all
training points, {seeds} seeds,
and the same start and batches for every method.

In the table above p is that of one comparison; the tables below correct for all that they hold (Holm).
A weight w also makes the step longer, by up to 1 + w. The controls are plain backpropagation with the
learning rate times 1 + w. Three seeds are few: a paired t test calls a difference real (p < 0.05) only
from 4.3 standard
errors on."""


def least_weight(folder: Path, part: str) -> str:
    """What is to be said of the weight that SHADOW chose for a part."""
    found = chosen(folder, part)[paper.SHADOW][1]
    at_edge = ", the least of the grid" if found == 2.0 ** paper.WEIGHTS[0] else ""
    return f"{short(part)}: {found:g}{at_edge}."


WITHOUT = ((paper.SHADOW, paper.BACKPROP), (paper.SHADOW, paper.CONTROL))
WITH_DROPOUT = (
    (paper.DROPOUT, paper.BACKPROP),
    (paper.BOTH, paper.DROPOUT),
    (paper.BOTH, paper.SHADOW),
)


def shown_part(folder: Path, part: str, curves: Curves) -> str:
    """The table of a part at its end, and its differences."""
    shape, step = shape_of(part), last_step(curves)
    return f"""### {shape}, {epochs(part, step)}

{final_table(curves, chosen(folder, part), step)}

{ends(curves, [*WITHOUT, *WITH_DROPOUT], paper.PARTS[part].every)}"""


def figures_3_5(folder: Path, parts: Mapping[str, Curves]) -> str:
    points = paper.PARTS["cifar10-1000"].points
    shown = "\n".join(shown_part(folder, part, curves) for part, curves in parts.items())
    weights = " ".join(
        least_weight(folder, part) for part in parts if paper.SHADOW not in paper.PARTS[part].given
    )
    return f"""## Figures 3 and 5

![Errors on images and on their shadows, by method](figures/paper-figures-3-5.svg)

Mean over seeds, band ± one standard error; the untrained net is left out. On CIFAR-10, here and below, only
the last point is of all test images; the others, and all at width 5000, are of {points:,}.
{paper.SHADOW} has the weight that did best on held-out points. {weights}

{shown}"""


def figures_6_7(folder: Path, cifar: Curves) -> str:
    step = last_step(cifar)
    pairs = [(arm, paper.SHADOW) for arm in cifar if arm not in (paper.SHADOW, paper.BACKPROP)]
    return f"""## Figures 6 and 7

{shape_of("cifar10-500")}, {epochs("cifar10-500", step)}. The variants from h̃3, with sampling (half of every
layer is kept) and with smoothing train with the learning rate and weight that {paper.SHADOW} chose.

![Errors of the variants](figures/paper-figures-6-7.svg)

{final_table(cifar, chosen(folder, "cifar10-500"), step)}

{ends(cifar, pairs, paper.PARTS["cifar10-500"].every)}"""


def full_width(folder: Path, full: Curves) -> str:
    four = only(full, (*paper.FOUR, paper.CONTROL))
    full = only(full, (paper.BACKPROP, paper.SHADOW, paper.UNSCALED))
    step = last_step(full)
    end = last_step(four) if four else step
    pairs = [
        (paper.SHADOW, paper.BACKPROP),
        (paper.UNSCALED, paper.BACKPROP),
        (paper.UNSCALED, paper.SHADOW),
    ]
    return f"""## The paper's width on MNIST

{shape_of("mnist-5000")}, {epochs("mnist-5000", end)}; the runs of [results.md](results.md), which has their
curves and their tuning.

{final_table(four, wide_settings(folder), end)}

{paired(at(four, end, field("test_error")), [*WITHOUT, *WITH_DROPOUT[:2]])}

### With and without a scale

The paper's x' = r(W₁ r(W₂ h̃₂)) has no scale; the {paper.SHADOW} of these pages gives it the norm of x. At
He's start the theory's scale 2/(n s²) is 1, so that no scale is the right one; then training makes W larger.

The first {wide.CURVE_POINTS:,} test images, after {epochs("mnist-5000", step)}. {paper.BACKPROP} and
{paper.SHADOW} are the runs above on their way; {paper.UNSCALED} chose its own learning rate and weight in
the same way. {diverged(folder, "mnist-5000")}

{final_table(full, wide_settings(folder), step)}

{paired(at(full, step, field("test_error")), pairs)}

![Errors at width 5000](figures/paper-width-5000.svg)
"""


def random_like_text(folder: Path, mnist: Curves) -> str:
    return f"""## Is training random-like?

The nets of Figures 3 and 5 on MNIST, audited along the way ([audit.md](audit.md) says what the numbers mean),
and how well h comes back when it is sent down to the pixels and up again.

![Weights along training](figures/paper-random-like.svg)

After {last_step(mnist):,} steps, mean ± standard error over seeds. Lower is nearer to random weights in the
first five lines of a layer, and better recovered in the last three:

{audit_values(mnist)}

Paired differences, with p in brackets; bold where p stays below 0.05 after Holm's correction over the whole
table:

{audit_gaps(mnist)}

{random_like_words(folder, mnist)}
"""


def random_like_words(folder: Path, curves: Curves) -> str:
    """A sentence a quantity, with its numbers, and what they come to."""
    step, named = last_step(curves), quantities()

    def end(quantity: str, layer: str, arm: str) -> str:
        return number(list(at(curves, step, named[f"{layer}: {quantity}"])[arm].values()))

    def largest(quantity: str) -> float:
        found = [at(curves, step, named[f"{layer}: {quantity}"]) for layer in LAYERS]
        return max(mean_and_se(list(seeds.values()))[0] for one in found for seeds in one.values())

    def told_of(quantity: str, layer: str) -> str:
        start = number(list(at(curves, 0, named[f"{layer}: {quantity}"])[paper.BACKPROP].values()))
        arms = (paper.BACKPROP, paper.SHADOW, paper.DROPOUT, paper.BOTH)
        ends = [f"{end(quantity, layer, arm)} ({arm})" for arm in arms]
        return f"{layer} {start} untrained, {', '.join(ends)}"

    def both_layers(quantity: str) -> str:
        return "; ".join(told_of(quantity, layer) for layer in LAYERS)

    return f"""By quantity:

- *Entries and bulk* stay normal and Marchenko–Pastur under every method: distances of at most
  {largest(KS):.3f} and {largest(BULK):.3f}.
- *Spikes*, share of the energy: {both_layers(SPIKES)}.
- *Way gone*, ‖W − W₀‖ / ‖W₀‖: {both_layers(MOVED)}.
- *A single layer with random h*, error ÷ shuffled: {both_layers(RANDOM)}.
- *A single layer with its own h*, error ÷ shuffled: {both_layers(OWN)}.
- *Down to the pixels and up*: {both_layers(DOWN_UP)}.

{same_rates(folder)}

{reversible(curves)}"""


def same_rates(folder: Path) -> str:
    """Whether a difference may be one of the learning rate."""
    rates = {arm: rate for arm, (rate, _) in chosen(folder, "mnist-1000").items()}
    said = []
    for arm, other in AUDITED:
        alike = rates[arm] == rates[other]
        same = (
            "chose the same learning rate"
            if alike
            else "chose different learning rates, which tell them apart too"
        )
        said.append(f"{arm} and {other} {same}")
    return "; ".join(said) + "."


def reversible(curves: Curves) -> str:
    """The conclusion, where the numbers bear it out."""
    value = quantities()[f"h2: {DOWN_UP}"]
    found = {
        arm: mean_and_se(list(seeds.values()))[0]
        for arm, seeds in at(curves, last_step(curves), value).items()
    }
    start = mean_and_se(list(at(curves, 0, value)[paper.BACKPROP].values()))[0]
    shadows, plain = (paper.SHADOW, paper.BOTH), (paper.BACKPROP, paper.DROPOUT)
    if not max(found[arm] for arm in shadows) < start < min(found[arm] for arm in plain):
        return "No method makes h2 easier or harder to get back throughout."
    return """So SHADOW does not keep the weights random; it keeps the net *reversible*. Without shadows h2
becomes harder to get back than from random weights, with them easier, whatever the method; and there the
error on shadows stays near the real one."""


def text(folder: Path) -> str:
    curves = {part: curves_of(folder, part) for part in ("mnist-1000", "cifar10-1000", "cifar10-5000")}
    mnist, full, variants = curves["mnist-1000"], width_5000(folder), curves_of(folder, "cifar10-500")
    shown = {short(part): one for part, one in curves.items()}
    if four := only(
        full, (*paper.FOUR, paper.CONTROL)
    ):  # not in a quick run, which has the unscaled arm alone
        shown[short("mnist-5000")] = four
    tuned = {part: paper.PARTS[part].tuning_steps for part in (*curves, "cifar10-500", "mnist-5000")}
    ran = RUN.format(
        tuning="; ".join(f"{short(part)}: {steps:,} steps" for part, steps in tuned.items()),
        half=", ".join(short(part) for part in tuned if paper.PARTS[part].base.precision == "bf16"),
        seeds=len(paper.SEEDS),
    )
    tables = "\n\n".join(f"{shape_of(part)}:\n\n{tuning_table(folder, part)}" for part in tuned)
    return f"""# The paper's experiments

Figures 3, 5, 6 and 7 of *Why are deep nets reversible: a simple theory, with implications for training*
(Arora, Liang and Ma, 2015), as far as two cores go in two hours, and what training does to the weights. Made
by `python -m experiments.paper.page` from experiments/paper/results. `python -m experiments.paper.run
--data-root DIR` runs it; `--quick` runs a reduced version on embedded digits in a minute.

{summary(folder, shown, variants, full)}

## What was run

{ran}

{protocol_page.text(folder)}
{figures_3_5(folder, curves)}
{figures_6_7(folder, variants)}
{full_width(folder, full)}
{random_like_text(folder, mnist)}
## Tuning

The held-out error of every candidate.

{tables}

## Not run

The paper trains width 5000 to the end; here those runs are beginnings. With a learning rate of its own for
every method and momentum, CIFAR-100 was not run (`--part cifar100-500`, or `obverse compare --data
cifar100`); under the paper's protocol it is [above](#the-papers-protocol-to-the-letter), as far as it went.
"""


def page() -> None:
    draw_all(paper.FOLDER, DOCS / "figures")
    save(protocol_figure.draw(paper.FOLDER), DOCS / "figures" / f"{protocol_page.FIGURE}.svg")
    (DOCS / "paper.md").write_text(text(paper.FOLDER), encoding="utf-8")


if __name__ == "__main__":
    page()
