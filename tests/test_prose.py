"""Numbers inside sentences of the docs are those of experiments/results/prose, rounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOUND = json.loads((ROOT / "experiments" / "results" / "prose" / "numbers.json").read_text(encoding="utf-8"))
DIMENSION = FOUND["dimension"]


def small(value: float, digits: int = 0) -> str:
    """2.48e-15 as 2.5e−15 or 2e−15."""
    number, power = f"{value:.{digits}e}".split("e")
    return f"{number}e−{abs(int(power))}"


def percent(shape: str) -> str:
    return f"{100 * DIMENSION['shapes'][shape]['covered']:.0f} %"


def least(*shapes: str) -> str:
    return f"{int(100 * min(DIMENSION['shapes'][shape]['covered'] for shape in shapes))} %"


SENTENCES = [
    ("identity", f"up to {small(FOUND['factorization']['error_over_root_size'], 1)}·√d of ‖R‖"),
    ("identity", f"keeps {int(FOUND['factorization']['digits_at_condition_1e12'])} digits"),
    ("identity", f"relative distances of {small(FOUND['near_duplicates']['relative_distance'])} in float64"),
    ("ladder", f"up to {small(FOUND['ladder']['gap_over_root_inputs'])}·√inputs"),
    ("diversity", f"of {DIMENSION['trials']} trials with {DIMENSION['points']:,} points"),
    (
        "diversity",
        f"{least('sphere 1', 'sphere 2', 'sphere 5', 'torus 2', 'torus 5')} or more on spheres and tori",
    ),
    ("diversity", f"in {percent('cube 5')} in a cube of 5"),
    ("diversity", f"in {percent('sphere 20')} on a sphere and {percent('cube 20')} in a cube of 20"),
]


@pytest.mark.parametrize(("page", "sentence"), SENTENCES)
def test_the_page_says_what_was_measured(page: str, sentence: str) -> None:
    text = " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
    assert sentence in text
