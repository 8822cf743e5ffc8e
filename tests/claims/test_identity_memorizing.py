"""The printed steps of Theorem 3 against loops written out, and the measurements against known cases."""

from __future__ import annotations

from math import ceil, log, sqrt

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.identity import _memorizing as memorizing


def test_a_printed_block_is_the_formula_written_out():
    generator = torch.Generator().manual_seed(0)
    h, moved, onto = (torch.randn(rows, 4, generator=generator, dtype=torch.float64) for rows in (6, 3, 3))
    moved = 3 * moved / moved.norm(dim=1, keepdim=True)  # above the threshold, so that no unit divides by 0
    got = memorizing.printed_block(h, moved, onto, 0.1).numpy()
    for row, point in enumerate(h.numpy()):
        wanted = point.copy()
        for alpha, beta in zip(moved.numpy(), onto.numpy(), strict=True):
            answer = max(0.0, float(alpha @ point) - 0.8)
            wanted += answer * (beta - alpha) / (float(alpha @ alpha) - 0.8)
        assert np.allclose(got[row], wanted, atol=1e-13)  # a few roundings of numbers of size 10


def test_orthogonal_points_are_moved_by_the_printed_block():
    points = torch.eye(5, dtype=torch.float64)
    onto = points[[4, 3, 4]]
    got = memorizing.printed_block(points, points[:3], onto, 0.1)
    assert torch.allclose(got[:3], onto, atol=1e-15)
    assert torch.equal(got[3:], points[3:])


def test_the_neighbours_of_the_lemma_are_at_the_distance_it_names(monkeypatch):
    seen = []

    def listen(h, moved, onto, relaxed):
        seen.append((h, moved, relaxed))
        return h

    monkeypatch.setattr(memorizing, "printed_block", listen)
    setting = {"k": 4, "c": 3.0, "relaxed": 0.1, "trials": 2}
    memorizing.measure_block(setting, torch.Generator().manual_seed(0))
    for h, moved, relaxed in seen:
        assert torch.allclose(h.square().sum(1), torch.tensor(1 + relaxed).double(), atol=1e-12)
        distances = torch.cdist(moved, h[4:]).square()
        assert torch.allclose(distances.diagonal(), torch.tensor(0.3).double(), atol=1e-12)
        assert float((distances + torch.eye(4)).min()) > 0.3  # no other pair is closer
        assert float(torch.nn.functional.pdist(h).square().min()) > 0.3 - 1e-12


@pytest.mark.parametrize(("c", "share"), [(3.0, 0.5), (5.9, 0.5), (6.0, 1.0), (7.0, 1.0)])
def test_the_lemma_needs_six(c: float, share: float):
    """⟨α, γ⟩ = 1 + ρ' − cρ'/2 is above 1 − 2ρ' just for c < 6: then the k neighbours move too."""
    setting = {"k": 4, "c": c, "relaxed": 0.1, "trials": 3}
    assert memorizing.measure_block(setting, torch.Generator().manual_seed(0)) == [share] * 3


def test_lengths_are_those_of_the_entries():
    for entries, wanted in (("N(0, 1)", 20.0), ("N(0, 1/k)", 1.0)):
        setting = {"d": 5, "k": 20, "entries": entries, "trials": 2000}
        found = memorizing.measure_length(setting, torch.Generator().manual_seed(0))
        assert abs(float(found.mean()) - wanted) < 5 * wanted * sqrt(
            2 / 20 / 2000
        )  # χ²_20/20, standard errors


def test_the_bound_on_distances_is_a_quantile_of_chi_square():
    """By simulation at one pair, where the union bound is exact: a thousandth of draws is beyond."""
    setting = {"n": 2, "d": 3, "c": 8, "trials": 1}
    width = ceil(8 * log(2))
    draws = torch.randn(400_000, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    beyond = float((width / draws.square().sum(1) > memorizing.shrink_bound(setting)).double().mean())
    assert abs(beyond - 0.001) < 5 * sqrt(0.001 / 400_000)  # standard errors


def test_distances_shrink_by_what_a_loop_finds(monkeypatch):
    kept = []

    def remember(inputs, width, generator):
        kept.append(torch.randn(width, inputs, generator=generator, dtype=torch.float64))
        return kept[-1]

    monkeypatch.setattr(memorizing, "random_projection", remember)
    setting = {"n": 6, "d": 3, "c": 2, "trials": 1}
    (found,) = memorizing.measure_distances(setting, torch.Generator().manual_seed(3))
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    pairs = [(x[i] - x[j]) for i in range(6) for j in range(i)]
    assert found == pytest.approx(
        max(float(p.square().sum() / (kept[0] @ p).square().sum()) for p in pairs), rel=1e-12
    )


def test_parameters_are_counted_over_tensors():
    setting = {"n": 30, "d": 4, "r": 3, "trials": 1}
    (found,) = memorizing.measure_parameters(setting, torch.Generator().manual_seed(0))
    width = 4  # ⌈ln 30⌉, and 8·36 + 15 = 303 ≤ 3·(30 ln 30 + 9) = 333
    assert found == ceil(30 / width) * (2 * width**2 + width) + 3 * (width + 1)
    assert found <= memorizing.size_bound(setting)


def test_printed_steps_fail_and_built_ones_do_not():
    setting = {"n": 60, "d": 50, "r": 3, "trials": 3}
    printed, built = (
        memorizing.measure_expressed(setting | {"steps": steps}, torch.Generator().manual_seed(0))
        for steps in ("printed", "built")
    )
    assert 0.0 in printed
    assert built == [1.0] * 3


def test_the_printed_net_works_where_its_lemma_does():
    """Four orthonormal points behind an isometry: the steps are right, the sizes are not."""
    x = torch.eye(4, dtype=torch.float64)
    y = torch.tensor([0, 1, 0, 1])
    goals = torch.tensor([[0.6, 0.8, 0.0, 0.0], [0.0, 0.0, 0.6, 0.8]], dtype=torch.float64)
    moved = memorizing.printed_block(x, x, goals[y], 1 / 3)
    assert torch.allclose(moved, goals[y], atol=1e-15)


def test_a_block_that_moves_too_much_is_counted(monkeypatch):
    from obverse.nets._memory import ResidualMemory

    setting = {"n": 20, "d": 3, "r": 2, "trials": 1}
    assert memorizing.measure_built_block(setting, torch.Generator().manual_seed(0)) == [1.0]
    true_block = ResidualMemory.block
    monkeypatch.setattr(ResidualMemory, "block", lambda self, h, index: true_block(self, h, index) + 1e-3)
    assert memorizing.measure_built_block(setting, torch.Generator().manual_seed(0))[0] < 0.1


@pytest.mark.parametrize("wrong", [{"n": 1}, {"d": 0}, {"r": 1}, {"trials": 0}])
def test_settings_are_checked(wrong):
    with pytest.raises(BadInput, match=next(iter(wrong))):
        memorizing.check_points({"n": 5, "d": 2, "r": 2, "trials": 1} | wrong)


def test_the_lemma_checks_its_sizes():
    with pytest.raises(BadInput, match="ρ'"):
        memorizing.measure_block({"k": 2, "c": 3.0, "relaxed": 0.6, "trials": 1}, torch.Generator())
