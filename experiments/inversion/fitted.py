"""The fitted reverse beside the optimizer: the table of run.py again, with what h contains.

    python -m experiments.inversion.fitted --data-root DIR                  (DIR/mnist and DIR/cifar10)
    python -m experiments.inversion.fitted --data-root DIR --seconds 300  (that long; call it again to go on)

On the nets, layers and images of run.py: one pass of the fitted reverse, some refinement steps from there,
and its controls. The optimizer's results are those of run.py; its first iterations are run again beside: they
tell whether the nets are the same ones, and how long an iteration takes here and now. Where the nets are
others (trained on another machine), all its iterations are run again. Times are compared within this run.
Every layer is written down once it is measured. Results in results/fitted.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from statistics import median
from time import perf_counter
from typing import Any

import torch

from obverse._core.files import read_json
from obverse.shadow import Shadow
from obverse.shadow._controls import Shuffled
from obverse.shadow._survey import estimate_norms, untrained

from .._lab.machine import machine
from .._lab.places import RUNS
from .._lab.result_files import measure
from .run import FOLDER, quality
from .sides import Method, Plan, alternate, features_of, once, optimizer
from .trained_nets import RECIPES, Trained, load_trained, test_error

FILE = FOLDER / "fitted.json"
CLOCK = 25  # iterations of the optimizer that are run again
SAME = 0.01  # its recovery error after these may differ by so much of itself, or the net is another one


@dataclass(frozen=True)
class FittedPlan:
    """Images, batches and calibration are those of run.py."""

    refine: tuple[int, ...] = (1, 2, 5, 10, 20, 40)
    singles: int = 7
    single_steps: tuple[int, ...] = (2, 10, 40)


class Fitted:
    """The fitted reverse of a net, of its shuffled copy and of an untrained one, on the same inputs."""

    def __init__(self, trained: Trained, plan: Plan) -> None:
        some = trained.data.train_x[: plan.calibration]
        fresh = untrained(trained.net, plan.seed)
        assert fresh is not None
        nets = {
            "fitted": trained.net,
            "fitted, shuffled weights": estimate_norms(Shuffled(trained.net, plan.seed).refresh(), some),
            "fitted, untrained": estimate_norms(fresh, some),
        }
        self.shadows = {name: Shadow(net, reverse="fitted") for name, net in nets.items()}
        self.transpose = Shadow(trained.net)
        for shadow in (*self.shadows.values(), self.transpose):
            shadow.calibrate(some)


def methods(
    fitted: Fitted,
    trained: Trained,
    layer: str,
    settings: dict[str, Any],
    marks: tuple[int, ...],
    steps: Sequence[int],
    plan: Plan,
) -> dict[str, Method]:
    def control(shadow: Shadow) -> Method:
        return once(lambda x: shadow.of(x, layer), repetitions=5)

    def refined(count: int) -> Method:
        return once(lambda x: fitted.shadows["fitted"].of(x, layer, refine=count), count)

    features = features_of(trained.net, layer)
    return {
        "shadow": control(fitted.transpose),
        **{name: control(shadow) for name, shadow in fitted.shadows.items()},
        **{f"refine {count}": refined(count) for count in steps},
        "optimizer": optimizer(features, marks, settings, plan.seed),
    }


def measure_layer(trained: Trained, fitted: Fitted, layer: str, stored: dict[str, Any]) -> dict[str, Any]:
    plan, ours = Plan(), FittedPlan()
    began = perf_counter()
    way = fitted.shadows["fitted"].fitted(layer)
    fit_seconds = perf_counter() - began
    x = trained.data.test_x[: plan.images]
    rows, images = [], {"original": x}
    settings = stored["settings"]
    clock = optimizer(features_of(trained.net, layer), (CLOCK,), settings, plan.seed)
    again = quality(trained, layer, x, torch.cat([clock(part)[CLOCK][1] for part in x.split(plan.batch)]))
    before = next(r for r in stored["rows"] if (r["method"], r["steps"]) == ("optimizer", CLOCK))
    same = abs(again["error"] / before["error"] - 1) < SAME
    marks = (CLOCK,) if same else plan.iterations
    sides = methods(fitted, trained, layer, settings, marks, ours.refine, plan)
    for name, batches in alternate(sides, list(x.split(plan.batch))).items():
        for steps in batches[0]:
            twin = torch.cat([one[steps][1] for one in batches])
            seconds = median(one[steps][0] / len(one[steps][1]) for one in batches)
            rows.append(
                {"method": name, "steps": steps, "seconds": seconds} | quality(trained, layer, x, twin)
            )
            images[name] = twin
    single = {}
    few = {name: sides[name] for name in ("fitted", *(f"refine {k}" for k in ours.single_steps), "optimizer")}
    for name, runs in alternate(few, list(x[: ours.singles].split(1))).items():
        last = max(runs[0])
        single[name] = median(one[last][0] for one in runs)
    pictures = {f"{name} 0": images[name] for name in fitted.shadows}
    pictures["refined 10"] = images["refine 10"]
    keep_fitted(trained.name, layer, images["original"], pictures)
    return {
        "rows": rows,
        "single": single,
        "iterations": marks[-1],
        "same_net": same,
        "fit_seconds": fit_seconds,
        "fits": len(way.steps),
    }


def keep_fitted(name: str, layer: str, original: torch.Tensor, images: dict[str, torch.Tensor]) -> None:
    """The first ten images, for the picture of the page."""
    from safetensors.torch import save_file

    place = RUNS / "inversion" / f"{name}-{layer}-fitted.safetensors"
    place.parent.mkdir(parents=True, exist_ok=True)
    shown = {"original": original} | images
    save_file({key: one[:10].contiguous().clone() for key, one in shown.items()}, place)


def run(data_root: str | None = None, seconds: float = inf, names: Sequence[str] = ()) -> None:
    """Of the nets with these names, or of all."""
    torch.set_num_threads(1)
    until = perf_counter() + seconds
    before = read_json(FOLDER / "inversion.json", "results of an inversion")
    settings = {"plan": asdict(FittedPlan()), "machine": machine()["cpu"]}
    for name in names or RECIPES:
        known = read_json(FILE, "results")["entries"] if FILE.exists() else {}
        todo = [layer for layer in RECIPES[name].layers if f"{name}|{layer}" not in known]
        if not todo or perf_counter() > until:
            continue
        trained = load_trained(name, data_root, until - perf_counter())
        if trained is None:
            return
        fitted = Fitted(trained, Plan())
        error = partial(test_error, trained.net, trained.data.test_x, trained.data.test_y)
        measure(FILE, settings, {f"{name}|test_error": error})
        for layer in todo:
            if perf_counter() < until:
                stored = before["nets"][name]["layers"][layer]
                entry = partial(measure_layer, trained, fitted, layer, stored)
                measure(FILE, settings, {f"{name}|{layer}": entry})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/ and cifar10/")
    parser.add_argument("--seconds", type=float, default=inf, help="begin nothing after so many")
    parser.add_argument("names", nargs="*", help=f"out of {', '.join(RECIPES)}; all of them by default")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
