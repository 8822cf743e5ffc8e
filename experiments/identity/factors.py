"""Singular values of near-identity factors, for docs/identity.md: results/factors.json."""

from __future__ import annotations

from pathlib import Path

import torch

from obverse._core.files import write_json
from obverse.identity import factorize

RESULTS = Path(__file__).parent / "results" / "factors.json"
LAYERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SIZE = 32


def run() -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(SIZE, SIZE, generator=generator, dtype=torch.float64) / SIZE**0.5
    if torch.linalg.slogdet(matrix).sign < 0:
        matrix[0] = -matrix[0]
    half_turn = -torch.eye(SIZE, dtype=torch.float64)
    found = {}
    for name, one in {"random": matrix, "half turn": half_turn}.items():
        rows = []
        for layers in LAYERS:
            steps = factorize(one, layers)
            identity = torch.eye(SIZE, dtype=torch.float64)
            rows.append(
                {
                    "layers": layers,
                    "norm": max(float(torch.linalg.matrix_norm(factor, 2)) for factor in steps.factors),
                    "bound": steps.bound,
                    "printed": (4 * torch.pi + 3 * steps.gamma) / layers,
                    "error": float((steps.product - one).norm() / one.norm()),
                    "values": torch.linalg.svdvals(identity + steps.factors[0]).tolist(),
                }
            )
        found[name] = {"size": SIZE, "gamma": factorize(one, 1).gamma, "rows": rows}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    write_json(RESULTS, found)


if __name__ == "__main__":
    run()
