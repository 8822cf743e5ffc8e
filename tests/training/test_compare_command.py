"""`obverse compare`: the table, and a directory to go on with."""

from __future__ import annotations

import itertools
import re
import sys

import pytest

from obverse.training import Comparison, Interrupted, read_comparison, read_plan, summarize
from obverse.training._compare import Row
from obverse.training._variants import DEFAULT, FIGURES
from obverse.training.command._compare import print_table
from training.helpers import tiny_npz


@pytest.fixture
def words(small) -> list[str]:
    return ["compare", *small, "--epochs", "1"]


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def lines(text: str) -> list[list[str]]:
    """The cells of the table: what stands between the rule and the first empty line."""
    below = text.split("─\n", 1)[1] if "─\n" in text else text.split("─ \n", 1)[1]
    return [cells(line) for line in itertools.takewhile(str.strip, below.splitlines())]


def test_the_table_says_what_the_runs_say(obverse, words, tmp_path):
    done = obverse(*words, "--variants", "backprop,shadow", "--seeds", "3,1")
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip().endswith(f"runs: {tmp_path / 'run'}")
    rows = summarize(read_comparison(tmp_path / "run")).rows
    table = lines(done.out)
    for shown, row in zip(table, rows, strict=True):
        assert shown[:3] == [
            row.variant,
            "2",
            f"{100 * row.test_error:.2f} ± {100 * (row.test_error_se or 0):.2f}",
        ]
        assert shown[4] == f"{100 * row.label_agreement:.2f}"
    assert table[0][5:] == ["–", "–"]
    assert "minus backprop" in done.out
    assert read_plan(tmp_path / "run").seeds == (3, 1)


def test_numbers_that_do_not_exist_are_dashes(capsys):
    print_table(Comparison((Row("only", 1, 0.5, None, 0.25, None, 1.0, None, None, None, 1.0),)))
    (found,) = lines(capsys.readouterr().out)
    assert found == ["only", "1", "50.00", "25.00", "100.00"], "columns of dashes alone are left out"


def test_allconv_is_compared_with_shadows_of_weight_one(obverse, tmp_path):
    data = tiny_npz(tmp_path / "images.npz", features=(3, 8, 8))
    words = ["--net", "allconv", "--data", data, "--stem", "3,3,1", "--widths", "4", "--blocks", "1"]
    more = ["--epochs", "1", "--variants", "backprop,shadow", "--seeds", "2", "--no-report"]
    done = obverse("compare", *words, *more, "--out", tmp_path / "run")
    assert (done.code, done.err) == (0, "")
    assert read_plan(tmp_path / "run").weight == 1.0
    plain, shadow = lines(done.out)
    assert plain[3:5] == ["–", "–"]
    assert "–" not in shadow[3:5]


def test_an_empty_table_can_be_printed(capsys):
    print_table(Comparison(()))
    assert "variant" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "variants"),
    [
        ([], DEFAULT),
        (["--figure", "5"], FIGURES[5]),
        (["--variants", "shadow, dropout,shadow"], ("shadow", "dropout")),
    ],
)
def test_which_variants(obverse, words, tmp_path, more, variants):
    assert obverse(*words, *more, "--seeds", "1").code == 0
    assert read_plan(tmp_path / "run").variants == variants


def test_resume_finishes_what_was_cut_off_and_refuses_other_flags(obverse, words, tmp_path, monkeypatch):
    def stop(*args: object, **keywords: object) -> None:
        raise Interrupted(1, 2, tmp_path / "run" / "runs" / "backprop" / "seed-0")

    # By way of sys.modules: obverse.training.compare is also the name of the function.
    monkeypatch.setattr(sys.modules["obverse.training._compare"], "fit_classifier", stop)
    done = obverse(*words, "--seeds", "2", "--figure", "5")
    assert done.code == 130
    assert done.err.splitlines()[0] == f"resume with: obverse compare --resume {tmp_path / 'run'}"
    assert done.err.splitlines()[1].startswith("obverse: stopped at step 1 of 2; saved in ")
    monkeypatch.undo()
    again = ["compare", "--resume", str(tmp_path / "run"), "--no-report"]
    for more in (
        ["--seeds", "2"],
        ["--lr", "0.1"],
        ["--weight", "0"],
        ["--figure", "5"],
        ["--variants", "shadow"],
        ["--seed", "0"],
        ["--quick"],
    ):
        done = obverse(*again, *more)
        assert done.code == 2
        assert "--json alone: a comparison keeps its settings" in done.err
    assert obverse(*again).code == 0
    assert [len(runs) for runs in read_comparison(tmp_path / "run").values()] == [2, 2]


def test_other_settings_in_the_same_directory_are_refused(obverse, words, tmp_path):
    assert obverse(*words, "--seeds", "1", "--variants", "backprop").code == 0
    done = obverse(*words, "--seeds", "2", "--variants", "backprop")
    assert done.code == 2
    assert f"obverse compare --resume {tmp_path / 'run'}" in done.err
    assert obverse(*words, "--seeds", "1", "--variants", "backprop").code == 0  # the same: nothing to do


def test_the_weight_of_a_settings_file_counts_and_a_flag_wins(obverse, words, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("weight = 0.25\n")
    more = ["--config", str(file), "--variants", "backprop,shadow", "--seeds", "1"]
    assert obverse(*words, *more).code == 0
    runs = read_comparison(tmp_path / "run")
    assert [runs[name][0].settings.weight for name in runs] == [0.0, 0.25]
    assert obverse(*words[:-2], *more, "--weight", "4", "--out", tmp_path / "other").code == 0
    assert read_plan(tmp_path / "other").weight == 4


@pytest.mark.parametrize(("line", "do"), [("seed = 3", "use --seed"), ("control = 'noise'", "control-noise")])
def test_what_a_comparison_decides_itself_is_refused_in_a_settings_file(obverse, words, tmp_path, line, do):
    file = tmp_path / "a.toml"
    file.write_text(line)
    done = obverse(*words, "--config", file)
    assert done.code == 2
    assert do in done.err
    assert not (tmp_path / "run").exists()


def test_the_page_of_a_comparison(obverse, words, tmp_path):
    words = [word for word in words if word != "--no-report"]
    done = obverse(*words, "--variants", "backprop,shadow", "--seeds", "1")
    assert (done.code, done.err) == (0, "")
    assert re.search(rf"page: {tmp_path}/run/report\.html$", done.out.strip())
