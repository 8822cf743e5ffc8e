"""Scales of pixels: bytes and shares are told apart, collapse and noise are not taken for another scale."""

from __future__ import annotations

import pytest
import torch

from obverse.diversity._scales import differ, scale_notes

APART = [
    ((0, 255), (0, 1)),
    ((-1, 1), (0, 1)),
    ((0, 1), (0, 255)),
    ((0.002, 0.999), (0, 255)),
    ((0, 1), (-1, 1)),
    ((-128, 127), (0, 255)),
    ((0, 4), (0, 1)),
]
ALIKE = [
    ((0, 1), (0, 1)),
    ((-0.2, 1.3), (0, 1)),  # a generator without a sigmoid
    ((0.1, 0.2), (0, 1)),  # collapsed
    ((0.5, 0.5), (0, 1)),
    ((0, 0), (0, 255)),
    ((-0.3, 0.4), (-1, 1)),
    ((0, 1), (0, 1.4)),  # real data with a few brighter ones
    ((-4.1, 4.4), (-3, 3.2)),  # Gaussian numbers, more of them
]


@pytest.mark.parametrize(("own", "other"), APART)
def test_two_scales(own, other):
    assert differ(own, other)


@pytest.mark.parametrize(("own", "other"), ALIKE)
def test_one_scale(own, other):
    assert not differ(own, other)


def test_the_note_names_what_is_apart():
    unit = torch.linspace(0, 1, 30).reshape(10, 3)
    assert scale_notes(unit, {"train": unit, "real": None}) == ()
    (note,) = scale_notes(2 * unit - 1, {"train": unit, "real": None})
    assert note.startswith(
        "The values of the samples run from −1 to 1, those of the train data from 0 to 1. "
    )
    (note,) = scale_notes(unit, {"train": 255 * unit, "real": unit})
    assert "train data from 0 to 255" in note
    assert "real data" not in note
    (note,) = scale_notes(unit * 1000, {"train": unit, "real": unit})
    assert "train data" in note
    assert "real data" in note
    assert len(note) < 400, "whole on the page"
