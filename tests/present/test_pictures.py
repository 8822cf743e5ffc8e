"""Inputs as bytes for a canvas."""

from __future__ import annotations

import base64

import numpy as np
import pytest
import torch

from obverse.present.pictures import picture


def pixels(told):
    shape = told["height"], told["width"], told["channels"]
    return np.frombuffer(base64.b64decode(told["bytes"]), dtype=np.uint8).reshape(shape)


def test_grey_and_colour_come_back_pixel_by_pixel():
    for channels in (1, 3):
        x = torch.rand(channels, 4, 5)
        expected = np.round(x.permute(1, 2, 0).numpy() * 255)
        assert np.abs(pixels(picture(x)) - expected).max() <= 1  # rounding halves either way


def test_what_is_brighter_than_one_darkens_the_rest_and_negatives_are_black():
    found = pixels(picture(torch.tensor([[[-1.0, 1.0, 2.0]]])))
    assert found.flatten().tolist() == [0, 128, 255]


def test_a_flat_input_is_one_row_and_other_channels_are_averaged():
    assert pixels(picture(torch.ones(7))).shape == (1, 7, 1)
    assert pixels(picture(torch.stack([torch.zeros(2, 2), torch.ones(2, 2)]))).flatten().tolist() == [128] * 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_can_be_drawn(value):
    assert pixels(picture(torch.full((1, 2, 2), value))).shape == (2, 2, 1)
