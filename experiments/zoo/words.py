"""The text of docs/zoo.md: numbers from the committed results; what these could make false is checked."""

from __future__ import annotations

from collections import Counter

from obverse.claims.alm._hypothesis import CLOSE, NORMAL

from .._lab.result_files import read
from .._lab.tables import table
from . import tables, verdicts
from .counts import FEWEST, middle, pooled_share
from .layers import SAMPLES, judged
from .manifest import read as manifest
from .results_of import by_cluster, functions, nets
from .results_of import tables as layers_of
from .run import RESULTS
from .statements import LINES, STATEMENTS

BY_NAME = {one.name: one for one in STATEMENTS}


def sure(holds: bool, sentence: str) -> str:
    """A sentence, as long as the results say so."""
    if not holds:
        raise SystemExit(f"the results do not say so any more: {sentence!r}; write another sentence")
    return sentence


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def minus(text: str) -> str:
    return text.replace("-", "−")


def opening() -> str:
    known, found = nets(), layers_of()
    layers = sum(map(len, found.values()))
    told = [row for rows in found.values() for row in judged(rows)]
    clusters = len({known[name].cluster for name in found})
    low, half, high = middle([row["random_share"] for row in told if row["random_share"] is not None])
    return f"""# The zoo: is the hypothesis true of networks that people use?

*Why are deep nets reversible* assumes that the weights of trained nets are like random numbers, and tests
that on AlexNet. You get here the same test, statement by statement, on {len(found)} public nets with
{layers:,} layers, of which {len(told):,} could be judged: of the others most are too small. Type:

```
make zoo                                     # gets 1.2 GB from public registries and audits all of it
python -m experiments.zoo.run crepe magika   # some of them
```

{headline()}

Half of the layers have between {percent(low)} and {percent(high)} of their energy in numbers like random
ones, the median is {percent(half)} (where a bulk is structured otherwise, the most that can be random is
counted). Pages of single nets are in the [gallery](gallery.md).

![All layers of all nets as coloured cells, a row for each net from first to last layer](figures/zoo-heat.png)

Each cell is a layer, coloured by the share of its energy that is like random numbers; a white dot says that
no more is known than that it is at most so much; grey layers are not judged. {unordered()}

{how_to_read(clusters)}
"""


def headline() -> str:
    share = {name: pooled_share(by_cluster(one.holds)) for name, one in BY_NAME.items()}
    before, after = share["values on the law"], share["bulk’s values on the law"]
    entries, bulk = share["entries normal"], share["bulk’s entries normal"]
    constant, back = share["biases constant"], share["a sparse h comes back"]
    return sure(
        max(before.value, entries.value, constant.value, back.value) < 0.5
        and before.value < after.value
        and entries.value < bulk.value,
        "As printed the hypothesis is false of most of these layers: the singular values follow the law of "
        f"random entries in {percent(before.value)} of them, the entries fit a normal distribution in "
        f"{percent(entries.value)}, biases are nearly constant in {percent(constant.value)}, and a sparse h "
        f"comes back as through random weights in {percent(back.value)}. In the graded form more of it is "
        "true: with profile and signal taken off, the singular values follow the law in "
        f"{percent(after.value)} and the entries are normal in {percent(bulk.value)}.",
    )


def unordered() -> str:
    names = [net.title for net in nets().values() if not net.ordered]
    return f"Of {'; '.join(names)} the order is that of the file, and not known to be that of the net."


