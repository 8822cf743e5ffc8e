"""The local interactive page: a net's shadow, theory, audit, birthdays and ladder, to look at and to move."""

from .embedded import embedded_run
from .server import serve
from .subject import Subject

__all__ = ["Subject", "embedded_run", "serve"]
