"""What does training leave of random weights? MLPs on MNIST and small CNNs on CIFAR-10, before and after it.

    python -m experiments.audit.run --data-root DIR       (DIR/mnist and DIR/cifar10: official files)
    python -m experiments.audit.run --quick               (embedded digits, under a minute, into runs/quick)

784-1000-1000-10 from He's Gaussian weights, with and without weight decay; a CNN of three convolutions and
two linear layers from PyTorch's own uniform weights. SGD with momentum 0.9, batch 100, a step size that falls
linearly to 0, pixels in [0, 1]. Each net is audited before and after training, and tested with the bulk of
its layers replaced and with their signal removed. Each is written down as soon as it is done: an interrupted
run resumes where it stopped. Results in results/; `make docs` makes tables of them. Trained weights stay in
runs/: without the results the same nets are measured anew, in minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse._core.random import BATCHES, INITIAL, derive_generator, derive_seed
from obverse.data import Dataset, load
from obverse.nets import relu_mlp
from obverse.weights import Treatment, ablate, audit
from obverse.weights.results import rows

from .._lab.places import RUNS

FILE = Path(__file__).parent / "results" / "nets.jsonl"
WEIGHTS = RUNS / "audit-trained-nets"
QUICK_FILE = RUNS / "quick" / "audit" / "nets.jsonl"
BATCH = 100
MOMENTUM = 0.9
TESTED = 2000  # test inputs for what the net needs
TREATMENTS: tuple[Treatment, ...] = (
    "signal only",
    "bulk resampled",
    "signal removed",
    "random directions removed",
)
RATIO = ("ratio", "ratio_low", "ratio_high")
COLUMNS = (  # of the audit's table
    *("layer", "rows", "columns", "verdict", "sentence", "remarks", "family_p"),
    *("rank", "signal_share", "random_share", "distance", "distance_null"),
    *("entries_best_law", "entries_ks", "offsets_ratio", "offsets_near_mean"),
    *("row_cosine_rms", "column_cosine_rms"),
    *(f"{source}{name}" for source in ("recovery_", "data_recovery_") for name in RATIO),
)


def mlp(seed: int) -> nn.Sequential:
    """784-1000-1000-10 with Gaussian weights, N(0, 2/fan_in), and biases 0."""
    return relu_mlp((1, 28, 28), (1000, 1000), 10, generator=derive_generator(seed, INITIAL))


def small_mlp(seed: int) -> nn.Sequential:
    """64-128-128-10, to try this out on digits."""
    return relu_mlp((1, 8, 8), (128, 128), 10, generator=derive_generator(seed, INITIAL))


def cnn(seed: int) -> nn.Sequential:
    """Three convolutions, each with ReLU and pooling, and two linear layers; PyTorch's own initial weights.

    The first kernel is 5 × 5: with 3 × 3 × 3 inputs its layer would be too small to judge.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, INITIAL))
        layers = {
            "conv1": nn.Conv2d(3, 32, 5, padding=2),
            "conv2": nn.Conv2d(32, 64, 3, padding=1),
            "conv3": nn.Conv2d(64, 128, 3, padding=1),
            "linear1": nn.Linear(2048, 256),
            "linear2": nn.Linear(256, 10),
        }
    modules: OrderedDict[str, nn.Module] = OrderedDict()
    for name, layer in layers.items():
        modules[name] = layer
        if name != "linear2":
            modules[f"{name}_relu"] = nn.ReLU()
        if name.startswith("conv"):
            modules[f"{name}_pool"] = nn.MaxPool2d(2)
        if name == "conv3":
            modules["flatten"] = nn.Flatten()
    # half the time on a CPU
    return nn.Sequential(modules).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Variant:
    """A net, its data and how it is trained; `seeds` so many of them."""

    make: Callable[[int], nn.Sequential]
    data: str
    epochs: int
    rate: float
    decay: float
    seeds: int

    def key(self, seed: int) -> str:
        """All that decides what the trained net is, as a file name."""
        return f"{self.make.__name__}-{self.data}-{self.epochs}-{self.rate:g}-{self.decay:g}-{seed}"


VARIANTS = {
    "MLP on MNIST": Variant(mlp, "mnist", 8, 0.1, 0.0, 3),
    "MLP on MNIST, weight decay 5e-4": Variant(mlp, "mnist", 8, 0.1, 5e-4, 3),
    "CNN on CIFAR-10": Variant(cnn, "cifar10", 10, 0.05, 0.0, 2),
}

