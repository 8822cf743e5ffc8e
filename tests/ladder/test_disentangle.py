"""Factors inside events against loops over events, and least squares written out."""

from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.ladder._disentangle import (
    activation_gap,
    activation_of,
    gradient_gap,
    gradient_of,
    is_disentangled,
    is_separable,
    kron,
    nearest_activation,
    nearest_gradient,
    off_block,
    product_conditional,
)

SIZES = [(2,), (2, 2), (2, 2, 2), (2, 3), (3, 1, 2)]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def stochastic(*shape: int, seed: int = 0) -> Tensor:
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1
    return drawn / drawn.sum(-1, keepdim=True)


def events(sizes) -> list[tuple[int, ...]]:
    """All events, the last factor varying fastest."""
    return list(product(*(range(size) for size in sizes)))


@pytest.mark.parametrize("sizes", SIZES)
def test_an_activation_reads_its_factor_off_each_event(sizes):
    factors = [normal(size, seed=j) for j, size in enumerate(sizes)]
    found = activation_of(factors)
    for row, event in enumerate(events(sizes)):
        for j, value in enumerate(event):
            assert found[row, j] == factors[j][value]


@pytest.mark.parametrize("sizes", SIZES)
def test_a_gradient_is_its_factor_times_the_chances_of_the_others(sizes):
    factors = [normal(size, seed=j) for j, size in enumerate(sizes)]
    chances = [stochastic(size, seed=j) for j, size in enumerate(sizes)]
    found = gradient_of(factors, chances)
    for row, event in enumerate(events(sizes)):
        for j in range(len(sizes)):
            others = prod(float(chances[i][value]) for i, value in enumerate(event) if i != j)
            # float64, a product of a few numbers
            assert float(found[row, j]) == pytest.approx(float(factors[j][event[j]]) * others, rel=1e-14)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_nearest_activation_averages_over_the_other_factors(sizes):
    given = normal(prod(sizes), len(sizes), seed=5)
    found = nearest_activation(given, sizes)
    for row, event in enumerate(events(sizes)):
        for j, value in enumerate(event):
            alike = [float(given[i, j]) for i, other in enumerate(events(sizes)) if other[j] == value]
            assert float(found[row, j]) == pytest.approx(sum(alike) / len(alike), abs=1e-14)  # float64 sums


@pytest.mark.parametrize("sizes", SIZES)
def test_the_nearest_gradient_is_least_squares(sizes):
    given = normal(prod(sizes), len(sizes), seed=5)
    chances = [stochastic(size, seed=j) for j, size in enumerate(sizes)]
    found = nearest_gradient(given, chances)
    for j, size in enumerate(sizes):
        basis = np.zeros((prod(sizes), size))
        for row, event in enumerate(events(sizes)):
            basis[row, event[j]] = prod(float(chances[i][v]) for i, v in enumerate(event) if i != j)
        best = basis @ np.linalg.lstsq(basis, given[:, j].numpy(), rcond=None)[0]
        np.testing.assert_allclose(found[:, j].numpy(), best, atol=1e-13)  # float64, orthogonal columns


@pytest.mark.parametrize("sizes", SIZES)
def test_gaps_are_zero_for_what_is_disentangled_and_measure_what_is_added(sizes):
    factors = [normal(size, seed=j) for j, size in enumerate(sizes)]
    chances = [stochastic(size, seed=j) for j, size in enumerate(sizes)]
    activation, gradient = activation_of(factors), gradient_of(factors, chances)
    assert activation_gap(activation, sizes) < 1e-15  # averages of equal numbers
    assert gradient_gap(gradient, chances) < 1e-15
    assert is_disentangled(activation, sizes)
    for given, gap in (
        (activation, lambda one: activation_gap(one, sizes)),
        (gradient, lambda one: gradient_gap(one, chances)),
    ):
        noise = normal(*given.shape, seed=9)
        nearest = (
            nearest_activation(noise, sizes) if given is activation else nearest_gradient(noise, chances)
        )
        across = noise - nearest  # orthogonal to all that is disentangled
        expected = float(across.norm() / (given + across).norm())
        assert gap(given + across) == pytest.approx(expected, abs=1e-13)  # float64


def test_a_node_of_the_wrong_factor_is_seen():
    columns = activation_of([normal(2), normal(2, seed=1)])
    swapped = columns.flip(1)
    assert not is_disentangled(swapped, (2, 2))
    # Of a function of the other factor only its mean is left, the same for all events.
    expected = (swapped - swapped.mean(0)).norm() / swapped.norm()
    assert activation_gap(swapped, (2, 2)) == pytest.approx(float(expected), rel=1e-13)


def test_exclusive_or_is_as_far_as_can_be():
    parity = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    assert activation_gap(torch.stack([parity, parity], 1), (2, 2)) == 1
    assert activation_gap(torch.zeros(4, 2, dtype=torch.float64), (2, 2)) == 0


