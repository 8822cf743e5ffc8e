"""Figure 4 of the paper for single layers: entries, biases and singular values, before and after the profile.

What is drawn is in results/figure-4.json; the drawing is in figures.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse.weights import Weight, decompose, open_weights, root_mean_square

from .._lab.result_files import measure
from .layers import Clock, singular_values
from .manifest import named

EDGES = 4.0  # standard deviations to either side
BINS, BIAS_BINS = 64, 40
VALUES = 200  # singular values that are kept, evenly spaced in rank
NETS = {"alexnet-convolutions": "AlexNet_0", "facenet": "Bottleneck", "resnet50-imagenet": "fc1000"}  # layers


def chosen(file: Path, name: str) -> list[Weight]:
    return [weight for weight in open_weights(file) if weight.name.startswith(name)]


def histogram(values: Tensor) -> list[float]:
    """The density of standardized values between −EDGES and EDGES; what is beyond is left out."""
    standard = (values.double() - values.double().mean()) / values.double().std()
    counts = torch.histc(standard, BINS, -EDGES, EDGES)
    return (counts / len(values) / (2 * EDGES / BINS)).tolist()


def thinned(values: Tensor) -> list[float]:
    places = torch.linspace(0, len(values) - 1, min(VALUES, len(values))).round().long()
    return values[places].tolist()


@torch.no_grad()
def drawn(weight: Weight) -> dict[str, Any]:
    """Entries and singular values in units of their scale; biases as they are."""
    matrix, bias = weight.load(), weight.load_bias()
    rows, columns = matrix.shape
    unit = max(rows, columns) ** 0.5
    parts = decompose(matrix, generator=torch.Generator().manual_seed(0))
    bare = matrix / parts.row_scales[:, None].to(matrix) / parts.column_scales.to(matrix)
    after = singular_values(bare) / (parts.summary.scale * unit)
    return {
        "layer": weight.name,
        "rows": rows,
        "columns": columns,
        "rank": parts.rank,
        "entries": {"before": histogram(matrix.flatten()), "after": histogram(bare.flatten())},
        "biases": None if bias is None or not bool(bias.any()) else biases(bias.double()),
        "values": {
            "before": thinned(singular_values(matrix) / (root_mean_square(matrix) * unit)),
            "after": thinned(after),
        },
    }


def biases(bias: Tensor) -> dict[str, Any]:
    low, high = float(bias.min()), float(bias.max())
    counts = torch.histc(bias, BIAS_BINS, low, high)
    mean, deviation = float(bias.mean()), float(bias.std(correction=0))
    return {"low": low, "high": high, "counts": counts.tolist(), "mean": mean, "deviation": deviation}


def run(folder: Path, out: Path, clock: Clock) -> bool:
    """False where the time was over."""
    for net in named(list(NETS)):
        for weight in chosen(folder / net.name / net.model, NETS[net.name]):
            if clock.over:
                return False
            entry = {f"{net.name}|{weight.name}": partial(drawn, weight)}
            measure(out / "figure-4.json", {"bins": BINS, "edges": EDGES}, entry)
    return True
