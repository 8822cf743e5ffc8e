"""Points without labels in training: which they are, and what a step makes of them."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from obverse._core.errors import BadInput
from obverse._core.random import use_streams
from obverse.shadow import ShadowLoss
from obverse.training import ClassifierTask, Settings, fit_classifier
from obverse.training._classify import split, unlabelled
from training.helpers import resume, tensor_bytes, tiny_data, train

BASE = Settings(
    hidden=(12, 10), train_size=12, batch_size=5, unlabelled=7, labels="consistency", weight=2.0, denoise=0.5,
    epochs=2, lr=0.01, seed=3,
)  # fmt: skip


def rows(points: torch.Tensor, among: torch.Tensor) -> list[int]:
    flat = among.flatten(1)
    return [int((flat == point.flatten()).all(1).nonzero()[0, 0]) for point in points]


def test_they_are_the_points_that_the_labelled_ones_leave():
    data = tiny_data(60, (6,))
    for settings in (BASE, replace(BASE, balanced=True), replace(BASE, validation=4)):
        x, _, held, _ = split(settings, data)
        more = unlabelled(settings, data)
        parts = [x, more] + ([held] if settings.validation else [])
        found = [row for part in parts for row in rows(part, data.train_x)]
        assert sorted(found) == list(range(len(data.train_x)))


def test_balanced_means_as_many_of_each_class():
    data = tiny_data(60, (6,))
    classes = len(data.classes)
    for size in (classes, 2 * classes, 2 * classes + 1):
        _, y, _, _ = split(replace(BASE, train_size=size, balanced=True), data)
        counts = torch.bincount(y, minlength=classes)
        assert len(y) == size
        assert int(counts.max() - counts.min()) <= 1
    drawn = [split(replace(BASE, balanced=True, seed=seed), data)[0] for seed in (0, 1, 0)]
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_a_step_is_the_loss_of_the_labelled_plus_that_of_the_others():
    """By hand: the same net, the two losses one after the other, plain SGD."""
    settings = replace(BASE, momentum=0.0)
    data = tiny_data(60, (6,))
    task, other = ClassifierTask(settings, data), ClassifierTask(settings, data)
    net, number = other.net, 4
    batch = other._batches.rows(1, 1)
    more = other._more.rows(*divmod(number, len(other._more)))
    assert (len(batch), len(more)) == (5, 7)
    loss = ShadowLoss(other.shadow, 2.0, labels="consistency", denoise=0.5)
    with use_streams(other.streams(number, 0, 5)):
        first = loss(other.train_x[batch], other.train_y[batch])
    with use_streams(other.streams(number, 5, 12)):
        second = loss(other.more_x[more])
    gradients = torch.autograd.grad(first + second, list(net.parameters()))
    expected = [
        weight - 0.01 * gradient for weight, gradient in zip(net.parameters(), gradients, strict=True)
    ]
    assert task.step(1, 1) == pytest.approx((first + second).item(), rel=1e-6)  # float32
    for weight, wanted in zip(task.net.parameters(), expected, strict=True):
        torch.testing.assert_close(weight, wanted)


def test_every_unlabelled_point_is_seen_before_any_comes_again():
    task = ClassifierTask(BASE, tiny_data(60, (6,)))
    count = len(task.more_x)
    seen = torch.cat([task._more.rows(*divmod(step, len(task._more))) for step in range(len(task._more))])
    assert sorted(seen.tolist()) == list(range(count))
    again = task._more.rows(1, 0)
    assert again.tolist() != seen[: len(again)].tolist()


@pytest.mark.slow  # whole trainings
def test_they_help_where_labels_are_few():
    """Two moons of points: with one label a class, consistency under noise finds the rest of each cluster."""
    generator = torch.Generator().manual_seed(0)
    data = tiny_data(60, (6,))
    centres = 3 * F.one_hot(torch.arange(3), 6).float() + 1
    y = torch.arange(300) % 3
    x = centres[y] + 0.5 * torch.rand(300, 6, generator=generator)
    data = replace(data, train_x=x, train_y=y, test_x=x[:90], test_y=y[:90], classes=("a", "b", "c"))
    settings = replace(
        BASE,
        train_size=3,
        balanced=True,
        batch_size=3,
        epochs=150,
        optimizer="adam",
        control="noise",
        noise=0.5,
    )
    assert fit_classifier(ClassifierTask(settings, data))[-1]["test_error"] == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": "given", "denoise": 0.0}, "needs no labels"),
        ({"labels": "given", "weight": 0.0, "denoise": 0.0}, "needs no labels"),
        ({"train_size": None}, "left for unlabelled"),
        ({"train_size": 40}, "left for unlabelled"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, said):
    data = tiny_data(60, (6,))
    assert len(data.train_x) == 40
    with pytest.raises(BadInput, match=said):
        ClassifierTask(replace(BASE, **changes), data)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_run_that_was_cut_off_ends_as_if_it_had_not_been(tmp_path, optimizer, monkeypatch):
    settings, data = replace(BASE, optimizer=optimizer, checkpoint_every=1), tiny_data(60, (6,))
    train(settings, tmp_path / "whole", data)
    real, left = ClassifierTask.step, [4]

    def stops(self, epoch, index):
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("pulled the plug")
        return real(self, epoch, index)

    monkeypatch.setattr(ClassifierTask, "step", stops)
    with pytest.raises(RuntimeError, match="plug"):
        train(settings, tmp_path / "cut", data)
    monkeypatch.setattr(ClassifierTask, "step", real)
    resume(settings, tmp_path / "cut", data)
    assert tensor_bytes(tmp_path / "cut") == tensor_bytes(tmp_path / "whole")
    other = replace(data, train_x=data.train_x.flip(0))
    with pytest.raises(BadInput, match="training points"):
        ClassifierTask(settings, other).restore(ClassifierTask(settings, data).tensors())


def test_with_weight_zero_training_is_plain():
    """So that searches and comparisons have something to compare with."""
    data = tiny_data(60, (6,))
    plain = replace(BASE, weight=0.0, denoise=0.0)
    tasks = [ClassifierTask(plain, data), ClassifierTask(replace(plain, unlabelled=0), data)]
    assert tasks[0].step(0, 0) == tasks[1].step(0, 0)
    for ours, theirs in zip(tasks[0].net.parameters(), tasks[1].net.parameters(), strict=True):
        assert torch.equal(ours, theirs)
