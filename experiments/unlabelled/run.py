"""100 labels and 59,900 pictures without: what do shadows, noise and both give? The classic MNIST table.

    python -m experiments.unlabelled.run --data-root DIR     (DIR/mnist holds the official files)
    python -m experiments.unlabelled.run --quick             (embedded digits, under a minute)

784-500-500-10, Adam, 20 labelled and 100 unlabelled points a step, the rate divided by ten after three
quarters of the steps. Every method gets the same 6 trials (rates and weights) on 1,000 held-out points, with
labels of their own, after TUNING_STEPS steps; then SEEDS seeds, each with its own 10 labels a class, the same
for every method, and the official test set. Three methods also for 2,000 steps with all labels in each, after
3 trials each, and two of these and one more for 10,000. Resumable; results in results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from obverse.data import Dataset, load
from obverse.shadow import ShadowLoss
from obverse.training import ClassifierTask, Diverged, Settings, fit_classifier

from .._lab.result_files import measure
from .._lab.shadow_variants import (
    FromEitherLayer,
    FromNoisy,
    FromNoisyHidden,
    LateDenoise,
    UntiedDecoder,
    Variant,
)

FOLDER = Path(__file__).parent / "results"
QUICK_FOLDER = Path("runs") / "quick" / "unlabelled"
LABELS = 100
BASE = Settings(
    data="mnist",
    train_size=LABELS,
    balanced=True,
    batch_size=20,
    hidden=(500, 500),
    optimizer="adam",
    weight=0.0,
    device="cpu",
)
RATES = (0.001, 0.002, 0.004)
PLAIN_RATES = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.004)
STRENGTHS = (1.0, 4.0)  # of the shadow's loss; ten times that for the loss of denoising, which is below 1
TUNING_STEPS, FINAL_STEPS = 800, 1200
# Longer runs with all labels in every step: steps of the trials, of the final runs; trials as (rate, weight,
# denoise).
LONGER = {"long": (1000, 2000), "longest": (3000, 10_000)}
LONG = {
    "plain": ((0.001, 0.0, 0.0), (0.002, 0.0, 0.0), (0.004, 0.0, 0.0)),
    "noise": ((0.002, 4.0, 0.0), (0.002, 8.0, 0.0), (0.001, 4.0, 0.0)),
    "noise + shadow denoising": ((0.002, 4.0, 10.0), (0.002, 8.0, 10.0), (0.001, 4.0, 10.0)),
}
LATE = "noise, then shadow denoising too"
LONG[LATE] = LONG["noise + shadow denoising"]
# Plain training ends long before 10,000 steps; denoising from the middle on is for those alone.
LONGER_METHODS: dict[str, Sequence[str]] = {
    "long": ("plain", "noise", "noise + shadow denoising"),
    "longest": ("noise", LATE, "noise + shadow denoising"),
}
TUNING_SEED, SEEDS = 1000, range(5)
HELD_OUT = 1000
ABOUT = {"labels": LABELS, "base": BASE.to_dict() | {"data_root": None}}


@dataclass(frozen=True)
class Method:
    """What a method changes in the base settings; `weighted` names the settings that its strength is for."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    weighted: tuple[str, ...] = ()
    loss: type[ShadowLoss] = ShadowLoss

    def settings(self, rate: float, strength: float) -> Settings:
        sizes: dict[str, Any] = {name: strength * (10 if name == "denoise" else 1) for name in self.weighted}
        unlabelled: dict[str, Any] = {"unlabelled": 100} if self.weighted else {}
        return replace(BASE, lr=rate, **self.changes, **unlabelled, **sizes)

    def grid(self) -> list[tuple[float, float]]:
        if not self.weighted:
            return [(rate, 0.0) for rate in PLAIN_RATES]
        return [(rate, strength) for strength in STRENGTHS for rate in RATES]


AGREE = {"labels": "consistency"}
METHODS = {
    "plain": Method(),
    "noise": Method({**AGREE, "control": "noise"}, ("weight",)),
    "noise + shadow denoising": Method({**AGREE, "control": "noise"}, ("weight", "denoise")),
    "shadows": Method(AGREE, ("weight",)),
    "sampled shadows": Method({**AGREE, "keep": 0.5}, ("weight",)),
    "shadow denoising": Method({}, ("denoise",)),
    "noise + another decoder": Method({**AGREE, "control": "noise"}, ("weight", "denoise"), UntiedDecoder),
    "dropout": Method({"dropout": 0.5}),
    "pseudo-labels": Method({"labels": "net", "control": "same"}, ("weight",)),
    "shadows, net's label": Method({"labels": "net"}, ("weight",)),
    "shadows of noisy x": Method(AGREE, ("weight",), FromNoisy),
    "shadows of noisy h": Method(AGREE, ("weight",), FromNoisyHidden),
    "shadows from h1 and h2": Method(AGREE, ("weight",), FromEitherLayer),
    "shuffled shadows": Method({**AGREE, "control": "shuffled"}, ("weight",)),
}
LATE_METHOD = Method({**AGREE, "control": "noise"}, ("weight", "denoise"), LateDenoise)


