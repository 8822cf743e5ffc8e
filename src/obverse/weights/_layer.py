"""The audit of one layer: taken apart into profile, signal and bulk, with remarks about everything else."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ._arrange import arrange, mean_stands_out, measured_fields
from ._biases import offsets
from ._controls import root_mean_square
from ._decomposition.live import live_part
from ._decomposition.parts import decompose
from ._entries import entries
from ._range import out_of_range
from ._readers.stored import Weight, printable
from ._reversibility import reversals
from ._settings import Settings
from ._verdict import judge
from .results import LayerAudit

LARGE = 2**26  # entries: 268 MB in float32, of which an audit has three or four copies


@torch.no_grad()
def audit_layer(weight: Weight, settings: Settings, *, own: Tensor | None = None) -> LayerAudit:
    """One layer. Its rows and columns of zeros are counted, and left out of everything else.

    `own` are activations of this layer, draws × rows.
    """
    began = time.perf_counter()
    thresholds, exact = settings.thresholds, settings.exact
    generator = settings.generator(weight.name)
    about: dict[str, Any] = {
        "name": weight.name,
        "kind": weight.kind,
        "rows": weight.rows,
        "columns": weight.columns,
        "tensor": printable(weight.tensor),
    }
    if weight.left_out:
        return LayerAudit(**about, verdict="not judged", sentence=f"not judged: {weight.left_out}")
    if weight.groups > 1:
        return LayerAudit(**about, verdict="not judged", sentence=f"not judged: {weight.in_groups}")
    side = min(weight.rows, weight.columns)
    if side < thresholds.min_side:
        sentence = f"too small to judge (a side of {side}, at least {thresholds.min_side} needed)"
        return LayerAudit(**about, verdict="not judged", sentence=sentence)
    if weight.bands is not None and weight.rows * weight.columns > LARGE and own is None:
        from ._large import audit_large

        if (large := audit_large(weight, settings, generator)) is not None:
            return replace(large, seconds=time.perf_counter() - began)
    matrix, bias = weight.load(), weight.load_bias()
    live = live_part(matrix)
    if not live.matrix.numel():
        return LayerAudit(**about, verdict="not judged", sentence="not judged: all entries are 0")
    about |= {"dead_rows": live.dead_rows, "dead_columns": live.dead_columns}
    if reason := out_of_range(live.matrix, bias):
        return LayerAudit(**about, verdict="not judged", sentence=reason)
    dead = ((live.dead_rows, weight.rows), (live.dead_columns, weight.columns))
    matrix, size = live.matrix, min(live.matrix.shape)
    if size < thresholds.min_side:
        sentence = (
            "too small to judge without its rows and columns of zeros "
            f"({live.dead_rows} of {weight.rows} rows, "
            f"{live.dead_columns} of {weight.columns} columns): a side of {size} is left, "
            f"at least {thresholds.min_side} needed"
        )
        return LayerAudit(**about, verdict="not judged", sentence=sentence)
    if float(matrix.min()) == float(matrix.max()):
        parts = decompose(matrix, alpha=thresholds.level, exact=exact, generator=generator)
        rest = " that are not in a row or column of zeros" if live.dead_rows or live.dead_columns else ""
        sentence = f"{parts.sentence}: all entries{rest} are {float(matrix[0, 0]):g}"
        return LayerAudit(**about, verdict=parts.grade, sentence=sentence, parts=parts.summary)
    if bias is not None:
        bias = bias[live.rows.to(bias.device)]
    if own is not None:
        own = own[:, live.rows.to(own.device)]
    reversal = reversals(
        matrix, bias, keep=settings.keep, samples=settings.samples, own=own, generator=generator
    )
    middle = reversal[len([one for one in reversal if one.source == "random"]) // 2]
    found = entries(
        matrix,
        sparsity=round(middle.sparsity),
        kept=middle.kept,
        error=middle.predicted.error.value,
        generator=generator,
    )
    mean = found.mean.value if mean_stands_out(found, thresholds.level) else 0.0
    mean_share = min((mean / root_mean_square(matrix)) ** 2, 1.0)
    centred = matrix - mean if mean else matrix
    parts = decompose(centred, alpha=thresholds.level, exact=exact, generator=generator)
    if mean and parts.summary.below:  # of a permutation, say, the mean is one of many equal directions
        whole = decompose(matrix, alpha=thresholds.level, exact=exact, generator=generator)
        if len(whole.summary.below) < len(parts.summary.below):
            centred, parts, mean_share = matrix, whole, 0.0
    arranged = arrange(centred, parts, thresholds.level, generator)
    biases = None if bias is None else offsets(bias)
    judged = judge(thresholds, found, biases, parts.summary, arranged, reversal, dead, mean_share)
    measured = measured_fields(judged, found, biases, parts, arranged, reversal, mean_share)
    return LayerAudit(**about, **measured, seconds=time.perf_counter() - began)
