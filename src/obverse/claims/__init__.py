"""Every theorem as something that runs: what is predicted, what was measured, whether it held.

The claim and its rules, the registry, the runner (processes or a Dask cluster, resumable), and one package
of claims a paper.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .claim import Claim, grid
    from .rates import Along, Exponent, NotGrowing
    from .registry import claims, find, load_module, register
    from .results import Judged, Outcome, Point, Sweep
    from .rules import Equal, HoldsIn, MeanBelow, Rule
    from .runner import run
    from .store import read_sweep
else:
    from ..lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "Along": "rates",
            "Claim": "claim",
            "Equal": "rules",
            "Exponent": "rates",
            "HoldsIn": "rules",
            "Judged": "results",
            "MeanBelow": "rules",
            "NotGrowing": "rates",
            "Outcome": "results",
            "Point": "results",
            "Rule": "rules",
            "Sweep": "results",
            "claims": "registry",
            "find": "registry",
            "grid": "claim",
            "load_module": "registry",
            "read_sweep": "store",
            "register": "registry",
            "run": "runner",
        },
    )

__all__ = [
    "Along",
    "Claim",
    "Equal",
    "Exponent",
    "HoldsIn",
    "Judged",
    "MeanBelow",
    "NotGrowing",
    "Outcome",
    "Point",
    "Rule",
    "Sweep",
    "claims",
    "find",
    "grid",
    "load_module",
    "read_sweep",
    "register",
    "run",
]
