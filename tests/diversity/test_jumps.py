"""Jumps on paths between seeds: their sizes, against step functions whose jumps are known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from obverse.diversity._jumps import PIECES, WITHIN, largest_change, narrowed

START, END = torch.zeros(1, 1), torch.ones(1, 1)  # so that a seed is its place on the path


def change(look, low: float, length: float) -> float:
    return float(
        narrowed(look, START, END, torch.tensor([low], dtype=torch.float64), length, "linear").item()
    )


@pytest.mark.parametrize("place", [0.0001, 0.2718, 0.5, 0.75, 0.9999])
def test_a_step_of_any_place_keeps_its_size(place):
    def step(z: Tensor) -> Tensor:
        return z.double() + 3 * (z >= place)

    # what is left beside it is the slope of 1 within 2⁻¹⁵, and float32 places are known to 6e-8
    assert float(largest_change(step, START, END, "linear")) == pytest.approx(3, abs=2 * WITHIN)
    low = max(0.0, place - 0.01)
    assert change(step, low, 0.02) == pytest.approx(3, abs=2 * WITHIN)
    assert change(step, 0.3, 0.1) == pytest.approx(0.1 / 2**12, rel=0.01), "where there is none"


def test_the_largest_of_two_is_found():
    def stairs(z: Tensor) -> Tensor:
        return (z >= 0.2).double() + 2 * (z >= 0.2001) + 5 * (z >= 0.7)

    assert float(largest_change(stairs, START, END, "linear")) == 5
    # two in one piece: halving keeps the larger change, which is the larger jump once they are apart
    assert change(stairs, 0.19, 0.02) == 2


def test_a_smooth_path_keeps_its_share_of_the_change():
    look = lambda z: (z.double() * 3).sin()  # noqa: E731
    # at most the largest slope, 3, times the length; it is found in the first piece, where it is
    assert float(largest_change(look, START, END, "linear")) == pytest.approx(3 * WITHIN, rel=0.01)


def test_every_path_has_its_own_piece():
    start, end = torch.zeros(PIECES, 2), torch.ones(PIECES, 2)
    places = (torch.arange(PIECES) + 0.3) / PIECES
    end[:, 1] = start[:, 1] = places

    def step(z: Tensor) -> Tensor:
        return (z[:, :1] >= z[:, 1:]).double() * (1 + z[:, 1:])

    found = largest_change(step, start, end, "linear")
    assert found.tolist() == pytest.approx((1 + places).tolist(), abs=1e-6)  # float32 seeds
