"""Settings of generators: taken exactly or refused by name, with defaults that go by the model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from obverse import BadInput
from obverse.training._generators.settings import (
    EVALUATIONS,
    FEWEST_EPOCHS,
    HIDDEN,
    LATENT,
    LR,
    OF_MODELS,
    STEPS,
    GeneratorSettings,
    foreign,
    refuse_foreign,
    settled,
)
from training.generator_helpers import ALL_CHANGED


def test_every_setting_survives_json():
    default = GeneratorSettings()
    assert all(getattr(ALL_CHANGED, name) != getattr(default, name) for name in GeneratorSettings.names())
    assert (
        GeneratorSettings.from_mapping(json.loads(json.dumps(ALL_CHANGED.to_dict())), "a test") == ALL_CHANGED
    )
    assert GeneratorSettings.from_mapping(json.loads(json.dumps(default.to_dict())), "a test") == default


@pytest.mark.parametrize("model", ["vae", "wgan", "mixture"])
def test_sizes_and_rate_go_by_the_model_unless_they_are_given(model):
    usual = GeneratorSettings(model=model)
    assert (usual.hidden, usual.latent, usual.lr) == (HIDDEN[model], LATENT[model], LR[model])
    given = GeneratorSettings(model=model, hidden=(), latent=3, lr=0.5)
    assert (given.hidden, given.latent, given.lr) == ((), 3, 0.5)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("epoch", 3, "did you mean 'epochs'"),
        ("model", "gan", "'vae' or 'wgan' or 'mixture'"),
        ("body", "cnn", "'mlp' or 'conv'"),
        ("decoder", "poisson", "'bernoulli' or 'gaussian'"),
        ("hidden", 16, "a list of whole numbers"),
        ("hidden", None, "a list of whole numbers"),
        ("latent", 2.5, "a whole number"),
        ("latent", None, "a whole number"),
        ("lr", None, "a number"),
        ("binarize", 1, "true or false"),
        ("epochs", "3", "a whole number or nothing"),
        ("penalty", float("nan"), "a number"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(name, value, said):
    with pytest.raises(BadInput, match=said):
        GeneratorSettings.from_mapping({name: value}, "some file")


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("model", ["gan", ""], ["vae", "wgan", "mixture"]),
        ("body", ["cnn"], ["mlp", "conv"]),
        ("decoder", ["poisson"], ["bernoulli", "gaussian"]),
        ("train_size", [0, -1], [1, None]),
        ("validation", [-1], [0, 1]),
        ("hidden", [(0,), (4, -1)], [(1,), ()]),
        ("latent", [0, -1], [1]),
        ("sigma", [0.0, -1.0, float("inf"), float("nan")], [1e-3]),
        ("penalty", [-1.0, float("inf"), float("nan")], [0.0]),
        ("critic_steps", [0], [1]),
        ("components", [0], [1]),
        ("entropy", [-0.1, float("inf"), float("nan")], [0.0]),
        ("epochs", [0], [1, None]),
        ("batch_size", [0], [1]),
        ("lr", [0.0, -1.0, float("inf"), float("nan")], [1e-9]),
        ("seed", [-1], [0]),
        ("evaluate_every", [0], [1, None]),
        ("checkpoint_every", [0], [1, None]),
    ],
)
def test_ranges(name, bad, good):
    for value in bad:
        with pytest.raises(BadInput, match=name):
            replace(GeneratorSettings(), **{name: value})
    for value in good:
        assert getattr(replace(GeneratorSettings(), **{name: value}), name) == value


@pytest.mark.parametrize(
    ("kind", "unseen"),
    [
        ({"model": "vae"}, {"sigma", "penalty", "critic_steps", "components", "entropy"}),
        (
            {"model": "vae", "decoder": "gaussian"},
            {"binarize", "penalty", "critic_steps", "components", "entropy"},
        ),
        ({"model": "wgan"}, {"decoder", "sigma", "binarize", "components", "entropy"}),
        ({"model": "mixture"}, {"decoder", "sigma", "binarize"}),
    ],
)
def test_what_would_change_nothing_is_refused(kind, unseen):
    settings = GeneratorSettings(**kind)
    assert set(foreign(settings)) == unseen
    refuse_foreign(settings)
    for name in OF_MODELS:
        changed = replace(settings, **{name: getattr(ALL_CHANGED, name)})
        if name in unseen:
            with pytest.raises(BadInput, match=f"no {name} for the .*; got {name} "):
                refuse_foreign(changed)
        elif name != "decoder":
            refuse_foreign(changed)


def test_the_number_of_epochs_goes_by_the_number_of_points():
    """So many passes that there are at least STEPS updates, and not a whole pass more."""
    for model, steps in STEPS.items():
        few = settled(GeneratorSettings(model=model, batch_size=100), 1297)
        assert few.epochs is not None
        assert steps <= 13 * few.epochs < steps + 13
        many = settled(GeneratorSettings(model=model, batch_size=100), 10**7)
        assert many.epochs == FEWEST_EPOCHS
    small = settled(GeneratorSettings(epochs=7, batch_size=100), 250)
    assert (small.epochs, small.evaluate_every, small.checkpoint_every) == (7, 1, 3)
    long = settled(GeneratorSettings(epochs=4 * EVALUATIONS, batch_size=100), 250)
    assert (long.evaluate_every, long.checkpoint_every) == (4, 12)
    given = GeneratorSettings(epochs=100, evaluate_every=30, checkpoint_every=2)
    assert settled(given, 250) == given
    assert settled(long, 10**6) == long
