"""What the run directory of a generator says, its numbers checked. Not for showing it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._core import BadInput
from .._rundir import GeneratorRecord, read_generator_run

OF_VAE = ("test_elbo", "test_reconstruction", "test_kl")
OF_GAME = ("test_gap", "train_gap")
LISTS = ("weights", "critic_weights")
OTHERS = (
    "train_loss",
    "train_reconstruction",
    "train_kl",
    "test_elbo_binarized",
    "critic_gap",
    "penalty",
    "generator_loss",
    "weights_entropy",
    "critic_weights_entropy",
)


def read_generator_results(path: Path) -> GeneratorRecord:
    """The run up to its last evaluation; an error names the first record that is not as `fit` writes it."""
    run = read_generator_run(path)
    needed: tuple[str, ...] = OF_GAME if run.settings.is_game else OF_VAE
    if run.settings.model == "mixture":
        needed += (*LISTS, "weights_entropy", "critic_weights_entropy")
    last = 0
    for number, record in enumerate(run.metrics, start=1):
        problem = _problem(record, needed, run.settings.components)
        if problem:
            raise BadInput(
                f"metrics as `fit` writes them in {path / 'metrics.jsonl'}",
                got=f"{problem} in record {number}",
                do="restore the file, or train again",
            )
        if needed[0] in record:
            last = number
    if not last:
        raise BadInput(
            f"at least one evaluated epoch in {path}", got="none yet", do="resume the run or let it go on"
        )
    return replace(run, metrics=run.metrics[:last])


def _problem(record: Mapping[str, Any], needed: tuple[str, ...], components: int) -> str | None:
    epoch = record.get("epoch")
    if type(epoch) is not int or not 0 <= epoch < 2**31:
        return f"epoch {str(epoch)[:60]!r}"
    if not is_number(record.get("seconds")):
        return f"seconds {str(record.get('seconds'))[:60]!r}"
    if any(name in record for name in needed):
        missing = [name for name in needed if name not in record]
        if missing:
            return f"no {', '.join(missing)}"
    for name in (*OF_VAE, *OF_GAME, *OTHERS):
        value = record.get(name)
        if value is not None and not is_number(value):
            return f"{name} {str(value)[:60]!r}"
        if value is None and name in needed and name in record:
            return f"{name} null"
    for name in LISTS:
        value = record.get(name)
        if value is None and name not in record:
            continue
        if not (isinstance(value, list) and len(value) == components and all(map(is_share, value))):
            return f"{name} {str(value)[:60]!r}"
    return None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1
