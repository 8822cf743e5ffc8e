"""One layer down and up: against the same computed densely in float64, and its masks against their law."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from obverse._core.errors import BadInput
from obverse.claims.alm import _stream as stream
from obverse.claims.alm._layer import fresh_weights, reverse_and_infer
from obverse.claims.alm._stream import Weights

H = torch.tensor([[0.6, 0.0, 0.8, 0.0], [0.0, 1.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "HELD", 2**10)
    monkeypatch.setattr(stream, "ALONE", 2**8)


def dense(weights: Weights) -> np.ndarray:
    return torch.cat([block for block, _ in weights.blocks()]).double().numpy()


@pytest.mark.parametrize("relu", [True, False])
def test_without_masks_it_is_two_products(small_blocks, relu):
    weights = Weights(1003, 4, seed=1)
    w = dense(weights)
    y = w @ H.numpy().T / len(w)
    expected = w.T @ (2 * np.maximum(y, 0) if relu else y)
    found = reverse_and_infer(weights, H, 1.0, relu=relu)
    assert found.dtype == torch.float64
    # float32 sums of 1003 terms, each about 1/1003: √1003 roundings of 2⁻²⁴ of a sum up to 1.
    assert np.abs(found.numpy() - expected.T).max() < 32 * 2**-24


def test_batches_longer_than_a_piece_give_the_same(small_blocks):
    """A batch is split at 4m = 16 rows."""
    weights, many = Weights(500, 4, seed=2), H.repeat(15, 1)
    found = reverse_and_infer(weights, many, 1.0)
    torch.testing.assert_close(found, reverse_and_infer(weights, H, 1.0).repeat(15, 1), rtol=1e-5, atol=1e-6)


def recovered_masks(weights: Weights, keep: float, *, rows: int = 3, **options: float) -> np.ndarray:
    """The masks themselves, where W is the identity: a linear layer's ĥ is then h ⊙ mask, up to its scale."""
    inputs = weights.inputs
    found = reverse_and_infer(weights, torch.ones(rows, inputs), keep, relu=False, **options)
    return found.numpy() * keep * inputs


class OneHot:
    """Rows of the identity, counted through: so that ĥ is x itself."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self, random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
        start = self.at
        self.at += rows
        return np.eye(columns, dtype=np.float32)[start : start + rows]


@pytest.fixture
def identity(threads_one):
    def make(seed: int) -> Weights:
        return Weights(512, 512, seed=seed, draw=OneHot())

    return make


@pytest.fixture
def threads_one():
    """Counting rows through needs them drawn in order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_masks_are_zero_or_one_with_the_right_share(identity):
    masks = recovered_masks(identity(3), 0.3, rows=200)
    assert set(np.round(np.unique(masks), 5)) == {0.0, 1.0}
    kept = int(masks.round().sum())
    # Binomial of 200·512 entries; a seed that fails by chance has p below 10⁻³.
    assert stats.binomtest(kept, masks.size, 0.3).pvalue > 1e-3


def test_masks_differ_between_rows_and_inputs_and_numbers(identity):
    first = recovered_masks(identity(3), 0.5, rows=64).round()
    other = recovered_masks(identity(3), 0.5, rows=64, masks=1).round()
    again = recovered_masks(identity(3), 0.5, rows=64).round()
    assert np.array_equal(first, again)
    for one, two in ((first[:-1], first[1:]), (first[:, :-1], first[:, 1:]), (first, other)):
        # Agreement of independent fair masks is binomial(½).
        assert stats.binomtest(int((one == two).sum()), one.size, 0.5).pvalue > 1e-3


def test_masks_do_not_change_w(small_blocks):
    """The mean over many masks is the layer without them, within 4 standard errors."""
    weights = Weights(200, 4, seed=4)
    found = torch.stack([reverse_and_infer(weights, H, 0.5, masks=number) for number in range(400)])
    error = found.std(0) / 400**0.5
    # 12 entries: 4.5 standard errors leave less than 10⁻⁴ to chance.
    assert ((found.mean(0) - reverse_and_infer(weights, H, 1.0)).abs() < 4.5 * error).all()


def test_drop_keeps_fewer_and_makes_up_for_it(identity):
    masks = recovered_masks(identity(5), 0.5, rows=200, drop=0.5)
    assert set(np.round(np.unique(masks), 4)) == {0.0, 2.0}
    assert stats.binomtest(int((masks > 1).sum()), masks.size, 0.25).pvalue > 1e-3


def test_fresh_weights_have_the_moments_of_a_plain_simulation():
    """Against NumPy's own normals: means and covariances within 5 standard errors of a difference."""
    h, inputs, keep, draws = H[0], 40, 0.5, 20_000
    found = fresh_weights(h, inputs, keep, draws, torch.Generator().manual_seed(0)).numpy()
    random = np.random.default_rng(1)
    w = random.standard_normal((draws, inputs, 4))
    x = 2 / (keep * inputs) * np.maximum(w @ h.numpy(), 0) * (random.random((draws, inputs)) < keep)
    expected = np.einsum("dn,dnm->dm", x, w)
    for power in (1, 2):
        one, two = found**power, expected**power
        error = np.sqrt((one.var(0) + two.var(0)) / draws)
        assert (np.abs(one.mean(0) - two.mean(0)) < 5 * error).all()


def test_fresh_weights_are_fresh_and_come_again():
    one = fresh_weights(H[0], 30, 1.0, 50, torch.Generator().manual_seed(0))
    assert torch.equal(one, fresh_weights(H[0], 30, 1.0, 50, torch.Generator().manual_seed(0)))
    assert len(torch.unique(one, dim=0)) == 50


def test_fresh_weights_over_several_chunks_are_independent():
    """At n·m = 2²¹ two W are held at a time, the second two drawn into the same memory."""
    h = torch.zeros(2**10)
    h[0] = 1
    found = fresh_weights(h, 2**11, 1.0, 4, torch.Generator().manual_seed(0))[:, 1:]
    # Noise off the support, 1023 entries: correlations are about normal with variance 1/1023.
    assert (np.abs(np.corrcoef(found.numpy()))[np.triu_indices(4, 1)] < 4 / 1023**0.5).all()


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.5])
def test_keep_out_of_range_is_refused(keep):
    with pytest.raises(BadInput, match="ρ in"):
        reverse_and_infer(Weights(10, 4, 0), H, keep)
    with pytest.raises(BadInput, match="ρ in"):
        fresh_weights(H[0], 10, keep, 2, torch.Generator())


def test_h_without_a_support_is_refused():
    with pytest.raises(BadInput, match="support"):
        reverse_and_infer(Weights(10, 4, 0), torch.zeros(1, 4), 0.5)