def test_two_copies_of_one_factor_come_back_half_disentangled():
    """§7.7.1: P of two noisy copies gives v₊ − v₋ ∝ (−1, 0, 0, 1), of which p⊗g explains half."""
    half = torch.full((2,), 0.5, dtype=torch.float64)
    column = torch.tensor([-1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    assert gradient_gap(torch.stack([column, column], 1), [half, half]) == pytest.approx(sqrt(0.5), rel=1e-15)


@pytest.mark.parametrize("tolerance", [0.5, 0.75])
def test_tests_compare_the_gap_with_the_tolerance(tolerance):
    weights = torch.tensor([[0.8, 0.0], [0.0, 0.0], [0.6, 0.0]], dtype=torch.float64)
    assert off_block(weights, [[0, 1], [2]]) == pytest.approx(0.6, rel=1e-15)  # 0.8² + 0.6² = 1
    assert is_separable(weights, [[0, 1], [2]], tolerance) == (tolerance > 0.6)
    parity = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    mixed = activation_of([normal(2), normal(2, seed=1)])
    gap = activation_gap(mixed + parity, (2, 2))
    assert is_disentangled(mixed + parity, (2, 2), tolerance) == (gap <= tolerance)


def test_separable_weights_are_found_so_whatever_the_order_of_the_sets():
    weights = torch.zeros(4, 3, dtype=torch.float64)
    sets = [[3, 0], [], [1, 2]]
    for j, own in enumerate(sets):
        weights[own, j] = 1.0
    assert is_separable(weights, sets)
    assert off_block(weights, sets) == 0
    assert not is_separable(weights, [[0], [3], [1, 2]])
    assert off_block(torch.zeros(4, 3, dtype=torch.float64), sets) == 0


@pytest.mark.parametrize(
    ("parents", "sets", "sizes"),
    [
        ((2, 2), [[0, 1], [2]], (2, 2, 2)),
        ((2, 2), [[2, 0], [1]], (2, 3, 2)),
        ((2, 3, 2), [[1], [], [0]], (3, 2)),
    ],
)
def test_a_product_of_conditionals_is_a_product_for_every_pair_of_events(parents, sets, sizes):
    parts = [
        stochastic(parent, prod(sizes[k] for k in own), seed=i)
        for i, (parent, own) in enumerate(zip(parents, sets, strict=True))
    ]
    found = product_conditional(parts, sets, sizes)
    assert found.shape == (prod(parents), prod(sizes))
    for row, above in enumerate(events(parents)):
        for column, below in enumerate(events(sizes)):
            expected = 1.0
            for i, own in enumerate(sets):
                joint = events([sizes[k] for k in own]).index(tuple(below[k] for k in own))
                expected *= float(parts[i][above[i], joint])
            assert float(found[row, column]) == pytest.approx(expected, rel=1e-14)  # float64 product


def test_a_message_of_disentangled_activations_is_disentangled():
    """Eq. 90–92 for sets out of order: P F W with separable W."""
    sizes, sets, parents = (2, 3, 2), [[2, 0], [1]], (2, 2)
    below = activation_of([normal(size, seed=k) for k, size in enumerate(sizes)])
    parts = [stochastic(2, 4), stochastic(2, 3, seed=1)]
    weights = torch.zeros(3, 2, dtype=torch.float64)
    weights[[2, 0], 0], weights[1, 1] = normal(2, seed=7), 1.5
    message = product_conditional(parts, sets, sizes) @ below @ weights
    assert is_disentangled(message, parents)
    weights[1, 0] = 1.0
    assert not is_disentangled(product_conditional(parts, sets, sizes) @ below @ weights, parents)


def test_kron_is_that_of_numpy():
    one, two, three = normal(2, 3), normal(1, 2, seed=1), normal(3, 1, seed=2)
    expected = np.kron(np.kron(one.numpy(), two.numpy()), three.numpy())
    np.testing.assert_array_equal(kron([one, two, three]).numpy(), expected)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: activation_gap(normal(4, 3), (2, 2)), "4 × 2 for factors"),
        (lambda: activation_gap(normal(3, 2), (2, 2)), "4 × 2 for factors"),
        (lambda: activation_gap(normal(4, 2), (4, 0)), "values ≥ 1"),
        (lambda: activation_gap(normal(4, 2).float(), (2, 2)), "float64"),
        (lambda: activation_gap(normal(4, 2) / 0, (2, 2)), "finite"),
        (lambda: activation_gap(normal(4, 2), ()), "shape 1 × 0"),
        (lambda: gradient_gap(normal(4, 2), [torch.ones(2), torch.ones(2)]), "p\\[0\\] as a vector"),
        (lambda: gradient_gap(normal(4, 2), [0.0 * normal(2), normal(2)]), "not all 0"),
        (lambda: gradient_gap(normal(4, 2), [normal(2), normal(2) / 0]), "p\\[1\\] of finite"),
        (lambda: gradient_of([normal(2)], [normal(3)]), "as long as its p"),
        (lambda: gradient_of([], []), "a vector for each factor"),
        (lambda: kron([]), "something to multiply"),
        (lambda: off_block(normal(3, 2), [[0, 1, 2]]), "each of 2 parent nodes"),
        (lambda: off_block(normal(3, 2), [[0, 1], [1, 2]]), "each of 0 to 2 once"),
        (lambda: off_block(normal(3, 2), [[0, 1], []]), "each of 0 to 2 once"),
        (lambda: product_conditional([normal(2, 4)], [[0, 1], [2]], (2, 2, 2)), "one set for each part"),
        (lambda: product_conditional([normal(2, 3)], [[0, 1]], (2, 2)), "with 4 columns"),
        (lambda: product_conditional([normal(2, 4)], [[0, 2]], (2, 2)), "each of 0 to 1 once"),
        (lambda: is_disentangled(normal(4, 2), (2, 2), -1), "tolerance"),
        (lambda: is_separable(normal(2, 1), [[0, 1]], float("nan")), "tolerance"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(BadInput, match=words):
        call()
