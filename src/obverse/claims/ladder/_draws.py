"""What the claims about the matrix model draw, and the settings they accept. Nothing is measured here."""

from __future__ import annotations

import torch
from torch import Tensor

from ..._core import BadInput
from ..results import Setting

PAPER = "A theoretical framework for deep locally connected ReLU network, submission of 2019"


def check_counts(setting: Setting) -> None:
    """Whole numbers in a setting are counts, and at least 1."""
    for name, value in setting.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise BadInput(f"{name} ≥ 1", got=value, do=f"raise {name}")


def check_choice(setting: Setting, name: str, *choices: str) -> None:
    if setting[name] not in choices:
        raise BadInput(f"{name} out of {', '.join(choices)}", got=repr(setting[name]), do="take one of these")


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def chances(*shape: int, generator: torch.Generator) -> Tensor:
    """Probabilities along the last dimension, uniform over all that sum to one."""
    drawn = -torch.log1p(-torch.rand(shape, generator=generator, dtype=torch.float64))
    return drawn / drawn.sum(-1, keepdim=True)


def one(setting: Setting) -> float:
    """The prediction of all that is said to hold without exception: a share of 1."""
    check_counts(setting)
    return 1.0
