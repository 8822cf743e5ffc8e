"""A search loses no trial and runs none twice, whoever dies when; its numbers are those of single runs."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from obverse._core.errors import BadInput, MissingExtra, ObverseError
from obverse._core.interrupts import Interrupted
from obverse.training._classify import ClassifierTask, fit_classifier
from obverse.training._rundir import create_run, read_run
from obverse.training._search.plan import (
    HELD_OUT,
    LRS,
    WEIGHTS,
    SearchPlan,
    cell,
    held_out,
    in_space,
    load_planned,
    make_plan,
    read_plan,
    write_plan,
)
from obverse.training._search.results import SearchResult, Trial, at_edge, read_result, rivals, standard_error
from obverse.training._search.search import run_search, search
from obverse.training._search.study import STARTUP, UNTOUCHED, Study
from obverse.training._search.worker import trial_path, work
from obverse.training._settings import Settings
from training.helpers import ENVIRONMENT, Crasher, metrics_without_seconds, tensor_bytes, tiny_npz

pytestmark = pytest.mark.usefixtures("migrations_read_once")

GRID: dict[str, Any] = {"lrs": (0.1, 0.5), "weights": (0.0, 1.0)}
CELLS = 4
TWINS = (1000.0, math.nextafter(1000.0, math.inf))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search")


@pytest.fixture(scope="module")
def base(folder: Path) -> Settings:
    """A training that takes a moment."""
    data = tiny_npz(folder / "tiny.npz", points=240, classes=6)
    return Settings(data=str(data), hidden=(5,), epochs=2, batch_size=20)


@pytest.fixture(scope="module")
def whole(base: Settings, folder: Path) -> SearchResult:
    """The search that nobody disturbed, in folder/whole: not to be changed."""
    torch.set_num_threads(1)
    return search(plan_of(base), folder / "whole")


def plan_of(base: Settings, **changes: Any) -> SearchPlan:
    return make_plan(base, **(GRID | {"threads": 1} | changes))


def outcome(result: SearchResult) -> list[tuple[Any, ...]]:
    """What must not depend on who did it when."""
    return [(it.number, it.lr, it.weight, it.state, it.error, it.curve) for it in result.trials]


def rows(path: Path, name: str = "study.db") -> list[tuple[int, str]]:
    """(number, state) of every trial in the database, read without Optuna."""
    connection = sqlite3.connect(path / name)
    try:
        return connection.execute("select number, state from trials order by number").fetchall()
    finally:
        connection.close()


# --- the plan ---


def test_the_paper_s_space() -> None:
    assert pytest.approx((0.0000625, 0.00025, 0.001, 0.004, 0.016)) == LRS
    assert WEIGHTS == (0.125, 0.25, 0.5, 1, 2, 4, 8)
    assert HELD_OUT == 10_000


@pytest.mark.parametrize(("points", "held"), [(60_000, 10_000), (50_000, 10_000), (1_437, 287), (9, 1)])
def test_a_small_data_set_gives_a_fifth(points: int, held: int) -> None:
    assert held_out(points) == held


def test_a_plan_is_read_back_as_it_was_written(base: Settings, tmp_path: Path) -> None:
    plan = plan_of(base, sampler="tpe", pruner="median", weights=(1, 4), trials=3, shared=True)
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == plan
    assert (plan.train_points, plan.base.validation, plan.test_points) == (128, 32, 80)


def test_the_grid_is_every_rate_with_every_weight_in_an_order_of_the_seed(base: Settings) -> None:
    plan = plan_of(base)
    cells = [cell(plan, number) for number in range(plan.trials)]
    assert sorted(cells) == sorted(itertools.product(*GRID.values()))
    other = plan_of(replace(base, seed=1))
    assert cells != [cell(other, number) for number in range(plan.trials)]
    assert all(in_space(plan, number, *cells[number]) for number in range(CELLS))
    assert not in_space(plan, 0, *cells[1])


def test_the_order_of_a_large_grid_is_drawn_once(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(replace(base, seed=7), lrs=tuple(range(1, 101)), weights=tuple(range(100)))
    real, drawn = torch.randperm, []
    monkeypatch.setattr(
        torch, "randperm", lambda *args, **keywords: drawn.append(args) or real(*args, **keywords)
    )
    cells = [cell(plan, number) for number in range(plan.trials)]
    assert drawn == [(10_000,)]
    assert len(set(cells)) == plan.trials == 10_000
    with pytest.raises(BadInput, match="at most 10000 pairs of an lr and a weight; got 10100"):
        replace(plan, lrs=(*plan.lrs, 101.0))


def test_the_study_s_name_tells_searches_apart_but_not_machines(base: Settings, tmp_path: Path) -> None:
    plan = plan_of(base)
    copy = tmp_path / "elsewhere.npz"
    copy.write_bytes(Path(base.data).read_bytes())
    assert plan_of(replace(base, data=str(copy)), threads=2, shared=True).study == plan.study
    other = tiny_npz(tmp_path / "other.npz", points=250)
    for changed in (
        plan_of(replace(base, epochs=4)),
        plan_of(base, lrs=(0.01, 0.2)),
        plan_of(base, trials=2),
        plan_of(base, pruner="median"),
        plan_of(replace(base, data=str(other))),
    ):
        assert changed.study != plan.study


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lrs": ()}, "lrs, none twice"),
        ({"lrs": (0.1, 0.1)}, "lrs, none twice"),
        ({"lrs": (0.0,)}, "lrs > 0"),
        ({"lrs": (math.nan,)}, "lrs > 0"),
        ({"lrs": (math.inf,)}, "lrs > 0"),
        ({"weights": (-1,)}, "weights ≥ 0"),
        ({"sampler": "magic"}, "sampler out of grid, tpe"),
        ({"pruner": "magic"}, "pruner out of median, none"),
        ({"trials": 0}, "trials from 1 to 4"),
        ({"trials": 5}, "trials from 1 to 4"),
        ({"sampler": "tpe"}, "weights > 0 for the sampler tpe"),
        ({"sampler": "tpe", "lrs": TWINS, "weights": (1,)}, "lrs for the sampler tpe"),
        ({"sampler": "tpe", "weights": TWINS}, "weights for the sampler tpe"),
        ({"threads": 0}, "threads from 1"),
    ],
)
def test_what_cannot_be_searched_is_refused(base: Settings, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        plan_of(base, **changes)


def test_settings_that_no_trial_could_run_with_are_refused_before_anything_is_written(base: Settings) -> None:
    for wrong in (replace(base, validation=160), replace(base, smooth=True, data="digits", layer="none")):
        with pytest.raises(BadInput):
            plan_of(wrong)


@pytest.mark.parametrize("refused", [0.0, 4.0])
def test_a_plan_is_refused_if_only_one_end_of_the_weights_can_be_trained(
    base: Settings, monkeypatch: pytest.MonkeyPatch, refused: float
) -> None:
    def refusing(settings: Settings, data: Any) -> None:
        if settings.weight == refused:
            raise BadInput("another weight", got=settings.weight, do="choose one")

    monkeypatch.setattr("obverse.training._search.plan.ClassifierTask", refusing)
    plan_of(base, weights=(1.0, 2.0))
    with pytest.raises(BadInput, match="another weight"):
        plan_of(base, weights=(0.0, 1.0, 4.0))


def test_plain_training_and_unlabelled_points_are_searched_together(base: Settings, tmp_path: Path) -> None:
    base = replace(base, train_size=60, unlabelled=20, labels="consistency", epochs=1)
    result = search(plan_of(base, lrs=(0.1,)), tmp_path / "search", retrain=False)
    assert sorted((it.weight, it.state) for it in result.trials) == [(0.0, "complete"), (1.0, "complete")]


def test_too_few_points_for_a_fifth_are_a_sentence_that_names_the_flag(base: Settings) -> None:
    with pytest.raises(BadInput, match=r"at least 5 training points.*; got 4; pass --validation"):
        plan_of(replace(base, train_size=4))
    assert plan_of(replace(base, train_size=4, validation=1)).train_points == 3
    assert plan_of(replace(base, train_size=5)).base.validation == 1


HOSTILE = [
    ("format", 2),
    ("base", []),
    ("base", {"hidden": "wide"}),
    ("base", {"no_such_setting": 1}),
    ("lrs", "0.1"),
    ("lrs", [1e400]),
    ("lrs", [True]),
    ("lrs", [0.1] * 2),
    ("lrs", list(range(1, 20_000))),
    ("lrs", list(range(1, 5_002))),  # with two weights more than 10,000 cells
    ("lrs", [0.1] * 10_000),
    ("weights", list(range(-10_000, 0))),
    ("weights", [None]),
    ("sampler", ["grid"]),
    ("sampler", "../grid"),
    ("pruner", 3),
    ("trials", 10**9),
    ("trials", 2.5),
    ("train_points", -1),
    ("threads", 10**6),
    ("shared", "sqlite:////etc/passwd"),
    ("study", "another"),
    ("study", "obverse-" + "z" * 16),
    ("place", "../../etc"),
    ("storage", "postgresql://host/name"),
]


@pytest.mark.parametrize(
    ("name", "value"), HOSTILE, ids=[f"{name}-{at}" for at, (name, _) in enumerate(HOSTILE)]
)
def test_a_hostile_plan_is_refused_in_a_sentence(
    base: Settings, tmp_path: Path, name: str, value: Any
) -> None:
    write_plan(tmp_path, plan_of(base))
    record = json.loads((tmp_path / "search.json").read_text())
    (tmp_path / "search.json").write_text(json.dumps(record | {name: value}))
    with pytest.raises(BadInput) as caught:
        read_plan(tmp_path)
    assert len(str(caught.value)) < 1000


def test_a_plan_with_the_old_names_of_settings_is_the_same_search(base: Settings, tmp_path: Path) -> None:
    plan = plan_of(base)
    write_plan(tmp_path, plan)
    record = json.loads((tmp_path / "search.json").read_text())
    old = {"lr": "rate", "weight_decay": "decay", "milestones": "drops", "batch_size": "batch"}
    record["base"] = {old.get(name, name): value for name, value in record["base"].items()}
    record["rates"] = record.pop("lrs")
    (tmp_path / "search.json").write_text(json.dumps(record))
    found = read_plan(tmp_path)
    assert found == plan
    load_planned(found)  # the study is that of the same name


def test_the_name_of_a_study_is_what_it_was(tmp_path: Path) -> None:
    """Made by the version before settings had PyTorch's names; a search from then can be resumed."""
    base = Settings(data="digits", hidden=(5,), epochs=2, batch_size=20)
    assert plan_of(base, lrs=(0.1, 0.5), weights=(0.0, 1.0), threads=1).study == "obverse-c5f29f5ecf48bbb5"