def train(method: Method, settings: Settings, data: Dataset, steps: int) -> dict[str, Any]:
    """Test error and error on shadows after so many steps; a run that diverges counts as guessing."""
    epochs = steps * settings.batch_size // LABELS
    settings = replace(settings, epochs=epochs, evaluate_every=epochs, milestones=(steps * 3 // 4,))
    started = process_time()
    task = Variant(settings, data, method.loss)
    task.evaluate = dict  # type: ignore[method-assign]  # once, at the end
    try:
        fit_classifier(task)
    except Diverged:
        return {"test_error": 0.9, "diverged": True}
    seconds = process_time() - started
    found = ClassifierTask.evaluate(task)
    return {name: found[name] for name in ("test_error", "shadow_error")} | {"seconds": seconds}


def tuning_data(data: Dataset) -> Dataset:
    """The last 10,000 training points (of few a quarter) are put aside; 1,000 stand in for the test set."""
    kept = len(data.train_x) - min(10_000, len(data.train_x) // 4)
    held = slice(kept, kept + HELD_OUT)
    return replace(
        data,
        train_x=data.train_x[:kept],
        train_y=data.train_y[:kept],
        test_x=data.train_x[held],
        test_y=data.train_y[held],
    )


def choose(tuning: Mapping[str, Any], name: str) -> tuple[float, float]:
    """The rate and strength with the least error on the held-out points."""
    return min(METHODS[name].grid(), key=lambda pair: tuning[f"{name}|{pair[0]}|{pair[1]}"]["test_error"])


def tune(data: Dataset, folder: Path, name: str, steps: int) -> Settings:
    """The chosen settings of a method."""
    method, held_out = METHODS[name], tuning_data(data)
    tuning = measure(
        folder / "tuning.json",
        ABOUT | {"steps": steps, "seed": TUNING_SEED},
        {
            f"{name}|{rate}|{strength}": partial(
                train, method, replace(method.settings(rate, strength), seed=TUNING_SEED), held_out, steps
            )
            for rate, strength in method.grid()
        },
    )["entries"]
    return method.settings(*choose(tuning, name))


def run_short(
    data: Dataset, folder: Path, names: list[str], tuning_steps: int, final_steps: int, seeds: range
) -> None:
    for some in (seeds[:3], seeds[3:]):  # all methods with three seeds first
        for name in names:
            settings = tune(data, folder, name, tuning_steps)
            measure(
                folder / "final.json",
                ABOUT | {"steps": final_steps},
                {
                    f"{name}|{seed}": partial(
                        train, METHODS[name], replace(settings, seed=seed), data, final_steps
                    )
                    for seed in some
                },
            )


def long_method(name: str) -> Method:
    return LATE_METHOD if name == LATE else METHODS[name]


def long_settings(name: str, rate: float, weight: float, denoise: float) -> Settings:
    settings = long_method(name).settings(rate, 1.0)
    return replace(settings, batch_size=LABELS, weight=weight, denoise=denoise)


def choose_long(tuning: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """The trial of a longer run with the least error on the held-out points."""
    return min(LONG[name], key=lambda trial: tuning["|".join(map(str, (name, *trial)))]["test_error"])


def run_long(
    data: Dataset, folder: Path, kind: str, names: Sequence[str], steps: tuple[int, int], seeds: range
) -> None:
    held_out, (tuning_steps, final_steps) = tuning_data(data), steps
    tuning = measure(
        folder / f"{kind}-tuning.json",
        ABOUT | {"steps": tuning_steps, "seed": TUNING_SEED},
        {
            "|".join(map(str, (name, *trial))): partial(
                train,
                long_method(name),
                replace(long_settings(name, *trial), seed=TUNING_SEED),
                held_out,
                tuning_steps,
            )
            for name in names
            for trial in LONG[name]
        },
    )["entries"]
    chosen = {name: long_settings(name, *choose_long(tuning, name)) for name in names}
    measure(
        folder / f"{kind}.json",
        ABOUT | {"steps": final_steps},
        {
            f"{name}|{seed}": partial(
                train, long_method(name), replace(settings, seed=seed), data, final_steps
            )
            for seed in seeds
            for name, settings in chosen.items()
        },
    )


def run(
    quick: bool = False, data_root: str | None = None, methods: str | None = None, long: bool = False
) -> None:
    """All methods, or those named with semicolons between them; `long`: only the longer runs."""
    names = methods.split(";") if methods else list(METHODS)
    if quick:
        run_short(load("digits"), QUICK_FOLDER, names, 5, 40, range(2))
        for kind, longer in LONGER_METHODS.items():
            run_long(load("digits"), QUICK_FOLDER, kind, longer, (5, 40), range(2))
        return
    data = load("mnist", data_root)
    if not long:
        run_short(data, FOLDER, names, TUNING_STEPS, FINAL_STEPS, SEEDS)
    for kind, steps in LONGER.items():
        longer = [name for name in LONGER_METHODS[kind] if not methods or name in names]
        run_long(data, FOLDER, kind, longer, steps, SEEDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-root", help="folder that holds mnist/")
    parser.add_argument("--methods", help="names, with semicolons between them [all]")
    parser.add_argument("--long", action="store_true", help="only the longer runs")
    parser.add_argument(
        "--quick", action="store_true", help="a few steps on embedded digits, into runs/quick"
    )
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
