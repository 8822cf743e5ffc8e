"""Comparisons: paired, resumable, and their statistics those of the textbooks."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats

from obverse import BadInput
from obverse.training import Settings, compare, create_run, read_comparison, read_plan, summarize
from obverse.training._compare import paired_p_value, run_path, variant_settings
from obverse.training._variants import DEFAULT, FIGURES, VARIANTS
from training.helpers import fake_run, files_below, metrics_without_seconds, tensor_bytes, tiny_npz, train


@pytest.fixture
def base(tmp_path) -> Settings:
    return Settings(data=str(tiny_npz(tmp_path / "data.npz")), hidden=(5, 4), epochs=2, batch_size=20, lr=0.1)


# The variants


def test_the_variants_are_those_of_the_paper_and_the_controls():
    base = Settings(hidden=(30, 20, 10), lr=0.3)
    expected = {
        "backprop": replace(base, weight=0.0),
        "dropout": replace(base, weight=0.0, dropout=0.5),
        "shadow": replace(base, weight=2.0),
        "shadow+dropout": replace(base, weight=2.0, dropout=0.5),
        "shadow-output": replace(base, weight=2.0, layer="h4"),
        "shadow-sampling": replace(base, weight=2.0, keep=0.5),
        "shadow-smoothing": replace(base, weight=2.0, smooth=True),
        "shadow-net-label": replace(base, weight=2.0, labels="net"),
        "shadow-consistency": replace(base, weight=2.0, labels="consistency"),
        "shadow-normalized": replace(base, weight=2.0, normalize=True),
        "uniform-bias": replace(base, weight=0.0, uniform_bias=True),
        "control-same": replace(base, weight=2.0, control="same"),
        "control-noise": replace(base, weight=2.0, control="noise"),
        "control-shuffled": replace(base, weight=2.0, control="shuffled"),
    }
    assert {name: variant_settings(base, name, 2.0) for name in VARIANTS} == expected
    with pytest.raises(BadInput, match=r"a variant out of backprop, .*; got 'shadows'"):
        variant_settings(base, "shadows", 1.0)


def test_the_figures_and_the_default_name_variants():
    assert FIGURES.keys() == {3, 5, 6, 7}
    for names in (*FIGURES.values(), DEFAULT):
        assert set(names) <= set(VARIANTS)
        assert names[0] == "backprop"  # the first is what the others are compared with


# Running


def test_a_comparison_trains_every_variant_with_every_seed_as_a_single_run_would(base, tmp_path):
    out = tmp_path / "out"
    started: list[tuple[str, int]] = []

    def note(name: str, seed: int) -> dict[str, object]:
        started.append((name, seed))
        return {}

    variants = ("backprop", "shadow-output", "control-noise")
    told: list[tuple[int, int, str]] = []
    table = compare(
        base, variants, (4, 1), out, weight=0.5, on_run=note, progress=lambda *one: told.append(one)
    )
    assert told == [(at, 6, f"{name} seed {seed} is done") for at, (name, seed) in enumerate(started, 1)]
    assert started == [(name, seed) for seed in (4, 1) for name in variants]
    assert [(row.variant, row.runs) for row in table.rows] == [(name, 2) for name in variants]
    for name, seed in started:
        train(replace(variant_settings(base, name, 0.5), seed=seed), tmp_path / name / str(seed))
        assert tensor_bytes(tmp_path / name / str(seed)) == tensor_bytes(run_path(out, name, seed))
    plan = read_plan(out)
    assert (plan.base, plan.variants, plan.weight, plan.seeds) == (base, variants, 0.5, (4, 1))
    assert {name: [run.settings.seed for run in runs] for name, runs in read_comparison(out).items()} == {
        name: [4, 1] for name in variants
    }
    assert table == summarize(read_comparison(out))
    assert json.loads(json.dumps(table.to_dict()))["rows"][1]["variant"] == "shadow-output"
    assert str(table).count("\n") == 2


def test_finished_runs_are_not_repeated_and_a_cut_off_one_is_resumed(base, tmp_path):
    out = tmp_path / "out"
    base = replace(base, checkpoint_every=1)

    def crash(name: str, seed: int) -> dict[str, object]:
        def on_step(step: int, total: int, loss: float) -> None:
            if (name, step) == ("shadow", 3):
                raise RuntimeError("crash")

        return {"on_step": on_step}

    with pytest.raises(RuntimeError, match="crash"):
        compare(base, ("backprop", "shadow"), (0, 1), out, on_run=crash)
    first = run_path(out, "backprop", 0) / "model.safetensors"
    before = first.stat().st_mtime_ns
    assert [len(runs) for runs in read_comparison(out).values()] == [1, 0]
    assert [row.variant for row in summarize(read_comparison(out)).rows] == ["backprop"]

    started: list[tuple[str, int]] = []
    steps: list[int] = []

    def note(name: str, seed: int) -> dict[str, object]:
        started.append((name, seed))
        return {"on_step": lambda step, total, loss: steps.append(step)}

    table = compare(base, ("backprop", "shadow"), (0, 1), out, on_run=note)
    assert started == [("shadow", 0), ("backprop", 1), ("shadow", 1)]
    assert steps[0] == 3  # on_step crashed before the checkpoint of step 3
    assert first.stat().st_mtime_ns == before
    whole = compare(base, ("backprop", "shadow"), (0, 1), tmp_path / "whole")
    assert [replace(row, seconds=0) for row in table.rows] == [replace(row, seconds=0) for row in whole.rows]


@pytest.mark.slow
def test_kill_9_in_a_comparison_then_resume(jobs, base, tmp_path):
    names = ("backprop", "shadow+dropout")
    words = [
        "compare",
        "--data",
        base.data,
        "--hidden",
        "5,4",
        "--epochs",
        "2",
        "--batch-size",
        "20",
        "--lr",
        "0.1",
    ]
    words += ["--variants", ",".join(names), "--seeds", "2", "--no-report", "--out", str(tmp_path / "out")]
    again = ["compare", "--resume", str(tmp_path / "out"), "--no-report"]
    done = jobs(
        {"words": words, "kill": ("step", 7)},  # 4 steps a run
        {"words": again, "kill": ("any", 30)},
        {"words": again},
    )
    assert [job["code"] for job in done] == [-9, -9, 0], done
    compare(base, names, (0, 1), tmp_path / "whole")
    for name in names:
        for seed in (0, 1):
            one, other = run_path(tmp_path / "out", name, seed), run_path(tmp_path / "whole", name, seed)
            assert tensor_bytes(one) == tensor_bytes(other)
            assert metrics_without_seconds(one) == metrics_without_seconds(other)
            assert files_below(one) == files_below(other)


def test_other_settings_in_the_same_directory_are_refused(base, tmp_path):
    out = tmp_path / "out"
    compare(base, ("backprop",), (0,), out)
    before = {name: (out / name).read_bytes() for name in files_below(out)}
    for other in (
        lambda: compare(replace(base, lr=0.2), ("backprop",), (0,), out),
        lambda: compare(base, ("backprop", "shadow"), (0,), out),
        lambda: compare(base, ("backprop",), (0, 1), out),
        lambda: compare(base, ("backprop",), (0,), out, weight=2.0),
    ):
        with pytest.raises(BadInput, match=f"got others; .* obverse compare --resume {out}"):
            other()
    assert {name: (out / name).read_bytes() for name in files_below(out)} == before


def test_a_run_of_other_settings_in_its_place_is_refused(base, tmp_path):
    path = run_path(tmp_path / "out", "backprop", 0)
    create_run(path, replace(base, weight=0.0, lr=0.5))
    with pytest.raises(BadInput, match="the settings of backprop with seed 0"):
        compare(base, ("backprop",), (0,), tmp_path / "out")


@pytest.mark.parametrize(
    "wrong", [{"train_size": 10_000}, {"layer": "h9"}, {"data": "none.npz"}, {"lr": -1.0}], ids=str
)
def test_what_cannot_be_trained_leaves_no_directory(base, tmp_path, wrong):
    with pytest.raises(BadInput):
        compare(replace(base, **wrong), ("backprop", "shadow"), (0,), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadInput, match="a variant out of"):
        compare(base, ("backprop", "shadows"), (0,), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_flat_inputs_refuse_smoothing_before_anything_is_written(tmp_path):
    data = str(tiny_npz(tmp_path / "flat.npz", features=(9,)))
    with pytest.raises(BadInput, match="images for smooth"):
        compare(Settings(data=data, hidden=(3,)), ("backprop", "shadow-smoothing"), (0,), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"base": []},
        {"base": {"epoch": 1}},
        {"variants": ["shadows"]},
        {"variants": [["shadow"]]},
        {"variants": "shadow"},
        {"variants": []},
        {"variants": ["shadow", "shadow"]},
        {"seeds": ["0"]},
        {"seeds": [0, 0, 1]},
        {"seeds": 3},
        {"seeds": [-1]},
        {"seeds": [True]},
        {"weight": "1"},
        {"weight": None},
        {"weight": -1},
        {"weight": 10**400},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_plan_that_is_not_understood_is_refused(base, tmp_path, change):
    out = tmp_path / "out"
    out.mkdir()
    good = {
        "format": 1,
        "base": base.to_dict(),
        "variants": ["backprop", "shadow"],
        "weight": 1.0,
        "seeds": [0],
    }
    (out / "comparison.json").write_text(json.dumps(good))
    assert read_plan(out).seeds == (0,)
    (out / "comparison.json").write_text(json.dumps(good | change))
    with pytest.raises(BadInput):
        read_plan(out)


def test_same_and_shadow_differ_from_backprop_and_from_each_other(base, tmp_path):
    names = ("backprop", "shadow", "control-same", "control-noise", "control-shuffled", "shadow-consistency")
    compare(base, names, (0,), tmp_path / "out")
    nets = {name: load_file(run_path(tmp_path / "out", name, 0) / "model.safetensors") for name in names}
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            assert not torch.equal(nets[one]["h1.weight"], nets[other]["h1.weight"]), (one, other)


# Statistics


def test_means_standard_errors_and_the_paired_test_are_scipys(tmp_path):
    random = np.random.default_rng(0)
    seeds = [3, 0, 8, 5, 1]
    table = {name: random.random((5, 3)) for name in ("first", "second", "third")}
    runs = {
        name: [
            fake_run(tmp_path, seed, test_error=a, shadow_error=b, label_agreement=c, seconds=seed)
            for seed, (a, b, c) in zip(seeds, numbers, strict=True)
        ]
        for name, numbers in table.items()
    }
    runs["second"] = runs["second"][::-1]  # pairs are made by seed, not by place
    rows = summarize(runs).rows
    assert [row.variant for row in rows] == list(table)
    for row, numbers in zip(rows, table.values(), strict=True):
        means, errors = numbers.mean(0), stats.sem(numbers, axis=0)
        assert row.runs == 5
        assert (row.test_error, row.shadow_error, row.label_agreement) == pytest.approx(tuple(means))
        assert (row.test_error_se, row.shadow_error_se) == pytest.approx(tuple(errors[:2]))
        assert row.seconds == pytest.approx(np.mean(seeds))
    assert (rows[0].difference, rows[0].difference_se, rows[0].p_value) == (None, None, None)
    for row, name in zip(rows[1:], ("second", "third"), strict=True):
        difference = table[name][:, 0] - table["first"][:, 0]
        assert row.difference == pytest.approx(difference.mean())
        assert row.difference_se == pytest.approx(stats.sem(difference))
        assert row.p_value == pytest.approx(stats.ttest_rel(table[name][:, 0], table["first"][:, 0]).pvalue)


def test_only_seeds_that_both_have_are_compared(tmp_path):
    runs = {
        "first": [fake_run(tmp_path, seed, test_error=error) for seed, error in [(0, 0.5), (1, 0.25)]],
        "second": [fake_run(tmp_path, seed, test_error=error) for seed, error in [(1, 0.75), (2, 0.0)]],
    }
    second = summarize(runs).rows[1]
    assert (second.runs, second.test_error) == (2, 0.375)
    assert (second.difference, second.difference_se, second.p_value) == (0.5, None, None)


def test_one_seed_has_no_standard_error(tmp_path):
    (row,) = summarize({"only": [fake_run(tmp_path, 0, test_error=0.5)], "none yet": []}).rows
    assert (row.runs, row.test_error, row.test_error_se, row.p_value) == (1, 0.5, None, None)


def test_differences_that_are_equal_but_for_rounding_are_nothing_to_test():
    differences = [0.05 - 0.04, 0.06 - 0.05, 0.03 - 0.02]
    assert len(set(differences)) == 3
    assert paired_p_value(differences) is None
    assert paired_p_value([0.0, 0.0]) is None
    assert paired_p_value([0.1]) is None
    assert paired_p_value([]) is None


def test_a_run_without_numbers_is_refused(tmp_path):
    with pytest.raises(BadInput, match="numbers for test_error"):
        summarize({"broken": [fake_run(tmp_path, 0)]})


@pytest.mark.parametrize("change", [{"dropout": 0.2}, {"keep": 0.5}, {"control": "noise"}, {"labels": "net"}])
def test_what_variants_differ_in_is_not_set_for_all_of_them(base, tmp_path, change):
    with pytest.raises(BadInput, match=f"no {next(iter(change))} in the settings that all variants share"):
        compare(replace(base, **change), ("backprop", "shadow"), (0,), tmp_path / "out")
    assert not (tmp_path / "out").exists()