def test_a_plan_without_a_field_is_refused(base: Settings, tmp_path: Path) -> None:
    write_plan(tmp_path, plan_of(base))
    record = json.loads((tmp_path / "search.json").read_text())
    for name in record:
        left = {key: value for key, value in record.items() if key != name}
        (tmp_path / "search.json").write_text(json.dumps(left))
        with pytest.raises(BadInput):
            read_plan(tmp_path)


# --- what it found ---


def trial(number: int, rate: float, weight: float, error: float | None, state: Any = "complete") -> Trial:
    curve = () if error is None else ((1, error),)
    return Trial(number, rate, weight, state, error, 1.0, "", curve)


def result_of(*trials: Trial, **changes: Any) -> SearchResult:
    values = {
        "data": "tiny",
        "train_points": 100,
        "held_out": 100,
        "test_points": 50,
        "epochs": 1,
        "sampler": "grid",
        "pruner": "none",
        "lrs": (0.1, 0.2, 0.4),
        "weights": (0.5, 1.0, 2.0),
        "planned": 9,
        "retrained": None,
        "settings": {},
        "versions": {},
    }
    return SearchResult(trials=trials, **(values | changes))


def test_the_best_is_complete_and_of_equals_the_plainest() -> None:
    found = result_of(
        trial(0, 0.1, 1.0, 0.01, "pruned"),
        trial(1, 0.1, 1.0, 0.2),
        trial(2, 0.4, 0.5, 0.1),
        trial(3, 0.2, 0.5, 0.1),
        trial(4, 0.1, 2.0, 0.1),
        trial(5, 0.1, 0.5, None, "failed"),
    )
    assert found.best is found.trials[3]
    assert (found.finished, len(found.complete)) == (6, 4)
    assert result_of(trial(0, 0.1, 1.0, None, "failed")).best is None


def test_rivals_lie_within_the_standard_error_of_a_share() -> None:
    # of 100 points with p = 0.1 the count has a standard deviation of √(100·0.1·0.9) = 3
    assert standard_error(0.1, 100) == pytest.approx(0.03)
    errors = (0.1, 0.12, 0.13, 0.14)
    found = result_of(*(trial(at, 0.1 * 2**at, 1.0, error) for at, error in enumerate(errors)))
    assert [it.number for it in rivals(found)] == [1, 2]


