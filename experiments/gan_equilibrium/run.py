"""Equilibrium on MNIST: what both sides of a trained mixture could still win, by the number T of generators.

    python -m experiments.gan_equilibrium.run [--data DIR] [--out FOLDER]   (an hour)

Mixtures of T small generators and T small critics are trained, for equally many steps. Then each side is
frozen and a fresh player is trained against it: a critic against the mixture of generators, a generator
against the mixture of critics. The gap is what the two win together, on test images and on fresh seeds: 0 at
an equilibrium. Trained players are no exact best responses, so that the true gap is larger. Payoffs are
divided by the critic's slope between real and generated images, as a critic is paid by its steepness.
Control: "wide", one generator and one critic with as many weights as five.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from obverse.data import load
from obverse.generative import _networks as networks
from obverse.generative._mixture import Mixture
from obverse.generative._wgan import draw_shares, gradient_penalty, interpolates, picture_maker
from obverse.present.palette import GREY

from .._lab.drawing import new_figure, save, tidy
from .._lab.result_files import error, mean, measure

RESULTS = Path(__file__).parent / "results"
SHAPE = (1, 28, 28)
LATENT, HIDDEN, WIDE = 16, 64, 320
MEMBERS = {"1": (1, HIDDEN), "2": (2, HIDDEN), "3": (3, HIDDEN), "5": (5, HIDDEN), "wide": (1, WIDE)}
SEEDS = 3
STEPS, CRITIC_STEPS, BATCH = 15_000, 3, 64  # of the critics; a generators' step for so many of these
RATE, BETAS = 5e-4, (0.5, 0.9)
FRESH_STEPS, FRESH_BATCH, FRESH_RATE = (
    4_000,
    128,
    1e-3,
)  # of a best response; its rate falls to 0 along a line
GENERATOR_STEPS = 1_500
HELD_OUT = 10_000
PENALTY = 10.0
SETTINGS = {
    "latent": LATENT,
    "members": {name: list(sizes) for name, sizes in MEMBERS.items()},
    "steps": STEPS,
    "critic steps": CRITIC_STEPS,
    "batch": BATCH,
    "rate": RATE,
    "fresh": [FRESH_STEPS, FRESH_BATCH, FRESH_RATE, GENERATOR_STEPS],
    "penalty": PENALTY,
    "seeds": SEEDS,
}
Score = Callable[[Tensor], Tensor]
Draw = Callable[[int, torch.Generator], Tensor]


def batch_of(images: Tensor, size: int, generator: torch.Generator) -> Tensor:
    return images[torch.randint(len(images), (size,), generator=generator)]


def trained(train: Tensor, components: int, hidden: int, seed: int) -> Mixture:
    """A mixture, both sides by Adam in turn."""
    generator = torch.Generator().manual_seed(seed)
    net = Mixture(
        SHAPE,
        components=components,
        latent=LATENT,
        hidden=(hidden,),
        penalty=PENALTY,
        generator=generator,
    )
    critics = torch.optim.Adam(net.critic_parameters(), lr=RATE, betas=BETAS)
    generators = torch.optim.Adam(net.generator_parameters(), lr=RATE, betas=BETAS)
    for step in range(STEPS):
        loss, _, _ = net.critic_loss(batch_of(train, BATCH, generator), generator)
        critics.zero_grad()
        loss.backward()
        critics.step()
        if (step + 1) % CRITIC_STEPS == 0:
            generators.zero_grad()
            net.generator_loss(BATCH, generator).backward()
            generators.step()
    return net.requires_grad_(False)


def descend(net: nn.Module, steps: int, loss: Callable[[], Tensor]) -> None:
    """Adam on a loss that draws its own batches."""
    adam = torch.optim.Adam(net.parameters(), lr=FRESH_RATE, betas=BETAS)
    for step in range(steps):
        adam.param_groups[0]["lr"] = FRESH_RATE * (1 - step / steps)
        adam.zero_grad()
        loss().backward()
        adam.step()


def fresh_critic(train: Tensor, draw: Draw, hidden: int, generator: torch.Generator) -> nn.Module:
    """A critic of the same size as the players', trained against a mixture that stays as it is."""
    critic = networks.critic(SHAPE, (hidden,), generator=generator)

    def loss() -> Tensor:
        real, fake = batch_of(train, FRESH_BATCH, generator), draw(FRESH_BATCH, generator)
        between = interpolates(real, fake, draw_shares(real, generator))
        return PENALTY * gradient_penalty(critic, between) - critic(real).mean() + critic(fake).mean()

    descend(critic, FRESH_STEPS, loss)
    return critic


