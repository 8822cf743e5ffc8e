"""Random labels of CIFAR-10: building a net that memorizes them against training one of the same size.

The MLP has one hidden layer, as many numbers as the built net with its projection, pixels scaled to mean 0
and deviation 1, and the best of four learning rates by its training error after a few epochs, whose time is
not counted. It stops at 100 % or at the limit.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from time import perf_counter
from typing import Any

import torch
from measure import RESULTS, Outcome, machine
from torch import Tensor, nn

from obverse.data import load
from obverse.identity import Memorized, memorize
from obverse.nets import relu_mlp

BATCH, MOMENTUM, CLASSES = 100, 0.9, 10
RATES = (0.003, 0.01, 0.03, 0.1)


def scaled(x: Tensor) -> Tensor:
    """Each pixel to mean 0 and deviation 1."""
    return (x - x.mean(0)) / x.std(0)


def equal_mlp(inputs: int, numbers: int) -> nn.Module:
    """One hidden layer, as wide as `numbers` parameters allow."""
    width = (numbers - CLASSES) // (inputs + 1 + CLASSES)
    return relu_mlp((inputs,), (width,), CLASSES, generator=torch.Generator().manual_seed(0))


def train(
    net: nn.Module, x: Tensor, y: Tensor, rate: float, limit: float, epochs: int = 10**6
) -> dict[str, Any]:
    """SGD until every label is right; the seconds of checking are not counted."""
    optimizer = torch.optim.SGD(net.parameters(), rate, momentum=MOMENTUM)
    generator = torch.Generator().manual_seed(0)
    seconds, right, epoch = 0.0, 0.0, 0
    while seconds < limit and right < 1 and epoch < epochs:
        start = perf_counter()
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        seconds += perf_counter() - start
        epoch += 1
        with torch.no_grad():
            right = sum(
                int((net(a).argmax(1) == b).sum()) for a, b in zip(x.split(1000), y.split(1000), strict=True)
            ) / len(x)
    return {"rate": rate, "seconds": seconds, "epochs": epoch, "right": right}


def contest(x: Tensor, y: Tensor, limit: float) -> dict[str, Any]:
    start = perf_counter()
    built = memorize(x, y, classes=CLASSES, generator=torch.Generator().manual_seed(0))
    seconds = perf_counter() - start
    facts = built.facts
    assert isinstance(facts, Memorized)
    numbers, inputs = facts.parameters + facts.projection, facts.inputs
    flat = scaled(x.flatten(1))
    pilots = [
        train(equal_mlp(inputs, numbers), flat, y, rate, limit, max(2, 5000 // len(x))) for rate in RATES
    ]
    best = max(pilots, key=lambda one: one["right"])["rate"]
    net = equal_mlp(inputs, numbers)
    trained = train(net, flat, y, best, limit)
    return {
        "points": len(x),
        "memorize": {"seconds": seconds, "right": 1 - facts.errors / facts.points, "numbers": numbers},
        "sgd": trained | {"numbers": sum(one.numel() for one in net.parameters())},
        "ratio": seconds / trained["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", help="folder that holds the data sets [OBVERSE_DATA]")
    parser.add_argument("--points", default="1000,5000,50000", help="numbers of points")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of training a net gets")
    arguments = parser.parse_args()
    data, where = load("cifar10", arguments.data_root), machine()
    contests = []
    for points in map(int, arguments.points.split(",")):
        labels = torch.randint(CLASSES, (points,), generator=torch.Generator().manual_seed(points))
        contests.append(contest(data.train_x[:points], labels, arguments.limit))
        print(json.dumps(contests[-1]))
    outcome = Outcome(
        "memorize_sgd",
        "memorize ÷ SGD on an MLP of equal size, seconds to 100 % of random labels (or to the limit)",
        max(one["ratio"] for one in contests),
        1.0,
        details={"limit_seconds": arguments.limit, "contests": contests},
    )
    print(Outcome.header(), outcome, sep="\n")
    content = {**asdict(outcome), "holds": outcome.holds, "machine": where}
    (RESULTS / f"{outcome.name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
