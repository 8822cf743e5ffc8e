"""The sentences and the list of statements that docs/papers.md is made of say what was published."""

from __future__ import annotations

import pytest

from experiments.claims import quotable, statements
from experiments.claims.papers import published
from experiments.paper.protocol import COLUMNS
from experiments.paper.protocol_curves import (
    PAIRS,
    SIGNIFICANT,
    column_of,
    curves_of,
    epoch_of,
    gained,
)
from experiments.paper.run import FOLDER
from obverse.claims import claims

FOUND = published()


def test_the_sentences_quote_published_verdicts() -> None:
    text = quotable.text(FOUND)
    for own in quotable.TEXTS:
        assert f"### {own.title}" in text
        for id, _ in quotable.MARK.findall(" ".join(getattr(own, name) for name in quotable.PARTS)):
            assert statements.link(id, FOUND[id][0]) in text


def test_what_held_is_said_to_have_held_and_what_failed_to_have_failed() -> None:
    for own in quotable.TEXTS:
        assert {verdict for _, verdict in quotable.MARK.findall(own.held)} == {"held"}
        assert {verdict for _, verdict in quotable.MARK.findall(own.failed)} == {"failed"}


@pytest.mark.parametrize("mark", ["{alm.eq2: held}", "{alm.eq19: failed}", "{alm.no: held}"])
def test_a_wrong_verdict_stops_the_page(mark: str) -> None:
    with pytest.raises(SystemExit):
        quotable.linked(f"So {mark} it is.", FOUND)


def test_every_printed_claim_is_among_the_statements_and_all_that_is_named_is_there() -> None:
    known = claims()
    statements.check(statements.read(), known)
    fewer = [one for one in statements.read() if "alm.eq2" not in one.ids]
    with pytest.raises(SystemExit, match=r"alm\.eq2'"):
        statements.check(fewer, known)
    more = [*statements.read(), statements.Statement("001", "claim", "New.", "alm.new")]
    with pytest.raises(SystemExit, match=r"alm\.new"):
        statements.check(more, known)
    page = [*statements.read(), statements.Statement("001", "experiment", "New.", "no-page.md")]
    with pytest.raises(SystemExit, match=r"no-page\.md"):
        statements.check(page, known)


@pytest.mark.parametrize(
    "line", ["001 | claim | Too few.", "009 | claim | A text. | alm.eq2", "001 | claim | Nothing tells. |"]
)
def test_a_line_that_is_not_in_order_is_refused_by_its_number(line, tmp_path) -> None:
    file = tmp_path / "statements.txt"
    file.write_text(f"# a comment\n{line}\n")
    with pytest.raises(SystemExit, match="line 2"):
        statements.read(file)


def test_the_table_counts_every_statement_once() -> None:
    folders = {id: folder for id, (folder, _) in FOUND.items()}
    text = statements.text(claims(), folders)
    count = len(statements.read())
    assert text.startswith(f"{count} statements")
    assert sum(line.startswith("| ") for line in text.splitlines()) == count + len(statements.TEXTS) + 4


def test_what_is_said_of_the_papers_own_protocol_is_what_was_measured() -> None:
    """Better without momentum on MNIST, and not significantly so with it."""
    for column, significant in ((COLUMNS[0], True), (COLUMNS[2], False)):
        curves, last = column_of(curves_of(FOLDER, "mnist-1000"), column, epoch_of("mnist-1000"))
        found = gained(curves, *PAIRS[column][0], last)
        assert found is not None
        assert found[2] is not None
        assert (found[0] > 0 and found[2] < SIGNIFICANT) == significant
