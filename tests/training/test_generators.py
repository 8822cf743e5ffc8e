"""Generators as tasks: what is logged is what is computed apart, and a stopped run gives the same bits."""

from __future__ import annotations

import json
import math
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from obverse import BadInput
from obverse._core.random import BATCHES, EVALUATION, STEPS, derive_generator
from obverse.generative._mixture import Mixture
from obverse.generative._vae import VAE
from obverse.generative._wgan import WGAN
from obverse.training import Interrupted, fit, read_run
from obverse.training._generators.fit import (
    GameTask,
    VAETask,
    fit_generator,
    generator_task,
    initial_generator,
    load_generator,
)
from obverse.training._generators.settings import GeneratorSettings
from obverse.training._rundir import create_generator_run, create_run, holds_generator, read_generator_run
from obverse.training._settings import Settings
from training.generator_helpers import SMALL, small, tiny_pixels, train
from training.helpers import files_below, metrics_without_seconds, tensor_bytes, tiny_data
from training.sample_generators import generator_run

KINDS = list(SMALL)
MODELS = ["vae", "wgan", "mixture"]


def changed(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


# Steps


def test_a_step_of_the_vae_is_one_of_adam_on_the_bound():
    """Against Adam written out, at its first step: the parameter less rate · sign-like g / (|g| + ε)."""
    data, settings = tiny_pixels(), small("vae")
    task = generator_task(settings, data)
    before = changed(task.net)
    loss = task.step(0, 0)
    rows = torch.randperm(40, generator=derive_generator(3, BATCHES, 0))[:10]
    net = initial_generator(settings, (1, 4, 4))
    assert isinstance(net, VAE)
    bound = net.elbo(data.train_x[rows], derive_generator(3, STEPS, 0))
    expected = -(bound.reconstruction - bound.kl).mean()
    assert loss == pytest.approx(expected.item(), rel=1e-6)  # float32
    expected.backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        step = settings.lr * parameter.grad / (parameter.grad.abs() + 1e-8)
        # float32 rounding of weights of about 1, and of small gradients against ε
        assert torch.allclose(task.net.state_dict()[name], before[name] - step, atol=1e-6)


def test_binarized_pixels_are_new_in_each_step():
    data = tiny_pixels()
    task = generator_task(small("binary", batch_size=40), data)
    seen: list[torch.Tensor] = []
    elbo = task.net.elbo
    task.net.elbo = lambda x, generator: (seen.append(x), elbo(x, generator))[1]
    task.step(0, 0)
    task.step(1, 0)
    assert all(set(x.unique().tolist()) == {0.0, 1.0} for x in seen)
    order = [torch.randperm(40, generator=derive_generator(3, BATCHES, epoch)) for epoch in (0, 1)]
    first, second = (x[order.argsort()] for x, order in zip(seen, order, strict=True))
    assert not torch.equal(first, second)
    # The mean of 2 × 40 × 16 pixels: ≤ ½/√1280 = .014 of standard deviation; four of them.
    assert abs(float(torch.cat(seen).mean() - data.train_x.mean())) < 0.056


@pytest.mark.parametrize("kind", ["wgan", "mixture"])
def test_the_generator_moves_at_every_third_step_and_the_critic_at_all(kind):
    task = generator_task(small(kind), tiny_pixels())
    assert isinstance(task, GameTask)
    players = [list(task.net.critic_parameters()), list(task.net.generator_parameters())]
    moved = []
    for number in range(7):
        before = [[parameter.clone() for parameter in player] for player in players]
        task.step(*divmod(number, task.steps_per_epoch))
        moved.append(
            tuple(
                any(not torch.equal(one, other) for one, other in zip(player, old, strict=True))
                for player, old in zip(players, before, strict=True)
            )
        )
    assert moved == [(True, False), (True, False), (True, True)] * 2 + [(True, False)]
    assert {id(one) for player in players for one in player} == {id(one) for one in task.net.parameters()}


def test_adam_has_no_mean_of_old_gradients_in_a_game():
    betas = [
        optimizer.defaults["betas"] for optimizer in generator_task(small("wgan"), tiny_pixels()).optimizers
    ]
    assert betas == [(0.0, 0.9)] * 2
    (only,) = generator_task(small("vae"), tiny_pixels()).optimizers
    assert only.defaults["betas"] == (0.9, 0.999)


# What is measured


def test_the_bound_that_is_logged_is_the_one_of_the_test_set():
    """Against the formulas written out: cross entropy of pixels, and the Gaussian KL of torch."""
    data = tiny_pixels()
    task = generator_task(small("vae"), data)
    found = task.evaluate()
    net = task.net
    assert isinstance(net, VAE)
    with torch.no_grad():
        mean, log_variance = net.encode(data.test_x)
        noise = torch.randn(mean.shape, generator=derive_generator(3, EVALUATION))
        p = net.decode(mean + (log_variance / 2).exp() * noise)
        logs = data.test_x * p.log() + (1 - data.test_x) * (1 - p).log()
        posterior = torch.distributions.Normal(mean, (log_variance / 2).exp())
        kl = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(1)
    assert found["test_reconstruction"] == pytest.approx(
        float(logs.sum((1, 2, 3)).mean()), rel=1e-5
    )  # float32
    assert found["test_kl"] == pytest.approx(float(kl.mean()), rel=1e-5)
    assert found["test_elbo"] == found["test_reconstruction"] - found["test_kl"]
    assert "train_kl" not in found


def test_the_binarized_bound_stands_beside_the_grey_one_and_is_the_one_of_a_binarized_run():
    grey, binary = (generator_task(small(kind), tiny_pixels()).evaluate() for kind in ("vae", "binary"))
    assert grey["test_elbo_binarized"] == binary["test_elbo"] != grey["test_elbo"]
    assert "test_elbo_binarized" not in binary
    assert "test_elbo_binarized" not in generator_task(small("gaussian"), tiny_pixels()).evaluate()


@pytest.mark.parametrize("kind", ["vae", "wgan"])
def test_parts_of_the_loss_are_means_over_the_epoch(kind):
    task = generator_task(small(kind), tiny_pixels())
    parts: list[dict[str, float]] = []
    add = task.add

    def note(part: str, value: torch.Tensor) -> None:
        parts.append({part: value.item()})
        add(part, value)

    task.add = note
    for number in range(8):
        task.step(*divmod(number, 4))
    found = task.evaluate()
    for name in task.parts:
        values = [one[name] for one in parts if name in one]
        late = values[-1:] if name == "generator_loss" else values[4:]  # it moved in steps 2 and 5
        assert found[name] == pytest.approx(sum(late) / len(late), rel=1e-12)


def test_the_gap_that_is_logged_is_the_critics():
    data = tiny_pixels()
    task = generator_task(small("wgan"), data)
    assert isinstance(task.net, WGAN)
    found = task.evaluate()
    with torch.no_grad():
        made = task.net.critic(task.net.sample(20, derive_generator(3, EVALUATION, 2))).mean()
        for name, x in (("test_gap", data.test_x), ("train_gap", data.train_x[:20])):
            # float32 scores of about 1, their mean in another order
            assert found[name] == pytest.approx(float(task.net.critic(x).mean() - made), abs=1e-5)


def test_a_mixture_logs_its_weights_and_their_entropy():
    data = tiny_pixels()
    task = generator_task(small("mixture"), data)
    assert isinstance(task.net, Mixture)
    with torch.no_grad():
        task.net.generator_logits.copy_(torch.tensor([math.log(3.0), 0.0]))
        task.net.critic_logits.copy_(torch.tensor([0.0, math.log(4.0)]))
    found = task.evaluate()
    assert found["weights"] == pytest.approx([0.75, 0.25], rel=1e-6)  # float32
    assert found["critic_weights"] == pytest.approx([0.2, 0.8], rel=1e-6)
    assert found["weights_entropy"] == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25), rel=1e-6)
    assert found["critic_weights_entropy"] == pytest.approx(
        -0.2 * math.log(0.2) - 0.8 * math.log(0.8), rel=1e-6
    )
    with torch.no_grad():
        made = task.net.sample(20, derive_generator(3, EVALUATION, 2))
        scores = [0.2 * task.net.critics[0](x) + 0.8 * task.net.critics[1](x) for x in (data.test_x, made)]
    assert found["test_gap"] == pytest.approx(float(scores[0].mean() - scores[1].mean()), abs=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_evaluating_more_often_does_not_change_the_training(kind):
    nets = []
    for every in (1, 3):
        task = generator_task(small(kind, evaluate_every=every), tiny_pixels())
        fit_generator(task)
        nets.append(task.model())
    assert all(torch.equal(nets[0][name], nets[1][name]) for name in nets[0])


# Stopped and resumed


def crashing(task: VAETask | GameTask, at: int) -> None:
    step = task.step

    def crash(epoch: int, index: int) -> float:
        if epoch * task.steps_per_epoch + index == at:
            raise RuntimeError("crash")
        return step(epoch, index)

    task.step = crash


def assert_same_run(path: Path, expected: Path) -> None:
    assert tensor_bytes(path) == tensor_bytes(expected)
    assert metrics_without_seconds(path) == metrics_without_seconds(expected)
    assert files_below(path) == files_below(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [1, 2, 7, 9, 15])
def test_a_run_that_crashed_between_steps_gives_the_same_bits(kind, at, tmp_path):
    """Also before the generator of a game has moved for the first time, and in the middle of an epoch."""
    data, settings = tiny_pixels(), small(kind, checkpoint_every=1)
    train(settings, tmp_path / "whole", data)
    task = generator_task(settings, data)
    create_generator_run(tmp_path / "run", task.settings, (1, 4, 4))
    crashing(task, at)
    with pytest.raises(RuntimeError, match="crash"):
        fit_generator(task, tmp_path / "run")
    resumed = generator_task(read_generator_run(tmp_path / "run").settings, data)
    fit_generator(resumed, tmp_path / "run")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("kind", MODELS)
def test_steps_since_the_checkpoint_are_repeated_exactly(kind, tmp_path):
    data, settings = tiny_pixels(), small(kind, checkpoint_every=5)
    train(settings, tmp_path / "whole", data)
    task = generator_task(settings, data)
    create_generator_run(tmp_path / "run", task.settings, (1, 4, 4))
    crashing(task, 14)
    with pytest.raises(RuntimeError, match="crash"):
        fit_generator(task, tmp_path / "run")
    fit_generator(generator_task(settings, data), tmp_path / "run")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize("kind", MODELS)
def test_ctrl_c_waits_for_the_step_saves_and_resumes(kind, tmp_path):
    data, settings = tiny_pixels(), small(kind)
    train(settings, tmp_path / "whole", data)
    task = generator_task(settings, data)
    create_generator_run(tmp_path / "run", task.settings, (1, 4, 4))
    with pytest.raises(Interrupted, match="stopped at step 6 of 16"):
        fit_generator(
            task,
            tmp_path / "run",
            on_step=lambda step, *_: signal.raise_signal(signal.SIGINT) if step == 6 else 0,
        )
    fit_generator(generator_task(settings, data), tmp_path / "run")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@pytest.mark.parametrize(
    "kind", ["wgan", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("vae", "mixture"))]
)
@pytest.mark.slow
def test_kill_9_at_any_write_then_resume_gives_the_same_bits(kind, jobs, tmp_path):
    """In real processes, on the embedded digits: killed with half a file written, and before a rename."""
    words = ["generate", "train", "--model", kind, "--hidden", "6", "--latent", "3", "--epochs", "2"]
    words += ["--train-size", "300", "--checkpoint-every", "2", "--no-report"]
    if kind == "mixture":
        words += ["--components", "2"]
    run, whole = tmp_path / "run", tmp_path / "whole"
    again = {
        "words": ["generate", "train", "--resume", str(run), "--no-report"],
        "or_else": {"unless": str(run / "config.json"), "words": [*words, "--out", str(run)]},
    }
    points = [("write", 5), ("replace", 4), ("fsync", 7)]
    done = jobs(
        {"words": [*words, "--out", str(whole)]}, *({**again, "kill": point} for point in points), again
    )
    assert [one["code"] for one in done][:2] == [0, -9], done
    assert done[-1]["code"] == 0, done
    assert_same_run(run, whole)


