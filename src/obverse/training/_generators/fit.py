"""The generators of GeneratorSettings as Tasks: VAE, Wasserstein GAN, mixture. Not for what their losses are.

A run of one is a run like any other: checkpoints, resumed to the bit, metrics, weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..._core import (
    EVALUATION,
    INITIAL,
    STEPS,
    BadInput,
    bounded_weights,
    check_tensors,
    derive_generator,
    load_weights,
    parse_tensors,
    quoted,
    read_file,
)
from ...data import Dataset, load
from ...generative import VAE, WGAN, Mixture
from .._batches import Batches, fingerprint, refuse_other_data
from .._classify import split
from .._fit import fit
from .._rundir import GeneratorRecord, read_generator_run
from .._settings import Settings
from .settings import GeneratorSettings, refuse_foreign, settled

Model = VAE | WGAN | Mixture
EVALUATION_BATCH = 1000
TEST_PIXELS, SAMPLES = 1, 2  # streams of an evaluation
ADAM = ("step", "exp_avg", "exp_avg_sq")  # what it remembers of a parameter
# The game moves while it is played: a running mean of old gradients would push a player to where the other no
# longer is. With a gradient penalty no mean at all is usual; the squares are still averaged.
BETAS_OF_GAMES = (0.0, 0.9)


def initial_generator(
    settings: GeneratorSettings, input_shape: Sequence[int], stored: int | None = None
) -> Model:
    """The generator a run starts from: a function of its settings and the shape of an image.

    `stored` is the size of the file of its weights, where the settings come from an untrusted run.
    """
    refuse_foreign(settings)
    s = settings
    sizes = f"hidden {s.hidden}, latent {s.latent}, shape {tuple(input_shape)}"
    with bounded_weights(stored, "sizes", sizes):
        return _initial_generator(s, input_shape, sizes)


def _initial_generator(s: GeneratorSettings, input_shape: Sequence[int], sizes: str) -> Model:
    generator = derive_generator(s.seed, INITIAL)
    try:
        if s.model == "vae":
            return VAE(input_shape, s.latent, s.hidden, s.body, s.decoder, s.sigma, generator=generator)
        if s.model == "wgan":
            return WGAN(input_shape, s.latent, s.hidden, s.body, s.penalty, generator=generator)
        return Mixture(
            input_shape,
            s.components,
            s.entropy,
            latent=s.latent,
            hidden=s.hidden,
            body=s.body,
            penalty=s.penalty,
            generator=generator,
        )
    except RuntimeError as error:  # how torch says that memory is short
        raise BadInput("sizes whose weights fit into memory", got=sizes, do="use smaller ones") from error


class GeneratorTask:
    """What the tasks share: data, batches, Adam for each player, and the mean of each part of the loss.

    `parts` are the numbers of a step that are logged, as means over the epoch so far. They are in the
    checkpoint: a resumed epoch has the mean of all its steps.
    """

    parts: ClassVar[tuple[str, ...]]

    def __init__(self, settings: GeneratorSettings, data: Dataset | None = None) -> None:
        data = load(settings.data, settings.data_root) if data is None else data
        asked = Settings(train_size=settings.train_size, validation=settings.validation, seed=settings.seed)
        self.train_x, _, self.test_x, _ = split(asked, data)
        for x in (self.train_x, self.test_x):
            if float(x.min()) < 0 or float(x.max()) > 1:
                raise BadInput(
                    f"pixels in [0, 1] in {data.name}: that is what generators make",
                    got=f"values from {float(x.min()):g} to {float(x.max()):g}",
                    do="scale them",
                )
        self.settings = settled(settings, len(self.train_x))
        self.net = initial_generator(self.settings, data.input_shape)
        self.optimizers: list[torch.optim.Adam] = []
        self._totals = torch.zeros(2, len(self.parts), dtype=torch.float64)  # sums, and of how many
        self._batches = Batches(len(self.train_x), settings.batch_size, settings.seed)
        self._digest: Tensor | None = None

    @property
    def steps_per_epoch(self) -> int:
        return len(self._batches)

    def step(self, epoch: int, index: int) -> float:
        settings, number = self.settings, epoch * self.steps_per_epoch + index
        if index == 0:
            self._totals.zero_()
        self.net.train()
        x = self.train_x[self._batches.rows(epoch, index)]
        return self.update(x, number, derive_generator(settings.seed, STEPS, number))

    def update(self, x: Tensor, number: int, generator: torch.Generator) -> float:
        """One step, the `number`-th from 0, with these training points."""
        raise NotImplementedError

    def measure(self) -> dict[str, Any]:
        """The numbers of an evaluation on test points."""
        raise NotImplementedError

    def evaluate(self) -> dict[str, Any]:
        self.net.eval()
        sums, counts = self._totals.tolist()
        means = zip(self.parts, sums, counts, strict=True)
        return {name: total / count for name, total, count in means if count} | self.measure()

    def add(self, part: str, value: Tensor) -> None:
        """Take note of a part of this step's loss."""
        place = self.parts.index(part)
        self._totals[0, place] += value.detach().double()
        self._totals[1, place] += 1

    def player(self, parameters: Iterable[nn.Parameter], betas: tuple[float, float] = (0.9, 0.999)) -> None:
        """One more optimizer, for these parameters."""
        self.optimizers.append(torch.optim.Adam(parameters, self.settings.lr, betas=betas))

    def descend(self, player: int, loss: Tensor) -> None:
        """One step of Adam for this player alone."""
        optimizer = self.optimizers[player]
        optimizer.zero_grad(set_to_none=True)
        loss.backward(inputs=optimizer.param_groups[0]["params"])
        optimizer.step()

    def model(self) -> dict[str, Tensor]:
        return dict(self.net.state_dict())

    def tensors(self) -> dict[str, Tensor]:
        """Weights, what Adam remembers, the means under way, and what tells whether the data are the same."""
        result = {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        for name, (optimizer, parameter) in self._trained().items():
            state = optimizer.state.get(parameter, {})
            for key, fresh in _fresh(parameter).items():
                result[f"adam.{name}.{key}"] = state.get(key, fresh)
        return result | {"totals": self._totals, "data": self._data_digest()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        tensors = with_new_names(tensors)
        check_tensors(self.tensors(), tensors, "the checkpoint")
        refuse_other_data(self._data_digest(), tensors["data"], self.settings.data)
        self.net.load_state_dict({name: tensors[f"net.{name}"] for name in self.net.state_dict()})
        for name, (optimizer, parameter) in self._trained().items():
            optimizer.state[parameter] = {key: tensors[f"adam.{name}.{key}"] for key in ADAM}
        self._totals = tensors["totals"]

    def _trained(self) -> dict[str, tuple[torch.optim.Adam, nn.Parameter]]:
        """Each parameter by its name, with the optimizer that moves it."""
        names = {parameter: name for name, parameter in self.net.named_parameters()}
        return {
            names[parameter]: (optimizer, parameter)
            for optimizer in self.optimizers
            for parameter in optimizer.param_groups[0]["params"]
        }

    def _data_digest(self) -> Tensor:
        if self._digest is None:
            self._digest = fingerprint(self.train_x)
        return self._digest


def with_new_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a run under today's names: the `decoder` of a WGAN was called `generator` before."""
    return {
        re.sub(r"^(net\.|adam\.|)generator\.", r"\1decoder.", name): tensor
        for name, tensor in tensors.items()
    }


def _fresh(parameter: nn.Parameter) -> dict[str, Tensor]:
    """What Adam knows of a parameter that it has never moved."""
    return {
        "step": torch.tensor(0.0),
        "exp_avg": torch.zeros_like(parameter),
        "exp_avg_sq": torch.zeros_like(parameter),
    }


class VAETask(GeneratorTask):
    """Raises the bound of log p(x). Numbers are nats per image."""

    parts = ("train_reconstruction", "train_kl")
    net: VAE

    def __init__(self, settings: GeneratorSettings, data: Dataset | None = None) -> None:
        super().__init__(settings, data)
        self.player(self.net.parameters())
        self._binary_test_x: Tensor | None = None

    def update(self, x: Tensor, number: int, generator: torch.Generator) -> float:
        if self.settings.binarize:
            x = torch.bernoulli(x, generator=generator)
        bound = self.net.elbo(x, generator)
        loss = -bound.total.mean()
        self.descend(0, loss)
        self.add("train_reconstruction", bound.reconstruction.mean())
        self.add("train_kl", bound.kl.mean())
        return loss.item()

    def measure(self) -> dict[str, Any]:
        """The bound on test points made like those that are trained on; the Bernoulli decoder's also on
        pixels that are 0 or 1, where alone it is a bound of a probability."""
        settings = self.settings
        x = self._binary() if settings.binarize else self.test_x
        reconstruction, kl = self._bound(x)
        result = {
            "test_elbo": reconstruction - kl,
            "test_reconstruction": reconstruction,
            "test_kl": kl,
        }
        if settings.decoder == "bernoulli" and not settings.binarize:
            reconstruction, kl = self._bound(self._binary())
            result["test_elbo_binarized"] = reconstruction - kl
        return result

    @torch.no_grad()
    def _bound(self, x: Tensor) -> tuple[float, float]:
        generator = derive_generator(self.settings.seed, EVALUATION)
        bounds = [self.net.elbo(part, generator) for part in x.split(EVALUATION_BATCH)]
        reconstruction = torch.cat([bound.reconstruction for bound in bounds]).double().mean().item()
        return reconstruction, torch.cat([bound.kl for bound in bounds]).double().mean().item()

    def _binary(self) -> Tensor:
        """The test pixels drawn as 0 or 1, once for the whole run."""
        if self._binary_test_x is None:
            generator = derive_generator(self.settings.seed, EVALUATION, TEST_PIXELS)
            self._binary_test_x = torch.bernoulli(self.test_x, generator=generator)
        return self._binary_test_x


class GameTask(GeneratorTask):
    """Generator against critic, of a WGAN or a mixture: every step moves the critic, every `critic_steps`-th
    then the generator, so that an epoch is one pass of the critic over the training points."""

    parts = ("critic_gap", "penalty", "generator_loss")
    net: WGAN | Mixture

    def __init__(self, settings: GeneratorSettings, data: Dataset | None = None) -> None:
        super().__init__(settings, data)
        self.player(self.net.critic_parameters(), BETAS_OF_GAMES)
        self.player(self.net.generator_parameters(), BETAS_OF_GAMES)

    def update(self, x: Tensor, number: int, generator: torch.Generator) -> float:
        """The loss that is returned is the critic's."""
        loss, gap, penalty = self.net.critic_loss(x, generator)
        self.descend(0, loss)
        self.add("critic_gap", gap)
        self.add("penalty", penalty)
        if (number + 1) % self.settings.critic_steps == 0:
            other = self.net.generator_loss(self.settings.batch_size, generator)
            self.descend(1, other)
            self.add("generator_loss", other)
        return loss.item()

    @torch.no_grad()
    def measure(self) -> dict[str, Any]:
        """The critic's gap to the same samples from test points and from as many training points, and the
        weights of a mixture. Where the first is smaller, the critic knows the training points."""
        generator = derive_generator(self.settings.seed, EVALUATION, SAMPLES)
        count = len(self.test_x)
        parts = [min(EVALUATION_BATCH, count - done) for done in range(0, count, EVALUATION_BATCH)]
        made = torch.cat([self._scores(self.net.sample(part, generator)) for part in parts]).mean()
        test, train = (
            torch.cat([self._scores(part) for part in x.split(EVALUATION_BATCH)]).mean() - made
            for x in (self.test_x, self.train_x[:count])
        )
        result: dict[str, Any] = {"test_gap": test.item(), "train_gap": train.item()}
        if isinstance(self.net, Mixture):
            generators, critics = self.net.weights()
            result |= {
                "weights": generators.tolist(),
                "weights_entropy": _entropy(generators),
                "critic_weights": critics.tolist(),
                "critic_weights_entropy": _entropy(critics),
            }
        return result

    def _scores(self, x: Tensor) -> Tensor:
        """The critic's, or those of all critics by their weights, in float64 for their mean."""
        if isinstance(self.net, Mixture):
            return self.net.weights()[1].double() @ self.net.scores(x).double()
        scores: Tensor = self.net.critic(x)
        return scores.double()


def _entropy(weights: Tensor) -> float:
    """In nats: log T if all T count alike, 0 if one counts alone."""
    return float(torch.special.entr(weights.double()).sum())


def generator_task(settings: GeneratorSettings, data: Dataset | None = None) -> VAETask | GameTask:
    """The task of a model; `data` saves loading it."""
    return (GameTask if settings.is_game else VAETask)(settings, data)


def fit_generator(task: VAETask | GameTask, run: Path | None = None, **display: Any) -> list[dict[str, Any]]:
    """`fit` with what the task's own settings say; `display` are its callbacks."""
    settings = task.settings
    assert settings.epochs is not None  # a task has settled them
    assert settings.evaluate_every is not None
    return fit(
        task,
        settings.epochs,
        seed=settings.seed,
        run=run,
        evaluate_every=settings.evaluate_every,
        checkpoint_every=settings.checkpoint_every,
        **display,
    )


def load_generator(run: str | Path) -> Model:
    """The trained generator of a run directory, in evaluation mode; the data are not needed."""
    return trained_generator(read_generator_run(Path(run)))


def trained_generator(record: GeneratorRecord) -> Model:
    """The same, of a directory that has been read."""
    path = record.path / "model.safetensors"
    try:
        content = read_file(path, "the weights of a run")
    except OSError as error:
        raise BadInput(
            f"the weights of a finished run in {path}",
            got=error.strerror,
            do=f"resume it with: obverse generate train --resume {quoted(record.path)}",
        ) from None
    net = initial_generator(record.settings, record.input_shape, len(content))
    load_weights(net, with_new_names(parse_tensors(content, path)), str(path))
    return net.eval()
