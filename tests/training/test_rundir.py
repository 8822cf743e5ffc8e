"""Run directories: one process at a time, nothing overwritten, a crash in the log understood."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from obverse import BadInput
from obverse._core import save_tensors
from obverse._core.files import WriteFailed
from obverse._core.locks import RunLocked, locked
from obverse.data import load
from obverse.training import RunRecord, Settings, create_run, initial_net, load_trained, read_run
from obverse.training._checkpoint import save_checkpoint
from obverse.training._generators.fit import initial_generator
from obverse.training._generators.settings import GeneratorSettings
from obverse.training._rundir import append_metrics, keep_metrics, read_metrics, ready_run
from training.helpers import ENVIRONMENT, files_below

SETTINGS = Settings(hidden=(4,), lr=0.1)


def test_a_new_run_says_its_settings_and_where_it_was_made(tmp_path):
    path = tmp_path / "a" / "b"
    create_run(path, SETTINGS)
    run = read_run(path)
    assert run.settings == SETTINGS
    assert run.metrics == ()
    assert not run.finished
    assert {"obverse", "torch", "python", "threads"} <= run.environment.keys()
    assert files_below(path) == {"config.json", ".lock"}


def test_an_existing_run_is_never_overwritten(tmp_path):
    create_run(tmp_path, SETTINGS)
    before = (tmp_path / "config.json").read_bytes()
    with pytest.raises(BadInput, match=f"resume it with: obverse train --resume {tmp_path}"):
        create_run(tmp_path, Settings())
    assert (tmp_path / "config.json").read_bytes() == before


def test_of_many_that_create_the_same_run_at_once_one_succeeds(tmp_path):
    outcomes: list[str] = []
    start = threading.Barrier(4)

    def create(seed: int) -> None:
        start.wait()
        try:
            create_run(tmp_path, Settings(seed=seed))
            outcomes.append(f"made {seed}")
        except (BadInput, RunLocked):
            outcomes.append("refused")

    threads = [threading.Thread(target=create, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [outcome for outcome in outcomes if outcome != "refused"]
    assert made == [f"made {read_run(tmp_path).settings.seed}"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"format": 2, "settings": {}}, "format 2"),
        ({"settings": {}}, "format None"),
        ({"format": 1, "settings": []}, "a run of format 1"),
        ({"format": 1, "settings": {"epoch": 3}}, "did you mean 'epochs'"),
        ({"format": 1, "settings": {"epochs": "3"}}, "whole number"),
    ],
)
def test_a_run_that_is_not_understood_is_refused(tmp_path, config, said):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=said):
        read_run(tmp_path)


def test_a_directory_without_a_run_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(BadInput, match=r"^No such file or folder: '.*'$"):
            read_run(path)


def test_a_line_that_a_crash_cut_short_is_left_out_and_then_overwritten(tmp_path):
    for epoch in range(3):
        append_metrics(tmp_path, {"epoch": epoch, "loss": 1 / 3})
    log = tmp_path / "metrics.jsonl"
    whole = log.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in range(1, len(lines[-1])):
        log.write_bytes(whole[:-cut])
        complete = cut == 1  # only the line's end is missing
        assert [record["epoch"] for record in read_metrics(tmp_path)] == [0, 1, 2][: 3 if complete else 2]
    keep_metrics(tmp_path, 2)
    append_metrics(tmp_path, {"epoch": 2, "loss": 1 / 3})
    assert log.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{", b"[1]", b"3", b'{"a": NaN}', b'{"a": ' + b"9" * 5000 + b"}", b"", b"\xff"], ids=repr
)
def test_a_broken_line_before_the_last_is_refused_by_its_number(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"epoch": 0}\n' + line + b'\n{"epoch": 2}\n')
    with pytest.raises(BadInput, match=r"line 2 of .*metrics\.jsonl"):
        read_metrics(tmp_path)


def test_metrics_that_are_a_folder_are_refused(tmp_path):
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(BadInput, match="directory"):
        read_metrics(tmp_path)


def test_no_metrics_are_no_records(tmp_path):
    assert read_metrics(tmp_path) == []


def test_the_final_record_needs_numbers(tmp_path):
    good = {"test_error": 0.5, "shadow_error": 1, "label_agreement": 0.25, "seconds": 2.0}
    assert RunRecord(tmp_path, SETTINGS, {}, ({"epoch": 0}, good)).final == good
    with pytest.raises(BadInput, match="at least one epoch"):
        _ = RunRecord(tmp_path, SETTINGS, {}, ()).final
    for name in good:
        for wrong in ({**good, name: None}, {key: good[key] for key in good if key != name}):
            with pytest.raises(BadInput, match=f"numbers for {name} in the last record"):
                _ = RunRecord(tmp_path, SETTINGS, {}, (wrong,)).final


def test_a_final_record_without_shadows_needs_fewer_numbers(tmp_path):
    settings = Settings(net="allconv")
    good = {"test_error": 0.5, "seconds": 2.0}
    assert RunRecord(tmp_path, settings, {}, (good,)).final == good
    with pytest.raises(BadInput, match="numbers for test_error in the last record"):
        _ = RunRecord(tmp_path, settings, {}, ({"seconds": 2.0},)).final
    with pytest.raises(BadInput, match="numbers for shadow_error, label_agreement in the last record"):
        _ = RunRecord(tmp_path, Settings(net="allconv", weight=1.0), {}, (good,)).final


def test_a_run_from_before_there_were_other_nets_is_read(tmp_path):
    create_run(tmp_path, SETTINGS)
    config = json.loads((tmp_path / "config.json").read_text())
    new = (
        "augment",
        "net",
        "stem",
        "widths",
        "blocks",
        "norm",
        "shortcut",
        "init",
        "weight_decay",
        "milestones",
    )
    for name in new:
        del config["settings"][name]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_run(tmp_path).settings == SETTINGS


HOLD = """
import sys
from pathlib import Path
from obverse.training._rundir import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_in_the_same_run_directory_is_kept_out(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunLocked, match="another process is working in it"), locked(tmp_path):
            pytest.fail("two processes in one run directory")
        holder.kill()
    # A process killed with -9 leaves no lock behind.
    with locked(tmp_path):
        pass


