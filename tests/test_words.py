"""Words that nobody would say, kept out of what people read: code, docs, README, pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXTS = sorted(
    file
    for folder in ("src", "docs", "examples", "experiments")
    for file in (ROOT / folder).rglob("*")
    if file.suffix in (".py", ".md", ".j2", ".js", ".css") and "_build" not in file.parts
)
TEXTS += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
WORST = {  # what is not said, why, and what is
    r"\btold (apart )?from\b": "of numbers: differs significantly, or no significant difference",
    r"(be|are|is|all names|easily) told apart": "the same: distinguished, separated",
    r"\bput right\b": "old-fashioned: corrected; of input, that it is invalid",
    r"process(es)? at work|at work in": "worker processes; a process runs",
    r"(that|those|it|one) (was|were|is|are) cut off|^those cut off": "of a run: interrupted, and resumed",
    r"\bby heart\b": "of a net: memorized",
    r"as random entries have it|as chance has it|than chance has it": "no English: than by chance",
    r"\bslips in print\b": "errata",
    r"\bwhoever\b": "a riddle: the caller, a worker, the user",
    r"\bstrangers?\b": "untrusted file, unauthenticated request",
    r"\bhas gone\b|gone for good": "of a program that read the output: broken pipe; else, it ended",
    r"\bseconds a\b|\bnumbers? a trial\b": "per: seconds per run, one number per trial",
    r"The same as (`|\{py)": "an entry of the reference is complete where it stands",
}
# Statements of claims stand in published results as they were run; the search names machines that are gone.
LEFT = {
    "src/obverse/claims/ladder/_expressive.py",
    "docs/claims.md",
    "docs/papers.md",
}


@pytest.mark.parametrize("worst", WORST)
def test_it_is_said_as_people_say_it(worst: str) -> None:
    pattern = re.compile(worst, re.IGNORECASE | re.MULTILINE)
    found = []
    for file in TEXTS:
        name = file.relative_to(ROOT).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if name not in LEFT and pattern.search(line):
                found.append(f"{name}:{number}: {line.strip()}")
    assert not found, f"{WORST[worst]}\n" + "\n".join(found)


def test_the_words_are_found_where_they_stand() -> None:
    for said in ("cannot be told from chance", "a run that was cut off", "Processes at work", "by heart"):
        assert any(re.search(worst, said, re.IGNORECASE) for worst in WORST), said
