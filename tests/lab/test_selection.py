"""The rules of experiments/selection against what is known of them, and the choices made by them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.selection import rules
from experiments.selection.net import KINDS, Reader, adapt, matrices, unfreeze
from experiments.selection.tuning import RANK, first_of_each_kind, mixed, ranks_of


def test_the_best_hard_threshold_is_the_published_one():
    """ω(y) of Gavish and Donoho 2014, Table IV: 1.5194 at 0.05, 2.1711 at 0.5, 2.8582 at 1."""
    for ratio, published in ((0.05, 1.5194), (0.5, 2.1711), (1.0, 2.8582)):
        best = np.sqrt(
            2 * (ratio + 1) + 8 * ratio / (ratio + 1 + np.sqrt(ratio**2 + 14 * ratio + 1))
        ) / np.sqrt(rules.median_of_noise(ratio))
        assert best == pytest.approx(published, abs=2e-4)  # four decimals are printed
        values = np.array([best * 1.001, best * 0.999, *[1.0] * 101])
        assert rules.gavish_donoho(values, ratio) == 1


def test_the_threshold_of_spectrum_calls_noise_signal():
    """A quarter of the values of square noise and all of them at 1:4, as a simulation apart has found."""
    generator = torch.Generator().manual_seed(0)
    for columns, low, high in ((256, 0.2, 0.28), (1024, 0.99, 1.0)):
        matrix = torch.randn(256, columns, generator=generator)
        found = rules.spectrum(rules.singular_values(matrix), 256 / columns) / 256
        assert low <= found <= high


def test_what_depends_on_the_values_alone():
    values = np.array([3.0, 2.0, 1.0, 0.5])
    total = 9 + 4 + 1 + 0.25
    assert rules.energy(values, 0.9) == 2  # 13 of 14.25
    assert rules.energy(values, 0.99) == 4
    assert rules.energy(values, 9 / total - 1e-9) == 1
    assert rules.stable_rank(values) == pytest.approx(total / 9)
    assert rules.condition(values) == 6


def test_large_and_small_matrices_have_the_same_values():
    matrix = torch.randn(rules.GRAM_FROM, rules.GRAM_FROM + 8, generator=torch.Generator().manual_seed(1))
    assert np.allclose(
        rules.singular_values(matrix), torch.linalg.svdvals(matrix.double()).numpy(), atol=1e-6
    )


def test_no_rule_of_spikes_depends_on_the_scale():
    matrix = torch.randn(128, 200, generator=torch.Generator().manual_seed(2))
    matrix += 20 * torch.outer(torch.ones(128) / 128**0.5, torch.ones(200) / 200**0.5) * 2
    one, other = (rules.counts(scale * matrix) for scale in (1.0, 1000.0))
    assert one == other
    assert one["ours"] == one["spikes + √TW"] == one["Gavish–Donoho"] == 1


def test_every_choice_trains_as_many_parameters():
    net, generator = Reader(), torch.Generator().manual_seed(3)
    for _ in range(3):
        numbers = {name: float(torch.rand((), generator=generator)) for name in matrices(net)}
        chosen = first_of_each_kind(numbers)
        assert [name.rpartition(".")[2] for name in chosen] == list(KINDS)
        trained = unfreeze(net, chosen)
        assert sum(one.numel() for one in trained) * 4 == sum(
            one.weight.numel() for one in matrices(net).values()
        )
        assert [one for one in net.parameters() if one.requires_grad] == [
            one for one in net.parameters() if any(one is other for other in trained)
        ]
        for found in (numbers, mixed(numbers, 0, 1), dict.fromkeys(numbers, 0.0)):
            ranks = ranks_of(found)
            for kinds in (("query", "key", "value", "output"), ("up",), ("down",)):
                own = [rank for name, rank in ranks.items() if name.rpartition(".")[2] in kinds]
                assert sum(own) == RANK * len(own)
                assert min(own) >= 0


def test_an_update_of_zero_changes_nothing_and_alone_is_trained():
    net, x = Reader().eval(), torch.arange(20).view(2, 10)
    before = net(x)
    parameters = adapt(net, {"blocks.0.query": 2, "blocks.1.up": 3, "blocks.2.down": 0}, seed=0)
    assert torch.equal(net(x), before)
    assert [tuple(one.shape) for one in parameters] == [(2, 128), (128, 2), (3, 128), (512, 3)]
    assert sum(one.requires_grad for one in net.parameters()) == 4
