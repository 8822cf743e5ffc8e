"""The self-check of `obverse doctor`: each instrument computes something small whose answer is known.

Each check is a function that returns what it found; nothing is printed here. All of them together take a few
seconds, so none can say more than that the instrument works on this machine: claims say whether theory holds.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .._core import Progress, Record

State = Literal["ok", "missing", "failed"]
REPORT = "run it again with --debug and report what it prints, with the versions above"
SIGMAS = 4.0  # standard errors: a right formula is farther off once in 16,000 times, and the seed is fixed
NORMAL = 0.03  # of the closed form, which takes ĥ as normal: see obverse.shadow.recovery_error
ROUNDING = 1e-9  # of sums of float64: their own error is about 1e-13
CLAIM = "alm.lemma2.5.exact"  # holds, with a bound to be measured, in half a second


@dataclass(frozen=True)
class Check(Record):
    """One line of the doctor's: what was looked at, how it is, what was found, what to do about it."""

    name: str
    state: State
    said: str
    do: str = ""
    seconds: float | None = None


Finding = tuple[bool, str]


def run_checks(debug: bool = False, progress: Progress | None = None) -> list[Check]:
    """All of them. One that crashes has failed; with `debug` its error is let through."""
    found = []
    for number, (name, check) in enumerate(CHECKS.items()):
        if progress:
            progress(number, len(CHECKS), name)
        started = time.perf_counter()
        try:
            well, said = check()
        except Exception as error:
            if debug:
                raise
            well, said = False, f"{type(error).__name__}: {' '.join(str(error).split())}"
        seconds = time.perf_counter() - started
        found.append(Check(name, "ok" if well else "failed", said, "" if well else REPORT, seconds))
    return found


def check_shadow() -> Finding:
    """Hidden vectors of a net for the digits, through fresh random layers: the error that theory says."""
    import torch
    from torch import nn

    from ..data import load
    from ..nets import relu_mlp
    from ..shadow import Shadow, recovery_error, relative_error

    inputs, hidden, keep, layers = 2000, 100, 0.5, 24
    generator = torch.Generator().manual_seed(0)
    data = load("digits")
    net = relu_mlp(data.input_shape, hidden=(hidden,), classes=10, generator=generator)
    h = Shadow(net, input_shape=data.input_shape).infer(data.test_x[:50], "h1").detach()
    h = h[h.any(1)]
    size = h.norm(dim=1, keepdim=True)
    h = h / size  # one weight each in the mean
    errors = []
    for _ in range(layers):
        linear = nn.Linear(inputs, hidden)
        nn.init.normal_(linear.weight, generator=generator)
        nn.init.zeros_(linear.bias)
        shadow = Shadow(nn.Sequential(linear, nn.ReLU()), input_shape=(inputs,))
        (top,) = shadow.layers
        drawn = shadow.sample(h, top, keep=keep, generator=generator)
        errors.append(relative_error(shadow.infer(drawn, top), h))
    predicted = float(recovery_error(h, keep * inputs, 0.0, inputs).mean())
    measured = torch.tensor(errors, dtype=torch.float64)
    mean, error = float(measured.mean()), float(measured.std()) / math.sqrt(layers)
    allowed = SIGMAS * error + NORMAL * predicted
    said = f"recovery error {mean:.4f} ± {error:.4f}, the closed form says {predicted:.4f}"
    return abs(mean - predicted) <= allowed, said


def check_audit() -> Finding:
    """In a layer of random entries no signal is found."""
    import torch

    from ..weights import audit

    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(200, 300, generator=generator)
    (layer,) = audit({"random.weight": weight}, model="a random layer", generator=generator).layers
    return layer.verdict == "untouched", f"a layer of 200 × 300 random entries: {layer.verdict}"


def check_claim() -> Finding:
    """One theorem in its quick settings, with the verdict that was found before."""
    from ..claims import find, run

    (outcome,) = run(find([CLAIM]), quick=True)
    return outcome.verdict == outcome.expected, f"{CLAIM} {outcome.verdict}: {outcome.sentence}"


def check_ladder() -> Finding:
    """Where events tell everything, backpropagation on events is that on inputs."""
    import torch

    from ..ladder import compare, enumerate_teacher, random_student, tree

    teacher = enumerate_teacher(tree(8, 2), "full")
    found = compare(teacher, random_student(teacher.model, 3, generator=torch.Generator().manual_seed(0)))
    gap = max(found.worst, found.worst_recursive)
    return gap <= ROUNDING, f"ΔW on events and on inputs differ by {gap:.1e} of its size"


def check_birthday() -> Finding:
    """The bound covers the number of images that a sampler of known size makes."""
    import torch

    from ..diversity import birthday_test

    pictures = 400
    confidence = 0.999  # a right bound is below the truth once in a thousand seeds, and this seed is fixed

    def sample(count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.randint(pictures, (count, 1), generator=generator).float()

    generator = torch.Generator().manual_seed(0)
    found = birthday_test(sample, batch_size=40, batches=50, confidence=confidence, generator=generator)
    bound = found.support_bound
    said = "no collision seen" if bound is None else f"at most {bound:,.0f} images, of {pictures}"
    return bound is not None and pictures <= bound <= 10 * pictures, said


def check_run() -> Finding:
    """A training, written to a run directory and read back: the same net and the same numbers."""
    import torch

    from ..data import load
    from ..training import ClassifierTask, Settings, create_run, fit_classifier, load_trained, read_run

    settings = Settings(hidden=(32,), epochs=4, train_size=500)
    with tempfile.TemporaryDirectory(prefix="obverse-") as folder:
        path = Path(folder) / "run"
        task = ClassifierTask(settings)
        create_run(path, settings)
        records = fit_classifier(task, path)
        run = read_run(path)
        kept = run.finished and run.settings == settings
        data = load("digits")
        net = load_trained(run.settings, data, path / "model.safetensors")
        with torch.no_grad():
            error = float((net(data.test_x).argmax(1) != data.test_y).double().mean())
    told = records[-1]["test_error"]
    said = f"test error {100 * told:.1f} % in training, {100 * error:.1f} % of what was read back"
    return kept and abs(error - told) <= ROUNDING, said


CHECKS: dict[str, Callable[[], Finding]] = {
    "shadow": check_shadow,
    "audit": check_audit,
    "claim": check_claim,
    "ladder": check_ladder,
    "birthday": check_birthday,
    "run directory": check_run,
}
