"""Few and wrong labels do what their pages say: losses, pairing, tuning, resuming, tables from the files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from experiments.few_labels import methods
from experiments.few_labels import page as few_page
from experiments.few_labels import run as few_labels
from experiments.label_noise import page as noise_page
from experiments.label_noise import run as label_noise
from obverse._core.errors import BadInput
from obverse.data import Dataset, load
from obverse.nets import relu_mlp
from obverse.shadow import Shadow, ShadowLoss

ROOT = Path(__file__).parents[2]
ROUNDING = 1e-5  # float32, sums of at most some hundred terms of size 1
CHANCE = 5


@pytest.fixture(scope="module")
def lab() -> Any:
    """The modules of both experiments."""
    return SimpleNamespace(
        methods=methods, few=few_labels, noise=label_noise, few_page=few_page, noise_page=noise_page
    )


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


@pytest.fixture
def batch(digits: Dataset) -> tuple[Tensor, Tensor]:
    return digits.train_x[:30], digits.train_y[:30]


def small_net(dropout: float = 0.0) -> nn.Sequential:
    return relu_mlp((1, 8, 8), (40, 30), 10, dropout=dropout, generator=torch.Generator().manual_seed(1))


def loss_of(
    lab: Any, method: str, strength: float | None, net: nn.Module
) -> Callable[[Tensor, Tensor], Tensor]:
    generator, numbers = torch.Generator().manual_seed(CHANCE), np.random.default_rng(CHANCE)
    return lab.methods.batch_loss(method, strength, net, (1, 8, 8), 10, generator, numbers)


# The oracles: plain formulas on the weight matrices, without obverse.


def forward(net: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    h1 = (x.flatten(1) @ net.h1.weight.T + net.h1.bias).clamp(min=0)
    h2 = (h1 @ net.h2.weight.T + net.h2.bias).clamp(min=0)
    return h2, h2 @ net.h3.weight.T + net.h3.bias


def with_norm_of(made: Tensor, x: Tensor) -> Tensor:
    flat = made.flatten(1)
    return (flat / flat.norm(dim=1, keepdim=True) * x.flatten(1).norm(dim=1, keepdim=True)).reshape(x.shape)


def shadow_of(net: Any, x: Tensor, like: Tensor) -> Tensor:
    down = (forward(net, x)[0] @ net.h2.weight).clamp(min=0)
    return with_norm_of((down @ net.h1.weight).clamp(min=0), like).detach()


def noise_on(x: Tensor, std: float) -> Tensor:
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(CHANCE))
    return with_norm_of(x + std * noise, x)


def entropy(net: Any, x: Tensor, y: Tensor) -> Tensor:
    return -forward(net, x)[1].log_softmax(-1)[torch.arange(len(y)), y].mean()


def divergence(net: Any, x: Tensor, twin: Tensor) -> Tensor:
    target, guess = forward(net, x)[1].detach().softmax(-1), forward(net, twin)[1].softmax(-1)
    return (target * (target / guess).log()).sum(1).mean()


def expected(method: str, net: Any, x: Tensor, y: Tensor) -> Tensor:
    real = entropy(net, x, y)
    if method == "SHADOW":
        return (real + 4 * entropy(net, shadow_of(net, x, x), y)) / 5
    if method == "SHADOW consistency":
        return (real + 4 * divergence(net, x, shadow_of(net, x, x))) / 5
    if method == "noise":
        return (real + 4 * entropy(net, noise_on(x, 0.5), y)) / 5
    if method == "noise consistency":
        return (real + 4 * divergence(net, x, noise_on(x, 0.5))) / 5
    if method == "noise + SHADOW":
        noisy = noise_on(x, 0.5)
        return (real + 2 * entropy(net, noisy, y) + 2 * entropy(net, shadow_of(net, noisy, x), y)) / 5
    if method == "label smoothing":
        return 0.7 * real + 0.3 * -forward(net, x)[1].log_softmax(-1).mean()
    if method == "mixup":
        share = np.random.default_rng(CHANCE).beta(1.0, 1.0)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(CHANCE))
        blend = share * x + (1 - share) * x[order]
        return share * entropy(net, blend, y) + (1 - share) * entropy(net, blend, y[order])
    return real


STRENGTHS = {"plain": None, "noise": 0.5, "noise consistency": 4.0, "noise + SHADOW": 0.5, "mixup": 1.0}
STRENGTHS |= {"SHADOW": 4.0, "SHADOW consistency": 4.0, "label smoothing": 0.3, "denoising pretraining": 0.5}


@pytest.mark.parametrize("method", STRENGTHS)
def test_losses_and_gradients_are_the_formulas(lab: Any, method: str, batch: tuple[Tensor, Tensor]) -> None:
    net = small_net()
    ours = loss_of(lab, method, STRENGTHS[method], net)(*batch)
    theirs = expected(method, net, *batch)
    torch.testing.assert_close(ours, theirs, rtol=ROUNDING, atol=ROUNDING)
    parameters = list(net.parameters())
    for mine, other in zip(
        torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True
    ):
        torch.testing.assert_close(mine, other, rtol=ROUNDING, atol=ROUNDING)


def test_the_same_x_twice_is_plain_training_once_divided(batch: tuple[Tensor, Tensor]) -> None:
    """Why the page has no row for that control: (L + wL)/(1 + w) = L."""
    net = small_net()
    grads = []
    for options in ({"weight": 0.0}, {"weight": 4.0, "control": "same", "normalize": True}):
        grads.append(torch.autograd.grad(ShadowLoss(net, **options)(*batch), list(net.parameters())))
    for plain, twice in zip(*grads, strict=True):
        torch.testing.assert_close(plain, twice, rtol=ROUNDING, atol=ROUNDING)


def test_shuffled_shadows_are_not_shadows(lab: Any, batch: tuple[Tensor, Tensor]) -> None:
    net = small_net()
    shuffled, real = (loss_of(lab, name, 1.0, net)(*batch) for name in ("shuffled shadows", "SHADOW"))
    assert abs(float(shuffled.detach() - real.detach())) > 100 * ROUNDING


def test_fitted_shadows_are_those_of_a_shadow_fitted_on_the_batch(
    lab: Any, batch: tuple[Tensor, Tensor]
) -> None:
    net, (x, y) = small_net(), batch
    shadow = Shadow(net, reverse="fitted")
    shadow.calibrate(x)
    twin = with_norm_of(shadow.of(x), x)
    real, made = entropy(net, x, y), entropy(net, twin, y)
    found = loss_of(lab, "fitted", 4.0, net)(x, y)
    torch.testing.assert_close(found, (real + 4 * made) / 5, rtol=ROUNDING, atol=ROUNDING)
    found = loss_of(lab, "fitted consistency", 4.0, net)(x, y)
    wanted = (real + 4 * divergence(net, x, twin)) / 5
    torch.testing.assert_close(found, wanted, rtol=ROUNDING, atol=ROUNDING)
    other = loss_of(lab, "fitted, shuffled weights", 4.0, net)(x, y)
    assert abs(float(other.detach() - (real + 4 * made).detach() / 5)) > 100 * ROUNDING


def test_only_the_methods_with_dropout_drop(lab: Any) -> None:
    rates = {m: lab.methods.dropout_of(m, 0.2) for m in lab.methods.METHODS}
    assert {m: r for m, r in rates.items() if r} == {"dropout": 0.2, "SHADOW + dropout": 0.5}
    trial = lab.few.final_trials(lab.few.QUICK, lab.few.QUICK.cells[0], "dropout", (0.1, 0.2))
    net = lab.few.initial(trial[0], load("digits"))
    assert [module.p for module in net.modules() if isinstance(module, nn.Dropout)] == [0.2, 0.2]


def test_pretraining_learns_to_give_back_what_was_hidden(lab: Any, digits: Dataset) -> None:
    net, x = small_net(), digits.train_x[:200]
    before = [parameter.detach().clone() for parameter in net.parameters()]
    made = lab.methods.pretrained(net, x, 0.5, torch.Generator().manual_seed(0))
    for old, now in zip(before, net.parameters(), strict=True):
        assert torch.equal(old, now.detach())  # the net it was given stays
    assert torch.equal(made.h3.weight, net.h3.weight)

    def wrong(each: Any) -> float:
        """Of clean inputs, by the best offset: the tied decoder's own is thrown away."""
        with torch.no_grad():
            h = (x.flatten(1) @ each.h1.weight.T + each.h1.bias).clamp(min=0)
            gap = h @ each.h1.weight - x.flatten(1)
            return float((gap - gap.mean(0)).square().sum() / x.square().sum())

    assert wrong(made) < wrong(net) / 2


