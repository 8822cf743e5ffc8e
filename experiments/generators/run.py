"""Five generators on MNIST in one table: VAE, WGAN, MIX+GAN, an RBM, and a net's own shadow.

The training pictures are dealt at random: 40,000 to train on, 10,000 held out, and 10,000 that play a perfect
generator. The official test pictures are of other writers; the net whose features are compared is trained on
them, so that it knows none of the others. Each generator makes 10,000 pictures, and the same instruments look
at all of them, beside three lines whose answers are known: real pictures, training pictures with noise, and a
GAN that was made to collapse. Results are written as they come and never measured twice; trained nets and
samples stay in runs/generators.

    python -m experiments.generators.run [DATA_ROOT]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from obverse._core.tensors import load_tensors, save_tensors
from obverse.data import Dataset, load
from obverse.diversity._birthday import birthday_test
from obverse.diversity._dimension import intrinsic_dimension
from obverse.diversity._features import Features, of_module
from obverse.diversity._memorization import memorization
from obverse.diversity._moments import moments
from obverse.diversity._quality import quality
from obverse.diversity._vendi import vendi
from obverse.generative._likelihood import log_likelihood
from obverse.generative._shadow_generator import ShadowGenerator
from obverse.generative._vae import VAE
from obverse.generative._wgan import WGAN
from obverse.nets._small_conv import small_cnn
from obverse.training._classify import ClassifierTask, fit_classifier, load_trained
from obverse.training._generators.fit import fit_generator, generator_task
from obverse.training._generators.settings import GeneratorSettings
from obverse.training._rundir import create_generator_run, create_run
from obverse.training._settings import Settings

from .._lab.result_files import measure

RUNS = Path("runs/generators")
OUT = Path(__file__).parent / "results"
SAMPLES = 10_000
SHOWN = 14  # in the figure
TRAINING = {
    "VAE": GeneratorSettings(model="vae", data="mnist", epochs=20),
    "WGAN": GeneratorSettings(model="wgan", data="mnist"),
    "MIX+GAN": GeneratorSettings(model="mixture", data="mnist"),
}
SHADOW = Settings(data="mnist", hidden=(500, 500), weight=1.0, epochs=10, lr=0.05)
RBM = {"n_components": 256, "learning_rate": 0.02, "batch_size": 100, "n_iter": 20}
GIBBS = 1000  # steps of each chain, from fair coins
COLLAPSED = {"steps": 1500, "critic_steps": 1, "generator_steps": 5}
NOISE = 0.05
Sampler = Callable[[int, torch.Generator], Tensor]


def deal(data: Dataset) -> tuple[Dataset, Tensor]:
    """(what generators train on, held-out pictures in place of the test set; pictures of the perfect one)."""
    order = torch.randperm(len(data.train_x), generator=torch.Generator().manual_seed(0))
    held, perfect, rest = order.split([SAMPLES, SAMPLES, len(order) - 2 * SAMPLES])
    x, y = data.train_x, data.train_y
    return replace(data, train_x=x[rest], train_y=y[rest], test_x=x[held], test_y=y[held]), x[perfect]


def feature_net(data: Dataset, file: Path) -> nn.Sequential:
    """A small convolutional classifier of the official test pictures; features come from its last but one
    layer."""
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(small_cnn((1, 28, 28), 64, (16, 32, 64), generator=generator), nn.ReLU())
    head = nn.utils.skip_init(nn.Linear, 64, 10)
    with torch.no_grad():
        head.weight.normal_(0, 64**-0.5, generator=generator)
        head.bias.zero_()
    whole = nn.Sequential(net, head)
    if file.exists():
        whole.load_state_dict(load_tensors(file))
        return whole.eval()
    optimizer = torch.optim.Adam(whole.parameters(), 1e-3)
    for _ in range(10):
        for rows in torch.randperm(len(data.test_x), generator=generator).split(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(whole(data.test_x[rows]), data.test_y[rows]).backward()
            optimizer.step()
    file.parent.mkdir(parents=True, exist_ok=True)
    save_tensors(file, whole.state_dict())
    return whole.eval()


def trained(name: str, data: Dataset) -> Sampler:
    """One of the library's generators; resumes where it was interrupted."""
    run = RUNS / name
    task = generator_task(TRAINING[name], data)
    if not (run / "config.json").exists():
        create_generator_run(run, task.settings, data.input_shape)
    fit_generator(task, run)
    task.net.eval()
    return task.net.sample


