"""Several processes: the same computation as one, whatever stops them; the first alone writes and speaks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from obverse import BadInput
from obverse._core.tensors import load_tensors
from obverse.nets._small_conv import small_resnet
from obverse.training import Settings, create_run, read_run
from obverse.training._distributed import (
    PeerLost,
    _leave,
    _name_of_start,
    _peers,
    any_of,
    by_all,
    by_first,
    is_first,
    joined,
    launchers,
    refuse_several,
    share,
    size,
    speaks,
    summed,
    total,
)
from obverse.training.command._train import _begin
from training.helpers import (
    ENVIRONMENT,
    Crasher,
    files_below,
    flags,
    metrics_without_seconds,
    tensor_bytes,
    tiny_data,
    tiny_npz,
    train,
)

# float64, and sums of the same numbers in another order: 40 samples, 16 to 100 terms a product, three steps
CLOSE = {"rtol": 1e-9, "atol": 1e-12}
BASE = Settings(
    hidden=(12, 10), epochs=2, batch_size=11, lr=0.05, weight=0.5, seed=4
)  # 40 points: 11, 11, 11, 7
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"weight": 0.0},
    "dropout": {"weight": 0.0, "dropout": 0.5},
    "shadow": {},
    "shadow, dropout, sampling": {"dropout": 0.3, "keep": 0.5},
    "noise": {"control": "noise"},
    "shuffled, sampling": {"control": "shuffled", "keep": 0.5},
    "consistency, smoothing": {"labels": "consistency", "smooth": True, "keep": 0.7},
    "normalized, augmented": {"normalize": True, "augment": True, "weight": 3.0, "dropout": 0.2},
    "one bias a layer": {"uniform_bias": True, "keep": 0.5},
    "decay": {"weight_decay": 0.01, "labels": "net"},
    "unlabelled": {
        "train_size": 34,  # 11 + 11 + 11 + 1, and 6 = 5 + 1 without labels
        "unlabelled": 5,
        "labels": "consistency",
        "control": "noise",
        "denoise": 2.0,
        "optimizer": "adam",
        "lr": 0.01,
    },
}
CONV: dict[str, Any] = {
    "net": "allconv", "hidden": (500, 500), "stem": (3, 3, 1), "widths": (4, 6), "blocks": 1, "augment": True,
    "keep": 0.5,
}  # fmt: skip
FLAT, IMAGES = (1, 4, 4), (3, 8, 8)


def together(several: Crasher, processes: int, call: str, **arguments: Any) -> list[dict[str, Any]]:
    (results,) = several({"processes": processes, "call": call, "arguments": arguments})
    return results


def assert_done(results: list[dict[str, Any]]) -> None:
    assert all((one["code"], one["output"]) == (0, "") for one in results), results


# The same gradients


@pytest.fixture(scope="module")
def measured(several: Crasher, tmp_path_factory: pytest.TempPathFactory) -> Any:
    def measure(
        settings: Settings, features: tuple[int, ...], processes: int, steps: list[int], **kind: Any
    ) -> Path:
        out = tmp_path_factory.mktemp("gradients")
        known = {
            "settings": settings.to_dict(),
            "features": features,
            "steps": steps,
            "out": str(out),
            **kind,
        }
        assert_done(together(several, processes, "gradients", **known))
        assert files_below(out) == {f"{step}-{rank}" for step in steps for rank in range(processes)}
        return out

    return measure


def assert_same(
    found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], **close: float
) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, **(close or CLOSE), msg=lambda m, n=name: f"{n}: {m}")


def counts(variants: Iterable[str], few: Container[str]) -> list[Any]:
    """11 = 5 + 6 = 3 + 4 + 4 samples. What holds in three processes for a variant, and in two for `few`, is
    tried in two for every variant by the whole suite alone."""
    return [
        pytest.param(one, count, marks=[pytest.mark.slow] if count == 2 and one not in few else [])
        for one in variants
        for count in (2, 3)
    ]


@pytest.mark.parametrize(("variant", "processes"), counts(VARIANTS, ("plain", "unlabelled")))
def test_gradients_of_several_processes_are_those_of_one(measured, variant, processes):
    settings = replace(BASE, **VARIANTS[variant])
    one = measured(settings, FLAT, 1, [0, 3])
    many = measured(settings, FLAT, processes, [0, 3])
    for step in (0, 3):
        expected = load_tensors(one / f"{step}-0")
        assert any(float(tensor.abs().max()) > 0 for name, tensor in expected.items() if "grad" in name)
        for rank in range(processes):
            assert_same(load_tensors(many / f"{step}-{rank}"), expected)


@pytest.mark.parametrize(("precision", "product", "bits"), [("bf16", "bfloat16", 8), ("fp16", "float16", 11)])
def test_gradients_in_half_precision_too(measured, precision, product, bits):
    """Where one process loses no step to an overflow of fp16, several do not either."""
    settings = replace(BASE, precision=precision, dropout=0.2, keep=0.5)
    kind = {"dtype": "float32", "product": product}
    one = load_tensors(measured(settings, FLAT, 1, [0], **kind) / "0-0")
    assert ("scaler" in one) == (precision == "fp16")
    for processes in (2, 3):
        many = measured(settings, FLAT, processes, [0], **kind)
        for rank in range(processes):
            found = load_tensors(many / f"0-{rank}")
            assert found.keys() == one.keys()
            for name, expected in one.items():
                # A process rounds its own part of a sum to 2⁻ᵇⁱᵗˢ of it; a few layers, each with such sums,
                # and up to three parts that may cancel.
                allowed = 0.0 if name == "scaler" else 2.0 ** (3 - bits) * float(expected.abs().max())
                assert float((found[name] - expected).abs().max()) <= allowed, name


def test_gradients_of_a_convolutional_net_too(measured):
    settings = replace(BASE, **CONV)
    one, many = (measured(settings, IMAGES, processes, [0]) for processes in (1, 2))
    for rank in range(2):
        assert_same(load_tensors(many / f"0-{rank}"), load_tensors(one / "0-0"))


@pytest.mark.parametrize(
    "more",
    [
        {"batch_size": 13, "keep": 0.5},  # 40 = 13 + 13 + 13 + 1
        # 10 = 3 + 3 + 3 + 1, and the loss of the others does not reach the last layer
        {"batch_size": 3, "train_size": 10, "unlabelled": 9, "weight": 0.0, "denoise": 1.0},
    ],
)
def test_processes_without_a_sample_take_part(measured, more):
    settings = replace(BASE, dropout=0.3, **more)
    one, many = (measured(settings, FLAT, processes, [3]) for processes in (1, 3))
    for rank in range(3):
        assert_same(load_tensors(many / f"3-{rank}"), load_tensors(one / "3-0"))


def test_two_halves_of_the_papers_batch_of_a_hundred_in_float32(measured):
    settings = replace(BASE, batch_size=100, dropout=0.5, keep=0.5, hidden=(64, 64), weight=1.0)
    kind = {"points": 150, "dtype": "float32"}  # 100 of them are for training
    one, many = (measured(settings, FLAT, processes, [0], **kind) for processes in (1, 2))
    # A gradient is a sum over 100 samples of numbers below 1, rounded to 2⁻²⁴ of them in each of some hundred
    # additions, which go one after another in the worst case.
    for rank in range(2):
        assert_same(load_tensors(many / f"0-{rank}"), load_tensors(one / "0-0"), rtol=1e-5, atol=1e-6)


# Whole runs


def run_together(
    several: Crasher, path: Path, processes: int, settings: Settings, **more: Any
) -> list[dict[str, Any]]:
    if not (path / "config.json").exists():
        create_run(path, settings)
    known = {"settings": settings.to_dict(), "features": FLAT, "out": str(path)}
    return together(several, processes, "training", **known, **more)


RUN = replace(BASE, dropout=0.3, keep=0.5, checkpoint_every=3)


@pytest.fixture(scope="module")
def runs(several: Crasher, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The same training in one, two and three processes."""
    folder = tmp_path_factory.mktemp("runs")
    for processes in (1, 2, 3):
        assert_done(run_together(several, folder / str(processes), processes, RUN))
    return {processes: folder / str(processes) for processes in (1, 2, 3)}


