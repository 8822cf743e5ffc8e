"""Sweeps with made-up trials to make pages from, judged by the library's own rules.

Not the claims themselves: `trials` scatters numbers around what is said to be true.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from obverse.claims._rates import Along, Exponent, NotGrowing
from obverse.claims._rules import Equal, HoldsIn, MeanBelow, Rule
from obverse.claims.results import Outcome, Point, Setting, Sweep

Law = Callable[[Setting], float]
ATTACK = "</style></title></svg></table><script>alert(1)</script><b onclick=alert(2)>'\"" + "x" * 5000
VERSIONS = {"obverse": "0.4.0", "python": "3.11.9", "torch": "2.13.0", "numpy": "2.2.0", "scipy": "1.15"}


def trials(truth: float, count: int, spread: float, source: random.Random) -> tuple[float, ...]:
    return tuple(truth * (1 + spread * source.gauss(0.0, 1.0)) for _ in range(count))


def outcome(
    name: str,
    settings: Sequence[dict[str, Any]],
    predicted: Law,
    rule: Rule,
    *,
    truth: Law | None = None,
    spread: float = 0.1,
    count: int = 60,
    seed: int = 0,
    **more: Any,
) -> Outcome:
    """A claim of this id, run: measured values scatter around `truth`, or else around the prediction."""
    source = random.Random(f"{name}{seed}")
    truth = truth or predicted
    points = [
        Point(setting, predicted(setting), trials(truth(setting), count, spread, source))
        for setting in settings
    ]
    judged = rule.judge(points)
    axis = more.pop("axis", "t")
    curve = ()
    if judged.fit is not None:
        fit = judged.fit
        curve = tuple(sorted({(float(setting[axis]), fit(setting)) for setting in settings}))
    fields: dict[str, Any] = {
        "title": "Variance of one coordinate",
        "statement": "For entries N(0, 1) of W and h ≥ 0, Var ĥ_i = (2/t)(‖h‖² + 2h_i²) − h_i²/n.",
        "source": "Arora, Liang & Ma 2015, Claim A.2",
        "reading": "as printed",
        "twin": "",
        "remark": "",
        "quantity": "variance of ĥ_i",
        "series": "",
        "expected": judged.verdict,
    }
    return Outcome(
        id=name,
        axis=axis,
        kind=rule.kind,
        rule=rule.meaning,
        verdict=judged.verdict,
        sentence=judged.sentence,
        numbers=judged.numbers,
        points=tuple(replace(one, seconds=0.01 * index + 0.2) for index, one in enumerate(judged.points)),
        curve=curve,
        crash="",
        quick=False,
        seed=seed,
        seconds=3.21,
        **(fields | more),
    )


def broken(name: str, crash: str, **more: Any) -> Outcome:
    """A claim that crashed before it measured anything."""
    made = outcome(name, [{"t": 1}], lambda s: 1.0, Equal(), **more)
    return replace(
        made, verdict="crashed", sentence=crash.rpartition("\n")[2], numbers={}, points=(), crash=crash
    )


def sweep_of(outcomes: Sequence[Outcome], **more: Any) -> Sweep:
    return Sweep(
        tuple(outcomes), **({"seed": 0, "quick": False, "seconds": 412.3, "versions": VERSIONS} | more)
    )


def settings(axis: str, values: Sequence[Any], **common: Any) -> list[dict[str, Any]]:
    return [{**common, axis: value} for value in values]


TRACE = """at 2 of 6 settings, first at n = 500, t = 40:
Traceback (most recent call last):
  File "my_claims.py", line 41, in measure
    error = (recovered - h).norm() / h.norm()