def shadow(keep: float, data: Dataset) -> Sampler:
    run = RUNS / "shadow-net"
    task = ClassifierTask(SHADOW, data)
    if not (run / "config.json").exists():
        create_run(run, SHADOW)
    fit_classifier(task, run)
    net = load_trained(SHADOW, data, run / "model.safetensors")
    return ShadowGenerator(net, data.train_x, keep=keep).sample


def boltzmann(data: Dataset) -> Sampler:
    """scikit-learn's BernoulliRBM; a sample is the mean of the visible units after a long Gibbs chain."""
    file = RUNS / "rbm.safetensors"
    if not file.exists():
        from sklearn.neural_network import BernoulliRBM

        model = BernoulliRBM(**RBM, random_state=0).fit(data.train_x.flatten(1).numpy())
        found = {"w": model.components_, "v": model.intercept_visible_, "h": model.intercept_hidden_}
        save_tensors(file, {name: torch.from_numpy(each).float() for name, each in found.items()})
    kept = load_tensors(file)
    weights, visible, hidden = kept["w"], kept["v"], kept["h"]

    def sample(count: int, generator: torch.Generator) -> Tensor:
        v = torch.bernoulli(torch.full((count, 784), 0.5), generator=generator)
        for _ in range(GIBBS):
            h = torch.bernoulli((v @ weights.T + hidden).sigmoid(), generator=generator)
            mean = (h @ weights + visible).sigmoid()
            v = torch.bernoulli(mean, generator=generator)
        return mean.reshape(-1, 1, 28, 28)

    return sample


