"""The random-like nets hypothesis, tested layer by layer on anybody's weights.

Reading weights (modules, state dicts, files), the entries and offsets, the spectrum against the
Marchenko–Pastur law, what correlates, how well the layer inverts its own shadow, and a verdict in words.
"""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._ablation.ablate import ablate
    from ._ablation.results import Ablation, LayerAblation, Treatment
    from ._adapters.audit import audit_adapter
    from ._adapters.results import AdapterAudit
    from ._against import Comparison, compare_audits
    from ._audit import audit
    from ._compression.compress import compress
    from ._compression.results import Compression
    from ._compression.saved import load_compressed, save_compressed
    from ._controls import root_mean_square, shuffled
    from ._decisions.decide import decide
    from ._decisions.results import Decision
    from ._decomposition.parts import Parts, decompose
    from ._difference.difference import difference
    from ._difference.results import Difference, LayerDifference, Lineage
    from ._readers.module import Weight, weights_of
    from ._readers.open import open_weights
    from ._reversibility import best_multiple
    from ._verdict import Thresholds
    from .results import Audit, Decomposition, LayerAudit, Number

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Ablation",
    "AdapterAudit",
    "Audit",
    "Comparison",
    "Compression",
    "Decision",
    "Decomposition",
    "Difference",
    "LayerAblation",
    "LayerAudit",
    "LayerDifference",
    "Lineage",
    "Number",
    "Parts",
    "Thresholds",
    "Treatment",
    "Weight",
    "ablate",
    "audit",
    "audit_adapter",
    "best_multiple",
    "compare_audits",
    "compress",
    "decide",
    "decompose",
    "difference",
    "load_compressed",
    "open_weights",
    "root_mean_square",
    "save_compressed",
    "shuffled",
    "weights_of",
]
