"""What a list of claims, one claim or a sweep says in the terminal. Not for files, nor for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..present.table import Column, open_console, print_grid, say
from ._claim import Claim
from .results import VERDICTS, Sweep, Verdict

COLOURS: dict[Verdict, str] = {
    "held": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "crashed": "bold magenta",
}
SHOWN = 12  # settings of a claim
BEYOND = "beyond the paper"


def print_list(claims: Sequence[Claim]) -> None:
    console = open_console()
    columns = [
        Column("claim", tuple(claim.id for claim in claims), left=True, whole=True),
        _readings([claim.reading for claim in claims]),
        Column(
            "found",
            tuple(claim.expected for claim in claims),
            "the verdict so far",
            left=True,
            styles=tuple(COLOURS[claim.expected] for claim in claims),
        ),
        Column("settings", tuple(str(len(claim.grid)) for claim in claims), drop=2),
        Column(
            "title",
            tuple(claim.title for claim in claims),
            marked=frozenset(at for at, claim in enumerate(claims) if claim.long),
            styles=("",) * len(claims),
            left=True,
            folded=True,
        ),
    ]
    print_grid(console, columns, "trains on images: runs by its id, or with --long")
    say(console, f"{_count(len(claims), 'claim')}; more about one: obverse claims show ID", "bold")


def print_claim(claim: Claim, predictions: Sequence[str], quick: bool) -> None:
    """All of a claim but its measurement; `predictions` are those of the settings to show, from the first."""
    console = open_console()
    say(console, f"{claim.id}: {claim.title}", "bold")
    say(console, claim.statement)
    console.print()
    for name, text in (
        ("source", claim.source),
        ("reading", claim.reading),
        ("twin", f"{claim.twin}, to be read beside it" if claim.twin else ""),
        ("measured", claim.quantity),
        ("held means", claim.rule.meaning),
        ("found so far", claim.expected),
        ("remark", claim.remark),
        ("long", "trains on images: runs by its id, or with --long" if claim.long else ""),
    ):
        if text:
            say(console, f"{name}: {text}")
    settings = claim.settings(quick)
    same = _same(settings)
    varied = [name for name in dict.fromkeys(name for one in settings for name in one) if name not in same]
    kind = "quick" if quick else "full"
    fixed = f", all with {', '.join(f'{name} = {value}' for name, value in same.items())}" if same else ""
    fewer = f" ({len(claim.quick)} with --quick)" if claim.quick and not quick else ""
    say(console, f"{kind} run: {_count(len(settings), 'setting')}{fewer}{fixed}")
    console.print()
    shown = settings[: len(predictions)]
    columns = [Column(name, tuple(str(one.get(name, "–")) for one in shown)) for name in varied]
    predicted = Column("predicted", tuple(predictions), claim.quantity)
    print_grid(console, [*columns, predicted], "")
    if len(settings) > len(shown):
        say(console, f"… and {_count(len(settings) - len(shown), 'more setting')}")


def print_sweep(sweep: Sweep) -> None:
    """The table of verdicts and the summary."""
    console = open_console()
    outcomes = sweep.outcomes
    columns = [
        Column("claim", tuple(one.id for one in outcomes), left=True, whole=True),
        _readings([one.reading for one in outcomes]),
        Column(
            "verdict",
            tuple(one.verdict for one in outcomes),
            marked=frozenset(at for at, one in enumerate(outcomes) if one.surprising),
            left=True,
            styles=tuple(COLOURS[one.verdict] for one in outcomes),
        ),
        Column("seconds", tuple(f"{one.seconds:.1f}" for one in outcomes), "of computing", drop=2),
        Column("what was found", tuple(one.sentence for one in outcomes), left=True, folded=True),
    ]
    print_grid(
        console, columns, "another verdict than the one found so far, which `obverse claims list` shows"
    )
    say(console, summary(sweep), "bold")


def summary(sweep: Sweep) -> str:
    """How many of each verdict, and what the numbers rest on, in one line."""
    counts = ", ".join(f"{sweep.count(each)} {each}" for each in VERDICTS if sweep.count(each))
    surprises = sum(one.surprising for one in sweep)
    differing = f" ({surprises} not as found so far)" if surprises else ""
    kind = "quick" if sweep.quick else "full"
    return (
        f"{_count(len(sweep.outcomes), 'claim')}: {counts}{differing}; "
        f"{kind} settings, seed {sweep.seed}, {sweep.seconds:.1f} seconds"
    )


def _readings(readings: Sequence[str]) -> Column:
    short = tuple("beyond" if one == BEYOND else one for one in readings)
    meaning = f"“beyond” is a statement {BEYOND}" if BEYOND in readings else ""
    return Column("reading", short, meaning, drop=1, left=True)


def _same(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all settings have in common, where there are several."""
    if len(settings) < 2:
        return {}
    first, *others = settings
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s'[: number != 1]}"