def test_labelled_points_are_balanced_nested_and_never_held_out(lab: Any, digits: Dataset) -> None:
    draw = lab.few.labelled
    (few, held), (many, again) = draw(digits, 50, 300, 3), draw(digits, 200, 300, 3)
    assert torch.bincount(digits.train_y[many]).tolist() == [20] * 10
    assert set(few.tolist()) < set(many.tolist())
    assert len(set(many.tolist())) == 200
    assert torch.equal(held, again)
    assert torch.equal(held, draw(digits, 50, 300, 4)[1])
    assert len(held) == 300
    assert not set(many.tolist()) & set(held.tolist())
    assert set(few.tolist()) != set(draw(digits, 50, 300, 4)[0].tolist())


def test_everyone_has_six_settings_in_the_same_range(lab: Any) -> None:
    few = lab.few
    for data in ("mnist", "cifar10"):
        plain = [rate for rate, _ in few.grid("plain", data)]
        for method in lab.methods.EVERY:
            grid = few.grid(method, data)
            assert len(set(grid)) == 6
            assert {rate for rate, _ in grid} <= set(plain)


def tiny(lab: Any) -> tuple[Any, Any]:
    methods = ("plain", "noise", "dropout", "denoising pretraining")
    cell = replace(lab.few.QUICK.cells[0], steps=4, methods=methods)
    return replace(lab.few.QUICK, cells=(cell,), width=20), cell


