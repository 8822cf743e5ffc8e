"""A claim's verdict from its measured points: prediction beside measurement, judged by the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from .._core import BadInput, record_text
from ._claim import Claim
from ._rules import Judgement
from ._work import explain
from .results import Measured, Outcome, Point, Setting


def judge(claim: Claim, measured: Sequence[Measured], *, quick: bool, seed: int) -> Outcome:
    """The outcome of a claim whose settings were measured, in their order; what goes wrong is its verdict."""
    seconds = sum(one.seconds for one in measured)
    wrong = [one for one in measured if one.crash]
    if wrong:
        at = ", ".join(f"{name} = {value}" for name, value in wrong[0].setting.items())
        crash = f"at {len(wrong)} of {len(measured)} settings, first at {at}:\n{wrong[0].crash}"
        return crashed(claim, crash, quick=quick, seed=seed, seconds=seconds)
    try:
        settings = claim.settings(quick)
        points = [
            Point(setting, _predicted(claim, setting), one.values)
            for setting, one in zip(settings, measured, strict=True)
        ]
        judgement = claim.rule.judge(points)
        outcome = replace(
            crashed(claim, "", quick=quick, seed=seed, seconds=seconds),
            verdict=judgement.verdict,
            sentence=judgement.sentence,
            numbers={name: value for name, value in judgement.numbers.items() if isfinite(value)},
            points=tuple(
                replace(judged, seconds=one.seconds)
                for judged, one in zip(judgement.points, measured, strict=True)
            ),
            curve=_curve(claim, judgement, settings),
        )
        record_text(outcome, 0)  # a rule of the user's may give what cannot be written
    except Exception as error:
        return crashed(claim, explain(error), quick=quick, seed=seed, seconds=seconds)
    return outcome


def crashed(claim: Claim, crash: str, *, quick: bool, seed: int, seconds: float = 0.0) -> Outcome:
    """The outcome of a claim that came to no verdict; its sentence is the last line of the crash."""
    return Outcome(
        id=claim.id,
        title=claim.title,
        statement=claim.statement,
        source=claim.source,
        reading=claim.reading,
        twin=claim.twin,
        remark=claim.remark,
        quantity=claim.quantity,
        axis=claim.axis,
        series=claim.series,
        kind=claim.rule.kind,
        rule=claim.rule.meaning,
        expected=claim.expected,
        verdict="crashed",
        sentence=crash.rpartition("\n")[2],
        numbers={},
        points=(),
        curve=(),
        crash=crash,
        quick=quick,
        seed=seed,
        seconds=seconds,
        place=claim.place,
    )


def _predicted(claim: Claim, setting: Setting) -> float:
    predicted = claim.predicted(setting)
    if not isfinite(predicted):
        raise BadInput(
            f"a finite prediction at {dict(setting)}", got=predicted, do="leave the setting out of the grid"
        )
    return predicted


def _curve(
    claim: Claim, judgement: Judgement, settings: Sequence[Setting]
) -> tuple[tuple[float, float], ...]:
    """The fitted rate over the axis, where there is one and the axis has numbers."""
    if judgement.fit is None:
        return ()
    numbers = [setting for setting in settings if type(setting[claim.axis]) in (int, float)]
    return tuple(sorted({(float(setting[claim.axis]), judgement.fit(setting)) for setting in numbers}))
