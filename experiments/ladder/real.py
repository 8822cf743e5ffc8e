"""Do real nets behave like the summarization ladder? Which of their layers, when, and with how many events?

    python -m experiments.ladder.real [--out FOLDER]      (half an hour, one thread)

A locally connected net on digits and on MNIST, with weights of its own in every window or shared ones,
without and with batch norm. Events of a region are k-means clusters of the pixels it sees, those of the top
are the labels. Before training, early and late: how much of the true gradient step ΔW events explain, level
by level, beside the control where events are dealt to the images at random, on the clustered images and on
held-out ones.

Two further questions at 8 events. `top`: what if the top's event is the label together with the net's answer?
`activations`: what if events are clusters of what the net's own nodes do in a region?

Writes one file a net and seed, as it is done; those that are there are not measured again. Then summary.json:
means over the seeds.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

import torch
from torch import Tensor

from obverse._core.files import write_text
from obverse._core.threads import one_thread
from obverse.data import Dataset, load
from obverse.ladder._agreement import Agreement, agreements
from obverse.ladder._cluster import event_teacher, find_centres, k_means, nearest
from obverse.ladder._compare import compare_pass
from obverse.ladder._local_net import fitting_windows, initial_local, settle, train_local
from obverse.ladder._measure import measure_net
from obverse.ladder._passes import propagate
from obverse.ladder._real import net_graph, net_student, patches, shared_edges
from obverse.ladder.results import LevelFound
from obverse.nets._local import LocalNet

RESULTS = Path(__file__).parent / "results" / "real"
EVENTS = (2, 4, 8, 16, 32)
USUAL = 8
IMAGES = 2000
RATE = 0.05
MESSAGES = ("forward", "backward", "weight", "recursive")


@dataclass(frozen=True)
class Setting:
    """One net; it is measured after each of `epochs`."""

    data: str
    shared: bool
    norm: Literal["before"] | None
    seed: int
    epochs: tuple[int, ...]

    @property
    def net(self) -> str:
        return f"{self.data}-{'shared' if self.shared else 'unshared'}{'-norm' if self.norm else ''}"


def settings() -> list[Setting]:
    found = []
    norms: tuple[Literal["before"] | None, ...] = (None, "before")
    for shared, norm in product((False, True), norms):
        found += [Setting("digits", shared, norm, seed, (0, 1, 5, 20, 60)) for seed in range(5)]
        found += [
            Setting("mnist", shared, norm, seed, (0, 1, 10)) for seed in range(3 if norm is None else 1)
        ]
    return found


def short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def columns(levels: Sequence[LevelFound]) -> dict[str, list[float | None]]:
    """Shares explained and gaps, a number for each level from the pixels up."""
    shares = {name: [short(getattr(one.explained, name)) for one in levels] for name in MESSAGES}
    return shares | {
        "broadness": [short(one.gaps.broadness) for one in levels],
        "decorrelation": [short(max(one.decorrelation, one.decorrelation_back)) for one in levels],
        "fourth": [short(one.gaps.fourth) for one in levels],
        "gap": [short(one.gaps.weight) for one in levels],
    }


def told(by_level: Mapping[int, Agreement]) -> dict[str, list[float | None]]:
    """The shares alone."""
    return {name: [short(getattr(one, name).explained) for one in by_level.values()] for name in MESSAGES}


def finer(net: LocalNet, images: tuple[Tensor, Tensor], held_out: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """With 8 events: label and answer as the top's event; and clusters of activations."""
    graph = net_graph(net)
    student, shared, classes = net_student(net, graph), shared_edges(net, graph), net.output.out_features
    centres = find_centres(images[0], graph, USUAL)
    own: dict[str, Tensor] = {}
    found: dict[str, Any] = {}
    for where, (x, y) in {"clustered": images, "held out": held_out}.items():
        lowest = patches(x, graph)
        teacher = event_teacher(x, y, classes, graph, centres)
        seen = propagate(teacher, student, lowest)
        with torch.no_grad():
            answer = net(x).argmax(1)
        both = replace(
            teacher,
            events={**teacher.events, graph.top: y * classes + answer},
            sizes={**teacher.sizes, graph.top: classes**2},
        )
        targets = student.targets.repeat_interleave(classes, 0)
        compared = compare_pass(both, replace(student, targets=targets), seen, lowest)
        found[f"top, {where}"] = told(agreements(compared, both.model, shared)[1])
        inner = [name for name in student.inner if name != graph.top]
        if not own:
            own = {name: k_means(seen.active[name], USUAL) for name in inner}
        events = {name: nearest(seen.active[name], own[name]) for name in inner}
        sizes = {name: len(own[name]) for name in inner}
        for name in graph.lowest:  # a patch has the event of the window above it
            (window,) = graph.parents[name]
            events[name], sizes[name] = events[window], sizes[window]
        active = replace(teacher, events={**events, graph.top: y}, sizes={**sizes, graph.top: classes})
        compared = compare_pass(active, student, seen, lowest)
        found[f"activations, {where}"] = told(agreements(compared, active.model, shared)[1])
    return found


