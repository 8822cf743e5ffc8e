"""A decision as plain values: the text of a file, and what has to be known about it."""

from __future__ import annotations

from dataclasses import dataclass

from ..._core import Record


@dataclass(frozen=True)
class Decision(Record):
    """The layers that were chosen, as the text of a file that a trainer reads.

    `notes` say how they were chosen and what is not known. A YAML file has them as comments; JSON has no room
    for them.
    """

    kind: str  # lora or compress
    format: str  # peft, axolotl or obverse
    file: str  # what the file is called
    text: str
    notes: tuple[str, ...]
    chosen: tuple[str, ...]  # names of modules, parameters or layers, in the order of the net
    ranks: dict[str, int]  # of each that is chosen; empty where a format has none

    def __str__(self) -> str:
        return self.text.rstrip("\n")
