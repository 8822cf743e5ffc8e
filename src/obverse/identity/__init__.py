"""Residual nets through the identity: factor, descend, memorize. Not for the nets: see obverse.nets."""

from .lipschitz import local_lipschitz, log10_lipschitz_bound
from .memorize import Memorized, NotMemorized, choose_width, export, memorize, verify
from .saved import load_memory, save_memory

__all__ = [
    "Memorized",
    "NotMemorized",
    "choose_width",
    "export",
    "load_memory",
    "local_lipschitz",
    "log10_lipschitz_bound",
    "memorize",
    "save_memory",
    "verify",
]