def assert_same_numbers(path: Path, expected: Path) -> None:
    """Of two runs in different numbers of processes."""
    assert files_below(path) == files_below(expected)
    assert_same(load_tensors(path / "model.safetensors"), load_tensors(expected / "model.safetensors"))
    own, theirs = metrics_without_seconds(path), metrics_without_seconds(expected)
    assert len(own) == len(theirs) == 3
    for one, other in zip(own, theirs, strict=True):
        assert one.keys() == other.keys()
        assert one["recovery_error"] == pytest.approx(other["recovery_error"], rel=CLOSE["rtol"])
        numbers, wanted = (
            {name: record[name] or 0.0 for name in record if name != "recovery_error"}
            for record in (one, other)
        )
        assert numbers == pytest.approx(wanted, rel=CLOSE["rtol"])


def test_a_whole_run_ends_at_the_same_weights_and_only_the_first_wrote_it(runs):
    for processes in (2, 3):
        assert_same_numbers(runs[processes], runs[1])
    assert tensor_bytes(runs[2]) != tensor_bytes(runs[1])  # rounding: there were two


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3), (2, 2)])
def test_a_signal_to_one_stops_all_at_one_step_and_any_number_can_go_on(
    several, runs, tmp_path, before, after
):
    path = tmp_path / "run"
    stopped = run_together(several, path, before, RUN, signal_at={"rank": before - 1, "step": 5})
    for one in stopped:
        assert one["code"] == 1
        assert one["output"] == f"Interrupted: stopped at step 5 of 8; saved in {path}"
    assert read_run(path).metrics[-1]["step"] == 4
    assert not read_run(path).finished
    assert_done(run_together(several, path, after, RUN))
    assert_same_numbers(path, runs[1])
    if before == after:
        assert tensor_bytes(path) == tensor_bytes(runs[2])


