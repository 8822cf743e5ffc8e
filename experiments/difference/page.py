"""Put the tables of known differences into docs/difference.md, between its marks: no hand-made numbers.

python -m experiments.difference.page
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy.stats import kstest

from obverse._core.statistics import clopper_pearson

from .._lab.places import DOCS
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .run import BASES, FAMILIES, FILE, RANKS

PAGE = DOCS / "difference.md"
SHORT = {
    BASES[0]: "float32",
    BASES[1]: "bfloat16, the update rounded into it",
    BASES[2]: "bfloat16, both rounded from float32",
}


def of(entries: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The entries of a kind, without it in their names."""
    return {
        name.removeprefix(f"{kind}/"): one for name, one in entries.items() if name.startswith(f"{kind}/")
    }


def counts(changes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {change}" for change, count in changes.items())


def rounding_text(entries: Mapping[str, Any]) -> str:
    """One row per copy; and how often an update was seen where there is none."""
    found = of(entries, "rounding")
    head = ["copy", "pairs", "what it is called", "with directions"]
    rows = [
        [copy, str(one["pairs"]), counts(one["changes"]), str(one["with directions"])]
        for copy, one in found.items()
    ]
    pairs, alarms = (sum(one[key] for one in found.values()) for key in ("pairs", "with directions"))
    others = pairs - sum(one["changes"].get("nothing but rounding", 0) for one in found.values())
    high = clopper_pearson(alarms, pairs, 0.95)[1]
    return (
        "Matrices of 256 × 384 (normal entries, log-normal profiles, Student t₅, eight strong directions) "
        f"against their copies, both ways round:\n\n{table(head, rows)}\n\nOf {pairs} pairs, {alarms} got a "
        f"direction (at most {100 * high:.2f} %, Clopper–Pearson at 95 %) and {others} another name than "
        "rounding."
    )


def real_text(entries: Mapping[str, Any]) -> str:
    found = of(entries, "real")
    if not found:
        return ""
    rows = [
        [copy, str(one["pairs"]), counts(one["changes"]), str(one["with directions"])]
        for copy, one in found.items()
    ]
    head = ["copy", "matrices", "what it is called", "with directions"]
    return f"The matrices of MiniLM-L6, a public sentence encoder in float32:\n\n{table(head, rows)}"


def update_text(entries: Mapping[str, Any]) -> str:
    """The right rank in percent, one row per strength, base and kind of matrix."""
    found: dict[tuple[str, str, str], dict[int, Any]] = {}
    for name, one in of(entries, "update").items():
        family, base, rank, times = name.split("/")
        found.setdefault((times, base, family), {})[int(rank)] = one
    if not found:
        return ""
    order = sorted(
        found,
        key=lambda key: (float(key[0]), BASES.index(key[1]), FAMILIES.index(key[2])),
    )
    head = ["× θ", "base", "entries", *(f"rank {rank}" for rank in RANKS)]
    rows = [
        [
            key[0],
            SHORT[key[1]],
            key[2],
            *(exact(found[key].get(rank)) for rank in RANKS),
        ]
        for key in order
    ]
    return (
        "Updates of equal singular values in random directions, saved in bfloat16: in how many of the pairs "
        f"the rank is exactly right (– not run):\n\n{table(head, rows)}"
    )


def exact(one: Mapping[str, Any] | None) -> str:
    return "–" if one is None else f"{one['right rank']} of {one['pairs']}"


def dense_text(entries: Mapping[str, Any]) -> str:
    head = [
        "size, in steps of bfloat16",
        "entries",
        "stored in",
        "what it is called",
        "with directions",
    ]
    rows = []
    for name, one in of(entries, "dense").items():
        family, size, stored = name.split("/")
        rows.append([size, family, stored, counts(one["changes"]), str(one["with directions"])])
    if not rows:
        return ""
    return f"Changes of full rank, normal numbers in every entry:\n\n{table(head, rows)}"


def lineage_text(entries: Mapping[str, Any]) -> str:
    parts = of(entries, "lineage")
    apart = [p for name, one in parts.items() if name.startswith("independent/") for p in one["p"]]
    related = [p for name, one in parts.items() if name.startswith("related/") for p in one["p"]]
    classes = [p for name, one in parts.items() if name == "output rows" for p in one["p"]]
    text = []
    if apart:
        uniform = kstest(apart, "uniform").pvalue
        below = sum(p <= 0.05 for p in apart)
        text.append(
            f"Nets of 64-32-16-10 trained apart on the embedded digits, {len(apart)} disjoint pairs: their "
            f"p-values against the uniform distribution, Kolmogorov–Smirnov p = {uniform:.2f}; {below} of "
            f"{len(apart)} are 0.05 or less, the smallest is {min(apart):.4f}."
        )
    if related:
        least = sum(p == min(related) for p in related)
        text.append(
            f"The same nets trained three times as long: {least} of {len(related)} have the smallest p there "
            f"is, {min(related):.4f}."
        )
    if classes:
        text.append(
            "Asked of the rows of an output layer, which are classes, the test would be wrong: of "
            f"{len(classes)} pairs trained apart, {sum(p <= 0.05 for p in classes)} have p ≤ 0.05. "
            "That is why it is not asked there."
        )
    return "\n\n".join(text)


def page() -> None:
    entries = read(FILE)["entries"]
    made = (rounding_text, real_text, update_text, dense_text, lineage_text)
    put_between_marks(PAGE, "\n\n".join(text for one in made if (text := one(entries))) + "\n")


if __name__ == "__main__":
    page()
