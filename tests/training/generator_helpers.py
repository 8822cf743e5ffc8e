"""What the tests of generators share: settings that take a moment, and runs of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obverse.data import Dataset
from obverse.training._generators.fit import fit_generator, generator_task
from obverse.training._generators.settings import GeneratorSettings
from obverse.training._rundir import create_generator_run

# Settings none of which is the default, to be carried and read: no model takes them all.
ALL_CHANGED = GeneratorSettings(
    model="mixture",
    data="mnist",
    data_root="somewhere",
    train_size=10,
    validation=2,
    body="conv",
    hidden=(3, 2, 1),
    latent=7,
    decoder="gaussian",
    sigma=0.25,
    binarize=True,
    penalty=3.0,
    critic_steps=2,
    components=3,
    entropy=0.5,
    epochs=2,
    batch_size=3,
    lr=1e-2,
    seed=9,
    evaluate_every=4,
    checkpoint_every=7,
)
SMALL: dict[str, dict[str, Any]] = {
    "vae": {"model": "vae", "hidden": (8,), "latent": 3},
    "binary": {"model": "vae", "hidden": (8,), "latent": 3, "binarize": True},
    "gaussian": {"model": "vae", "hidden": (8,), "latent": 3, "decoder": "gaussian"},
    "wgan": {"model": "wgan", "hidden": (8,), "latent": 3, "critic_steps": 3},
    "mixture": {"model": "mixture", "hidden": (6,), "latent": 3, "critic_steps": 3, "components": 2},
}


def small(kind: str, **changes: Any) -> GeneratorSettings:
    """4 epochs of 4 steps on `tiny_pixels`; the generator of a game moves in the middle of epochs."""
    return GeneratorSettings(**{**SMALL[kind], "epochs": 4, "batch_size": 10, "seed": 3, **changes})


def tiny_pixels(**kind: Any) -> Dataset:
    """40 training and 20 test images of 4 × 4 in [0, 1]."""
    from dataclasses import replace

    from training.helpers import tiny_data

    data = tiny_data(**kind)
    return replace(data, train_x=data.train_x.clamp(0, 1), test_x=data.test_x.clamp(0, 1))


def train(settings: GeneratorSettings, path: Path, data: Dataset | None = None) -> list[dict[str, Any]]:
    """What `obverse generate train` does, in this process."""
    task = generator_task(settings, data)
    create_generator_run(path, task.settings, tuple(task.train_x.shape[1:]))
    return fit_generator(task, path)
