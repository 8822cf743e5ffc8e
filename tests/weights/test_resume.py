"""audit.jsonl: an audit that was interrupted goes on, and gives what one gives that nothing interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from random import Random

import pytest
import torch
from safetensors.torch import save_file

from obverse._core.errors import BadInput, ObverseError
from obverse._core.records import as_record
from obverse.weights import Thresholds, audit, open_weights
from obverse.weights._audit import AuditInterrupted
from obverse.weights._resume import Header, resumable
from obverse.weights.results import RECORD, audit_text
from training.helpers import ENVIRONMENT

LAYERS = 4


def made(path, seed=0, layers=LAYERS, side=32):
    generator = torch.Generator().manual_seed(seed)
    matrices = {f"l{at}.weight": torch.randn(side + at, 50, generator=generator) for at in range(layers)}
    save_file(matrices, path)
    return path


@pytest.fixture
def model(tmp_path):
    return made(tmp_path / "model.safetensors")


def run(model, record=None, seed=0, **options):
    options = {"samples": 2} | options
    return audit(model, record=record, generator=torch.Generator().manual_seed(seed), **options)


def bits(result):
    """All of an audit but its times, as it is written."""
    layers = tuple(replace(layer, seconds=0.0) for layer in result.layers)
    return audit_text(replace(result, layers=layers, seconds=0.0))


class Stopped(Exception):
    pass


def stop_after(count):
    def progress(done, total, name):
        if done == count:
            raise Stopped

    return progress


def interrupt(model, record, after, **options):
    with pytest.raises(Stopped):
        run(model, record, progress=stop_after(after), **options)


def lines(record):
    return [json.loads(line) for line in record.read_text().splitlines()]


def test_an_interrupted_audit_measures_the_rest_and_gives_the_same_bits(model, tmp_path):
    record, told = tmp_path / RECORD, []
    interrupt(model, record, 2)
    assert len(lines(record)) == 3
    begun = {line["layer"]["name"]: line["layer"] for line in lines(record)[1:]}
    resumed = run(model, record, progress=lambda *what: told.append(what))
    assert told[0][:2] == (2, LAYERS)
    assert told[-1] == (LAYERS, LAYERS, "")
    assert bits(resumed) == bits(run(model))
    seconds = {layer.name: layer.seconds for layer in resumed}
    assert all(seconds[name] == layer["seconds"] for name, layer in begun.items()), "not measured again"
    assert len(lines(record)) == 1 + LAYERS
    assert bits(run(model, record, progress=lambda done, *_: told.append(done))) == bits(resumed)
    assert told[-1] == LAYERS


def test_the_family_is_that_of_all_layers(tmp_path):
    """Holm's p-values are those of the whole audit, whichever layers were measured when."""
    generator = torch.Generator().manual_seed(1)
    column = torch.randn(60, 1, generator=generator)
    matrices = {f"l{at}.weight": torch.randn(60, 70, generator=generator) for at in range(3)}
    matrices["l1.weight"] += 2 * column @ torch.randn(1, 70, generator=generator)
    save_file(matrices, tmp_path / "m.safetensors")
    interrupt(tmp_path / "m.safetensors", tmp_path / RECORD, 1)
    assert all(line["layer"]["family_p"] is None for line in lines(tmp_path / RECORD)[1:])
    resumed = run(tmp_path / "m.safetensors", tmp_path / RECORD)
    assert [layer.family_p for layer in resumed] == [
        layer.family_p for layer in run(tmp_path / "m.safetensors")
    ]
    assert resumed.layers[1].family_p is not None
    assert resumed.layers[1].family_p < 0.01


