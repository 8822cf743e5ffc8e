"""Surveys with made-up numbers to make pages from, and directories with real pictures in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from obverse.shadow._shadow import Reverse
from obverse.shadow._survey import Surveyor, survey
from obverse.shadow.charts import write_pictures
from obverse.shadow.results import NAME, LayerSurvey, Reading, Survey
from saved import write_result

ATTACK = "</style></title></svg></table><script>alert(1)</script><b onclick=alert(2)>'\"" + "x" * 5000
CLASSES = ("round", "a rather long name", "square")


def reading(agreement: float | None = 0.9, error: float | None = 0.25, cosine: float | None = 0.8) -> Reading:
    chance = None if agreement is None else 0.1
    return Reading(agreement, chance, error, 0.75, cosine, 0.0)


def layer(name: str, own: Reading, shuffled: Reading, **more: Any) -> LayerSurvey:
    fields: dict[str, Any] = {"shape": (16, 4, 4), "scale": 0.5, "theory_scale": 0.75, "level": 1.5}
    return LayerSurvey(name, own=own, shuffled=shuffled, **(fields | more))


def sample_survey(layers: int = 4, **more: Any) -> Survey:
    """Layers that draw worse and worse; the shuffled weights do from the second on."""
    found = tuple(
        layer(
            f"stage{place}.conv",
            reading(0.97 - 0.9 * place / layers, 0.1 + place / layers, 0.95 - 0.8 * place / layers),
            reading(0.9 if place == 0 else 0.12, 0.2 + place / layers, 0.6 - 0.5 * place / layers),
        )
        for place in range(layers)
    )
    fields: dict[str, Any] = {
        "model": "mynets:resnet",
        "weights": "resnet.safetensors",
        "random_weights": False,
        "data": "mnist",
        "samples": 200,
        "input_shape": (1, 28, 28),
        "test_error": 0.035,
        "calibrated": True,
        "keep": 1.0,
        "refine": 0,
        "smooth": False,
        "match_norm": False,
        "switches": False,
        "seed": 0,
        "layers": found,
        "versions": {"obverse": "0.5", "torch": "2.13"},
        "seconds": 12.3,
    }
    return Survey(**(fields | more))


def picture_net(channels: int, side: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(side * side, 3),
    )


def surveyed(
    folder: Path,
    channels: int = 1,
    side: int = 8,
    most: int = 12,
    reverse: Reverse = "transpose",
    **more: Any,
) -> tuple[Survey, Surveyor]:
    """A directory with shadow.json and pictures of a small net with random weights."""
    x = torch.rand(20, channels, side, side, generator=torch.Generator().manual_seed(1))
    y = torch.arange(20) % 3
    tool = Surveyor(picture_net(channels, side), x, reverse=reverse)
    result = replace(survey(tool, x, y, model="net", data="noise"), **more)
    write_result(result, folder / NAME)
    write_pictures(folder, tool, x, y, tool.own.layers, classes=CLASSES, most=most)
    return result, tool


def hostile(one: Survey) -> Survey:
    """The same with an attack in every text."""
    layers = tuple(replace(each, name=ATTACK) for each in one.layers)
    return replace(one, model=ATTACK, weights=ATTACK, data=ATTACK, versions={ATTACK: ATTACK}, layers=layers)
