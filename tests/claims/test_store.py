"""A sweep's folder: what is there is not measured again, and what is broken there is no harm."""

import json
import os
import signal
import subprocess
import sys

import pytest

from claims.sweeps import TINY, loaded, plain, wait_for
from obverse._core.errors import BadInput
from obverse._core.files import MAX_JSON, WriteFailed
from obverse._core.interrupts import Interrupted
from obverse._core.locks import RunLocked
from obverse.claims import find, grid, read_sweep, run


@pytest.fixture(scope="module")
def tiny():
    with loaded(TINY) as module:
        yield module


@pytest.fixture
def logged(tiny, tmp_path):
    """A claim of four settings that leaves a line for every measurement, and its log."""
    log = tmp_path / "log"
    log.touch()
    return tiny.make("logged", tiny.slowly, grid(n=(1, 2, 3, 4), log=str(log), wait=0.0)), log


def points(out):
    return sorted((out / "points").glob("*.json"))


def test_a_result_is_read_back_as_it_was(tiny, tmp_path):
    sweep = run([tiny.POWERS, tiny.make("bad", tiny.moody, grid(mood="raises"))], out=tmp_path / "out")
    assert read_sweep(tmp_path / "out") == sweep
    assert read_sweep(tmp_path / "out" / "claims.json") == sweep
    with pytest.raises(BadInput, match="No such file or folder: "):
        read_sweep(tmp_path / "claims.json")


def test_a_result_from_before_places_were_written_is_read(tiny, tmp_path):
    sweep = run([tiny.POWERS], out=tmp_path / "out")
    file = tmp_path / "out" / "claims.json"
    older = json.loads(file.read_text())
    del older["outcomes"][0]["place"]
    file.write_text(json.dumps(older))
    assert read_sweep(file) == sweep


def test_without_a_folder_nothing_is_written(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run([tiny.POWERS])
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_measured_again(logged, tmp_path):
    claim, log = logged
    first = run([claim], out=tmp_path / "out")
    told = []
    second = run([claim], out=tmp_path / "out", progress=lambda *what: told.append(what))
    assert second.outcomes == first.outcomes  # the times too: they are the measurements' own
    assert log.read_text().split() == ["1", "2", "3", "4"]
    assert told == [(4, 4, "logged")]
    assert plain(run([claim], out=tmp_path / "out", seed=1)) != plain(first)
    assert len(log.read_text().split()) == 8


def test_interrupted_and_gone_on_with(logged, tmp_path):
    claim, log = logged

    def stop(done, total, id):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(
        Interrupted, match=r"stopped after 3 of 4 measurements; saved in .*out: the same command"
    ):
        run([claim], out=tmp_path / "out", progress=stop)
    assert not (tmp_path / "out" / "claims.json").exists()
    assert plain(run([claim], out=tmp_path / "out")) == plain(run([claim]))
    assert log.read_text().split() == ["1", "2", "3", "4", "1", "2", "3", "4"]


KILLED = """
import sys
from pathlib import Path
from obverse.claims import load_module, run
load_module(Path(sys.argv[1]))
tiny = sys.modules["obverse_claims_tiny_claims"]
claim = tiny.make("logged", tiny.slowly, tiny.grid(n=tuple(range(6)), log=sys.argv[2], wait=0.4))
run([claim, tiny.NORMALS], out=Path(sys.argv[3]))
"""


@pytest.mark.slow
def test_killed_half_way_and_gone_on_with(tiny, tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(TINY), str(log), str(out)])
    wait_for(lambda: log.exists() and len(log.read_text().split()) == 4)
    process.kill()
    assert process.wait(timeout=30) == -signal.SIGKILL
    saved = {path.name: path.read_bytes() for path in points(out)}
    begun = log.read_text().split()
    assert len(begun) - 1 <= len(saved) < 6  # one may have been under way
    claim = tiny.make("logged", tiny.slowly, grid(n=tuple(range(6)), log=str(log), wait=0.4))
    resumed = run([claim, tiny.NORMALS], out=out)
    assert log.read_text().split() == begun + [str(n) for n in range(len(saved), 6)]
    assert all((out / "points" / name).read_bytes() == bytes for name, bytes in saved.items())
    assert plain(resumed) == plain(run([claim, tiny.NORMALS]))
    assert not list(out.rglob("*.tmp"))


