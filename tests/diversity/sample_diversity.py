"""Diversity tests to make pages from: small real ones, and one with an attack in every text."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from obverse.data import load
from obverse.diversity._measure import Pictures, assess
from obverse.diversity.results import Diversity, Skipped

ATTACK = "</style></title></svg></table><script>alert(1)</script><b onclick=alert(2)>'\"" + "x" * 5000
VERSIONS = {"obverse": "0.5", "torch": "2.13"}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def decode(z: Tensor) -> Tensor:
    """A smooth generator of 8 × 8 pictures."""
    weight = torch.randn(64, 6, generator=generator(1))
    return (z @ weight.T).sigmoid().reshape(-1, 1, 8, 8)


def sampler(count: int, source: torch.Generator) -> Tensor:
    return decode(torch.randn(count, 6, generator=source))


@cache
def measured(kind: str = "full") -> tuple[Diversity, Pictures]:
    """`full`: a generator with all data. `few`: 12 pictures again and again. `plain`: no data. `points`."""
    data = load("digits")
    train, real = data.train_x[:400], data.test_x[:200]
    small = {"samples": 150, "generator": generator(), "paths": 8}
    if kind == "full":
        found = assess(
            sampler,
            train=train,
            real=real,
            decode=decode,
            latent=6,
            labelled=(train, data.train_y[:400], data.classes),
            batch_size=20,
            batches=10,
            settings={"source": "full", "train": "digits:train", "real": "digits:test", "seed": 0},
            **small,
        )
    elif kind == "few":
        pool = train[torch.arange(600) % 12]
        found = assess(pool, train=train, real=real, batch_size=8, batches=20, **small)
    elif kind == "plain":
        found = assess(data.train_x[:300], **small)
    else:
        found = assess(torch.rand(300, 5, generator=generator()), threshold=0.05, **small)
    return replace(found[0], subject=kind, seconds=0.25, versions=VERSIONS), found[1]


def sample_diversity(kind: str = "full") -> Diversity:
    return measured(kind)[0]


def hostile(found: Diversity) -> Diversity:
    """The same with an attack in every text."""
    return replace(
        found,
        subject=ATTACK,
        features=ATTACK,
        broken=(ATTACK,),
        broken_total=1,
        skipped=(Skipped(ATTACK, ATTACK),),
        notes=(ATTACK,),
        labels=tuple(replace(one, label=ATTACK) for one in found.labels),
        settings={"source": ATTACK, ATTACK: ATTACK},
        smoothness=None if found.smoothness is None else replace(found.smoothness, kind=ATTACK),
        versions={ATTACK: ATTACK},
    )