def test_a_torn_last_line_is_dropped(model, tmp_path):
    record, expected = tmp_path / RECORD, bits(run(model))
    interrupt(model, record, 3)
    whole = record.read_bytes()
    first, *_, last = whole.splitlines(keepends=True)
    for content, done in (
        (whole[:-1], 2),  # all but the line's end
        (whole[: -len(last) // 2], 2),
        (whole + b"\0" * 50, 3),  # a file made longer, whose bytes did not get to the disk
        (whole + b"{}garbage\n", 3),
        (first, 0),
        (first[:40], 0),
        (b"", 0),
    ):
        told = []
        record.write_bytes(content)
        assert bits(run(model, record, progress=lambda *what: told.append(what))) == expected  # noqa: B023
        assert told[0][0] == done
        assert len(lines(record)) == 1 + LAYERS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keep": 0.5}, "keep 1.0 (here 0.5)"),
        ({"samples": 3}, "samples 2 (here 3)"),
        ({"exact": True}, "exact by size (here True)"),
        ({"seed": 1}, "another seed"),
        ({"thresholds": Thresholds(level=0.01)}, "level 0.001 (here 0.01)"),
    ],
)
def test_other_settings_are_refused_by_name(model, tmp_path, options, words):
    interrupt(model, tmp_path / RECORD, 1)
    before = (tmp_path / RECORD).read_bytes()
    with pytest.raises(BadInput) as refused:
        run(model, tmp_path / RECORD, **options)
    assert words in str(refused.value)
    assert "remove this file to begin anew" in str(refused.value)
    assert (tmp_path / RECORD).read_bytes() == before


def test_another_version_is_refused(model, tmp_path, monkeypatch):
    interrupt(model, tmp_path / RECORD, 1)
    monkeypatch.setattr("obverse.__version__", "9.9")
    with pytest.raises(BadInput, match=r"got one of obverse .*\(here 9\.9\)"):
        run(model, tmp_path / RECORD)


def test_a_changed_file_is_refused(model, tmp_path):
    record = tmp_path / RECORD
    interrupt(model, record, 1)
    about = model.stat()
    made(model, seed=1)
    os.utime(model, ns=(about.st_atime_ns, about.st_mtime_ns))  # of the same size and time: its bytes tell
    with pytest.raises(BadInput, match=r"got one of an older or newer model\.safetensors"):
        run(model, record)
    made(model)
    os.utime(model, ns=(about.st_atime_ns, about.st_mtime_ns))
    run(model, record)
    os.utime(model, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    with pytest.raises(BadInput, match=r"got one of an older or newer model\.safetensors"):
        run(model, record)
    other = made(tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match=r"got one of .*model\.safetensors"):
        run(other, record)


def test_a_changed_shard_is_refused(tmp_path):
    shards, names = tmp_path / "m", {}
    shards.mkdir()
    for at in range(2):
        matrix = torch.randn(40, 50, generator=torch.Generator().manual_seed(at))
        save_file({f"l{at}.weight": matrix}, shards / f"m-{at}.safetensors")
        names[f"l{at}.weight"] = f"m-{at}.safetensors"
    (shards / "m.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    interrupt(shards, tmp_path / RECORD, 1)
    save_file({"l1.weight": torch.ones(40, 50).tril()}, shards / "m-1.safetensors")
    with pytest.raises(BadInput, match=r"older or newer m-1\.safetensors"):
        run(shards, tmp_path / RECORD)


def test_other_layers_of_a_file_are_refused(model, tmp_path):
    interrupt(model, tmp_path / RECORD, 1)
    with pytest.raises(BadInput, match="got one of other layers"):
        run(open_weights(model)[:3], tmp_path / RECORD)


def test_nets_in_memory_are_told_by_their_numbers(tmp_path):
    net = {"a": torch.randn(40, 50, generator=torch.Generator().manual_seed(0)), "b": torch.eye(40)}
    interrupt(net, tmp_path / RECORD, 1)
    assert bits(run(net, tmp_path / RECORD)) == bits(run(net))
    net["a"][3, 4] += 1
    with pytest.raises(BadInput, match="other weights or data"):
        run(net, tmp_path / RECORD)


def test_own_activations_are_those_of_an_audit_that_nothing_interrupted(tmp_path):
    generator = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(40, 40), torch.nn.ReLU()] * 1, torch.nn.Linear(40, 36))
    data = torch.rand(64, 40, generator=generator)
    interrupt(net, tmp_path / RECORD, 1, data=data)
    assert bits(run(net, tmp_path / RECORD, data=data)) == bits(run(net, data=data))
    with pytest.raises(BadInput, match="other weights or data"):
        run(net, tmp_path / RECORD, data=data + 1)


