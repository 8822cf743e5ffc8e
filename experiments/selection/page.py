"""Put the calibration bench and the fine-tunings into docs/selection.md, between its marks, with a figure.

python -m experiments.selection.page
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse.training._compare import paired_p_value

from .._lab.drawing import new_figure, save, tidy
from .._lab.places import DOCS, FIGURES
from .._lab.result_files import mean, read
from .._lab.tables import holm, put_between_marks, small, table
from .bench import RESULTS, STRENGTHS
from .rules import COUNTING
from .tuning import RANDOM

PAGE = DOCS / "selection.md"
FIGURE = FIGURES / "selection.svg"
AT_RANDOM = ("random ", "ours, mixed ")
FEW, ENOUGH = 2, 5  # seeds from which on there is an error, and a test


def entries(name: str) -> dict[str, Any]:
    file = RESULTS / f"{name}.json"
    found: dict[str, Any] = read(file)["entries"] if file.exists() else {}
    return found


def noise_rows() -> list[tuple[str, str, dict[str, Any]]]:
    """(shape, spread, cell) of all sizes, the small ones first."""
    rows = []
    for name, cell in [*entries("noise").items(), *entries("noise_large").items()]:
        shape, spread = name.split(", ")
        rows.append((shape, spread, cell))
    return sorted(rows, key=lambda row: row[1])


def share_called(cell: Mapping[str, Any], rule: str) -> float:
    return mean(cell["counts"][rule]) / cell["side"]


def noise_table() -> str:
    rows = []
    for shape, spread, cell in noise_rows():
        shares = [f"{100 * share_called(cell, rule):.3g}" for rule in COUNTING]
        rows.append([shape, spread, str(cell["draws"]), *shares])
    return table(["shape", "spread", "matrices", *COUNTING], rows)


def pooled_ranks() -> dict[tuple[int, float], tuple[int, dict[str, int]]]:
    """By rank and strength: draws and exact counts, all shapes together."""
    found: dict[tuple[int, float], tuple[int, dict[str, int]]] = {}
    for name, cell in entries("ranks").items():
        _, _, rank, times = name.split(", ")
        key = int(rank.removeprefix("rank ")), float(times)
        draws, exact = found.get(key, (0, {}))
        sums = {rule: exact.get(rule, 0) + count for rule, count in cell["exact"].items()}
        found[key] = draws + cell["draws"], sums
    return found


def ranks_table() -> str:
    rows = [
        [str(rank), f"{times:g}", *(f"{100 * exact[rule] / draws:.0f}" for rule in COUNTING)]
        for (rank, times), (draws, exact) in sorted(pooled_ranks().items())
    ]
    return table(["rank", "× threshold", *COUNTING], rows)


def order_table() -> str:
    cells = entries("order")
    rules = [rule for rule in next(iter(cells.values()))["won"] if rule != "ours, most random"]
    rows = []
    for name, cell in cells.items():
        won = [f"{100 * cell['won'][rule] / cell['pairs']:.0f}" for rule in rules]
        rows.append([*name.split(", "), *won])
    return table(["shape", "spread", "× threshold", *rules], rows)


def tuned(way: str) -> dict[int, dict[str, float]]:
    """By seed: the loss after each choice."""
    found = {}
    for file in sorted(RESULTS.glob(f"{way}_*.json")):
        losses = {name: cell["loss"] for name, cell in read(file)["entries"].items()}
        if any(name.startswith(AT_RANDOM) for name in losses):  # otherwise there is nothing to compare with
            found[int(re.sub(r"\D", "", file.stem))] = losses
    return found


def baseline(losses: Mapping[str, float]) -> float:
    """The mean of what was chosen at random, or with ranks at other matrices."""
    return mean([loss for name, loss in losses.items() if name.startswith(AT_RANDOM)])


def differences(found: Mapping[int, Mapping[str, float]]) -> dict[str, list[float]]:
    """Of every rule: loss minus that of random choices, in thousandths of a nat, seed by seed."""
    gaps: dict[str, list[float]] = defaultdict(list)
    for losses in found.values():
        at_random = baseline(losses)
        for name, loss in losses.items():
            if not name.startswith((*AT_RANDOM, "before", "all of them")):
                gaps[name].append(1000 * (loss - at_random))
    return gaps


def tuned_table(found: Mapping[int, Mapping[str, float]]) -> str:
    gaps = {name: gap for name, gap in differences(found).items() if len(gap) >= FEW}
    enough = min(map(len, gaps.values()), default=0) >= ENOUGH
    raw = [paired_p_value(gap) or 1.0 for gap in gaps.values()]
    rows = []
    for (name, gap), p, adjusted in zip(gaps.items(), raw, holm(raw), strict=True):
        centre, error = mean_and_se(gap)
        said = f"{centre:+.1f} ± {error or 0:.1f}"
        tested = [small(p), small(adjusted), verdict(centre, adjusted)]
        rows.append([name, str(len(gap)), said, *(tested if enough else ["–", "–", "too few seeds to tell"])])
    return table(["chosen by", "seeds", "minus random, mnat per byte", "p", "p (Holm)", "verdict"], rows)


def verdict(centre: float, p: float) -> str:
    if p >= 0.05:
        return "does not differ significantly from random"
    return f"{'better' if centre < 0 else 'worse'} than random"


def spread_of_random(found: Mapping[int, Mapping[str, float]]) -> str:
    """How far apart random choices are: what there was to win."""
    widths = []
    for losses in found.values():
        values = [loss for name, loss in losses.items() if name.startswith("random ")]
        widths.append(1000 * (max(values) - min(values)))
    return f"{mean(widths):.0f}"


def tuning_text() -> str:
    matrices, updates = tuned("matrices"), tuned("updates")
    parts = []
    if matrices:
        before = mean([losses["before"] for losses in matrices.values() if "before" in losses])
        after = mean([baseline(losses) for losses in matrices.values()])
        seeds = ", ".join(map(str, matrices))
        parts += [
            f"Seeds that were run: {seeds}. Nat per byte of the new text: {before:.3f} before, {after:.3f} "
            f"with matrices chosen at random. The best and the worst of the {RANDOM} random choices of a "
            f"seed are {spread_of_random(matrices)} mnat apart: about so much there is to win or to lose.",
            "A quarter of the matrices of each kind, trained whole:",
            tuned_table(matrices) if len(matrices) >= FEW else few(matrices),
        ]
    if updates:
        parts += [
            "Updates of low rank, of the same number of parameters; seeds "
            f"{', '.join(map(str, updates))}. *Random* has the ranks of “ours” at other matrices of the same "
            "kind, *equal* the same rank everywhere:",
            tuned_table(updates) if len(updates) >= FEW else few(updates),
        ]
    return "\n\n".join(parts)


def few(found: Mapping[int, Mapping[str, float]]) -> str:
    lines = [[name, f"{gap[0]:+.1f}"] for name, gap in differences(found).items()]
    head = ["chosen by", "minus random, mnat per byte"]
    return f"One seed is not enough for a test.\n\n{table(head, lines)}"


def draw() -> None:
    figure = new_figure(10, 3.6)
    left, right = figure.subplots(1, 2)
    shown = [rule for rule in COUNTING if rule not in ("energy 99 %", "stable rank")]
    square = [row for row in noise_rows() if row[1] == "0" and row[0].startswith(("512×", "4096×", "1024×"))]
    for at, rule in enumerate(shown):
        places = [place + 0.16 * at for place in range(len(square))]
        left.bar(places, [100 * share_called(cell, rule) for *_, cell in square], 0.15, label=rule)
    middles = [place + 0.32 for place in range(len(square))]
    left.set_xticks(middles, [shape for shape, *_ in square], fontsize=7)
    left.legend(fontsize=7)
    tidy(left, "Noise: called signal", "", "% of the singular values")
    pooled = pooled_ranks()
    for rule in shown:
        sums: Sequence[float] = [
            100
            * sum(exact[rule] for (_, times), (_, exact) in pooled.items() if times == strength)
            / sum(draws for (_, times), (draws, _) in pooled.items() if times == strength)
            for strength in STRENGTHS
        ]
        right.plot(STRENGTHS, sums, marker="o", label=rule)
    right.legend(fontsize=7)
    tidy(right, "Rank of an update in noise: exact", "strength ÷ threshold", "% of the matrices")
    save(figure, FIGURE)


def page() -> None:
    text = [
        "## Noise",
        "Percent of the singular values that a rule calls signal, or keeps, where there is none: independent "
        "normal entries, or with log-normal scales of rows and columns of that *spread*.",
        noise_table(),
        "## Order",
        "Of pairs of matrices of one shape, one of them with five directions planted, the percent in which a "
        "rule puts that one first (ties are halves). At 50 it does not tell them apart; far below it does, "
        "and prefers noise.",
        order_table(),
        "## Ranks",
        "Percent of matrices in which the count is exactly the rank of the update that was planted in normal "
        "noise, all shapes together:",
        ranks_table(),
        "## Fine-tuning",
        tuning_text(),
    ]
    draw()
    put_between_marks(PAGE, "\n\n".join(text) + "\n")


if __name__ == "__main__":
    page()
