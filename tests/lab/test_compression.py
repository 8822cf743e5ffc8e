"""The compression experiment compares what it says: ranks, budgets, pruning, tables from the files alone."""

from __future__ import annotations

import pytest
import torch

from experiments.compression import page
from experiments.compression.nets import PLANS, mlp, normed_mlp
from experiments.compression.ranks import (
    METHODS,
    energy_rank,
    fitted_knob,
    gavish_donoho_rank,
    layer_of,
    matrices,
    one_rank,
    pruned,
    signal_rank,
    weights_left,
)
from experiments.compression.run import RESULTS


@pytest.fixture(scope="module")
def layers():
    generator = torch.Generator().manual_seed(0)
    made = []
    for rows, columns in ((64, 96), (80, 64)):
        left, right = (torch.linalg.qr(torch.randn(n, 3, generator=generator)).Q for n in (rows, columns))
        strong = 2 * (rows**0.5 + columns**0.5) * left @ right.T
        made.append(layer_of(torch.randn(rows, columns, generator=generator) + strong))
    return made


def test_the_energy_rank_is_the_fewest_directions_that_hold_the_share(layers):
    for layer in layers:
        energy = torch.linalg.svdvals(layer.matrix.double()).square()
        rank = energy_rank(layer, 0.9)
        assert float(energy[:rank].sum()) >= 0.9 * float(energy.sum())
        assert float(energy[: rank - 1].sum()) < 0.9 * float(energy.sum())


def test_gavish_and_donoho_have_their_published_factor_for_square_matrices():
    """2.858 × the median: 0.02 is what their cubic is good to."""
    values = torch.linspace(1, 5, 65)
    layer = layer_of(torch.diag(values))
    median = float(values.median())
    bound = sum(float(value) > 2.858 * median for value in values)
    assert abs(gavish_donoho_rank(layer, 1.0) - bound) <= 1
    assert gavish_donoho_rank(layer, 0.0) == 65


def test_a_pure_signal_is_found_by_the_signals_rank(layers):
    assert [signal_rank(layer, 1.0) for layer in layers] == [layer.parts.rank for layer in layers]
    assert min(layer.parts.rank for layer in layers) >= 3
    assert one_rank(layers[0], 1e6) == 64


@pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: method.name)
def test_the_fitted_knob_uses_the_budget_and_no_more(layers, method):
    budget = 3000
    knob = fitted_knob(method, layers, budget)
    ranks, made = matrices(method, knob, layers)
    left = weights_left(ranks, layers)
    one_more = sum(sum(layer.shape) for layer in layers)
    assert budget - one_more <= left <= budget
    for rank, matrix in zip(ranks, made, strict=True):
        assert int(torch.linalg.matrix_rank(matrix, rtol=1e-4)) == rank


def test_pruning_keeps_the_largest_entries_of_all_layers_together(layers):
    made = pruned(layers, 500)
    assert sum(int((one != 0).sum()) for one in made) == 500
    smallest = min(float(one[one != 0].abs().min()) for one in made)
    gone = [layer.matrix[one == 0].abs().max() for layer, one in zip(layers, made, strict=True)]
    assert smallest >= float(max(gone))
    assert torch.equal(pruned(layers, 10**9)[0], layers[0].matrix)


def test_nets_take_their_inputs():
    assert mlp(64, 32)(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    assert normed_mlp(64, 32)(torch.rand(4, 1, 8, 8)).shape == (4, 10)
    cnn = next(plan for plan in PLANS if plan.name.startswith("CNN"))
    assert cnn.make()(torch.rand(2, 1, 28, 28)).shape == (2, 10)


def test_the_page_is_made_of_the_result_files_alone():
    found = page.results(PLANS, RESULTS)
    assert set(found) == {plan.name for plan in PLANS}
    text = page.text(found, "figures/compression.svg")
    docs = (RESULTS.parents[2] / "docs" / "ablation.md").read_text(encoding="utf-8")
    assert text in docs
