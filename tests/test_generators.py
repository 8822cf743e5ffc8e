"""One meaning of `generator=None` everywhere: torch's global generator, which `torch.manual_seed` seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from obverse import BadInput, Shadow
from obverse.diversity import (
    assess,
    birthday_test,
    intrinsic_dimension,
    memorization,
    moments,
    path_length,
    principal_directions,
    train_encoder,
)
from obverse.generative import VAE, WGAN, Mixture, log_likelihood
from obverse.identity import memorize, random_projection
from obverse.ladder import enumerate_teacher, random_student, sample_teacher, tree
from obverse.nets import relu_mlp
from obverse.weights import shuffled

Generator = torch.Generator | None
POINTS = torch.randn(120, 6, generator=torch.Generator().manual_seed(0))
MORE = torch.randn(120, 6, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(120) % 4
GRAPH = tree(4)
SHADOW = Shadow(relu_mlp((6,), (5,), 3, generator=torch.Generator().manual_seed(0)))


def sampler(count: int, generator: torch.Generator) -> Tensor:
    return torch.randint(300, (count, 1), generator=generator).float()


def measured(generator: Generator) -> Any:
    found, _ = assess(sampler, samples=60, batch_size=5, batches=4, generator=generator)
    return {**found.to_dict(), "seconds": 0}


MAKERS: dict[str, Callable[[Generator], Any]] = {
    "VAE": lambda g: VAE((6,), latent=2, hidden=(5,), generator=g).state_dict(),
    "VAE.sample": lambda g: fixed_vae().sample(4, g),
    "VAE.elbo": lambda g: fixed_vae().elbo(torch.full_like(POINTS, 0.5), g).total,
    "WGAN": lambda g: WGAN((6,), latent=2, hidden=(5,), generator=g).state_dict(),
    "Mixture": lambda g: Mixture((6,), 2, latent=2, hidden=(5,), generator=g).state_dict(),
    "log_likelihood": lambda g: log_likelihood(fixed_vae(), POINTS.sigmoid(), samples=3, generator=g),
    "birthday_test": lambda g: birthday_test(sampler, 20, 10, generator=g).to_dict(),
    "assess": measured,
    "memorization": lambda g: memorization(POINTS, MORE, POINTS.flip(0) + 0.1, generator=g).to_dict(),
    "moments": lambda g: moments(POINTS, MORE, generator=g).to_dict(),
    "intrinsic_dimension": lambda g: intrinsic_dimension(POINTS, generator=g).to_dict(),
    "train_encoder": lambda g: train_encoder(POINTS, width=2, steps=2, generator=g)(POINTS),
    "path_length": lambda g: path_length(torch.sin, 3, pairs=16, generator=g).to_dict(),
    "principal_directions": lambda g: (
        principal_directions(lambda z: z**3, POINTS, 1, whole=False, rounds=1, generator=g).vectors
    ),
    "memorize": lambda g: memorize(POINTS, LABELS, generator=g).state_dict(),
    "random_projection": lambda g: random_projection(5, 3, generator=g),
    "relu_mlp": lambda g: relu_mlp((6,), (5,), 3, generator=g).state_dict(),
    "shuffled": lambda g: shuffled(POINTS, generator=g),
    "sample_teacher": lambda g: sample_teacher(GRAPH, count=20, generator=g).inputs,
    "random_student": lambda g: (
        random_student(enumerate_teacher(GRAPH, "majority").model, 3, generator=g).weights
    ),
    "Shadow.of": lambda g: SHADOW.of(POINTS, "h1", 0.5, g),
}


# nn.Linear draws weights from the global generator before ours replace them, and torch has a faster
# bernoulli_ for its global generator, with other numbers.
OTHER_NUMBERS = ("relu_mlp", "Shadow.of")


def fixed_vae() -> VAE:
    return VAE((6,), latent=2, hidden=(5,), generator=torch.Generator().manual_seed(0))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


@pytest.mark.parametrize("name", MAKERS)
def test_without_a_generator_the_global_seed_decides(name):
    make = MAKERS[name]
    torch.manual_seed(3)
    first = make(None)
    torch.manual_seed(3)
    assert same(make(None), first), "the same seed"
    if name not in OTHER_NUMBERS:
        assert same(make(torch.Generator().manual_seed(3)), first), "as a generator of that seed"
    assert not same(make(None), first), "the global generator has gone on"
    before = torch.get_rng_state()
    make(torch.Generator().manual_seed(4))
    alone = torch.equal(torch.get_rng_state(), before)
    assert alone or name == "relu_mlp", "a generator of one's own leaves the global one alone"


def test_what_is_no_generator_is_refused():
    for make in (
        lambda g: VAE((6,), generator=g),
        lambda g: memorize(POINTS, LABELS, generator=g),
        lambda g: sample_teacher(GRAPH, count=20, generator=g),
        lambda g: birthday_test(sampler, generator=g),
    ):
        with pytest.raises(BadInput, match=r"a torch\.Generator, or None for torch's global one; got int"):
            make(0)