def how_to_read(clusters: int) -> str:
    copies = [net.title for net in nets().values() if net.copy_of]
    copied = f", and a copy ({', '.join(copies)}) counts nowhere but under precision" if copies else ""
    return f"""## How to read the tables

- Layers of one net are not independent. Every interval (95 %) is over nets: {clusters} of them, since
  trainings of one architecture count as one{copied}.
  *Share of all layers* is pooled; its interval knows that whole nets were chosen. *Mean over nets* gives each
  net the same weight. Groups of fewer than {FEWEST} nets have no interval, but the number of nets.
- The nets are those that packages of public registries happen to hold: no sample of anything. Nothing here is
  about networks beyond them. The intervals say how much a number depends on which nets are in.
- The lines are those of the claims `alm.hypothesis.*` and of the [audit](audit.md); the paper gives one for
  biases alone (mean ÷ standard deviation above 5). A sparse h is random: {SAMPLES} draws at each of three
  sparsities, and the one counts at which the layer does surely worst.
- *Bulk* is what is left when a layer is [taken apart](decompose.md) as profile × (signal + bulk). The more
  directions are called signal, the less is left that could be off the law: read what is said of the bulk
  beside the signal’s rank.
- Biases that are all 0 are left out: they say nothing.
- A matrix is a layer as its file stores it. Convolutions are the matrix on one patch. Of a transposed
  convolution a file does not always say that it is one; then it is cut the other way. Depthwise kernels are
  too small to be judged.
"""


def statements() -> str:
    return f"""## Statement by statement

{tables.statement_table()}

## In the graded form

{tables.graded_table()}
"""


def goes_with() -> str:
    return f"""## What goes with it

Shares of layers for which a statement is true, and the mean over nets of their median random share. Kind of
layer, depth, net and task go together here, and few nets are in a group: a difference between two rows is no
effect of what they are called.

{tables.by_kind_of_layer()}

{tables.by_depth()}

{tables.by_role()}

{roles()}

{tables.by_kind_of_net()}

Normalization, as the file tells it:

{tables.by_norm()}

Rank correlations over the layers of a net, means over nets:

{tables.correlation_table()}

With what weight decay a net was trained is not in the manifest, so nothing is said of that.
"""


def roles() -> str:
    found = tables.difference_of_roles(("query", "key"), ("value", "attention output"))
    return (
        "Random share of query and key minus that of value and attention output, mean over "
        f"{found.clusters} nets: {tables.signed(found)}."
    )


def figure_four() -> str:
    return """## Figure 4 of the paper, for layers here

![Histograms of entries, biases and singular values of seven layers](figures/zoo-figure-4.png)

The paper shows AlexNet’s second fully connected layer, which none of these packages has. These are AlexNet’s
convolutions and the last layers of FaceNet and ResNet-50, in the paper’s arrangement: (a) entries beside the
normal distribution, (b) biases, (c) singular values beside the law of random entries; filled as they are, in
outline with the profile of rows and columns taken off. The signal is in both; what lies beyond the frames is
not drawn.
"""


def precision() -> str:
    file = RESULTS / "precision.json"
    if not file.exists():
        return ""
    entries, rows = read(file)["entries"], []
    titles = {"float16": "float16, as published", "four bits": "four bits as in Q4_1, made here"}
    for copy, title in titles.items():
        found = [one for key, one in entries.items() if key.startswith(f"{copy}|")]
        changes = Counter(one["change"] for one in found)
        pairs = [one["random share"] for one in found if None not in one["random share"]]
        moved = [after - before for before, after in pairs]
        same = sum(one["rank"][0] == one["rank"][1] for one in found)
        rank = sum(one["rank"][1] - one["rank"][0] for one in found) / len(found)
        cells = [
            ", ".join(f"{count} {change}" for change, count in changes.most_common()),
            str(sum(1 for one in found if one["directions"])),
            f"{same} of {len(found)}",
            minus(f"{rank:+.1f}"),
            minus(f"{100 * sum(moved) / len(moved):+.2f}"),
            f"{100 * max(map(abs, moved)):.2f}",
        ]
        rows.append([title, str(len(found)), *cells])
    head = ["copy", "matrices", "what `difference` calls it", "with directions", "rank the same"]
    head += ["change of rank, mean", "of random share, points, mean", "largest"]
    told = list(judged(layers_of().get("smollm2-135m-q4_1", [])))
    grid = sum(row["entries_step"] is not None for row in told)
    quantized = f"""
SmolLM2 is here in Q4_1 alone, so what rounding did to it is not measured: of its {len(told)} judged layers
the entries of {grid} were seen to lie on one grid (the format has a grid for each 32 numbers).
"""
    return f"""## Precision

MiniLM-L6 in float32 is the base; its matrices but for the embeddings:

{table(head, rows)}
{quantized if told else ""}"""


