"""The shadow distribution: a ReLU net run backwards as a generative model of its own input.

Reversal rules (one per kind of module), the trace of any net into a graph of stages, running that backwards
(by transposed weights, or by maps fitted to data: what a layer contains, which is another question),
the one-layer distribution, the shadow of a whole net, calibration and recovery (measured and in closed form),
the training loss and its controls.
"""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from .._core import Streams, use_streams
    from ._adjust import match_norm, smooth
    from ._calibrate import Calibration, LayerCalibration
    from ._distribution import ShadowLayer
    from ._fitted import FitStep, Fitted
    from ._graph import Graph, Layer, Stage
    from ._level import Level
    from ._loss import ShadowLoss
    from ._models import OWN, check_runs, open_net, open_run_net, parse_scaling
    from ._recovery import Recovery, best_threshold, recovery, recovery_error, relative_error
    from ._reversal import (
        Activation,
        Norm,
        Reach,
        Rule,
        check_keep,
        register_rule,
        reverse_linear,
        theory_scale,
    )
    from ._shadow import Shadow
    from ._survey import Surveyor, survey
    from ._trace import trace
    from .results import Survey

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "OWN",
    "Activation",
    "Calibration",
    "FitStep",
    "Fitted",
    "Graph",
    "Layer",
    "LayerCalibration",
    "Level",
    "Norm",
    "Reach",
    "Recovery",
    "Rule",
    "Shadow",
    "ShadowLayer",
    "ShadowLoss",
    "Stage",
    "Streams",
    "Survey",
    "Surveyor",
    "best_threshold",
    "check_keep",
    "check_runs",
    "match_norm",
    "open_net",
    "open_run_net",
    "parse_scaling",
    "recovery",
    "recovery_error",
    "register_rule",
    "relative_error",
    "reverse_linear",
    "smooth",
    "survey",
    "theory_scale",
    "trace",
    "use_streams",
]
