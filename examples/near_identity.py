"""How many residual layers does a linear map need, if each may move things only a little?

python examples/near_identity.py [matrix.npy]    square, with a positive determinant
"""

import sys

import numpy as np
import torch

from obverse.identity import factorize, min_layers


def main() -> None:
    if sys.argv[1:]:
        matrix = torch.from_numpy(np.load(sys.argv[1], allow_pickle=False)).double()
    else:
        matrix = torch.randn(50, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        matrix[0] *= torch.linalg.det(matrix).sign()  # without a mirror image: no steps near I make one
    size = len(matrix)
    stretch = factorize(matrix, 1).gamma
    print(f"a {size} × {size} matrix that stretches or shrinks by up to {np.exp(stretch):.1f}")
    for layers in (8, 32, 128):
        found = factorize(matrix, layers)
        off = float((found.product - matrix).abs().max())
        print(
            f"{layers:>4} layers I + A: largest ‖A‖ {found.distance:.3f}, guaranteed {found.bound:.3f};"
            f" their product is the matrix up to {off:.0e}"
        )
    print(f"For ‖A‖ ≤ 0.1 everywhere {min_layers(matrix, 0.1)} layers are enough.")


if __name__ == "__main__":
    main()