def collapsed(data: Dataset) -> Sampler:
    """A WGAN whose generator takes five steps for one of the critic: it runs after one picture at a time."""
    net = WGAN((1, 28, 28), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    critic = torch.optim.Adam(net.critic_parameters(), 3e-4, betas=(0.0, 0.9))
    maker = torch.optim.Adam(net.generator_parameters(), 3e-4, betas=(0.0, 0.9))
    for _ in range(COLLAPSED["steps"]):
        for _ in range(COLLAPSED["critic_steps"]):
            critic.zero_grad()
            rows = torch.randint(len(data.train_x), (100,), generator=generator)
            net.critic_loss(data.train_x[rows], generator)[0].backward()
            critic.step()
        for _ in range(COLLAPSED["generator_steps"]):
            maker.zero_grad()
            net.generator_loss(100, generator).backward()
            maker.step()
    return net.eval().sample


def copies(data: Dataset) -> Sampler:
    def sample(count: int, generator: torch.Generator) -> Tensor:
        rows = torch.randint(len(data.train_x), (count,), generator=generator)
        noise = torch.randn(count, 1, 28, 28, generator=generator)
        return (data.train_x[rows] + NOISE * noise).clamp(0, 1)

    return sample


REAL = "real pictures"
THREADS = 2
METHODS: dict[str, Callable[[Dataset], Sampler]] = {
    "training pictures + noise": copies,
    "collapsed GAN": collapsed,
    "VAE": lambda data: trained("VAE", data),
    "WGAN": lambda data: trained("WGAN", data),
    "MIX+GAN": lambda data: trained("MIX+GAN", data),
    "RBM": boltzmann,
    "shadow": lambda data: shadow(1.0, data),
    "shadow, keep 0.5": lambda data: shadow(0.5, data),
}


def look(
    name: str, data: Dataset, perfect: Tensor, features: Features, classify: nn.Module
) -> dict[str, Any]:
    """Train, draw, measure. Samples are kept as .npy, for `obverse diversity`."""
    samples = perfect if name == REAL else METHODS[name](data)(SAMPLES, torch.Generator().manual_seed(2))
    np.save(RUNS / f"{slug(name)}.npy", samples.numpy())
    save_strip(samples[:SHOWN], OUT / f"{slug(name)}.png")
    mine, train, real = (features(x) for x in (samples, data.train_x, data.test_x))
    with torch.no_grad():
        logits = torch.cat([classify(part) for part in samples.split(1000)])
    found: dict[str, Any] = {
        "birthday": birthday_test(samples, real=data.test_x, generator=seeded()),
        "birthday_features": birthday_test(samples, real=data.test_x, features=features, generator=seeded()),
        "quality": quality(mine, real),
        "moments": moments(mine, real, logits=logits, generator=seeded()),
        "memorization": memorization(
            *(x.flatten(1) for x in (samples, data.train_x, data.test_x)), generator=seeded()
        ),
        "memorization_features": memorization(mine, train, real, generator=seeded()),
        "vendi": vendi(mine),
        "dimension": intrinsic_dimension(mine, generator=seeded()),
        "dimension_pixels": intrinsic_dimension(samples.flatten(1), generator=seeded()),
    }
    return {key: one.to_dict() for key, one in found.items()}


def evidence(data: Dataset) -> dict[str, Any]:
    """The VAE on all training pictures and the official test set: bounds and log p(x), nats a picture."""
    run = RUNS / "VAE-official"
    task = generator_task(TRAINING["VAE"], data)
    if not (run / "config.json").exists():
        create_generator_run(run, task.settings, data.input_shape)
    last = fit_generator(task, run)[-1]
    generator = torch.Generator().manual_seed(4)
    binary = torch.bernoulli(data.test_x[:1000], generator=generator)
    task.net.eval()
    assert isinstance(task.net, VAE)
    better = log_likelihood(task.net, binary, samples=1000, generator=generator)
    names = ("test_elbo", "test_reconstruction", "test_kl", "test_elbo_binarized")
    return {name: last[name] for name in names} | {
        "log_likelihood_binarized": float(better.double().mean()),
        "log_likelihood_error": float(better.double().std()) / len(better) ** 0.5,
    }


def save_strip(pictures: Tensor, place: Path) -> None:
    from PIL import Image

    place.parent.mkdir(parents=True, exist_ok=True)
    levels = (255 * pictures[:, 0]).round().to(torch.uint8)
    Image.fromarray(torch.cat(list(levels), 1).numpy()).save(place)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def slug(name: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split()).lower()


def run(root: str | None = None) -> None:
    torch.set_num_threads(THREADS)
    official = load("mnist", root)
    RUNS.mkdir(parents=True, exist_ok=True)
    data, perfect = deal(official)
    whole = feature_net(official, RUNS / "features.safetensors")
    with torch.no_grad():
        wrong = sum(
            int((whole(x).argmax(1) != y).sum())
            for x, y in zip(data.test_x.split(1000), data.test_y.split(1000), strict=True)
        )
    settings = {
        "samples": SAMPLES,
        "training_pictures": len(data.train_x),
        "feature_net": {"error": wrong / len(data.test_y), "features": 64},
        "training": {name: each.to_dict() for name, each in TRAINING.items()},
        "shadow": SHADOW.to_dict(),
        "rbm": RBM | {"gibbs": GIBBS},
        "collapsed": COLLAPSED,
        "noise": NOISE,
    }
    features = of_module(whole[0], name="feature net")
    entries = {name: partial(look, name, data, perfect, features, whole) for name in (REAL, *METHODS)}
    measure(OUT / "generators.json", settings, entries, threads=THREADS)
    vae = {"settings": TRAINING["VAE"].to_dict(), "threads": THREADS}
    measure(OUT / "vae.json", vae, {"official": partial(evidence, official)}, threads=THREADS)


if __name__ == "__main__":
    run(*sys.argv[1:2])
