"""The variants of a training that can be compared, by name. Not for training them: see compare."""

from __future__ import annotations

from typing import Any

# What each variant changes in the base settings; `weight` stands for the weight asked for.
WEIGHTED = "weight"
VARIANTS: dict[str, dict[str, Any]] = {
    "backprop": {"weight": 0.0},
    "dropout": {"weight": 0.0, "dropout": 0.5},
    "shadow": {"weight": WEIGHTED},
    "shadow+dropout": {"weight": WEIGHTED, "dropout": 0.5},
    "shadow-output": {"weight": WEIGHTED, "layer": "output"},
    "shadow-sampling": {"weight": WEIGHTED, "keep": 0.5},
    "shadow-smoothing": {"weight": WEIGHTED, "smooth": True},
    "shadow-net-label": {"weight": WEIGHTED, "labels": "net"},
    "shadow-consistency": {"weight": WEIGHTED, "labels": "consistency"},
    "shadow-normalized": {"weight": WEIGHTED, "normalize": True},
    "uniform-bias": {"weight": 0.0, "uniform_bias": True},
    "control-same": {"weight": WEIGHTED, "control": "same"},
    "control-noise": {"weight": WEIGHTED, "control": "noise"},
    "control-shuffled": {"weight": WEIGHTED, "control": "shuffled"},
}
# What variants change must not be changed for all of them: "backprop" has no dropout.
VARIED = ("dropout", "uniform_bias", "keep", "smooth", "labels", "control", "denoise")
FIGURES = {
    3: ("backprop", "dropout", "shadow+dropout"),
    5: ("backprop", "shadow"),
    6: ("backprop", "shadow", "shadow-output"),
    7: ("backprop", "shadow", "shadow-sampling", "shadow-smoothing"),
}
DEFAULT = ("backprop", "dropout", "shadow", "shadow+dropout")
PLAIN = ("backprop", "shadow")  # for nets without a place for dropout
