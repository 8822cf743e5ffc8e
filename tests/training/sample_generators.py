"""Small real runs of generators to make pages from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obverse.training._generators.charts import keep_stages
from obverse.training._generators.fit import fit_generator, generator_task
from obverse.training._generators.settings import GeneratorSettings
from obverse.training._rundir import create_generator_run


def generator_run(path: Path, model: Any, **changes: Any) -> Path:
    """Trained for a moment on the embedded digits, with samples along training."""
    given = {"epochs": 3, "train_size": 200, "hidden": (16,), "latent": 4, **changes}
    settings = GeneratorSettings(model=model, **given)
    task = generator_task(settings)
    create_generator_run(path, task.settings, tuple(task.train_x.shape[1:]))
    assert task.settings.epochs is not None
    images = len(task.train_x.shape) == 4
    keep = keep_stages(task.net, task.settings.epochs, path, settings.seed) if images else None
    fit_generator(task, path, on_record=keep)
    return path
