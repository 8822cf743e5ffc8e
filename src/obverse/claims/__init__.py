"""Every theorem as something that runs: what is predicted, what was measured, whether it held.

The claim and its rules, the registry, the runner (processes or a Dask cluster, resumable), and one package
of claims a paper.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._claim import Claim, grid
    from ._rates import Along, Exponent, NotGrowing
    from ._registry import claims, find, load_module, register
    from ._rules import Equal, HoldsIn, MeanBelow, Rule
    from ._runner import run
    from ._store import read_sweep
    from .results import Judged, Outcome, Point, Sweep
else:
    from .._core.lazily import lazily

    __getattr__ = lazily(
        __name__,
        {
            "Along": "_rates",
            "Claim": "_claim",
            "Equal": "_rules",
            "Exponent": "_rates",
            "HoldsIn": "_rules",
            "Judged": "results",
            "MeanBelow": "_rules",
            "NotGrowing": "_rates",
            "Outcome": "results",
            "Point": "results",
            "Rule": "_rules",
            "Sweep": "results",
            "claims": "_registry",
            "find": "_registry",
            "grid": "_claim",
            "load_module": "_registry",
            "read_sweep": "_store",
            "register": "_registry",
            "run": "_runner",
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
