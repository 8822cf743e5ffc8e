"""The same inputs by every way down that a net has, side by side. Not for measuring (see survey).

From one h: the shadow (transposed weights), the fitted reverse, the fitted reverse refined, and the controls
of both. Transposed weights show what the weights generate, fitted maps what h contains.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from .._core import ObverseError
from ._shadow import Reverse, Shadow
from ._survey import Surveyor
from ._words import NO_UNTRAINED

REFINED = 10  # gradient steps of the refined image, where the survey has none of its own
SECONDS = 60.0  # that the reverse which is not surveyed may take


@dataclass(frozen=True)
class Way:
    """One way down: its name in files and stylesheets, what stands above its column, and whether it is a
    control. `words` begin a sentence about an image."""

    name: str
    title: str
    words: str
    control: bool = False


WAYS = (
    Way("transpose", "shadow (transpose)", "Shadow"),
    Way("transpose-refined", "shadow, refined", "Refined shadow"),
    Way("transpose-shuffled", "shadow, weights shuffled", "Shadow by shuffled weights", control=True),
    Way("fitted", "fitted", "Fitted image"),
    Way("refined", "fitted, refined", "Refined fitted image"),
    Way("fitted-shuffled", "fitted, weights shuffled", "Fitted image by shuffled weights", control=True),
    Way("fitted-untrained", "fitted, untrained", "Fitted image by an untrained net", control=True),
)
KINDS = {"transpose": "images by the transpose", "fitted": "fitted images"}
NAMES = tuple(way.name for way in WAYS)


def order(names: Collection[str]) -> list[Way]:
    """The ways of these names, as they stand beside each other."""
    return [way for way in WAYS if way.name in names]


class Beside:
    """Every way down of a surveyed net; the reverse that was not surveyed is calibrated on the same inputs.

    `missing` says in sentences what is not there. `steps` are those of the refined image.
    """

    def __init__(self, tool: Surveyor, seconds: float = SECONDS) -> None:
        other: Reverse = "fitted" if tool.reverse == "transpose" else "transpose"
        self.tools: dict[str, Surveyor] = {tool.reverse: tool}
        self.steps = tool.refine or REFINED
        self.surveyed, self.other, self.seconds = tool.reverse, other, seconds
        self.missing: list[str] = []
        began = time.perf_counter()
        try:
            self.tools[other] = tool.like(other)
        except ObverseError as error:
            self.missing.append(f"No {KINDS[other]}: {error}.")
        self._spent = time.perf_counter() - began
        fitted = self.tools.get("fitted")
        if fitted is not None and fitted.untrained is None:
            self.missing.append(NO_UNTRAINED)

    def draw(self, x: Tensor, layers: Sequence[str]) -> Iterator[tuple[str, dict[str, Tensor]]]:
        """(layer, images of x by way), layer by layer; the other reverse as long as there is time for it."""
        without = 0
        for layer in layers:
            found = self.one(x, layer, self.surveyed)
            if self.other in self.tools and self._spent > self.seconds:
                without += 1
            elif self.other in self.tools:
                found |= self._other(x, layer)
            yield layer, {way.name: found[way.name] for way in order(found)}
        if without:
            self.missing.append(
                f"{without} of {len(layers)} layers have no {KINDS[self.other]}: these took longer than "
                f"{self.seconds:g} seconds. With --reverse {self.other} all of them are drawn."
            )

    def _other(self, x: Tensor, layer: str) -> dict[str, Tensor]:
        """Images by the reverse that was not surveyed, none where it cannot be."""
        began = time.perf_counter()
        try:
            return self.one(x, layer, self.other)
        except ObverseError as error:
            self.missing.append(f"No {KINDS[self.other]} from layer {layer}: {error}.")
            return {}
        finally:
            self._spent += time.perf_counter() - began

    def one(self, x: Tensor, layer: str, reverse: str) -> dict[str, Tensor]:
        """Images of x by the ways of one reverse."""
        tool = self.tools[reverse]

        def by(shadow: Shadow | None, steps: int = 0) -> Tensor | None:
            if shadow is None:
                return None
            return tool.shadows(shadow, x, shadow.infer(x, layer), layer, refine=steps)

        if reverse == "transpose":
            refined = by(tool.own, tool.refine) if tool.refine else None
            made = {
                "transpose": by(tool.own),
                "transpose-refined": refined,
                "transpose-shuffled": by(tool.shuffled),
            }
        else:
            made = {
                "fitted": by(tool.own),
                "refined": by(tool.own, self.steps),
                "fitted-shuffled": by(tool.shuffled),
                "fitted-untrained": by(tool.untrained),
            }
        return {name: images for name, images in made.items() if images is not None}
