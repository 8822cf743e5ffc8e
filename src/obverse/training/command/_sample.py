"""`obverse sample`: images of what a net generates, before and after training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...present import Json, RunArgument, Seed, options, print_json


def sample(
    run: RunArgument,
    out: Annotated[Path | None, options.out_at("the image", "RUN/images/shadows.png", "FILE")] = None,
    per_class: Annotated[
        int, typer.Option(metavar="N", show_default=False, help="Originals of each class \\[3].")
    ] = 3,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw shadow at the start, shadow at the end and original side by side, for each class (Figure 2).

    Example: obverse sample runs/first --per-class 4
    """
    from ..charts._images import shadow_grid

    path = shadow_grid(run, out or run / "images" / "shadows.png", per_class=per_class, seed=seed)
    if as_json:
        print_json({"picture": path, "run": run, "per_class": per_class, "seed": seed})
    else:
        typer.echo(f"image: {path}")
