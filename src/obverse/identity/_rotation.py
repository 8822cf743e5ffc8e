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

from ._decompositions import eigenvectors

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

    def turned(self, x: Tensor, times: Tensor) -> Tensor:
        """Q^t x for each t in `times`, of x that is given in coordinates of Z: times × d × columns of x."""
        angles = self._shares(times)
        return self.basis.expand(len(times), -1, -1) @ self._mixed(
            x, torch.cos(angles), torch.sin(angles), 1.0
        )

    def less_identity(self, time: float) -> Tensor:
        """Q^t − I, with an error relative to its own size: nothing cancels where it is small."""
        angles = self._shares(self.angles.new_tensor([time]))
        less = -2 * torch.sin(angles / 2) ** 2  # cos − 1
        return self.basis @ self._mixed(self.basis.T, less, torch.sin(angles), 0.0)[0]

    def _shares(self, times: Tensor) -> Tensor:
        return (times.unsqueeze(1) * self.angles).unsqueeze(2)

    def _mixed(self, x: Tensor, along: Tensor, across: Tensor, rest: float) -> Tensor:
        """Coordinates in each plane times `along`, ∓ the other's times `across`; all others times `rest`."""
        m = len(self.angles)
        one, two = x[:m], x[m : 2 * m]
        result = x.new_empty(len(along), *x.shape)
        torch.mul(along, one, out=result[:, :m]).addcmul_(across, two, value=-1)
        torch.mul(along, two, out=result[:, m : 2 * m]).addcmul_(across, one)
        result[:, 2 * m :] = rest * x[2 * m :]
        return result


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
