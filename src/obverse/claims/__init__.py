"""Every theorem as something that runs: what is predicted, what was measured, whether it held.

The claim and its rules, the registry, the runner (processes or a Dask cluster, resumable), and one package
of claims a paper.
"""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._claim import Claim, grid, per_trial
    from ._rates import Along, Exponent, NotGrowing
    from ._registry import claims, find, load_module, register
    from ._rules import Equal, HoldsIn, MeanBelow, Rule
    from ._runner import run
    from ._store import read_sweep
    from .results import Judged, Outcome, Point, Sweep

__getattr__, __dir__ = lazily(__name__)

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
    "per_trial",
    "read_sweep",
    "register",
    "run",
]