def noise() -> str:
    known, found = nets(), layers_of()
    levels = [name for name in found if known[name].family == "ligandmpnn"]
    if len(levels) < 2:
        return ""
    rows = []
    for name in sorted(levels, key=lambda name: known[name].title):
        told = list(judged(found[name]))
        shares = [row["random_share"] for row in told if row["random_share"] is not None]
        ranks = [row["rank"] / min(row["rows"], row["columns"]) for row in told]
        distances = [row["distance"] for row in told]
        constant = [one for row in told if (one := BY_NAME["biases constant"].holds(row)) is not None]
        cells = [percent(sum(one) / len(one), 1) for one in (shares, ranks)]
        cells += [f"{sum(distances) / len(distances):.3f}", f"{sum(constant)} of {len(constant)}"]
        rows.append([known[name].title.rpartition(" ")[2], str(len(told)), *cells])
    head = ["training noise", "layers", "random share, mean", "rank ÷ side, mean", "bulk’s distance, mean"]
    return f"""## Training noise

LigandMPNN was trained with noise on the coordinates of proteins; {len(levels)} levels, one training each:

{table([*head, "biases constant"], rows)}
"""


def function() -> str:
    found = {name: one for name, one in functions().items() if one["together"]}
    if not found:
        return ""
    treatments = list(dict.fromkeys(key for one in found.values() for key in one["together"]))
    rows, alone, names = [], [], []
    for one in found.values():
        scores = [
            one["together"].get(treatment, {}).get("score", {}).get("value") for treatment in treatments
        ]
        cells = ["–" if score is None else f"{score:.3f}" for score in scores]
        rows.append([one["title"], one["measured"], f"{one['untreated']:.3f}", *cells])
        layers = [entry["effects"] for entry in one["layer"].values() if "effects" in entry]
        if layers:
            names = list(layers[0])
            alone.append([one["title"], str(len(layers)), *(_changes(layers, name) for name in names)])
    return f"""## Function: what the nets need

[Ablation](ablation.md) of the nets for which inputs exist. All layers at once that can be taken apart:

{table(["net", "measured", "untreated", *treatments], rows)}

One layer at a time: the mean change over layers, and the largest.

{table(["net", "layers", *names], alone)}
"""


def _changes(layers: list[dict[str, dict[str, dict[str, float]]]], treatment: str) -> str:
    scores = [effects[treatment]["score"] for effects in layers]
    changes = [score["change"] for score in scores if score["change"] is not None]
    return minus(f"{sum(changes) / len(changes):+.3f}, {max(changes, key=abs):+.3f}") if changes else "–"


def on_claims() -> str:
    return f"""## The claims on these nets

The [claims](claims.md) `alm.hypothesis.*` ask the same of nets trained on embedded digits. These are their
quantities and lines, with the mean over nets of the means over layers in place of a mean over trainings;
*held* and *failed* need {verdicts.ERRORS} standard errors over nets, as there. What a claim says of how its
nets were trained is not known of these.

{verdicts.verdict_table()}
"""