def test_the_checkpoint_holds_adams_step_as_a_tensor_and_zeros_for_what_never_moved():
    task = generator_task(small("wgan"), tiny_pixels())
    task.step(0, 0)
    tensors = task.tensors()
    assert tensors["adam.critic.1.weight.step"].item() == 1
    assert tensors["adam.decoder.0.weight.step"].item() == 0
    assert not tensors["adam.decoder.0.weight.exp_avg"].any()
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors.values())
    names = {name for name, _ in task.net.named_parameters()}
    for key in ("step", "exp_avg", "exp_avg_sq"):
        assert {f"adam.{name}.{key}" for name in names} <= tensors.keys()


def test_a_checkpoint_in_which_the_decoder_is_called_generator_is_read():
    task = generator_task(small("wgan"), tiny_pixels())
    task.step(0, 0)
    now = {name: tensor.clone() for name, tensor in task.tensors().items()}
    other = generator_task(small("wgan", seed=9), tiny_pixels())
    other.restore({name.replace("decoder.", "generator."): tensor for name, tensor in now.items()})
    assert other.tensors().keys() == now.keys()
    assert all(torch.equal(tensor, now[name]) for name, tensor in other.tensors().items())


def test_other_data_or_another_net_than_the_run_began_with_is_refused(tmp_path):
    data, settings = tiny_pixels(), small("vae")
    task = generator_task(settings, data)
    create_generator_run(tmp_path, task.settings, (1, 4, 4))
    crashing(task, 7)
    with pytest.raises(RuntimeError, match="crash"):
        fit_generator(task, tmp_path)
    other = replace(data, train_x=data.train_x.flip(0))
    with pytest.raises(BadInput, match="training points that the run began with"):
        fit_generator(generator_task(settings, other), tmp_path)
    with pytest.raises(BadInput, match="a difference in"):
        fit_generator(generator_task(replace(settings, hidden=(9,)), data), tmp_path)
    assert len(fit_generator(generator_task(settings, data), tmp_path)) == 5


