"""The statements of the five texts, one by one, as a table of docs/papers.md. From statements.txt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from obverse.claims import Claim

from .._lab.places import DOCS
from .._lab.tables import table

FILE = Path(__file__).parent / "statements.txt"
KINDS = ("claim", "experiment", "definition", "not testable")
TEXTS = {
    "000": "Notes on the reversibility paper",
    "001": "Why are deep nets reversible",
    "002": "Theory of deep learning: generative models",
    "003": "A theoretical framework for locally connected nets",
    "004": "Review of *Identity matters in deep learning*",
}


@dataclass(frozen=True)
class Statement:
    text: str
    kind: str
    words: str
    tells: str  # ids of claims, a page of docs, or why it cannot be tested

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.tells.split(", ")) if self.kind == "claim" else ()


def read(file: Path = FILE) -> list[Statement]:
    """Each line as a statement; what is not in order is refused by its number."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("#") or not line.strip():
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 4 or parts[0] not in TEXTS or parts[1] not in KINDS or not parts[2]:
            raise SystemExit(f"expected TEXT | KIND | STATEMENT | WHAT TELLS; got line {number}; correct it")
        if (parts[1] == "definition") == bool(parts[3]):
            raise SystemExit(f"expected what tells of all but definitions; got line {number}; correct it")
        found.append(Statement(*parts))
    return found


def check(statements: list[Statement], known: Mapping[str, Claim]) -> None:
    """Every claim named is there, and every claim about something printed is named."""
    named = {id for one in statements for id in one.ids}
    unknown = sorted(named - known.keys())
    printed = {id for id, claim in known.items() if claim.reading == "as printed" and claim.place}
    missing = sorted(id for id in printed - named if not id.startswith("tools."))
    pages = sorted(
        {one.tells for one in statements if one.kind == "experiment" and not (DOCS / one.tells).is_file()}
    )
    if unknown or missing or pages:
        raise SystemExit(
            f"expected ids of claims, all claims of printed statements, and pages; got {unknown} unknown, "
            f"{missing} missing, {pages} that are no pages; correct statements.txt"
        )


def text(known: Mapping[str, Claim], folders: Mapping[str, str]) -> str:
    """The table, and how many there are of each kind; `folders` has the results of each claim."""
    statements = read()
    check(statements, known)
    counts = Counter((one.text, one.kind) for one in statements)
    summary = [[name, *(str(counts[key, kind]) for kind in KINDS)] for key, name in TEXTS.items()]
    rows = [
        [TEXTS[one.text], one.words, one.kind, tells(one, known, folders), lines_of(one, known)]
        for one in statements
    ]
    return f"""{len(statements)} statements, of the five texts in their order:

{table(["text", *KINDS], summary)}

{table(["text", "statement", "what it is", "what tells", "line of the plain text"], rows)}
"""


def tells(one: Statement, known: Mapping[str, Claim], folders: Mapping[str, str]) -> str:
    if one.kind == "claim":
        return ", ".join(link(id, folders[id]) for id in one.ids)
    if one.kind == "experiment":
        return f"[{one.tells.removesuffix('.md')}]({one.tells})"
    return one.tells or "–"


def link(id: str, folder: str) -> str:
    return f"[{id}](../experiments/claims/results/{folder}/claims.json#claim-{id})"


def lines_of(one: Statement, known: Mapping[str, Claim]) -> str:
    """Where it is printed, as its claims quote it."""
    found = (re.search(r"lines? (\d+)", known[id].place) for id in one.ids if known[id].place)
    return next((match.group(1) for match in found if match), "–")
