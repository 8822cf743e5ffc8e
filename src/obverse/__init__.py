"""obverse: the other side of your network.

Deep-net theory as instruments for real PyTorch nets. The names below are the public ones; what needs
heavy packages is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import BadInput, MissingExtra, ObverseError

if TYPE_CHECKING:
    from .randomlike.audit import audit
    from .randomlike.results import Audit
    from .shadow import Shadow, ShadowLayer, ShadowLoss
    from .training.classifier import ShadowClassifier

__version__ = "0.1.0.dev0"
__all__ = [
    "Audit",
    "BadInput",
    "MissingExtra",
    "ObverseError",
    "Shadow",
    "ShadowClassifier",
    "ShadowLayer",
    "ShadowLoss",
    "audit",
]

_LATER = {
    "Audit": "obverse.randomlike.results",
    "Shadow": "obverse.shadow",
    "ShadowClassifier": "obverse.training.classifier",  # scikit-learn
    "ShadowLayer": "obverse.shadow",
    "ShadowLoss": "obverse.shadow",
    "audit": "obverse.randomlike.audit",
}
_PACKAGES = (
    "data",
    "nets",
    "shadow",
    "randomlike",
    "identity",
    "ladder",
    "generative",
    "diversity",
    "training",
    "claims",
    "report",
    "explore",
)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _PACKAGES:
        return import_module(f"obverse.{name}")
    raise AttributeError(f"module 'obverse' has no attribute {name!r}")
