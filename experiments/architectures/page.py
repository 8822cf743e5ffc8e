"""The coverage table: its record in results/, and docs/coverage.md made of it; measures nothing.

python -m experiments.architectures.page
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from obverse._core.files import write_text
from obverse._core.records import Record, read_record

from .._lab.places import DOCS
from .._lab.tables import put_between_marks, table
from .catalogue import ARCHITECTURES

FILE = Path(__file__).parent / "results" / "coverage.json"
TRAINED = Path(__file__).parent / "results" / "trained"
PAGE = DOCS / "coverage.md"
FORMAT = 1


@dataclass(frozen=True)
class Drawn(Record):
    """What came of a shadow drawn from one layer of one net.

    Errors are Σ‖ĥ − h‖² / Σ‖h‖²: with the theory's scales (None for the fitted reverse, which has none), with
    calibrated ones or fitted maps, and with an input that has nothing to do with h, the next noise image of
    the batch, in place of the shadow.
    """

    layer: str
    hidden_shape: tuple[int, ...]
    shadow_shape: tuple[int, ...]
    finite: bool
    zero: bool
    repeats: bool  # the same h and generator give the same shadow, with x out of sight
    computed: bool  # the net as it is, untraced, computes this h on the way
    theory: float | None
    calibrated: float
    unrelated: float


@dataclass(frozen=True)
class Net(Record):
    """One architecture: what it is made of, and either two shadows or the sentence it was refused with."""

    name: str
    family: str
    package: str
    counted: bool
    input_shape: tuple[int, ...]
    parameters: int
    kinds: dict[str, int]
    supported: bool
    error: str
    layers: int
    middle: Drawn | None
    top: Drawn | None
    reverse: str = "transpose"  # or "fitted", where no step of the transpose leads through the net

    @property
    def drawn(self) -> list[Drawn]:
        return [one for one in (self.middle, self.top) if one is not None]


@dataclass(frozen=True)
class Coverage(Record):
    nets: tuple[Net, ...]

    def __str__(self) -> str:
        counted = [net for net in self.nets if net.counted]
        others = [net for net in self.nets if not net.counted]
        return (
            f"{sum(net.supported for net in counted)} of {len(counted)} architectures have a shadow; "
            f"of {len(others)} hard ones that are not counted, {sum(net.supported for net in others)}"
        )


def number(error: float | None) -> str:
    if error is None:
        return "–"
    return f"{error:.2g}" if error < 1000 else f"{error:.0e}"


def row(net: Net) -> list[str]:
    start = [net.name, net.family, "×".join(map(str, net.input_shape)), f"{net.parameters / 1e6:.2f}"]
    if not net.supported:
        return [*start, "**no**", "", *[""] * 6]
    cells = [[number(one.theory), number(one.calibrated), number(one.unrelated)] for one in net.drawn]
    how = "yes" if net.reverse == "transpose" else "fitted"
    return [*start, how, str(net.layers), *cells[0], *cells[1]]


def text(coverage: Coverage) -> str:
    """What stands between the marks of docs/coverage.md."""
    head = ["net", "family", "input", "10⁶ weights", "shadow", "layers"]
    head += [
        f"{place}: {what}" for place in ("middle", "top") for what in ("theory", "calibrated", "unrelated")
    ]
    counted = [row(net) for net in coverage.nets if net.counted]
    others = [row(net) for net in coverage.nets if not net.counted]
    reasons = {architecture.name: architecture.why for architecture in ARCHITECTURES}
    refused = [
        f"- {net.name}{reasons[net.name] and f' ({reasons[net.name]})'}: {net.error}"
        for net in coverage.nets
        if not net.supported
    ]
    kinds = Counter[str]()
    for net in coverage.nets:
        if net.supported:
            kinds.update(net.kinds)
    return f"""{coverage}.

{table(head, counted)}

## Hard ones, not counted

{table(head, others)}

## Refused, and the sentence that says so

{chr(10).join(refused) or "None."}

## What the nets that work are made of

{", ".join(f"`{kind}` {count}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))}.
{trained()}"""


def trained() -> str:
    """The layers of trained nets that have been measured, as a section; empty where there are none."""
    rows, better = [], 0
    for file in sorted(TRAINED.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        for one in record["entries"].values():
            better += one["error"] < min(one["unrelated"], one["mean"])
            numbers = (one["error"], one["unrelated"], one["mean"])
            shares = (f"{100 * one['found']:.0f}", f"{one['cosine']:.2f}")
            rows.append(
                [file.stem, one["layer"], "×".join(map(str, one["shape"])), *map(number, numbers), *shares]
            )
    if not rows:
        return ""
    head = ["net", "layer", "h", "error", "unrelated", "mean of h", "found %", "centred cosine"]
    return f"""
## Trained nets, by the fitted reverse

Some layers of public nets trained on ImageNet, fitted on 60 of its images and measured on 30 others.
{better} of the {len(rows)} layers measured so far give h back better than h of another image and than
the mean of h over the 30. *found*: of the 30, those whose h is nearest to that of its shadow (chance: 3 %).

{table(head, rows)}
"""


def read(path: Path = FILE) -> Coverage:
    return read_record(path, Coverage, "table of coverage", FORMAT)


def write(coverage: Coverage) -> None:
    """One net a line, so that a change of one is a change of one line."""
    lines = ",\n".join(
        json.dumps(net.to_dict(), allow_nan=False, ensure_ascii=False) for net in coverage.nets
    )
    FILE.parent.mkdir(parents=True, exist_ok=True)
    write_text(FILE, f'{{"format": {FORMAT}, "nets": [\n{lines}\n]}}\n')


def page() -> None:
    put_between_marks(PAGE, text(read()))


if __name__ == "__main__":
    page()
