"""The fitted reverse beside the optimizer: what is timed, which rows are compared, what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.inversion.fitted_page import fitted_text, peer_at, peer_seconds, reached


def row(method: str, steps: int, error: float, seconds: float) -> dict[str, Any]:
    return {"method": method, "steps": steps, "error": error, "seconds": seconds} | {
        "agreement": 0.9,
        "cosine": 0.5,
    }


def measured(same: bool) -> dict[str, Any]:
    """The optimizer at 1 ms an iteration; the fitted reverse at 1 ms, and 2 ms more for each step."""
    last = 25 if same else 400
    rows = [row("shadow", 0, 0.5, 0.001), row("fitted", 0, 0.1, 0.001)]
    rows += [row(f"fitted, {control}", 0, 0.7, 0.001) for control in ("shuffled weights", "untrained")]
    rows += [row(f"refine {k}", k, 0.1 / (1 + k), 0.001 + 0.002 * k) for k in (1, 2, 5, 10, 20, 40)]
    rows += [row("optimizer", at, 4 / at, at / 1000) for at in ((25,) if same else (25, 400))]
    single = {"fitted": 0.01, "refine 2": 0.02, "refine 10": 0.06, "refine 40": 0.2, "optimizer": last / 100}
    told = {"iterations": last, "same_net": same, "fit_seconds": 2.0, "fits": 3}
    return {"rows": rows, "single": single} | told


def before() -> dict[str, Any]:
    stored = {"rows": [row("optimizer", at, error, 1.0) for at, error in ((25, 0.16), (400, 0.02))]}
    plan = {"iterations": [25, 400], "calibration": 200}
    return {"plan": plan, "nets": {"cnn-mnist": {"layers": {"conv1": stored, "conv2": stored}}}}


def test_the_optimizer_is_that_of_the_same_net_at_the_pace_of_this_run() -> None:
    stored = before()["nets"]["cnn-mnist"]["layers"]["conv1"]
    same, other = measured(True), measured(False)
    assert peer_at(same, stored, 400)["error"] == 0.02  # as stored
    assert peer_at(other, stored, 400)["error"] == 0.01  # as measured again
    for one in (same, other):
        assert peer_seconds(one, 400) == pytest.approx(0.4)
        assert peer_seconds(one, 400, single=True) == pytest.approx(4.0)
    # 0.02 is reached by 5 steps (0.1/6), 0.01 by 10 (0.1/11); 0.16 at once
    assert reached(same, stored, 400)["steps"] == 5
    assert reached(other, stored, 400)["steps"] == 10
    assert reached(same, stored, 25)["steps"] == 0


def test_the_section_says_what_was_measured() -> None:
    assert fitted_text({"entries": {}}, before()) == ""
    entries = {"cnn-mnist|conv1": measured(True), "cnn-mnist|test_error": 0.01}
    text = fitted_text({"entries": entries}, before())
    assert "| cnn-mnist | conv1 | 0.5 / 90 % / 0.50 | 0.1 / 90 % / 0.50 | 0.0333 / 90 % / 0.50 |" in text
    assert "in 1 of 1 layers" in text
    assert "is 5 to 5 times that of the optimizer after 400 iterations" in " ".join(text.split())
    assert (
        "| cnn-mnist | conv1 | 0 (4 %) | 5 (2.7 %) |" in text
    )  # 1 of 25 ms, 11 of 400 ms, a bit less in floats
    assert "| cnn-mnist | conv1 | 10 (0.25 %) | 20 (0.5 %) | 60 (1.5 %) | 200 (5 %) | 4,000 |" in text
    assert "gave the error that stands in the tables below for cnn-mnist conv1" in " ".join(text.split())
    other = fitted_text({"entries": {"cnn-mnist|conv2": measured(False)}}, before())
    assert "others, trained anew by the same recipe" in " ".join(other.split())
    assert "the nets are those" not in other
