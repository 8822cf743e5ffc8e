"""The runner: the same numbers however it is run, and one bad claim at a time."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256

import numpy as np
import psutil
import pytest
import torch

from claims.sweeps import TINY, loaded, plain, wait_for
from obverse._core.errors import BadInput
from obverse._core.interrupts import Interrupted
from obverse.claims import Claim, Equal, MeanBelow, grid, run


@pytest.fixture(scope="module")
def tiny():
    with loaded(TINY) as module:
        yield module


@pytest.fixture(scope="module")
def serial(tiny):
    return run([tiny.NORMALS, tiny.POWERS])


def test_processes_give_the_same_bits(tiny, serial):
    assert plain(run([tiny.NORMALS, tiny.POWERS], jobs=2)) == plain(serial)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_measurement_has_one_thread(tiny, jobs):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (outcome,) = run([tiny.make("threads", tiny.threads, grid(n=(1, 2)), rule=MeanBelow())], jobs=jobs)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert [point.mean for point in outcome.points] == [1.0, 1.0]


def test_numbers_do_not_depend_on_order_or_company(tiny, serial):
    normals, powers = serial
    assert plain(run([tiny.POWERS, tiny.NORMALS]))["outcomes"] == plain(serial)["outcomes"][::-1]
    assert run([tiny.POWERS]).outcomes[0].points[1].mean == powers.points[1].mean
    backwards = replace(tiny.NORMALS, id="another", grid=tiny.NORMALS.grid[::-1])
    assert [point.mean for point in run([backwards]).outcomes[0].points] == [
        point.mean for point in reversed(normals.points)
    ]


def test_randomness_is_a_hash_of_what_is_measured(tiny, serial):
    """Written out once more: a change of this hash makes every published number another."""
    identity = json.dumps(["obverse_claims_tiny_claims.powers", '{"n": 10}', 0])
    number = int(sha256(identity.encode()).hexdigest(), 16)
    state = np.random.SeedSequence(number).generate_state(1, np.uint64)[0]
    generator = torch.Generator().manual_seed(int(state) // 2)
    values = tiny.powers({"n": 10}, generator).double().tolist()
    assert serial.outcomes[1].points[1].mean == sum(values) / len(values)


def test_another_seed_or_function_draws_anew(tiny, serial):
    assert run([tiny.POWERS], seed=1).outcomes[0].points[0].mean != serial.outcomes[1].points[0].mean
    bare = grid(mood=("well", "fine"))
    well, fine = run([tiny.make("moody", tiny.moody, bare)]).outcomes[0].points
    assert well.mean != fine.mean


def test_the_spelling_of_a_setting_does_not_matter(tiny):
    one, two = grid(n=3, m=2), grid(m=2, n=3)
    first, second = run([tiny.make("one", tiny.powers, one), tiny.make("two", tiny.powers, two)])
    assert first.points[0].mean == second.points[0].mean


def test_two_claims_judge_one_measurement(tiny, tmp_path):
    log = tmp_path / "log"
    settings = grid(n=(1, 2), log=str(log), wait=0.0)
    printed = tiny.make("printed", tiny.slowly, settings, predict=lambda setting: 100.0)
    told = []
    sweep = run(
        [printed, tiny.make("right", tiny.slowly, settings[::-1])],
        progress=lambda *what: told.append(what),
    )
    assert log.read_text() == "1\n2\n"
    assert [outcome.verdict for outcome in sweep] == ["failed", "held"]
    assert sweep.outcomes[0].points[0].mean == sweep.outcomes[1].points[1].mean
    # at the start, and when each of the two ends
    assert told == [(count, 2, id) for count in range(3) for id in ("printed", "right")]


def test_what_an_outcome_says(tiny, serial):
    normals, powers = serial
    assert (serial.seed, serial.quick) == (0, False)
    assert set(serial.versions) == {"obverse", "torch", "numpy", "scipy", "python"}
    assert serial.versions["torch"] == torch.__version__
    assert normals.verdict == "held"
    assert normals.curve == ()
    assert powers.rule == tiny.POWERS.rule.meaning
    assert powers.seconds == pytest.approx(sum(point.seconds for point in powers.points))
    assert all(point.seconds > 0 for point in powers.points)
    across, up = zip(*powers.curve, strict=True)
    assert across == (10.0, 100.0, 1000.0)
    exponent = np.log(up[2] / up[0]) / np.log(100)
    assert exponent == pytest.approx(powers.numbers["exponent"], rel=1e-12)  # a line, drawn by exp of sums


def test_quick_uses_the_small_grid(tiny):
    sweep = run([tiny.POWERS], quick=True)
    assert sweep.quick
    assert sweep.outcomes[0].quick
    assert [point.setting["n"] for point in sweep.outcomes[0].points] == [4, 1, 2]


def bad_prediction(setting):
    raise KeyError("no such law")


class Nonsense(Equal):
    def judge(self, points):
        return replace(super().judge(points), points=())


CRASHES = [
    ({"grid": grid(mood="raises")}, "RuntimeError: a bad day"),
    ({"grid": grid(mood="empty")}, "1 to 65,536 trials from a measure; got 0"),
    ({"grid": grid(mood="infinite")}, "finite numbers from a measure; got 2 of 3 not"),
    ({"grid": grid(mood="leaves")}, "SystemExit: 4"),
    ({"predict": bad_prediction}, "KeyError: 'no such law'"),
    ({"predict": lambda setting: float("nan")}, "expected a finite prediction at {'mood': 'well'}; got nan"),
    ({"rule": Nonsense()}, "ValueError"),
    ({"measure": lambda setting, generator: [1.0]}, "found by its name at the top level"),
    ({"grid": ({"mood": None},)}, "a finite number, a text, true or false for 'mood'"),
    ({"grid": grid(mood=float("inf"))}, "got inf"),
    ({"grid": grid(mood=np.int64(3))}, "got np.int64(3)"),
]


@pytest.mark.parametrize(("wrong", "words"), CRASHES, ids=[words[:30] for _, words in CRASHES])
def test_a_claim_that_crashes_does_not_take_others_along(tiny, wrong, words):
    well = tiny.make("well", tiny.moody, grid(mood="well"))
    sweep = run([replace(well, id="bad", **wrong), well])
    bad, good = sweep
    assert [bad.verdict, good.verdict] == ["crashed", "held"]
    assert words in bad.crash
    assert "\n" not in bad.sentence
    assert sweep.count("crashed") == 1
    assert str(TINY.parent) not in bad.crash


def test_a_measure_under_the_name_of_another_is_refused(tiny):
    def other(setting, generator):
        return [1.0]

    other.__module__, other.__qualname__ = tiny.normals.__module__, tiny.normals.__qualname__
    (outcome,) = run([replace(tiny.NORMALS, measure=other)])
    assert "found by its name at the top level of its module; got 'normals'" in outcome.crash


def test_a_crash_says_where(tiny):
    claim = tiny.make("bad", tiny.moody, grid(mood=("well", "raises", "empty")))
    (outcome,) = run([claim])
    assert outcome.crash.startswith("at 2 of 3 settings, first at mood = raises:\n")
    assert 'in moody: raise RuntimeError("a bad day")' in outcome.crash
    assert outcome.sentence == "RuntimeError: a bad day"


@pytest.mark.parametrize(
    "moods",
    [
        ("one", "killed", "two", "three", "four"),
        pytest.param(("exits", "one", "two", "three", "killed", "four"), marks=pytest.mark.slow),
    ],
)
def test_a_process_that_dies_takes_no_other_measurement_along(tiny, moods):
    settings = grid(mood=moods)
    claims = [
        tiny.make(f"tiny.{mood}", tiny.moody, (setting,))
        for mood, setting in zip(moods, settings, strict=True)
    ]
    sweep = run(claims, jobs=2)
    dead = [outcome for outcome in sweep if outcome.verdict == "crashed"]
    guilty = [claim.id for claim in claims if claim.id in ("tiny.killed", "tiny.exits")]
    assert [outcome.id for outcome in dead] == guilty
    assert all("its process died" in outcome.sentence for outcome in dead)
    alive = [claim for claim in claims if claim.id not in guilty]
    assert plain(run(alive))["outcomes"] == [
        one for one in plain(sweep)["outcomes"] if one["verdict"] != "crashed"
    ]


def test_stopped_between_measurements(tiny):
    def stop(done, total, id):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(
        Interrupted, match=r"stopped after 2 of 5 measurements; nothing was saved: with --out"
    ):
        run([tiny.NORMALS], progress=stop)


SCRIPT = """
import sys, time
from pathlib import Path
from obverse.claims import Claim, Equal, grid, run

