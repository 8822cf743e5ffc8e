"""Shadows against inversion by optimization on four trained nets: how fast, and how good.

    python -m experiments.inversion.run --data-root DIR            (DIR/mnist and DIR/cifar10: official files)

For an early, a middle and the highest hidden layer, on test images: seconds an image, recovery error of h,
how often the net gives image and inversion the same label, cosine of their pixels. Sides alternate in one
process on one thread; seconds are medians over batches. Every layer is written down once it is measured:
an interrupted run goes on where it stopped. Results in results/; page.py
makes docs/inversion.md of them. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from obverse._core.files import read_json, write_json
from obverse.shadow._recovery import relative_error

from .._lab.machine import machine
from .._lab.places import RUNS
from .._lab.result_files import short
from .sides import QUICK, Plan, Shadows, alternate, features_of, methods, tuned
from .trained_nets import RECIPES, Trained, load_trained, test_error

FOLDER = Path(__file__).parent / "results"
REFINED_SHOWN = 10  # steps of the refined shadow in the pictures and at batch 1


@torch.no_grad()
def quality(trained: Trained, layer: str, x: Tensor, twin: Tensor) -> dict[str, float]:
    """Recovery error, label agreement, pixel cosine; over the same images in the same order."""
    features = features_of(trained.net, layer)
    rows = x.split(50), twin.split(50)
    h, recovered = (torch.cat([features(one) for one in part]) for part in rows)
    label, twin_label = (torch.cat([trained.net(one).argmax(1) for one in part]) for part in rows)
    return {
        "error": short(relative_error(recovered, h)),
        "agreement": float((label == twin_label).double().mean()),
        "cosine": short(float(F.cosine_similarity(x.flatten(1), twin.flatten(1)).mean())),
    }


def measure_layer(
    trained: Trained, shadows: Shadows, layer: str, plan: Plan
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """All numbers of one layer, and the images as each method has them."""
    features, some = features_of(trained.net, layer), trained.data.train_x[: plan.tuning]
    with torch.no_grad():  # both sides must speak of the same h
        torch.testing.assert_close(features(some), shadows.theory.infer(some, layer))
    settings = tuned(features, some, plan)
    sides = methods(shadows, features, layer, settings, plan)
    x = trained.data.test_x[: plan.images]
    rows, images = [], {"original": x}
    for name, batches in alternate(sides, list(x.split(plan.batch))).items():
        for steps in batches[0]:
            seconds = [one[steps][0] / len(one[steps][1]) for one in batches]
            twin = torch.cat([one[steps][1] for one in batches])
            row = {"method": name, "steps": steps, "seconds": short(median(seconds))}
            rows.append(row | quality(trained, layer, x, twin))
            images[f"{name} {steps}"] = twin
    single = {}
    few = {
        name: sides[name]
        for name in ("shadow", "shadow, calibrated", f"refine {shown_step(plan)}", "optimizer")
    }
    for name, runs in alternate(few, list(x[: plan.singles].split(1))).items():
        last = max(runs[0])
        single[name] = short(median(one[last][0] for one in runs))
    return {"settings": settings, "rows": rows, "single": single}, images


def shown_step(plan: Plan) -> int:
    return min(plan.refine, key=lambda steps: abs(steps - REFINED_SHOWN))


def begun(file: Path, plan: Plan) -> dict[str, Any]:
    """What an earlier run with the same plan has written, or the beginning of a new one."""
    fresh: dict[str, Any] = {"plan": {**asdict(plan)}, "machine": machine(), "nets": {}}
    fresh["plan"] |= {key: list(value) for key, value in fresh["plan"].items() if isinstance(value, tuple)}
    if not file.exists():
        return fresh
    found = read_json(file, "results of an inversion")
    return found if found.get("plan") == fresh["plan"] else fresh


def keep_pictures(place: Path, images: Mapping[str, Tensor], plan: Plan) -> None:
    """The first ten images, for the picture of the page."""
    from safetensors.torch import save_file

    shown = {
        "original": "original",
        "shadow": "shadow, calibrated 0",
        "refined": f"refine {shown_step(plan)} {shown_step(plan)}",
        "optimizer": f"optimizer {plan.iterations[-1]}",
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: images[key][:10].contiguous().clone() for name, key in shown.items()}, place)


def run(quick: bool = False, data_root: str | None = None, names: Sequence[str] = ()) -> None:
    """Of the nets with these names, or of all."""
    torch.set_num_threads(1)
    plan = QUICK if quick else Plan()
    folder = RUNS / "inversion-quick" if quick else FOLDER
    pictures = RUNS / ("inversion-quick" if quick else "inversion")
    folder.mkdir(parents=True, exist_ok=True)
    results = begun(folder / "inversion.json", plan)
    for name in names or RECIPES:
        recipe = RECIPES[name]
        net = results["nets"].setdefault(name, {"title": recipe.title, "layers": {}})
        todo = [layer for layer in recipe.layers if layer not in net["layers"]]
        if not todo:
            continue
        trained = load_trained(name, data_root)
        assert trained is not None, "without a limit training comes to its end"
        net["test_error"] = test_error(trained.net, trained.data.test_x, trained.data.test_y)
        shadows = Shadows(trained, plan)
        for layer in todo:
            start = perf_counter()
            net["layers"][layer], images = measure_layer(trained, shadows, layer, plan)
            keep_pictures(pictures / f"{name}-{layer}.safetensors", images, plan)
            write_json(folder / "inversion.json", results)
            print(f"{name}, {layer}: {perf_counter() - start:.0f} s", flush=True)
    print(folder / "inversion.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/ and cifar10/")
    parser.add_argument("--quick", action="store_true", help="a trial in a minute; its results go to runs/")
    parser.add_argument("names", nargs="*", help=f"out of {', '.join(RECIPES)}; all of them by default")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
