"""Simulation of several layers, down and up again, with explicit random W. Knows no closed form.

Layer 0 is x, layer ℓ the top; each h^(j−1) = s_k(r(αWh^(j))) on the way down (eq. 14), each
h̃^(j) = r(Wᵀh̃^(j−1) − θ_j) on the way up, with one constant offset a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ..._core import BadInput
from ._conditions import check_hidden
from ._offset_search import one_offset
from ._stream import draw_seed, normal


def check_stack(widths: Sequence[int], sparsities: Sequence[int]) -> None:
    """n_0 … n_ℓ units of which k_0 … k_ℓ are kept: 1 ≤ k_j ≤ n_j in every layer."""
    if len(widths) < 2 or len(widths) != len(sparsities):
        raise BadInput(
            "a width n_j and a sparsity k_j for x and for each of at least one layer (eq. 14)",
            got=f"{len(widths)} widths, {len(sparsities)} sparsities",
            do="give one of each a layer",
        )
    for layer, (width, kept) in enumerate(zip(widths, sparsities, strict=True)):
        if not 1 <= kept <= width:
            raise BadInput(
                f"1 ≤ k_{layer} ≤ n_{layer}: layer {layer} keeps k of its n units (eq. 14)",
                got=f"k_{layer} = {kept}, n_{layer} = {width}",
                do="change one of them",
            )


@dataclass(frozen=True)
class Stack:
    """A net of random weights: W_j is n_j × n_(j+1), between layer j and the layer above it (eq. 15)."""

    weights: tuple[Tensor, ...]
    sparsities: tuple[int, ...]  # k_0 … k_ℓ; half of these come out of the ReLU as zeros, below the top

    @staticmethod
    def draw(widths: Sequence[int], sparsities: Sequence[int], generator: torch.Generator) -> Stack:
        check_stack(widths, sparsities)
        random = np.random.Generator(np.random.Philox(draw_seed(generator)))
        return Stack(
            tuple(torch.from_numpy(normal(random, n, m)) for n, m in pairwise(widths)), tuple(sparsities)
        )

    @torch.no_grad()
    def generate(self, top: Tensor, generator: torch.Generator) -> list[Tensor]:
        """h^(0) … h^(ℓ) for the tops given, batch × n_ℓ: the shadow distribution (eq. 14)."""
        check_hidden(top)
        layers = [top.float()]
        for weight, kept in zip(reversed(self.weights), reversed(self.sparsities[:-1]), strict=True):
            below = (layers[0] @ weight.T).mul_(2 / kept).relu_()
            if kept < len(weight):
                below.mul_(torch.rand(below.shape, generator=generator) < kept / len(weight))
            layers.insert(0, below)
        return layers

    @torch.no_grad()
    def estimate(self, layer: int, below: Tensor, drops: torch.Generator | None = None) -> Tensor:
        """ĥ^(j) = Wᵀh̃^(j−1), before offset and ReLU.

        With `drops` half of what is below is dropped, and made up for by a factor 2 (Theorem C.1).
        """
        if drops is not None:
            below = 2 * below * (torch.rand(below.shape, generator=drops) < 0.5)
        return below @ self.weights[layer - 1]

    @torch.no_grad()
    def infer(self, x: Tensor, offsets: Sequence[float], drops: torch.Generator | None = None) -> Tensor:
        """h̃ of the layer that the last of the offsets θ_1, θ_2, … belongs to."""
        found = x
        for layer, offset in enumerate(offsets, start=1):
            found = (self.estimate(layer, found, drops) - offset).relu_()
        return found


def aligned_offset(estimate: Tensor, target: Tensor) -> float:
    """The θ, of either sign, at which r(ĥ − θ) points most nearly along the target: largest cosine.

    Out of the entries of ĥ, which lie densely where it matters.
    """
    cut, order = estimate.double().flatten().sort(descending=True)
    wanted = target.double().flatten()[order]
    size = cut.square().cumsum(0)
    product = (cut * wanted).cumsum(0) - cut * wanted.cumsum(0)
    energy = size - 2 * cut * cut.cumsum(0) + cut.square() * torch.arange(1, len(cut) + 1)
    sound = energy > 1e-9 * size  # otherwise the difference has lost its digits; hardly an entry is above θ
    cosine = torch.where(sound, product.clamp(min=0).square() / energy.clamp(min=1e-300), 0)
    return float(cut[cosine.argmax()])


@torch.no_grad()
def calibrate(stack: Stack, layers: Sequence[Tensor], *, direction: bool = False) -> list[float]:
    """Offsets θ_1 … θ_ℓ, found from the bottom up on draws of h^(0) … h^(ℓ).

    By default each makes the squared error of its layer least. With `direction` each layer below the top is
    aligned with Wh of the layer above, of which it is to tell, and the top with h.
    """
    offsets: list[float] = []
    found = layers[0]
    for layer, truth in enumerate(layers[1:], start=1):
        estimate = stack.estimate(layer, found)
        if not direction:
            offset = one_offset(estimate, truth)
        elif layer < len(stack.weights):
            offset = aligned_offset(estimate, layers[layer + 1] @ stack.weights[layer].T)
        else:
            offset = aligned_offset(estimate, truth)
        offsets.append(offset)
        found = (estimate - offset).relu_()
    return offsets


def misalignment(found: Tensor, truth: Tensor) -> float:
    """1 − cos² of the angle between all that was found and the truth: the squared error after one factor."""
    found, truth = found.double(), truth.double()
    energy = float(found.square().sum() * truth.square().sum())
    return 1 - float((found * truth).sum()) ** 2 / energy if energy > 0 else 1.0


def worst_entry(found: Tensor, truth: Tensor) -> float:
    """max over i of the mean over draws of |h̃_i − h_i|²: the left side of eq. 16 for all i."""
    return float((found - truth).square().mean(0).max())


@torch.no_grad()
def search_offsets(
    stack: Stack,
    layers: Sequence[Tensor],
    steps: Sequence[float],
    drops: torch.Generator | None = None,
) -> tuple[float, ...]:
    """Offsets of all layers together with the least `worst_entry` at the top, on a grid.

    Each layer's grid is `steps` in units of the error of its ĥ. "There exist constant offsets" (Theorem 3.1)
    asks for these, and not for the best of each layer by itself.
    """
    top = len(layers) - 1
    grid = torch.tensor(steps)

    def from_layer(layer: int, below: Tensor) -> tuple[float, tuple[float, ...]]:
        estimate = stack.estimate(layer, below, drops)
        cuts = grid * (estimate - layers[layer]).square().mean().sqrt()
        if layer == top:
            errors = [worst_entry((estimate - cut).relu_(), layers[top]) for cut in cuts]
            best = min(range(len(errors)), key=errors.__getitem__)
            return errors[best], (float(cuts[best]),)
        found = []
        for cut in cuts:
            error, above = from_layer(layer + 1, (estimate - cut).relu_())
            found.append((error, (float(cut), *above)))
        return min(found)

    return from_layer(1, layers[0])[1]
