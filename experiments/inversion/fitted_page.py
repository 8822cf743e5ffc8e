"""The part of docs/inversion.md about the fitted reverse, from its results and run.py's. Used by page.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._lab.places import RUNS
from .._lab.tables import table
from .figures import PEER, Layer, Row, row_of, save_small
from .fitted import CLOCK

PICTURES = RUNS / "inversion"
SHOWN = (2, 10, 40)  # refinement steps of the table
Found = dict[str, Any]


def cell(row: Row) -> str:
    return f"{row['error']:.3g} / {100 * row['agreement']:.0f} % / {row['cosine']:.2f}"


def fitted_layers(fitted: Found, before: Found) -> list[tuple[str, str, Layer, Layer]]:
    """(net, layer, what the fitted reverse did, what run.py found) of the layers that were measured."""
    return [
        (name, layer, fitted["entries"][f"{name}|{layer}"], known)
        for name, net in before["nets"].items()
        for layer, known in net["layers"].items()
        if f"{name}|{layer}" in fitted["entries"]
    ]


def peer_at(found: Layer, known: Layer, iterations: int) -> Row:
    """The optimizer's row: that of the same net."""
    return row_of(known if found["same_net"] else found, PEER, iterations)


def peer_seconds(found: Layer, iterations: int, single: bool = False) -> float:
    """For one image, at the pace of this run."""
    last = found["iterations"]
    seconds = found["single"][PEER] if single else row_of(found, PEER, last)["seconds"]
    return float(seconds) * iterations / last


def ours(found: Layer) -> list[Row]:
    """The fitted reverse and its refinements, by steps."""
    refined = [row for row in found["rows"] if row["method"].startswith("refine ")]
    return [row_of(found, "fitted"), *refined]


def reached(found: Layer, known: Layer, iterations: int) -> Row | None:
    """The fewest steps with no larger error than the optimizer has after so many iterations."""
    target = peer_at(found, known, iterations)["error"]
    return next((row for row in ours(found) if row["error"] <= target), None)


def fitted_text(fitted: Found, before: Found, picture: str = "") -> str:
    """The section, or nothing where nothing was measured."""
    found = fitted_layers(fitted, before)
    if not found:
        return ""
    budgets = before["plan"]["iterations"]
    last = budgets[-1]
    refined_heads = [f"refine {k}" for k in SHOWN]
    counts = [f"{budget} iterations" for budget in budgets]
    head = [
        "net",
        "layer",
        "shadow (transpose)",
        "fitted",
        *(f"refine {k}" for k in SHOWN),
        f"optimizer {last}",
    ]
    rows, controls, catching, alone = [], [], [], []
    for name, layer, one, known in found:
        refined = [row_of(one, f"refine {k}", k) for k in SHOWN]
        fit = row_of(one, "fitted")
        shown = (row_of(one, "shadow"), fit, *refined, peer_at(one, known, last))
        rows.append([name, layer, *map(cell, shown)])
        others = [row_of(one, f"fitted, {control}") for control in ("shuffled weights", "untrained")]
        controls.append([name, layer, *map(cell, (fit, *others))])
        cells = []
        for budget in budgets:
            best = reached(one, known, budget)
            share = 0.0 if best is None else best["seconds"] / peer_seconds(one, budget)
            cells.append("–" if best is None else f"{best['steps']} ({100 * share:.2g} %)")
        catching.append([name, layer, *cells])
        slow = peer_seconds(one, last, single=True)
        times = [
            one["single"]["fitted"],
            *(one["single"][f"refine {k}"] for k in SHOWN if f"refine {k}" in one["single"]),
        ]
        alone.append(
            [name, layer, *(f"{1000 * t:.3g} ({100 * t / slow:.2g} %)" for t in times), f"{1000 * slow:,.0f}"]
        )
    same = [f"{name} {layer}" for name, layer, one, _ in found if one["same_net"]]
    other = [f"{name} {layer}" for name, layer, one, _ in found if not one["same_net"]]
    beaten = [
        (name, layer) for name, layer, one, _ in found
        if row_of(one, "fitted")["error"] < row_of(one, "shadow")["error"]
    ]  # fmt: skip
    matched = [row for row in catching if row[-1] != "–"]
    bare = [
        (row_of(one, "fitted")["error"] / peer_at(one, known, last)["error"]) for _, _, one, known in found
    ]
    fits = [one["fit_seconds"] for _, _, one, _ in found]
    calibration = before["plan"]["calibration"]
    return f"""## The fitted reverse

`Shadow(net, reverse="fitted")` goes down by maps fitted on {calibration} training images
([Shadow](shadow.md)). It is not the paper's shadow; it says what h contains. On the same layers and
images, error / same label / cosine:

{table(head, rows)}

One pass has a smaller error than the calibrated transpose in {len(beaten)} of {len(found)} layers.
Its error is {min(bare):,.2g} to {max(bare):,.2g} times that of the optimizer after {last} iterations;
with refinement, 40 steps at the most, it reaches the optimizer's in {len(matched)} of {len(found)}.

The fewest steps with no larger error than the optimizer (0 is the one pass), and in brackets their time as a
share of the optimizer's; a dash: not within 40 steps.

{table(["net", "layer", *counts], catching)}

**One image at a time**, milliseconds from x on, and their share of {last} iterations:

{table(["net", "layer", "fitted", *refined_heads, f"optimizer {last}, ms"], alone)}

Fitting comes before, once for a layer and for as many images as there will be:
{min(fits):.2g} to {max(fits):.2g} seconds here.

**The controls.** The same for the net with the entries of each weight shuffled, and for a net with fresh
random weights, each with fits of its own. Error and label are those that the *trained* net sees: its h of
their image against its h of the original.

{table(["net", "layer", "fitted", "fitted, weights shuffled", "fitted, untrained"], controls)}

{picture}{told_times(same, other, last)}
"""


