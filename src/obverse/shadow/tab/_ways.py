"""Every way down from a layer, for one input, as the Shadow tab shows it. Not for measuring."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

import torch

from ...present import Fields, Subject, Tab, picture
from .._beside import REFINED, Beside, order
from .._survey import Surveyor
from ._shadow import MOST_REFINE, MOST_SMOOTH, _cosines, affordable, shadow_answer

SMALL = 2**22  # weights: beyond, the fits take so long that somebody has to ask for them
MOST_LAYERS = 12  # that the page asks for, evenly chosen if there are more


@lru_cache(maxsize=2)
def _beside(subject: Subject) -> Beside:
    """Calibrated at the first question; the ways down from a layer are fitted when it is first asked for."""
    found = Beside(Surveyor(subject.net, subject.inputs, reverse="fitted"), inf)
    found.steps = max(1, affordable(subject.step, 1, REFINED)[1])
    return found


@torch.no_grad()
def ways_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """Images of one input from one layer by every way down, with the cosine and the label of each."""
    pixels = subject.chosen(fields)
    layer = fields.choice("layer", subject.shadow.layers)
    beside = _beside(subject)
    x = subject.apply(pixels)
    images = {
        name: image for reverse in beside.tools for name, image in beside.one(x, layer, reverse).items()
    }
    given = _label(subject, x)
    return {
        "layer": layer,
        "input": picture(pixels[0]),
        "label": given,
        "steps": beside.steps,
        "missing": beside.missing,
        "ways": [
            {
                "title": way.title,
                "words": way.words,
                "control": way.control,
                "picture": picture(subject.undo(images[way.name])[0]),
                "cosine": None if (found := _cosines(images[way.name], x)) is None else float(found[0]),
                "label": _label(subject, images[way.name]),
            }
            for way in order(images)
        ],
    }


def _label(subject: Subject, x: torch.Tensor) -> int | None:
    """What the net calls it; none where its output is no row of numbers, or not finite."""
    output = subject.net(x)
    if output.dim() != 2 or output.shape[1] < 2 or not bool(output.isfinite().all()):
        return None
    return int(output[0].argmax())


TAB = Tab(
    "shadow.js",
    "shadow/tab/shadow.js",
    {"shadow": shadow_answer, "ways": ways_answer},
    lambda subject: {
        "shadow": {
            "most_smooth": MOST_SMOOTH,
            "most_refine": MOST_REFINE,
            "most_layers": MOST_LAYERS,
            "small": sum(one.rows * one.columns for one in subject.weights) <= SMALL,
        }
    },
)
