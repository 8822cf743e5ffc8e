"""What all tests of one generator share: features, random numbers, the bar, and what was left out and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from .._core import ObverseError, Progress
from ._features import Features
from .results import Skipped

Found = TypeVar("Found")


class Run:
    """One test after the other, of which none may end the others."""

    def __init__(
        self,
        features: Features | None,
        generator: torch.Generator,
        confidence: float,
        progress: Progress | None,
    ) -> None:
        self.features, self.generator = features, generator
        self.confidence, self.progress = confidence, progress
        self.skipped: list[Skipped] = []

    def bar(self, what: str) -> Progress | None:
        tell = self.progress
        return None if tell is None else lambda done, total, _: tell(done, total, what)

    def points(self, x: Tensor, what: str) -> Tensor:
        """What pictures are compared by; pixels need no copy."""
        return x.flatten(1) if self.features is None else self.features(x, self.bar(what))

    def skip(self, what: str, reason: str) -> None:
        self.skipped.append(Skipped(what, reason))

    def attempt(self, what: str, test: Callable[[], Found]) -> Found | None:
        """The result, or None with the reason among what was left out."""
        if self.progress is not None:
            self.progress(0, 1, what)
        try:
            return test()
        except ObverseError as error:
            self.skip(what, str(error))
            return None