def measured(setting: Setting, data: Dataset) -> dict[str, Any]:
    """The net of a setting after each of its numbers of epochs."""
    windows = fitting_windows(*data.input_shape[1:])
    nodes = tuple(8 * 2**at for at in range(len(windows)))
    net = initial_local(data, windows, nodes, shared=setting.shared, norm=setting.norm, seed=setting.seed)
    order = torch.Generator().manual_seed(setting.seed)
    own, others = (
        torch.randperm(len(labels), generator=order)[:IMAGES] for labels in (data.train_y, data.test_y)
    )
    images = data.train_x[own], data.train_y[own]
    held_out = data.test_x[others], data.test_y[others]
    stages: list[dict[str, Any]] = []

    def on_record(record: Mapping[str, Any]) -> None:
        """After each epoch, and before the first."""
        if record["epoch"] not in setting.epochs:
            return
        now = copy.deepcopy(net)
        if record["epoch"] == 0:
            settle(now, images[0])
        now.eval()
        found = measure_net(now, images, held_out, events=USUAL, sweep=EVENTS, seed=setting.seed)
        stages.append(
            {
                "epochs": record["epoch"],
                "accuracy": short(found.accuracy),
                "measured": [
                    {
                        "images": one.images,
                        "shuffled": one.shuffled,
                        "events": one.events,
                        "loss": short(one.loss),
                        "reformulated_loss": short(one.reformulated_loss),
                        **columns(one.levels),
                    }
                    for one in found.measured
                ],
                "finer": finer(now, images, held_out),
            }
        )

    on_record({"epoch": 0})
    train_local(net, data, epochs=max(setting.epochs), lr=RATE, seed=setting.seed, on_record=on_record)
    return {"setting": asdict(setting), "windows": windows, "nodes": nodes, "stages": stages}


def summary(folder: Path) -> dict[str, Any]:
    """Means and standard deviations over the seeds, a number for each level."""
    values: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    accuracies: dict[tuple[Any, ...], list[float]] = {}
    for path in sorted(folder.glob("*-[0-9].json")):
        found = json.loads(path.read_text())
        net = Setting(**found["setting"]).net
        for stage in found["stages"]:
            accuracies.setdefault((net, stage["epochs"]), []).append(stage["accuracy"])
            for one in stage["measured"]:
                kind = "dealt at random" if one["shuffled"] else "pixels"
                key = (net, stage["epochs"], one["images"], kind, one["events"])
                values.setdefault(key, []).append(one)
            for name, one in stage["finer"].items():
                kind, where = name.split(", ")
                values.setdefault((net, stage["epochs"], where, kind, USUAL), []).append(one)
    names = ("net", "epochs", "images", "kind", "events")
    return {
        "accuracy": [
            dict(zip(names, key, strict=False)) | {"seeds": len(group), "mean": short(mean(group))}
            for key, group in accuracies.items()
        ],
        "explained": [
            dict(zip(names, key, strict=True))
            | {"seeds": len(group)}
            | {message: averaged([one[message] for one in group]) for message in MESSAGES}
            for key, group in values.items()
        ],
    }


def averaged(seeds: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    """(mean, standard deviation) of each level; None where no seed has anything to explain, or but one."""
    found = []
    for level in zip(*seeds, strict=True):
        known = [value for value in level if value is not None]
        spread = short(stdev(known)) if len(known) > 1 else None
        found.append([short(mean(known)) if known else None, spread])
    return found


def measure_all(out: Path = RESULTS, only: str = "") -> None:
    """Of the settings whose name begins with `only`."""
    out.mkdir(parents=True, exist_ok=True)
    known: dict[str, Dataset] = {}
    for setting in settings():
        path = out / f"{setting.net}-{setting.seed}.json"
        if path.exists() or not setting.net.startswith(only):
            continue
        if setting.data not in known:
            known[setting.data] = load(setting.data)
        with one_thread():
            found = measured(setting, known[setting.data])
        write_text(path, json.dumps(found) + "\n")
        print(path.name, [stage["accuracy"] for stage in found["stages"]], flush=True)
    write_text(out / "summary.json", json.dumps(summary(out)) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--only", default="", help="settings whose name begins so, e.g. digits or mnist-shared"
    )
    measure_all(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