def fresh_generator(score: Score, hidden: int, generator: torch.Generator) -> Draw:
    """A generator of the same size as the players', trained against critics that stay as they are."""
    net = picture_maker(LATENT, SHAPE, (hidden,), "mlp", generator)

    def draw(count: int, source: torch.Generator) -> Tensor:
        return net(torch.randn(count, LATENT, generator=source))

    descend(net, GENERATOR_STEPS, lambda: -score(draw(FRESH_BATCH, generator)).mean())
    return draw


def paid(score: Score, real: Tensor, draw: Draw, generator: torch.Generator) -> float:
    """E_real D − E_G D ÷ the slope of D between the two, on held-out images and as many drawn ones."""
    with torch.no_grad():
        fake = draw(len(real), generator)
        payoff = float(score(real).mean() - score(fake).mean())
    return payoff / slope(score, real, fake, generator)


def slope(score: Score, real: Tensor, fake: Tensor, generator: torch.Generator) -> float:
    """The root mean square of ‖∇D‖ between real and drawn images."""
    x = interpolates(real, fake, draw_shares(real, generator)).requires_grad_()
    (found,) = torch.autograd.grad(score(x).sum(), x)
    return float(found.flatten(1).square().sum(1).mean().sqrt())


def one_run(train: Tensor, test: Tensor, components: int, hidden: int, seed: int) -> dict[str, Any]:
    net = trained(train, components, hidden, seed)
    generator = torch.Generator().manual_seed(1000 + seed)
    weights, critics = net.weights()

    def mixed(x: Tensor) -> Tensor:
        return critics @ net.scores(x)

    critic = fresh_critic(train, net.sample, HIDDEN, generator)
    answer = fresh_generator(mixed, HIDDEN, generator)
    with torch.no_grad():
        fake = net.sample(len(test), generator)
    unit = slope(mixed, test, fake, generator)  # one slope for both payoffs of the same critics
    with torch.no_grad():
        real = float(mixed(test).mean())
        own = (real - float(mixed(fake).mean())) / unit
        won = (real - float(mixed(answer(len(test), generator)).mean())) / unit
    best = paid(critic, test, net.sample, generator)
    return {
        "critic": best,  # max over D of F(mixture, D)
        "own": own,  # F(mixture, mixture)
        "generator": won,  # min over G of F(G, mixture)
        "gap": best - won,
        "weights": weights.tolist(),
        "critic weights": critics.tolist(),
    }


def draw_figure(entries: dict[str, Any], place: Path) -> None:
    figure = new_figure(9, 3.4)
    for axes, (key, title, label) in zip(
        figure.subplots(1, 2),
        (
            ("critic", "a fresh critic against the mixture", "payoff per unit of slope"),
            ("gap", "both fresh players together", "gap per unit of slope"),
        ),
        strict=True,
    ):
        names = [name for name in MEMBERS if name != "wide"]
        values = {name: [entries[f"{name}, seed {seed}"][key] for seed in range(SEEDS)] for name in MEMBERS}
        x = [int(name) for name in names]
        for at, name in zip(x, names, strict=True):
            axes.plot([at] * SEEDS, values[name], ".", color=GREY)
        axes.errorbar(x, [mean(values[name]) for name in names], [error(values[name]) for name in names])
        axes.axhline(mean(values["wide"]), color=GREY, linestyle=":")
        axes.text(x[-1], mean(values["wide"]), "one wide generator", color=GREY, ha="right", va="bottom")
        axes.set_xticks(x)
        axes.set_ylim(bottom=0)
        tidy(axes, title, "generators T", label)
    save(figure, place)


def run(data: str | None = None, out: Path = RESULTS) -> None:
    """Of MNIST in the folder `data`."""
    mnist = load("mnist", data)
    train, test = mnist.train_x, mnist.test_x[:HELD_OUT]
    measure(
        out / "equilibrium.json",
        SETTINGS,
        {
            f"{name}, seed {seed}": partial(one_run, train, test, *sizes, seed)
            for seed in range(SEEDS)
            for name, sizes in MEMBERS.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=None, help="where data sets are kept")
    parser.add_argument("--out", type=Path, default=RESULTS)
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
