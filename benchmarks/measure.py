"""What every benchmark shares: both sides in turn, the ratio, the machine. Not a benchmark itself."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import torch
from torch import nn

from obverse.nets import relu_mlp

RESULTS = Path(__file__).parent / "results"

# The paper's net, and the batch size of its training.
SIZES = (784, 5000, 5000, 10)
BATCH = 100


@dataclass(frozen=True)
class Outcome:
    """One ratio with its bar. `spread` holds the quartiles of the ratios of neighbouring runs."""

    name: str
    question: str
    ratio: float
    bar: float
    spread: tuple[float, float] | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def range(self) -> dict[str, float]:
        """The two ends of the spread, by name."""
        return {} if self.spread is None else dict(zip(("low", "high"), self.spread, strict=True))

    @property
    def holds(self) -> bool:
        return self.ratio <= self.bar

    def __str__(self) -> str:
        spread = "exact" if self.spread is None else f"{self.spread[0]:.3f} … {self.spread[1]:.3f}"
        verdict = "holds" if self.holds else "MISSED"
        return (
            f"{self.name:<18} {self.ratio:7.3f}   {spread:<17} ≤ {self.bar:<5}  {verdict:<6}  {self.question}"
        )

    @staticmethod
    def header() -> str:
        return f"{'benchmark':<18} {'median':>7}   {'quartiles':<17} {'bar':<7}  {'':<6}  ratio of"


def machine() -> dict[str, Any]:
    """What a reader must know to judge the numbers; nothing that names the host."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def alternate(
    sides: Mapping[str, Callable[[], object]], repetitions: int, warm_up: int = 2
) -> dict[str, list[float]]:
    """Seconds of each side, one run of each in turn; the order turns round at every repetition."""
    for _ in range(warm_up):
        for run in sides.values():
            run()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    gc.collect()
    gc.disable()
    try:
        for repetition in range(repetitions):
            order = list(sides.items())
            for name, run in order if repetition % 2 == 0 else reversed(order):
                start = perf_counter()
                run()
                seconds[name].append(perf_counter() - start)
    finally:
        gc.enable()
    return seconds


def compare(name: str, question: str, bar: float, seconds: dict[str, list[float]], **details: Any) -> Outcome:
    """The first side over the second: median of the ratios of neighbouring runs, and their quartiles."""
    (top, bottom), times = tuple(seconds), tuple(seconds.values())
    ratios = [a / b for a, b in zip(*times, strict=True)]
    low, _, high = quantiles(ratios, n=4)
    details |= {
        "repetitions": len(ratios),
        "median_seconds": {top: median(times[0]), bottom: median(times[1])},
        "fastest_seconds": {top: min(times[0]), bottom: min(times[1])},
        "ratio_of_medians": median(times[0]) / median(times[1]),
        "ratio_of_fastest": min(times[0]) / min(times[1]),
    }
    return Outcome(name, question, median(ratios), bar, (low, high), details)


def publish(measure: Callable[[int], Outcome], repetitions: int) -> None:
    """The command line of a benchmark: measure, print the table, write results/<name>.json."""
    parser = argparse.ArgumentParser(description=measure.__doc__)
    parser.add_argument("--repetitions", type=int, default=repetitions, help="runs of each side")
    arguments = parser.parse_args()
    where = machine()
    outcome = measure(max(2, arguments.repetitions))
    print(Outcome.header(), outcome, sep="\n")
    for key, value in outcome.details.items():
        print(f"    {key}: {_short(value)}")
    RESULTS.mkdir(exist_ok=True)
    content = {**asdict(outcome), "holds": outcome.holds, "machine": where}
    (RESULTS / f"{outcome.name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(one)}" for key, one in value.items())
    return value


def paper_net(seed: int = 0) -> nn.Sequential:
    """784-5000-5000-10 with seeded weights."""
    return relu_mlp(SIZES[:1], SIZES[1:-1], SIZES[-1], generator=torch.Generator().manual_seed(seed))


def random_batch(rows: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels in [0, 1] and labels; what they are does not change the time."""
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.rand(rows, SIZES[0], generator=generator),
        torch.randint(SIZES[-1], (rows,), generator=generator),
    )
