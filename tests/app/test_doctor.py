"""`obverse doctor`: what it says of the environment, what it notices when something is wrong."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from importlib.metadata import version as installed

import pytest
import torch

import obverse as package
import obverse.training as obverse_training
from obverse.app import _checks as checks
from obverse.app import _environment as environment
from obverse.app._checks import CHECKS, run_checks
from obverse.app._environment import PURPOSES, extras, missing
from obverse.claims import find
from training.helpers import obverse as obverse_process


def test_everything_is_well_here(obverse):
    done = obverse("doctor")
    assert (done.code, done.err) == (0, "")
    for name in (*CHECKS, "torch", "memory", "device", "data folder", "data sets"):
        assert re.search(rf"^{name} +ok +\S", done.out, re.MULTILINE), name
    assert re.search(r"6 of 6 ok in \d+\.\d seconds", done.out)


def test_json_is_the_same_and_nothing_else(obverse):
    done = obverse("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["well"] is True
    assert [one["state"] for one in found["checks"]] == ["ok"] * len(CHECKS)
    assert found["environment"]["versions"]["obverse"] == package.__version__
    assert found["environment"]["versions"]["torch"].split()[0] == torch.__version__
    assert found["environment"]["threads"] == torch.get_num_threads()
    assert {one["name"] for one in found["extras"]} == set(
        metadata("obverse").get_all("Provides-Extra") or []
    )


def test_every_extra_says_what_it_is_for():
    assert [one.name for one in extras() if one.purpose == "not told"] == []
    assert set(PURPOSES) >= {one.name for one in extras()}


WRONG = [
    ("shadow", "obverse.shadow", "recovery_error", lambda *a, **k: torch.tensor([0.5])),
    ("ladder", "obverse.ladder._compare", "reformulate", None),
    ("birthday", "obverse.diversity._birthday", "effective_support_bound", lambda *a, **k: 10.0),
]


@pytest.mark.parametrize(("name", "module", "function", "wrong"), WRONG, ids=[one[0] for one in WRONG])
def test_a_wrong_formula_is_told(obverse, monkeypatch, name, module, function, wrong):
    if wrong is None:
        right = getattr(import_module(module), function)

        def wrong(model, student, **known):
            """The recursion with gates that are half of what they are."""
            gates = {one: gate / 2 for one, gate in known.pop("gates").items()}
            return right(model, student, gates=gates, **known)

    monkeypatch.setattr(import_module(module), function, wrong)
    monkeypatch.setattr(checks, "CHECKS", {name: CHECKS[name]})
    done = obverse("doctor")
    assert done.code == 3
    assert re.search(rf"^{name} +failed ", done.out, re.MULTILINE)
    assert "run it again with --debug" in " ".join(done.out.split())
    assert done.err == f"obverse: self-check: 1 of 1 failed: {name}\n"
    assert obverse("doctor", "--json").code == 3


def test_a_layer_that_is_not_random_and_a_claim_that_does_not_hold_are_told(monkeypatch):
    monkeypatch.setattr(torch, "randn", lambda *shape, **keywords: torch.ones(*shape))
    assert checks.check_audit()[0] is False
    monkeypatch.undo()
    (claim,) = find([checks.CLAIM])
    wrong = replace(claim, predict=lambda setting: 2 * claim.predicted(setting))
    monkeypatch.setattr("obverse.claims.find", lambda names: [wrong])
    well, said = checks.check_claim()
    assert well is False
    assert said.startswith(f"{checks.CLAIM} failed: ")


def test_a_run_that_is_not_read_back_is_told(monkeypatch):
    right = obverse_training.load_trained

    def changed(*arguments):
        net = right(*arguments)
        for weight in net.parameters():
            weight.data.zero_()
        return net

    monkeypatch.setattr("obverse.training.load_trained", changed)
    assert checks.check_run()[0] is False


def test_a_check_that_crashes_has_failed_and_debug_lets_it_through(obverse, monkeypatch):
    def crash():
        raise RuntimeError("no such\nthing")

    monkeypatch.setattr(checks, "CHECKS", {"shadow": crash})
    (found,) = run_checks()
    assert (found.state, found.said) == ("failed", "RuntimeError: no such thing")
    assert obverse("doctor").code == 3
    with pytest.raises(RuntimeError):
        obverse("doctor", "--debug")


def test_what_an_extra_lacks_is_named_with_the_way_to_get_it(obverse, monkeypatch):
    real = installed

    def version(name):
        if name == "optuna":
            raise PackageNotFoundError(name)
        return "0.0.1" if name == "onnx" else real(name)

    monkeypatch.setattr(environment, "version", version)
    monkeypatch.setattr(checks, "CHECKS", {})
    assert missing("obverse", "search") == ["optuna>=5"]
    assert missing("obverse", "onnx") == ["onnx>=1.16, 0.0.1 is there"]
    done = obverse("doctor")
    assert done.code == 0, "a missing extra is no error"
    said = " ".join(done.out.split())
    assert "extra search missing for obverse search; lacks optuna>=5; pip install 'obverse[search]'" in said


def test_the_extra_of_an_extra_counts(monkeypatch):
    real = installed

    def version(name):
        if name == "distributed":
            raise PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(environment, "version", version)
    assert any(one.startswith("distributed") for one in missing("obverse", "cluster"))


def test_without_an_installed_package_no_extras_are_known(obverse, monkeypatch):
    assert extras("no-such-package") == ()
    monkeypatch.setattr("obverse.app.doctor.extras", tuple)
    monkeypatch.setattr(checks, "CHECKS", {})
    done = obverse("doctor")
    assert done.code == 0
    assert re.search(r"^extras +missing +obverse is not installed", done.out, re.MULTILINE)


def test_the_data_folder_is_told_and_whether_it_can_be_written(obverse, monkeypatch, tmp_path):
    monkeypatch.setattr(checks, "CHECKS", {})
    monkeypatch.setenv("OBVERSE_DATA", str(tmp_path / "not yet"))
    found = json.loads(obverse("doctor", "--json").out)["environment"]
    assert found["data_folder"] == str(tmp_path / "not yet")
    assert found["data_folder_writable"] is True
    assert found["data_sets"] == ["digits"]
    assert not (tmp_path / "not yet").exists(), "nothing is made"
    (tmp_path / "file").touch()
    monkeypatch.setenv("OBVERSE_DATA", str(tmp_path / "file"))
    done = obverse("doctor")
    assert done.code == 0
    assert "set OBVERSE_DATA to another folder" in " ".join(done.out.split())


def test_a_data_set_that_is_there_is_named(monkeypatch, tmp_path):
    from obverse.data._catalog import present_sets
    from obverse.data._sources import KNOWN

    folder = tmp_path / "mnist"
    folder.mkdir()
    *most, last = KNOWN["mnist"].files
    for file in most:
        (folder / file.path).touch()
    assert present_sets(tmp_path) == ("digits",)
    (folder / last.path).touch()
    assert present_sets(tmp_path) == ("digits", "mnist")


@pytest.mark.slow
def test_a_piped_table_has_at_most_100_columns():
    done = obverse_process("doctor", COLUMNS="")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 100
    assert os.sep in done.stdout
