"""Put the tables of the experiment into docs/ablation.md, between its marks, and draw its figure.

    python -m experiments.compression.page
    python -m experiments.compression.page --quick      (what --quick runs left, into their own folder)

Nothing is computed from anything but the result files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._lab.drawing import new_figure, save, tidy
from .._lab.quick_pages import asked_for_quick, page_of
from .._lab.result_files import mean, read
from .._lab.tables import put_between_marks, table
from .nets import PLANS, QUICK, Plan
from .ranks import METHODS
from .run import QUICK_FOLDER, RESULTS, file_of
from .zoo import FILE as ZOO
from .zoo import IMAGES, UNLABELLED

Found = dict[str, dict[str, list[dict[str, Any]]]]  # net → part → one result per seed
TREATMENTS = (
    "signal only",
    "bulk resampled",
    "bulk shuffled",
    "signal removed",
    "directions random",
    "random directions removed",
    "noise added",
    "rounded",
)
ZOO_NAME = "MobileNetV2, ImageNet"
OURS = (METHODS[0].name, "signal’s rank, shrunken")


def results(plans: Sequence[Plan], folder: Path) -> Found:
    found: Found = {}
    for plan in plans:
        file = file_of(folder, plan)
        if not file.is_file():
            continue
        entries = read(file)["entries"]
        parts = {
            part: [entries[key] for key in sorted(entries) if key.startswith(f"{part}|")]
            for part in ("need", "sizes")
        }
        if all(parts.values()):
            found[plan.name] = parts
    return found


def with_zoo(found: Found) -> Found:
    """And the public net, of which less was measured."""
    if not ZOO.is_file():
        return found
    entries = read(ZOO)["entries"]
    if not {"need|0", "sizes|0"} <= entries.keys():
        return found
    need = entries["need|0"]
    need = need | {"untreated": {"value": need["untreated"]}, "recalibrated": {"value": None}}
    return found | {ZOO_NAME: {"need": [need], "sizes": [entries["sizes|0"]]}}


def percent(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * mean(known):.1f}" if known else "–"


def at_once(found: Found) -> str:
    """All layers at once: accuracy under each treatment, and with batch norms estimated anew."""
    rows = []
    for name, parts in found.items():
        for title, field in ((name, "score"), (f"{name}, batch norm estimated anew", "recalibrated")):
            runs = parts["need"]
            if field == "recalibrated" and runs[0]["recalibrated"] is None:
                continue
            own = [
                run["untreated"]["value"] if field == "score" else run["recalibrated"]["value"]
                for run in runs
            ]
            cells = [
                [_effect(run["together"], treatment)[field]["value"] for run in runs]
                for treatment in TREATMENTS
            ]
            rows.append([title, percent(own), *(percent(cell) for cell in cells)])
    return table(["net", "untreated", *TREATMENTS], rows)


def _effect(effects: Sequence[Mapping[str, Any]], treatment: str) -> Mapping[str, Any]:
    return next(one for one in effects if one["treatment"] == treatment)


def by_layer(found: Found) -> str:
    """The first seed's layers, one at a time."""
    rows = []
    for name, parts in found.items():
        run = parts["need"][0]
        for layer in run["layers"]:
            if not layer["effects"]:
                continue
            moves = [
                _change(_effect(layer["effects"], treatment)["score"])
                for treatment in ("bulk resampled", "signal removed", "random directions removed", "rounded")
            ]
            side = min(layer["rows"], layer["columns"])
            bend = "–" if layer["needed"] is None else f"{layer['needed']:.0f}"
            size = f"{layer['rows']} × {layer['columns']}"
            kept = next(one for one in layer["curve"] if one["directions"] == layer["rank"])
            row = [
                name,
                layer["name"],
                size,
                f"{layer['rank']} of {side}",
                bend,
                _change(kept["score"]),
                *moves,
            ]
            rows.append(row)
    head = ["net", "layer", "shape", "k", "bend", "only k kept", "bulk resampled", "signal removed"]
    return table([*head, "random directions removed", "rounded"], rows)


def _change(score: Mapping[str, float]) -> str:
    change, error = 100 * score["change"], 100 * score["error"]
    sign = "+" if change > 0 else "−" if change < 0 else ""
    return f"{sign}{abs(change):.1f} ± {error:.1f}"


