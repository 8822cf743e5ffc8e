"""The fuzzer notices what it is there for; one seed makes one case; what ever failed stays mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fuzz.corpus import KEPT
from fuzz.judge import PASSED
from fuzz.worker import FORMATS, make
from training.helpers import ENVIRONMENT


class Judges:
    """One worker process, started when first asked."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, **job: Any) -> dict[str, Any]:
        if self.process is None:
            paths = os.pathsep.join(path for path in sys.path if path)
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=ENVIRONMENT | {"PYTHONPATH": paths},
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([job]) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any]
        (answer,) = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate()


@pytest.fixture(scope="module")
def judged() -> Iterator[Judges]:
    judges = Judges()
    yield judges
    judges.close()


SEEN_AS = {
    "accepted": "accepted",
    "refused": "refused",
    "crash": "crash",
    "signal": "crash",
    "memory": "memory",
    "promise": "memory",
    "control": "control",
    "output": "control",
    "page": "control",
    "markup": "markup",
    "executed": "executed",
    "written": "outside",
    "read": "outside",
}


@pytest.mark.parametrize("kind", [*SEEN_AS, pytest.param("time", marks=pytest.mark.slow)])
def test_every_kind_of_failure_is_noticed(kind, judged):
    answer = judged(probe=kind)
    assert answer["outcome"] == SEEN_AS.get(kind, kind), answer


@pytest.mark.parametrize("name", KEPT)
def test_what_ever_failed_is_read_or_refused_in_a_sentence(name, judged):
    answer = judged(kept=name)
    assert answer["outcome"] in PASSED, answer


@pytest.mark.parametrize(
    "kind", [kind for kind in FORMATS if kind not in ("run", "result")]
)  # those train first
def test_a_seed_and_a_number_make_the_same_case_again(kind):
    one, again, other = make(kind, 3, 5), make(kind, 3, 5), make(kind, 3, 6)
    assert one == again != other


def test_there_are_cases_enough():
    assert sum(count for count, _ in FORMATS.values()) >= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_other_cases_than_those_of_make_fuzz_are_read_or_refused(kind, judged):
    for number in range(40):
        answer = judged(format=kind, seed=1, number=number)
        assert answer["outcome"] in PASSED, answer
