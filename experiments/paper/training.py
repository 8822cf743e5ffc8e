"""One training with its curve, as one line of a file. Not for what is trained: see run.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from obverse.data import Dataset
from obverse.training import ClassifierTask, Diverged, Settings, fit
from obverse.weights import audit

from .._lab.result_files import short
from .._lab.trials import key_of

AUDIT_IMAGES = 300  # the test images whose own h an audit sends down and up again


@dataclass(frozen=True)
class Run:
    """What decides the numbers of one curve.

    `scale` is the α of every layer on the way down, None for the theory's; where the norm is matched it
    cancels. The paper's x' = r(W₁ r(W₂ h̃₂)) is scale 1 without matching.
    """

    arm: str
    settings: Settings
    steps: int
    every: int  # steps between two measurements
    points: int | None = None  # evaluation points of a measurement; None: all
    all_at_end: bool = True  # whether the last measurement takes all of them
    audits: tuple[int, ...] = ()  # steps at which the weights are audited
    scale: float | None = None

    @property
    def key(self) -> str:
        """Two runs with the same key have the same numbers."""
        return json.dumps([self.arm, key_of(self.settings), self.steps, self.scale])


class Measured:
    """A classifier as a task of `fit` that is measured every so many steps, not at the end of each epoch."""

    def __init__(self, run: Run, data: Dataset) -> None:
        self.task = ClassifierTask(run.settings, data)
        if run.scale is not None:
            self.task.shadow.scale = run.scale
        self.run, self.done = run, 0
        self.steps_per_epoch = run.every
        self._everything = self.task.test_x, self.task.test_y
        self._began = {name: weight.clone() for name, weight in self.task.net.state_dict().items()}

    def step(self, epoch: int, index: int) -> float:
        number = epoch * self.run.every + index
        self.done = number + 1
        return self.task.step(*divmod(number, self.task.steps_per_epoch))

    def evaluate(self) -> dict[str, Any]:
        run = self.run
        all_of_them = len(self._everything[0])
        at_end = run.all_at_end and self.done == run.steps
        points = all_of_them if run.points is None or at_end else run.points
        self.task.test_x, self.task.test_y = (tensor[:points] for tensor in self._everything)
        record = self.task.evaluate() | {"points": min(points, all_of_them)}
        if self.done in run.audits:
            images = self._everything[0][:AUDIT_IMAGES]
            record["audit"] = audited(self.task.net, images, self._began)
        return record

    def tensors(self) -> dict[str, Tensor]:
        return self.task.tensors()

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.task.restore(tensors)

    def model(self) -> dict[str, Tensor]:
        return self.task.model()


def audited(net: torch.nn.Module, images: Tensor, began: Mapping[str, Tensor]) -> dict[str, Any]:
    """The audit of the layers that are large enough, in the few numbers that say something here.

    recovery: the error of h → x → ĥ for random h with 5 % non-zeros, beside that of the same entries
    shuffled and the closed form for normal ones; own: layer ÷ shuffled for the layer's own h.
    """
    found = {}
    weights = net.state_dict()
    for layer in audit(net, data=images, generator=torch.Generator().manual_seed(0)).layers:
        if layer.entries is None or layer.parts is None or layer.offsets is None:
            continue
        name = f"{layer.name}.weight".replace(".weight.weight", ".weight")
        random = [one for one in layer.reversal if one.source == "random"]
        middle, own = random[len(random) // 2], layer.worst("data")
        found[layer.name.removesuffix(".weight")] = {
            "moved": float((weights[name] - began[name]).norm() / began[name].norm()),
            "ks": layer.entries.ks.value,
            "kurtosis": layer.entries.kurtosis.value,
            "offsets": layer.offsets.ratio.value,
            "distance": None if layer.parts.distance is None else layer.parts.distance.value,
            "spikes": layer.parts.rank,
            "spike_share": None if layer.parts.signal_share is None else layer.parts.signal_share.value,
            "random_share": None if layer.random_share is None else layer.random_share.value,
            "recovery": middle.layer.error.value,
            "recovery_predicted": middle.predicted.error.value,
            "recovery_ratio": middle.ratio.value,
            "own_recovery": None if own is None else own.layer.error.value,
            "own_ratio": None if own is None else own.ratio.value,
            "verdict": layer.verdict,
        }
    return found


def train(run: Run, data: Dataset) -> dict[str, Any]:
    """The run as a record; a curve that diverges ends there, and counts as guessing."""
    torch.set_num_threads(1)
    curve: list[Mapping[str, Any]] = []
    began = perf_counter()
    try:
        fit(Measured(run, data), run.steps // run.every, seed=run.settings.seed, on_record=curve.append)
        diverged = False
    except Diverged:
        diverged = True
    curve = [{key: value for key, value in point.items() if key != "epoch"} for point in curve]
    last = 1 - 1 / len(data.classes) if diverged else curve[-1]["test_error"]
    return {
        "arm": run.arm,
        "settings": replace(run.settings, data_root=None).to_dict(),
        "steps": run.steps,
        "scale": run.scale,
        "diverged": diverged,
        "test_error": short(last),
        "seconds": round(perf_counter() - began, 1),
        "curve": short(curve),
    }


def key_of_record(record: Mapping[str, Any], source: str) -> str:
    settings = Settings.from_mapping(record["settings"], source)
    return Run(record["arm"], settings, record["steps"], 1, scale=record["scale"]).key


def with_settings_of_today(record: dict[str, Any], source: str) -> dict[str, Any]:
    """Settings that came later have their defaults: those were not to be chosen then."""
    return record | {"settings": Settings.from_mapping(record["settings"], source).to_dict()}


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The records of a file by key."""
    if not file.exists():
        return {}
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    return {key_of_record(record, str(file)): with_settings_of_today(record, str(file)) for record in records}


def once(run: Run, data: Dataset, file: Path) -> dict[str, Any]:
    """The record of a run: from the file, or trained now and written there."""
    known = read(file).get(run.key)
    if known is not None:
        return known
    record = train(run, data)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")
    s = run.settings
    print(
        f"{file.stem}: {run.arm}, seed {s.seed}, rate {s.lr:g}, weight {s.weight:g}: "
        f"{100 * record['test_error']:.2f} % after {run.steps} steps, {record['seconds']:.0f} s",
        flush=True,
    )
    return record
