"""An orthogonal matrix with det = 1 as turning planes, which gives its real fractional powers.

Not for other matrices: see factorize.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .decompositions import eigenvectors

# Couplings between eigenvectors of the symmetric part that count as none, in units of rounding. They come out
# about 10 where eigenvalues are well apart, and more the closer these are. To drop all below 100 loses little
# more than the real Schur form does: 4e-13 against 2e-13 in Frobenius norm for a random matrix of d = 500.
NEGLIGIBLE = 100


@dataclass(frozen=True)
class Rotation:
    """Q = Z B Zᵀ. Columns j and m + j of Z span plane j of m, which B turns by the angle θ_j; the rest stay.

    Q^t turns the planes by t·θ: it is exp(t·S) for the real skew logarithm S of least norm. An eigenvalue −1
    comes an even number of times, and any two of its vectors span a plane that turns by π.
    """

    basis: Tensor  # Z, orthogonal
    angles: Tensor  # θ, one a plane, −π ≤ θ ≤ π

    @staticmethod
    def of(matrix: Tensor) -> Rotation:
        """`matrix` must be orthogonal to rounding and have det > 0; neither is checked.

        The eigenvectors of the symmetric part (Q + Qᵀ)/2, whose eigenvalues are cos θ, split most matrices
        into planes. What they leave coupled, where angles are equal or close, the real Schur form splits.
        """
        vectors = eigenvectors((matrix + matrix.T) / 2)
        inside = (vectors.T @ matrix @ vectors).cpu().numpy()
        groups = _coupled(inside)
        pairs = np.array([group for group in groups if len(group) == 2], dtype=int).reshape(-1, 2)
        first, second = list(pairs[:, 0]), list(pairs[:, 1])
        angles = list(_angles(inside, pairs[:, 0], pairs[:, 1]))
        back = [group[0] for group in groups if len(group) == 1 and inside[group[0], group[0]] < 0]
        for group in groups:
            if len(group) > 2:
                mix, form = _schur(inside[np.ix_(group, group)])
                columns = torch.as_tensor(group, device=vectors.device)
                vectors[:, columns] = vectors[:, columns] @ torch.as_tensor(mix).to(vectors)
                below = np.append(np.diag(form, -1) != 0, False)
                starts = np.flatnonzero(below)
                first += list(group[starts])
                second += list(group[starts + 1])
                angles += list(_angles(form, starts, starts + 1))
                back += list(group[~below & ~np.roll(below, 1) & (np.diag(form) < 0)])
        first, second = first + back[0::2], second + back[1::2]
        angles += [pi] * (len(back) // 2)
        rest = np.setdiff1d(np.arange(len(vectors)), first + second)
        order = torch.as_tensor([*first, *second, *rest], device=vectors.device)
        return Rotation(vectors[:, order], vectors.new_tensor(angles))

    @property
    def largest(self) -> float:
        """The largest |θ|; 0 for the identity."""
        return min(pi, float(self.angles.abs().max())) if len(self.angles) else 0.0

    def moved(self, x: Tensor, times: Tensor) -> Tensor:
        """(B^t − I)x for each t in `times`, without cancellation where it is small; x is in coordinates of Z.

        Returns:
            times × d × columns of x.
        """
        m = len(self.angles)
        turn = (times.unsqueeze(1) * self.angles).unsqueeze(2)
        sine, less = torch.sin(turn), -2 * torch.sin(turn / 2) ** 2  # cos − 1
        one, two = x[:m], x[m : 2 * m]
        result = x.new_empty(len(times), *x.shape)
        torch.mul(less, one, out=result[:, :m]).addcmul_(sine, two, value=-1)
        torch.mul(less, two, out=result[:, m : 2 * m]).addcmul_(sine, one)
        result[:, 2 * m :] = 0
        return result

    def less_identity(self, time: float) -> Tensor:
        """Q^t − I, with an error relative to its own size."""
        return self.basis @ self.moved(self.basis.T, self.angles.new_tensor([time]))[0]


def _coupled(inside: Any) -> list[Any]:
    """Indices in groups between which the entries of a matrix are negligible."""
    coupled = np.maximum(abs(inside), abs(inside.T)) > NEGLIGIBLE * np.finfo(float).eps
    free = np.ones(len(inside), dtype=bool)
    groups = []
    while free.any():
        group = reached = np.flatnonzero(free)[:1]
        while len(reached):
            free[reached] = False
            reached = np.flatnonzero(coupled[reached].any(0) & free)
            group = np.append(group, reached)
        groups.append(group)
    return groups


def _schur(block: Any) -> tuple[Any, Any]:
    """Columns that split an orthogonal matrix, and the matrix between them: planes and ±1 on its diagonal."""
    from scipy.linalg import schur

    form, mix = schur(block, output="real")
    return mix, form


def _angles(inside: Any, first: Any, second: Any) -> Any:
    """By how much the planes of these columns turn, from the first to the second."""
    sine = inside[second, first] - inside[first, second]
    return np.arctan2(sine, inside[first, first] + inside[second, second])
