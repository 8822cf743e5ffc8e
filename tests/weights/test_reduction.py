"""Values and directions from one reduction, and a search that goes on: against whole decompositions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import svd

from obverse.weights import decompose
from obverse.weights._decomposition.krylov import BAND, BlockLanczos, Projected, half_gram
from obverse.weights._decomposition.reduction import gram, reduce
from weights.searches import block_lanczos


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("rows", "columns", "count"), [(2, 5, 1), (33, 40, 33), (64, 100, 5)])
def test_values_and_directions_are_those_of_a_whole_decomposition(rows, columns, count):
    matrix = torch.randn(rows, columns, generator=seeded(rows))
    left, values, _ = svd(matrix.double().numpy(), full_matrices=False)
    found = reduce(matrix)
    # the squares are exact to float64 rounding of the largest, 1e-16 · rows; so are values far from 0
    assert found.values[::-1] == pytest.approx(values, rel=1e-9)
    cosines = np.abs(left[:, :count].T @ found.leading(count).numpy())
    assert cosines == pytest.approx(np.eye(count), abs=1e-7)
    components = np.abs(found.components(1, 2).numpy())[0]
    assert components == pytest.approx(np.abs(left[1, ::-1]), abs=1e-7)


def test_half_of_a_gram_matrix_is_the_other_half():
    matrix = torch.randn(601, 700, generator=seeded(1))
    whole = matrix.double() @ matrix.double().T
    assert torch.allclose(gram(matrix), whole, rtol=0, atol=1e-10)
    found = half_gram(matrix)
    assert torch.equal(found, found.T)
    # a sum of n products is off by at most n units of rounding times the sum of their sizes (Higham 2002)
    sizes = matrix.abs().double()
    assert bool(((found.double() - whole).abs() <= 700 * 2**-24 * (sizes @ sizes.T)).all())


def test_a_search_that_goes_on_finds_what_one_in_one_go_does():
    matrix = torch.randn(200, 300, generator=seeded(2))
    matrix += 60 * torch.outer(torch.eye(200)[0], torch.eye(300)[1])
    at_once = block_lanczos(matrix, block=8, steps=10, start=None, generator=seeded(3))
    search = BlockLanczos(matrix, block=8, start=None, generator=seeded(3))
    formed = BlockLanczos(matrix, block=8, start=None, generator=seeded(3), room=10**4)
    assert formed._gram is not None
    assert search._gram is None
    for one in (search, formed):
        for steps in (4, 0, 6):
            one.extend(steps)
        # rounding of float32 products, 1e-7, grows along the recurrence where values have not converged
        assert one.found().values[:10] == pytest.approx(at_once.values[:10], rel=1e-4)
    search.extend(1000)
    assert search.size == 200
    exact = torch.linalg.svdvals(matrix.double()).numpy()
    assert search.found().values == pytest.approx(exact, rel=1e-3)
    density = at_once.quadrature(1)
    assert density.weights.sum(1) == pytest.approx(np.ones(8))
    assert density.nodes.max() < 40 < at_once.values[0]


def test_along_given_directions_are_the_values_of_what_lies_in_them():
    matrix = torch.randn(90, 130, generator=seeded(8))
    matrix += 200 * torch.outer(torch.eye(90)[0], torch.eye(130)[1])
    directions = torch.linalg.qr(torch.eye(90, 7) + 0.1 * torch.randn(90, 7, generator=seeded(9))).Q
    found = Projected(directions, matrix.T @ directions)
    inside = (directions.T @ matrix).double()
    # float32 products are off by 1e-7 of the largest value, 200; the smallest of these is near 10
    assert found.values == pytest.approx(torch.linalg.svdvals(inside).numpy(), rel=1e-5)
    assert (found.values <= torch.linalg.svdvals(matrix.double()).numpy()[:7] * (1 + 1e-6)).all()
    leading = found.leading(3)
    assert torch.allclose(leading.T @ leading, torch.eye(3), atol=1e-5)
    image = found.image(3)
    assert torch.allclose(image, matrix.T @ leading, atol=1e-3)  # 1e-6 of 200, and a margin
    assert torch.allclose(image.norm(dim=0).double(), torch.from_numpy(found.values[:3].copy()), rtol=1e-5)


def test_a_signal_that_distorts_the_profile_is_found_as_among_all_singular_values():
    """Strong directions in thirty rows and weak ones in all: as the profile moves, so do the directions."""
    rows, columns = 600, 900
    left, right = (
        torch.linalg.qr(torch.randn(side, 20, generator=seeded(side))).Q for side in (rows, columns)
    )
    left[:, :2] = 0
    left[:30, :2] = torch.linalg.qr(torch.randn(30, 2, generator=seeded(3))).Q
    strengths = torch.cat((torch.tensor([20.0, 12.0]), torch.linspace(6, 2, 18)))
    matrix = torch.randn(rows, columns, generator=seeded(4))
    matrix.addmm_(left * strengths * (rows * columns) ** 0.25, right.T)
    matrix *= (0.3 * torch.randn(rows, 1, generator=seeded(5))).exp()
    fast, exact = (decompose(matrix, exact=way, generator=seeded(6)) for way in (False, True))
    assert fast.rank == exact.rank == 20
    # the sampling error of a scale seen in one row, 1 / √(2 · columns)
    assert torch.allclose(fast.row_scales, exact.row_scales, rtol=(2 * columns) ** -0.5)


@pytest.mark.parametrize("by_columns", [False, True])
def test_a_matrix_of_several_bands_of_columns_is_searched_whole(by_columns):
    matrix = torch.randn(60, 2 * BAND + 76, generator=seeded(6))
    if by_columns:
        matrix = matrix.T.contiguous().T
    found = block_lanczos(matrix, block=8, steps=7, start=None, generator=seeded(7))
    exact = torch.linalg.svdvals(matrix.double()).numpy()
    # 56 of 60 dimensions: the largest have converged, to float32 rounding along the recurrence
    assert found.values[:5] == pytest.approx(exact[:5], rel=1e-4)


@pytest.mark.parametrize("exact", [True, False])
def test_a_matrix_that_lies_by_columns_or_in_half_precision_is_the_same_and_stays_as_it_is(exact):
    matrix = torch.randn(130, 300, generator=seeded(4)).half()
    matrix += 4 * torch.outer(torch.ones(130), torch.ones(300)).half()
    usual = decompose(matrix.float(), exact=exact, generator=seeded(5)).summary
    for other in (matrix, matrix.double(), matrix.T, matrix.float().T, matrix.float().T.contiguous()):
        before = other.clone()
        found = decompose(other, exact=exact, generator=seeded(5)).summary
        assert torch.equal(other, before)
        assert found.rank == usual.rank == 1
        # the profile stops at 1e-3 of a line's energy, wherever it begins
        assert found.signal_share.value == pytest.approx(usual.signal_share.value, rel=1e-3)