def test_the_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="inside"), locked(tmp_path):
        raise RuntimeError("inside")
    with locked(tmp_path):
        pass


def test_a_place_that_cannot_be_written_is_a_sentence():
    with pytest.raises(WriteFailed, match="expected to write /proc/obverse-x"):
        create_run(Path("/proc/obverse-x"), SETTINGS)


def test_a_read_only_directory_is_not_taken_for_another_process(tmp_path, monkeypatch):
    def refuse(*args: object, **keywords: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)  # root could write into any real one
    with pytest.raises(WriteFailed, match="Permission denied"), locked(tmp_path):
        pass


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "checkpoint", "config.json"])
def test_links_that_somebody_planted_in_a_run_directory_are_not_written_through(tmp_path, name):
    victim = tmp_path / "victim"
    (tmp_path / "run").mkdir()
    if name == "checkpoint":
        victim.mkdir()
        (victim / "step-000000001.safetensors").write_text("precious")
    else:
        victim.write_text("precious")
    before = {str(file): file.read_bytes() for file in (victim, *victim.rglob("*")) if file.is_file()}
    (tmp_path / "run" / name).symlink_to(victim)
    with suppress(BadInput, WriteFailed):
        create_run(tmp_path / "run", SETTINGS)
    with suppress(BadInput, WriteFailed):
        append_metrics(tmp_path / "run", {"epoch": 0})
    with suppress(BadInput, WriteFailed):
        save_checkpoint(tmp_path / "run" / "checkpoint", 2, {"a": torch.zeros(2)}, {})
    with suppress(BadInput, WriteFailed), locked(tmp_path / "run"):
        pass
    after = {str(file): file.read_bytes() for file in (victim, *victim.rglob("*")) if file.is_file()}
    assert after == before


def test_a_run_inside_a_comparison_is_not_begun_behind_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="folder of its own"):
        ready_run(tmp_path / "run", SETTINGS, "a test", "move it")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_files_of_a_run_are_refused_by_their_size(tmp_path):
    create_run(tmp_path, SETTINGS)
    metrics = tmp_path / "metrics.jsonl"
    with metrics.open("wb") as file:
        file.truncate(2**26 + 1)  # takes no room on the disk
    with pytest.raises(BadInput, match="at most 67,108,864 bytes"):
        read_metrics(tmp_path)
    metrics.write_bytes(b'{"a": "' + b"x" * 2**16 + b'"}\n')
    with pytest.raises(BadInput, match="in line 1"):
        read_metrics(tmp_path)
    metrics.write_bytes(b"\n" * (2**20 + 1))
    with pytest.raises(BadInput, match="at most 1,048,576 records"):
        read_metrics(tmp_path)
    with (tmp_path / "config.json").open("r+b") as file:
        file.truncate(2**20 + 1)
    with pytest.raises(BadInput, match="at most 1,048,576 bytes"):
        read_run(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "model.safetensors"])
def test_what_never_ends_is_no_file_of_a_run(tmp_path, name):
    create_run(tmp_path, SETTINGS)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="which is none"):
        load_trained(read_run(tmp_path).settings, load("digits"), tmp_path / "model.safetensors")


def test_settings_of_a_run_do_not_decide_how_much_memory_its_net_takes(tmp_path):
    """The weights of 200,000 × 200,000 would take 160 GB; those beside the settings take 26 kB."""
    data = load("digits")
    small = initial_net(Settings(hidden=(60, 40)), data)
    save_tensors(tmp_path / "model.safetensors", small.state_dict())
    stored = (tmp_path / "model.safetensors").stat().st_size
    for settings in (
        Settings(hidden=(200_000, 200_000)),
        Settings(hidden=(1,) * 100_000),
        Settings(net="allconv", widths=(64, 20_000, 20_000)),
        Settings(net="allconv", blocks=10**9),
    ):
        with pytest.raises(BadInput, match=f"fit into the {stored:,} bytes"):
            load_trained(settings, data, tmp_path / "model.safetensors")
    for generator in (
        GeneratorSettings(hidden=(200_000, 200_000)),
        GeneratorSettings(model="mixture", components=10**9),
        GeneratorSettings(body="conv", latent=10**9),
    ):
        with pytest.raises(BadInput, match=f"fit into the {stored:,} bytes"):
            initial_generator(generator, (1, 28, 28), stored)
    net = load_trained(Settings(hidden=(60, 40)), data, tmp_path / "model.safetensors")
    assert all(torch.equal(small.state_dict()[name], tensor) for name, tensor in net.state_dict().items())
