"""How every figure of the docs begins and ends. Not for what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from obverse.present.palette import LIGHT


def new_figure(width: float, height: float) -> Any:
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=LIGHT)  # where no colour is asked for
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, place: Path) -> None:
    """The same numbers give the same file: nothing in it says when or by what it was drawn."""
    import matplotlib

    place.parent.mkdir(parents=True, exist_ok=True)
    if place.suffix == ".svg":
        with matplotlib.rc_context({"svg.hashsalt": "obverse"}):
            figure.savefig(place, metadata={"Date": None})
    else:
        figure.savefig(place, dpi=110, metadata={"Software": None})


def tidy(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
