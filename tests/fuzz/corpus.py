"""Every case that ever failed, as small as it can be. The fast tests run them all."""

from __future__ import annotations

from collections.abc import Callable

from .case import Case

KEPT: dict[str, Callable[[], Case]] = {}
