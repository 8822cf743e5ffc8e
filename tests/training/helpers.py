"""What the tests of training and of the command line share: tiny data, real processes, what a run left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from obverse.data import Dataset
from obverse.training import ClassifierTask, RunRecord, Settings, create_run, fit

# One thread, as in this process: the bits of a sum depend on the number of threads.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
CRASH = Path(__file__).with_name("crash.py")
SEVERAL = Path(__file__).with_name("several.py")
# Settings none of which is the default, to be carried and read: no net takes them all.
ALL_CHANGED = Settings(
    data="mnist",
    data_root="somewhere",
    train_size=10,
    balanced=True,
    validation=2,
    augment=True,
    net="allconv",
    hidden=(3, 2, 1),
    dropout=0.5,
    uniform_bias=True,
    stem=(4, 5, 2),
    widths=(8, 9),
    blocks=3,
    norm=True,
    shortcut=False,
    init="he",
    epochs=2,
    batch_size=3,
    unlabelled=5,
    optimizer="adam",
    lr=1e-3,
    momentum=0.0,
    weight_decay=0.5,
    milestones=(3, 5),
    weight=0.25,
    layer="h1",
    keep=0.5,
    smooth=True,
    match_norm=False,
    labels="consistency",
    normalize=True,
    control="shuffled",
    noise=0.125,
    denoise=0.75,
    device="cpu",
    precision="bf16",
    seed=9,
    evaluate_every=4,
    checkpoint_every=7,
)


def obverse(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "obverse", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT | environment,
    )


class Crasher:
    """Command lines in forked processes that crash where they are told to (see crash.py), or in several at
    once that train together (see several.py)."""

    def __init__(self, script: Path = CRASH) -> None:
        self.script = script
        self.process: subprocess.Popen[str] | None = None

    def __call__(self, *todo: Mapping[str, Any]) -> list[Any]:
        """{"code": exit code, negative for a signal, "output": both streams} of each job, or of each of its
        processes."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(self.script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=ENVIRONMENT,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        results = []
        for job in todo:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            results.append(json.loads(self.process.stdout.readline()))
        return results

    def close(self) -> None:
        if self.process is not None:
            with self.process:
                self.process.kill()


def flags(settings: Settings) -> list[str]:
    """The settings as flags of `obverse train`."""
    words: list[str] = []
    for name, value in settings.to_dict().items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]
    return words


def train(settings: Settings, path: Path, data: Dataset | None = None) -> list[dict[str, Any]]:
    """What `obverse train` does, in this process."""
    create_run(path, settings)
    return resume(settings, path, data)


def resume(settings: Settings, path: Path, data: Dataset | None = None) -> list[dict[str, Any]]:
    return fit(
        ClassifierTask(settings, data),
        settings.epochs,
        seed=settings.seed,
        run=path,
        evaluate_every=settings.evaluate_every,
        checkpoint_every=settings.checkpoint_every,
    )


def tensor_bytes(path: Path) -> tuple[bytes, bytes]:
    """The final weights and the last checkpoint, as they lie on disk."""
    (last,) = (path / "checkpoint").glob("*.safetensors")
    return (path / "model.safetensors").read_bytes(), last.read_bytes()


def metrics_without_seconds(path: Path) -> list[dict[str, Any]]:
    lines = (path / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


def files_below(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def tiny_data(
    points: int = 60, features: Sequence[int] = (1, 4, 4), classes: int = 3, seed: int = 7
) -> Dataset:
    """Well separated classes: a random image each, plus noise."""
    random = np.random.default_rng(seed)
    centres = random.random((classes, *features))
    y = np.arange(points) % classes
    x = np.clip(centres[y] + 0.1 * random.standard_normal((points, *features)), 0, None).astype(np.float32)
    cut = points * 2 // 3
    tensors = [torch.from_numpy(part) for part in (x[:cut], y[:cut], x[cut:], y[cut:])]
    return Dataset("tiny", *tensors, tuple(map(str, range(classes))))  # type: ignore[call-arg]


def tiny_npz(path: Path, **kind: Any) -> Path:
    data = tiny_data(**kind)
    arrays = {name: getattr(data, name).numpy() for name in ("train_x", "train_y", "test_x", "test_y")}
    np.savez(path, **arrays)
    return path


def fake_run(path: Path, seed: int, *, seconds: float = 1.0, **final: float) -> RunRecord:
    """A finished run as `summarize` sees it, with these final numbers."""
    start = {"epoch": 0, "seconds": 0.0}
    record = {"epoch": 1, "shadow_error": 0.0, "label_agreement": 1.0, "seconds": seconds, **final}
    return RunRecord(path, Settings(seed=seed), {}, (start, record))