@pytest.mark.parametrize("victim", [0, 1])
def test_if_one_is_killed_the_other_says_so_and_two_new_ones_go_on_to_the_bit(
    several, runs, tmp_path, victim
):
    path = tmp_path / "run"
    kill = {"rank": victim, "step": 5, "signal": signal.SIGKILL}
    results = run_together(several, path, 2, RUN, signal_at=kill)
    assert results[victim] == {"code": -signal.SIGKILL, "output": ""}
    said = results[1 - victim]["output"]
    assert said.startswith("PeerLost: expected an answer of all 2 processes; got none")
    assert said.endswith("; to have all started again, give torchrun --max-restarts")
    assert_done(run_together(several, path, 2, RUN))
    assert tensor_bytes(path) == tensor_bytes(runs[2])
    assert metrics_without_seconds(path) == metrics_without_seconds(runs[2])


def test_a_loss_that_is_not_finite_stops_all(several, tmp_path):
    settings = replace(RUN, lr=1e200)
    results = run_together(several, tmp_path / "run", 2, settings)
    assert len({one["output"] for one in results}) == 1
    assert results[0]["output"].startswith("Diverged: expected a finite loss; got")


# The command


def command(
    several: Crasher, processes: int, *words: object, folder: Path | str | list[str] = ".", **environment: str
) -> list[dict[str, Any]]:
    job = {
        "processes": processes,
        "words": [str(word) for word in words],
        "environment": environment,
        "folder": folder if isinstance(folder, list) else [str(folder)] * processes,
    }
    (results,) = several(job)
    return results


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A training that takes a moment, into tmp_path/run."""
    data = tiny_npz(tmp_path / "tiny.npz")
    settings = replace(RUN, data=str(data))
    return ["train", *flags(settings), "--out", str(tmp_path / "run")]


def test_the_first_process_speaks_and_writes_the_page(several, words, tmp_path):
    first, second = command(several, 2, *words)
    assert (first["code"], second["code"]) == (0, 0)
    assert second["output"] == ""
    said = first["output"].splitlines()
    assert said[0].startswith(f"{tmp_path / 'run'}: test error ")
    assert said[1:] == [f"page: {tmp_path / 'run' / 'report.html'}"]
    run = read_run(tmp_path / "run")
    assert run.finished
    assert run.environment["processes"] == 2
    assert run.environment["device"] == ("cuda" if torch.cuda.is_available() else "cpu")
    first, second = command(several, 2, "train", "--resume", tmp_path / "run")
    assert first["output"].startswith(f"{tmp_path / 'run'} is finished already: ")
    assert (first["code"], second) == (0, {"code": 0, "output": ""})


def test_without_out_all_take_the_same_free_name(several, words, tmp_path):
    out = words.index("--out")
    first, second = command(several, 2, *words[:out], "--no-report", folder=tmp_path)
    assert (first["code"], second) == (0, {"code": 0, "output": ""})
    assert first["output"].startswith("runs/tiny-1: ")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["tiny-1"]
    assert read_run(tmp_path / "runs" / "tiny-1").finished


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--train-size", "41"], "obverse: expected train_size ≤ 40"),
        (["--lr", "-1"], "obverse: expected lr > 0"),
        (["--hidden", "wide"], "obverse: expected --hidden as widths"),
        (["--lr", "1e30"], "obverse: expected a finite loss"),
        (["--net", "allconv", "--norm"], "obverse: expected"),
    ],
)
def test_what_is_wrong_is_said_once(several, words, tmp_path, more, said):
    first, *others = command(several, 3, *words, *more)
    assert first["code"] == 2
    assert first["output"].startswith(said)
    assert len(first["output"].splitlines()) == 1
    assert others == [{"code": 2, "output": ""}] * 2


def test_an_existing_run_is_not_touched(several, words, tmp_path):
    create_run(tmp_path / "run", Settings())
    first, second = command(several, 2, *words)
    assert f"resume it with: obverse train --resume {tmp_path / 'run'}" in first["output"]
    assert (first["code"], second) == (2, {"code": 2, "output": ""})
    assert files_below(tmp_path / "run") == {"config.json", ".lock"}


@pytest.mark.slow
def test_started_anew_they_go_on_with_the_run_they_began(several, words, tmp_path):
    again = {"TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "2"}
    path = tmp_path / "run"
    # Killed before there was a directory: begin.
    first, second = command(several, 2, *words, "--no-report", **again)
    assert (first["code"], second) == (0, {"code": 0, "output": ""})
    whole = tensor_bytes(path)
    # Killed after the end: nothing to do.
    first, second = command(several, 2, *words, "--no-report", **again)
    assert "is finished already" in first["output"]
    # Killed in between: go on from the checkpoint, in which nothing has been learned twice.
    (path / "model.safetensors").unlink()
    assert [one["code"] for one in command(several, 2, *words, "--no-report", **again)] == [0, 0]
    assert tensor_bytes(path) == whole
    # A run with other settings is another run.
    first, second = command(several, 2, *words, "--seed", "77", **again)
    assert "a directory without a run" in first["output"]
    assert (first["code"], second) == (2, {"code": 2, "output": ""})
    assert tensor_bytes(path) == whole
    # Without a name it could not be found again.
    first, second = command(several, 2, *words[: words.index("--out")], **again)
    assert first["output"].startswith("obverse: expected --out for a run that torchrun may restart")
    assert (first["code"], second) == (2, {"code": 2, "output": ""})


def test_started_anew_they_leave_alone_what_another_launch_began(several, words, tmp_path):
    """A refused command that the launcher repeats is refused again."""
    again = {"TORCHELASTIC_RESTART_COUNT": "1", "TORCHELASTIC_MAX_RESTARTS": "2"}
    settings = Settings.from_mapping(read_settings(several, words, tmp_path), "a test")
    for known in ((), ("0123456789abcdef",)):  # begun without a launcher, or by another one
        path = tmp_path / f"by-{len(known)}"
        create_run(path, settings, known)
        first, second = command(several, 2, *words[: words.index("--out")], "--out", path, **again)
        assert "a directory without a run" in first["output"]
        assert (first["code"], second) == (2, {"code": 2, "output": ""})
        assert files_below(path) == {"config.json", ".lock"}


def read_settings(several: Crasher, words: list[str], folder: Path) -> dict[str, Any]:
    """What the command makes of its words."""
    out = folder / "settings"
    assert command(several, 1, *words[: words.index("--out")], "--no-report", "--out", out)[0]["code"] == 0
    return read_run(out).settings.to_dict()


def test_other_data_in_another_process_are_found_out_at_once(several, words, tmp_path):
    """The same name, other points, as on another machine: the second process has a folder of its own."""
    words = ["tiny.npz" if Path(word).name == "tiny.npz" else word for word in words]
    (tmp_path / "second").mkdir()
    tiny_npz(tmp_path / "second" / "tiny.npz", seed=1)
    results = command(several, 2, *words, folder=[str(tmp_path), str(tmp_path / "second")])
    said = results[0]["output"]
    assert said.startswith("obverse: expected the same data ")
    assert said.endswith(
        "tiny.npz in all 2 processes; got 2 different ones; give all of them the same files\n"
    )
    assert results == [{"code": 2, "output": said}, {"code": 2, "output": ""}]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("own", [0, 1, 2])
@pytest.mark.parametrize("others", [0, 1])
def test_all_decide_alike_whoever_was_counted_as_started_anew(monkeypatch, tmp_path, own, others):
    """Each machine's launcher counts for itself: what the others have counted is as good as its own."""
    asked = []

    def total_with_others(value: float) -> float:
        asked.append(value)
        return value + others

    monkeypatch.setattr("obverse.training._distributed.total", total_with_others)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(own))
    path = tmp_path / "run"
    settings = replace(RUN, data=str(tiny_npz(tmp_path / "tiny.npz")))
    create_run(path, settings, launchers())
    if own or others:
        again, task = _begin(settings.to_dict(), path)
        assert again == path
        assert task is not None
        assert task.settings == settings
    else:
        with pytest.raises(BadInput, match="a directory without a run"):
            _begin(settings.to_dict(), path)
    assert asked == [float(own > 0)]  # once in each process, whatever its own count


