"""The CNN experiment does what its page says: losses, pairing, resuming, tables from the file alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from scipy.stats import ttest_rel

from experiments.cnn import page, training
from experiments.cnn import run as experiment
from obverse.data import Dataset

ROOT = Path(__file__).parents[2]
ROUNDING = 1e-5  # float32 with sums of at most some hundred terms of size 1


@pytest.fixture(scope="module")
def lab():
    """The three modules of the experiment."""
    return SimpleNamespace(page=page, run=experiment, training=training)


@pytest.fixture
def data() -> Dataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(6000, 1, 8, 8, generator=generator)
    y = torch.randint(10, (6000,), generator=generator)
    return Dataset("noise", x[:5800], y[:5800], x[5800:], y[5800:], tuple("0123456789"))


@pytest.fixture
def run(lab):
    return lab.training.Run("noise", 200, "plain", 0.02, seed=3, epochs=2, widths=(2, 3, 4))


def cross_entropy_by_hand(logits: torch.Tensor, targets: list[list[float]]) -> float:
    total = 0.0
    for row, target in zip(logits.tolist(), targets, strict=True):
        normal = math.log(math.fsum(math.exp(value) for value in row))
        total -= math.fsum(share * (value - normal) for value, share in zip(row, target, strict=True))
    return total / len(targets)


def one_hot(label: int) -> list[float]:
    return [float(label == k) for k in range(10)]


def test_mixup_is_the_loss_of_mixed_labels_on_mixed_images(lab, data, run):
    net = lab.training.initial_net(run, data)
    x, y = data.train_x[:20], data.train_y[:20]
    _, share, other = lab.training.mixed(x, 0.7, torch.Generator().manual_seed(5))
    loss = lab.training.mixup_loss(net, x, y, 0.7, torch.Generator().manual_seed(5))
    images, targets = [], []
    for i, j in enumerate(other.tolist()):
        images.append(share * x[i] + (1 - share) * x[j])
        pair = zip(one_hot(int(y[i])), one_hot(int(y[j])), strict=True)
        targets.append([share * a + (1 - share) * b for a, b in pair])
    assert 0 < share < 1
    assert sorted(other.tolist()) == list(range(20))
    assert loss.item() == pytest.approx(
        cross_entropy_by_hand(net(torch.stack(images)), targets), abs=ROUNDING
    )


@pytest.mark.parametrize("alpha", [0.3, 1.0])
@pytest.mark.slow
def test_mixup_draws_its_share_from_the_beta_distribution(lab, alpha):
    generator = torch.Generator().manual_seed(1)
    shares = torch.tensor([lab.training.mixed(torch.zeros(2, 1), alpha, generator)[1] for _ in range(4000)])
    variance = 1 / (4 * (2 * alpha + 1))
    # Five standard errors: of a mean, and of a variance whose kurtosis is below that of a normal law.
    assert shares.mean().item() == pytest.approx(0.5, abs=5 * (variance / 4000) ** 0.5)
    assert shares.var().item() == pytest.approx(variance, rel=5 * (2 / 4000) ** 0.5)


def test_label_smoothing_spreads_a_tenth_over_all_classes(lab, data, run):
    net = lab.training.initial_net(run, data)
    x, y = data.train_x[:20], data.train_y[:20]
    smooth = replace(run, **lab.run.METHODS["label smoothing"])
    loss = lab.training.loss_of(smooth, net, data.input_shape)(x, y)
    targets = [[0.9 * share + 0.1 / 10 for share in one_hot(int(label))] for label in y]
    assert loss.item() == pytest.approx(cross_entropy_by_hand(net(x), targets), abs=ROUNDING)


def test_same_images_twice_are_plain_training_once_the_step_is_normalized(lab, data, run):
    """Why this control needs no runs of its own here."""
    x, y = data.train_x[:50], data.train_y[:50]
    gradients = []
    for change in ({}, {"weight": 4.0, "control": "same"}):
        net = lab.training.initial_net(run, data)
        lab.training.loss_of(replace(run, **change), net, data.input_shape)(x, y).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    torch.testing.assert_close(gradients[0], gradients[1], atol=ROUNDING, rtol=ROUNDING)


def test_noise_is_a_second_batch_of_the_same_norm(lab, data, run):
    net = lab.training.initial_net(run, data)
    x, y = data.train_x[:20], data.train_y[:20]
    noisy = replace(run, weight=3.0, control="noise", noise=0.5)
    loss = lab.training.loss_of(noisy, net, data.input_shape)(x, y)
    seeds = lab.training
    twin = x + 0.5 * torch.empty_like(x).normal_(generator=seeds.derive_generator(run.seed, seeds.STEPS))
    twin *= (x.flatten(1).norm(dim=1) / twin.flatten(1).norm(dim=1)).view(-1, 1, 1, 1)
    targets = [one_hot(int(label)) for label in y]
    parts = [cross_entropy_by_hand(net(images), targets) for images in (x, twin)]
    assert loss.item() == pytest.approx((parts[0] + 3 * parts[1]) / 4, abs=ROUNDING)


@pytest.mark.parametrize(
    "method", ["SHADOW", "SHADOW conv1, weight 4", "SHADOW consistency", "shuffled shadows"]
)
def test_shadow_methods_are_shadow_losses_with_the_step_size_kept(lab, data, run, method):
    change = lab.run.METHODS[method]
    net = lab.training.initial_net(run, data)
    loss = lab.training.loss_of(replace(run, **change), net, data.input_shape)
    assert loss.normalize
    assert (loss.weight, loss.layer) == (change["weight"], change.get("layer", "conv3"))
    assert (loss.control, loss.labels) == (change.get("control"), change.get("targets", "given"))
    loss(data.train_x[:20], data.train_y[:20]).backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in net.parameters())


def test_methods_share_points_and_start_and_held_out_points_are_others(lab, data, run):
    tuning = replace(run, held_out=True)
    x, _, held, _ = lab.training.points(tuning, data)
    again, _, test, _ = lab.training.points(replace(run, mixup=1.0), data)
    assert torch.equal(x, again)
    assert torch.equal(test, data.test_x)
    assert len(held) == lab.training.HELD_OUT
    assert not {row.tobytes() for row in x.numpy()} & {row.tobytes() for row in held.numpy()}
    nets = [lab.training.initial_net(replace(run, dropout=p), data) for p in (0.0, 0.5)]
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_rate_rises_then_falls_to_nothing(lab):
    rates = [lab.training.rate_at(step, 1000, 0.08) for step in range(1000)]
    assert rates[0] == pytest.approx(0.08 / lab.training.WARM_UP)
    assert 0.079 < max(rates) <= 0.08
    assert rates.index(max(rates)) < lab.training.WARM_UP
    assert rates[-1] < 1e-6


def test_training_learns_a_simple_rule(lab, data, run):
    dark = [(labels % 2).view(-1, 1, 1, 1).bool() for labels in (data.train_y, data.test_y)]
    train_x = torch.where(dark[0], 0.3 * data.train_x, data.train_x)
    test_x = torch.where(dark[1], 0.3 * data.test_x, data.test_x)
    easy = replace(data, train_x=train_x, test_x=test_x, train_y=data.train_y % 2, test_y=data.test_y % 2)
    record, _ = lab.training.train(replace(run, labels=1000, epochs=8, widths=(4, 8, 8)), easy)
    assert not record["diverged"]
    assert record["steps"] == 80
    assert record["error"] < 0.2  # guessing errs on half of the 200 test points, ± 0.035


def test_shadows_are_measured_image_by_image(lab, data, run):
    net = lab.training.initial_net(run, data)
    few = replace(data, test_x=data.test_x[:30], test_y=data.test_y[:30])
    found = lab.training.shadow_measures(net, few)
    shadow = lab.training.Shadow(net)
    twins = [net(shadow.of(x[None], match_norm=True)).argmax().item() for x in few.test_x]
    labels = [net(x[None]).argmax().item() for x in few.test_x]
    assert found["shadow_error"] == sum(a != b for a, b in zip(twins, few.test_y.tolist(), strict=True)) / 30
    assert found["label_agreement"] == sum(a == b for a, b in zip(twins, labels, strict=True)) / 30
    assert set(found["recovery_error"]) == {"conv1", "conv2", "conv3", "output"}


def test_finished_runs_are_skipped_and_repeat_to_the_bit(lab, data, run, tmp_path, monkeypatch):
    runs = [run, replace(run, method="mixup", mixup=1.0)]
    assert lab.run.run_all(runs, tmp_path, lambda name: data) == 2
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 4  # a record and weights each
    (tmp_path / f"{runs[1].name}.json").unlink()  # cut off before its record was there
    assert lab.run.run_all(runs, tmp_path, lambda name: data) == 1
    record = json.loads((tmp_path / f"{runs[1].name}.json").read_text())
    old = json.loads(before[f"{runs[1].name}.json"])
    assert record | {"seconds": 0} == old | {"seconds": 0}
    assert (tmp_path / f"{runs[1].name}.safetensors").read_bytes() == before[f"{runs[1].name}.safetensors"]
    monkeypatch.setattr(lab.run, "train", lambda *a: pytest.fail("a finished run was trained again"))
    assert lab.run.run_all(runs, tmp_path, lambda name: data) == 0


def fake(lab, method: str, errors: list[float], **change: object) -> list[dict]:
    base = lab.training.Run("cifar10", 1000, method, 0.04, epochs=50)
    common = {"steps": 500, "seconds": 6.0, "diverged": False, "train_loss": 0.1}
    return [vars(replace(base, seed=s, **change)) | common | {"error": e} for s, e in enumerate(errors)]


def test_tables_come_from_the_file(lab, tmp_path):
    tables = lab.page
    plain, mixup, shadow = [0.60, 0.62, 0.61], [0.57, 0.60, 0.58], [0.61, 0.62, 0.60]
    records = fake(lab, "plain", plain) + fake(lab, "mixup", mixup) + fake(lab, "SHADOW", shadow)
    lines = [json.dumps(record) for record in reversed(records)]  # pairs go by seed, not by order
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    text = tables.gap_table(tables.read(tmp_path), "cifar10", [("mixup", "plain"), ("SHADOW", "plain")])
    p_values = [float(ttest_rel(arm, plain).pvalue) for arm in (mixup, shadow)]
    assert (
        f"| 1,000 | mixup | plain | -2.67 ± 0.33 | {p_values[0]:.4f} | {2 * p_values[0]:.4f} | better |"
        in text
    )
    assert f"| +0.00 ± 0.58 | {p_values[1]:.4f} | 1.0000 | no difference shown |" in text
    assert "| plain | 61.00 ± 0.58 (3) | – | – |" in tables.error_table(records, "cifar10")
    records[0]["error"] = 0.9
    assert "| plain | 71.00 ± 9.50 (3) | – | – |" in tables.error_table(records, "cifar10")


def test_the_choice_looks_at_held_out_points_only(lab):
    tuned = {"held_out": True, "labels": 5000}
    records = fake(lab, "plain", [0.5], **tuned) + fake(lab, "plain", [0.4], rate=0.08, **tuned)
    records += fake(lab, "plain", [0.1], rate=0.02, labels=5000)  # on the test set
    records += fake(lab, "plain", [0.1], rate=0.01, held_out=True)  # the search, with 1,000 labels
    records += fake(lab, "mixup", [0.1], rate=0.16, **tuned)
    assert lab.run.best(records, "cifar10", ("plain",))["rate"] == 0.08
    assert lab.run.best(records, "cifar10", ("plain", "mixup"))["rate"] == 0.16


def test_the_page_is_what_the_published_records_say(lab):
    records = lab.page.read(lab.run.RESULTS)
    page = (ROOT / "docs" / "cnn.md").read_text(encoding="utf-8")
    between = page.partition("<!-- results -->\n")[2].partition("<!-- end of results -->\n")[0]
    assert between == lab.page.text(records)
    assert (ROOT / "docs" / "figures" / "cnn-shadow.png").stat().st_size < 300_000