def measure(setting, generator):
    Path(sys.argv[0]).with_name(f"begun{setting['n']}").touch() if setting["n"] < 2 else None
    time.sleep(0 if setting["n"] == 2 else 600)
    return [1.0, 1.0]

if __name__ == "__main__":
    words = dict.fromkeys(("title", "statement", "source", "quantity"), "")
    claim = Claim("main", **words, grid=grid(n=(2, 1, 0)), predict=lambda setting: 1.0, measure=measure,
                  rule=Equal(), axis="n")
    try:
        run([claim], jobs=2, out=Path(sys.argv[1]))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.mark.slow
def test_control_c_stops_the_processes_and_keeps_what_is_done(tmp_path):
    """Also: a measure of the program being run, which no worker could import, gets to the workers."""
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(out)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=tmp_path,
    )
    wait_for(lambda: all((tmp_path / f"begun{n}").exists() for n in (0, 1)))
    wait_for(lambda: len(list((out / "points").glob("*.json"))) == 1)
    family = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does: workers get it too
    _, said = process.communicate(timeout=120)  # and not the 600 of what was under way
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
    assert said.strip() == (
        f"SweepInterrupted: stopped after 1 of 3 measurements; saved in {out}: "
        "the same command with the same --out goes on from there"
    )
    assert process.returncode == 1


def test_bad_calls(tiny):
    with pytest.raises(BadInput, match="expected claims to run; got none"):
        run([])
    with pytest.raises(BadInput, match="jobs ≥ 1; got 0"):
        run([tiny.NORMALS], jobs=0)
    assert isinstance(tiny.NORMALS, Claim)


def test_what_lies_outside_the_domain_is_not_measured(tiny, tmp_path):
    log = tmp_path / "log"
    log.touch()

    def domain(setting):
        if setting["n"] > 2:
            raise BadInput("n ≤ 2", got=setting["n"], do="lower n")

    claim = tiny.make("some", tiny.slowly, grid(n=(1, 3, 4), log=str(log), wait=0.0), domain=domain)
    told = []
    (outcome,) = run([claim], progress=lambda *what: told.append(what))
    assert log.read_text().split() == ["1"]
    assert outcome.verdict == "crashed"
    assert outcome.crash.startswith("at 2 of 3 settings, first at n = 3,")
    assert outcome.sentence == "expected n ≤ 2; got 3; lower n"
    assert told == [(2, 3, "some"), (3, 3, "some")]
    # a twin without that domain measures them, whoever comes first
    both = run([claim, replace(claim, id="all", domain=None)])
    assert [one.verdict for one in both] == ["crashed", "held"]