def bends(found: Found) -> str:
    """Over all layers of all nets: is k where the curve bends?"""
    layers = [layer for parts in found.values() for run in parts["need"] for layer in run["layers"]]
    layers = [layer for layer in layers if layer["curve"]]
    said = [_about("all", layers)]
    some = [layer for layer in layers if layer["rank"] > 0]
    if len(some) < len(layers):
        without = len(layers) - len(some)
        said[0] += f" In {without} of them no direction stands out, so that nothing is kept."
        said.append(_about("with a signal", some))
    said.append(
        "Layers of one net and of its other seeds are not independent: the rank correlations have no p-value."
    )
    return "\n\n".join(said)


def _about(which: str, layers: Sequence[Mapping[str, Any]]) -> str:
    from scipy import stats

    lost = [
        -100 * next(one for one in layer["curve"] if one["directions"] == layer["rank"])["score"]["change"]
        for layer in layers
    ]
    bent = [layer for layer in layers if layer["needed"] is not None]
    text = (
        f"Layers, {which}: {len(layers)}. Keeping only a layer’s k directions costs {mean(lost):.1f} points "
        f"of accuracy on average and {max(lost):.1f} at worst; in {sum(one <= 1 for one in lost)} of them at "
        "most one point."
    )
    if len(bent) < 4:
        return f"{text} Too few have a bend for a rank correlation."
    rho = stats.spearmanr([one["rank"] for one in bent], [one["needed"] for one in bent]).statistic
    enough = sum(layer["rank"] >= layer["needed"] for layer in bent)
    ratios = sorted(layer["rank"] / layer["needed"] for layer in bent)
    return (
        f"{text} The rank correlation of k and the bend is {_minus(rho)} over {len(bent)} layers; k is at "
        f"least as large as the bend in {enough} of them, and {ratios[len(ratios) // 2]:.1f} times as large "
        "in the median."
    )


