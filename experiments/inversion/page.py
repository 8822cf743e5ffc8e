"""Put the results of run.py into docs/inversion.md, between its marks, and draw its figures.

    python -m experiments.inversion.page

Tables and curves are made from inversion.json alone; the picture is drawn anew where the images that
run.py left in runs/ are still there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from obverse._core.files import read_json

from .._lab.places import DOCS
from .._lab.tables import put_between_marks, table
from .figures import (
    CONTROL,
    PEER,
    PICTURES,
    SHADOW,
    STARTED,
    Layer,
    Row,
    draw_curves,
    draw_pictures,
    layers,
    row_of,
    series,
)
from .fitted import FILE as FITTED
from .fitted_page import draw_fitted, fitted_text
from .run import FOLDER

BAR = 300  # how many times faster than the optimizer's last iteration a shadow must be


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g}"


def cell(row: Row) -> str:
    return f"{row['error']:.3g} / {100 * row['agreement']:.0f} % / {row['cosine']:.2f}"


def speed(results: dict[str, Any]) -> str:
    last, batch = results["plan"]["iterations"][-1], results["plan"]["batch"]
    head = ["net", "layer", "shadow, ms", f"optimizer {last}, ms", "ratio", "ratio one image at a time"]
    rows = []
    for name, layer, found in layers(results):
        quick, slow = row_of(found, SHADOW)["seconds"], row_of(found, PEER, last)["seconds"]
        single = found["single"][PEER] / found["single"][SHADOW]
        rows.append(
            [name, layer, milliseconds(quick), milliseconds(slow), f"{slow / quick:,.0f}", f"{single:,.0f}"]
        )
    ratios = [float(row[4].replace(",", "")) for row in rows]
    alone = [float(row[5].replace(",", "")) for row in rows]
    verdict = "holds" if min(ratios) >= BAR else "is **missed**"
    return f"""{table(head, rows)}

Milliseconds an image in batches of {batch}. The bar, {BAR} times faster than {last} iterations, {verdict}:
the ratio is {min(ratios):,.0f} to {max(ratios):,.0f}; one image at a time, where the cost of a shadow is
mostly that of calling many small functions, {min(alone):,.0f} to {max(alone):,.0f}.
"""


def quality(results: dict[str, Any]) -> str:
    """What the speed costs, and what a few steps give back."""
    last = results["plan"]["iterations"][-1]
    few, many = results["plan"]["refine"][len(results["plan"]["refine"]) // 2], results["plan"]["refine"][-1]
    kinds: dict[str, Callable[[Layer], Row]] = {
        "shuffled weights": lambda found: row_of(found, CONTROL),
        "shadow": lambda found: row_of(found, SHADOW),
        f"refine {few}": lambda found: row_of(found, f"refine {few}", few),
        f"refine {many}": lambda found: row_of(found, f"refine {many}", many),
        f"optimizer {last}": lambda found: row_of(found, PEER, last),
    }
    rows = [
        [name, layer, *(cell(of(found)) for of in kinds.values())] for name, layer, found in layers(results)
    ]
    return table(["net", "layer", *kinds], rows)


def cost(results: dict[str, Any]) -> str:
    """The price of the speed in words, from the numbers."""
    last = results["plan"]["iterations"][-1]
    total, better, agreed, agreed_peer, ahead, worse = 0, 0, [], [], [], []
    raw = [row_of(found, "shadow")["error"] for _, _, found in layers(results)]
    for name, layer, found in layers(results):
        own, control, peer = row_of(found, SHADOW), row_of(found, CONTROL), row_of(found, PEER, last)
        total += 1
        better += own["error"] < control["error"] and own["agreement"] > control["agreement"]
        worse.append(own["error"] / peer["error"])
        agreed.append(own["agreement"])
        agreed_peer.append(peer["agreement"])
        if own["cosine"] > peer["cosine"]:
            ahead.append(f"{name} {layer}")
    looks = (
        f"Its pixels are nearer to the original in {len(ahead)} of {total} ({', '.join(ahead)})."
        if ahead
        else ""
    )
    kept, kept_peer = (f"{100 * sum(values) / total:.0f} %" for values in (agreed, agreed_peer))
    return f"""The bare shadow pays for its speed. Averaged over the {total} layers it keeps the label of
{kept} of the images, the optimizer after {last} iterations {kept_peer}; its recovery error is
{min(worse):,.0f} to {max(worse):,.0f} times as large. It has both a smaller error and more labels than the
shadow of the same net with shuffled weights in {better} of {total} layers. {looks}