def without_time(file: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


def test_a_cell_is_tuned_paired_and_resumed(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = lab.few
    monkeypatch.setattr(lab.methods, "PRETRAINING_STEPS", 3)
    plan, cell = tiny(lab)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    few.run_cell(plan, cell, whole, None)
    tuning, final = without_time(whole / "tuning.jsonl"), without_time(whole / "final.jsonl")
    assert len(tuning) == 4 * 6
    assert [(r["seed"], r["method"]) for r in final] == [(s, m) for s in plan.seeds for m in cell.methods]
    for method in cell.methods:
        best = min((r for r in tuning if r["method"] == method), key=lambda r: r["error"])
        for record in final:
            if record["method"] == method:
                assert (record["rate"], record["strength"]) == (best["rate"], best["strength"])

    # Cut off in the middle of a line, then continued: the same numbers, none of them measured again.
    lines = (whole / "tuning.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (parts / "tuning.jsonl").write_text("".join(lines[:20]) + lines[20][:30], encoding="utf-8")
    measured: list[Any] = []

    def counted(trial: Any, data: Dataset) -> dict[str, Any]:
        measured.append(trial)
        result: dict[str, Any] = run(trial, data)
        return result

    run = few.run_trial
    few._kept.clear()
    monkeypatch.setattr(few, "run_trial", counted)
    few.run_cell(plan, cell, parts, None)
    assert len(measured) == 4 + 8
    assert without_time(parts / "tuning.jsonl") == tuning
    assert without_time(parts / "final.jsonl") == final


def test_what_diverges_counts_as_guessing(lab: Any, digits: Dataset) -> None:
    few = lab.few
    plan, cell = tiny(lab)
    (trial, *_) = few.final_trials(plan, replace(cell, steps=30), "plain", (1e6, None))
    record = few.run_trial(trial, digits)
    assert record["error"] == pytest.approx(0.9)
    json.dumps(record, allow_nan=False)


def noisy_trial(lab: Any, **change: Any) -> Any:
    noise = lab.noise
    plan = replace(noise.QUICK, width=20, epochs=3, held_out=400)
    return replace(noise.final_trials(plan, "40% flipped", "plain", (0.1, None))[0], **change)


def test_wrong_labels_are_as_many_as_said_and_the_same_for_every_method(lab: Any, digits: Dataset) -> None:
    noise, trial = lab.noise, noisy_trial(lab)
    rows, held = noise.points(trial, digits)
    assert (len(rows), len(held)) == (500, 400)
    assert not set(rows.tolist()) & set(held.tolist())
    y, held_y = (noise.mistaken(trial, digits, each, {}, k) for k, each in ((1, rows), (2, held)))
    assert int((y != digits.train_y[rows]).sum()) == 200
    assert int((held_y != digits.train_y[held]).sum()) == 160
    other = replace(trial, method="SHADOW", rate=0.04, strength=4.0)
    assert torch.equal(noise.mistaken(other, digits, rows, {}, 1), y)
    human = {"worse_label": torch.arange(len(digits.train_y)) % 10}
    assert torch.equal(
        noise.mistaken(replace(trial, mistakes="worse_label"), digits, rows, human, 1),
        human["worse_label"][rows],
    )


def test_a_run_with_wrong_labels_reports_what_it_says(
    lab: Any, digits: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, trial = lab.noise, noisy_trial(lab)
    kept: list[nn.Sequential] = []

    def keep(*arguments: Any) -> nn.Sequential:
        kept.append(initial(*arguments))
        return kept[-1]

    initial = noise.initial
    monkeypatch.setattr(noise, "initial", keep)
    record = noise.run_trial(trial, digits, {})
    assert len(record["test_error"]) == len(record["held_out_error"]) == 3
    assert record["error"] == record["test_error"][-1]
    assert record["wrong"] == pytest.approx(0.4)

    (net,) = kept
    rows, held = noise.points(trial, digits)
    y, held_y = (noise.mistaken(trial, digits, each, {}, k) for k, each in ((1, rows), (2, held)))
    answers, truth = forward(net, digits.train_x[rows])[1].argmax(1), digits.train_y[rows]
    pairs = list(zip(answers.tolist(), y.tolist(), truth.tolist(), strict=True))
    wrong = [(a, given, true) for a, given, true in pairs if given != true]
    # Five digits are kept in the file.
    assert record["memorized"] == pytest.approx(sum(a == given for a, given, _ in wrong) / 200, abs=1e-5)
    assert record["seen_through"] == pytest.approx(sum(a == true for a, _, true in wrong) / 200, abs=1e-5)
    on_held = forward(net, digits.train_x[held])[1].argmax(1)
    assert record["held_out_error"][-1] == pytest.approx(float((on_held != held_y).double().mean()), abs=1e-5)

    tuning = noise.run_trial(replace(trial, tuning=True), digits, {})
    assert tuning["error"] == record["held_out_error"][-1]  # judged by wrong labels
    assert tuning["test_error"] == []


def test_the_best_epoch_is_the_one_a_user_sees(lab: Any) -> None:
    record = {"held_out_error": [0.5, 0.3, 0.4, 0.3], "test_error": [0.2, 0.15, 0.1, 0.05]}
    assert lab.noise.best_epoch(record) == 1


def test_human_labels_must_be_of_these_images(lab: Any, digits: Dataset, tmp_path: Path) -> None:
    clean = digits.train_y.numpy()
    file = tmp_path / "CIFAR-10_human.pt"
    torch.save({"clean_label": clean, "aggre_label": clean, "worse_label": (clean + 1) % 10}, file)
    found = lab.noise.human_labels(file, digits)
    assert torch.equal(found["worse_label"], (digits.train_y + 1) % 10)
    torch.save({"clean_label": clean[::-1].copy(), "aggre_label": clean, "worse_label": clean}, file)
    with pytest.raises(BadInput, match="in their order"):
        lab.noise.human_labels(file, digits)


def test_pages_come_from_the_files(lab: Any, tmp_path: Path) -> None:
    """Made-up results: SHADOW clearly worse than plain, noise clearly better, dropout the same."""
    few, noise, page = lab.few, lab.noise, lab.few_page
    methods = ("plain", "SHADOW", "noise", "dropout", "mixup")
    cell = replace(few.QUICK.cells[0], methods=methods)
    plan = replace(few.QUICK, cells=(cell,), seeds=tuple(range(5)), longer=(), fitted=())
    shift = {"plain": 0.0, "SHADOW": 0.02, "noise": -0.03, "dropout": 0.0, "mixup": 0.0}
    jitter = (0.001, -0.001, 0.002, 0.0, -0.002)

    def made(trial: Any, data: None = None) -> dict[str, Any]:
        error = 0.2 + 0.01 * trial.rate if trial.tuning else 0.2 + 0.01 * trial.seed + shift[trial.method]
        if not trial.tuning and trial.method != "plain":
            error += jitter[trial.seed] * (-1 if trial.method == "noise" else 1)
        curve = {"held_out_error": [0.5, error], "test_error": [0.25, error]}
        shares = {"memorized": 0.1, "seen_through": 0.8, "seconds": 1.0}
        return few.asdict(trial) | {"error": error} | curve | shares

    tuning = [t for m in methods for t in few.tuning_trials(plan, cell, m)]
    few.run_missing(tuning, tmp_path / "tuning.jsonl", made)
    best = {m: few.choose(plan, cell, m, few.read(tmp_path / "tuning.jsonl")) for m in methods}
    assert best["plain"] == (0.005, None)
    assert best["SHADOW"] == (0.01, 1.0)
    final = [t for m in methods for t in few.final_trials(plan, cell, m, best[m])]
    few.run_missing(final[:-1], tmp_path / "final.jsonl", made)  # the last seed of mixup is missing
    found = page.few_results(plan, tmp_path)
    text = page.few_page(plan, found, {}, {}, "figures/few-labels.svg")
    assert "| SHADOW | plain | 0 | 1 | 0 | +2.00 to +2.00 |" in text
    assert "| noise | plain | 1 | 0 | 0 | -3.00 to -3.00 |" in text
    assert "| dropout | plain | 0 | 0 | 1 |" in text
    assert "SHADOW is worse than noise by 5.00 points." in text
    assert "| plain | 22.00 ± 0.71 |" in text  # 20 to 24: their standard deviation is √2.5, over √5
    assert "Planned and not complete: Digits, 8×8, 50 labels, 30 steps: mixup." in text
    assert "## Longer" not in text
    longer = page.few_page(replace(plan, cells=(), longer=(cell,)), {}, found, {}, "figures/few-labels.svg")
    assert "## Longer" in longer
    assert "| SHADOW | 24.00 ± 0.67 (0.01\\*, 1) |" in longer  # 22.1, 22.9, 24.2, 25, 25.8
    assert "SHADOW is worse than plain by 2.00 points." in longer
    assert "0.005\\*" in text
    page.draw_few(plan, found, tmp_path / "figures" / "few-labels.svg")
    assert (tmp_path / "figures" / "few-labels.svg").stat().st_size < 1_000_000

    names = ("fitted", "fitted consistency")  # 1.5 points better than plain, and as good as noise consistency
    shift |= {"fitted": -0.015, "fitted consistency": -0.015}
    fit = replace(cell, methods=names)
    few.run_missing(
        [t for m in names for t in few.tuning_trials(plan, fit, m)], tmp_path / "tuning.jsonl", made
    )
    best = {m: few.choose(plan, fit, m, few.read(tmp_path / "tuning.jsonl")) for m in names}
    few.run_missing(
        [t for m in names for t in few.final_trials(plan, fit, m, best[m])], tmp_path / "final.jsonl", made
    )
    fitted = page.few_results(replace(plan, cells=(fit,)), tmp_path)
    text = page.few_page(replace(plan, fitted=(fit,)), found, {}, fitted, "figures/few-labels.svg")
    assert "## Shadows by the fitted reverse" in text
    assert "| fitted | plain | 1 | 0 | 0 | -1.50 to -1.50 |" in text
    assert "| fitted | noise | 0 | 1 | 0 | +1.50 to +1.50 |" in text
    assert "| fitted consistency | fitted | 0 | 0 | 1 | +0.00 to +0.00 |" in text
    assert "mixup | fitted" not in text.split("## Shadows by the fitted")[1].split("##")[0]

    noisy = replace(noise.QUICK, seeds=tuple(range(5)), epochs=2, mistakes=("20% flipped",))
    folder = tmp_path / "noise"
    folder.mkdir()
    for method in ("plain", "SHADOW"):
        few.run_missing(noise.tuning_trials(noisy, "20% flipped", method), folder / "tuning.jsonl", made)
        setting = noise.choose(
            noisy, "20% flipped", method, few.read(folder / "tuning.jsonl", noise.NoisyTrial)
        )
        few.run_missing(
            noise.final_trials(noisy, "20% flipped", method, setting), folder / "final.jsonl", made
        )
    plans = {noisy: lab.noise_page.noise_results(noisy, folder)}
    text = lab.noise_page.noise_page(plans, "figures/label-noise.svg")
    assert "SHADOW is worse than plain by 2.00 points." in text
    assert noise.NOT_RUN in text
    lab.noise_page.draw_noise(plans, tmp_path / "figures" / "label-noise.svg")
    assert (tmp_path / "figures" / "label-noise.svg").exists()
