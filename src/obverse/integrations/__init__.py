"""The audit in the training loop: hand-written, of Lightning, of Hugging Face's Trainer.

`obverse.integrations.lightning` and `obverse.integrations.transformers` hold an `AuditCallback` each; they
need these packages, and nothing else here does.
"""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._watch import Watch
    from .notebook import plot_history
    from .results import History, LayerPoint, Point, read_history

__getattr__, __dir__ = lazily(__name__)

__all__ = ["History", "LayerPoint", "Point", "Watch", "plot_history", "read_history"]
