"""What every claim of the library must do: be judged as was found before, and catch a wrong prediction."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from obverse.claims import claims, run
from obverse.claims._claim import Claim
from obverse.claims.results import Point, Sweep

CLAIMS = claims()
SHORT = [claim for claim in CLAIMS.values() if not claim.long]
IDS = [claim.id for claim in SHORT]


def never(*arguments, **named):
    raise AssertionError("a measurement asked for the prediction")


@pytest.fixture(scope="module")
def measured() -> dict[str, list[tuple[float, ...]]]:
    """The trials of every claim, at quick settings."""
    return trials(SHORT, quick=True)


def trials(chosen: list[Claim], quick: bool) -> dict[str, list[tuple[float, ...]]]:
    """What each claim measures: collected from what its rule is given, as the runner gives it."""
    seen: dict[str, list[tuple[float, ...]]] = {}

    class Listening:
        def __init__(self, claim: Claim) -> None:
            self.claim, self.meaning, self.kind = claim, claim.rule.meaning, claim.rule.kind

        def judge(self, points):
            seen[self.claim.id] = [point.values for point in points]
            return self.claim.rule.judge(points)

    sweep = run(
        [replace(claim, rule=Listening(claim)) for claim in chosen],
        quick=quick,
        jobs=1 if len(chosen) == 1 else 2,
    )
    crashed = {outcome.id: outcome.crash for outcome in sweep if outcome.verdict == "crashed"}
    assert not crashed, crashed
    return seen


def judged(claim: Claim, values: list[tuple[float, ...]], quick: bool, *, wrong: bool = False) -> str:
    settings = claim.settings(quick)
    points = [Point(one, claim.predict(one), each) for one, each in zip(settings, values, strict=True)]
    return claim.rule.judge(claim.rule.misled(points) if wrong else points).verdict


def test_there_are_claims_about_the_whole_of_each_paper():
    named = " ".join(IDS)
    for statement in (
        "prop2.2", "lemmaB.1", "lemmaB.2", "lemmaB.3", "lemmaB.4", "lemmaB.5", "lemmaA.1", "claimA.2",
        "lemma2.5", "thm2.3", "thm2.4", "thm3.1", "thm3.2", "depth", "universal", "eq2", "eq22", "eq23",
    ):  # fmt: skip
        assert f"alm.{statement}" in named, statement
    for statement in ("thm1", "thm2", "thm3", "eq6", "lemma3.3", "gradients", "rescaling", "block"):
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


@pytest.mark.parametrize("claim", SHORT, ids=IDS)
def test_the_quick_verdict_is_no_surprise(claim, measured):
    assert judged(claim, measured[claim.id], quick=True) in (claim.expected, "inconclusive")


@pytest.mark.parametrize("claim", SHORT, ids=IDS)
def test_a_wrong_prediction_is_not_held_even_at_quick_settings(claim, measured):
    assert judged(claim, measured[claim.id], quick=True, wrong=True) != "held"


@pytest.mark.parametrize("claim", SHORT, ids=IDS)
def test_the_simulation_knows_nothing_of_the_prediction(claim, monkeypatch):
    """The cheapest setting, with the prediction and every closed form gone."""
    module = sys.modules[claim.measure.__module__]
    names = {"recovery_error", "best_threshold", claim.predict.__name__}
    for name in names & set(vars(module)):
        monkeypatch.setattr(module, name, never)
    monkeypatch.setattr("obverse.shadow.recovery_error", never)
    monkeypatch.setattr("obverse.shadow.best_threshold", never)
    setting = claim.settings(quick=True)[0]
    values = claim.measure(setting, torch.Generator().manual_seed(1))
    assert len(values) >= 1


@pytest.fixture(scope="module")
def measured_in_full() -> dict[str, list[tuple[float, ...]]]:
    return trials(SHORT, quick=False)


@pytest.mark.slow
@pytest.mark.parametrize("claim", SHORT, ids=IDS)
def test_the_full_verdict_is_the_one_expected(claim, measured_in_full):
    assert judged(claim, measured_in_full[claim.id], quick=False) == claim.expected


@pytest.mark.slow
@pytest.mark.parametrize("claim", SHORT, ids=IDS)
def test_a_planted_wrong_prediction_flips_the_verdict_to_failed(claim, measured_in_full):
    """Equalities: a factor 1.2; bounds: half the measured value; rates: the exponent off by 0.3."""
    assert judged(claim, measured_in_full[claim.id], quick=False, wrong=True) == "failed"


def test_a_sweep_is_a_value():
    sweep = run([CLAIMS["alm.eq2"]], quick=True)
    assert isinstance(sweep, Sweep)
    assert sweep.outcomes[0].id == "alm.eq2"
