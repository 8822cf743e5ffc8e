"""Sweeps on a real Dask cluster: a scheduler and two worker processes on this machine."""

import os
import signal
import socket
import sys
import time
from dataclasses import replace

import dask
import distributed
import psutil
import pytest
from distributed import LocalCluster

import obverse.claims.alm._linear  # noqa: F401
from claims.sweeps import TINY, loaded, plain, wait_for
from obverse._core.cluster import PATIENCE, ClusterLost
from obverse._core.errors import BadInput
from obverse.claims import find, grid, run

# A worker's death is logged and its port lingers: distributed's own affair, and what is tested here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def tiny():
    with loaded(TINY) as module:
        yield module


@pytest.fixture(scope="module")
def cluster():
    """Two processes of two threads each: measurements share a process as well."""
    # Two deaths make a measurement suspect; by default it takes four.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as started,
    ):
        yield started


def workers(cluster):
    return [worker.process.pid for worker in cluster.workers.values()]


def test_the_same_bits_as_in_series(tiny, cluster):
    """The measures are those of a user's file, which the workers do not have."""
    claims = [tiny.NORMALS, tiny.POWERS]
    told = []
    sweep = run(claims, cluster=cluster.scheduler_address, progress=lambda *what: told.append(what))
    assert plain(sweep) == plain(run(claims))
    assert (3, 3, "tiny.powers") in told


def test_a_claim_of_the_library_and_crashes(tiny, cluster):
    (library,) = find(["alm.prop2.2.variance"])
    small = replace(library, grid=library.settings(quick=True)[:2], quick=())
    claims = [small, tiny.make("bad", tiny.moody, grid(mood=("raises", "well")))]
    sweep = run(claims, cluster=cluster.scheduler_address)
    assert plain(sweep) == plain(run(claims))
    assert sweep.outcomes[1].sentence == "RuntimeError: a bad day"


def test_every_measurement_has_one_thread(tiny, cluster):
    (outcome,) = run(
        [tiny.make("threads", tiny.threads, grid(n=(1, 2, 3, 4)))], cluster=cluster.scheduler_address
    )
    assert [point.mean for point in outcome.points] == [1.0] * 4


def test_a_measure_of_the_program_being_run(tiny, cluster, monkeypatch):
    """As in a notebook: no worker could import it."""

    def here(setting, generator):
        return [setting["n"], setting["n"]]

    here.__module__, here.__qualname__ = "__main__", "here"
    monkeypatch.setattr(sys.modules["__main__"], "here", here, raising=False)
    (outcome,) = run([tiny.make("here", here, grid(n=(3, 5)))], cluster=cluster.scheduler_address)
    assert [point.mean for point in outcome.points] == [3.0, 5.0]


def test_two_users_with_claims_of_one_name(cluster, tmp_path):
    """One after the other on the same workers, which remember the first."""
    for name, value in (("his_claims", 1.0), ("her_claims", 2.0)):
        file = tmp_path / f"{name}.py"
        file.write_text(MINE.format(value=value))
        with loaded(file):
            (outcome,) = run(find(["mine"]), cluster=cluster.scheduler_address)
        assert [point.mean for point in outcome.points] == [value] * 4


MINE = """
from obverse.claims import Claim, Equal, grid, register

def measure(setting, generator):
    return [{value}, {value}]

words = dict.fromkeys(("title", "statement", "source", "quantity"), "")
law = {{"predict": lambda setting: 2.0, "measure": measure, "rule": Equal()}}
register(Claim("mine", **words, **law, grid=grid(n=(1, 2, 3, 4)), axis="n"))
"""


@pytest.mark.slow
def test_a_worker_killed_half_way(tiny, cluster, tmp_path):
    log = tmp_path / "log"
    slow = tiny.make("slow", tiny.slowly, grid(n=tuple(range(12)), log=str(log), wait=0.3))
    victim = workers(cluster)[0]

    def kill(done, total, id):
        if (id, done) == ("slow", 2):
            time.sleep(0.5)  # the victim has results that nobody has fetched, and is at work on others
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda: len(cluster.scheduler.workers) < 2)
            time.sleep(0.1)  # until the news that they are lost has come

    sweep = run([slow, tiny.NORMALS], cluster=cluster.scheduler_address, progress=kill)
    wait_for(lambda: not psutil.pid_exists(victim))
    assert plain(sweep) == plain(run([slow, tiny.NORMALS]))
    begun = log.read_text().split()
    assert len(begun) > 24  # 12 each, and what the victim had begun once more


@pytest.mark.slow
def test_a_measurement_that_kills_its_worker_is_named(tiny, cluster):
    moods = ("one", "killed", "two", "three", "four", "five")
    claims = [tiny.make(mood, tiny.moody, grid(mood=mood)) for mood in moods]
    sweep = run(claims, cluster=cluster.scheduler_address)
    assert [outcome.id for outcome in sweep if outcome.verdict == "crashed"] == ["killed"]
    assert "its process died" in sweep.outcomes[1].sentence
    assert plain(sweep)["outcomes"][2:] == plain(run(claims[2:]))["outcomes"]


def test_a_cluster_that_goes_is_a_sentence(tiny, tmp_path):
    slow = tiny.make("slow", tiny.slowly, grid(n=tuple(range(6)), log=str(tmp_path / "log"), wait=0.1))
    with LocalCluster(processes=False, n_workers=1, dashboard_address=":0") as cluster:

        def close(done, total, id):
            if done == 2:
                cluster.close()

        with pytest.raises(ClusterLost, match="it is gone; with --out, what was finished is saved"):
            run([slow], cluster=cluster.scheduler_address, progress=close, out=tmp_path / "out")
    assert plain(run([slow], out=tmp_path / "out")) == plain(run([slow]))


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:{port}", "nonsense", "http://127.0.0.1:{port}", "tcp://x y:1"]
)
def test_no_cluster_is_a_sentence(tiny, address, monkeypatch):
    """After `PATIENCE` seconds, and with nothing left that is to be closed later.

    A client that the garbage collector closes may stop the start of the next one for 10 s, and then make it
    fail: distributed waits there for a thread, which closes the old client and waits for the start's lock.
    """
    clients = []

    class Watched(distributed.Client):
        def __init__(self, *arguments, **named):
            clients.append((self, named["timeout"]))
            super().__init__(*arguments, **named)

    monkeypatch.setattr(distributed, "Client", Watched)
    assert PATIENCE <= 10
    monkeypatch.setattr("obverse._core.cluster.PATIENCE", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(BadInput, match="address of a running Dask scheduler") as raised:
        run([tiny.POWERS], cluster=address.format(port=port))
    assert "\n" not in str(raised.value)
    assert [(client.status, timeout) for client, timeout in clients] == [("closed", 1)]


def test_a_cluster_without_workers(tiny, monkeypatch):
    monkeypatch.setattr("obverse._core.cluster.PATIENCE", 1)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(BadInput, match="a cluster with workers; got none at tcp://"),
    ):
        run([tiny.POWERS], cluster=empty.scheduler_address)
