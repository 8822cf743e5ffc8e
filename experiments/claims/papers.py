"""The table of docs/papers.md: every claim of every paper with its verdicts. Used by page.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from obverse.claims import Claim, Outcome, claims, read_sweep

from .._lab.tables import table
from . import quotable, statements
from .run import RESULTS

PAPERS = {  # by the first part of a claim's id, in the order of the table
    "alm": "Arora, Liang & Ma 2015",
    "identity": "Hardt & Ma 2016",
    "ladder": "Locally connected ReLU nets, 2019",
    "vae": "Generative Models, 2018",
    "gan": "Generative Models, 2018",
    "tools": "Tools in use",
}
WHERE = (  # how sources begin: what is left is the place in the paper
    "Arora, Liang & Ma 2015, ",
    "Hardt & Ma 2016, as reviewed in 2018, ",
    "Hardt & Ma 2016, ",
    "A theoretical framework for deep locally connected ReLU network, submission of 2019, ",
    "Theory of Deep Learning: Generative Models (2018), ",
)
CALLED = {"corrected": "Corrected", "exact": "Exactly", "beyond the paper": "Beyond the paper"}
Found = Mapping[str, tuple[str, Outcome]]  # by id: the folder of the results, and the outcome


def published() -> dict[str, tuple[str, Outcome]]:
    """Every outcome that is committed, with the folder it is in."""
    found: dict[str, tuple[str, Outcome]] = {}
    for folder in sorted(file.parent for file in RESULTS.glob("*/claims.json")):
        for outcome in read_sweep(folder):
            if outcome.id in found:
                raise SystemExit(f"expected each claim in one folder; got {outcome.id} in two; remove one")
            found[outcome.id] = folder.name, outcome
    return found


def rows_of(known: Mapping[str, Claim]) -> list[tuple[Claim, Claim | None]]:
    """Each claim once: a printed statement with its twin in another reading beside it, the others alone."""
    rows: list[tuple[Claim, Claim | None]] = []
    taken: set[str] = set()
    for claim in known.values():
        if claim.id in taken:
            continue
        twin = known.get(claim.twin)
        pair = twin is not None and twin.twin == claim.id and twin.id not in taken
        if pair and twin is not None and (claim.reading == "as printed") != (twin.reading == "as printed"):
            printed, other = (claim, twin) if claim.reading == "as printed" else (twin, claim)
            rows.append((printed, other))
            taken |= {printed.id, other.id}
        else:
            rows.append((claim, None))
            taken.add(claim.id)
    return rows


def cell(text: str) -> str:
    """In a cell of a table: no bar, and no mark of Markdown."""
    for mark in "\\*_[]<>`$":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("|", "∣")


def where(claim: Claim) -> str:
    place = claim.source
    for start in WHERE:
        place = place.replace(start, "")
    printed = f" ({cell(claim.place)})" if claim.place else ""
    return f"{PAPERS[claim.id.partition('.')[0]]}: {cell(place)}{printed}"


def verdict(claim: Claim, found: Found) -> str:
    word: str = found[claim.id][1].verdict
    word = f"**{word}**" if word == "failed" else word
    return word if claim.reading in ("as printed", "corrected") else f"{word} ({claim.reading})"


def number(claim: Claim, found: Found) -> str:
    return cell(found[claim.id][1].sentence)


def link(claim: Claim, found: Found, text: str) -> str:
    """To the result on the claim's page; where there are no pages, to the file it is made of."""
    return f"[{text}](../experiments/claims/results/{found[claim.id][0]}/claims.json#claim-{claim.id})"


def line(claim: Claim, other: Claim | None, found: Found) -> list[str]:
    printed = claim.reading == "as printed"
    if other is None:
        statement, decided = cell(claim.statement), number(claim, found)
        links = link(claim, found, "page")
        ids = f"`{claim.id}`"
    else:
        ids = f"`{claim.id}`, `{other.id}`"
        statement = f"{cell(claim.statement)} *{CALLED[other.reading]}:* {cell(other.statement)}"
        decided = f"printed: {number(claim, found)}; {other.reading}: {number(other, found)}"
        links = f"{link(claim, found, 'printed')}, {link(other, found, other.reading)}"
    first = verdict(claim, found) if printed else "–"
    second = verdict(other, found) if other else "–" if printed else verdict(claim, found)
    return [ids, first, second, statement, decided, where(claim), links]


def text() -> str:
    known, found = claims(), published()
    missing = sorted(known.keys() ^ found.keys())
    if missing:
        raise SystemExit(
            f"expected a committed result for every claim and no other; got {missing}; run make claims"
        )
    counts: Counter[tuple[str, str]] = Counter(
        (claim.reading, found[id][1].verdict) for id, claim in known.items()
    )
    readings = ("as printed", "corrected", "exact", "beyond the paper")
    verdicts = ("held", "failed", "inconclusive")
    summary = [[one, *(str(counts[one, verdict]) for verdict in verdicts)] for one in readings]
    order = {paper: place for place, paper in enumerate(PAPERS)}
    rows = sorted(rows_of(known), key=lambda row: order[row[0].id.partition(".")[0]])
    head = [
        "claim",
        "as printed",
        "corrected, or sharper",
        "statement",
        "what decided it",
        "paper and where",
        "result",
    ]
    folders = {id: folder for id, (folder, _) in found.items()}
    return f"""## In sentences

{quotable.text(found)}

## Every claim

{len(known)} claims, at full settings:

{table(["reading", *verdicts], summary)}

{table(head, [line(claim, other, found) for claim, other in rows])}

## Every statement

What the texts say, statement by statement: a claim that is run, an experiment, a definition, or why it cannot
be tested. Claims that are beyond the texts are in the table above alone.

{statements.text(known, folders)}"""