QUICK = {"MLP on digits": Variant(small_mlp, "digits", 5, 0.1, 5e-4, 1)}


def train(net: nn.Module, data: Dataset, variant: Variant, seed: int) -> None:
    optimizer = torch.optim.SGD(net.parameters(), variant.rate, MOMENTUM, weight_decay=variant.decay)
    steps = variant.epochs * math.ceil(len(data.train_x) / BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1 / steps, total_iters=steps)
    net.train()
    for epoch in range(variant.epochs):
        order = torch.randperm(len(data.train_x), generator=derive_generator(seed, BATCHES, epoch))
        for picked in order.split(BATCH):
            loss = F.cross_entropy(net(data.train_x[picked]), data.train_y[picked])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print(
            f"  epoch {epoch + 1}: loss {loss.item():.3f}, test error {test_error(net, data):.4f}", flush=True
        )
        net.train()


@torch.no_grad()
def test_error(net: nn.Module, data: Dataset) -> float:
    net.eval()
    labels = torch.cat([net(x).argmax(1) for x in data.test_x.split(1000)])
    return float((labels != data.test_y).double().mean())


def audited(net: nn.Module, inputs: Tensor) -> list[dict[str, Any]]:
    """The columns of the audit's table that the page shows, one row per layer."""
    found = rows(audit(net, data=inputs, generator=torch.Generator().manual_seed(0)))
    return [{name: _short(row[name]) for name in COLUMNS} for row in found]


def needed(net: nn.Module, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Accuracy with the bulk or the signal of all layers treated at once, and of each one alone."""
    found = ablate(
        net, x, y, treatments=TREATMENTS, curve=False, alpha=0.01, generator=torch.Generator().manual_seed(0)
    )
    return {
        "untreated": found.untreated.value,
        "together": {one.treatment: one.score.value for one in found.together},
        "layers": {
            layer.name: {one.treatment: [one.score.change, one.score.error] for one in layer.effects}
            for layer in found.treated
        },
    }


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


@torch.no_grad()
def changes(before: nn.Module, after: nn.Module) -> dict[str, float]:
    """How far training moved the weights of each layer: ‖W − W₀‖ / ‖W₀‖."""
    old, new = (dict(net.named_parameters()) for net in (before, after))
    layers = [name.removesuffix(".weight") for name in old if name.endswith(".weight")]
    pairs = {layer: (old[f"{layer}.weight"], new[f"{layer}.weight"]) for layer in layers}
    return {layer: _short(float((w - w0).norm() / w0.norm())) for layer, (w0, w) in pairs.items()}


def trained(initial: nn.Module, data: Dataset, variant: Variant, seed: int) -> nn.Module:
    """The net after training, from an earlier run where there was one."""
    from safetensors.torch import load_file, save_file

    net = deepcopy(initial)
    place = WEIGHTS / f"{variant.key(seed)}.safetensors"
    if place.exists():
        net.load_state_dict(load_file(place))
        return net
    started = time.perf_counter()
    train(net, data, variant, seed)
    print(f"  trained in {time.perf_counter() - started:.0f} s", flush=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in net.state_dict().items()}, place)
    return net


def trained_and_audited(variant: Variant, seed: int, data: Dataset) -> dict[str, Any]:
    initial = variant.make(seed)
    net = trained(initial, data, variant, seed)
    return {
        "key": variant.key(seed),
        "test_error": test_error(net, data),
        "moved": changes(initial, net),
        "before": audited(initial, data.test_x),
        "after": audited(net, data.test_x),
        "needed": needed(net, data.test_x[:TESTED], data.test_y[:TESTED]),
    }


def read(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """The nets done so far, by key."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {record["key"]: record for record in map(json.loads, lines)}


def run(data_root: str | None = None, quick: bool = False) -> None:
    file, variants = (QUICK_FILE, QUICK) if quick else (FILE, VARIANTS)
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, variant in variants.items():
        done = read(file)
        todo = [seed for seed in range(variant.seeds) if variant.key(seed) not in done]
        if not todo:
            continue
        data = load(variant.data, data_root)
        for seed in todo:
            print(f"{name}, seed {seed}", flush=True)
            record = trained_and_audited(variant, seed, data)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/ and cifar10/")
    parser.add_argument("--quick", action="store_true", help="a small net on embedded digits")
    options = parser.parse_args()
    run(options.data_root, quick=options.quick)


if __name__ == "__main__":
    main()
