"""What can be decided, in which formats, and what the files are called: names alone, for flags to offer."""

from __future__ import annotations

FORMATS: dict[str, tuple[str, ...]] = {"lora": ("peft", "axolotl"), "compress": ("obverse",)}
NAMES: dict[str, str] = {
    "peft": "decide.lora.json",
    "axolotl": "decide.lora.yaml",
    "obverse": "decide.compress.json",
}
# Everything that may lie beside an audit; the notes of a JSON file are in a text of the same name.
FILES = (*NAMES.values(), "decide.lora.txt", "decide.compress.txt")
PREFER = ("signal", "random")
TOP = 25.0  # percent of the layers of each kind
