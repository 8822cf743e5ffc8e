"""What rounding does to an audit: one net in two precisions, and the same net rounded here to four bits.

The Q4_1 grid is that of GGUF files: 32 numbers of a row share a step and a smallest number, both in float16.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse.weights import Weight, decompose, difference, open_weights

from .._lab.result_files import measure
from .layers import Clock
from .manifest import named

NETS = BASE, COPY = "minilm-l6", "minilm-l6-fp16"
BLOCK, LEVELS = 32, 15


def four_bits(matrix: Tensor) -> Tensor:
    """Each number at the nearest of 16 levels of its block."""
    blocks = matrix.reshape(-1, BLOCK)
    low, high = blocks.amin(1, keepdim=True), blocks.amax(1, keepdim=True)
    step = ((high - low) / LEVELS).half().float()
    low = low.half().float()
    places = torch.where(step > 0, (blocks - low) / step, torch.zeros(())).round().clamp(0, LEVELS)
    return (places * step + low).reshape(matrix.shape)


def told(tuned: Tensor, base: Tensor) -> dict[str, Any]:
    """What `difference` calls it, and the parts on both sides."""
    found = difference(
        {"w.weight": tuned}, {"w.weight": base}, generator=torch.Generator().manual_seed(0)
    ).layers[0]
    before, after = (
        decompose(one.float(), generator=torch.Generator().manual_seed(0)) for one in (base, tuned)
    )
    shares = [None if one.random_share is None else one.random_share.value for one in (before, after)]
    return {
        "change": found.change,
        "directions": found.rank,
        "size": found.size,
        "rank": [before.rank, after.rank],
        "random share": shares,
    }


def to_float16(base: Weight, copy: Weight) -> dict[str, Any]:
    return told(copy.as_stored(), base.load())


def to_four_bits(base: Weight) -> dict[str, Any]:
    matrix = base.load()
    return told(four_bits(matrix), matrix)


def run(folder: Path, out: Path, clock: Clock) -> bool:
    """False where the time was over."""
    base, copy = named([BASE, COPY])
    pairs = dict(enumerate(open_weights(folder / base.name / base.model)))
    copies = {one.name: one for one in open_weights(folder / copy.name / copy.model)}
    entries: dict[str, Any] = {}
    for weight in pairs.values():
        if weight.rows < 32 or weight.columns % BLOCK or weight.kind == "embedding":
            continue
        if weight.name in copies:
            entries[f"float16|{weight.name}"] = partial(to_float16, weight, copies[weight.name])
        entries[f"four bits|{weight.name}"] = partial(to_four_bits, weight)
    for name, entry in entries.items():
        if clock.over:
            return False
        measure(out / "precision.json", {"base": BASE}, {name: entry})
    return True
