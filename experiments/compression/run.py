"""What do networks need of their layers, and what is the rank that we find worth for compression?

    python -m experiments.compression.run --data-root DIR      (DIR holds mnist; ten minutes on a quiet core)
    python -m experiments.compression.run --quick              (embedded digits, under a minute)

MLPs on digits and MNIST and a CNN on MNIST, trained here. Of each: every treatment and curve of `ablate`;
then layers cut down to ranks that are chosen in four ways, and pruned by magnitude, over a range of sizes and
at the size that the signal's rank gives. Accuracy on test points, its change paired over these. Nets with
batch norm are also measured with its statistics estimated anew on 500 training points.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from obverse.data import Dataset, load
from obverse.weights import ablate, compress, weights_of
from obverse.weights._ablation.place import matrix_of, replaced
from obverse.weights._ablation.scores import Test, batch_norms, evaluating, reestimated, test_of
from obverse.weights._compression.thin import pays, why_not
from obverse.weights._readers.stored import Weight
from obverse.weights.results import ALPHA

from .._lab.places import RUNS
from .._lab.result_files import measure
from .nets import FOLDER, PLANS, QUICK, Plan, trained
from .ranks import METHODS, Layer, fitted_knob, layer_of, matrices, pruned, weights_left

RESULTS = Path(__file__).parent / "results"
QUICK_FOLDER = RUNS / "quick" / "compression"
RECALIBRATION = 500
KEPT = (0.05, 0.1, 0.2, 0.3, 0.5)  # of the weights, by magnitude pruning


def need(plan: Plan, seed: int, data: Dataset, folder: Path) -> dict[str, Any]:
    """Every treatment, layer by layer and at once, and the curves."""
    net = trained(plan, seed, data, folder)
    found = ablate(
        net,
        data.test_x[: plan.test],
        data.test_y[: plan.test],
        recalibrate=data.train_x[:RECALIBRATION] if batch_norms(net) else None,
        alpha=ALPHA,
        model=plan.name,
        generator=torch.Generator().manual_seed(seed),
    )
    return found.to_dict() | {"versions": {}, "seconds": 0.0}


def sizes(plan: Plan, seed: int, data: Dataset, folder: Path) -> dict[str, Any]:
    """Accuracy over the number of parameters, by method."""
    net = trained(plan, seed, data, folder)
    unlabelled = data.train_x[:RECALIBRATION] if batch_norms(net) else None
    return compared(net, data.test_x[: plan.test], data.test_y[: plan.test], unlabelled)


def compared(
    net: nn.Module, x: Tensor, y: Tensor, unlabelled: Tensor | None, *, curves: bool = True
) -> dict[str, Any]:
    """`points` are the curves and usual settings; `equal` is at the size that the signal's rank gives."""
    _, ours = compress(net, alpha=ALPHA, generator=torch.Generator().manual_seed(0))
    reasons = why_not(net)
    able = [one for one in weights_of(net) if reasons.get(one.name) == ""]
    pairs = [(weight, layer_of(matrix_of(net, weight))) for weight in able]
    # all methods may cut the same layers: not those that are too small to be taken apart
    pairs = [(weight, layer) for weight, layer in pairs if layer.parts.grade != "cannot tell"]
    weights, layers = [weight for weight, _ in pairs], [layer for _, layer in pairs]
    whole = sum(one.numel() for one in net.parameters())
    others = whole - sum(layer.matrix.numel() for layer in layers)
    budget = ours.parameters_after - others
    entries = whole - others
    with evaluating(net):
        test = test_of(net, x, y, None, 256)
        scores = partial(scored, net, test, weights, unlabelled)
        shrunk = scores([_signal(layer) for layer in layers])
        named = {"method": "signal’s rank, shrunken", "knob": 1.0, "parameters": ours.parameters_after}
        points, equal = [named | shrunk], [named | shrunk]
        for method in METHODS:
            for knob in method.curve if curves else ():
                points.append(_point(method, knob, layers, others, scores) | {"usual": knob == method.usual})
            knob = 1.0 if method.name == METHODS[0].name else fitted_knob(method, layers, budget)
            equal.append(_point(method, knob, layers, others, scores))
        for share in KEPT if curves else ():
            points.append(_pruned(share, round(share * entries), layers, others, scores))
        equal.append(_pruned(budget / entries, budget, layers, others, scores))
        # an entry and its place: pruning that is stored as pairs of numbers has half of the budget
        equal.append(
            _pruned(budget / entries / 2, budget // 2, layers, others, scores)
            | {"method": "magnitude pruning, places counted", "parameters": ours.parameters_after}
        )
    return {
        "parameters": whole,
        "accuracy": float(test.untreated.mean()),
        "ours": ours.to_dict() | {"versions": {}, "seconds": 0.0},
        "points": points,
        "equal": equal,
    }


def _signal(layer: Layer) -> Tensor:
    return layer.parts.signal() if pays(layer.parts.rank, *layer.shape) else layer.matrix


def _point(method: Any, knob: float, layers: list[Layer], others: int, scores: Any) -> dict[str, Any]:
    ranks, made = matrices(method, knob, layers)
    left = others + weights_left(ranks, layers)
    return {"method": method.name, "knob": knob, "ranks": ranks, "parameters": left, **scores(made)}


def _pruned(share: float, kept: int, layers: list[Layer], others: int, scores: Any) -> dict[str, Any]:
    made = pruned(layers, kept)
    return {"method": "magnitude pruning", "knob": share, "parameters": others + kept, **scores(made)}


def scored(
    net: nn.Module, test: Test, weights: list[Weight], unlabelled: Tensor | None, made: list[Tensor]
) -> dict[str, Any]:
    """Accuracy with these matrices, its paired change, and again with batch norms estimated anew."""
    with replaced(net, zip(weights, made, strict=True)):
        score, again = test.score(net), None
        if unlabelled is not None:
            with reestimated(net, unlabelled, 256):
                again = test.score(net).value
    return {"accuracy": score.value, "change": score.change, "error": score.error, "again": again}


def run(quick: bool = False, data_root: str | None = None, out: Path | None = None) -> None:
    folder = out or (QUICK_FOLDER if quick else RESULTS)
    nets = QUICK_FOLDER if quick else FOLDER
    for plan in QUICK if quick else PLANS:
        data = load(plan.data, data_root)
        settings = {name: value for name, value in asdict(plan).items() if name not in ("make", "seeds")}
        entries = {
            f"{part.__name__}|{seed}": partial(part, plan, seed, data, nets)
            for seed in plan.seeds
            for part in (need, sizes)
        }
        measure(file_of(folder, plan), settings, entries)


def file_of(folder: Path, plan: Plan) -> Path:
    """The results of one kind of net."""
    return folder / f"{plan.name.replace(',', '').replace(' ', '-').lower()}.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/")
    parser.add_argument("--quick", action="store_true", help="embedded digits only, under a minute")
    parser.add_argument("--out", type=Path, help="folder of the results")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
