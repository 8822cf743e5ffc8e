"""`obverse sample`: pictures of what a net generates, before and after training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sample(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run or comparison directory.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PNG to write \\[RUN/images/shadows.png].")
    ] = None,
    per_class: Annotated[int, typer.Option(metavar="N", help="Originals of each class.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="Which originals, and the sampling.")] = 0,
) -> None:
    """Draw shadow at the start, shadow at the end and original side by side, for each class (Figure 2).

    Example: obverse sample runs/first --per-class 4
    """
    from ..report import shadow_grid

    path = shadow_grid(run, out or run / "images" / "shadows.png", per_class=per_class, seed=seed)
    typer.echo(f"picture: {path}")
