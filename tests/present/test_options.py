"""Flags and files: flags win over the file, the file over the defaults, and what is given is what is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from obverse import BadInput
from obverse.present.options import check_choice, check_least, counts, numbers
from obverse.training import Settings, read_run
from obverse.training._settings import setting_names
from training.helpers import ALL_CHANGED, flags


@pytest.fixture
def settings_given(obverse, monkeypatch, tmp_path):
    """The settings that `obverse train` with these words would train with."""
    seen: list[Settings] = []

    class Stop(BadInput):
        pass

    def stop(settings: Settings) -> None:
        seen.append(settings)
        raise Stop("nothing", got="nothing", do="nothing")

    monkeypatch.setattr("obverse.training.ClassifierTask", stop)

    def given(*words: object) -> Settings:
        done = obverse("train", *words)
        assert seen, done
        return seen.pop()

    return given


def test_no_flags_are_the_defaults(settings_given):
    assert settings_given() == Settings()


def test_every_flag_reaches_its_setting(settings_given):
    other = ALL_CHANGED
    assert all(getattr(other, name) != getattr(Settings(), name) for name in setting_names())
    assert settings_given(*flags(other)) == other


@pytest.mark.parametrize(
    ("words", "widths"), [("7", (7,)), ("7,8", (7, 8)), ("7, 8", (7, 8)), ("7,", (7,)), ("", ())]
)
def test_widths(settings_given, words, widths):
    assert settings_given("--hidden", words).hidden == widths


@pytest.mark.parametrize("name", ["stem", "widths", "milestones"])
def test_other_lists(settings_given, obverse, name):
    assert getattr(settings_given(f"--{name}", "7, 8,9"), name) == (7, 8, 9)
    done = obverse("train", f"--{name}", "7,x")
    assert done.code == 2
    assert f"expected --{name} as " in done.err


def test_the_weight_of_shadows_goes_by_the_net(settings_given):
    assert settings_given("--net", "allconv").weight == 0.0
    assert settings_given("--net", "allconv", "--weight", "2").weight == 2.0


def test_flags_win_over_the_file_and_the_file_over_the_defaults(settings_given, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("hidden = [9, 9]\nlr = 0.5\nnormalize = true\nmatch_norm = false\nseed = 5\n")
    given = settings_given("--config", file, "--lr", "0.25", "--no-normalize", "--hidden", "4", "--seed", "0")
    assert given == replace(Settings(), hidden=(4,), lr=0.25, match_norm=False)


def test_flags_and_files_by_old_names_still_work(settings_given, obverse, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("rate = 0.5\nbatch = 7\ndecay = 0.1\n")
    expected = replace(Settings(), lr=0.25, batch_size=7, weight_decay=0.1, milestones=(3, 4))
    assert settings_given("--config", file, "--lr", "0.25", "--milestones", "3,4") == expected
    assert settings_given("--config", file, "--rate", "0.25", "--drops", "3,4") == expected
    done = obverse("train", "--lr", "1", "--rate", "2")
    assert (done.code, "either --lr or --rate; got both" in done.err) == (2, True)
    assert "--rate" not in obverse("train", "--help").out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("lr = ", "TOML in"),
        ("epoch = 3", "did you mean 'epochs'"),
        ("epochs = '3'", "epochs to be a whole number"),
        ("hidden = 16", "hidden to be a list of whole numbers"),
        ("keep = 0", r"keep in (0, 1]"),
        ("[train]\nepochs = 3", "a setting of obverse"),
    ],
)
def test_a_wrong_file_is_one_sentence(obverse, tmp_path, content, said):
    file = tmp_path / "a.toml"
    file.write_text(content)
    done = obverse("train", "--config", file, "--out", tmp_path / "run")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_run_from_a_file(obverse, data, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(f'data = "{data}"\nhidden = [3]\nepochs = 1\nbatch_size = 20\n')
    assert obverse("train", "--config", file, "--no-report", "--out", tmp_path / "run").code == 0
    assert read_run(tmp_path / "run").settings == Settings(
        data=str(data), hidden=(3,), epochs=1, batch_size=20
    )


def test_seeds_are_a_count_or_a_list():
    assert numbers("3", "--seeds") == (0, 1, 2)
    assert numbers("3,", "--seeds") == (3,)
    assert numbers("5, 1,5,0", "--seeds") == (5, 1, 0)
    for wrong in ("", ",", "0", " 0 ", "-1", "1,-2", "1.5", "x"):
        with pytest.raises(BadInput, match="--seeds as a count or a list"):
            numbers(wrong, "--seeds")


@pytest.mark.parametrize(("text", "found"), [("8", (8,)), ("8,16", (8, 16)), (" 8, 16", (8, 16))])
def test_counts_are_a_list(text, found):
    assert counts(text, "--nodes") == found


@pytest.mark.parametrize("text", ["", "0", "8,0", "8,", "x", "1.5"])
def test_what_is_no_list_of_counts_is_refused(text):
    with pytest.raises(BadInput, match=r"^expected --nodes as whole numbers ≥ 1, e\.g\. 8,16; got "):
        counts(text, "--nodes")


def test_a_word_and_a_number_out_of_range_are_refused():
    check_choice("--loss", "square", ("square", "softmax"))
    with pytest.raises(BadInput, match="expected --loss out of square, softmax; got 'fixed'"):
        check_choice("--loss", "fixed", iter(("square", "softmax")))
    check_least("--steps", 0, 0)
    with pytest.raises(BadInput, match="expected --steps ≥ 0; got -1"):
        check_least("--steps", -1, 0)
