"""One training of the CNN experiment: the methods' losses, the net, the schedule, what is measured. No plan.

SHADOW and its shuffled control are `ShadowLoss`; the others are a few lines each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse._core.random import BATCHES, INITIAL, SPLIT, STEPS, derive_generator, derive_seed
from obverse.data import Dataset
from obverse.nets._small_conv import small_cnn
from obverse.shadow import Shadow, ShadowLoss, recovery
from obverse.shadow._controls import noisy

HELD_OUT = 5000  # training points outside the labelled ones, for the choice of rates and variants
SHADOWS = 1000  # test points whose shadows are measured
BATCH, WARM_UP, GUESSING = 100, 50, 0.9


@dataclass(frozen=True)
class Run:
    """One training. `method` is its name in the tables; what it does is in the other fields."""

    data: str
    labels: int
    method: str
    rate: float = 0.0
    seed: int = 0
    held_out: bool = False  # judged on held-out training points, not on the test set
    epochs: int = 0
    widths: tuple[int, ...] = (8, 16, 64)
    dropout: float = 0.0
    mixup: float = 0.0  # α of Beta(α, α)
    smoothing: float = 0.0
    weight: float = 0.0  # of the second batch; the loss is divided by 1 + weight
    control: str | None = None
    noise: float = 0.0
    layer: str | None = None
    keep: float = 1.0
    targets: str = "given"
    match_norm: bool = True

    @property
    def name(self) -> str:
        words = "".join(c if c.isalnum() or c == "." else "-" for c in self.method)
        judged = "tuning" if self.held_out else "final"
        return f"{judged}_{self.data}_{self.labels}_{words}_{self.rate:g}_{self.seed}"


def mixed(x: Tensor, alpha: float, generator: torch.Generator) -> tuple[Tensor, float, Tensor]:
    """(λ x + (1 − λ) x[other], λ, other): each image mixed with another of its batch, one λ ~ Beta(α, α)."""
    with torch.random.fork_rng(devices=[]):  # distributions know no generator
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        share = float(torch.distributions.Beta(alpha, alpha).sample())
    other = torch.randperm(len(x), generator=generator)
    return share * x + (1 - share) * x[other], share, other


def mixup_loss(net: nn.Module, x: Tensor, y: Tensor, alpha: float, generator: torch.Generator) -> Tensor:
    """Zhang et al. 2018: the cross entropy with both labels, in the shares of their images."""
    images, share, other = mixed(x, alpha, generator)
    logits = net(images)
    return share * F.cross_entropy(logits, y) + (1 - share) * F.cross_entropy(logits, y[other])


def second_batch_loss(net: nn.Module, x: Tensor, twin: Tensor, y: Tensor, weight: float) -> Tensor:
    """(L(x) + w L(twin)) / (1 + w), as ShadowLoss(normalize=True). With twin = x this is L(x) itself."""
    return (F.cross_entropy(net(x), y) + weight * F.cross_entropy(net(twin), y)) / (1 + weight)


def loss_of(run: Run, net: nn.Module, shape: tuple[int, ...]) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of a batch under a run's method."""
    generator = derive_generator(run.seed, STEPS)
    if run.mixup:
        return lambda x, y: mixup_loss(net, x, y, run.mixup, generator)
    if run.control == "noise":
        return lambda x, y: second_batch_loss(net, x, noisy(x, run.noise, generator), y, run.weight)
    if run.control == "same":
        return lambda x, y: second_batch_loss(net, x, x, y, run.weight)
    if run.weight:
        return ShadowLoss(
            Shadow(net, input_shape=shape),
            run.weight,
            layer=run.layer,
            keep=run.keep,
            match_norm=run.match_norm,
            labels=run.targets,  # type: ignore[arg-type]
            normalize=True,
            control=run.control,  # type: ignore[arg-type]
            generator=generator,
        )
    return lambda x, y: F.cross_entropy(net(x), y, label_smoothing=run.smoothing)


def points(run: Run, data: Dataset) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(train x, train y, judged x, judged y). The order of a seed is the same for every method."""
    order = torch.randperm(len(data.train_x), generator=derive_generator(run.seed, SPLIT))
    rows = order[: run.labels] if run.labels else order
    if not run.held_out:
        return data.train_x[rows], data.train_y[rows], data.test_x, data.test_y
    held = order[run.labels : run.labels + HELD_OUT]
    return data.train_x[rows], data.train_y[rows], data.train_x[held], data.train_y[held]


def initial_net(run: Run, data: Dataset) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        net = small_cnn(
            data.input_shape,
            len(data.classes),
            run.widths,
            dropout=run.dropout,
            generator=derive_generator(run.seed, INITIAL),
        )
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def rate_at(step: int, steps: int, rate: float) -> float:
    return rate * min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps))


def train(run: Run, data: Dataset) -> tuple[dict[str, Any], nn.Module]:
    """The record of a run, and its net. A run whose loss is no number any more counts as guessing."""
    x, y, judged_x, judged_y = points(run, data)
    net = initial_net(run, data)
    torch.manual_seed(derive_seed(run.seed, STEPS))  # of dropout
    loss_function = loss_of(run, net, data.input_shape)
    optimizer = torch.optim.SGD(net.parameters(), run.rate, momentum=0.9)
    steps = run.epochs * -(-len(x) // BATCH)
    step, began, diverged = 0, time.perf_counter(), False
    for epoch in range(run.epochs):
        order = torch.randperm(len(x), generator=derive_generator(run.seed, BATCHES, epoch))
        for rows in order.split(BATCH):
            optimizer.param_groups[0]["lr"] = rate_at(step, steps, run.rate)
            loss = loss_function(x[rows].contiguous(memory_format=torch.channels_last), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        if diverged := not math.isfinite(float(loss.detach())):
            break
    seconds = time.perf_counter() - began
    record = asdict(run) | {"steps": step, "seconds": round(seconds, 1), "diverged": diverged}
    record["train_loss"] = None if diverged else float(loss.detach())
    record["error"] = GUESSING if diverged else error_of(net, judged_x, judged_y)
    return record, net


@torch.no_grad()
def error_of(net: nn.Module, x: Tensor, y: Tensor) -> float:
    net.eval()
    wrong = sum(int((net(a).argmax(-1) != b).sum()) for a, b in zip(x.split(500), y.split(500), strict=True))
    return wrong / len(y)


@torch.no_grad()
def shadow_measures(net: nn.Module, data: Dataset) -> dict[str, Any]:
    """Of norm-matched shadows from the highest hidden layer, whatever the run trained with."""
    shadow = Shadow(net.eval(), input_shape=data.input_shape)
    x, y = data.test_x[:SHADOWS], data.test_y[:SHADOWS]
    wrong = agree = 0
    for images, labels in zip(x.split(500), y.split(500), strict=True):
        label, twin = net(images).argmax(-1), net(shadow.of(images, match_norm=True)).argmax(-1)
        wrong, agree = wrong + int((twin != labels).sum()), agree + int((twin == label).sum())
    errors = recovery(shadow, x[:200], match_norm=True).errors
    return {"shadow_error": wrong / len(y), "label_agreement": agree / len(y), "recovery_error": dict(errors)}
