"""Put the tables of docs/reverses.md between its marks.

    python -m experiments.reverses.page

Nothing is computed from anything but the result file.
"""

from __future__ import annotations

from typing import Any

from obverse._core.statistics import mean_and_se

from .._lab.places import DOCS
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .run import FILE, NETS, STATES

PARTS = {
    "whole": "as they are",
    "profile_off": "without the profile",
    "bulk": "bulk with bulk",
    "signal": "signal with signal",
}
GUESSING = 0.5  # test error from which on a net is not called trained
Entries = dict[str, Any]


def values(entries: Entries, name: str, state: str, place: int, part: str) -> list[float]:
    """One number a seed; seeds for which there is none are left out."""
    found = [
        entry["layers"][place][part]
        for key, entry in entries.items()
        if key.rsplit("|", 1)[0] == f"{name}|{state}"
    ]
    return [one for one in found if one is not None]


def cell(numbers: list[float]) -> str:
    if not numbers:
        return "–"
    mean, se = mean_and_se(numbers)
    return f"{mean:.2f}" + ("" if se is None else f" ± {se:.2f}")


def net_part(entries: Entries, name: str) -> list[str]:
    ours = {key: entry for key, entry in entries.items() if key.startswith(f"{name}|")}
    if not ours:
        return []
    layers = [layer["layer"] for layer in next(iter(ours.values()))["layers"]]
    states = [state for state in STATES if any(key.startswith(f"{name}|{state}|") for key in ours)]
    seeds = {state: sum(key.startswith(f"{name}|{state}|") for key in ours) for state in states}
    errors = {
        state: [
            e["test_error"] for k, e in ours.items() if k.startswith(f"{name}|{state}|") and e["test_error"]
        ]
        for state in states
    }
    told = ", ".join(
        f"{state} {seeds[state]}"
        + (f" (test error {100 * mean_and_se(errors[state])[0]:.1f} %)" if errors[state] else "")
        for state in states
    )
    parts = [f"## {name}", f"Seeds: {told}. Mean ± standard error over seeds."]
    for part, words in PARTS.items():
        rows = [
            [f"{place + 1} ({layer})", *(cell(values(ours, name, state, place, part)) for state in states)]
            for place, layer in enumerate(layers)
        ]
        parts += [
            f"Cosine of the fitted map and the transpose, **{words}**:",
            table(["layer", *states], rows),
        ]
    return parts


def span(entries: Entries, state: str, part: str) -> str:
    """From the least mean of a layer to the greatest, over all nets."""
    means = []
    for name in NETS:
        ours = [entry for key, entry in entries.items() if key.startswith(f"{name}|{state}|")]
        for place in range(len(ours[0]["layers"]) if ours else 0):
            if numbers := values(entries, name, state, place, part):
                means.append(mean_and_se(numbers)[0])
    return f"{min(means):.2f} to {max(means):.2f}" if means else "–"


def page() -> None:
    results = read(FILE)
    entries = {
        key: entry for key, entry in results["entries"].items() if (entry["test_error"] or 0) < GUESSING
    }
    failed = [key for key in results["entries"] if key not in entries]
    states = [state for state in STATES if any(f"|{state}|" in key for key in entries)]
    least = min(layer["entries"] for entry in entries.values() for layer in entry["layers"])
    inside = [layer["inside"] for entry in entries.values() for layer in entry["layers"]]
    parts = [
        "The range of the layers’ means, of both nets:",
        table(
            ["cosine", *states],
            [[words, *(span(entries, s, part) for s in states)] for part, words in PARTS.items()],
        ),
        f"By chance: two matrices of independent entries have a cosine of 0 ± {least**-0.5:.2f} in "
        f"the smallest layer and less in the others. Of the energy of the fitted maps "
        f"{100 * min(inside):.0f} % or more lies where the weights have entries; the rest, which a fit "
        "with a stride has beside them, is left out.",
    ]
    if failed:
        names = ", ".join("{} ({}, seed {})".format(*key.split("|")) for key in failed)
        parts.append(
            f"Left out, because training did not get below a test error of {100 * GUESSING:.0f} %: {names}."
        )
    for name in NETS:
        parts += net_part(entries, name)
    put_between_marks(DOCS / "reverses.md", "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    page()
