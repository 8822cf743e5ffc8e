"""Residual nets through the identity: factor, descend, memorize. Not for the nets: see obverse.nets."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from ._construct import random_projection
    from ._descent import CriticalPoint, Descent, critical_point, descend
    from ._factorize import Factorization, factorize, min_layers
    from ._landscape import Landscape, spectral_norms
    from ._lipschitz import local_lipschitz, log10_lipschitz_bound
    from ._memorize import Memorized, NotMemorized, choose_width, export, memorize, verify
    from ._saved import load_memory, save_memory

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "CriticalPoint",
    "Descent",
    "Factorization",
    "Landscape",
    "Memorized",
    "NotMemorized",
    "choose_width",
    "critical_point",
    "descend",
    "export",
    "factorize",
    "load_memory",
    "local_lipschitz",
    "log10_lipschitz_bound",
    "memorize",
    "min_layers",
    "random_projection",
    "save_memory",
    "spectral_norms",
    "verify",
]