# Data


def test_held_out_points_take_the_place_of_the_test_set():
    task = generator_task(small("vae", train_size=30, validation=12), tiny_pixels())
    assert (len(task.train_x), len(task.test_x)) == (18, 12)


def test_pixels_outside_0_and_1_are_refused():
    data = tiny_data()
    for x in (data.train_x - 1, data.train_x + 1):
        with pytest.raises(BadInput, match=r"pixels in \[0, 1\] in tiny"):
            generator_task(small("vae"), replace(data, train_x=x))


def test_flat_inputs_are_generated_too(tmp_path):
    train(small("wgan"), tmp_path, tiny_pixels(features=(5,)))
    net = load_generator(tmp_path)
    assert net.sample(7, torch.Generator().manual_seed(0)).shape == (7, 5)
    with pytest.raises(BadInput, match="conv"):
        generator_task(small("vae", body="conv"), tiny_pixels(features=(5,)))


def test_sizes_that_do_not_fit_into_memory_are_a_sentence():
    with pytest.raises(BadInput, match="fit into memory"):
        initial_generator(small("vae", hidden=(10**15,)), (1, 4, 4))


# Run directories


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_gives_back_its_generator(kind, tmp_path):
    settings = small(kind)
    data = tiny_pixels()
    task = generator_task(settings, data)
    create_generator_run(tmp_path, task.settings, (1, 4, 4))
    with pytest.raises(BadInput, match="resume it with: obverse generate train --resume"):
        load_generator(tmp_path)
    fit_generator(task, tmp_path)
    net = load_generator(tmp_path)
    assert not net.training
    made = net.sample(9, torch.Generator().manual_seed(1))
    assert torch.equal(made, task.net.eval().sample(9, torch.Generator().manual_seed(1)))
    assert made.shape == (9, 1, 4, 4)
    assert made.min() >= 0
    assert made.max() <= 1
    run = read_generator_run(tmp_path)
    assert (run.settings, run.input_shape, run.finished) == (task.settings, (1, 4, 4), True)
    assert run.settings.epochs == 4


