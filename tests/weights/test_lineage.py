"""Two checkpoints of one lineage or of none: matchings of rows, and which layers may be asked."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import nn

from obverse.weights import difference, open_weights
from obverse.weights._difference.lineage import combined, hidden_layers, match_rows


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def names(net):
    return [one.name for one in hidden_layers(open_weights(net))]


def state(**shapes):
    return {name.replace("__", "."): torch.zeros(shape) + 1 for name, shape in shapes.items()}


def test_the_p_value_is_the_share_of_all_matchings_that_do_as_well():
    tuned, base = torch.randn(2, 8, 5, generator=generator(3), dtype=torch.float64)
    centred = [side - side.mean(0) for side in (tuned, base)]
    unit = [side / side.norm(dim=1, keepdim=True) for side in centred]
    cosines = (unit[0] @ unit[1].T).numpy()
    sums = [sum(cosines[at, to] for at, to in enumerate(order)) for order in permutations(range(8))]
    exact = np.mean(np.array(sums) >= np.trace(cosines) - 1e-12)
    found = match_rows(tuned, base, generator=generator(), draws=9999)
    assert found is not None
    rows, cosine, p = found
    assert rows == 8
    assert cosine == pytest.approx(np.trace(cosines) / 8)
    assert (
        abs(p - exact) < 5 * np.sqrt(exact * (1 - exact) / 9999) + 1e-4
    )  # five standard errors of the draws


def test_the_smallest_p_value_is_one_over_the_draws_and_one():
    base = torch.randn(40, 30, generator=generator())
    found = match_rows(
        base + 0.5 * torch.randn(40, 30, generator=generator(1)), base, generator=generator(2), draws=999
    )
    assert found is not None
    assert found[2] == 1 / 1000


def test_rows_that_are_all_alike_say_nothing():
    base = torch.ones(20, 30)
    assert match_rows(base, base, generator=generator()) is None


def test_a_combination_of_uniform_p_values_is_uniform():
    own = generator(5)
    chances = [
        [(1 + int(torch.randint(0, 1000, (), generator=own))) / 1000 for _ in range(3)] for _ in range(300)
    ]
    found = [combined(few, own, draws=999) for few in chances]
    assert kstest(found, "uniform").pvalue > 0.001
    assert combined([0.25], own) == 0.25
    assert combined([1e-4] * 3, own) <= 2e-4


def test_only_hidden_units_of_their_own_are_asked():
    chain = state(fc__0__weight=(32, 64), fc__2__weight=(16, 32), fc__4__weight=(10, 16))
    assert names(chain) == ["fc.0", "fc.2"]
    same_width = state(fc__0__weight=(32, 64), fc__2__weight=(32, 32), fc__4__weight=(10, 32))
    assert names(same_width) == ["fc.0"]  # the second may be tied to the first by a residual connection
    block = {
        "embed.weight": (100, 48),
        "block.0.attn.q_proj.weight": (48, 48),
        "block.0.attn.out_proj.weight": (48, 48),
        "block.0.mlp.gate_proj.weight": (96, 48),
        "block.0.mlp.up_proj.weight": (96, 48),
        "block.0.mlp.down_proj.weight": (48, 96),
        "block.1.mlp.up_proj.weight": (96, 48),
        "block.1.mlp.down_proj.weight": (48, 96),
        "lm_head.weight": (100, 48),
    }
    assert names({name: torch.ones(shape) for name, shape in block.items()}) == [
        "block.0.mlp.up_proj",
        "block.1.mlp.up_proj",
    ]


def test_a_net_without_hidden_units_cannot_tell():
    one = {"head.weight": torch.randn(10, 64, generator=generator())}
    found = difference({"head.weight": one["head.weight"] + 0.1}, one, generator=generator())
    assert found.lineage.p is None
    assert "cannot be told" in found.lineage.sentence


def trained(seed, x, y, steps=60):
    """A small net after a few steps of Adam on all the data; small enough to train in a few milliseconds."""
    own = generator(seed)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10))
    with torch.no_grad():
        for one in net.parameters():
            bound = one.shape[-1] ** -0.5
            one.copy_(torch.rand(one.shape, generator=own) * 2 * bound - bound)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        at = torch.randint(len(x), (128,), generator=own)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[at]), y[at]).backward()
        optimizer.step()
    return net


@pytest.fixture(scope="module")
def digits():
    from obverse.data import load

    data = load("digits")
    return data.train_x.flatten(1), data.train_y


def test_a_fine_tuned_net_is_of_one_lineage_and_an_independent_one_is_not(digits):
    base, other = trained(0, *digits), trained(1, *digits)
    tuned = trained(0, *digits, steps=120)
    related = difference(tuned, base, generator=generator()).lineage
    assert related.p == 1 / 10_000
    assert [one.name for one in related.layers] == ["0", "2"]
    unrelated = difference(other, base, generator=generator()).lineage
    assert unrelated.p is not None
    assert unrelated.p > 0.001
    assert "no sign of a common lineage" in unrelated.sentence


@pytest.mark.slow
def test_independent_trainings_give_uniform_p_values(digits):
    nets = [trained(seed, *digits, steps=30) for seed in range(400)]
    found = []
    for at in range(200):  # disjoint pairs: independent of each other
        one = difference(nets[2 * at], nets[2 * at + 1], generator=generator(at)).lineage
        assert one.p is not None
        found.append(one.p)
    assert kstest(found, "uniform").pvalue > 0.001
