"""The published results: they are those of the claims as they stand, and an error of 5 % would have shown.

Nothing is measured here: what is read is experiments/claims/results.
"""

from __future__ import annotations

from dataclasses import asdict

import pytest

from experiments.claims.papers import published
from obverse.claims import Claim, Equal, Exponent, MeanBelow, Outcome, claims
from obverse.claims._rules import student

CLAIMS = claims()
PUBLISHED = {id: outcome for id, (_, outcome) in published().items()}
WRONG = 1.05  # the factor that an equality must notice, either way
OFF = 0.05  # what an exponent must notice, either way


def held(rule: type) -> list[str]:
    return [
        id for id, claim in CLAIMS.items() if isinstance(claim.rule, rule) and PUBLISHED[id].verdict == "held"
    ]


def fails_at(claim: Claim, outcome: Outcome, factor: float) -> bool:
    """Whether `Equal` fails at any setting, by the published means and standard errors."""
    assert isinstance(claim.rule, Equal)
    for point in outcome.points:
        predicted = factor * point.predicted
        assert point.error is not None
        width = student(claim.rule.sigmas, point.count) * point.error
        if abs(point.mean - predicted) > width + claim.rule.tolerance * abs(predicted):
            return True
    return False


def test_every_claim_is_published_and_no_other() -> None:
    assert PUBLISHED.keys() == CLAIMS.keys()


@pytest.mark.parametrize("id", CLAIMS)
def test_what_is_published_is_what_the_claim_says(id: str) -> None:
    claim, outcome = CLAIMS[id], PUBLISHED[id]
    for name in (
        "title",
        "statement",
        "source",
        "place",
        "reading",
        "twin",
        "remark",
        "expected",
        "quantity",
    ):
        assert asdict(outcome)[name] == getattr(claim, name), (
            f"{name}: run it again, and python -m experiments.claims.page"
        )
    assert outcome.rule == claim.rule.meaning
    assert outcome.verdict == claim.expected
    assert not outcome.quick
    assert [point.setting for point in outcome.points] == [dict(setting) for setting in claim.grid]


@pytest.mark.parametrize("id", held(Equal))
def test_a_published_equality_notices_5_percent(id: str) -> None:
    claim, outcome = CLAIMS[id], PUBLISHED[id]
    assert not fails_at(claim, outcome, 1.0)
    assert fails_at(claim, outcome, WRONG), "raise its trials, or lower its tolerance"
    assert fails_at(claim, outcome, 1 / WRONG), "raise its trials, or lower its tolerance"


@pytest.mark.parametrize("id", held(Exponent))
def test_a_published_exponent_notices_a_twentieth(id: str) -> None:
    numbers = PUBLISHED[id].numbers
    assert numbers["low"] <= numbers["predicted"] <= numbers["high"]
    assert numbers["predicted"] - OFF < numbers["low"], "raise its trials"
    assert numbers["predicted"] + OFF > numbers["high"], "raise its trials"


def test_a_bound_that_is_nearly_reached_notices_5_percent() -> None:
    """The uniform law collides least: laws near it leave 3 % of the bound."""
    claim, outcome = CLAIMS["gan.birthday.forward.least"], PUBLISHED["gan.birthday.forward.least"]
    assert isinstance(claim.rule, MeanBelow)
    assert any(point.low > point.predicted / WRONG for point in outcome.points)
