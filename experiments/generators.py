"""Five generators on MNIST in one table: VAE, WGAN, MIX+GAN, an RBM, and a net's own shadow.

Each makes 20,000 pictures, and the same instruments look at all of them, beside three lines whose answers are
known: held-out real pictures, training pictures with noise, and a GAN that was made to collapse. Results are
written as they come and never measured twice; trained nets and samples stay in runs/generators.

    python experiments/generators.py [DATA_ROOT]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from ladder_results import RESULTS, measure
from torch import Tensor, nn

from obverse.data import Dataset, load
from obverse.diversity.birthday import birthday_test
from obverse.diversity.dimension import intrinsic_dimension
from obverse.diversity.features import Features, of_module
from obverse.diversity.memorization import memorization
from obverse.diversity.moments import moments
from obverse.diversity.quality import quality
from obverse.diversity.vendi import vendi
from obverse.generative.shadow_generator import ShadowGenerator
from obverse.generative.wgan import WGAN
from obverse.nets.small_conv import small_cnn
from obverse.tensors import load_tensors, save_tensors
from obverse.training.classify import ClassifierTask, fit_classifier, load_trained
from obverse.training.generator_settings import GeneratorSettings
from obverse.training.generators import fit_generator, generator_task
from obverse.training.rundir import create_generator_run, create_run, read_metrics
from obverse.training.settings import Settings

RUNS = Path("runs/generators")
OUT = RESULTS / "generators"
SAMPLES = 20_000
SHOWN = 14  # in the figure
TRAINING = {
    "VAE": GeneratorSettings(model="vae", data="mnist", epochs=20),
    "WGAN": GeneratorSettings(model="wgan", data="mnist"),
    "MIX+GAN": GeneratorSettings(model="mixture", data="mnist"),
}
SHADOW = Settings(data="mnist", hidden=(500, 500), weight=1.0, epochs=10, rate=0.05)
RBM = {"n_components": 256, "learning_rate": 0.02, "batch_size": 100, "n_iter": 20}
GIBBS = 1000  # steps of each chain, from fair coins
COLLAPSED = {"steps": 1500, "critic_steps": 1, "generator_steps": 5}
NOISE = 0.05
Sampler = Callable[[int, torch.Generator], Tensor]


def feature_net(data: Dataset, file: Path) -> nn.Sequential:
    """A small convolutional classifier; what stands before its last layer, 64 numbers, is the feature."""
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
    for _ in range(3):
        for rows in torch.randperm(len(data.train_x), generator=generator).split(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(whole(data.train_x[rows]), data.train_y[rows]).backward()
            optimizer.step()
    file.parent.mkdir(parents=True, exist_ok=True)
    save_tensors(file, whole.state_dict())
    return whole.eval()


def trained(name: str, data: Dataset) -> tuple[Sampler, float]:
    """(sampler, seconds of training) of one of the library's generators; goes on where it was cut off."""
    run = RUNS / name
    task = generator_task(TRAINING[name], data)
    if not (run / "config.json").exists():
        create_generator_run(run, task.settings, data.input_shape)
    fit_generator(task, run)
    task.net.eval()
    return task.net.sample, sum(record["seconds"] for record in read_metrics(run))


def shadow(keep: float, data: Dataset) -> tuple[Sampler, float]:
    run = RUNS / "shadow-net"
    task = ClassifierTask(SHADOW, data)
    if not (run / "config.json").exists():
        create_run(run, SHADOW)
    fit_classifier(task, run)
    net = load_trained(SHADOW, data, run / "model.safetensors")
    seconds = sum(record["seconds"] for record in read_metrics(run))
    return ShadowGenerator(net, data.train_x, keep=keep).sample, seconds


def boltzmann(data: Dataset) -> tuple[Sampler, float]:
    """scikit-learn's BernoulliRBM; a sample is the mean of the visible units after a long Gibbs chain."""
    from sklearn.neural_network import BernoulliRBM

    start = perf_counter()
    model = BernoulliRBM(**RBM, random_state=0).fit(data.train_x.flatten(1).numpy())
    seconds = perf_counter() - start
    weights = torch.from_numpy(model.components_).float()
    visible, hidden = (
        torch.from_numpy(each).float() for each in (model.intercept_visible_, model.intercept_hidden_)
    )

    def sample(count: int, generator: torch.Generator) -> Tensor:
        v = torch.bernoulli(torch.full((count, 784), 0.5), generator=generator)
        for _ in range(GIBBS):
            h = torch.bernoulli((v @ weights.T + hidden).sigmoid(), generator=generator)
            mean = (h @ weights + visible).sigmoid()
            v = torch.bernoulli(mean, generator=generator)
        return mean.reshape(-1, 1, 28, 28)

    return sample, seconds


