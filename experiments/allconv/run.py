"""The all-convolutional residual net against the same net with batch norm and without identity shortcuts.

CIFAR-10, the small setting of small.toml, a fixed number of steps, three seeds. Each variant's rate
is the best of the same six tries, judged on held-out training points after one epoch; the test set plays no
part in it. Finished runs are kept, interrupted ones are resumed; a run that diverges counts as guessing.

    python -m experiments.allconv.run            # 45 minutes on one core
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from obverse._core.files import write_json
from obverse._core.statistics import mean_and_se
from obverse.data import Dataset, load
from obverse.training import (
    ClassifierTask,
    Diverged,
    Settings,
    create_run,
    fit_classifier,
    initial_net,
    read_run,
)
from obverse.training._rundir import describe_environment
from obverse.training._settings import read_toml

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "results.json"
# Two starts for each: the paper's, which is made for shortcuts, and one that keeps the signal's size.
VARIANTS: dict[str, dict[str, Any]] = {
    "identity": {},
    "identity, He start": {"init": "he"},
    "batch norm": {"norm": True},
    "batch norm, He start": {"norm": True, "init": "he"},
    "no shortcuts": {"shortcut": False},
    "no shortcuts, He start": {"shortcut": False, "init": "he"},
}
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
SEEDS = (0, 1, 2)
HELD_OUT = 5000


def base_settings() -> Settings:
    return Settings.from_mapping(read_toml(HERE / "small.toml"), "small.toml")


def pilot_settings(base: Settings, variant: str, rate: float) -> Settings:
    """One epoch, judged on training points that are held out."""
    return replace(
        base, **VARIANTS[variant], lr=rate, epochs=1, milestones=(), validation=HELD_OUT, seed=SEEDS[0]
    )


def final_settings(base: Settings, variant: str, rate: float, seed: int) -> Settings:
    return replace(base, **VARIANTS[variant], lr=rate, seed=seed)


@cache
def data(name: str) -> Dataset:
    return load(name)


def train(settings: Settings, path: Path) -> dict[str, Any]:
    """Train, or go on, or read what is finished; a value for the results."""
    if not (path / "config.json").exists():
        create_run(path, settings)
    found = read_run(path)
    if found.settings != settings:
        raise SystemExit(f"{path} holds a run with other settings: move it away")
    classes = len(data(settings.data).classes)
    if not found.finished:
        try:
            fit_classifier(ClassifierTask(settings, data(settings.data)), path)
        except Diverged:
            return {"diverged": True, "test_error": 1 - 1 / classes}
        found = read_run(path)
    return {
        "diverged": False,
        "test_error": found.final["test_error"],
        "test_errors": [record["test_error"] for record in found.metrics],
        "train_losses": [record["train_loss"] for record in found.metrics[1:]],
        "seconds": round(sum(record["seconds"] for record in found.metrics), 1),
    }


def choose(tries: list[dict[str, Any]]) -> float:
    """The rate with the smallest error on held-out points, of those that did not diverge if there are any."""
    best = min(tries, key=lambda one: (one["diverged"], one["test_error"], one["rate"]))
    return float(best["rate"])


def summary(variant: str, settings: Settings, tries: list[dict], runs: list[dict]) -> dict[str, Any]:
    net = initial_net(settings, data(settings.data))
    mean, se = mean_and_se([one["test_error"] for one in runs])
    return {
        "variant": variant,
        "changes": VARIANTS[variant],
        "parameters": sum(parameter.numel() for parameter in net.parameters()),
        "convolutions": sum(isinstance(module, torch.nn.Conv2d) for module in net.modules()),
        "rate": settings.lr,
        "pilot": tries,
        "test_error": mean,
        "test_error_se": se,
        "runs": runs,
    }


def run(folder: Path = Path("runs") / "allconv", results: Path = RESULTS) -> None:
    base = base_settings()
    pilot: dict[str, list[dict[str, Any]]] = {}
    for variant in VARIANTS:
        pilot[variant] = []
        for rate in RATES:
            found = train(pilot_settings(base, variant, rate), folder / "pilot" / f"{slug(variant)}-{rate:g}")
            pilot[variant].append(
                {"rate": rate, "diverged": found["diverged"], "test_error": found["test_error"]}
            )
            print(
                f"pilot  {variant:<24} rate {rate:<5g} held-out error {100 * found['test_error']:.2f} %",
                flush=True,
            )
    rows: dict[str, list[dict[str, Any]]] = {variant: [] for variant in VARIANTS}
    for seed in SEEDS:
        for variant in VARIANTS:
            settings = final_settings(base, variant, choose(pilot[variant]), seed)
            found = train(settings, folder / f"{slug(variant)}-{settings.lr:g}" / f"seed-{seed}")
            rows[variant].append({"seed": seed} | found)
            print(f"seed {seed} {variant:<24} test error {100 * found['test_error']:.2f} %", flush=True)
    table = [
        summary(
            variant, final_settings(base, variant, choose(pilot[variant]), 0), pilot[variant], rows[variant]
        )
        for variant in VARIANTS
    ]
    results.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        results,
        {
            "settings": base.to_dict(),
            "held_out": HELD_OUT,
            "environment": describe_environment(),
            "variants": table,
        },
    )
    for row in table:
        print(
            f"{row['variant']:<24} {100 * row['test_error']:.2f} ± {100 * (row['test_error_se'] or 0):.2f} %"
        )


def slug(variant: str) -> str:
    return "-".join(variant.lower().replace(",", "").split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs") / "allconv", help="where the runs live")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    run(arguments.runs, arguments.results)


if __name__ == "__main__":
    main()
