"""The random-like nets hypothesis, tested layer by layer on anybody's weights.

Reading weights (modules, state dicts, files), the entries and offsets, the spectrum against the
Marchenko–Pastur law, what correlates, how well the layer inverts its own shadow, and a verdict in words.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._audit import audit
    from ._readers.module import Weight, weights_of
    from ._thresholds import Thresholds
    from .results import Audit, LayerAudit, Number
else:
    from .._core.lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "Audit": "results",
            "LayerAudit": "results",
            "Number": "results",
            "Thresholds": "_thresholds",
            "Weight": "_readers.module",
            "audit": "_audit",
            "weights_of": "_readers.module",
        },
    )

__all__ = ["Audit", "LayerAudit", "Number", "Thresholds", "Weight", "audit", "weights_of"]
