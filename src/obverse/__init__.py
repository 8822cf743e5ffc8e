"""obverse: the other side of your network.

Deep-net theory as instruments for real PyTorch nets. The names below are the public ones; what needs
heavy packages is imported when it is first used.
"""

from typing import TYPE_CHECKING

from ._core.errors import BadInput, MissingExtra, ObverseError
from ._core.lazy import lazily
from ._core.shown import shown_by

if TYPE_CHECKING:
    from . import claims, data, diversity, generative, identity, ladder, nets, shadow, training, weights
    from .app import write_report as report
    from .present.bar import ProgressBar
    from .shadow import Shadow, ShadowLayer, ShadowLoss
    from .training import ShadowClassifier
    from .weights import Audit, audit, compare_audits, open_weights

__version__ = "0.2.0"
__getattr__, __dir__ = lazily(__name__)
shown_by(f"{__name__}.present.notebook")  # results show themselves by the registry there

__all__ = [
    "Audit",
    "BadInput",
    "MissingExtra",
    "ObverseError",
    "ProgressBar",
    "Shadow",
    "ShadowClassifier",
    "ShadowLayer",
    "ShadowLoss",
    "audit",
    "claims",
    "compare_audits",
    "data",
    "diversity",
    "generative",
    "identity",
    "ladder",
    "nets",
    "open_weights",
    "report",
    "shadow",
    "training",
    "weights",
]
