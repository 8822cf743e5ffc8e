"""The settings of a generator's training: one frozen value, each default written once, with its reason.

Not for reading flags: see cli. What the three models have in common stands first; what only some of them look
at is refused for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from ..._core import BadInput, Body, Decoder, Kind
from .._settings import FromMapping, check

# Where a good choice depends on the model. The VAE: the usual 784-400-20. The games: seeds of 16 numbers gave
# more readable digits than seeds of 64.
HIDDEN: dict[Kind, tuple[int, ...]] = {"vae": (400,), "wgan": (256, 256), "mixture": (256, 256)}
LATENT: dict[Kind, int] = {"vae": 20, "wgan": 16, "mixture": 16}
# Adam's. Nets this small stand ten times the lr that is usual in games of deep ones, and are slow without.
LR: dict[Kind, float] = {"vae": 1e-3, "wgan": 1e-3, "mixture": 1e-3}
# Updates after which samples of the digits are readable: about a minute on one core; two for a mixture, whose
# steps cost five times as much. A small data set is passed over more often.
STEPS: dict[Kind, int] = {"vae": 6_000, "wgan": 15_000, "mixture": 6_000}
FEWEST_EPOCHS = 20  # of a large data set: brings the VAE of MNIST to −104.4 nats
EVALUATIONS = 50  # enough for a curve; an epoch of a small data set is shorter than its evaluation


@dataclass(frozen=True)
class GeneratorSettings(FromMapping):
    """Everything that decides the numbers of a run.

    `hidden`, `latent` and `lr` are values once this is made: those of the model, unless they were given.
    """

    model: Kind = "vae"

    data: str = "digits"  # embedded, so that everything works without a download
    data_root: str | None = None
    train_size: int | None = None  # None: all training points; else so many, drawn with the seed
    validation: int = 0  # so many training points are held out and take the place of the test set

    body: Body = "mlp"  # takes any shape, is fast on a CPU, and is enough for digits
    hidden: tuple[int, ...] = None  # type: ignore[assignment]  # by the model
    latent: int = None  # type: ignore[assignment]  # by the model
    decoder: Decoder = "bernoulli"  # of the VAE, as is usual for pixels in [0, 1]; the notes' is "gaussian"
    sigma: float = 0.3  # of the Gaussian decoder; on digits, samples are best: at 0.8 the code says nothing
    binarize: bool = False  # VAE: pixels are drawn as 0 or 1, anew in each step; the test set once
    penalty: float = 10.0  # of the critic's gradient, as in the paper that proposed it
    critic_steps: int = 5  # of the critic for one of the generator: the same paper's
    components: int = 5  # generators, and critics, of the mixture
    entropy: float = 0.1  # weight of the entropy that keeps the mixture from giving up components

    epochs: int | None = None  # None: as many as `settled` says; a run has a number
    batch_size: int = 100  # as for the classifier
    lr: float = None  # type: ignore[assignment]  # by the model

    seed: int = 0
    evaluate_every: int | None = None  # epochs; None: about `EVALUATIONS` times; a run has a number
    checkpoint_every: int | None = None  # steps; None: at each evaluation; a run has a number

    def __post_init__(self) -> None:
        check(f"model out of {', '.join(get_args(Kind))}", self.model, self.model in get_args(Kind))
        for name, usual in (("hidden", HIDDEN), ("latent", LATENT), ("lr", LR)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual[self.model])
        object.__setattr__(self, "hidden", tuple(self.hidden))
        check(f"body out of {', '.join(get_args(Body))}", self.body, self.body in get_args(Body))
        decoders = get_args(Decoder)
        check(f"decoder out of {', '.join(decoders)}", self.decoder, self.decoder in decoders)
        check("train_size ≥ 1", self.train_size, self.train_size is None or self.train_size >= 1)
        check("validation ≥ 0", self.validation, self.validation >= 0)
        check("hidden widths ≥ 1", self.hidden, all(width >= 1 for width in self.hidden))
        check("latent ≥ 1", self.latent, self.latent >= 1)
        check("sigma > 0", self.sigma, 0 < self.sigma < float("inf"))
        check("penalty ≥ 0", self.penalty, 0 <= self.penalty < float("inf"))
        check("critic_steps ≥ 1", self.critic_steps, self.critic_steps >= 1)
        check("components ≥ 1", self.components, self.components >= 1)
        check("entropy ≥ 0", self.entropy, 0 <= self.entropy < float("inf"))
        check("epochs ≥ 1", self.epochs, self.epochs is None or self.epochs >= 1)
        check("batch_size ≥ 1", self.batch_size, self.batch_size >= 1)
        check("lr > 0", self.lr, 0 < self.lr < float("inf"))
        check("seed ≥ 0", self.seed, self.seed >= 0)
        for name in ("evaluate_every", "checkpoint_every"):
            every = getattr(self, name)
            check(f"{name} ≥ 1", every, every is None or every >= 1)

    @property
    def is_game(self) -> bool:
        """A generator against a critic, or several; not a VAE."""
        return self.model != "vae"


# What only some of the models look at.
OF_MODELS: dict[str, tuple[Kind, ...]] = {
    "decoder": ("vae",),
    "sigma": ("vae",),
    "binarize": ("vae",),
    "penalty": ("wgan", "mixture"),
    "critic_steps": ("wgan", "mixture"),
    "components": ("mixture",),
    "entropy": ("mixture",),
}


def foreign(settings: GeneratorSettings) -> tuple[str, ...]:
    """The settings that this run does not look at."""
    others = [name for name, models in OF_MODELS.items() if settings.model not in models]
    if settings.model == "vae":
        others.append("binarize" if settings.decoder == "gaussian" else "sigma")
    return tuple(others)


def refuse_foreign(settings: GeneratorSettings) -> None:
    """An error for what would change nothing."""
    default = GeneratorSettings()
    for name in foreign(settings):
        value = getattr(settings, name)
        if value != getattr(default, name):
            own = settings.model in OF_MODELS[name]  # then it is the decoder that does not look at it
            raise BadInput(
                f"no {name} for the {'decoder' if own else 'model'} "
                f"{settings.decoder if own else settings.model!r}",
                got=f"{name} {value}",
                do="leave it out, or choose another decoder"
                if own
                else f"leave it out, or set model to {' or '.join(map(repr, OF_MODELS[name]))}",
            )


def settled(settings: GeneratorSettings, points: int) -> GeneratorSettings:
    """The same settings with the numbers that depend on how many training points there are.

    Unless they were given: so many epochs that the model gets its usual number of updates, evaluated about
    `EVALUATIONS` times, and a checkpoint whenever it is.
    """
    steps_per_epoch = -(-points // settings.batch_size)
    usual = max(FEWEST_EPOCHS, -(-STEPS[settings.model] // steps_per_epoch))
    epochs = usual if settings.epochs is None else settings.epochs
    every = max(1, epochs // EVALUATIONS) if settings.evaluate_every is None else settings.evaluate_every
    saved = every * steps_per_epoch if settings.checkpoint_every is None else settings.checkpoint_every
    return replace(settings, epochs=epochs, evaluate_every=every, checkpoint_every=saved)
