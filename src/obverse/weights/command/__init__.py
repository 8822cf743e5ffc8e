"""`obverse audit`: what in each layer is signal, what is random? One model, or one against another."""

from ._audit import audit

__all__ = ["audit"]