def change(line, **values):
    return json.dumps(json.loads(line) | values).encode() + b"\n"


def test_what_others_have_written_is_refused_or_dropped(model, tmp_path):
    record = tmp_path / RECORD
    interrupt(model, record, 3)
    head, one, two, three = record.read_bytes().splitlines(keepends=True)
    layer = json.loads(two)["layer"]
    for content, words in (
        (change(head, format=7) + one, "format 7"),
        (change(head, settings=[]), "a mapping"),
        (change(head, extra=1), "no fields but"),
        (head + b"{\n" + two, "line 2"),
        (head + change(one, at=LAYERS) + two, "a layer of this audit in line 2"),
        (head + one + change(two, at=3), "a layer of this audit in line 3"),
        (head + change(two, layer=layer | {"rows": 99}), "a layer of this audit in line 2"),
        (head + change(two, layer=layer | {"verdict": "fine"}), "'untouched' or"),
        (head + change(two, layer=layer | {"mean_share": "x"}) + three, "a number"),
    ):
        record.write_bytes(content)
        with pytest.raises(BadInput) as refused:
            run(model, record)
        assert words in str(refused.value), (words, refused.value)
        assert record.read_bytes() == content


def mangled(content, chance):
    """The bytes of a record with something changed in it, as broken disks and strangers do."""
    spot, kind = chance.randrange(len(content)), chance.randrange(6)
    if kind == 0:
        return content[:spot] + bytes([chance.randrange(256)]) + content[spot + 1 :]
    if kind == 1:
        return content[:spot] + content[spot + chance.randrange(200) :]
    if kind == 2:
        return content[:spot]
    if kind == 3:
        other = chance.randrange(len(content))
        return content[:spot] + content[other : other + 300] + content[spot:]
    if kind == 4:
        return content.replace(b": ", chance.choice([b": [", b": 1e999", b": null, ", b": -", b":"]), 3)
    return content[:spot] + b"[" * 100_000 + content[spot:]


def test_a_mangled_record_is_taken_up_or_refused_in_a_sentence(model, tmp_path):
    record, chance = tmp_path / RECORD, Random(0)
    interrupt(model, record, 3)
    whole, weights = record.read_bytes(), open_weights(model)
    head = as_record(json.loads(whole.splitlines()[0]), Header, "record", "here")
    taken_up = refused = 0
    for _ in range(300):
        record.write_bytes(mangled(whole, chance))
        try:
            with resumable(record, head, weights) as found:
                assert all(layer.name == weights[at].name for at, layer in found.done.items())
                taken_up += 1
        except ObverseError:
            refused += 1
    assert min(taken_up, refused) > 20


