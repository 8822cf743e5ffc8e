"""Layers in several processes and on a Dask cluster: the bits of one process, whatever dies on the way."""

import os
import signal
import time
from dataclasses import replace

import dask
import psutil
import pytest
import torch
from distributed import LocalCluster
from safetensors.torch import save_file

from obverse import __version__
from obverse._core.errors import BadInput, ObverseError
from obverse.weights import audit, open_weights
from obverse.weights._origin import origin_of
from obverse.weights._settings import Settings
from obverse.weights._verdict import Thresholds
from obverse.weights._workers import Refused, Task, measure
from obverse.weights.results import RECORD
from weights.test_resume import bits, made, run

# A worker's death is logged and its port lingers: distributed's own affair, and what is tested here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def model(tmp_path):
    return made(tmp_path / "model.safetensors")


def test_processes_give_the_bits_of_one_also_where_another_began(model, tmp_path):
    expected, told = bits(run(model)), []
    assert bits(run(model, jobs=1)) == expected
    assert bits(run(model, jobs=2, progress=lambda *what: told.append(what))) == expected
    assert [what[0] for what in told] == [0, 1, 2, 3, 4]

    def stop(done, total, name):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(ObverseError, match="stopped after 2 of 4"):
        run(model, tmp_path / RECORD, jobs=1, progress=stop)
    assert bits(run(model, tmp_path / RECORD, jobs=2)) == expected
    (model.parent / "bad").mkdir()
    broken = made(model.parent / "bad" / "model.safetensors", side=36)
    save_file({"x.weight": torch.full((40, 50), torch.nan), "y.weight": torch.ones(40, 50)}, broken)
    with pytest.raises(ObverseError, match="2,000 NaN and 0 infinite values"):
        run(broken, jobs=2)


def test_a_dask_cluster_gives_the_bits_of_one_process(model):
    with LocalCluster(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as cluster:
        assert bits(run(model, cluster=cluster.scheduler_address)) == bits(run(model))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "expected jobs ≥ 1"),
        ({"jobs": 2, "cluster": "tcp://a:1"}, "got both; leave one out"),
        ({"jobs": 2}, "got weights in memory; save them as .safetensors, or leave out jobs"),
        ({"cluster": "tcp://a:1"}, "got weights in memory; save them as .safetensors, or leave out the cl"),
    ],
)
def test_what_cannot_be_sent_is_refused(options, words):
    with pytest.raises(BadInput) as refused:
        audit({"a": torch.eye(40)}, **options)
    assert words in str(refused.value)


def test_data_to_run_through_a_net_are_refused():
    net = torch.nn.Linear(40, 40)
    with pytest.raises(BadInput, match="got data to run through a net; save them"):
        audit(net, data=torch.rand(8, 40), jobs=2)


def task(path, **changes):
    files = origin_of(open_weights(path)).lasting
    settings = Settings(0, Thresholds(), 1.0, 2, None)
    return replace(Task(str(path), 1, "l1", files, settings, __version__), **changes)


def test_a_worker_with_another_file_or_version_refuses(model):
    assert measure(task(model)).name == "l1"
    (name, size, _), *_ = task(model).files
    refused = measure(task(model, files=((name, size, "other"),)))
    assert isinstance(refused, Refused)
    assert "with the same files for every worker; got another there" in refused.sentence
    os.utime(model)  # the time of a copy on another machine is its own
    assert measure(task(model)).name == "l1"
    refused = measure(task(model, version="0"))
    assert isinstance(refused, Refused)
    assert "expected obverse 0 where layers are measured" in refused.sentence


def test_the_flags_of_the_command(obverse, model):
    for words, said in (
        (["--jobs", 0], "expected --jobs ≥ 1, or --cluster in its place; got --jobs 0; correct it"),
        (["--jobs", 2, "--cluster", "tcp://a:1"], "got --jobs 2 and --cluster; leave one out"),
        (["--ablate", "--jobs", 2], "got a flag of the audit's own tests"),
    ):
        done = obverse("audit", model, *words)
        assert done.code == 2
        assert said in done.err
    assert obverse("audit", model, "--samples", 2, "--jobs", 1).code == 0


# What dies


def large(path):
    """With one layer that has all threads of a process where there are no jobs."""
    generator = torch.Generator().manual_seed(0)
    sides = [(1600, 1800), *[(300 + at, 400) for at in range(12)]]
    matrices = {f"l{at}.weight": torch.randn(*side, generator=generator) for at, side in enumerate(sides)}
    save_file(matrices, path)
    return path


@pytest.mark.slow
def test_a_process_that_is_killed_changes_nothing(tmp_path):
    model, killed = large(tmp_path / "model.safetensors"), []

    def kill(done, total, name):
        if done == 3:
            (victim, *_) = [
                one for one in psutil.Process().children() if "LokyProcess" in " ".join(one.cmdline())
            ]
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    record = tmp_path / RECORD
    assert bits(run(model, record, jobs=2, progress=kill)) == bits(run(model, jobs=1))
    assert len(killed) == 1
    assert len(record.read_text().splitlines()) == 14


@pytest.mark.slow
def test_a_worker_of_the_cluster_that_is_killed_changes_nothing(tmp_path):
    model = large(tmp_path / "model.safetensors")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster,
    ):
        victim = next(iter(cluster.workers.values())).process.pid

        def kill(done, total, name):
            if done == 3:
                os.kill(victim, signal.SIGKILL)
                time.sleep(0.5)

        found = run(model, cluster=cluster.scheduler_address, progress=kill)
    assert not psutil.pid_exists(victim)
    assert bits(found) == bits(run(model, jobs=1))


@pytest.mark.slow
def test_without_jobs_large_layers_agree_up_to_rounding(tmp_path):
    """With several threads sums are split in another way: float32's 6e-8 of their size, a few times over."""
    model = large(tmp_path / "model.safetensors")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        several, one = run(model), run(model, jobs=1)
    finally:
        torch.set_num_threads(before)
    assert [bits(replace(found, layers=found.layers[1:])) for found in (several,)] == [
        bits(replace(one, layers=one.layers[1:]))
    ]
    for found, expected in zip(several, one, strict=True):
        assert found.verdict == expected.verdict
        assert found.parts.rank == expected.parts.rank
        assert found.parts.upper == pytest.approx(expected.parts.upper, rel=1e-5)