def told_times(same: list[str], other: list[str], last: int) -> str:
    words = [
        "Times are of a busy machine; fitted reverse and optimizer alternated in one process, and what "
        "counts is their ratio."
    ]
    if same:
        words.append(
            f"The first {CLOCK} iterations, run again, gave the error that stands in the tables below for "
            f"{', '.join(same)}: the nets are those. There {last} iterations count as {last // CLOCK} times "
            f"the first {CLOCK}."
        )
    if other:
        words.append(
            "Not the nets of the tables below but others, trained anew by the same recipe, with all "
            f"iterations of the optimizer run again: {', '.join(other)}."
        )
    return " ".join(words)


def draw_fitted(fitted: Found, before: Found, place: Path, images: int = 3) -> bool:
    """A row a layer: original, fitted, refined and the controls of some images; whether they are there."""
    from matplotlib.figure import Figure
    from safetensors.torch import load_file

    from obverse.present.png import displayed

    found = [(name, layer) for name, layer, _, _ in fitted_layers(fitted, before)]
    files = {pair: PICTURES / f"{pair[0]}-{pair[1]}-fitted.safetensors" for pair in found}
    if not found or not all(file.exists() for file in files.values()):
        return False
    titles = {
        "original": "original",
        "fitted 0": "fitted",
        "refined 10": "refined",
        "fitted, shuffled weights 0": "shuffled",
        "fitted, untrained 0": "untrained",
    }
    figure = Figure(figsize=(0.95 * images * len(titles) + 1.6, 0.92 * len(found) + 0.3))
    grid = figure.subplots(len(found), images * len(titles), squeeze=False)
    for number, pair in enumerate(found):
        stored = load_file(files[pair])
        for column, axes in enumerate(grid[number]):
            image, kind = divmod(column, len(titles))
            pixels = displayed(stored[list(titles)[kind]][image][None])[0]
            axes.imshow(pixels, cmap="gray", interpolation="nearest")
            axes.axis("off")
            if number == 0:
                axes.set_title(list(titles.values())[kind], fontsize=9, pad=3)
        words = {"fontsize": 9, "ha": "right", "va": "center"}
        grid[number][0].text(-0.15, 0.5, "\n".join(pair), transform=grid[number][0].transAxes, **words)
    figure.subplots_adjust(left=0.11, right=0.995, top=0.95, bottom=0.005, wspace=0.06, hspace=0.06)
    save_small(figure, place, dpi=60)
    return True
