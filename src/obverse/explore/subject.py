"""What the page is about: a net, its shadow, and inputs to pick from. Not for opening files: see cli."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..data import Dataset
from ..errors import BadInput
from ..randomlike.weights import Weight, weights_of
from ..shadow import Shadow
from .fields import Fields
from .pictures import picture

CALIBRATION = 200  # training inputs, as `obverse shadow` takes
GALLERY = 40  # test inputs to pick from
BRIGHTEST = 8.0  # of a pixel that is sent: drawings have 1


def _as_it_is(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True, eq=False)
class Subject:
    """A net that runs, with a calibrated shadow. `apply` makes net inputs of pixels, `undo` the reverse."""

    name: str
    net: nn.Module
    shadow: Shadow
    pixels: Tensor  # of the gallery, as they are drawn
    labels: tuple[int, ...]  # of the gallery
    classes: tuple[str, ...]
    data: str
    weights: tuple[Weight, ...]
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
    ) -> Subject:
        """Calibrates the shadow on training inputs; the gallery are test inputs, the same every time."""
        net = net.eval()
        shadow = Shadow(net, input_shape=data.input_shape)
        shadow.calibrate(apply(data.train_x[:CALIBRATION]))
        order = torch.randperm(len(data.test_y), generator=torch.Generator().manual_seed(0))[:GALLERY]
        order = order[torch.argsort(data.test_y[order], stable=True)]
        return Subject(
            name=name,
            net=net,
            shadow=shadow,
            pixels=data.test_x[order],
            labels=tuple(data.test_y[order].tolist()),
            classes=data.classes,
            data=data.name,
            weights=weights_of(net),
            apply=apply,
            undo=undo,
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.pixels.shape[1:])

    def about(self) -> dict[str, Any]:
        """What the page needs to know once."""
        shapes = self.shadow.graph.shapes(self.input_shape)
        return {
            "name": self.name,
            "data": self.data,
            "shape": list(self.input_shape),
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
        """The input that a request names, as a batch of one, in pixels: one of the gallery or a drawing."""
        if fields.has("pixels"):
            shape = self.input_shape
            drawn = fields.numbers("pixels", prod(shape), 0.0, BRIGHTEST)
            return torch.tensor(drawn, dtype=self.pixels.dtype).reshape(1, *shape)
        index = fields.whole("index", 0, len(self.pixels) - 1)
        return self.pixels[index : index + 1]

    def weight(self, name: str) -> Weight:
        for one in self.weights:
            if one.name == name:
                return one
        raise BadInput("a layer with weights", got=repr(name)[:60], do="choose one of the page's list")