@pytest.mark.parametrize(
    ("rate", "weight", "changes", "ends"),
    [
        (0.2, 1.0, {}, []),
        (0.1, 1.0, {}, [("lr", "smallest")]),
        (0.4, 2.0, {}, [("lr", "largest"), ("weight", "largest")]),
        (0.2, 0.5, {}, [("weight", "smallest")]),
        (0.2, 0.0, {"weights": (0.0, 1.0, 2.0)}, []),
        (0.2, 1.0, {"weights": (0.0, 1.0, 2.0)}, []),  # below it lies 0, which was searched
        (0.2, 1.0, {"weights": (1.0,)}, []),
        # of the range 1 to 100 the outer tenths end at 10^0.2 and 10^1.8
        (1.5, 1.0, {"lrs": (1.0, 100.0), "sampler": "tpe"}, [("lr", "smallest")]),
        (1.7, 1.0, {"lrs": (1.0, 100.0), "sampler": "tpe"}, []),
        (64.0, 1.0, {"lrs": (1.0, 100.0), "sampler": "tpe"}, [("lr", "largest")]),
        # two floats of one logarithm: the range is as good as a point, which is both of its ends
        (1000.0, 1.0, {"lrs": TWINS}, [("lr", "smallest"), ("lr", "largest")]),
        (1000.0, 1.0, {"lrs": TWINS, "sampler": "tpe"}, [("lr", "smallest"), ("lr", "largest")]),
    ],
)
def test_the_ends_of_what_was_searched(
    rate: float, weight: float, changes: dict[str, Any], ends: list[tuple[str, str]]
) -> None:
    assert at_edge(result_of(trial(0, rate, weight, 0.1), **changes)) == ends


# --- one worker ---


def test_every_cell_is_the_run_that_train_would_make(
    base: Settings, folder: Path, whole: SearchResult
) -> None:
    result, path = whole, folder / "whole"
    assert sorted((it.lr, it.weight) for it in result.trials) == sorted(itertools.product(*GRID.values()))
    assert rows(path) == [(number, "COMPLETE") for number in range(CELLS)]
    assert read_result(path) == result
    for it in result.trials:
        settings = replace(base, lr=it.lr, weight=it.weight, validation=32)
        alone = fit_classifier(ClassifierTask(settings))
        assert it.error == alone[-1]["test_error"]
        assert it.curve == tuple((record["epoch"], record["test_error"]) for record in alone[1:])
        run = read_run(trial_path(path, it.number))
        assert (run.settings, run.finished, run.environment["threads"]) == (settings, True, 1)
    best = min(result.trials, key=lambda it: (it.error, it.weight, it.lr))
    again = fit_classifier(ClassifierTask(replace(base, lr=best.lr, weight=best.weight, validation=0)))
    assert result.retrained is not None
    assert result.retrained.test_error == again[-1]["test_error"]
    assert read_run(path / "best").settings.validation == 0


