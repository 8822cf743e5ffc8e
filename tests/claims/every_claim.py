"""What every claim must do, for one file of tests per paper: workers of pytest-xdist share them by the file.

Each setting is measured once: for a claim, for its planted error, and for the twins that share its draws.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import ClassVar

import pytest

from obverse._core import one_thread
from obverse.claims import claims
from obverse.claims._claim import Claim
from obverse.claims._work import make_task, perform
from obverse.claims.results import Point, Setting

CLOSED_FORMS = ("recovery_error", "best_threshold")  # what several papers' predictions are made of
_MEASURED: dict[str, tuple[float, ...]] = {}


# The families of the longest paper, by what follows "alm." in their ids, for a file of tests each.
ALM_LAYERS = {"thm3", "eq22", "eq23", "depth", "appE"}
ALM_ENTRIES = {"universal", "offsets"}


def short(paper: str) -> dict[str, Claim]:
    """The claims of a paper by id, those that train on images aside."""
    return {id: claim for id, claim in claims().items() if id.startswith(f"{paper}.") and not claim.long}


def family(id: str) -> str:
    return id.split(".")[1]


# Their quick settings too take a second or more: run by `make test-all`.
SECONDS = {
    *("alm.thm2.3.closed", "alm.thm2.3.outside", "alm.thm2.3.best_error", "alm.thm2.3.linear"),
    *("alm.thm2.3.best", "alm.thm2.4.closed", "alm.lemma2.5.constant", "alm.lemmaB.5"),
    *("alm.thm3.1", "alm.thm3.1.dropout", "alm.thm3.1.bound", "alm.thm3.2", "alm.thm3.2.dropout"),
    *("alm.depth.label", "alm.depth.direction", "identity.eq6", "ladder.thm4.spread", "ladder.eq7.small"),
    *("alm.thm3.2.corrected", "alm.thm3.2.bound", "alm.depth.eight", "gan.equilibrium.weights"),
    *("gan.generalization.trained", "gan.generalization.trained.p", "gan.birthday.inverse.close"),
    *("alm.notes.baby", "alm.notes.baby.corrected", "alm.notes.delta", "alm.notes.delta.corrected"),
    *("vae.capacity.gaussian", "vae.manifold.known", "ladder.eq3", "alm.lemmaA.1.input", "alm.lemmaD.2"),
    *("alm.lemmaA.1.input.corrected", "vae.fuzzy"),
}


def of(chosen: Mapping[str, Claim]) -> pytest.MarkDecorator:
    assert chosen
    marks = {True: [pytest.mark.slow], False: []}
    cases = [pytest.param(claim, id=id, marks=marks[id in SECONDS]) for id, claim in chosen.items()]
    return pytest.mark.parametrize("claim", cases)


class EveryClaim:
    """Inherit it, name the claims with `@of(short(…))`, and say what is known of them."""

    inconclusive: ClassVar[tuple[str, ...]] = ()  # at quick settings: too few trials for the expected verdict
    larger: ClassVar[Mapping[str, float]] = {}  # planted errors that must be so many times the usual one
    undecided: ClassVar[Mapping[str, str]] = {}  # planted errors that quick settings cannot tell, and why

    def test_the_quick_verdict_is_the_one_known_and_a_planted_error_fails(self, claim):
        """One test, since another worker would have to measure anew for the second."""
        known = "inconclusive" if claim.id in self.inconclusive else claim.expected
        assert verdict(claim, quick=True) == known
        known = "inconclusive" if claim.id in self.undecided else "failed"
        assert verdict(claim, quick=True, planted=self.larger.get(claim.id, 1.0)) == known

    @pytest.mark.slow
    def test_the_full_verdict_is_the_one_expected_and_a_planted_error_fails(self, claim):
        assert verdict(claim, quick=False) == claim.expected
        assert verdict(claim, quick=False, planted=1.0) == "failed"


def verdict(claim: Claim, quick: bool, planted: float = 0.0) -> str:
    """Of the claim, or of one with an error planted in its prediction, beside the same trials."""
    points = [
        Point(setting, claim.predicted(setting), trials(claim, setting)) for setting in claim.settings(quick)
    ]
    return claim.rule.judge(claim.rule.plant_error(points, planted) if planted else points).verdict


def trials(claim: Claim, setting: Setting) -> tuple[float, ...]:
    """As the runner measures them, with predictions and closed forms gone: a measurement knows of none."""
    task = make_task(claim.measure, setting, seed=0)
    if task.key not in _MEASURED:
        with one_thread(), without_predictions(claim):
            measured = perform(task)
        assert not measured.crash, measured.crash
        _MEASURED[task.key] = measured.values
    return _MEASURED[task.key]


@contextmanager
def without_predictions(claim: Claim) -> Iterator[None]:
    def gone(*arguments, **named):
        raise AssertionError("a measurement asked for the prediction")

    module = sys.modules[claim.measure.__module__]
    with pytest.MonkeyPatch.context() as patch:
        for name in {*CLOSED_FORMS, *predictors(claim.measure)} & set(vars(module)):
            patch.setattr(module, name, gone)
        for name in CLOSED_FORMS:
            patch.setattr(f"obverse.shadow.{name}", gone)
        yield


@cache
def predictors(measure) -> set[str]:
    """The names of the predictions that this measurement is held against."""
    return {getattr(claim.predict, "__name__", "") for claim in claims().values() if claim.measure is measure}
