"""`obverse ladder`: the flags, a teacher, a real net, and what is printed, a module each."""

from ._ladder import ladder

__all__ = ["ladder"]
