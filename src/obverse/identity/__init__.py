"""Residual nets through the identity: factor, descend, memorize. Not for the nets: see obverse.nets."""

from .descent import CriticalPoint, Descent, critical_point, descend
from .factorize import bound, factorize, gamma, min_layers, product
from .landscape import gradient, gradient_bound, hessian, project, risk, spectral_norms
from .lipschitz import local_lipschitz, log10_lipschitz_bound
from .memorize import Memorized, NotMemorized, choose_width, export, memorize, verify
from .saved import load_memory, save_memory

__all__ = [
    "CriticalPoint",
    "Descent",
    "Memorized",
    "NotMemorized",
    "bound",
    "choose_width",
    "critical_point",
    "descend",
    "export",
    "factorize",
    "gamma",
    "gradient",
    "gradient_bound",
    "hessian",
    "load_memory",
    "local_lipschitz",
    "log10_lipschitz_bound",
    "memorize",
    "min_layers",
    "product",
    "project",
    "risk",
    "save_memory",
    "spectral_norms",
    "verify",
]
