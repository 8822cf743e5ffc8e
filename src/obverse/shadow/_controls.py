"""What a shadow must beat to have meant anything: other second batches of the same size and norm."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from .._core import BadInput, Source, noise_like
from ._adjust import match_norm


def noisy(x: Tensor, std: float = 0.5, generator: Source = None) -> Tensor:
    """x plus Gaussian noise, rescaled to the norm of x."""
    return match_norm(x + noise_like(x, std, generator), x)


class Shuffled:
    """A copy of a net in which the entries of every weight matrix are permuted.

    The permutation is drawn once; `refresh` applies it to the net's current weights. Entry statistics
    stay, all structure goes: a shadow made from this copy shows what the trained structure adds.
    """

    def __init__(self, net: nn.Module, seed: int = 0) -> None:
        try:
            self.copy = deepcopy(net).requires_grad_(False)
        except RuntimeError as error:  # weights that a hook computes cannot be copied
            raise BadInput(
                "a net that can be copied",
                got=str(error).split(".")[0],
                do="use torch.nn.utils.parametrizations in place of the older weight_norm and spectral_norm",
            ) from error
        generator = torch.Generator().manual_seed(seed)
        self._pairs = [
            (copied, original, torch.randperm(original.numel(), generator=generator).to(original.device))
            for copied, original in zip(self.copy.parameters(), net.parameters(), strict=True)
            if original.dim() > 1
        ]
        self._net = net

    @torch.no_grad()
    def refresh(self) -> nn.Module:
        """The copy with the present weights permuted; biases, norms and their statistics as they are."""
        own = [*self._net.parameters(), *self._net.buffers()]
        for copied, original in zip([*self.copy.parameters(), *self.copy.buffers()], own, strict=True):
            if original.dim() <= 1 or not isinstance(original, nn.Parameter):
                copied.copy_(original)
        for copied, original, order in self._pairs:
            copied.copy_(original.detach().reshape(-1)[order].reshape(original.shape))
        return self.copy
