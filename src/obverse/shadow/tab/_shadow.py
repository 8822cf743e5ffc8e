"""The Shadow tab: one input, what a layer sees of it, and what the net draws from that. Not for data sets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...present import Fields, Subject, picture

SAMPLES = 8  # shadows of one input, where sampling makes them differ
PATIENCE = 2.0  # seconds for all of it: a net that is too slow for that gets fewer samples, then fewer steps
MOST_SMOOTH = 3
MOST_REFINE = 50
MOST_UNITS = 400  # of the hidden layer that are drawn, evenly chosen if there are more


@torch.no_grad()
def shadow_answer(subject: Subject, fields: Fields) -> dict[str, Any]:
    """Shadows of one input from one layer, with the numbers that say how well the net inverts them."""
    pixels = subject.chosen(fields)
    layer = fields.choice("layer", subject.shadow.layers)
    keep = fields.number("keep", 0.01, 1.0)
    smooth = fields.whole("smooth", 0, MOST_SMOOTH)
    refine = fields.whole("refine", 0, MOST_REFINE)
    match_norm = fields.flag("match_norm")
    generator = torch.Generator().manual_seed(fields.whole("seed", 0, 2**31 - 1))
    shadow = subject.shadow
    count, steps = affordable(subject.step, SAMPLES if keep < 1 else 1, refine)

    x = subject.apply(pixels)
    h = shadow.infer(x, layer)
    rows = x.expand(count, *x.shape[1:])
    twins = shadow.from_hidden(
        rows,
        h.expand(count, *h.shape[1:]),
        layer,
        keep,
        generator,
        smooth=smooth if x.dim() == 4 else 0,
        match_norm=match_norm,
        refine=steps,
    )
    back = shadow.infer(twins, layer)
    before, after = _probabilities(subject.net(x)), _probabilities(subject.net(twins))
    given = int(before[0].argmax())
    return {
        "input": picture(pixels[0]),
        "shadows": [picture(one) for one in subject.undo(twins)],
        "hidden": _hidden(h[0], back[0]),
        "recovery": _mean(_errors(back, h)),
        "cosine": _mean(_cosines(twins, x)),
        "probabilities": {"input": _short(before[0]), "shadow": _short(after.mean(0))},
        "label": given,
        "same_label": float((after.argmax(1) == given).double().mean()),
        "samples": count,
        "refined": steps,
    }


def affordable(step: float, samples: int, refine: int) -> tuple[int, int]:
    """(samples, steps of refinement) within PATIENCE, at `step` seconds per pass; one sample at least."""
    passes = max(1.0, PATIENCE / max(step, 1e-9))
    count = max(1, min(samples, int(passes / (refine + 2))))  # and two passes for the shadow itself
    return count, max(0, min(refine, int(passes / count) - 2))


def _probabilities(output: Tensor) -> Tensor:
    """Softmax of what the net gives, also where it gives maps."""
    return torch.softmax(output.flatten(1).double(), 1)


def _errors(back: Tensor, h: Tensor) -> Tensor | None:
    """‖ĥ − h‖² / ‖h‖² of each shadow; none where the layer is silent."""
    size = h.double().square().sum()
    return None if float(size) == 0 else (back - h).double().flatten(1).square().sum(1) / size


def _cosines(twins: Tensor, x: Tensor) -> Tensor | None:
    """Of each shadow with x; none where one of them is all zero, which has no direction."""
    rows, one = twins.double().flatten(1), x.double().flatten(1)
    if not bool(rows.any(1).all() and one.any()):
        return None
    return torch.nn.functional.cosine_similarity(rows, one)


def _mean(values: Tensor | None) -> dict[str, float | None]:
    """The mean over shadows and its standard error, where there are several."""
    if values is None or not bool(values.isfinite().all()):
        return {"value": None, "error": None}
    several = len(values) > 1
    error = float(values.double().std() / len(values) ** 0.5) if several else None
    return {"value": float(values.double().mean()), "error": error}


def _hidden(before: Tensor, after: Tensor) -> dict[str, Any]:
    """Units of a layer for x and for its first shadow."""
    one, two = before.flatten(), after.flatten()
    units = len(one)
    places = torch.linspace(0, units - 1, min(units, MOST_UNITS)).round().long()
    return {
        "units": units,
        "shown": len(places),
        "active": int((one > 0).sum()),
        "before": _short(one[places]),
        "after": _short(two[places]),
    }


def _short(values: Tensor) -> list[float]:
    """Six digits: more than can be drawn."""
    return [float(f"{value:.6g}") for value in torch.nan_to_num(values.double()).tolist()]
