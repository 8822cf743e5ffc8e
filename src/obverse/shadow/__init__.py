"""The shadow distribution: a ReLU net run backwards as a generative model of its own input.

Reversal rules (one per kind of module), the trace of any net into a graph of stages, running that backwards,
the one-layer distribution, the shadow of a whole net, calibration and recovery (measured and in closed form),
the training loss and its controls.
"""

from ._adjust import match_norm, smooth
from ._calibrate import Calibration, LayerCalibration, Level
from ._distribution import ShadowLayer
from ._graph import Graph, Layer, Stage
from ._loss import ShadowLoss
from ._recovery import Recovery, best_threshold, recovery, recovery_error
from ._reversal import Activation, Norm, Rule, register_rule, reverse_linear, theory_scale
from ._shadow import Shadow
from ._trace import trace

__all__ = [
    "Activation",
    "Calibration",
    "Graph",
    "Layer",
    "LayerCalibration",
    "Level",
    "Norm",
    "Recovery",
    "Rule",
    "Shadow",
    "ShadowLayer",
    "ShadowLoss",
    "Stage",
    "best_threshold",
    "match_norm",
    "recovery",
    "recovery_error",
    "register_rule",
    "reverse_linear",
    "smooth",
    "theory_scale",
    "trace",
]
