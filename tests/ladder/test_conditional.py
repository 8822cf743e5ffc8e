"""P(z_β | z_α) against dictionaries of counts."""

import numpy as np
import pytest
import torch

from ladder.plain_ladder import SUMMED, plain_conditional
from obverse._core.errors import BadInput
from obverse.ladder._conditional import Conditional

ZERO_HEAVY = [0.0, 0.3, 0.0, 0.2, 0.1, 0.0, 0.25, 0.15]


def draw(seed: int, count: int, above: int, below: int):
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(count, generator=generator, dtype=torch.float64)
    p = torch.where(torch.rand(count, generator=generator) < 0.4, 0.0, p)
    p[0] = 1.0
    first = torch.randint(above, (count,), generator=generator)
    return first, torch.randint(below, (count,), generator=generator), p / p.sum()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("above", "below"), [(1, 1), (2, 5), (7, 3), (40, 40)])
def test_it_is_the_frequency_of_one_event_where_the_other_is(seed, above, below):
    high, low, p = draw(seed, 30, above, below)
    found = Conditional.of(high, low, p, (above, below))
    expected = plain_conditional(high.tolist(), low.tolist(), p.tolist(), (above, below))
    np.testing.assert_allclose(found.dense().numpy(), expected, rtol=0, atol=SUMMED)
    assert found.shape == (above, below)
    assert bool((found.values > 0).all())
    assert found.rows.tolist() == sorted(found.rows.tolist())
    pairs = list(zip(found.rows.tolist(), found.columns.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert pairs == sorted(pairs)
    one_each = all((row > 0).sum() <= 1 for row in expected)
    assert bool(found.is_function) == one_each


def test_rows_of_events_that_happen_sum_to_one_and_others_to_zero():
    high = torch.tensor([0, 0, 1, 3, 3, 2, 0, 3])
    low = torch.tensor([1, 0, 1, 0, 1, 0, 1, 1])
    found = Conditional.of(high, low, torch.tensor(ZERO_HEAVY, dtype=torch.float64), (5, 2)).dense()
    # events 1 and 2 happen with probability 0 only, 4 never
    assert found.sum(1).tolist() == pytest.approx([1, 0, 0, 1, 0], abs=SUMMED)
    # by hand: z_α = 0 has 0.3 with z_β = 0 and 0.25 with 1; z_α = 3 has 0.2 and 0.1 + 0.15
    assert found[0].tolist() == pytest.approx([0.3 / 0.55, 0.25 / 0.55], abs=SUMMED)
    assert found[3].tolist() == pytest.approx([0.2 / 0.45, 0.25 / 0.45], abs=SUMMED)


def test_a_function_is_exactly_one_in_each_row():
    """Not 1 − 1e-16: what is said of functions must not be a matter of rounding."""
    _, _, p = draw(3, 64, 8, 1)
    high = torch.arange(64) % 8
    found = Conditional.of(high, high // 3, p, (8, 3))
    assert found.is_function
    assert set(found.values.tolist()) == {1.0}
    assert not Conditional.of(high // 3, high, p, (3, 8)).is_function


def test_an_input_that_never_comes_does_not_make_it_less_of_a_function():
    high, low = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    assert Conditional.of(high, low, torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64), (2, 2)).is_function
    assert not Conditional.of(
        high, low, torch.tensor([0.4, 0.1, 0.5], dtype=torch.float64), (2, 2)
    ).is_function


@pytest.mark.parametrize("seed", range(4))
def test_products_are_those_of_the_dense_matrix(seed):
    high, low, p = draw(seed, 50, 6, 9)
    found = Conditional.of(high, low, p, (6, 9))
    dense = plain_conditional(high.tolist(), low.tolist(), p.tolist(), (6, 9))
    generator = torch.Generator().manual_seed(seed)
    below = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    above = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    np.testing.assert_allclose((found @ below).numpy(), dense @ below.numpy(), atol=SUMMED)
    np.testing.assert_allclose(found.transposed(above).numpy(), dense.T @ above.numpy(), atol=SUMMED)


def test_large_numbers_of_events_do_not_overflow():
    """Pairs are numbered by one integer: 2^24 × 2^24 of them."""
    size = 2**24
    high, low = torch.tensor([0, size - 1, size - 1]), torch.tensor([size - 1, 0, size - 1])
    found = Conditional.of(high, low, torch.tensor([0.5, 0.125, 0.375], dtype=torch.float64), (size, size))
    assert found.rows.tolist() == [0, size - 1, size - 1]
    assert found.columns.tolist() == [size - 1, 0, size - 1]
    assert found.values.tolist() == pytest.approx([1, 0.25, 0.75], abs=SUMMED)


def test_probabilities_of_very_different_size():
    """P(z_β | z_α) of a rare z_α is as sharp as that of a common one."""
    p = torch.tensor([1 - 3e-200, 1e-200, 2e-200], dtype=torch.float64)
    found = Conditional.of(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), p, (2, 2)).dense()
    assert found[1].tolist() == pytest.approx([1 / 3, 2 / 3], rel=1e-12)


def test_from_dense_gives_the_matrix_back():
    matrix = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    found = Conditional.from_dense(matrix)
    assert torch.equal(found.dense(), matrix)
    assert found.shape == (2, 3)
    assert not found.is_function
    assert len(found.values) == 3
    assert Conditional.from_dense([[0, 1], [1, 0]]).is_function


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[0.5, 0.4]], "sum to one; got 0.9 in row 0"),
        ([[1.0, 0.0], [0.7, 0.7]], "sum to one; got 1.4 in row 1"),
        ([[1.5, -0.5]], "P, none negative"),
        ([[float("nan"), 1.0]], "P, none negative and all finite"),
        ([[float("inf"), 0.0]], "P"),
        ([[0.0, 0.0], [0.5, 0.5]], "sum to one; got 0 in row 0"),
        ([1.0], "matrix"),
        ([[]], "matrix"),
        ([], "matrix"),
        ("10", "P"),
        (None, "P"),
        ([[1.0], [0.5, 0.5]], "P"),
        (torch.ones(1, 1, dtype=torch.complex64), "P"),
    ],
)
def test_what_is_no_matrix_of_probabilities_is_refused(matrix, said):
    with pytest.raises(BadInput, match=said):
        Conditional.from_dense(matrix)
