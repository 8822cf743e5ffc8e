"""The audit of a net: every layer measured against random numbers of its shape, and judged."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._core import BadInput, Progress, versions
from ..shadow import check_keep
from ._activations import own_activations
from ._biases import offsets
from ._controls import root_mean_square
from ._entries import entries
from ._range import out_of_range
from ._readers.open import WeightSource, open_weights
from ._readers.stored import Weight
from ._reversibility import reversals
from ._spectrum import Bulk, exact_bulk, exact_seconds, lanczos_bulk, rescaled_distance
from ._structure import block_contrast, correlations, equalize_, fourth_moment, norm_spread, without_spikes
from ._verdict import BUDGET, KEEP, SAMPLES, SEED, Thresholds, judge, most_spikes
from .results import Audit, LayerAudit, Number, Spectrum


@torch.no_grad()
def audit(
    net: WeightSource,
    *,
    model: str = "",
    data: Tensor | None = None,
    thresholds: Thresholds | None = None,
    keep: float = KEEP,
    samples: int = SAMPLES,
    budget: float = BUDGET,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Audit:
    """Is each layer of this net random-like, in the sense that the reversibility theorem needs?

    `net` is a module, a state dict, the path of a file or folder of weights, or what `open_weights` returns.
    `model` names it in the result; without it that is the class of a module or the name of the
    file. With `data` (a batch of inputs, modules only) recovery is measured on the layers' own activations
    too. `budget` is the time in seconds that the exact singular values of one layer may take; beyond it a
    Lanczos density stands in for them.
    `progress(done, total, name)` hears of the progress.
    """
    thresholds = thresholds or Thresholds()
    _check(keep, samples, budget)
    began = time.perf_counter()
    weights = open_weights(net)
    own = _own_activations(net, data, weights, samples, seed)
    layers = []
    for done, weight in enumerate(weights):
        if progress:
            progress(done, len(weights), weight.name)
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{weight.name}".encode()))
        layers.append(
            audit_layer(
                weight,
                thresholds,
                own=None if weight.module is None else own.get(weight.module),
                keep=keep,
                samples=samples,
                budget=budget,
                generator=generator,
            )
        )
    if progress:
        progress(len(weights), len(weights), "")
    return Audit(
        model=model or _name(net),
        layers=tuple(layers),
        thresholds={name: getattr(thresholds, name) for name in thresholds.__dataclass_fields__},
        settings={"seed": seed, "keep": keep, "samples": samples, "budget": budget, "data": data is not None},
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


def _name(net: WeightSource) -> str:
    if isinstance(net, nn.Module):
        return type(net).__name__
    return Path(net).name if isinstance(net, Path | str) else "weights"


def audit_layer(
    weight: Weight,
    thresholds: Thresholds,
    *,
    own: Tensor | None,
    keep: float,
    samples: int,
    budget: float,
    generator: torch.Generator,
) -> LayerAudit:
    """One layer."""
    began = time.perf_counter()
    about: dict[str, Any] = {
        "name": weight.name,
        "kind": weight.kind,
        "rows": weight.rows,
        "columns": weight.columns,
    }
    size = min(weight.rows, weight.columns)
    if size < thresholds.min_side:
        sentence = f"too small to judge (a side of {size}, at least {thresholds.min_side} needed)"
        return LayerAudit(**about, verdict="not judged", sentence=sentence)
    matrix, bias = weight.load(), weight.load_bias()
    if float(matrix.min()) == float(matrix.max()):
        sentence = f"not random-like: all entries are {float(matrix[0, 0]):g}"
        return LayerAudit(**about, verdict="not random-like", sentence=sentence)
    if reason := out_of_range(matrix, bias):
        return LayerAudit(**about, verdict="not judged", sentence=reason)
    reversal = reversals(matrix, bias, keep=keep, samples=samples, own=own, generator=generator)
    middle = reversal[len([one for one in reversal if one.source == "random"]) // 2]
    found = entries(
        matrix,
        sparsity=round(middle.sparsity),
        kept=middle.kept,
        error=middle.predicted.error.value,
        generator=generator,
    )
    kurtosis = found.kurtosis.value
    exact = exact_seconds(matrix) <= budget
    bulk = (
        exact_bulk(matrix, thresholds.level, kurtosis)
        if exact
        else lanczos_bulk(matrix, thresholds.level, kurtosis, generator)
    )
    # A spike lengthens the rows it lies in and correlates them; it is told as a spike, and then taken off.
    removed = len(bulk.spikes) if len(bulk.spikes) <= most_spikes(size) else 0
    rest = without_spikes(matrix, removed, generator)
    norms = [norm_spread(rest, dim, kurtosis) for dim in (1, 0)]
    equalize_(rest)
    even_kurtosis = fourth_moment(rest) - 3
    rescaled = rescaled_distance(rest, even_kurtosis, generator)
    cosines = (
        correlations(rest, "rows", even_kurtosis, generator),
        correlations(rest, "columns", even_kurtosis, generator),
    )
    blocks = block_contrast(rest, even_kurtosis)
    spectrum = _spectrum(matrix, bulk, rescaled, norms, exact)
    biases = None if bias is None else offsets(bias)
    judged = judge(thresholds, found, biases, spectrum, cosines, blocks, reversal, size)
    return LayerAudit(
        **about,
        verdict=judged.verdict,
        sentence=judged.sentence,
        findings=judged.findings,
        entries=found,
        offsets=biases,
        spectrum=spectrum,
        correlations=cosines,
        blocks=blocks,
        reversal=reversal,
        seconds=time.perf_counter() - began,
    )


def _spectrum(matrix: Tensor, bulk: Bulk, rescaled: Number, norms: list[Number], exact: bool) -> Spectrum:
    from ._marchenko_pastur import edges

    rows, columns = matrix.shape
    low, high = edges(rows, columns, bulk.scale)
    energy = matrix.numel() * root_mean_square(matrix) ** 2
    # noise: energy rows·columns over the edge squared, whose relative mean and spread are Tracy–Widom's
    width = (1 / math.sqrt(rows) + 1 / math.sqrt(columns)) ** (1 / 3) / (math.sqrt(rows) + math.sqrt(columns))
    expected = rows * columns / (math.sqrt(rows) + math.sqrt(columns)) ** 2 / (1 - 1.2065 * width)
    return Spectrum(
        method="exact" if exact else "lanczos",
        scale=bulk.scale,
        lower=low,
        upper=high,
        distance=bulk.distance,
        rescaled=rescaled,
        row_norms=norms[0],
        column_norms=norms[1],
        spikes=bulk.spikes,
        spike_share=sum(spike.share for spike in bulk.spikes),
        stable_rank=Number(energy / bulk.largest**2, 1.268 * width * expected, expected),
        null_directions=bulk.null_directions,
        values=tuple(bulk.values.tolist()),
        error=bulk.error,
    )


def _own_activations(
    net: object, data: Tensor | None, weights: Sequence[Weight], samples: int, seed: int
) -> dict[str, Tensor]:
    if data is None:
        return {}
    if not isinstance(net, nn.Module):
        raise BadInput(
            "an nn.Module to run the data through", got="weights alone", do="pass the net, or leave data out"
        )
    modules = [weight.module for weight in weights if weight.module is not None]
    generator = torch.Generator().manual_seed(seed)
    return own_activations(net, data, modules, samples=samples, generator=generator)


def _check(keep: float, samples: int, budget: float) -> None:
    check_keep(keep)
    if samples < 2:
        raise BadInput("at least 2 samples", got=samples, do="32 is the default")
    if not budget >= 0:
        raise BadInput("a budget of at least 0 seconds", got=budget, do="0 means Lanczos densities only")
