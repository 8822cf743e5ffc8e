"""How many samples it takes is what the bench of metrics has counted, and the command says it."""

from __future__ import annotations

import json

from experiments.metric_bench.plan import FEW, FILE, MANY
from obverse.diversity._plan import PLAN, Question, Tried, plan_rows


def test_the_plan_is_what_was_counted():
    entries = json.loads(FILE.read_text(encoding="utf-8"))["entries"]
    kinds = {"copies": "nearest to training", f"support {FEW}": "birthday test", "modes": "coverage"}
    assert len(PLAN) == len(kinds)
    for question, (kind, test) in zip(PLAN, kinds.items(), strict=True):
        counted = [
            Tried(int(name.rpartition(", ")[2]), entry[test], entry["draws"])
            for name, entry in entries.items()
            if name.rpartition(", ")[0] == kind
        ]
        assert list(question.tried) == sorted(counted, key=lambda one: one.samples)


def test_a_million_images_are_not_called_fewer_more_often_than_the_level():
    """Of 2,000 batches each: a bound below a million with 95 % confidence, three standard errors."""
    entries = json.loads(FILE.read_text(encoding="utf-8"))["entries"]
    wrong = [entry for name, entry in entries.items() if name.startswith(f"support {MANY}")]
    assert wrong
    for entry in wrong:
        level = entry["birthday test"] / entry["draws"]
        assert level <= 0.05 + 3 * (0.05 * 0.95 / entry["draws"]) ** 0.5


def test_enough_is_the_least_size_after_which_none_fails():
    tried = tuple(Tried(size, found, 20) for size, found in ((100, 19), (200, 18), (400, 19), (800, 20)))
    assert Question("a fault", "a test", tried).enough == tried[2]
    assert Question("a fault", "a test", tried[:2]).enough is None
    assert Question("a fault", "a test", tried).to_dict()["samples"] == 400


def test_the_command_says_it_without_samples(obverse):
    done = obverse("diversity", "--plan")
    assert (done.code, done.err) == (0, "")
    flat = " ".join(done.out.split())
    for fault, samples, _, _ in plan_rows():
        assert f"{samples}: {fault};" in flat
    told = json.loads(obverse("diversity", "--plan", "--json").out)
    assert [one["samples"] for one in told["plan"]] == [
        None if question.enough is None else question.enough.samples for question in PLAN
    ]


def test_samples_or_a_plan(obverse, tmp_path):
    assert "leave one of them out" in obverse("diversity", tmp_path, "--plan").err
    assert "name a folder, a file or a run" in obverse("diversity").err
