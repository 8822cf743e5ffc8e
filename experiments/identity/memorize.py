"""How small, how steep and how useless on new points is a net that memorizes by construction?

Writes results/memorize.json, one entry as it is done; entries that are there are not
measured again. `sizes`: CIFAR-10 with random labels, 100 to 50,000 points, by width. `tests`: true labels of
all training points, and the test set beside chance and the nearest training point behind the same projection.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from obverse._core.files import write_json
from obverse.data import load
from obverse.identity import (
    Memorized,
    NotMemorized,
    choose_width,
    export,
    local_lipschitz,
    log10_lipschitz_bound,
    memorize,
)
from obverse.identity._recall import nearest_labels
from obverse.nets._memory import ResidualMemory

RESULTS = Path(__file__).parent / "results" / "memorize.json"
POINTS = (100, 300, 1000, 3000, 10000, 30000, 50000)
WIDTHS = (1, 2, 4, 8)  # and the one that `memorize` chooses
TESTED = ("digits", "mnist", "fashion-mnist", "cifar10")
AT = 500  # points at which the net's steepness is measured


def built(x: Tensor, y: Tensor, width: int | None) -> tuple[ResidualMemory, dict[str, Any]]:
    """A net and what is to be said of it; where float64 cannot do it, that is what is said."""
    start = perf_counter()
    net = memorize(x, y, classes=10, width=width, generator=torch.Generator().manual_seed(0))
    seconds = perf_counter() - start
    steep = local_lipschitz(net, x[:AT])
    try:
        export(net, x, y)
        single = "exact"
    except NotMemorized as error:
        single = str(error)
    facts = net.facts
    assert isinstance(facts, Memorized)
    return net, {
        **facts.to_dict(),
        "constant": facts.constant,
        "seconds": round(seconds, 2),
        "float32": single,
        "steepness": {"median": float(steep.median()), "largest": float(steep.max())},
        "log10_bound": log10_lipschitz_bound(net),
    }


def size(points: int, width: int) -> dict[str, Any]:
    data = load("cifar10")
    labels = torch.randint(10, (points,), generator=torch.Generator().manual_seed(points))
    try:
        return built(data.train_x[:points], labels, width)[1]
    except NotMemorized as error:
        return {"width": width, "points": points, "refused": str(error)}


@torch.no_grad()
def tested(name: str) -> dict[str, Any]:
    data = load(name)
    net, found = built(data.train_x, data.train_y, None)
    labels = torch.cat([net(part).argmax(1) for part in data.test_x.split(1000)])
    nearest = nearest_labels(net, data.train_x, data.train_y, data.test_x)
    return found | {
        "data": name,
        "test_points": len(data.test_y),
        "test_accuracy": float((labels == data.test_y).double().mean()),
        "nearest_accuracy": float((nearest == data.test_y).double().mean()),
        "chance": float(data.test_y.bincount().max() / len(data.test_y)),
    }


def run(out: Path = RESULTS) -> None:
    known = json.loads(out.read_text()) if out.exists() else {"sizes": {}, "tests": {}}
    work: list[tuple[str, str, Any]] = [("tests", name, lambda name=name: tested(name)) for name in TESTED]
    for points in POINTS:
        for width in (choose_width(points, 10), *(one for one in WIDTHS if one < choose_width(points, 10))):
            work.append(("sizes", f"{points}/{width}", lambda n=points, k=width: size(n, k)))
    out.parent.mkdir(parents=True, exist_ok=True)
    for part, name, measured in work:
        if name not in known[part]:
            known[part][name] = measured()
            write_json(out, known)
            print(part, name, known[part][name].get("seconds"), known[part][name].get("errors"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    run(parser.parse_args().out)


if __name__ == "__main__":
    main()
