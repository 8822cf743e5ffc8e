"""The experiment with the paper's figures: what is trained, chosen, kept and drawn is what it says."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch

from obverse.data import load
from obverse.data._sources import KNOWN
from obverse.training import ClassifierTask, Settings, fit_classifier

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def experiment(name: str) -> ModuleType:
    """A module of the experiment by name."""
    return import_module(f"experiments.paper.{name}")


TINY = Settings(data="digits", hidden=(40, 30), weight=1.0, lr=0.02, seed=3)


def test_measuring_by_steps_trains_exactly_as_by_epochs(digits):
    runs = experiment("training")
    expected = fit_classifier(ClassifierTask(replace(TINY, epochs=2), digits))
    per_epoch = ClassifierTask(TINY, digits).steps_per_epoch
    record = runs.train(runs.Run("any", TINY, 2 * per_epoch, per_epoch), digits)
    assert [point["step"] for point in record["curve"]] == [0, per_epoch, 2 * per_epoch]
    for point, other in zip(record["curve"], expected, strict=True):
        assert point["points"] == len(digits.test_x)
        for name in ("test_error", "shadow_error", "label_agreement", "recovery_error"):
            assert point[name] == runs.short(other[name])  # the same numbers, five digits of them kept


def test_the_unscaled_shadow_is_the_papers_formula(digits):
    runs, paper = experiment("training"), experiment("run")
    arm = paper.ARMS[paper.UNSCALED]
    run = runs.Run(paper.UNSCALED, replace(TINY, **arm.changes), 4, 2, scale=arm.scale)
    measured = runs.Measured(run, digits)
    for index in range(2):
        measured.step(0, index)  # weights that are no longer the initial ones, whose theory's scale is 1 too
    task, x = measured.task, digits.test_x[:5]
    # An oracle of its own: the paper's W is the transpose of the layer's weight.
    first, second = (task.net.get_submodule(name).weight.detach() for name in ("h1", "h2"))
    h = task.shadow.infer(x, "h2").detach()
    expected = ((h @ second).relu() @ first).relu().reshape(x.shape)
    # Two matrix products in float32: a few units of the seventh digit of the largest entry.
    torch.testing.assert_close(task.loss.twin(x, h), expected, rtol=0, atol=1e-5 * float(expected.max()))
    theory = ClassifierTask(run.settings, digits)
    theory.net.load_state_dict(task.net.state_dict())
    assert float((theory.loss.twin(x, h) - expected).abs().max()) > 1e-3 * float(expected.max())


def test_a_run_is_written_once_and_read_afterwards(digits, tmp_path, monkeypatch, capsys):
    runs = experiment("training")
    file = tmp_path / "deep" / "part.jsonl"
    run = runs.Run("any", TINY, 4, 2, points=50, audits=(4,))
    record = runs.once(run, digits, file)
    assert [point["points"] for point in record["curve"]] == [50, 50, len(digits.test_x)]
    assert ["audit" in point for point in record["curve"]] == [False, False, True]
    assert "any, seed 3" in capsys.readouterr().out
    monkeypatch.setattr(runs, "train", None)
    assert runs.once(run, digits, file) == record
    assert len(file.read_text().splitlines()) == 1
    for other in (
        replace(run, steps=6),
        replace(run, scale=1.0),
        replace(run, settings=replace(TINY, seed=4)),
    ):
        assert other.key not in runs.read(file)


def test_what_diverges_counts_as_guessing(digits, tmp_path):
    runs = experiment("training")
    record = runs.train(runs.Run("any", replace(TINY, lr=1e12), 20, 10), digits)
    assert (record["diverged"], record["test_error"]) == (True, 0.9)
    assert len(record["curve"]) < 3


def test_the_audit_says_how_far_weights_have_moved(digits):
    runs = experiment("training")
    measured = runs.Measured(runs.Run("any", replace(TINY, hidden=(40, 36)), 1, 1, audits=(0, 1)), digits)
    began = {name: weight.clone() for name, weight in measured.task.net.state_dict().items()}
    assert measured.evaluate()["audit"]["h1"]["moved"] == 0
    measured.step(0, 0)
    found = measured.evaluate()["audit"]
    assert set(found) == {"h1", "h2"}  # ten outputs are too few to judge
    now = measured.task.net.state_dict()["h2.weight"]
    expected = torch.linalg.matrix_norm(now - began["h2.weight"]) / torch.linalg.matrix_norm(
        began["h2.weight"]
    )
    assert found["h2"]["moved"] == pytest.approx(float(expected), rel=1e-5)  # float32 sums in another order
    assert found["h2"]["moved"] > 0


@pytest.mark.parametrize(
    ("errors", "start", "best"),
    [
        ({0: 3, 1: 2, 2: 1, 3: 0, 4: 5}, 2, 3),
        ({0: 3, 1: 0, 2: 1, 3: 2, 4: 5}, 2, 1),
        ({0: 0, 1: 1, 2: 2, 3: 3, 4: 4}, 2, 0),
        ({1: 9, 2: 1, 3: 1, 4: 9}, 2, 2),
        ({1: 9, 2: 5, 3: 4, 4: 3}, 2, 4),
    ],
)
def test_the_climb_ends_where_no_neighbour_is_better(errors, start, best):
    climb = experiment("run").climb
    asked = []

    def error(a):
        asked.append(a)
        return errors[a]

    assert climb(error, start, min(errors), max(errors)) == best
    assert {best - 1, best + 1} & set(errors) <= set(asked)


def test_rate_and_weight_are_chosen_in_turn_until_neither_moves():
    alternate = experiment("run").alternate
    # At weight 2^0 the best rate is a = 2; at the better weight 2^−1 it is a = 3.
    table = {(2, 0): 5, (1, 0): 6, (3, 0): 6, (2, -1): 4, (2, 1): 9, (2, -2): 5, (3, -1): 3, (1, -1): 9}
    assert alternate(lambda a, b: table.get((a, b), 9), (-2, 5), (-3, 3)) == (3, -1)
    assert alternate(lambda a, b: abs(a - 3), (-2, 5), (0, 0)) == (3, 0)


def test_rates_are_chosen_on_held_out_points_and_arms_take_what_they_say(monkeypatch, tmp_path):
    paper = experiment("run")
    asked = []

    def once(run, data, file):
        s = run.settings
        asked.append((run.arm, s.validation, s.seed, run.steps, file.name))
        # Best at rate 0.064 and weight 0.5.
        from math import log2

        return {"test_error": abs(log2(s.lr / 0.064)) + (abs(log2(s.weight / 0.5)) if s.weight else 0)}

    monkeypatch.setattr(paper, "once", once)
    part = paper.PARTS["cifar10-500"]
    trials = paper.Trials("cifar10-500", part, None, tmp_path)
    assert trials.chosen(paper.SHADOW) == replace(part.base, lr=0.064, weight=0.5)
    assert set(asked) == {(paper.SHADOW, 10_000, 0, part.tuning_steps, "cifar10-500-tuning.jsonl")}
    assert trials.chosen(paper.CONTROL) == replace(part.base, lr=0.064 * 1.5, weight=0.0)
    assert trials.chosen(paper.OUTPUT) == replace(part.base, lr=0.064, weight=0.5, layer="h3")
    assert trials.chosen(paper.SAMPLING) == replace(part.base, lr=0.064, weight=0.5, keep=0.5)
    assert trials.chosen(paper.BACKPROP) == replace(part.base, lr=0.064)
    wide = paper.PARTS["mnist-5000"]
    unscaled = paper.Trials("mnist-5000", wide, None, tmp_path).chosen(paper.UNSCALED)
    # Its own choice, which at that width stays within the paper's rates.
    assert unscaled == replace(wide.base, lr=0.016, weight=0.5, match_norm=False)
    assert asked[-1] == (paper.UNSCALED, 10_000, 0, wide.tuning_steps, "mnist-5000-tuning.jsonl")
    assert trials.final(paper.SHADOW, 2)["test_error"] == 0
    assert asked[-1] == (paper.SHADOW, 0, 2, part.steps, "cifar10-500.jsonl")


def test_every_part_runs_whole_segments_and_audits_at_measurements():
    paper = experiment("run")
    for part in [*paper.PARTS.values(), *map(paper.reduced, paper.PARTS.values())]:
        assert part.steps % part.every == 0
        assert all(step % part.every == 0 and step <= part.steps for step in part.audits)
        assert part.base.weight == 0
    order = list(paper.plan(["mnist-1000"], [paper.BACKPROP, paper.SHADOW], [0, 1]))
    assert [seed for _, _, seed in order] == [0, 0, 1, 1]
    assert [arm for _, arm, _ in order] == [paper.BACKPROP, paper.SHADOW] * 2


def test_quick_results_never_touch_the_published_ones():
    paper = experiment("run")
    assert paper.FOLDER not in (paper.QUICK_FOLDER.resolve(), *paper.QUICK_FOLDER.resolve().parents)


def small_cifar100(place, monkeypatch):
    """Files of the official binary format with 4 + 2 images: coarse label, fine label, 3,072 levels."""
    official = KNOWN["cifar100"]
    contents = {}
    for file, fine in zip(official.files, ((7, 99, 0, 12), (42, 5)), strict=True):
        levels = torch.randint(0, 256, (len(fine), 3072), generator=torch.Generator().manual_seed(len(fine)))
        contents[file.path] = b"".join(
            bytes([1, label, *row.tolist()]) for label, row in zip(fine, levels, strict=True)
        )
        (place / file.path).parent.mkdir(parents=True, exist_ok=True)
        (place / file.path).write_bytes(contents[file.path])
    files = tuple(replace(file, size=len(contents[file.path])) for file in official.files)
    download = replace(official.downloads[0], files=files)
    monkeypatch.setitem(KNOWN, "cifar100", replace(official, train=4, test=2, downloads=(download,)))


def fake_curve(start):
    """A curve as a part with audits leaves it."""
    layer = dict.fromkeys(
        ("moved", "ks", "kurtosis", "offsets", "distance", "spike_share", "recovery"), 0.1 * start
    )
    layer |= {"recovery_predicted": 0.2, "recovery_ratio": 1.1, "own_recovery": 0.5, "own_ratio": 0.8 + start}
    audit = {name: layer | {"spikes": 3, "verdict": "random-like"} for name in ("h1", "h2")}
    errors = dict.fromkeys(("h1", "h2", "h3"), start)
    return [
        {
            "step": step,
            "train_loss": 1.0,
            "test_error": start / (1 + step),
            "shadow_error": 0.5,
            "label_agreement": 0.9,
            "recovery_error": errors,
            "points": 100,
            "audit": audit,
            "seconds": 1.0,
        }
        for step in (0, 300, 600)
    ]


def test_bands_are_over_the_seeds_and_at_the_steps_that_all_have():
    figures = experiment("figures")
    seeds = {0: fake_curve(0.2), 1: fake_curve(0.4)[:2]}
    found = figures.over_seeds(seeds, lambda point: point["test_error"])
    assert found == {0: [0.2, 0.4], 300: [0.2 / 301, 0.4 / 301]}
    assert figures.over_seeds(seeds, figures.audits("own_ratio", "h2"))[0] == [1.0, pytest.approx(1.2)]


@pytest.fixture
def results(tmp_path):
    """A folder with made-up results of the parts at width 1000 and 500."""
    paper = experiment("run")
    for name in ("mnist-1000", "cifar10-1000", "cifar10-500"):
        part = paper.PARTS[name]
        lines = []
        for arm in part.arms:
            for seed in range(3):
                settings = replace(part.base, **paper.ARMS[arm].changes, seed=seed).to_dict()
                curve = fake_curve(0.3 + 0.01 * seed + 0.02 * len(arm) + 0.001 * (seed * len(arm) % 3))
                record = {"arm": arm, "settings": settings, "steps": 600, "scale": None, "diverged": False}
                lines.append(json.dumps(record | {"test_error": curve[-1]["test_error"], "curve": curve}))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.mark.slow  # draws every figure
def test_figures_come_from_the_files_alone(results):
    figures = experiment("figures")
    drawn = figures.draw_all(results, results / "figures")
    assert [place.stem for place in drawn] == ["paper-figures-3-5", "paper-figures-6-7", "paper-random-like"]
    assert all(place.stat().st_size < 1_000_000 for place in drawn)
    curves = figures.curves_of(results, "mnist-1000")
    for name in ("a", "b"):
        figures.save(figures.row_of_errors(curves, 600), results / f"{name}.svg")
    assert (results / "a.svg").read_bytes() == (results / "b.svg").read_bytes()


def test_tables_say_what_the_files_say(results):
    paper, page = experiment("run"), experiment("page")
    curves = page.curves_of(results, "mnist-1000")
    found = page.at(curves, 600, page.field("test_error"))
    by_hand = [json.loads(line) for line in (results / "mnist-1000.jsonl").read_text().splitlines()]
    ours = {r["settings"]["seed"]: r["test_error"] for r in by_hand if r["arm"] == paper.DROPOUT}
    assert found[paper.DROPOUT] == ours
    plain = {r["settings"]["seed"]: r["test_error"] for r in by_hand if r["arm"] == paper.BACKPROP}
    mean = sum(100 * (ours[seed] - plain[seed]) for seed in range(3)) / 3
    way = "less" if mean < 0 else "more"
    sentence = page.told(curves, paper.DROPOUT, paper.BACKPROP, 600)
    assert sentence.startswith(f"dropout has {abs(mean):.2f} ± ")
    assert f"points {way} error than backprop after 600 steps (3 seeds" in sentence
    assert "was not run" in page.told(curves, paper.OUTPUT, paper.BACKPROP, 600)
    assert f"| {paper.DROPOUT} | {paper.BACKPROP} | {mean:+.2f} ± " in page.paired(
        found, [(paper.DROPOUT, paper.BACKPROP)]
    )


def test_runs_that_diverged_are_named_and_not_averaged(results):
    paper, page = experiment("run"), experiment("page")
    assert page.diverged(results, "mnist-1000") == ""
    lines = (results / "mnist-1000.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        if record["arm"] == paper.DROPOUT and record["settings"]["seed"] > 0:
            record["diverged"] = True
    (results / "mnist-1000.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert page.diverged(results, "mnist-1000").startswith("dropout diverged with 2 of 3 seeds")
    curves = page.curves_of(results, "mnist-1000")
    assert list(curves[paper.DROPOUT]) == [0]
    assert "(1 seed)" in page.told(curves, paper.DROPOUT, paper.BACKPROP, 600)


def test_arms_that_lack_a_seed_are_compared_over_the_others(results):
    paper, page = experiment("run"), experiment("page")
    found = page.at(page.curves_of(results, "mnist-1000"), 600, page.field("test_error"))
    pair = [(paper.DROPOUT, paper.BACKPROP)]
    del found[paper.DROPOUT][1]
    gap = [100 * (found[paper.DROPOUT][seed] - found[paper.BACKPROP][seed]) for seed in (0, 2)]
    assert f"{sum(gap) / 2:+.2f} ± " in page.paired(found, pair)
    del found[paper.DROPOUT][2]
    assert page.paired(found, pair) == "Too few seeds for a paired test."


def test_cifar100_goes_through_the_same_script(tmp_path, monkeypatch, capsys):
    """On small files of the official format, fine labels and all."""
    small_cifar100(tmp_path / "cifar100", monkeypatch)
    paper = experiment("run")
    assert set(paper.BY_NAME_ONLY) <= set(paper.PARTS)
    part = paper.PARTS["cifar100-500"]
    small = replace(
        part, base=replace(part.base, hidden=(8, 8)), steps=2, every=1, tuning_steps=1, held_out=1
    )
    monkeypatch.setitem(paper.PARTS, "cifar100-500", small)
    monkeypatch.setattr(paper, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(
        sys, "argv", ["x", "--data-root", str(tmp_path), "--part", "cifar100-500", "--seed", "0"]
    )
    paper.main()
    lines = (tmp_path / "results" / "cifar100-500.jsonl").read_text().splitlines()
    assert [json.loads(line)["arm"] for line in lines] == list(part.arms)
    assert "cifar100-500" in capsys.readouterr().out


@pytest.mark.slow
def test_the_quick_version_runs_everything_and_draws_it(tmp_path, monkeypatch):
    paper = experiment("run")
    monkeypatch.setattr(paper, "QUICK_FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["x", "--quick"])
    paper.main()
    for name in set(paper.PARTS) - set(paper.BY_NAME_ONLY):
        arms = [json.loads(line)["arm"] for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert arms == [*paper.PARTS[name].arms] * 2
    assert len(list((tmp_path / "figures").iterdir())) == 4
    assert "## Tuning" in experiment("page").text(tmp_path)
