"""The command line and the explorer: they collect what the rooms offer. Not for computing anything."""

from typing import TYPE_CHECKING

from .._core import lazily

if TYPE_CHECKING:
    from .report import write_report

__getattr__, __dir__ = lazily(__name__)

__all__ = ["write_report"]