def test_a_link_or_a_folder_in_its_place_is_refused(model, tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    with pytest.raises(BadInput, match="a file of its own"):
        run(model, tmp_path / "link")
    with pytest.raises(ObverseError):
        run(model, tmp_path)
    with pytest.raises(ObverseError, match="choose another place"):
        run(model, tmp_path / "none" / "record")
    assert (tmp_path / "other").read_text() == "mine"


def test_two_audits_do_not_write_one_record(model, tmp_path):
    def again(done, total, name):
        with pytest.raises(ObverseError, match="another process is working in it"):
            run(model, tmp_path / RECORD)

    run(model, tmp_path / RECORD, progress=again)


def test_control_c_says_what_is_saved(model, tmp_path):
    def stop(done, total, name):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(AuditInterrupted, match=r"stopped after 2 of 4 layers; saved in .*audit\.jsonl"):
        run(model, tmp_path / RECORD, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        run(model, progress=stop)
    assert bits(run(model, tmp_path / RECORD)) == bits(run(model))


def test_a_layer_that_cannot_be_read_leaves_the_others(tmp_path):
    matrix = torch.randn(40, 50, generator=torch.Generator().manual_seed(0))
    broken = matrix.clone()
    broken[1, 1] = torch.nan
    path = tmp_path / "m.safetensors"
    save_file({"a.weight": matrix, "b.weight": broken}, path)
    with pytest.raises(BadInput, match="1 NaN"):
        run(path, tmp_path / RECORD)
    assert [line["layer"]["name"] for line in lines(tmp_path / RECORD)[1:]] == ["a"]


# The command


def test_the_command_keeps_a_record_until_it_is_finished(obverse, model, tmp_path, monkeypatch):
    out, words = tmp_path / "out", ("audit", model, "--samples", 2)
    assert obverse(*words, "--out", tmp_path / "whole").code == 0

    def crash(*_):
        raise ValueError("a crash")

    monkeypatch.setattr("obverse.present.output.replace_atomically", crash)
    assert obverse(*words, "--out", out).code not in (0, 2)
    monkeypatch.undo()
    assert [path.name for path in out.iterdir()] == [RECORD]
    done = obverse("report", out)
    assert done.code == 2
    assert "got audit.jsonl, the record of an interrupted one" in done.err
    (out / RECORD).write_bytes(b"".join((out / RECORD).read_bytes().splitlines(keepends=True)[:3]))
    refused = obverse(*words, "--seed", 3, "--out", out)
    assert refused.code == 2
    assert "another seed" in refused.err
    done = obverse(*words, "--out", out)
    assert done.code == 0
    assert done.err.startswith("2 of 4 layers measured before: the audit is resumed\n")
    assert {path.name for path in out.iterdir()} == {"audit.json", "audit.csv", "audit.html"}
    assert plain(out) == plain(tmp_path / "whole")


def plain(folder):
    found = json.loads((folder / "audit.json").read_text())
    for one in (found, *found["layers"]):
        del one["seconds"]
    return found


def test_what_it_is_compared_with_has_a_record_too(obverse, model, tmp_path):
    other, out = made(tmp_path / "other.safetensors", seed=1), tmp_path / "out"
    words = ("audit", model, "--against", other, "--samples", 2, "--out", out)
    out.mkdir()
    interrupt(open_weights(other), out / "against.jsonl", 3)
    done = obverse(*words)
    assert done.code == 0
    assert "3 of 4 layers measured before" in done.err
    left = {path.name for path in out.iterdir()}
    assert {"audit.json", "audit.csv", "audit.html", "against.json"} <= left
    assert not any(name.endswith(".jsonl") for name in left)


@pytest.mark.slow
def test_an_audit_that_is_killed_again_and_again_gives_the_same_bits(tmp_path):
    model = made(tmp_path / "model.safetensors", layers=30, side=150)
    command = [sys.executable, "-m", "obverse", "audit", str(model), "--out"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, env=ENVIRONMENT, capture_output=True)
    out = tmp_path / "out"
    record, before = out / RECORD, 0
    for _ in range(4):
        with subprocess.Popen([*command, str(out)], env=ENVIRONMENT, stdout=-3, stderr=-3) as process:
            deadline = time.monotonic() + 120
            while not record.exists() or len(record.read_bytes().splitlines()) < before + 4:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
        assert not (out / "audit.json").exists()
        now = len(record.read_bytes().splitlines())
        assert now > before
        before = now
    done = subprocess.run([*command, str(out)], check=True, env=ENVIRONMENT, capture_output=True, text=True)
    assert "of 30 layers measured before" in done.stderr
    assert plain(out) == plain(tmp_path / "whole")