def surprises() -> str:
    """The numbers that the sentences are about, each checked by `sure`."""
    told = [row for rows in layers_of().values() for row in judged(rows)]
    seen = Counter(row["verdict"] for row in told)
    follows = sum(row["distance"] <= CLOSE for row in told)
    normal = [row for row in told if row["bulk_ks"] is not None and row["bulk_ks"] <= NORMAL]
    worse = sum(row["recovery_ratio"] > LINES.recovery_ratio for row in normal)
    biases = pooled_share(by_cluster(BY_NAME["biases constant"].holds))
    bounds = sum(row["rank_is_bound"] for row in told)
    roles = tables.difference_of_roles(("query", "key"), ("value", "attention output"))
    depth = tables.within_nets(tables.CORRELATES["depth"], tables.AGAINST["random share"])
    lines = [
        sure(
            roles.high is not None and roles.high < 0,
            "Query and key are less random than value and attention output of the same net: the difference "
            f"of their random shares is {tables.signed(roles)} in the mean of {roles.clusters} nets.",
        ),
        sure(
            depth.low is not None and depth.low > 0,
            "Later layers of a net tend to be more random: the rank correlation of depth and random share is "
            f"{tables.signed(depth)} in the mean of {depth.clusters} nets.",
        ),
        sure(
            seen["untouched"] < 0.1 * len(told),
            f"{seen['untouched']} of {len(told):,} layers are *untouched*: no direction stands out "
            "from noise.",
        ),
        sure(
            worse > 0.5 * len(normal),
            f"Normal entries are not enough: in {worse:,} of the {len(normal):,} layers whose bulk’s entries "
            f"are normal, a sparse h comes back with more than {LINES.recovery_ratio:g} times the error of "
            "the layer’s own entries in random order.",
        ),
        sure(
            biases.value < 0.2,
            "Nearly constant biases, which the paper finds in five of AlexNet’s seven layers, are found in "
            f"{percent(biases.value)} of the {biases.layers} layers here whose biases are not all 0.",
        ),
        sure(
            follows > 0.5 * len(told),
            f"The bulk follows the law (distance at most {CLOSE:g}) in {follows:,} of {len(told):,} "
            "layers; "
            f"{seen['structured otherwise']} are called *structured otherwise*.",
        ),
        f"In {bounds:,} of {len(told):,} layers the rank is a lower bound only: there is no gap between the "
        "weakest direction that was counted and the bulk.",
    ]
    return "## What surprised us\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def doubts() -> str:
    counts = {name: len(list(judged(rows))) for name, rows in layers_of().items()}
    largest = max(counts, key=lambda name: counts[name])
    told = [row for rows in layers_of().values() for row in judged(rows)]
    half = sum(row["rank"] > min(row["rows"], row["columns"]) / 2 for row in told)
    return f"""## What we would not bet on

- Shares of all layers: {nets()[largest].title} alone has {counts[largest]} of the {len(told):,} layers. The
  mean over nets weighs nets alike, and is about these nets.
- That the bulk is random where the signal’s rank is high: in {half} layers more than half of all directions
  are called signal, and few singular values are left to judge.
- Differences between kinds of nets or of normalization: the kinds differ in size, age and task, and few nets
  are in each.
- Depth: where branches run side by side the order of the layers is that of the file.
- Training noise: one training at each level, which may differ as much by chance.
"""


def left_out() -> str:
    known = {net.name: net for net in manifest() if net.name not in nets()}
    if not known:
        return ""
    names = "; ".join(net.title for net in known.values())
    return f"In the manifest, but not in these results: {names}.\n"


def the_nets() -> str:
    return f"""## The nets

A licence is what the package states of itself, which need not be that of the weights.

{tables.net_table()}
"""


def again() -> str:
    return """## Again

| part | command |
| --- | --- |
| all audits | `make zoo` |
| ablation; DIR has photographs, `012_….jpg` of class 12 | `python -m experiments.zoo.function --images DIR` |
| pictures of the gallery | `python -m experiments.zoo.gallery` |
| this page and its figures | `python -m experiments.zoo.page` |

`experiments/zoo/manifest.json` names packages, versions and checksums. A package that is gone or has changed
is named, and the rest goes on.
"""


def text() -> str:
    made = [opening, statements, goes_with, figure_four, precision, noise, function, on_claims]
    made += [surprises, doubts, the_nets, left_out, again]
    return "\n".join(one for part in made if (one := part())).replace("\n\n\n", "\n\n")
