"""Tables of the docs: errors over seeds, paired differences, and the place of a table between two marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from obverse._core.statistics import mean_and_se
from obverse.training._compare import paired_p_value


def percent(values: Sequence[float]) -> str:
    mean, se = mean_and_se([100 * value for value in values])
    return f"{mean:.2f}" + ("" if se is None else f" ± {se:.2f}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment for looking at several comparisons at once."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [100 * (x - y) for x, y in zip(a, b, strict=True)]


def verdict(name: str, other: str, difference: float, p: float) -> str:
    if p >= 0.05:
        return f"{name} and {other} do not differ significantly."
    word = "better" if difference < 0 else "worse"
    return f"{name} is {word} than {other} by {abs(difference):.2f} points."


def small(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


GAP_HEAD = ["method", "minus", "difference, points", "p", "p (Holm)", "verdict"]


def gaps(pairs: Sequence[tuple[str, str]], errors: dict[str, list[float]]) -> str:
    """A table of paired differences: t test over seeds, two-sided, Holm-adjusted, and a sentence a row."""
    return gap_table(pairs, [differences(errors[name], errors[other]) for name, other in pairs])


def gap_table(pairs: Sequence[tuple[str, str]], found: Sequence[Sequence[float]]) -> str:
    """The same of differences that are known, in points; each pair over seeds of its own."""
    raw = [paired_p_value(gap) or 1.0 for gap in found]
    rows = []
    for (name, other), gap, p, adjusted in zip(pairs, found, raw, holm(raw), strict=True):
        mean, se = mean_and_se(gap)
        numbers = [f"{mean:+.2f} ± {se:.2f}", small(p), small(adjusted)]
        rows.append([name, other, *numbers, verdict(name, other, mean, adjusted)])
    return table(GAP_HEAD, rows)


def put_between_marks(place: Path, text: str) -> None:
    """Replace what stands between the two marks of a page; the rest of it is written by hand."""
    before, _, rest = place.read_text(encoding="utf-8").partition("<!-- results -->\n")
    _, _, after = rest.partition("<!-- end of results -->\n")
    marked = f"<!-- results -->\n{text}<!-- end of results -->\n"
    place.write_text(before + marked + after, encoding="utf-8")


def errors_of(entries: Mapping[str, Any], field: str = "test_error") -> dict[str, list[float]]:
    """The numbers of each method, in the order of the seeds."""
    found: dict[str, dict[int, float]] = {}
    for key, entry in entries.items():
        name, seed = key.rsplit("|", 1)
        if field in entry:
            found.setdefault(name, {})[int(seed)] = entry[field]
    return {name: [numbers[seed] for seed in sorted(numbers)] for name, numbers in found.items()}


def paired(pairs: Sequence[tuple[str, str]], errors: Mapping[str, list[float]]) -> str:
    """The table of differences over the seeds that both have."""
    seen = [pair for pair in pairs if all(len(errors.get(name, ())) > 1 for name in pair)]
    if not seen:
        return "One seed is not enough for a test."
    found = []
    for name, other in seen:
        count = min(len(errors[name]), len(errors[other]))
        found.append(differences(errors[name][:count], errors[other][:count]))
    return gap_table(seen, found)