RuntimeError: The size of tensor a (500) must match the size of tensor b (400) at dimension 0"""


def sample_sweep() -> Sweep:
    """All four verdicts, every rule, one and several curves, categories, a single point."""
    kept = (20, 50, 100, 200, 500, 1000, 2000)
    several = [
        {"n": 4000, "m": 500, "k": k, "t": t, "trials": 60}
        for k in (5, 20, 80)
        for t in (200, 500, 1000, 2000)
    ]
    laws = (
        "normal",
        "±1",
        "uniform",
        "sparse 10 %",
        "Student t, 3",
        "Student t, 5",
        "correlated rows",
        "spike",
    )
    worse = {"Student t, 3": 1.8, "correlated rows": 1.35, "spike": 2.4}
    return sweep_of(
        [
            outcome(
                "alm.claimA.2",
                settings("t", kept, n=4000, trials=60),
                lambda s: 2 / s["t"],
                Equal(),
                spread=0.02,
            ),
            outcome(
                "alm.prop2.2",
                settings("n", (100, 300, 1000, 3000, 10000), m=50, trials=60),
                lambda s: math.sqrt(50 / s["n"]),
                Exponent(Along("n")),
                axis="n",
                title="The linear model recovers at the rate √(m/n)",
                statement="For x = Wh, ‖Wᵀx/n − h‖/‖h‖ falls as √(m/n), up to a constant.",
                source="Arora, Liang & Ma 2015, Proposition 2.2",
                place="“‖ĥ − h‖∞ ≤ Õ(√(m/n))”, Section 2.1, line 90",
                quantity="‖Wᵀx/n − h‖ / ‖h‖",
                truth=lambda s: 1.7 * math.sqrt(50 / s["n"]),
            ),
            outcome(
                "alm.lemmaB.1.square",
                settings("sigma", (1, 2, 5, 10, 20, 50, 100), h=1.0, trials=100),
                lambda s: 3 + s["sigma"] ** 2,
                MeanBelow(),
                truth=lambda s: (3 + s["sigma"] ** 2) / 2,
                axis="sigma",
                title="Second moment of one term: bound",
                statement="For w ~ N(0, 1), ξ ~ N(0, σ²) and 0 ≤ h ≤ log σ, E[w²·r(wh + ξ)²] ≤ 3h² + σ².",
                source="Arora, Liang & Ma 2015, Lemma B.1",
                quantity="E[w²·r(wh + ξ)²]",
                twin="alm.lemmaB.1.square.exact",
                remark="True, and twice too large.",
                spread=0.02,
            ),
            outcome(
                "alm.lemma2.5",
                settings("m", (100, 1000, 10000), k=10, t=500, trials=200),
                lambda s: math.sqrt(4 * math.log(s["m"]) / 500),
                HoldsIn(),
                truth=lambda s: 0.7 * math.sqrt(4 * math.log(s["m"]) / 500),
                axis="m",
                count=200,
                title="The largest deviation of a coordinate",
                statement="‖Wᵀx − h‖∞ ≤ δ‖h‖ with δ√t = √(2·2 ln m).",
                source="Arora, Liang & Ma 2015, Lemma 2.5",
                quantity="‖Wᵀx − h‖∞ / ‖h‖",
            ),
            outcome(
                "alm.lemmaB.1.square.exact",
                settings("sigma", (1, 2, 5, 10, 20, 50, 100), h=1.0, trials=100),
                lambda s: (3 + s["sigma"] ** 2) / 2,
                Equal(),
                axis="sigma",
                title="Second moment of one term",
                statement="For w ~ N(0, 1) and ξ ~ N(0, σ²), E[w²·r(wh + ξ)²] = (3h² + σ²)/2.",
                source="Arora, Liang & Ma 2015, Lemma B.1; half of the printed bound",
                quantity="E[w²·r(wh + ξ)²]",
                reading="exact",
                twin="alm.lemmaB.1.square",
                spread=0.02,
            ),
            outcome(
                "alm.thm2.3",
                several,
                lambda s: s["k"] / s["t"] * math.log(500),
                NotGrowing(Along("k/t", lambda s: s["k"] / s["t"])),
                truth=lambda s: 0.3 * (s["k"] / s["t"]) ** 0.97,
                series="k",
                title="One layer is reversible",
                statement="With probability 1 − 1/poly(n), ‖r(Wᵀx + b) − h‖² ≤ Õ(k/t)·‖h‖², for k < t < k².",
                source="Arora, Liang & Ma 2015, Theorem 2.3, eq. 9",
                quantity="‖r(ĥ − θ) − h‖² / ‖h‖²",
                remark="Read as: the error divided by (k/t)·ln m does not grow with k/t.",
            ),
            outcome(
                "alm.eq2",
                settings("t", (100, 200, 400, 800), n=1000, trials=60),
                lambda s: s["t"] / 1000,
                NotGrowing(Along("t")),
                truth=lambda s: (s["t"] / 1000) ** 1.5,
                title="The normalisation of eq. 2",
                statement="‖x‖² grows no faster than t.",
                source="Arora, Liang & Ma 2015, eq. 2",
                quantity="‖x‖²",
                expected="failed",
                spread=0.03,
            ),
            outcome(
                "alm.support",
                settings("rho", (0.1, 0.3, 0.5, 0.9), n=1000, trials=60),
                lambda s: 1000 * s["rho"],
                Equal(),
                truth=lambda s: 500 * s["rho"],
                axis="rho",
                title="How many inputs are not zero",
                statement="E‖x‖₀ = t.",
                source="Arora, Liang & Ma 2015, below eq. 2",
                quantity="‖x‖₀",
                twin="alm.support.corrected",
                remark="The ReLU sets half of what the mask keeps to zero.",
            ),
            outcome(
                "alm.support.corrected",
                settings("rho", (0.1, 0.3, 0.5, 0.9), n=1000, trials=60),
                lambda s: 500 * s["rho"],
                Equal(),
                axis="rho",
                title="How many inputs are not zero",
                statement="E‖x‖₀ = t/2.",
                source="Arora, Liang & Ma 2015, below eq. 2",
                quantity="‖x‖₀",
                reading="corrected",
                twin="alm.support",
            ),
            outcome(
                "alm.universal",
                settings("law", laws, n=2000, m=400, k=20, t=1000, trials=40),
                lambda s: 0.12,
                Equal(tolerance=0.1),
                truth=lambda s: 0.12 * worse.get(s["law"], 1.0),
                axis="law",
                reading="beyond the paper",
                expected="held",
                title="Any entries of mean 0 and variance 1 do",
                statement="The recovery error is that of normal entries, whatever law the entries of W have.",
                source="beyond the paper",
                quantity="‖r(ĥ − θ) − h‖² / ‖h‖²",
            ),
            outcome(
                "alm.thm3.2",
                [{"layers": 3, "n": 2000, "trials": 4}],
                lambda s: 0.4,
                Equal(),
                axis="layers",
                count=4,
                spread=0.3,
                expected="held",
                title="Three layers, one setting",
                statement="At three layers the error is what the recursion of means and variances predicts.",
                source="Arora, Liang & Ma 2015, Theorem 3.2",
                quantity="relative error",
            ),
            broken(
                "mine.first",
                TRACE,
                title="A claim of one's own that breaks",
                statement="Something that cannot be measured.",
                source="my notes",
                expected="held",
            ),
        ]
    )


def many_claims(count: int) -> Sweep:
    base = list(sample_sweep())
    made = []
    for index in range(count):
        one = base[index % len(base)]
        turn = index // len(base)
        twin = f"{one.twin}.{turn}" if one.twin else ""
        made.append(replace(one, id=f"{one.id}.{turn}", twin=twin))
    return sweep_of(made)


def hostile(one: Outcome) -> Outcome:
    """The same with an attack in every text."""
    texts = (
        "title",
        "statement",
        "source",
        "reading",
        "remark",
        "quantity",
        "axis",
        "series",
        "rule",
        "sentence",
    )
    points = tuple(
        replace(point, note=ATTACK, setting={ATTACK: f"{ATTACK}{index}", ATTACK[1:]: index, "t": ATTACK})
        for index, point in enumerate(one.points)
    )
    changed: dict[str, Any] = dict.fromkeys(texts, ATTACK)
    return replace(
        one,
        **changed,
        id=ATTACK,
        twin=ATTACK[2:],
        crash=f"{ATTACK}\n" * 3,
        points=points,
        numbers={ATTACK: 1.0},
    )
