"""Which rows of P are vertices of their convex hull, and weights by which a ReLU layer tells events apart.

Algebra of Theorems 6 and 7 alone: there are no inputs here and nothing is trained. Not for factors inside an
event: see disentangle.

Vertices are found by linear programming. A row is one if it is no convex combination of the *other rows*
(Definition 1). Rows count one by one, so two that are equal are each a combination of the other, and neither
is a vertex: no layer could tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor

from .._core import BadInput

SOLVER = 1e-10  # to which the solver meets its constraints: the least it can be asked for
TOLERANCE = 1e-8  # of a distance, as a share of the matrix's extent: what the solver leaves, with room


def hull_distances(matrix: Tensor) -> Tensor:
    """Of each row its distance Σ|·| to the convex hull of the other rows; infinite for a single row.

    >>> hull_distances(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]], dtype=torch.float64)).tolist()
    [0.5, 0.5, 0.0]
    """
    check_matrix("the matrix", matrix)
    return torch.tensor([_direction(matrix, row)[0] for row in range(len(matrix))], dtype=torch.float64)


def vertices(matrix: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Which rows are vertices: farther from the hull of the others than `tolerance` of the matrix's extent.

    >>> vertices(torch.tensor([[0.0], [1.0], [0.5]], dtype=torch.float64)).tolist()
    [True, True, False]
    """
    least = _least(matrix, tolerance)
    return hull_distances(matrix) > least


def is_all_vert(matrix: Tensor, tolerance: float = TOLERANCE) -> bool:
    """Whether every row is a vertex (Definition 2); stops at the first that is none."""
    least = _least(matrix, tolerance)
    return all(_direction(matrix, row)[0] > least for row in range(len(matrix)))


def _least(matrix: Tensor, tolerance: float) -> float:
    """The distance from which on a row counts as a vertex."""
    check_matrix("the matrix", matrix)
    check_tolerance(tolerance)
    return tolerance * float((matrix.detach().amax(0) - matrix.detach().amin(0)).max())


def separating_weights(matrix: Tensor, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
    """W and b with matrix·W + b equal to 1 on the diagonal and at most −1 elsewhere.

    After a ReLU this is the identity. They exist exactly if the matrix is all-vert. For a region with several
    children, give their P side by side, [P_αβ]_β: it is this matrix that must be all-vert, not each part.
    """
    least = _least(matrix, tolerance)
    weights, biases = [], []
    for row in range(len(matrix)):
        distance, direction = _direction(matrix, row)
        if not distance > least:
            raise BadInput(
                "rows that are all vertices of their convex hull",
                got=f"row {row}, which is a combination of the others",
                do="add a child that tells it apart",
            )
        weights.append(2 / distance * direction)
        biases.append(1 - weights[-1] @ matrix[row])
    return torch.stack(weights, 1), torch.stack(biases)


def and_weights(parts: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
    """W_β = P_αβᵀ and the bias −(|ch| − 1), for children whose events follow from α's, with F_β = I.

    Node i counts the children that see what event i has there: 1 is left where all do, at most 0 elsewhere.

    >>> identity = torch.eye(2, dtype=torch.float64)
    >>> parts = [identity.repeat_interleave(2, 0), identity.repeat(2, 1)]
    >>> weights, bias = and_weights(parts)
    >>> torch.relu(parts[0] @ weights[0] + parts[1] @ weights[1] + bias).equal(torch.eye(4).double())
    True
    """
    if not parts:
        raise BadInput("one P for each child", got="none", do="give them as a list")
    for index, part in enumerate(parts):
        check_matrix(f"P of child {index}", part)
        if len(part) != len(parts[0]):
            raise BadInput(
                f"P of child {index} with {len(parts[0])} rows, as that of child 0",
                got=len(part),
                do="correct it",
            )
        if not bool(((part == 0) | (part == 1)).all()) or not bool((part.sum(1) == 1).all()):
            raise BadInput(
                f"one-hot rows in P of child {index}",
                got="others",
                do="use separating_weights of all side by side",
            )
    rows = len(parts[0])
    if len(torch.unique(torch.cat(list(parts), 1), dim=0)) < rows:
        raise BadInput(
            "events that differ in some child", got="two that do not", do="add a child that tells them apart"
        )
    bias = torch.full((rows,), 1.0 - len(parts), dtype=torch.float64)
    return [part.mT.clone() for part in parts], bias


def linear_minimum(matrix: Tensor) -> int:
    """The least ‖M·W − I‖²_F over W: rows minus rank. With M = [P_ωβF_β]_β, what a linear net cannot do.

    >>> identity = torch.eye(2, dtype=torch.float64)
    >>> linear_minimum(torch.cat([identity.repeat_interleave(2, 0), identity.repeat(2, 1)], 1))
    1
    """
    check_matrix("the matrix", matrix)
    return len(matrix) - int(torch.linalg.matrix_rank(matrix))


def _direction(matrix: Tensor, row: int) -> tuple[float, Tensor]:
    """The distance of a row to the hull of the others, and w with |w_k| ≤ 1 and w·(row − other) ≥ distance.

    max_w min_j w·(p_i − p_j) over |w| ≤ 1 is min_a ‖p_i − Σ a_j p_j‖₁ over convex combinations a: one linear
    program gives both.
    """
    from scipy.optimize import linprog

    matrix = matrix.detach()
    apart = matrix[row] - torch.cat([matrix[:row], matrix[row + 1 :]])
    columns = matrix.shape[1]
    if not len(apart):
        return inf, torch.zeros(columns, dtype=torch.float64)
    extent = float(apart.abs().max())
    if extent == 0:
        return 0.0, torch.zeros(columns, dtype=torch.float64)
    # Unknown are w and t: maximize t with t ≤ w·(p_i − p_j) for every j.
    table = torch.cat([-apart / extent, torch.ones(len(apart), 1, dtype=torch.float64)], 1)
    found = linprog(
        c=[0.0] * columns + [-1.0],
        A_ub=table.numpy(),
        b_ub=[0.0] * len(apart),
        bounds=[(-1.0, 1.0)] * columns + [(0.0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": SOLVER, "dual_feasibility_tolerance": SOLVER},
    )
    if found.status != 0:  # w = 0 is always allowed: only rounding can end here
        raise BadInput(
            f"a linear program for row {row} that can be solved",
            got=found.message,
            do="scale the matrix to about 1",
        )
    direction = torch.tensor(found.x[:columns], dtype=torch.float64)
    return max(0.0, float((apart @ direction).min())), direction


def check_matrix(name: str, given: Tensor) -> None:
    """A finite float64 matrix that is not empty."""
    if not isinstance(given, Tensor) or given.dtype != torch.float64:
        got = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise BadInput(f"{name} as a float64 tensor", got=got, do="convert it")
    if given.ndim != 2 or 0 in given.shape:
        raise BadInput(f"{name} with rows and columns", got=f"shape {tuple(given.shape)}", do="correct it")
    if not bool(given.isfinite().all()):
        raise BadInput(f"{name} of finite numbers", got="NaN or infinity", do="look for 0/0 or overflow")


def check_tolerance(tolerance: float) -> None:
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < 1:
        raise BadInput("a tolerance from 0 to below 1", got=repr(tolerance), do=f"use {TOLERANCE:g}")