def test_a_run_does_not_depend_on_defaults_that_it_does_not_look_at(tmp_path):
    train(small("mixture"), tmp_path, tiny_pixels())
    stored = json.loads((tmp_path / "config.json").read_text())["settings"]
    assert set(stored) == set(GeneratorSettings.names()) - {"decoder", "sigma", "binarize"}


def test_readers_refuse_the_other_kind(tmp_path):
    create_run(tmp_path / "classifier", Settings())
    create_generator_run(tmp_path / "generator", small("vae", evaluate_every=1), (1, 4, 4))
    assert [holds_generator(tmp_path / name) for name in ("classifier", "generator", "none")] == [
        False,
        True,
        False,
    ]
    with pytest.raises(
        BadInput, match=r"a run of a classifier.*; got a run of a generator in .*obverse generate"
    ):
        read_run(tmp_path / "generator")
    for read in (read_generator_run, load_generator):
        with pytest.raises(
            BadInput, match=r"a run of a generator.*; got a run of a classifier in .*obverse sample"
        ):
            read(tmp_path / "classifier")
    assert "kind" not in json.loads((tmp_path / "classifier" / "config.json").read_text())
    with pytest.raises(BadInput, match="resume it with: obverse generate train --resume"):
        create_generator_run(tmp_path / "generator", GeneratorSettings(), (1, 4, 4))
    with pytest.raises(BadInput, match="resume it with: obverse train --resume"):
        create_generator_run(tmp_path / "classifier", GeneratorSettings(), (1, 4, 4))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "diffusion"}, "of the kind 'diffusion'"),
        ({"kind": ["generator"]}, "of the kind"),
        ({"format": 2}, "format 2"),
        ({"input_shape": None}, "an input_shape of one or three sizes"),
        ({"input_shape": [1, 4]}, "an input_shape of one or three sizes"),
        ({"input_shape": [0]}, "an input_shape of one or three sizes"),
        ({"input_shape": [1, 4, True]}, "an input_shape of one or three sizes"),
        ({"input_shape": [1, 4, "4"]}, "an input_shape of one or three sizes"),
        ({"input_shape": [2**13, 2**13, 2**13]}, "an input_shape of one or three sizes"),
        ({"settings": {"model": "vae"}}, "epochs and evaluate_every"),
        ({"settings": {"modle": "vae"}}, "did you mean 'model'"),
    ],
)
def test_a_run_that_is_not_understood_is_refused(tmp_path, changes, said):
    create_generator_run(tmp_path, small("vae", evaluate_every=1), (1, 4, 4))
    config: dict[str, Any] = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(BadInput, match=said):
        read_generator_run(tmp_path)


