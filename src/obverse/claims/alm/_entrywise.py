"""What Theorems 3.1 and 3.2 are about, measured: the worst entry's error at the top of two or three layers.

Not for how it is compared with a rate: see two_layers and three_layers.
"""

from __future__ import annotations

from itertools import pairwise

import torch

from ..._core import BadInput
from .._claim import measurement
from ..results import Setting
from ._hidden import draw_hidden
from ._stack import Stack, check_stack, search_offsets, worst_entry

STEPS = (-1.0, -0.3, 0.3, 0.8, 1.3, 1.8, 2.5)  # offsets in units of the layer's own noise


def shape(setting: Setting) -> tuple[list[int], list[int]]:
    """Widths n0 … and sparsities k0 …; n0 = k0, as units of x that are never kept change nothing."""
    top = max(layer for layer in range(1, 4) if f"k{layer}" in setting)
    sparsities = [int(setting[f"k{layer}"]) for layer in range(top + 1)]
    widths = [sparsities[0], *(int(setting[f"n{layer}"]) for layer in range(1, top + 1))]
    check_stack(widths, sparsities)
    check_order(sparsities)
    return widths, sparsities


def check_order(sparsities: list[int]) -> None:
    """k_ℓ < … < k_0 < k_2², and for three layers √k_3·k_2 < k_0."""
    names = " < ".join(f"k{layer}" for layer in reversed(range(len(sparsities))))
    if any(below <= above for below, above in pairwise(sparsities)):
        _refuse(f"{names}: each layer sparser than the one below", sparsities)
    if sparsities[0] >= sparsities[2] ** 2:
        _refuse("k0 < k2²", sparsities)
    if len(sparsities) > 3 and sparsities[3] ** 0.5 * sparsities[2] >= sparsities[0]:
        _refuse("√k3·k2 < k0", sparsities)


def _refuse(condition: str, sparsities: list[int]) -> None:
    theorem = "Theorem 3.1" if len(sparsities) == 3 else "Theorem 3.2"
    got = ", ".join(f"k{layer} = {kept}" for layer, kept in enumerate(sparsities))
    raise BadInput(f"{condition} ({theorem})", got=got, do="change the sparsities")


def worst_errors(setting: Setting, generator: torch.Generator) -> list[tuple[float, float]]:
    """For each of `nets` nets: the worst entry's E|h̃_i − h_i|² and τ, at layer `layer` (by default the top).

    The expectation is over `draws` of h ~ D (uniform support, half-normal values, ‖h‖ = `scale`), of x, and
    with `drop` of what is dropped in every layer on the way up; offsets come from as many other draws. τ is,
    as printed, (1/k) Σ h_i, a mean over the entries kept, of which below the top half are 0.
    """
    widths, sparsities = shape(setting)
    layer = int(setting.get("layer", len(widths) - 1))
    drops = generator if setting.get("drop") else None

    def draw(stack: Stack) -> list[torch.Tensor]:
        tops = draw_hidden(int(setting["draws"]), widths[-1], sparsities[-1], "half-normal", generator)
        return stack.generate(setting.get("scale", 1) * tops, generator)[: layer + 1]

    found = []
    for _ in range(int(setting["nets"])):
        stack = Stack.draw(widths, sparsities, generator)
        offsets = search_offsets(stack, draw(stack), STEPS, drops)
        layers = draw(stack)
        truth = layers[layer]
        tau = float(truth.double().sum(1).mean()) / sparsities[layer]
        found.append((worst_entry(stack.infer(layers[0], offsets, drops), truth), tau))
    return found


@measurement("alm.entrywise.measure_relative")
def measure_relative(setting: Setting, generator: torch.Generator) -> list[float]:
    """max_i E|h̃_i − h_i|² / τ², one value a net."""
    return [error / tau**2 for error, tau in worst_errors(setting, generator)]


@measurement("alm.entrywise.measure_absolute")
def measure_absolute(setting: Setting, generator: torch.Generator) -> list[float]:
    """max_i E|h̃_i − h_i|², one value a net."""
    return [error for error, _ in worst_errors(setting, generator)]
