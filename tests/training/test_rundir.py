"""Run directories: one process at a time, nothing overwritten, a crash in the log understood."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from obverse import BadInput
from obverse._core.files import WriteFailed
from obverse._core.locks import RunLocked, locked
from obverse.training import RunRecord, Settings, create_run, read_run
from obverse.training._rundir import append_metrics, keep_metrics, read_metrics
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
        with pytest.raises(BadInput, match=r"no file .*config\.json"):
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
