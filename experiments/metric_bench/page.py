"""docs/metric-bench.md and its figures from results/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obverse._core.statistics import clopper_pearson, lower_limit
from obverse.present.palette import LIGHT, LIGHT_INK

from .._lab.drawing import new_figure, save
from .._lab.places import DOCS, FIGURES
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .faults import FAULTS, MIDDLE

RESULTS = Path(__file__).parent / "results"
PAGE = DOCS / "metric-bench.md"
NOTHING = 1e-5  # seconds
SURE = 0.99  # that a false-alarm rate above 5 % is one
SPACES = {
    "mnist-features": "MNIST, by 32 features of a net trained here",
    "mnist": "MNIST, by pixels",
    "digits": "digits, by pixels",
}
FILES = {
    "mnist-features": "metric-bench-mnist-features.svg",
    "mnist": "metric-bench-mnist.svg",
    "digits": "metric-bench-digits.svg",
}
SHORT = {"p": "p", "comparison": "worse than real", "number": "quantile of real draws"}


def results() -> dict[str, Any]:
    return {name: read(RESULTS / f"{name}.json") for name in SPACES if (RESULTS / f"{name}.json").exists()}


def broken(metric: dict[str, Any]) -> bool:
    """More than 5 % false alarms, for certain."""
    return lower_limit(metric["alarms"], metric["draws"], SURE) > 0.05


def rate(count: int, draws: int) -> str:
    low, high = clopper_pearson(count, draws)
    return f"{100 * count / draws:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def alarms_table(found: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name for one in found.values() for name in one["metrics"]))
    rows = []
    for name in names:
        kinds = {one["metrics"][name]["kind"] for one in found.values() if name in one["metrics"]}
        cells = []
        for one in found.values():
            metric = one["metrics"].get(name)
            if metric is None:
                cells.append("–")
                continue
            said = rate(metric["alarms"], metric["draws"])
            cells.append(f"**{said}**" if broken(metric) else said)
        rows.append([name, SHORT[kinds.pop()], *cells])
    return table(["metric", "decides by", *(f"{SPACES[name]}, %" for name in found)], rows)


def cell(one: dict[str, Any], fault: str, strength: float) -> dict[str, Any] | None:
    return next(
        (some for some in one["faults"] if (some["fault"], some["strength"]) == (fault, strength)), None
    )


def middle(one: dict[str, Any], fault: str) -> float:
    """The strength that the figure shows: of few images another one where there are few."""
    asked: list[float] = [some["strength"] for some in one["faults"] if some["fault"] == fault]
    return MIDDLE[fault] if MIDDLE[fault] in asked or not asked else asked[len(asked) // 2]


def share_said(count: int, draws: int) -> str:
    return f"{100 * count / draws:.0f}" if draws else "–"


def strength_said(fault: str, strength: float) -> str:
    share = ("copies" in fault) or fault.startswith("missing") or fault in ("ghosts", "over-smooth")
    if fault.startswith("few"):
        return f"{strength:,.0f}"
    return f"{100 * strength:g} %" if share else f"{strength:g}"


def power_table(one: dict[str, Any], names: list[str]) -> str:
    rows = []
    for some in one["faults"]:
        shares = [share_said(*some["found"].get(name, (0, 0))) for name in names]
        draws = [some["found"][name][1] for name in names if name in some["found"]]
        looked = "–".join(map(str, sorted({min(draws), max(draws)})))
        strength = strength_said(some["fault"], some["strength"])
        rows.append([some["fault"], strength, looked, *shares])
    order = list(FAULTS)
    rows.sort(key=lambda row: order.index(row[0]))
    return table(["fault", "strength", "draws", *names], rows)


OURS = (
    "obverse, all tests",
    "equal samples",
    "birthday test",
    "nearest to training",
    "recall, permutation",
    "coverage, permutation",
    "precision, permutation",
    "density, permutation",
    "two-sample test",
)
OTHERS = (
    "recall, jackknife",
    "coverage, jackknife",
    "precision, jackknife",
    "density, jackknife",
    "KID, permutation",
    "FID, number",
    "KID, blocks",
    "CMMD kernel, permutation",
    "inception score, number",
    "recall, number",
    "coverage, number",
    "precision, number",
    "density, number",
    "clipped density, number",
    "clipped coverage, number",
    "Vendi, number",
    "AuthPct",
    "AuthPct, Fisher",
    "C_T, permutation",
    "C_T, normal law",
    "very close share",
)
RULES = ("FID above real", "Vendi below real", "precision below real", "recall below real")


def draw(name: str, one: dict[str, Any]) -> None:
    """Metric × fault: colour is power; a metric with more than 5 % false alarms is struck out."""
    from matplotlib.patches import Rectangle

    metrics = [metric for metric in (*OURS, *OTHERS, *RULES) if metric in one["metrics"]]
    faults = [fault for fault in MIDDLE if cell(one, fault, middle(one, fault)) is not None]
    figure = new_figure(8.6, 1.6 + 0.27 * len(metrics))
    axes = figure.subplots()
    for column, fault in enumerate(faults):
        some = cell(one, fault, middle(one, fault))
        assert some is not None
        for row, metric in enumerate(metrics):
            count, draws = some["found"].get(metric, (0, 0))
            power = count / max(1, draws)
            shade = 1 - 0.75 * power
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=(shade, shade, 1 - 0.35 * power), lw=0))
            axes.text(
                column + 0.5,
                row + 0.5,
                share_said(count, draws),
                ha="center",
                va="center",
                fontsize=8.5,
                color="white" if power > 0.6 else LIGHT_INK[0],
            )
    for row, metric in enumerate(metrics):
        if broken(one["metrics"][metric]):
            axes.plot((0, len(faults)), (row + 0.5, row + 0.5), color=LIGHT[1], lw=1.4)
    axes.set_xlim(0, len(faults))
    axes.set_ylim(len(metrics), 0)
    said = [f"{fault}, {strength_said(fault, middle(one, fault))}" for fault in faults]
    axes.set_xticks([at + 0.5 for at in range(len(faults))], said, rotation=45, ha="left", fontsize=9)
    axes.xaxis.tick_top()
    axes.set_yticks([at + 0.5 for at in range(len(metrics))], metrics, fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    said_of = f"{SPACES[name]}, {one['size']:,} samples: % of generators with the fault that are found"
    axes.set_xlabel(f"{said_of};\nstruck out: blames real data too often", fontsize=9.5, loc="left")
    save(figure, FIGURES / FILES[name])


def powers(found: dict[str, Any], fault: str, metric: str) -> str:
    """In percent, in the order of the data: 10 and 90."""
    shares = []
    for one in found.values():
        some = cell(one, fault, middle(one, fault))
        count, draws = (0, 0) if some is None else some["found"].get(metric, (0, 0))
        if draws:
            shares.append(f"{100 * count / draws:.0f}")
    return " and ".join(shares) or "–"


def follows(found: dict[str, Any]) -> str:
    """What the tables say, with their numbers."""
    alarms = [
        100 * metric["alarms"] / metric["draws"]
        for one in found.values()
        for metric in one["metrics"].values()
        if metric["kind"] == "comparison"
    ]
    tested = [
        100 * metric["alarms"] / metric["draws"]
        for one in found.values()
        for metric in one["metrics"].values()
        if metric["kind"] == "p"
    ]
    names = " and ".join(SPACES[name] for name in found)

    def each(fault: str, **metrics: str) -> str:
        return ", ".join(f"{said} {powers(found, fault, metric)}" for said, metric in metrics.items())

    copies = {"FID": "FID, number", "recall": "recall, number", "Vendi": "Vendi, number"}
    lines = [
        f"A number that is merely worse than that of real data says nothing: real data is “worse” in "
        f"{min(alarms):.0f} to {max(alarms):.0f} % of the draws. Tests with a p-value blame it in "
        f"{min(tested):.1f} to {max(tested):.1f} %.",
        "Copies are seen by tests that look for them alone. Two percent of exact copies: nearest to training "
        f"{powers(found, 'exact copies', 'nearest to training')}, the share of very close samples "
        f"{powers(found, 'exact copies', 'very close share')}; but AuthPct "
        f"{powers(found, 'exact copies', 'AuthPct')}, C_T "
        f"{powers(found, 'exact copies', 'C_T, normal law')}, {each('exact copies', **copies)}.",
        "Copies shifted by a pixel are copies to the features of a net, not to pixels: nearest to training "
        f"{powers(found, 'copies shifted', 'nearest to training')} where a tenth of the samples are. As "
        f"copies, mirrored ones escape: {powers(found, 'copies mirrored', 'nearest to training')}.",
        "A class of ten that is missing: coverage "
        f"{powers(found, 'missing classes', 'coverage, number')}, recall "
        f"{powers(found, 'missing classes', 'recall, number')}, the two-sample test "
        f"{powers(found, 'missing classes', 'two-sample test')}, FID "
        f"{powers(found, 'missing classes', 'FID, number')}, Vendi "
        f"{powers(found, 'missing classes', 'Vendi, number')}.",
        "Five of a hundred modes inside classes that are missing are hardly seen at these sizes: coverage "
        f"{powers(found, 'missing modes', 'coverage, number')}, the two-sample test "
        f"{powers(found, 'missing modes', 'two-sample test')}, FID "
        f"{powers(found, 'missing modes', 'FID, number')}.",
        "Noise of a tenth of the range: the two-sample test "
        f"{powers(found, 'noise', 'two-sample test')}, FID {powers(found, 'noise', 'FID, number')}. Features "
        "of a classifier overlook what it has learned to overlook.",
        "A twentieth of the samples that are means of two images: Vendi "
        f"{powers(found, 'ghosts', 'Vendi, number')}, the two-sample test "
        f"{powers(found, 'ghosts', 'two-sample test')}, precision "
        f"{powers(found, 'ghosts', 'precision, number')}.",
    ]
    return "\n".join(
        [
            f"Percent of generators that are found, in {names}, in this order:",
            "",
            *(f"- {one}" for one in lines),
        ]
    )


def seconds_said(value: float | None) -> str:
    """A dash where nothing was measured, or there was nothing to do."""
    return "–" if value is None or value < NOTHING else f"{value:.2g}"


def seconds_table(found: dict[str, Any]) -> str:
    groups = list(dict.fromkeys(group for one in found.values() for group in one["seconds"]))
    rows = [[group, *(seconds_said(one["seconds"].get(group)) for one in found.values())] for group in groups]
    return table(["metrics", *(f"{SPACES[name]}, {one['size']:,}" for name, one in found.items())], rows)


def scale_text(made: dict[str, Any]) -> str:
    """Of the blocks that were timed, and what all of them take."""
    settings, blocks = made["settings"], made["blocks"]
    count = -(-settings["queries"] // settings["block"])
    work = sum(one["processor"] for one in blocks) / len(blocks)
    wall = sum(one["seconds"] for one in blocks) / len(blocks)
    own, peak = (max(one[name] for one in blocks) for name in ("own", "peak"))
    return (
        f"The nearest of {settings['reference']:,} points of {settings['width']} features for "
        f"{settings['queries']:,} queries, by `nearest_in_files`: a block of {settings['block']:,} took "
        f"{work:.0f} s of one core ({wall:.0f} s beside other work), so that all {count} take about "
        f"{count * work / 60:.0f} minutes of one core; {len(blocks)} of them was timed. Its own memory "
        f"was {own / 1e9:.2f} GB at the highest, {peak / 1e9:.2f} GB with what is mapped of the file, which "
        "the system takes back when it needs it."
    )


def page() -> None:
    found = results()
    parts = [
        "## What follows",
        follows(found),
        "## False alarms",
        "Real data as if a generator had made it. Percent of the draws in which a metric decides “worse”, "
        "with 95 % intervals; **bold** where that is more than 5 % for certain (99 %).",
        alarms_table(found),
        "## What each metric finds",
    ]
    for name, one in found.items():
        draw(name, one)
        parts += [
            f"### {SPACES[name]}",
            f"{one['size']:,} samples, as many training images, twice as many held-out ones.",
            f"![Fault by metric: power](figures/{FILES[name]})",
            power_table(one, [metric for metric in OURS if metric in one["metrics"]]),
            power_table(one, [metric for metric in OTHERS if metric in one["metrics"]]),
        ]
    parts += ["## What they take", "Seconds of one core per draw:", seconds_table(found)]
    if (RESULTS / "scale.json").exists():
        parts += ["## Sets larger than memory", scale_text(read(RESULTS / "scale.json"))]
    put_between_marks(PAGE, "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    page()