# That it learns


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_digits_come_out_of_the_box(kind):
    """A linear classifier of real digits is as sure of samples as it may be, and gives every label."""
    from sklearn.linear_model import LogisticRegression

    task = generator_task(GeneratorSettings(model=kind))
    fit_generator(task)
    x = task.net.eval().sample(1000, torch.Generator().manual_seed(0)).flatten(1).numpy()
    from obverse.data import load

    data = load("digits")
    judge = LogisticRegression(max_iter=500).fit(data.train_x.flatten(1).numpy(), data.train_y.numpy())
    sure = judge.predict_proba(x).max(1).mean()
    real = judge.predict_proba(data.test_x.flatten(1).numpy()).max(1).mean()
    assert sure > 0.7 * real
    assert set(judge.predict(x)) == set(range(10))


@pytest.mark.slow
def test_a_short_training_makes_use_of_the_code():
    """The bound passes what a decoder without a code can reach: the cross entropy of the mean image."""
    task = generator_task(GeneratorSettings(epochs=60, hidden=(64,), latent=5, evaluate_every=60))
    records = fit_generator(task)
    p = task.train_x.mean(0).clamp(1e-6, 1 - 1e-6)
    without = (task.test_x * p.log() + (1 - task.test_x) * (1 - p).log()).sum((1, 2, 3)).mean()
    assert records[-1]["test_elbo"] > float(without) > records[0]["test_elbo"]


def test_a_short_game_brings_samples_closer_to_the_data():
    """The mean of samples, far from that of the digits at the start, comes to it."""
    settings = GeneratorSettings(
        model="wgan", epochs=40, hidden=(64,), latent=5, train_size=500, lr=2e-3, evaluate_every=40
    )
    task = generator_task(settings)
    mean = task.train_x.mean(0)
    start = float((task.net.sample(500, torch.Generator().manual_seed(0)).mean(0) - mean).norm())
    fit_generator(task)
    end = float((task.net.sample(500, torch.Generator().manual_seed(0)).mean(0) - mean).norm())
    assert end < start / 3


def test_fit_takes_a_generator_as_any_task():
    assert len(fit(generator_task(small("vae"), tiny_pixels()), 2)) == 3


def test_a_generator_is_lent_after_one_reading_of_its_settings(tmp_path, monkeypatch):
    from obverse.training import _lent, _rundir

    run = generator_run(tmp_path / "run", "mixture")
    read, seen = _rundir.read_generator_run, []
    monkeypatch.setattr(_rundir, "read_generator_run", lambda path: seen.append(path) or read(path))
    monkeypatch.setattr("obverse.training._generators.fit.read_generator_run", _rundir.read_generator_run)
    lent = _lent.open_generator(run)
    assert seen == [run]
    assert lent.data == read(run).settings.data
