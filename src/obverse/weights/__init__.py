"""The random-like nets hypothesis, tested layer by layer on anybody's weights.

Reading weights (modules, state dicts, files), the entries and offsets, the spectrum against the
Marchenko–Pastur law, what correlates, how well the layer inverts its own shadow, and a verdict in words.
"""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._against import Comparison, compare_audits
    from ._audit import audit
    from ._controls import root_mean_square, shuffled
    from ._parts import Parts, decompose
    from ._readers.module import Weight, weights_of
    from ._readers.open import open_weights
    from ._reversibility import best_multiple
    from ._verdict import Thresholds
    from .results import Audit, Decomposition, LayerAudit, Number

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Audit",
    "Comparison",
    "Decomposition",
    "LayerAudit",
    "Number",
    "Parts",
    "Thresholds",
    "Weight",
    "audit",
    "best_multiple",
    "compare_audits",
    "decompose",
    "open_weights",
    "root_mean_square",
    "shuffled",
    "weights_of",
]
