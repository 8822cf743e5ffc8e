"""What the numbers of a generator say, in plain sentences. Not for computing them."""

from __future__ import annotations

from math import log
from pathlib import PurePath
from typing import Any

from ..._core import FIXED, listed, plain, seconds, spell
from ...data import NAMES
from .._rundir import GeneratorRecord
from .settings import GeneratorSettings, foreign

MODELS = {
    "vae": "A variational autoencoder",
    "wgan": "A Wasserstein GAN",
    "mixture": "A mixture of generators",
}
APART = 1.25  # the ratio of gaps from which the critic is said to know the training images


def number(value: float, digits: int = 1) -> str:
    """With a minus sign that is one, and never −0."""
    text = f"{value:,.{digits}f}"
    return text.replace("-", "" if float(f"{value:.{digits}f}") == 0 else "−")


def gap(value: float) -> str:
    return number(value, 3)


def data_name(settings: GeneratorSettings) -> str:
    """The data set without the folders it lies in, which would name the machine or its user."""
    name = settings.data
    return plain(name if name in NAMES else PurePath(name).name or name)


def held(settings: GeneratorSettings) -> str:
    return "held-out" if settings.validation else "test"


def title(run: GeneratorRecord) -> str:
    return f"{MODELS[run.settings.model]} trained on {data_name(run.settings)}"


def verdict(run: GeneratorRecord) -> str:
    """The one line that stands first."""
    last, which = run.metrics[-1], held(run.settings)
    if not run.settings.is_game:
        return (
            f"{which.capitalize()} ELBO {number(last['test_elbo'])}{FIXED}nats per image: reconstruction "
            f"{number(last['test_reconstruction'])}, less KL {number(last['test_kl'])}."
        )
    higher = "higher" if last["test_gap"] >= 0 else "lower"
    return (
        f"The critic’s gap is {gap(last['test_gap'])}: on average it scores {which} images so much "
        f"{higher} than samples."
    )


def outlook(run: GeneratorRecord) -> list[str]:
    """What the verdict means, and what it does not."""
    settings, last = run.settings, run.metrics[-1]
    said = [_game(run) if settings.is_game else _vae(settings, last)]
    if settings.model == "mixture":
        said.append(_mixture(run))
    said.append(
        f"Trained for {last['epoch']:,} of {settings.epochs:,} epochs. It is one run, and this page does not "
        "say whether the distribution was learned: obverse diversity tests that on samples."
    )
    return said


def _vae(settings: GeneratorSettings, last: dict[str, Any]) -> str:
    if settings.decoder == "gaussian":
        return (
            "log p(x) of an image, a density, is on average at least this; it moves with the σ of "
            f"{settings.sigma:g} that was chosen, so that only bounds with the same σ compare."
        )
    if settings.binarize:
        return "Pixels are drawn as 0 or 1: log p(x) of such an image is on average at least this."
    binarized = last.get("test_elbo_binarized")
    beside = (
        ""
        if binarized is None
        else f" With each pixel drawn as 0 or 1 it is a bound of log p(x): {number(binarized)}{FIXED}nats."
    )
    return f"On grey pixels this is the usual cross entropy, not a probability.{beside}"


def _game(run: GeneratorRecord) -> str:
    last, which = run.metrics[-1], held(run.settings)
    test, train = last["test_gap"], last["train_gap"]
    said = (
        "For the best critic of slope 1 the gap would be the Wasserstein distance; a small one can also mean "
        f"a weak critic. Against training images it is {gap(train)}"
    )
    if train > 0 and train > APART * test:
        return f"{said}: the critic knows these, and tells them from samples more easily than {which} images."
    return f"{said}, much the same: the critic has not memorized the training images."


def _mixture(run: GeneratorRecord) -> str:
    last, count = run.metrics[-1], run.settings.components
    weights = sorted(last["weights"], reverse=True)
    shown = [f"{weight:.2f}" for weight in weights[:8]] + (["…"] if count > 8 else [])
    entropy = number(last["weights_entropy"], 2)
    return (
        f"{count} generators with weights {listed(shown)}: entropy {entropy} of at most "
        f"{log(count):.2f}{FIXED}nats."
    )


def missing(run: GeneratorRecord) -> str:
    if run.finished:
        return ""
    return (
        f"This run is not finished: it has reached epoch {run.metrics[-1]['epoch']:,} of "
        f"{run.settings.epochs:,}. The numbers are provisional."
    )


def tiles(run: GeneratorRecord) -> list[tuple[str, str]]:
    last, which = run.metrics[-1], held(run.settings)
    spent = seconds(sum(record["seconds"] for record in run.metrics))
    if run.settings.is_game:
        found = [
            (f"gap, {which} images", gap(last["test_gap"])),
            ("gap, training images", gap(last["train_gap"])),
        ]
        if last.get("penalty") is not None:
            found.append(("gradient penalty", number(last["penalty"], 4)))
        if run.settings.model == "mixture":
            found.append(("entropy of the weights", number(last["weights_entropy"], 2)))
    else:
        found = [
            (f"{which} ELBO, nats", number(last["test_elbo"])),
            ("reconstruction", number(last["test_reconstruction"])),
            ("KL", number(last["test_kl"])),
        ]
        if last.get("test_elbo_binarized") is not None:
            found.append(("ELBO, pixels 0 or 1", number(last["test_elbo_binarized"])))
    return [*found, ("seconds of training", spent)]


def settings_table(run: GeneratorRecord) -> list[tuple[str, str]]:
    """What the model looks at; where data lie would name the machine or its user."""
    hidden = ("data_root", *foreign(run.settings))
    values = {name: value for name, value in run.settings.to_dict().items() if name not in hidden}
    return [
        (name, plain(spell(value))) for name, value in (values | {"data": data_name(run.settings)}).items()
    ]


def again(run: GeneratorRecord) -> str:
    """The command that draws samples, for the page."""
    return f"obverse generate sample {plain(run.path.resolve().name)} --count 1000 --out samples.npz"
