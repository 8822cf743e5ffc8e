"""The shadow distribution: a ReLU net run backwards as a generative model of its own input.

Reversal rules (one per kind of layer), the trace of a net into layers, the one-layer distribution,
the shadow of a whole net, calibration and recovery (measured and in closed form), the training loss and
its controls.
"""

from .adjust import match_norm, smooth
from .calibrate import Calibration, LayerCalibration
from .distribution import ShadowLayer
from .loss import ShadowLoss
from .recovery import Recovery, best_threshold, recovery, recovery_error
from .reversal import Rule, register_rule, reverse_linear, theory_scale
from .shadow import Shadow
from .trace import Layer, Stage, trace

__all__ = [
    "Calibration",
    "Layer",
    "LayerCalibration",
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
