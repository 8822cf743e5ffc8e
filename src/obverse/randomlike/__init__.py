"""The random-like nets hypothesis, tested layer by layer on anybody's weights.

Reading weights (modules, state dicts, files), the entries and offsets, the spectrum against the
Marchenko–Pastur law, what correlates, how well the layer inverts its own shadow, and a verdict in words.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .audit import audit
    from .results import Audit, LayerAudit, Number
    from .thresholds import Thresholds
    from .weights import Weight, weights_of
else:
    from ..lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "Audit": "results",
            "LayerAudit": "results",
            "Number": "results",
            "Thresholds": "thresholds",
            "Weight": "weights",
            "audit": "audit",
            "weights_of": "weights",
        },
    )

__all__ = ["Audit", "LayerAudit", "Number", "Thresholds", "Weight", "audit", "weights_of"]
