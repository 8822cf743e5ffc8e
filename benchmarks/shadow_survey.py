"""What a survey of all layers costs: its arithmetic over that of a forward pass for each layer, and its time.

The VGG-16 of 32 × 32 images with fresh weights, 100 images, the fitted reverse with both its controls, or
with --transpose the transpose and its one. Work is counted, not timed: multiplications of convolutions,
matrix products and solvers, two operations each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import torch
from measure import Outcome, publish
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from obverse.shadow import survey

WIDTHS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)  # 0: a pool
IMAGES, BAR, SECONDS = 100, 8.0, 60.0


def vgg() -> nn.Sequential:
    layers: list[nn.Module] = []
    inputs = 3
    for width in WIDTHS:
        if width == 0:
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            inputs = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10))


def _cholesky(shape: Any, *rest: Any, **named: Any) -> int:
    return int(torch.Size(shape[:-2]).numel() * shape[-1] ** 3 // 3)


def _substitution(right: Any, factor: Any, *rest: Any, **named: Any) -> int:
    return int(2 * torch.Size(right).numel() * factor[-1])


SOLVERS: Any = {
    torch.ops.aten.linalg_cholesky_ex: _cholesky,
    torch.ops.aten.cholesky_solve: _substitution,
}


def counted(run: Callable[[], Any]) -> tuple[Any, int, float]:
    """(what it returns, operations, seconds)."""
    began = perf_counter()
    with FlopCounterMode(display=False, custom_mapping=SOLVERS) as counter:
        found = run()
    return found, counter.get_total_flops(), perf_counter() - began


@torch.no_grad()
def _forward(net: nn.Module, x: Tensor) -> Tensor:
    found: Tensor = net(x)
    return found


def work_ratio(repetitions: int, reverse: str = "fitted") -> Outcome:
    """Survey ÷ (layers × forward pass), in multiplications."""
    torch.manual_seed(0)
    net = vgg().eval()
    x = torch.rand(IMAGES, 3, 32, 32)
    forward = partial(_forward, net, x)
    forward()
    _, once, seconds = counted(forward)
    found, work, whole = counted(partial(survey, net, x, reverse=reverse))
    layers = len(found.layers)
    return Outcome(
        "shadow_survey" if reverse == "fitted" else "shadow_survey_transpose",
        f"survey ÷ (layers × forward pass), VGG-16 at 32 × 32, {reverse}",
        work / once / layers,
        BAR,
        details={
            "images": IMAGES,
            "layers": layers,
            "seconds": {"survey": whole, "forward": seconds},
            "seconds_per_layer_over_forward": whole / seconds / layers,
            "survey_within_a_minute": whole <= SECONDS,
        },
    )


if __name__ == "__main__":
    if "--transpose" in sys.argv:
        sys.argv.remove("--transpose")
        publish(partial(work_ratio, reverse="transpose"), repetitions=2)
    else:
        publish(work_ratio, repetitions=2)
