"""How much longer a factorization takes than one singular value decomposition and a matrix product a layer.

All checks are inside. An eigenvalue decomposition splits the rotation of a random matrix. Where all planes
turn by one angle the slower real Schur form must: this worst case is measured too.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin

import torch
from measure import Outcome, alternate, compare, publish
from torch import Tensor

from obverse.identity import factorize

LAYERS = {500: 32, 1000: 16}  # of a matrix of this size
BAR = 4.0


def random_target(size: int) -> Tensor:
    """Normal entries, det > 0."""
    matrix = torch.randn(size, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix[0] *= torch.linalg.slogdet(matrix).sign
    return matrix


def one_angle(size: int) -> Tensor:
    """A rotation of planes at random, all by 1."""
    basis, _ = torch.linalg.qr(random_target(size))
    turn = torch.tensor([[cos(1), -sin(1)], [sin(1), cos(1)]], dtype=torch.float64)
    turned: Tensor = basis @ torch.kron(torch.eye(size // 2, dtype=torch.float64), turn) @ basis.T
    return turned


def least(matrix: Tensor, layers: int) -> None:
    """What no factorization does without."""
    torch.linalg.svd(matrix)
    for _ in range(layers):
        torch.mm(matrix, matrix)


def factorize_ratio(size: int) -> Callable[[int], Outcome]:
    def ratio(repetitions: int) -> Outcome:
        """factorize ÷ (one SVD + l products)."""
        layers = LAYERS[size]
        matrix, worst = random_target(size), one_angle(size)
        sides = {
            "factorize": lambda: factorize(matrix, layers),
            "factorize, one angle": lambda: factorize(worst, layers),
            "SVD + products": lambda: least(matrix, layers),
        }
        seconds = alternate(sides, repetitions)
        longest = compare(
            "", "", BAR, {side: seconds[side] for side in ("factorize, one angle", "SVD + products")}
        )
        error = torch.linalg.matrix_norm(factorize(matrix, layers).product - matrix, 2)
        return compare(
            f"factorize_{size}",
            f"factorize ÷ (SVD + {layers} products), d = {size}",
            BAR,
            {side: seconds[side] for side in ("factorize", "SVD + products")},
            size=size,
            layers=layers,
            relative_error=float(error / torch.linalg.matrix_norm(matrix, 2)),
            one_angle={"ratio": longest.ratio, **longest.range},
        )

    return ratio


if __name__ == "__main__":
    for matrix_size in LAYERS:
        publish(factorize_ratio(matrix_size), repetitions=15)
