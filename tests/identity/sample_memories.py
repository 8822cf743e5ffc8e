"""Memorized data sets to make pages from: small real ones, and ones with made-up numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import torch

from obverse.identity._recall import Recall, recall

ATTACK = "</style></title></svg></table><script>alert(1)</script><b onclick=alert(2)>'\"" + "x" * 5000


@cache
def _measured(labels: str, classes: int) -> Recall:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(120, 5, generator=generator), torch.arange(120) % classes
    found = recall(x[:80], y[:80], x[80:], y[80:], classes=classes, data="noise", labels=labels)
    return replace(found[1], seconds=0.25, versions={"obverse": "0.5", "torch": "2.13"})


def sample_memory(labels: str = "own", classes: int = 4, **more: Any) -> Recall:
    """80 points with labels that mean nothing."""
    return replace(_measured(labels, classes), **more)


def hostile(found: Recall) -> Recall:
    """The same with an attack in every text."""
    return replace(
        found,
        data=ATTACK,
        float32=None,
        float32_refused=ATTACK,
        facts=replace(found.facts, dtype=ATTACK),
        versions={ATTACK: ATTACK},
    )
