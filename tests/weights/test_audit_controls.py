"""Shuffled and normal controls: the same entries, and nothing left of their arrangement."""

from collections import Counter
from itertools import permutations
from math import sqrt

import pytest
import torch
from scipy.stats import chisquare

from obverse.weights import _controls as controls
from obverse.weights._controls import gaussian, shuffled


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (700, 500), (5, 200_003), (200_003, 5), (1, 300_000)])
def test_the_entries_are_the_same(shape):
    matrix = normal(*shape)
    kept = matrix.clone()
    result = shuffled(matrix, seeded(1))
    assert result.shape == matrix.shape
    assert torch.equal(matrix, kept)
    assert torch.equal(result.flatten().sort().values, matrix.flatten().sort().values)
    assert torch.equal(result, shuffled(matrix, seeded(1)))
    if matrix.numel() > 1:
        assert not torch.equal(result, shuffled(matrix, seeded(2)))


def test_a_view_is_shuffled_as_it_is_seen():
    matrix = normal(40, 30).T[::2]
    result = shuffled(matrix, seeded(1))
    assert torch.equal(result.flatten().sort().values, matrix.flatten().sort().values)


def test_every_order_of_a_small_matrix_has_the_same_chance():
    matrix, generator = torch.arange(4.0).reshape(2, 2), seeded()
    counts = Counter(tuple(shuffled(matrix, generator).flatten().tolist()) for _ in range(4800))
    orders = [counts[order] for order in permutations((0.0, 1.0, 2.0, 3.0))]
    assert sum(orders) == 4800
    assert chisquare(orders).pvalue > 1e-3


def test_in_blocks_too_an_entry_gets_anywhere_and_parts_from_its_neighbours(monkeypatch):
    monkeypatch.setattr(controls, "_BLOCK", 12)  # two rows, or two columns, at a time
    matrix, generator = torch.arange(36.0).reshape(6, 6), seeded()
    places, apart, draws = torch.zeros(36), torch.zeros(6, 6), 4000
    for _ in range(draws):
        result = shuffled(matrix, generator).flatten()
        places[(result == 0).nonzero().item()] += 1
        first, second = ((result == value).nonzero().item() for value in (0.0, 1.0))
        apart[first // 6, second // 6] += 1
    assert chisquare(places.numpy()).pvalue > 1e-3
    # two neighbours land in rows that are nearly independent: equal rows in 5 of 35 places by pure chance
    together = float(apart.diagonal().sum()) / draws
    # what blocks of two change at most, 1/6 of it, and 4 standard errors
    assert abs(together - 5 / 35) < 5 / 35 / 6 + 4 * sqrt(5 / 35 * 30 / 35 / draws)


def cosine(matrix: torch.Tensor) -> torch.Tensor:
    rows = torch.nn.functional.normalize(matrix, dim=1)
    return (rows @ rows.T).triu(1)


def block_diagonal() -> torch.Tensor:
    return torch.block_diag(*(normal(50, 40, seed=i) for i in range(12))) + 0.01 * normal(600, 480, seed=12)


PLANTED = {
    "rank one": normal(600, 480) + 12 * torch.outer(normal(600, seed=1), normal(480, seed=2)) / 20,
    "row scales": normal(600, 480) * normal(600, 1, seed=1).exp(),
    "column scales": normal(600, 480) * normal(1, 480, seed=1).exp(),
    "correlated columns": normal(600, 480) + normal(600, 1, seed=1),
    "blocks": block_diagonal(),
    "a sign for each row": normal(600, 480).abs() * normal(600, 1, seed=1).sign(),
    "sorted": normal(600 * 480).sort().values.reshape(600, 480),
}


MEASURES = {  # of a centred matrix, each with how far two random matrices may be apart in it
    # the largest singular value fluctuates by Tracy–Widom, about m^(−2/3) = 1.4 %
    "top singular value": (lambda w: torch.linalg.matrix_norm(w, 2), 0.05),
    # the root mean square of 600·599/2 cosines: 1/√(2·180,000) = 0.2 %, heavy tails some more
    "cosines of rows": (lambda w: cosine(w).norm(), 0.03),
    "cosines of columns": (lambda w: cosine(w.T).norm(), 0.03),
    # the spread of 480 numbers is known to 1/√(2·480) = 3 %, a difference of two to 4.6 %; 4 of these
    "row norms": (lambda w: w.square().sum(1).std(), 0.2),
    "column norms": (lambda w: w.square().sum(0).std(), 0.2),
    "row sums": (lambda w: w.sum(1).std(), 0.2),
    "column sums": (lambda w: w.sum(0).std(), 0.2),
    # 144 numbers: 1/√288 = 6 %, a difference 8 %; 4 of these
    "energy of blocks": (lambda w: w.square().reshape(12, 50, 12, 40).sum((1, 3)).std(), 0.33),
}


def permuted(matrix: torch.Tensor) -> torch.Tensor:
    """The oracle: one permutation of everything."""
    return matrix.flatten()[torch.randperm(matrix.numel(), generator=seeded(8))].reshape(matrix.shape)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_structure_is_gone(name, monkeypatch):
    monkeypatch.setattr(controls, "_BLOCK", 2**14)  # so that this small matrix has many blocks
    matrix = PLANTED[name] - PLANTED[name].mean()
    result, oracle = shuffled(matrix, seeded(7)), permuted(matrix)
    apart = []
    for measure, tolerance in MEASURES.values():
        expected = float(measure(oracle))
        assert float(measure(result)) == pytest.approx(expected, rel=tolerance)
        apart.append(float(measure(matrix)) / expected)
    assert max(apart) > 1.5  # it was there: one of the measures notices


def test_blocks_of_columns_are_no_more_alike_than_by_chance(monkeypatch):
    """Each block of rows sends as much to each block of columns: harmless, as their rows come at random."""
    monkeypatch.setattr(controls, "_BLOCK", 30 * 600)  # 30 columns a block
    matrix = PLANTED["sorted"]
    energies = [
        one.square().sum(0).reshape(16, 30).sum(1) for one in (shuffled(matrix, seeded(7)), permuted(matrix))
    ]
    # the spread of 16 numbers is known to 1/√30 = 18 %, a ratio of two to 26 %; 4 of these on a log scale
    assert 0.35 < float(energies[0].std() / energies[1].std()) < 2.8


def test_normal_entries_have_the_mean_square_and_no_mean():
    matrix = normal(300, 400) * 0.02 + 0.05
    result = gaussian(matrix, seeded(1))
    count, square = matrix.numel(), float(matrix.double().square().mean())
    assert result.shape == matrix.shape
    assert result.dtype == matrix.dtype
    # standard errors of the mean and of the mean square of normal numbers
    assert abs(float(result.mean())) < 4 * sqrt(square / count)
    assert float(result.square().mean()) == pytest.approx(square, rel=4 * sqrt(2 / count))
    assert torch.equal(result, gaussian(matrix, seeded(1)))
    assert torch.equal(gaussian(torch.zeros(3, 4), seeded()), torch.zeros(3, 4))


@pytest.mark.slow
def test_shuffling_in_blocks_is_faster_than_one_permutation():
    from statistics import median
    from time import perf_counter

    matrix, generator, ratios = normal(5000, 5000), seeded(), []
    for _ in range(3):
        began = perf_counter()
        shuffled(matrix, generator)
        middle = perf_counter()
        matrix.flatten()[torch.randperm(matrix.numel(), generator=generator)]
        ratios.append((middle - began) / (perf_counter() - middle))
    assert median(ratios) < 0.75  # measured: 0.4