These shadows were calibrated. At the theory's scale alone the error is {min(raw):,.0f} to {max(raw):,.0f}:
the h of these layers are dense, and often wider than what the layer reads, where the theory has few non-zero
entries and more inputs than units. Labels and pixels suffer less, but for a small error calibrate first.
"""


def cheapest(found: Layer, iterations: int) -> tuple[Row, float] | None:
    """The quickest refined shadow with no larger error than the optimizer, and how much quicker it is."""
    peer = row_of(found, PEER, iterations)
    reached = [row for row in series(found, "refine") if row["error"] <= peer["error"]]
    best = min(reached, key=lambda row: row["seconds"], default=None)
    return None if best is None else (best, peer["seconds"] / best["seconds"])


def catching_up(results: dict[str, Any]) -> str:
    """For each number of iterations: how few refining steps have no larger error, and how much less time."""
    budgets, most = results["plan"]["iterations"], results["plan"]["refine"][-1]
    rows, words = [], []
    for name, layer, found in layers(results):
        pairs = [cheapest(found, budget) for budget in budgets]
        cells = ["–" if pair is None else f"{pair[0]['steps']} ({pair[1]:.1f}×)" for pair in pairs]
        rows.append([name, layer, *cells])
    for budget in budgets:
        known = [pair for _, _, found in layers(results) if (pair := cheapest(found, budget)) is not None]
        gain = (
            f", {min(p[1] for p in known):.1f} to {max(p[1] for p in known):.1f} times faster"
            if known
            else ""
        )
        words.append(f"- {budget} iterations: matched in {len(known)} of {len(rows)} layers{gain}")
    head = ["net", "layer", *(f"{budget} iterations" for budget in budgets)]
    return f"""The fewest refining steps (0 is the shadow itself) with no larger error than the optimizer, and
in brackets how much less time they take. A dash: not within {most} steps.

{table(head, rows)}

{chr(10).join(words)}
"""


def everything(results: dict[str, Any]) -> str:
    """One table a net: a row a method, a column a layer."""
    parts = []
    for name, net in results["nets"].items():
        keys = [(row["method"], row["steps"]) for row in next(iter(net["layers"].values()))["rows"]]
        rows = []
        for method, steps in keys:
            found = [row_of(layer, method, steps) for layer in net["layers"].values()]
            label = f"{method}, {steps} iterations" if method in (PEER, STARTED) else method
            rows.append([label, *(f"{cell(row)} / {milliseconds(row['seconds'])}" for row in found)])
        accuracy = 100 * (1 - net["test_error"])
        parts.append(f"### {name}: {net['title']}, {accuracy:.1f} % of the test set right\n")
        parts.append(table(["error / same label / cosine / ms", *net["layers"]], rows) + "\n")
    return "\n".join(parts)


def settings(results: dict[str, Any]) -> str:
    rows = [
        [name, layer, *(str(value) for value in found["settings"].values())]
        for name, layer, found in layers(results)
    ]
    return table(["net", "layer", *next(layers(results))[2]["settings"]], rows)


def text(results: dict[str, Any], fitted: str = "") -> str:
    plan, machine = results["plan"], results["machine"]
    first, *_, last = plan["iterations"]
    return f"""{plan["images"]} test images, batches of {plan["batch"]}, one thread of {machine["cpu"]}, torch
{machine["torch"]}. *Error* is the recovery error Σ‖ĥ − h‖² / Σ‖h‖² of the layer, *same label* how often the
net gives image and inversion one label, *cosine* that of their pixels. Seconds count from x, so that both
sides first infer h; both alternate in one process, and seconds are medians over batches.

## How much faster

{speed(results)}
## What that costs

Error / same label / cosine. *Shuffled weights* is the shadow of the same net with the entries of each weight
permuted: what any net of that form would draw.

{quality(results)}

{cost(results)}
![Pictures: original, shadow, refined shadow, optimizer]({relative("pictures.png")})

Each picture has its own brightness.

## Closing the gap: a few steps from the shadow

`Shadow.of(x, refine=k)` takes k gradient steps on ‖h(x̃) − h‖². A step costs about as much as an iteration of
the optimizer; what counts is that it begins at the shadow and needs no step size.

![Recovery error against time]({relative("error.png")})

![Label agreement against time]({relative("labels.png")})

{catching_up(results)}
{fitted}## All numbers

{everything(results)}
## How the optimizer was tuned

On {plan["tuning"]} training images of each layer, by its recovery error after {last} iterations, one setting
after the other: Adam at lr 0.05, 0.1, 0.2 or momentum at 1, 3, 10; `tv` 0.01, 0.1, 1; `norm` 0.001, 0.01;
`spread` of the noise at the start 0.1, 0.5. The shadow's scales were chosen by `calibrate` on
{plan["calibration"]} training images; nothing else about it was tuned. The values at {first} to {last}
iterations are those of one run at a constant learning rate: a run tuned for {first} could end lower.

{settings(results)}
"""


def relative(name: str) -> str:
    return f"../experiments/inversion/results/{name}"


def page() -> None:
    results = read_json(FOLDER / "inversion.json", "results of an inversion")
    draw_curves(results, "error", "recovery error", FOLDER / "error.png")
    draw_curves(results, "agreement", "same label", FOLDER / "labels.png")
    stored = [PICTURES / f"{name}-{layer}.safetensors" for name, layer, _ in layers(results)]
    if all(file.exists() for file in stored):
        draw_pictures(results, FOLDER / "pictures.png")
    told = read_json(FITTED, "results of the fitted reverse") if FITTED.exists() else {"entries": {}}
    draw_fitted(told, results, FOLDER / "fitted.png")
    image = f"![Original, fitted, refined, and both controls]({relative('fitted.png')})\n\n"
    fitted = fitted_text(told, results, image if (FOLDER / "fitted.png").exists() else "")
    put_between_marks(DOCS / "inversion.md", text(results, fitted))


if __name__ == "__main__":
    page()