def test_a_finished_search_is_not_run_again(
    base: Settings, folder: Path, whole: SearchResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = whole
    shutil.copytree(folder / "whole", tmp_path / "search")
    monkeypatch.setattr(ClassifierTask, "step", None)
    assert search(read_plan(tmp_path / "search"), tmp_path / "search") == first
    assert search(plan_of(base), tmp_path / "search", retrain=False) == first
    # even where the study is lost: the runs are there
    (tmp_path / "search" / "study.db").unlink()
    assert outcome(search(plan_of(base), tmp_path / "search")) == outcome(first)


def test_there_is_a_result_to_show_before_the_first_trial(base: Settings, tmp_path: Path) -> None:
    seen = []

    def stop(worker: int, event: Any) -> None:
        seen.append(read_result(tmp_path))
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run_search(plan_of(base), tmp_path, tell=stop)
    (first,) = seen
    assert (first.trials, first.planned, first.best) == ((), CELLS, None)


def test_what_is_done_already_is_told_at_once(base: Settings, tmp_path: Path) -> None:
    """A bar that began at 0 again would promise hours that nobody has to wait."""
    done = search(plan_of(base, trials=2), tmp_path, retrain=False)
    assert done.best is not None
    events: list[tuple[int, Any]] = []
    run_search(read_plan(tmp_path), tmp_path, retrain=False, tell=lambda *event: events.append(event))
    assert events[0] == (0, {"kind": "end", "finished": 2, "best": done.best.error})


def test_progress_is_told_of_every_trial(base: Settings, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    done = search(plan_of(base, trials=2), tmp_path, retrain=False, progress=lambda *what: told.append(what))
    assert done.best is not None
    assert [(finished, total) for finished, total, _ in told] == [(0, 2), (1, 2), (2, 2)]
    assert told[0][2] == "no error yet"
    assert told[-1][2] == f"best error {100 * done.best.error:.2f} %"


def test_another_plan_is_kept_out(base: Settings, tmp_path: Path) -> None:
    search(plan_of(base, trials=1), tmp_path / "search", retrain=False)
    with pytest.raises(BadInput, match="choose another --out"):
        search(plan_of(base, trials=2), tmp_path / "search")


def test_fewer_trials_than_cells_are_the_first_ones(base: Settings, tmp_path: Path) -> None:
    plan = plan_of(base, trials=2)
    result = search(plan, tmp_path / "search", retrain=False)
    assert [(it.lr, it.weight) for it in result.trials] == [cell(plan, 0), cell(plan, 1)]
    assert result.retrained is None
    assert not (tmp_path / "search" / "best").exists()


def test_any_letter_may_stand_in_the_path(base: Settings, tmp_path: Path) -> None:
    path = tmp_path / "a {b} ?c#d %20 é"
    search(plan_of(base, trials=1), path, retrain=False)
    assert rows(path) == [(0, "COMPLETE")]


def test_a_trial_that_diverges_is_shown_and_ends_nothing(base: Settings, tmp_path: Path) -> None:
    result = search(plan_of(base, lrs=(0.1, 1e30), weights=(0.0,)), tmp_path / "search")
    states = {it.lr: it for it in result.trials}
    assert (states[0.1].state, states[1e30].state) == ("complete", "failed")
    assert "finite" in states[1e30].reason
    assert result.best is states[0.1]
    nothing = search(plan_of(base, lrs=(1e30,), weights=(0.0,)), tmp_path / "none")
    assert (nothing.best, nothing.retrained) == (None, None)


def test_the_best_may_diverge_on_all_points(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from obverse.training._fit import Diverged

    fit = fit_classifier

    def failing(task: ClassifierTask, *args: Any, **keywords: Any) -> Any:
        if task.settings.validation == 0:
            raise Diverged("expected a finite loss")
        return fit(task, *args, **keywords)

    monkeypatch.setattr("obverse.training._search.search.fit_classifier", failing)
    result = search(plan_of(base, trials=1), tmp_path / "search")
    assert result.retrained is not None
    assert (result.retrained.test_error, result.retrained.reason) == (None, "expected a finite loss")
    assert read_result(tmp_path / "search") == result


def test_without_optuna_the_extra_is_named(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"obverse\[search\]"):
        search(plan_of(base), tmp_path / "search")


# --- interrupted, killed, resumed ---


class Death(BaseException):
    """Nothing of ours catches it."""


def interrupting(after: int) -> Callable[[int, Any], None]:
    """Ctrl-C at the so-manieth step that is shown."""
    left = itertools.count(after, -1)

    def on_event(worker: int, event: Any) -> None:
        if event["kind"] in ("step", "best") and next(left) == 0:
            signal.raise_signal(signal.SIGINT)

    return on_event


@pytest.mark.parametrize("after", [1, CELLS])  # in the second trial; in the net that is trained on everything
def test_a_search_that_was_stopped_goes_on_where_it_was(
    base: Settings, whole: SearchResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr("obverse.training._search.worker.SHOWN", 1e9)  # one step a trial is shown: its first
    with pytest.raises(Interrupted, match="everything is saved"):
        run_search(plan_of(base), tmp_path, tell=interrupting(after))
    assert sum(state == "RUNNING" for _, state in rows(tmp_path)) == (after < CELLS)
    resumed = search(read_plan(tmp_path), tmp_path)
    assert outcome(resumed) == outcome(whole)
    assert resumed.retrained is not None
    assert whole.retrained is not None
    assert resumed.retrained.test_error == whole.retrained.test_error
    assert rows(tmp_path) == [(number, "COMPLETE") for number in range(CELLS)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_at_the_very_end_of_a_trial_stops_the_search_too(
    base: Settings,
    whole: SearchResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    """The trial is complete then: nothing is left to stop but the next one."""
    real = Study.report

    def report(study: Study, claim: Any, epoch: int, error: float) -> None:
        real(study, claim, epoch, error)
        if (claim.number, epoch) == (1, base.epochs):
            signal.raise_signal(number)

    monkeypatch.setattr(Study, "report", report)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="everything is saved"):
        search(plan_of(base), tmp_path)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert rows(tmp_path) == [(0, "COMPLETE"), (1, "COMPLETE")]
    monkeypatch.setattr(Study, "report", real)
    assert outcome(search(read_plan(tmp_path), tmp_path)) == outcome(whole)


def test_data_that_changed_since_are_refused(base: Settings, tmp_path: Path) -> None:
    """Half of the trials on some points and half on others would be no comparison."""
    data = Path(shutil.copy(base.data, tmp_path / "points.npz"))
    plan = plan_of(replace(base, data=str(data)))
    with pytest.raises(Interrupted):
        run_search(plan, tmp_path / "search", tell=interrupting(1))
    before = rows(tmp_path / "search")
    tiny_npz(data, points=240, classes=5)
    with pytest.raises(BadInput, match=r"the data and the settings .* got other points in points\.npz, or a"):
        search(read_plan(tmp_path / "search"), tmp_path / "search")
    assert [row for row in rows(tmp_path / "search") if row[1] == "COMPLETE"] == [
        row for row in before if row[1] == "COMPLETE"
    ]
    shutil.copy(base.data, data)
    assert search(read_plan(tmp_path / "search"), tmp_path / "search").finished == CELLS
    # The best is trained on the same points, or not at all.
    shutil.rmtree(tmp_path / "search" / "best")
    tiny_npz(data, points=240, classes=5)
    with pytest.raises(BadInput, match="the data and the settings that the search began with"):
        search(read_plan(tmp_path / "search"), tmp_path / "search")


@pytest.mark.parametrize("change", [{"epochs": 5}, {"trials": 3}, {"train_points": 10**12}])
def test_a_plan_that_somebody_changed_is_refused(
    base: Settings, tmp_path: Path, change: dict[str, int]
) -> None:
    write_plan(tmp_path, plan_of(base))
    found = json.loads((tmp_path / "search.json").read_text())
    where = found["base"] if "epochs" in change else found
    where.update(change)
    (tmp_path / "search.json").write_text(json.dumps(found))
    with pytest.raises(BadInput, match=r"or a search\.json that was changed"):
        search(read_plan(tmp_path), tmp_path)


def test_a_trial_that_was_begun_and_is_nobody_s_is_taken_up(base: Settings, tmp_path: Path) -> None:
    """Killed between the calls that create a trial, give it settings and name its place."""
    plan = plan_of(base)
    write_plan(tmp_path, plan)
    study = Study(tmp_path, plan)
    study._study.ask().suggest_float("rate", cell(plan, 0)[0], cell(plan, 0)[0])
    assert study.trials() == [], "it has no weight yet"
    claim = study.claim()
    assert claim is not None
    assert (claim.number, claim.lr, claim.weight) == (0, *cell(plan, 0))
    second = Study(tmp_path, plan).claim()
    assert second is not None
    assert second.number == 1, "the first one is locked"
    second.release()
    third = Study(tmp_path, plan).claim()
    assert third is not None
    assert third.number == 1, "its process let go of it without an end: taken up again"
    third.release()
    claim.release()


def test_a_trial_that_ended_but_was_not_told_is_not_run_again(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(base, trials=1)
    write_plan(tmp_path, plan)
    claim = Study(tmp_path, plan).claim()
    assert claim is not None
    claim.release()
    settings = plan.settings(claim.lr, claim.weight)
    create_run(trial_path(tmp_path, 0), settings)
    alone = fit_classifier(ClassifierTask(settings), trial_path(tmp_path, 0))
    monkeypatch.setattr(ClassifierTask, "step", None)
    work(Study(tmp_path, plan))
    (it,) = read_result(tmp_path).trials
    assert (it.state, it.error) == ("complete", alone[-1]["test_error"])
    assert it.curve == tuple((record["epoch"], record["test_error"]) for record in alone[1:])


def command(path: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "obverse", "search", "--resume", str(path), "--no-report", "--no-retrain"]
    return subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def wait_for(holds: Callable[[], bool], what: str) -> None:
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


@pytest.mark.slow  # real processes, trials long enough to be killed in
def test_of_two_workers_one_is_killed_and_no_trial_is_lost_or_run_twice(
    base: Settings, tmp_path: Path
) -> None:
    """Real processes on one study; the second takes up what the first one left, from its checkpoint."""
    data = tiny_npz(tmp_path / "more.npz", points=1500, classes=6)
    # long enough to be caught in the middle
    base = replace(base, data=str(data), epochs=8, hidden=(100, 100), batch_size=10)
    plan = plan_of(base, lrs=(0.001, 0.002), weights=(0.5,))
    whole = search(plan, tmp_path / "whole", retrain=False)
    path = tmp_path / "search"
    path.mkdir()
    write_plan(path, plan)
    first = command(path)
    wait_for(lambda: (trial_path(path, 0) / "checkpoint" / "latest.json").exists(), "a checkpoint")
    wait_for(lambda: stopped(first, path), "a moment in which it does not use the study")
    second = command(path)
    wait_for(lambda: len(held(path)) == 2, "the second worker, which leaves the first one its trial")
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    running = {number for number, state in rows(path) if state == "RUNNING"}
    left = running - held(path)
    assert left == {0}, "the test must catch it in its first trial: make that longer"
    run = trial_path(path, *left)
    before = (run / "metrics.jsonl").read_bytes().splitlines()
    assert not (run / "model.safetensors").exists()
    assert second.wait(timeout=240) == 0
    assert rows(path) == [(number, "COMPLETE") for number in range(2)]
    assert outcome(read_result(path)) == outcome(whole)
    for number in range(2):
        assert metrics_without_seconds(trial_path(path, number)) == metrics_without_seconds(
            trial_path(tmp_path / "whole", number)
        )
    # It went on from the checkpoint: the epochs before took the seconds that they took the one that died.
    after = (run / "metrics.jsonl").read_bytes().splitlines()
    assert after[: len(before) - 1] == before[:-1]


def is_held(lock: Path) -> bool:
    from filelock import FileLock, Timeout

    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


def held(path: Path) -> set[int]:
    """The trials that a living process has the lock of."""
    return {int(place.name) for place in (path / ".locks").glob("[0-9]*") if is_held(place)}


def stopped(process: subprocess.Popen[bytes], path: Path) -> bool:
    """Suspend a process where it does not keep the others from the study."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    if not is_held(path / ".locks" / "study"):
        return True
    process.send_signal(signal.SIGCONT)
    return False


@pytest.mark.slow
def test_kill_9_again_and_again_then_resume_gives_the_same_numbers(
    jobs: Crasher, base: Settings, folder: Path, whole: SearchResult, tmp_path: Path
) -> None:
    """Before a step, and before, in the middle of and after writing files; eight deaths, then the end."""
    write_plan(tmp_path, plan_of(base))
    words = ["search", "--resume", str(tmp_path), "--no-report"]
    kills = [("step", 4), ("fsync", 5), ("replace", 3), ("after-replace", 6), ("write", 2), ("unlink", 3)]
    done = jobs(
        *({"words": words, "kill": kill} for kill in [*kills, ("step", 9), ("any", 15)]), {"words": words}
    )
    assert [one["code"] for one in done] == [-9] * 8 + [0], done
    assert outcome(read_result(tmp_path)) == outcome(whole)
    assert rows(tmp_path) == [(number, "COMPLETE") for number in range(CELLS)]
    for place in [*(f"trials/{number:04d}" for number in range(CELLS)), "best"]:
        assert metrics_without_seconds(tmp_path / place) == metrics_without_seconds(folder / "whole" / place)
        assert tensor_bytes(tmp_path / place) == tensor_bytes(folder / "whole" / place)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_death_at_every_use_of_the_study(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Before or after each of them in turn; then the search goes on and ends as if nothing had been."""
    plan = plan_of(replace(base, epochs=1), trials=2)
    whole = search(plan, tmp_path / "whole", retrain=False)
    guarded = Study._guarded
    for at in itertools.count(1):
        left = at

        @contextmanager
        def dying(self: Study) -> Iterator[None]:
            nonlocal left
            left -= 1
            if left == 0 and not late:
                raise Death
            with guarded(self):
                yield
            if left == 0 and late:
                raise Death

        path = tmp_path / str(at)
        with monkeypatch.context() as patch:
            patch.setattr(Study, "_guarded", dying)
            try:
                search(plan, path, retrain=False)
            except Death:
                pass
            else:
                break
        assert outcome(search(plan, path, retrain=False)) == outcome(whole)
        assert rows(path) == [(0, "COMPLETE"), (1, "COMPLETE")]
    assert at > 8


@pytest.mark.slow  # two processes, each with a torch of its own
def test_worker_processes_give_the_numbers_of_one(
    base: Settings, whole: SearchResult, tmp_path: Path
) -> None:
    events = []
    result = run_search(
        plan_of(base), tmp_path, jobs=2, tell=lambda worker, event: events.append((worker, event))
    )
    assert outcome(result) == outcome(whole)
    assert rows(tmp_path) == [(number, "COMPLETE") for number in range(CELLS)]
    assert max(event["finished"] for _, event in events if event["kind"] == "end") == CELLS
    gone = sorted((worker, event["code"]) for worker, event in events if event["kind"] == "gone")
    assert gone == [(0, 0), (1, 0)]
    assert read_run(trial_path(tmp_path, 0)).environment["threads"] == 1
    with pytest.raises(BadInput, match="jobs ≥ 1"):
        search(plan_of(base), tmp_path, jobs=0)


def test_worker_processes_share_the_trials_and_say_what_they_do(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With workers that train nothing and load no torch: what they are asked, what is heard, how it ends."""
    monkeypatch.setattr(
        "obverse.training._search.search.START",
        "import json, os, sys\n"
        "asked = json.loads(sys.stdin.readline())\n"
        "said = {'kind': 'step', 'asked': asked, 'threads': os.environ['OMP_NUM_THREADS']}\n"
        "print(json.dumps(said), flush=True)",
    )
    events: list[tuple[int, Any]] = []
    run_search(plan_of(base), tmp_path, jobs=2, tell=lambda worker, event: events.append((worker, event)))
    assert events[0] == (0, {"kind": "end", "finished": 0, "best": None})
    asked = {"path": str(tmp_path.absolute()), "storage": None}
    for worker in (0, 1):
        step, gone = (event for number, event in events[1:] if number == worker)
        assert step == {"kind": "step", "asked": asked, "threads": "1"}
        assert gone == {"kind": "gone", "code": 0, "said": ""}
    monkeypatch.setattr(
        "obverse.training._search.search.START",
        'import sys\nprint(\'{"kind": "error", "said": "no such file"}\')\nsys.exit(2)',
    )
    with pytest.raises(ObverseError, match="no such file"):
        search(plan_of(base), tmp_path, jobs=2)
    monkeypatch.setattr(
        "obverse.training._search.search.START", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    with pytest.raises(ObverseError, match="exit codes -9, -9"):
        search(plan_of(base), tmp_path, jobs=2)
    with pytest.raises(BadInput, match="jobs ≥ 1"):
        search(plan_of(base), tmp_path, jobs=0)


@pytest.mark.slow
def test_an_error_of_the_workers_is_told_as_theirs(base: Settings, tmp_path: Path) -> None:
    data = Path(shutil.copy(base.data, tmp_path / "gone.npz"))
    plan = plan_of(replace(base, data=str(data)), trials=1)
    data.unlink()
    with pytest.raises(ObverseError, match=r"gone\.npz"):
        search(plan, tmp_path / "search", jobs=2)
    assert rows(tmp_path / "search") == [(0, "RUNNING")]


@pytest.mark.slow  # real processes, trials long enough to be killed in
def test_of_two_worker_processes_one_is_killed_and_it_is_told(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other takes up its trial: none is lost, none is run twice."""
    started: list[subprocess.Popen[str]] = []
    real = subprocess.Popen

    def start(*words: Any, **options: Any) -> subprocess.Popen[str]:
        started.append(real(*words, **options))
        return started[-1]

    # A trial takes seconds, so that each worker has one, and is far from its end when it is first shown.
    plan = plan_of(replace(base, epochs=200, evaluate_every=200, checkpoint_every=100), weights=(1.0,))
    alone = search(plan, tmp_path / "alone", retrain=False)
    monkeypatch.setattr("obverse.training._search.search.subprocess.Popen", start)
    events: list[tuple[int, Any]] = []

    def on_event(worker: int, event: Any) -> None:
        if event["kind"] == "step" and worker == 1 and not any(number == 1 for number, _ in events):
            os.kill(started[1].pid, signal.SIGKILL)
        events.append((worker, event))

    result = run_search(plan, tmp_path / "search", jobs=2, retrain=False, tell=on_event)
    assert outcome(result) == outcome(alone)
    assert rows(tmp_path / "search") == [(0, "COMPLETE"), (1, "COMPLETE")]
    gone = {worker: event for worker, event in events if event["kind"] == "gone"}
    assert gone == {
        0: {"kind": "gone", "code": 0, "said": ""},
        1: {"kind": "gone", "code": -signal.SIGKILL, "said": ""},
    }


# --- pruning ---


def median_rule(curves: dict[int, tuple[tuple[int, float], ...]], epochs: int) -> dict[int, int]:
    """{trial: epoch at which it is stopped}, one trial after another, from the curves they would have."""
    complete: list[dict[int, float]] = []
    stopped: dict[int, int] = {}
    for number, curve in curves.items():
        for epoch, _ in curve[:-1]:
            smallest = min(error for at, error in curve if at <= epoch)
            others = [one[epoch] for one in complete]
            ripe = len(complete) >= STARTUP and epoch > epochs // UNTOUCHED
            if ripe and smallest > statistics.median(others):
                stopped[number] = epoch
                break
        else:
            complete.append(dict(curve))
    return stopped


@pytest.mark.slow
def test_trials_behind_the_median_are_stopped_as_the_rule_says(base: Settings, tmp_path: Path) -> None:
    base = replace(base, epochs=3, train_size=60)
    space: dict[str, Any] = {"lrs": (1e-5, 0.03, 0.1, 0.3), "weights": (0.0, 0.5)}
    whole = search(plan_of(base, **space), tmp_path / "whole", retrain=False)
    pruned = search(plan_of(base, **space, pruner="median"), tmp_path / "pruned", retrain=False)
    expected = median_rule({it.number: it.curve for it in whole.trials}, 3)
    assert {it.number: it.epochs for it in pruned.trials if it.state == "pruned"} == expected
    assert expected, "the rule must have something to do here"
    assert any(pruned.trials[number].lr < 0.001 for number in expected), "the planted rates"
    assert min(expected.values()) == 2, "the first epoch is a third"
    assert pruned.best is not None
    assert pruned.best.state == "complete"
    for before, after in zip(whole.trials, pruned.trials, strict=True):
        assert after.curve == before.curve[: len(after.curve)]
        if after.state == "pruned":
            assert not read_run(trial_path(tmp_path / "pruned", after.number)).finished


FIRST, SECOND = (0.5, 0.5, 0.1, 0.1), (0.4, 0.4, 0.4, 0.4)  # behind from the third epoch on


@pytest.fixture
def planted(base: Settings, monkeypatch: pytest.MonkeyPatch) -> SearchPlan:
    """Two trials with errors that are known beforehand, the second judged by the first."""
    monkeypatch.setattr("obverse.training._search.study.STARTUP", 1)
    plan = plan_of(replace(base, epochs=4), weights=(0.0,), pruner="median")
    last, _ = cell(plan, 1)

    def step(self: ClassifierTask, epoch: int, index: int) -> float:
        self.epoch_now = epoch + 1  # type: ignore[attr-defined]
        return 1.0

    def evaluate(self: ClassifierTask) -> dict[str, float]:
        epoch = getattr(self, "epoch_now", 0)
        error = (0.9, *(SECOND if self.settings.lr == last else FIRST))[epoch]
        return {"test_error": error, "shadow_error": 0.5, "label_agreement": 0.5}

    monkeypatch.setattr(ClassifierTask, "step", step)
    monkeypatch.setattr(ClassifierTask, "evaluate", evaluate)
    return plan


def dying_in_the_second(method: str, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dies before the so-manieth call, from 1, of this method of the study for trial 1."""
    real, left = getattr(Study, method), itertools.count(at - 1, -1)

    def dying(self: Study, claim: Any, *args: Any, **keywords: Any) -> Any:
        if claim.number == 1 and next(left) == 0:
            raise Death
        return real(self, claim, *args, **keywords)

    monkeypatch.setattr(Study, method, dying)


@pytest.mark.parametrize(
    ("method", "at"), [("report", 3), ("should_stop", 3), ("tell", 1)], ids=["report", "stop", "tell"]
)
def test_a_trial_that_is_to_be_stopped_is_so_whenever_it_dies(
    planted: SearchPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, at: int
) -> None:
    with monkeypatch.context() as patch:
        dying_in_the_second(method, at, patch)
        with pytest.raises(Death):
            search(planted, tmp_path, retrain=False)
    stopped = search(planted, tmp_path, retrain=False).trials[1]
    assert (stopped.state, [error for _, error in stopped.curve]) == ("pruned", list(SECOND[:3]))


def test_a_complete_trial_is_not_stopped_after_its_end(
    planted: SearchPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the last epoch and before the study was told, with a last error behind the median."""
    monkeypatch.setattr(f"{__name__}.FIRST", (0.5, 0.5, 0.5, 0.1))
    with monkeypatch.context() as patch:
        dying_in_the_second("tell", 1, patch)
        with pytest.raises(Death):
            search(planted, tmp_path, retrain=False)
    assert read_run(trial_path(tmp_path, 1)).finished
    whole = search(planted, tmp_path, retrain=False).trials[1]
    assert (whole.state, [error for _, error in whole.curve]) == ("complete", list(SECOND))
    # even where the study is lost, and with it which epochs were known when
    (tmp_path / "study.db").unlink()
    monkeypatch.setattr(Study, "should_stop", None)
    assert search(planted, tmp_path, retrain=False).trials[1].state == "complete"


def test_an_epoch_that_is_trained_again_is_not_judged_by_a_later_one(
    planted: SearchPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study knows more epochs than the checkpoint: the trial ends after the one it is stopped for."""
    base = replace(planted.base, checkpoint_every=1000)  # none before the end
    plan = plan_of(base, weights=(0.0,), pruner="median")
    with monkeypatch.context() as patch:
        dying_in_the_second("should_stop", 3, patch)
        with pytest.raises(Death):
            search(plan, tmp_path, retrain=False)
    (trial_path(tmp_path, 1) / "metrics.jsonl").write_text("")  # as if none of it had come to the disk
    result = search(plan, tmp_path, retrain=False)
    assert (result.trials[1].state, result.trials[1].epochs) == ("pruned", 3)
    assert [record["epoch"] for record in read_run(trial_path(tmp_path, 1)).metrics] == [0, 1, 2, 3]


# --- tpe ---


@pytest.mark.slow
def test_tpe_is_repeatable_and_goes_on_as_if_never_cut_off(base: Settings, tmp_path: Path) -> None:
    def plan(seed: int = 0, trials: int = 12) -> SearchPlan:
        return plan_of(
            replace(base, seed=seed, epochs=1),
            lrs=(0.001, 1.0),
            weights=(0.1, 10.0),
            sampler="tpe",
            trials=trials,
        )

    first = search(plan(), tmp_path / "first", retrain=False)
    assert len({it.lr for it in first.trials}) == 12
    assert all(0.001 <= it.lr <= 1.0 and 0.1 <= it.weight <= 10.0 for it in first.trials)
    with pytest.raises(Interrupted):  # in the twelfth, the second that looks at the others
        run_search(plan(), tmp_path / "cut", retrain=False, tell=interrupting(11))
    assert rows(tmp_path / "cut")[-1] == (11, "RUNNING")
    again = search(plan(), tmp_path / "cut", retrain=False)
    assert outcome(again) == outcome(first)
    other = search(plan(1, trials=1), tmp_path / "other", retrain=False)
    assert other.trials[0].lr not in {it.lr for it in first.trials}


def test_tpe_of_a_single_weight_may_be_plain_training(base: Settings, tmp_path: Path) -> None:
    plan = plan_of(base, weights=(0.0,), sampler="tpe", trials=2)
    result = search(plan, tmp_path / "search", retrain=False)
    assert [it.weight for it in result.trials] == [0.0, 0.0]


# --- a storage elsewhere ---


def test_two_directories_share_a_storage_and_each_trial_is_run_once(
    base: Settings, whole: SearchResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("obverse.training._search.worker.SHOWN", 1e9)  # one step a trial is shown: its first
    url = f"sqlite:///{tmp_path}/other.db"
    with pytest.raises(Interrupted):
        run_search(plan_of(base, shared=True), tmp_path / "a", storage=url, tell=interrupting(1))
    assert not (tmp_path / "a" / "study.db").exists()
    waiting: list[list[int]] = []

    def stop(worker: int, event: Any) -> None:
        if event["kind"] == "wait":
            waiting.append(event["elsewhere"])
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):  # all is done but for the trial of the other directory
        run_search(plan_of(base, shared=True), tmp_path / "b", storage=url, tell=stop)
    ((running,),) = waiting
    assert [number for number, state in rows(tmp_path, "other.db") if state == "RUNNING"] == [running]
    mine, theirs = ({path.name for path in (tmp_path / place / "trials").iterdir()} for place in "ab")
    assert mine.isdisjoint(theirs)
    assert f"{running:04d}" in mine
    result = search(read_plan(tmp_path / "b"), tmp_path / "b", storage=url, take_over=True, retrain=False)
    assert outcome(result) == outcome(whole)
    assert rows(tmp_path, "other.db") == [(number, "COMPLETE") for number in range(CELLS)]
    assert outcome(search(read_plan(tmp_path / "a"), tmp_path / "a", storage=url)) == outcome(whole)


def test_a_search_does_not_end_while_another_machine_begins_a_trial(
    base: Settings, whole: SearchResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database without a lock that all take: a trial runs before it has settings."""
    monkeypatch.setattr(
        "obverse.training._search.study._address", lambda path, storage: (storage, storage, None)
    )
    plan, url = plan_of(base, shared=True), f"sqlite:///{tmp_path}/other.db"
    Study(tmp_path / "other", plan, url)._study.ask()  # there it stands still
    waiting = []

    def stop(worker: int, event: Any) -> None:
        if event["kind"] == "wait":
            waiting.append((event["trials"], event["elsewhere"]))
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run_search(plan, tmp_path / "search", storage=url, tell=stop)
    assert waiting == [([0], [0])]
    assert not (tmp_path / "search" / "best").exists()
    result = search(plan, tmp_path / "search", storage=url, take_over=True)
    assert outcome(result) == outcome(whole)


def test_the_storage_must_be_named_again_and_only_where_it_was(base: Settings, tmp_path: Path) -> None:
    shared, own = plan_of(base, shared=True), plan_of(base)
    with pytest.raises(BadInput, match="pass --storage"):
        Study(tmp_path, shared)
    with pytest.raises(BadInput, match="leave it out"):
        Study(tmp_path, own, f"sqlite:///{tmp_path}/other.db")
    assert "sqlite" not in json.dumps(shared.to_dict())


@pytest.mark.parametrize(
    "url",
    [
        "no address",
        "sqlite://",
        "sqlite:///:memory:",
        "nothing://user:secret@host/name",
        "postgresql://user:secret@localhost:1/name",
        "redis://user:secret@localhost:1",
        "postgresql://localhost:1/name?user=me&password=secret",
        "sqlite://?password=secret",
        "sqlite:////nowhere/at/all/study.db?password=secret",
        "sqlite:///study.db?password=secret",
        "sqlite:///{0.__class__}",
    ],
)
def test_a_bad_storage_is_a_sentence_without_the_password(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_of(base, shared=True)
    if "{" in url:
        Study(tmp_path / "search", plan, url)  # a file of that name, and nothing is looked up
        assert (tmp_path / "{0.__class__}").is_file()
        return
    with pytest.raises(Exception, match="expected") as caught:
        Study(tmp_path / "search", plan, url)
    assert isinstance(caught.value, BadInput)
    assert "secret" not in str(caught.value)
    # Nothing is left that would keep the corrected command out.
    with pytest.raises(BadInput, match="expected"):
        search(plan, tmp_path / "search", storage=url)
    assert not (tmp_path / "search" / "search.json").exists()


@pytest.mark.parametrize(
    ("driver", "module", "package"),
    [
        ("postgresql+psycopg2", "psycopg2", "psycopg2-binary"),
        ("mysql+mysqldb", "MySQLdb", "mysqlclient"),
        ("postgresql+pg8000", "pg8000", "pg8000"),
    ],
)
def test_a_driver_that_is_missing_is_named(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput) as caught:
        Study(tmp_path, plan_of(base, shared=True), f"{driver}://me:secret@localhost:1/name?sslcert=secret")
    assert str(caught.value) == (
        f"expected the driver of the database {driver}://me:***@localhost:1/name to be installed; "
        f"got no module '{module}'; install it with: pip install {package}"
    )


def test_a_trial_that_somebody_else_has_finished_is_told_as_that(base: Settings, tmp_path: Path) -> None:
    """A copy of a directory, or --take-over of a trial that is run: two work at one trial."""
    url = f"sqlite:///{tmp_path}/study.db"
    plan = plan_of(base, shared=True)
    first = Study(tmp_path / "first", plan, url)
    claim = first.claim()
    assert claim is not None
    second = Study(tmp_path / "second", plan, url)
    again = second.claim()
    assert again is not None
    assert again.number == claim.number
    first.tell(claim, "complete", 0.5, seconds=1.0)
    with pytest.raises(BadInput, match="got one that was taken over, or is run by a copy of this directory"):
        second.tell(again, "complete", 0.5, seconds=1.0)


# --- an untrusted study ---


def damaged(folder: Path, path: Path, *statements: str) -> None:
    """A copy of the search, and then somebody writes to its study."""
    shutil.copytree(folder / "whole", path)
    connection = sqlite3.connect(path / "study.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "update trial_params set param_value = -1",
        "update trial_params set param_value = 1e308",
        "update trial_params set distribution_json = 'no json'",
        'update trial_params set distribution_json = \'{"name": "os.system", "attributes": {}}\'',
        "update trial_values set value = 2",
        "update trial_values set value = null, value_type = 'INF_POS'",
        "update trials set state = 'SOMETHING'",
        "update trials set state = 'WAITING' where number = 1",
        "update trials set number = 7 where number = 1",
        "update trials set number = null",
        "update trial_intermediate_values set intermediate_value = 'text'",
        "update trial_intermediate_values set intermediate_value_type = 'NAN', intermediate_value = null",
        "update trial_intermediate_values set step = step + 1000",
        "update trial_user_attributes set value_json = '{'",
        "update study_directions set direction = 'MAXIMIZE'",
        "update alembic_version set version_num = 'v9'",
        "drop table trial_params",
    ],
)
@pytest.mark.usefixtures("whole")
def test_a_study_that_somebody_changed_is_refused_in_a_sentence(
    folder: Path, tmp_path: Path, statement: str
) -> None:
    damaged(folder, tmp_path / "search", statement)
    with pytest.raises(BadInput, match="expected") as caught:
        search(read_plan(tmp_path / "search"), tmp_path / "search", retrain=False)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused(base: Settings, tmp_path: Path, content: bytes) -> None:
    plan = plan_of(base)
    (tmp_path / "study.db").write_bytes(content)
    with pytest.raises(BadInput, match="a study of Optuna in"):
        Study(tmp_path, plan)
    assert (tmp_path / "study.db").read_bytes() == content


def test_a_huge_file_and_a_foreign_database_are_refused_or_left_alone(
    base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(tmp_path / "study.db")
    with connection:
        connection.execute("create table trials (something text)")
        connection.execute("insert into trials values ('precious')")
    connection.close()
    with pytest.raises(BadInput, match="a study of Optuna in"):
        search(plan_of(base), tmp_path)
    connection = sqlite3.connect(tmp_path / "study.db")
    assert connection.execute("select something from trials").fetchall() == [("precious",)]
    connection.close()
    monkeypatch.setattr("obverse.training._search.study.MAX_BYTES", 100)
    with pytest.raises(BadInput, match="at most 100 bytes"):
        Study(tmp_path, plan_of(base))


@pytest.mark.usefixtures("whole")
def test_untrusted_text_in_a_study_is_bounded(folder: Path, tmp_path: Path) -> None:
    damaged(
        folder,
        tmp_path / "search",
        "update trials set state = 'FAIL' where number = 0",
        "insert into trial_user_attributes (trial_id, key, value_json) "
        f"values (1, 'reason', '\"{'x' * 5000}\"')",
        "update trial_user_attributes set value_json = '-3' where key = 'seconds'",
    )
    result = search(read_plan(tmp_path / "search"), tmp_path / "search", retrain=False)
    assert (result.trials[0].state, result.trials[0].reason) == ("failed", "x" * 500)
    assert result.trials[0].seconds == 0.0


def test_torch_is_left_with_the_threads_it_had(base: Settings, tmp_path: Path) -> None:
    plan = plan_of(base, trials=1, threads=2)
    search(plan, tmp_path / "search", retrain=False)
    assert torch.get_num_threads() == 1
    assert read_run(trial_path(tmp_path / "search", 0)).environment["threads"] == 2
