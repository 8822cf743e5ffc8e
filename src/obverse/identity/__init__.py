"""Residual nets through the identity: factor, descend, memorize. Not for the nets: see obverse.nets."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._construct import random_projection
    from ._descent import CriticalPoint, Descent, critical_point, descend
    from ._factorize import Factorization, factorize, min_layers
    from ._landscape import gradient, gradient_bound, hessian, project, risk, spectral_norms
    from ._lipschitz import local_lipschitz, log10_lipschitz_bound
    from ._memorize import Memorized, NotMemorized, choose_width, export, memorize, verify
    from ._saved import load_memory, save_memory

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "CriticalPoint",
    "Descent",
    "Factorization",
    "Memorized",
    "NotMemorized",
    "choose_width",
    "critical_point",
    "descend",
    "export",
    "factorize",
    "gradient",
    "gradient_bound",
    "hessian",
    "load_memory",
    "local_lipschitz",
    "log10_lipschitz_bound",
    "memorize",
    "min_layers",
    "project",
    "random_projection",
    "risk",
    "save_memory",
    "spectral_norms",
    "verify",
]
