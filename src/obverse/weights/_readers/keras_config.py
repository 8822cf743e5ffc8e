"""What the architecture beside Keras' weights says of the layers: class, settings, names. Not for weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]  # of a variable: its layers and its own name

_CONVOLUTIONS = ("kernel", "bias")
# What the numbered variables of Keras 3 are, by class; all else is told by its dimensions.
VARIABLES: dict[str, Sequence[str]] = {
    "dense": _CONVOLUTIONS,
    "einsum_dense": _CONVOLUTIONS,
    "multi_head_attention": _CONVOLUTIONS,
    **{f"conv{n}d{kind}": _CONVOLUTIONS for n in (1, 2, 3) for kind in ("", "_transpose")},
    **{f"depthwise_conv{n}d": ("depthwise_kernel", "bias") for n in (1, 2)},
    **{f"separable_conv{n}d": ("depthwise_kernel", "pointwise_kernel", "bias") for n in (1, 2)},
    "embedding": ("embeddings",),
    **dict.fromkeys(("lstm", "gru", "simple_rnn"), ("kernel", "recurrent_kernel", "bias")),
    **dict.fromkeys(("lstm_cell", "gru_cell", "simple_rnn_cell"), ("kernel", "recurrent_kernel", "bias")),
    **{f"conv_lstm{n}d": ("kernel", "recurrent_kernel", "bias") for n in (1, 2, 3)},
    **dict.fromkeys(
        ("batch_normalization", "layer_normalization", "group_normalization"), ("gamma", "beta", "mean")
    ),
    "p_re_lu": ("alpha",),
    "normalization": ("mean", "variance", "count"),
}


@dataclass(frozen=True)
class Config:
    """What the architecture says of the layers: class and settings by name; names by place in Keras 3."""

    layers: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    def kind(self, path: Path) -> tuple[str, Mapping[str, Any]]:
        """The class of the innermost layer on this path that has one, in snake case."""
        for part in reversed(path):
            if part in self.layers:
                name, settings = self.layers[part]
                return snake_case(name), settings
            if (bare := re.sub(r"_\d+$", "", part)) in VARIABLES:
                return bare, {}
        return "", {}


def snake_case(name: str) -> str:
    """As Keras spells classes in files: Conv2DTranspose is conv2d_transpose."""
    apart = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name[:200])
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()


def read_config(model: object) -> Config:
    """Everything in an architecture's JSON that is a layer."""
    layers: dict[str, tuple[str, Mapping[str, Any]]] = {}
    waiting = [model]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            kind, settings = one.get("class_name"), one.get("config")
            name = settings.get("name", one.get("name")) if isinstance(settings, dict) else None
            if isinstance(kind, str) and isinstance(settings, dict) and isinstance(name, str):
                layers.setdefault(name, (kind, settings))
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return Config(layers, _places(model))


def _places(model: object) -> dict[str, str]:
    """Keras 3 calls a layer in its file by class and place, whatever its name: conv2d, conv2d_1, …"""
    config = model.get("config") if isinstance(model, dict) else None
    listed = config.get("layers") if isinstance(config, dict) else None
    counts: dict[str, int] = {}
    places = {}
    for layer in listed if isinstance(listed, list) else ():
        settings = layer.get("config") if isinstance(layer, dict) else None
        name = settings.get("name") if isinstance(settings, dict) else None
        if not isinstance(name, str) or not isinstance(layer.get("class_name"), str):
            return {}
        kind = snake_case(layer["class_name"])
        place = f"{kind}_{counts[kind]}" if kind in counts else kind
        counts[kind] = counts.get(kind, 0) + 1
        places[place] = name
    return places