def collapsed(data: Dataset) -> tuple[Sampler, float]:
    """A WGAN whose generator takes five steps for one of the critic: it runs after one picture at a time."""
    net = WGAN((1, 28, 28), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    critic = torch.optim.Adam(net.critic_parameters(), 3e-4, betas=(0.0, 0.9))
    maker = torch.optim.Adam(net.generator_parameters(), 3e-4, betas=(0.0, 0.9))
    start = perf_counter()
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
    return net.eval().sample, perf_counter() - start


def held_out(data: Dataset) -> tuple[Sampler, float]:
    """The last of the training pictures; the others are what they are taken to be trained on."""
    return lambda count, generator: data.train_x[-count:], 0.0


def copies(data: Dataset) -> tuple[Sampler, float]:
    def sample(count: int, generator: torch.Generator) -> Tensor:
        rows = torch.randint(len(data.train_x), (count,), generator=generator)
        noise = torch.randn(count, 1, 28, 28, generator=generator)
        return (data.train_x[rows] + NOISE * noise).clamp(0, 1)

    return sample, 0.0


REAL = "real pictures"
THREADS = 2
METHODS: dict[str, Callable[[Dataset], tuple[Sampler, float]]] = {
    REAL: held_out,
    "training pictures + noise": copies,
    "collapsed GAN": collapsed,
    "VAE": lambda data: trained("VAE", data),
    "WGAN": lambda data: trained("WGAN", data),
    "MIX+GAN": lambda data: trained("MIX+GAN", data),
    "RBM": boltzmann,
    "shadow": lambda data: shadow(1.0, data),
    "shadow, keep ½": lambda data: shadow(0.5, data),
}


def look(name: str, data: Dataset, features: Features, classify: nn.Module) -> dict[str, Any]:
    """Train, draw, measure. Samples are kept as .npy, for `obverse diversity` and for the figure."""
    torch.manual_seed(0)
    sampler, training = METHODS[name](data)
    generator = torch.Generator().manual_seed(2)
    start = perf_counter()
    samples = sampler(SAMPLES, generator)
    drawing = perf_counter() - start
    file = RUNS / f"{slug(name)}.npy"
    np.save(file, samples.numpy())
    save_strip(samples[:SHOWN], OUT / f"{slug(name)}.png")
    train = data.train_x[:-SAMPLES] if name == REAL else data.train_x
    mine, real = features(samples), features(data.test_x)
    some = torch.arange(0, SAMPLES, max(1, SAMPLES // len(real)))  # as many as there are test pictures
    in_pixels = birthday_test(samples, real=data.test_x, generator=torch.Generator().manual_seed(3))
    in_features = birthday_test(
        samples, real=data.test_x, features=features, generator=torch.Generator().manual_seed(3)
    )
    with torch.no_grad():
        logits = torch.cat([classify(part) for part in samples.split(1000)])
    found = moments(mine, real, logits=logits)
    return {
        "seconds": training,
        "per_1000": 1000 * drawing / SAMPLES,
        "birthday": in_pixels.to_dict(),
        "birthday_features": in_features.to_dict(),
        "quality": quality(mine[some], real).to_dict(),
        "moments": found.to_dict(),
        "memorization": memorization(mine[some], features(train), real).to_dict(),
        "vendi": vendi(mine[some]).to_dict(),
        "dimension": intrinsic_dimension(mine[some]).to_dict(),
        "dimension_pixels": intrinsic_dimension(samples[some].flatten(1)).to_dict(),
    }


def save_strip(pictures: Tensor, place: Path) -> None:
    from PIL import Image

    place.parent.mkdir(parents=True, exist_ok=True)
    levels = (255 * pictures[:, 0]).round().to(torch.uint8)
    Image.fromarray(torch.cat(list(levels), 1).numpy()).save(place)


def slug(name: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split()).lower()


def main(root: str | None) -> None:
    data = load("mnist", root)
    RUNS.mkdir(parents=True, exist_ok=True)
    whole = feature_net(data, RUNS / "features.safetensors")
    with torch.no_grad():
        wrong = sum(
            int((whole(x).argmax(1) != y).sum())
            for x, y in zip(data.test_x.split(1000), data.test_y.split(1000), strict=True)
        )
    settings = {
        "samples": SAMPLES,
        "feature_net": {"test_error": wrong / len(data.test_y), "features": 64},
        "training": {name: each.to_dict() for name, each in TRAINING.items()},
        "shadow": SHADOW.to_dict(),
        "rbm": RBM | {"gibbs": GIBBS},
        "collapsed": COLLAPSED,
        "noise": NOISE,
    }
    features = of_module(whole[0], name="feature net")
    names = [name for name in METHODS if name != REAL]
    measure(
        OUT / "generators.json",
        settings,
        {name: partial(look, name, data, features, whole) for name in (REAL, *names)},
        threads=THREADS,
    )


if __name__ == "__main__":
    main(*sys.argv[1:2] or [None])
