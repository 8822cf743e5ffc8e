"""What --quick makes of a training: fewer epochs, fewer points. Flags that are given win."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._settings import Settings

EPOCHS = 2
POINTS = 1000


def fewer_points(values: Mapping[str, Any], kind: type[Any] = Settings) -> dict[str, Any]:
    """The settings with few epochs on few points, where these are not among the settings given."""
    quick = dict(values)
    quick.setdefault("epochs", EPOCHS)
    if "train_size" not in quick:
        from ...data import load

        usual = kind()
        found = load(values.get("data", usual.data), values.get("data_root", usual.data_root))
        held_out = values.get("validation", 0)
        quick["train_size"] = min(POINTS + held_out, len(found.train_y))
    return quick
