"""obverse: the other side of your network.

Deep-net theory as instruments for real PyTorch nets. The names below are the public ones; what needs
heavy packages is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._core.errors import BadInput, MissingExtra, ObverseError

if TYPE_CHECKING:
    from .shadow import Shadow, ShadowLayer, ShadowLoss
    from .training._classifier import ShadowClassifier
    from .weights._audit import audit
    from .weights.results import Audit

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
    "Audit": "obverse.weights.results",
    "Shadow": "obverse.shadow",
    "ShadowClassifier": "obverse.training._classifier",  # scikit-learn
    "ShadowLayer": "obverse.shadow",
    "ShadowLoss": "obverse.shadow",
    "audit": "obverse.weights",
}
_PACKAGES = (
    "data",
    "nets",
    "shadow",
    "weights",
    "identity",
    "ladder",
    "generative",
    "diversity",
    "training",
    "claims",
)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in _PACKAGES:
        return import_module(f"obverse.{name}")
    raise AttributeError(f"module 'obverse' has no attribute {name!r}")