def broken(path, kind):
    """Put something else in the place of a point's file."""
    text = path.read_text()
    if kind == "empty":
        path.write_text("")
    elif kind == "cut":
        path.write_text(text[: len(text) // 2])
    elif kind == "bytes":
        path.write_bytes(b"\xff\xfe\x00")
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(MAX_JSON + 1)
    elif kind == "link":
        path.rename(path.with_suffix(".other"))
        path.symlink_to(path.with_suffix(".other"))
    elif kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        value = json.loads(text)
        path.write_text(json.dumps(value | CHANGES[kind]))


CHANGES = {
    "format": {"format": 99},
    "no values": {"values": []},
    "crashed": {"crash": "a bad day"},
    "key": {"key": "0" * 64},
    "unknown": {"more": 1},
    "words": {"values": ["1.0"]},
}


@pytest.mark.parametrize("kind", ["empty", "cut", "bytes", "huge", "link", "pipe", *CHANGES])
def test_a_broken_point_is_measured_again_and_replaced(logged, tmp_path, kind):
    claim, log = logged
    first = run([claim], out=tmp_path / "out")
    victim = points(tmp_path / "out")[0]
    before = json.loads(victim.read_text())
    broken(victim, kind)
    assert plain(run([claim], out=tmp_path / "out")) == plain(first)
    assert len(log.read_text().split()) == 5
    assert victim.is_file()
    assert not victim.is_symlink()
    assert json.loads(victim.read_text()) | {"seconds": 0} == before | {"seconds": 0}


def test_a_point_in_another_points_place_is_not_taken(logged, tmp_path):
    claim, log = logged
    first = run([claim], out=tmp_path / "out")
    one, two = points(tmp_path / "out")[:2]
    one.write_bytes(two.read_bytes())
    assert plain(run([claim], out=tmp_path / "out")) == plain(first)
    assert len(log.read_text().split()) == 5


def test_what_crashed_is_tried_again(tiny, tmp_path):
    claim = tiny.make("bad", tiny.moody, grid(mood="raises"))
    told = []
    for _ in range(2):
        run([claim], out=tmp_path / "out", progress=lambda *what: told.append(what))
    assert told == [(0, 1, "bad"), (1, 1, "bad")] * 2
    assert len(points(tmp_path / "out")) == 1


EDITED = """
from obverse.claims import Claim, Equal, grid, register

def measure(setting, generator):
    return [{value}, {value}]

words = dict.fromkeys(("title", "statement", "source", "quantity"), "")
law = {{"predict": lambda setting: 2.0, "measure": measure, "rule": Equal()}}
register(Claim("mine", **words, **law, grid=grid(n=tuple(range(8))), axis="n"))
"""


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_edited_file_is_measured_again(tmp_path, jobs):
    file = tmp_path / "edited_claims.py"
    for value, verdict in ((1.0, "failed"), (2.0, "held"), (1.0, "failed")):
        file.write_text(EDITED.format(value=value))
        with loaded(file):
            (outcome,) = run(find(["mine"]), out=tmp_path / "out", jobs=jobs)
        assert [point.mean for point in outcome.points] == [value] * 8
        assert outcome.verdict == verdict
    assert len(points(tmp_path / "out")) == 16  # what is as it was before is known


def test_changed_code_of_the_library_is_measured_again(logged, tmp_path, monkeypatch):
    """A measure calls what stands in other files."""
    claim, _ = logged
    run([claim], out=tmp_path / "out")
    before = points(tmp_path / "out")
    monkeypatch.setattr("obverse.claims._work._code", lambda module, measure: "edited")
    run([claim], out=tmp_path / "out")
    assert len(points(tmp_path / "out")) == 2 * len(before)


def test_another_torch_measures_again(logged, tmp_path, monkeypatch):
    claim, log = logged
    run([claim], out=tmp_path / "out")
    monkeypatch.setattr("torch.__version__", "99")
    run([claim], out=tmp_path / "out")
    assert len(log.read_text().split()) == 8


def test_one_process_at_a_time(logged, tmp_path):
    claim, _ = logged

    def again(done, total, id):
        if done == 1:
            with pytest.raises(RunLocked, match="another process is working in it"):
                run([claim], out=tmp_path / "out")

    run([claim], out=tmp_path / "out", progress=again)


def test_a_folder_that_cannot_be(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="expected to write"):
        run([tiny.POWERS], out=tmp_path / "file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "points").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=r"a folder of its own at .*points; got a link"):
        run([tiny.POWERS], out=tmp_path / "out")
    assert list((tmp_path / "elsewhere").iterdir()) == []
