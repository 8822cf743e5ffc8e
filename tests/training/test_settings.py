"""Settings: what comes from files is taken exactly or refused by name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obverse import BadInput
from obverse.training import GeneratorSettings, Settings
from obverse.training._settings import RENAMED, TUPLES, foreign, read_toml, setting_names
from training.helpers import ALL_CHANGED

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(setting_names()) | st.text(max_size=12)
likely = st.sampled_from([0, 1, 2, 0.5, 1.0, True, None, [4], [4, 2], "h1", "net", "noise", 10**400, -1])


@given(st.dictionaries(names, anything | likely, max_size=4))
def test_a_mapping_gives_settings_that_survive_json_or_is_refused(values):
    try:
        settings = Settings.from_mapping(values, "a test")
    except BadInput:
        return
    again = Settings.from_mapping(json.loads(json.dumps(settings.to_dict(), allow_nan=False)), "a test")
    assert again == settings
    for name, value in values.items():
        kept = getattr(settings, name)
        assert kept == (tuple(value) if name in TUPLES else value)


def test_every_setting_survives_json():
    settings = ALL_CHANGED
    assert all(getattr(settings, name) != getattr(Settings(), name) for name in setting_names())
    assert Settings.from_mapping(json.loads(json.dumps(settings.to_dict())), "a test") == settings


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("epoch", "epochs"),
        ("droput", "dropout"),
        ("hiden", "hidden"),
        ("checkpoint-every", "checkpoint_every"),
    ],
)
def test_an_unknown_name_suggests_the_near_one(wrong, near):
    with pytest.raises(BadInput, match=f"in some file; got '{wrong}'; did you mean '{near}'"):
        Settings.from_mapping({wrong: 1}, "some file")


def test_a_name_unlike_any_lists_them_all():
    with pytest.raises(BadInput) as caught:
        Settings.from_mapping({"zzzzzz": 1}, "some file")
    assert all(name in str(caught.value) for name in setting_names())


@pytest.mark.parametrize(
    ("name", "value", "spelled"),
    [
        ("epochs", "3", "a whole number"),
        ("epochs", 3.0, "a whole number"),
        ("epochs", True, "a whole number"),
        ("epochs", None, "a whole number"),
        ("batch_size", 2**63, "a whole number"),
        ("lr", "0.1", "a number"),
        ("lr", False, "a number"),
        ("lr", float("nan"), "a number"),
        ("lr", 10**400, "a number"),
        ("uniform_bias", 1, "true or false"),
        ("hidden", 16, "a list of whole numbers"),
        ("hidden", [16, "16"], "a list of whole numbers"),
        ("hidden", [16, True], "a list of whole numbers"),
        ("train_size", "all", "a whole number or nothing"),
        ("layer", 2, "text or nothing"),
        ("labels", "ours", "'given' or 'net' or 'consistency'"),
        ("labels", ["net"], "'given' or 'net' or 'consistency'"),
        ("control", "none", "'same' or 'noise' or 'shuffled' or nothing"),
        ("data", None, "text"),
        ("net", "cnn", "'mlp' or 'allconv'"),
        ("init", "zero", "'identity' or 'he'"),
        ("milestones", 30000, "a list of whole numbers"),
        ("stem", [16, 3.0, 1], "a list of whole numbers"),
        ("weight", None, "a number"),
    ],
)
def test_a_wrong_type_is_named_with_the_right_one(name, value, spelled):
    with pytest.raises(BadInput) as caught:
        Settings.from_mapping({name: value}, "some file")
    assert str(caught.value).startswith(f"expected {name} to be {spelled} in some file; got {value!r}")


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("train_size", [0, -1], [1]),
        ("validation", [-1], [0]),
        ("hidden", [(0,), (4, -1)], [(1,), ()]),
        ("dropout", [-0.1, 1.0, float("nan")], [0.0, 0.99]),
        ("epochs", [0], [1]),
        ("batch_size", [0], [1]),
        ("lr", [0.0, -1.0, float("inf"), float("nan")], [1e-9]),
        ("momentum", [-0.1, 1.0, float("nan")], [0.0]),
        ("weight_decay", [-1e-9, float("inf"), float("nan")], [0.0, 1e-4]),
        ("milestones", [(0,), (-1, 4), (5, 5), (5, 4)], [(), (1,), (4, 5)]),
        ("net", ["cnn", ""], ["mlp", "allconv"]),
        ("weight", [-1.0, float("inf"), float("nan")], [0.0]),
        ("keep", [0.0, 1.5, float("nan")], [1.0]),
        ("noise", [-1.0, float("inf")], [0.0]),
        ("seed", [-1], [0]),
        ("evaluate_every", [0], [1]),
        ("checkpoint_every", [0], [1, None]),
    ],
)
def test_ranges(name, bad, good):
    for value in bad:
        with pytest.raises(BadInput, match=name):
            replace(Settings(), **{name: value})
    for value in good:
        assert getattr(replace(Settings(), **{name: value}), name) == value


def test_the_weight_of_shadows_goes_by_the_net_unless_it_is_given():
    assert Settings().weight == Settings(net="mlp").weight == 1.0
    assert Settings(net="allconv").weight == 0.0
    assert Settings(net="allconv", weight=0.5).weight == 0.5
    assert Settings(weight=0.0).weight == 0.0
    assert [
        one.has_shadows for one in (Settings(weight=0.0), Settings(net="allconv"), replace(ALL_CHANGED))
    ] == [True, False, True]


def test_the_rate_is_divided_by_ten_after_each_drop():
    settings = Settings(lr=0.5, milestones=(3, 5))
    assert [settings.lr_at(step) for step in range(7)] == [0.5, 0.5, 0.5, 0.05, 0.05, 0.005, 0.005]
    assert {Settings(lr=0.5).lr_at(step) for step in (0, 10**9)} == {0.5}


@pytest.fixture
def no_notes_yet(monkeypatch):
    monkeypatch.setattr("obverse.training._settings._noted", set())


@pytest.mark.usefixtures("no_notes_yet")
def test_old_names_still_load_with_one_note(capsys):
    old = {"rate": 0.2, "decay": 0.1, "drops": [3, 5], "batch": 7, "epochs": 2}
    expected = Settings(lr=0.2, weight_decay=0.1, milestones=(3, 5), batch_size=7, epochs=2)
    assert Settings.from_mapping(old, "a.toml") == expected
    said = capsys.readouterr().err
    assert said == (
        "note: old names of settings in a.toml: rate is now lr, decay is now weight_decay, "
        "drops is now milestones, batch is now batch_size\n"
    )
    assert Settings.from_mapping(old, "a.toml") == expected
    assert capsys.readouterr().err == "", "once is enough"
    assert set(expected.to_dict()).isdisjoint(RENAMED), "what is written has today's names"


@pytest.mark.usefixtures("no_notes_yet")
def test_a_setting_by_both_names_or_unknown_is_refused():
    with pytest.raises(BadInput, match=r"either lr or its old name rate in a\.toml; got both"):
        Settings.from_mapping({"rate": 0.1, "lr": 0.1}, "a.toml")
    with pytest.raises(BadInput, match="got 'decay'"):
        GeneratorSettings.from_mapping({"decay": 0.1}, "a.toml")
    with pytest.raises(BadInput, match="lr to be a number"):
        Settings.from_mapping({"rate": "fast"}, "a.toml")


def test_every_setting_of_the_nets_belongs_to_one_of_them():
    mlp, allconv = (set(foreign(Settings(net=net))) for net in ("allconv", "mlp"))
    assert mlp == {"hidden", "dropout", "uniform_bias"}
    assert allconv == {"stem", "widths", "blocks", "norm", "shortcut", "init"}


def test_a_toml_file_gives_settings(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('data = "mnist"\nhidden = [5, 6]\nlr = 1\nnormalize = true\n', encoding="utf-8")
    settings = Settings.from_mapping(read_toml(file), str(file))
    assert settings == Settings(data="mnist", hidden=(5, 6), lr=1, normalize=True)


@pytest.mark.parametrize(
    "content",
    [
        b"epochs = ",
        b"epochs = 1\nepochs = 2\n",
        b"\xff\xfe",
        b"epochs = " + b"9" * 5000,  # Python refuses to convert so many digits, with an error of its own
        b"x = " + b"[" * 100_000,
        b"lr = nan\n",
        b"[epochs]\nmany = 1\n",
    ],
    ids=["cut off", "twice", "not UTF-8", "too many digits", "too deep", "nan", "a table"],
)
def test_a_broken_toml_file_is_refused(tmp_path, content):
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"run\.toml"):
        Settings.from_mapping(read_toml(file), str(file))


def test_a_missing_toml_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file or folder: "):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="TOML"):
        read_toml(tmp_path)
