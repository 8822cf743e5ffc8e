"""What the page is about: a net, its shadow, and inputs to pick from. Not for opening files: see cli."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..._core import BadInput
from ...data import Dataset
from ...present import Fields, picture
from ...shadow import Shadow
from ...weights import Weight, weights_of

CALIBRATION = 200  # training inputs, as `obverse shadow` takes
GALLERY = 40  # test inputs to pick from
MOST_PAINTED = 150_000  # numbers of an input that can be painted on: more are too many for a question


def _as_it_is(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True, eq=False)
class Subject:
    """A net that runs, with a shadow calibrated on `inputs`. `apply` makes net inputs of pixels, `undo` the
    reverse."""

    name: str
    net: nn.Module
    shadow: Shadow
    inputs: Tensor  # of the training data, as the net gets them
    pixels: Tensor  # of the gallery, as they are drawn
    labels: tuple[int, ...]  # of the gallery
    classes: tuple[str, ...]
    data: str
    weights: tuple[Weight, ...]
    step: float  # seconds of one pass up and down again, for one input
    apply: Callable[[Tensor], Tensor] = _as_it_is
    undo: Callable[[Tensor], Tensor] = _as_it_is

    @staticmethod
    def of(
        name: str,
        net: nn.Module,
        data: Dataset,
        *,
        apply: Callable[[Tensor], Tensor] = _as_it_is,
        undo: Callable[[Tensor], Tensor] = _as_it_is,
        seed: int = 0,
    ) -> Subject:
        """Calibrates the shadow on training inputs; the gallery are test inputs, drawn with the seed."""
        net = net.eval()
        shadow = Shadow(net, input_shape=data.input_shape)
        inputs = apply(data.train_x[:CALIBRATION])
        shadow.calibrate(inputs)
        step = _seconds_of_a_step(shadow, apply(data.test_x[:1]))
        order = torch.randperm(len(data.test_y), generator=torch.Generator().manual_seed(seed))[:GALLERY]
        order = order[torch.argsort(data.test_y[order], stable=True)]
        return Subject(
            name=name,
            net=net,
            shadow=shadow,
            inputs=inputs,
            pixels=data.test_x[order],
            labels=tuple(data.test_y[order].tolist()),
            classes=data.classes,
            data=data.name,
            weights=weights_of(net),
            step=step,
            apply=apply,
            undo=undo,
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.pixels.shape[1:])

    @property
    def paintable(self) -> bool:
        """Whether its inputs are images, grey or in colour, with pixels from 0 to 1."""
        shape = self.input_shape
        picture = len(shape) == 3 and shape[0] in (1, 3) and prod(shape) <= MOST_PAINTED
        return picture and float(self.pixels.min()) >= 0 and float(self.pixels.max()) <= 1

    def about(self) -> dict[str, Any]:
        """What the page needs to know once."""
        shapes = self.shadow.graph.shapes(self.input_shape)
        return {
            "name": self.name,
            "data": self.data,
            "shape": list(self.input_shape),
            "paintable": self.paintable,
            "classes": list(self.classes),
            "layers": [
                {"name": name, "shape": list(shapes[self.shadow.layer(name).output.node])}
                for name in self.shadow.layers
            ],
            "default_layer": self.shadow.default_layer,
            "weights": [
                {"name": one.name, "kind": one.kind, "rows": one.rows, "columns": one.columns}
                for one in self.weights
            ],
            "gallery": [
                {"picture": picture(x), "label": label}
                for x, label in zip(self.pixels, self.labels, strict=True)
            ],
        }

    def chosen(self, fields: Fields) -> Tensor:
        """The input that a request names, as a batch of one, in pixels: of the gallery, perhaps painted on.

        `places` and `values` are numbers of the input and what they became; the others stay as they are.
        """
        index = fields.whole("index", 0, len(self.pixels) - 1)
        found = self.pixels[index : index + 1]
        if not fields.has("places"):
            return found
        if not self.paintable:
            raise BadInput("images with pixels from 0 to 1 to paint on", got="others", do="pick an input")
        count = prod(self.input_shape)
        places = fields.several("places", count, 0, count - 1)
        values = fields.several("values", count, 0, 1)
        if len(places) != len(values) or any(place != int(place) for place in places):
            raise BadInput("a value for each place", got=f"{len(values)} for {len(places)}", do="correct it")
        drawn = found.clone().flatten()
        drawn[torch.tensor(places, dtype=torch.long)] = torch.tensor(values, dtype=drawn.dtype)
        return drawn.reshape(found.shape)

    def weight(self, name: str) -> Weight:
        for one in self.weights:
            if one.name == name:
                return one
        raise BadInput("a layer with weights", got=repr(name)[:60], do="choose one of the page's list")


def _seconds_of_a_step(shadow: Shadow, x: Tensor) -> float:
    """One step of refinement, the slower of two ways to spend a pass; the first one warms up."""
    for _ in range(2):
        began = time.perf_counter()
        shadow.of(x, refine=1, match_norm=True)
    return time.perf_counter() - began