def test_who_is_lost_is_said_with_what_the_launcher_will_do(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "2")
    with (
        pytest.raises(PeerLost, match=r"torchrun starts all again, as often as --max-restarts says$"),
        _peers(),
    ):
        raise RuntimeError("gloo: connection closed by peer")


@pytest.mark.parametrize("name", ["compare", "generate train", "search"])
def test_commands_that_would_do_everything_twice_are_refused(several, name, tmp_path):
    first, second = command(several, 2, *name.split(), "--out", tmp_path / "run")
    assert first["code"] == 2
    assert f"expected one process for `obverse {name}`; got 2" in first["output"]
    assert second == {"code": 2, "output": ""}
    assert not (tmp_path / "run").exists()


# The helpers


def test_processes_agree(several):
    for processes in (1, 2, 3):
        assert_done(together(several, processes, "agreement"))


def test_alone_there_is_nothing_to_agree_on(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    refuse_several("obverse compare")
    with joined():
        assert (size(), share(7), total(2.5), any_of(True), any_of(False)) == (1, (0, 7), 2.5, True, False)
        assert is_first()
        assert speaks()
        assert by_first(lambda: 3) == by_all(lambda: 3) == 3
    # Another program's variables, with nobody to join.
    monkeypatch.setenv("RANK", "1")
    assert speaks()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with joined():
        assert (size(), speaks()) == (1, True)


def test_a_process_that_has_not_joined_the_others_works_alone(monkeypatch, tmp_path):
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1")):
        monkeypatch.setenv(name, value)
    assert (size(), is_first(), speaks()) == (1, True, False)
    train(replace(RUN, epochs=1), tmp_path / "run", tiny_data())
    assert read_run(tmp_path / "run").finished


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_shares_cover_everything_once(monkeypatch, processes):
    monkeypatch.setattr("obverse.training._distributed.size", lambda: processes)
    for count in (0, 1, 5, 7, 100):
        shares = []
        for own in range(processes):
            monkeypatch.setattr("obverse.training._distributed.rank", lambda own=own: own)
            shares.append(share(count))
        assert [row for start, stop in shares for row in range(start, stop)] == list(range(count))
        lengths = {stop - start for start, stop in shares}
        assert max(lengths) - min(lengths) <= 1


def test_batch_norm_over_several_processes_is_refused(monkeypatch):
    net = small_resnet((1, 4, 4), 3, (3,))
    loss = net.forward
    assert summed(net, loss) is loss
    monkeypatch.setattr("obverse.training._distributed.size", lambda: 2)
    with pytest.raises(BadInput, match="a net without batch norm for several processes"):
        summed(net, loss)


def test_each_start_has_a_name_of_its_own_that_all_know_whatever_the_last_has_left():
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    names: list[str] = []
    for first in (0, 2, 1):  # who comes first finds what the others wrote at the last start
        with ThreadPoolExecutor(3) as pool:
            early = pool.submit(_name_of_start, store, first, 3)
            if names:  # else there is nothing yet to be misled by
                while store.get(f"obverse/name/{first}") == names[-1].encode():
                    time.sleep(0.001)
            late = [pool.submit(_name_of_start, store, rank, 3) for rank in range(3) if rank != first]
            (name,) = {one.result(timeout=60) for one in (early, *late)}
        names.append(name.removeprefix("obverse/"))
        # And one that died while it joined.
        store.set("obverse/word/1", f"dead {first}")
    assert len(set(names)) == 3
    # Nobody else comes.
    with pytest.raises(torch.distributed.DistStoreError):
        _name_of_start(store, 0, 3, patience=0.2)


def test_nobody_leaves_before_all_are_done_and_the_first_goes_last():
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    with ThreadPoolExecutor(3) as pool:
        first, second = (pool.submit(_leave, store, rank, 3) for rank in (0, 1))
        store.wait(["done/0", "done/1"])
        assert not store.check(["left/0"])
        assert not store.check(["left/1"])
        store.set("done/2", "")
        second.result(timeout=60)
        store.wait(["left/0"])
        assert not first.done()
        store.set("left/2", "")
        first.result(timeout=60)


# The launcher, and a real kill


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def ranks(*launchers: int) -> dict[int, tuple[int, int]]:
    """(process, how often its launcher has started it anew) of each rank that these have started."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(stat[1]) in launchers and stat[0] != "Z":
            values = dict(word.partition(b"=")[::2] for word in words)
            if b"RANK" in values:
                count = int(values[b"TORCHELASTIC_RESTART_COUNT"])
                found[int(values[b"RANK"])] = (int(entry.name), count)
    return found


def has_pending(process: int, number: int) -> bool:
    """Whether a signal waits for a process that is stopped."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, mask = line.partition(":")
        if name == "ShdPnd":
            return bool(int(mask, 16) >> (number - 1) & 1)
    raise AssertionError("no pending signals in /proc")


class Launched:
    """`torchrun -m obverse train …` in two processes, caught after its first checkpoint.

    With `machines` 2 each has a launcher of its own, as on two machines.
    """

    def __init__(self, path: Path, words: list[str], machines: int = 1) -> None:
        port = free_port()
        where = ["--nproc-per-node", "2", "--master-port", str(port)]
        if machines == 2:
            where = [
                "--nproc-per-node", "1", "--nnodes", "2", "--rdzv-backend", "c10d",
                "--rdzv-endpoint", f"127.0.0.1:{port}", "--local-addr", "127.0.0.1",
            ]  # fmt: skip
        self.launchers = [
            subprocess.Popen(
                [
                    sys.executable, "-m", "torch.distributed.run", *where, "--max-restarts", "2",
                    "--monitor-interval", "0.1", "-m", "obverse", *words, "--out", str(path),
                ],
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(machines)
        ]  # fmt: skip
        self.workers: dict[int, int] = {}
        pointer = path / "checkpoint" / "latest.json"
        self.wait(lambda: pointer.exists() and self.find().keys() == {0, 1})
        self.workers = {rank: process for rank, (process, _) in self.find().items()}

    def find(self) -> dict[int, tuple[int, int]]:
        return ranks(*(one.pid for one in self.launchers))

    def wait(self, until: Callable[[], bool]) -> None:
        """Until it is true, or a launcher has ended, or nothing happens."""
        deadline = time.monotonic() + 200
        while all(one.poll() is None for one in self.launchers) and time.monotonic() < deadline:
            if until():
                return
            time.sleep(0.01)

    def end(self) -> tuple[int, str, str]:
        """(exit code, the first that is not 0; output; errors)."""
        try:
            said = [one.communicate(timeout=300) for one in self.launchers]
        finally:
            for one in self.launchers:
                one.terminate()
        code = next((one.returncode for one in self.launchers if one.returncode), 0)
        return code, "".join(out for out, _ in said), "".join(errors for _, errors in said)


@pytest.fixture
def undisturbed(several: Crasher, tmp_path: Path) -> tuple[Path, list[str]]:
    """A run of two processes, and its command without the directory."""
    data = tiny_npz(tmp_path / "tiny.npz", points=600)
    words = ["train", *flags(replace(RUN, data=str(data), epochs=20, checkpoint_every=10)), "--no-report"]
    path = tmp_path / "expected"
    assert [one["code"] for one in command(several, 2, *words, "--out", path)] == [0, 0]
    return path, words


def assert_same_run(path: Path, expected: Path) -> None:
    assert tensor_bytes(path) == tensor_bytes(expected)
    assert metrics_without_seconds(path) == metrics_without_seconds(expected)
    assert files_below(path) == files_below(expected)


needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_worker_restarts_and_the_run_ends_as_if_nothing_had_been(undisturbed, tmp_path, victim):
    expected, words = undisturbed
    path = tmp_path / "run"
    launched = Launched(path, words)
    os.kill(launched.workers[victim], signal.SIGKILL)
    left = json.loads((path / "checkpoint" / "latest.json").read_text())["step"]
    assert 10 <= left < 20 * 37  # in the middle
    code, out, errors = launched.end()
    assert code == 0, errors
    assert out.count("test error") == 1, (out, errors)
    assert "this is a bug" not in errors, errors
    assert_same_run(path, expected)


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("victim", [0, 1])
def test_two_machines_go_on_together_if_only_one_of_them_counts_the_restart(undisturbed, tmp_path, victim):
    expected, words = undisturbed
    path = tmp_path / "run"
    launched = Launched(path, words, machines=2)
    dead, other = launched.workers[victim], launched.workers[1 - victim]
    os.kill(other, signal.SIGSTOP)  # so that it cannot fail too, which its launcher would count
    os.kill(dead, signal.SIGKILL)
    launched.wait(lambda: has_pending(other, signal.SIGTERM))
    os.kill(other, signal.SIGCONT)
    anew: dict[int, tuple[int, int]] = {}

    def both_are_new() -> bool:
        anew.update(launched.find())
        return {dead, other}.isdisjoint(process for process, _ in anew.values()) and anew.keys() == {0, 1}

    launched.wait(both_are_new)
    code, out, errors = launched.end()
    assert code == 0, errors
    assert {rank: count for rank, (_, count) in anew.items()} == {victim: 1, 1 - victim: 0}
    assert out.count("test error") == 1, (out, errors)
    assert "this is a bug" not in errors, errors
    assert_same_run(path, expected)


@pytest.mark.slow
@needs_proc
def test_ctrl_c_in_the_launcher_saves_the_run(several, undisturbed, tmp_path):
    expected, words = undisturbed
    path = tmp_path / "run"
    launched = Launched(path, words)
    launched.launchers[0].send_signal(signal.SIGINT)
    code, _, errors = launched.end()
    assert code != 0
    assert errors.count(f"resume with: obverse train --resume {path}") == 1
    step = json.loads((path / "checkpoint" / "latest.json").read_text())["step"]
    assert errors.count(f"obverse: stopped at step {step} of {20 * 37}; saved in {path}") == 1
    assert [one["code"] for one in command(several, 2, "train", "--resume", path, "--no-report")] == [0, 0]
    assert_same_run(path, expected)
