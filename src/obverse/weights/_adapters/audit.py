"""`audit_adapter`: every update of a LoRA adapter, alone or on its base."""

from __future__ import annotations

import time
import zlib
from pathlib import Path

import torch
from torch import Tensor

from ..._core import Progress, counted, listed, or_global, versions
from .._decomposition.parts import thinned
from .._readers.address import is_address
from .._readers.open import CONFIG, WeightSource, open_weights
from ..results import ALPHA
from .base import Base, beside_base
from .config import AdapterConfig, read_config
from .files import AdapterFile, Factors, folder_of, open_factors, weights_file
from .product import directions_for, effective_rank, initial_p, singular_values, standing
from .results import AdaptedLayer, AdapterAudit
from .words import on_base, sentence

_NAMED = 5


@torch.no_grad()
def audit_adapter(
    path: Path | str,
    *,
    base: WeightSource | None = None,
    names: frozenset[str] | None = None,
    model: str = "",
    base_name: str = "",
    alpha: float = ALPHA,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> AdapterAudit:
    """Take the update of each layer of a PEFT LoRA adapter apart, without forming it.

    `path` is the folder with adapter_model.safetensors (or .bin) and adapter_config.json, or the hf:// name
    of one on a hub. With `base`, the weights that it was trained on, each update is measured beside the base
    layer, and their sum is taken apart as well (`alpha`: the chance of a false direction in noise). `names`
    are the layers wanted (None: all); `model` and `base_name` name both in the result.
    """
    began = time.perf_counter()
    folder = folder_of(path)
    config = read_config(folder / CONFIG)
    file = open_factors(weights_file(folder), config)
    factors = tuple(one for one in file.factors if names is None or one.name in names)
    origin = base_name or (
        str(base) if isinstance(base, Path | str) else "the base" if base is not None else ""
    )
    beneath = None if base is None else Base(open_weights(base), origin)
    if beneath is not None:
        beneath.check(factors)
    seed = int(torch.randint(2**31, (1,), generator=or_global(generator)))
    layers = []
    for done, one in enumerate(factors):
        if progress is not None:
            progress(done, len(factors), one.name)
        own = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{one.name}".encode()))
        layers.append(_layer(one, config, beneath, alpha, own))
    if progress is not None and factors:
        progress(len(factors), len(factors), factors[-1].name)
    return AdapterAudit(
        model=model or (str(path) if is_address(path) else folder.name),
        base=origin,
        layers=tuple(layers),
        notes=_notes(config, file, beneath, factors),
        settings={
            "r": config.rank,
            "lora_alpha": config.alpha,
            "use_rslora": config.rank_stabilized,
            "use_dora": config.has_magnitudes,
            "trained on": config.base,
            "alpha": alpha,
            "seed": seed,
        },
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


def adapter_names(path: Path | str) -> tuple[str, ...]:
    """The adapted layers, without reading their values."""
    folder = folder_of(path)
    return tuple(one.name for one in open_factors(weights_file(folder), read_config(folder / CONFIG)).factors)


def _layer(
    factors: Factors,
    config: AdapterConfig,
    base: Base | None,
    alpha: float,
    generator: torch.Generator,
) -> AdaptedLayer:
    left, right = factors.load()
    scaling = config.scaling_of(factors.module)
    values = singular_values(left, right, scaling)
    norm = float((values**2).sum() ** 0.5)
    if norm == 0:
        return AdaptedLayer(
            name=factors.name,
            kind=factors.kind,
            rows=factors.rows,
            columns=factors.columns,
            rank=factors.rank,
            scaling=scaling,
            sentence=f"the update is 0: {_why_zero(factors, scaling, left, right)}",
            initial_p=_initial(factors, config, right),
        )
    effective = effective_rank(values)
    shares = directions_for(values, 0.9), directions_for(values, 0.99)
    above = standing(values, factors.rows, factors.columns)
    initial = _initial(factors, config, right)
    said = sentence(factors.rank, effective, shares, above, initial)
    beside = beside_base(factors, left, right, scaling, base, alpha, generator) if base else None
    return AdaptedLayer(
        name=factors.name,
        kind=factors.kind,
        rows=factors.rows,
        columns=factors.columns,
        rank=factors.rank,
        scaling=scaling,
        sentence=said if beside is None else f"{said}; {on_base(beside, factors.rank)}",
        norm=norm,
        values=thinned(values),
        effective_rank=effective,
        for_90=shares[0],
        for_99=shares[1],
        standing=None if above is None else above.count,
        standing_p=None if above is None else above.p,
        draws=0 if above is None else above.draws,
        initial_p=initial,
        on_base=beside,
    )


def _why_zero(factors: Factors, scaling: float, left: Tensor, right: Tensor) -> str:
    if scaling == 0:
        return "its scaling is 0"
    first, other = (
        ("lora_embedding_A", "lora_embedding_B") if factors.kind == "embedding" else ("lora_B", "lora_A")
    )
    if not left.any():
        return f"{first} is 0, as in an adapter that was not trained"
    return f"{other} is 0" if not right.any() else "the factors cancel"


def _initial(factors: Factors, config: AdapterConfig, right: Tensor) -> float | None:
    if not factors.start_from or config.start or not config.uniform_start:
        return None
    return initial_p(right, factors.start_from)


def _notes(
    config: AdapterConfig, file: AdapterFile, base: Base | None, factors: tuple[Factors, ...]
) -> tuple[str, ...]:
    """What of the adapter is in no product, and what the products are not."""
    notes = []
    if config.has_magnitudes or file.magnitudes:
        notes.append(
            f"DoRA: {counted(file.magnitudes, 'magnitude vector')} left out: the net scales each row of "
            "base + update to it, which no product shows"
        )
    if config.start:
        notes.append(
            f"the factors began with {config.start}: at the start B · A was not 0, or the base was "
            "changed, so the products are not what training added"
        )
    if file.biases:
        notes.append(f"{counted(file.biases, 'bias', 'biases')} of lora_B left out: no matrices")
    if file.whole:
        notes.append(
            f"{counted(len(file.whole), 'weight')} stored whole, not as a product, left out: "
            f"{listed(file.whole, _NAMED)}"
        )
    if base is None:
        return tuple(notes)
    packed = [one.name for one in factors if any(part.left_out for part in base.layers(one.module))]
    if packed:
        notes.append(f"the base is packed, and left out, in {listed(packed, _NAMED)}: dequantize it first")
    if config.turned and not base.fused_inputs_first and any(one.rows == one.columns for one in factors):
        notes.append(
            "fan_in_fan_out: which side of the base's square matrices is which is not in its file; they are "
            "taken as outputs × inputs"
        )
    if config.replicated:
        notes.append(
            "layers of the base are used several times: names may stand for other layers of its file"
        )
    return tuple(notes)