def _minus(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def equal(found: Found) -> str:
    """All methods at the number of parameters that the signal's rank gives."""
    rows = []
    for name, parts in found.items():
        runs = parts["sizes"]
        own = [name, "untreated", f"{round(mean([run['parameters'] for run in runs])):,}"]
        rows.append([*own, percent([run["accuracy"] for run in runs]), "–", "–"])
        for at in range(len(runs[0]["equal"])):
            points = [run["equal"][at] for run in runs]
            size = f"{round(mean([point['parameters'] for point in points])):,}"
            error = mean([point["error"] ** 2 for point in points]) ** 0.5 / len(points) ** 0.5
            change = {"change": mean([point["change"] for point in points]), "error": error}
            accuracy, again = (percent([point[field] for point in points]) for field in ("accuracy", "again"))
            rows.append([name, points[0]["method"], size, accuracy, _change(change), again])
    head = ["net", "method", "parameters", "accuracy, %", "change", "batch norm estimated anew"]
    return table(head, rows)


def places(found: Found) -> str:
    """Who is best at equal parameters, in a sentence per net."""
    said = []
    for name, parts in found.items():
        runs = parts["sizes"]
        for field, when in (("accuracy", ""), ("again", " with batch norm estimated anew")):
            scores: dict[str, float] = {}
            for at, point in enumerate(runs[0]["equal"]):
                values = [run["equal"][at][field] for run in runs]
                if None not in values:
                    scores[point["method"]] = mean(values)
            if not scores:
                continue
            order = sorted(scores, key=lambda method: -scores[method])
            ours = max(OURS, key=lambda method: scores[method])
            place, best = order.index(ours) + 1, order[0]
            if scores[best] < mean([run["accuracy"] for run in runs]) / 2:
                words = f"none keeps half of the accuracy; {best} has the most, {100 * scores[best]:.1f} %"
                if not scores[best]:
                    words = "none gets a single test input right"
            elif best in OURS:
                rival = next(method for method in order if method not in OURS)
                ahead = 100 * (scores[best] - scores[rival])
                words = f"the signal’s rank is best, {ahead:.1f} points ahead of {rival}"
                if ahead < 0.05:
                    words = f"the signal’s rank and {rival} are best and equal"
            else:
                words = (
                    f"{best} is best; the signal’s rank is number {place} of {len(order)}, "
                    f"{100 * (scores[best] - scores[ours]):.1f} points behind"
                )
            said.append(f"- {name}{when}: {words}.")
    return "\n".join(said) + "\n\nDifferences of a few tenths of a point are not significant here."


def usual(found: Found) -> str:
    """Each method at its usual setting, without a budget."""
    rows = []
    for name, parts in found.items():
        runs = parts["sizes"]
        for at, point in enumerate(runs[0]["points"]):
            if point.get("usual"):
                points = [run["points"][at] for run in runs]
                left = mean(
                    [one["parameters"] / run["parameters"] for one, run in zip(points, runs, strict=True)]
                )
                accuracy, again = (percent([one[field] for one in points]) for field in ("accuracy", "again"))
                rows.append([name, point["method"], f"{100 * left:.0f} %", accuracy, again])
    return table(["net", "method", "parameters left", "accuracy, %", "batch norm estimated anew"], rows)


def draw(found: Found, place: Path) -> None:
    figure = new_figure(4.6 * len(found), 3.9)
    axes = figure.subplots(1, len(found), squeeze=False)[0]
    for axis, (name, parts) in zip(axes, found.items(), strict=True):
        runs = parts["sizes"]
        curves: dict[str, list[tuple[float, float]]] = {}
        for at, point in enumerate(runs[0]["points"]):
            size = mean([run["points"][at]["parameters"] / run["parameters"] for run in runs])
            accuracy = mean([run["points"][at]["accuracy"] for run in runs])
            curves.setdefault(point["method"], []).append((100 * size, 100 * accuracy))
        for number, (method, points) in enumerate(curves.items()):
            line = sorted(points)
            alone = len(line) == 1
            axis.plot(
                *zip(*line, strict=True),
                color=f"C{number}",
                marker="*" if alone else "o",
                ms=13 if alone else 4,
                linestyle="none" if alone else "-",
                label=method,
                zorder=3 if alone else 2,
            )
        axis.axhline(100 * mean([run["accuracy"] for run in runs]), color="0.5", lw=0.8, ls="--")
        axis.grid(alpha=0.3)
        tidy(axis, name, "parameters left, %", "accuracy, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save(figure, place)


EQUAL = (
    "Each method’s knob is set so that the net has at most as many parameters as the signal’s rank gives it. "
    "Pruned entries count as saved; “places counted” gives pruning half as many entries, as each needs its "
    "place too. All methods leave alone what is too small to be taken apart, such as an output layer for ten "
    "classes. The change is in points ± paired standard error."
)
ABOUT_ZOO = (
    f"MobileNetV2 is torchvision’s; it was tested on {IMAGES} images, so that its accuracy has a standard "
    f"error of about 5 points, and its batch norms were estimated anew on {UNLABELLED} others. Its depthwise "
    "convolutions are too small to be taken apart and stay."
)
STAYS = "A layer stays as it is if its rank is 0, or so large that two thin layers are no smaller."
STAR = "Dashed: untreated. `compress` makes the signal’s rank at 1 × k; the star is the same, shrunken."


def text(found: Found, figure: str) -> str:
    seeds = "; ".join(f"{name}: {len(parts['need'])}" for name, parts in found.items())
    wider = with_zoo(found)
    parts = [
        "### All layers at once",
        f"Accuracy in %, mean over seeds ({seeds}).",
        at_once(wider),
        *([ABOUT_ZOO] if ZOO_NAME in wider else []),
        "### One layer at a time",
        "Change of accuracy in points ± paired standard error over test inputs, first seed.",
        by_layer(found),
        "### Is k where the curve bends?",
        bends(found),
        "### Compression at equal parameters",
        EQUAL,
        equal(wider),
        places(wider),
        f"![Accuracy over the share of parameters left, by method]({figure})",
        STAR,
        "### Each method at its usual setting",
        usual(found),
        STAYS,
    ]
    return "\n\n".join(parts) + "\n"


def page(quick: bool = False) -> None:
    found = results(QUICK, QUICK_FOLDER) if quick else results(PLANS, RESULTS)
    if not found:
        return
    place = page_of("ablation", quick)
    draw(found, place.parent / "figures" / "compression.svg")
    put_between_marks(place, text(found, "figures/compression.svg"))


if __name__ == "__main__":
    page(asked_for_quick(__doc__))
