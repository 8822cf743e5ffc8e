"""The eigenvalue at strict saddles, by hand in one dimension and by finite differences."""

from __future__ import annotations

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.identity import _saddles as saddles


def test_one_dimension_by_hand():
    """f = σ(a₂a₁ − R)² at 0 has the Hessian −2σR·[[0, 1], [1, 0]]: eigenvalues ∓2σR."""
    setting = {"d": 1, "missing": 1, "size": 0.7, "sigma": 3.0, "trials": 2}
    # one eigenvalue of Σ: linspace(0.3, 1, 1) is its first entry
    got = saddles.measure_curvature(setting, torch.Generator().manual_seed(0))
    assert got == pytest.approx([2 * 0.7 * 0.9] * 2, rel=1e-12)  # rounding


def test_the_curvature_is_that_of_the_risk_itself():
    """Along the steepest direction, by a second difference of the risk written out."""
    generator = torch.Generator().manual_seed(1)
    d, size = 3, 2.0
    turn = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    variances = torch.tensor([0.3, 0.65, 1.0], dtype=torch.float64)
    target = size * turn
    kept = torch.diag(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))

    def risk(a1, a2):
        return float((((a2 @ a1) - target) * variances.sqrt()).square().sum())

    unit = torch.zeros(d, d, dtype=torch.float64)
    unit[2, 2] = 0.5**0.5  # the direction that is missing, half of it in each layer
    step = 1e-4
    changed = [risk(kept + s * unit, target @ kept + s * turn @ unit) for s in (-step, 0.0, step)]
    second = (changed[0] - 2 * changed[1] + changed[2]) / step**2
    assert second == pytest.approx(-2 * size * 1.0, rel=1e-5)  # a difference of 1e-8 of numbers of size 4


def test_settings_are_checked():
    with pytest.raises(BadInput, match="above 0"):
        saddles.check_saddle({"d": 2, "size": 0.0, "sigma": 1.0})
