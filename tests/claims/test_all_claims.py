"""What the library's claims must say of themselves. What they must do: see every_claim."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from claims.every_claim import EveryClaim
from obverse.claims import claims, run
from obverse.claims.results import Sweep

CLAIMS = claims()
SHORT = [claim for claim in CLAIMS.values() if not claim.long]
IDS = [claim.id for claim in SHORT]


def test_there_are_claims_about_the_whole_of_each_paper():
    named = " ".join(IDS)
    for statement in (
        "prop2.2", "lemmaB.1", "lemmaB.2", "lemmaB.3", "lemmaB.4", "lemmaB.5", "lemmaA.1", "claimA.2",
        "lemma2.5", "thm2.3", "thm2.4", "thm3.1", "thm3.2", "depth", "universal", "eq2", "eq22", "eq23",
    ):  # fmt: skip
        assert f"alm.{statement}" in named, statement
    for statement in ("thm1", "thm2", "thm3", "eq6", "lemma3.3", "lemmaB.1", "gradients", "rescaling"):
        assert f"identity.{statement}" in named, statement
    for statement in (
        "thm1", "thm2", "thm3", "thm4", "thm5", "thm6", "thm7", "thm8", "thm9", "lemma1", "bottom", "eq7",
        "eq12", "eq58", "eq101", "eq104", "eq105", "broadness", "focus", "decorrelation", "fourth",
        "full-rank", "centred", "energy", "sampled",
    ):  # fmt: skip
        assert f"ladder.{statement}" in named, statement
    for statement in (
        "inverse-cdf",
        "elbo.identity",
        "elbo.gap",
        "elbo.single",
        "gradient",
        "kl",
        "gaussian-posterior",
    ):
        assert f"vae.{statement}" in named, statement
    for statement in (
        "generalization", "hoeffding", "mixture", "equilibrium", "birthday.forward", "birthday.inverse",
        "birthday.support", "birthday.confidence", "birthday.none-seen",
    ):  # fmt: skip
        assert f"gan.{statement}" in named, statement
    for statement in ("spectrum.noise", "spectrum.rank", "decompose.noise", "decompose.rank"):
        assert f"tools.{statement}" in named, statement


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_a_claim_explains_itself(claim):
    for text in (claim.title, claim.statement, claim.source, claim.quantity):
        assert text.strip() == text
        assert text
    assert claim.statement.endswith(".")
    assert claim.expected in ("held", "failed")
    if claim.twin:
        assert claim.twin in CLAIMS
        assert CLAIMS[claim.twin].twin
    if claim.expected == "failed":
        assert claim.remark, "a statement that fails says why"


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_what_is_printed_is_quoted_with_its_place(claim):
    """A few of its words, where they stand, and the line of the plain text; of no other reading."""
    if claim.reading != "as printed":
        assert not claim.place, "a quotation belongs to the statement as printed"
        return
    quotation, _, where = claim.place.partition("”")
    assert quotation.startswith("“")
    assert 5 < len(quotation) < 150, "a short quotation"
    assert re.search(r"\b(Section|Appendix|notes|How do we|Generative adversarial networks)\b", where)
    assert re.search(r"\blines? \d+", where)


def test_every_claim_is_run_by_one_file_of_tests():
    """And what these files say is known of claims is said of claims that there are."""
    run_by: Counter[str] = Counter()
    for file in Path(__file__).parent.glob("test_every_*.py"):
        (tests,) = (
            value
            for value in vars(import_module(f"claims.{file.stem}")).values()
            if isinstance(value, type) and issubclass(value, EveryClaim) and value is not EveryClaim
        )
        (mark,) = (mark for mark in vars(tests)["pytestmark"] if mark.name == "parametrize")
        ids = [case.id for case in mark.args[1]]
        assert {*tests.inconclusive, *tests.larger, *tests.undecided} <= set(ids)
        run_by.update(ids)
    assert run_by == Counter(IDS)


def test_a_sweep_is_a_value():
    sweep = run([CLAIMS["alm.eq2"]], quick=True)
    assert isinstance(sweep, Sweep)
    assert sweep.outcomes[0].id == "alm.eq2"
