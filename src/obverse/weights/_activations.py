"""What the layers of a net say on data, a few random rows of it each. Not for nets that are only weights."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from .._core import BadInput

_BATCH = 32
_INPUTS = 4  # inputs run for each row kept: two rows of a convolution then seldom come from one picture


@torch.no_grad()
def own_activations(
    net: nn.Module,
    data: Tensor,
    modules: Collection[str],
    *,
    samples: int = 64,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """h = r(output) of each named Linear or Conv, at most `samples` random rows × its outputs.

    A convolution is a linear map of patches: the channels at one position are one h. The leading dimensions
    of a Linear's output are rows as well. Runs a random part of `data` in evaluation mode and leaves the
    net as it was; modules that are not called are left out. Results are float32, on the CPU.
    """
    if len(data) == 0:
        raise BadInput("inputs to run the net on", got="an empty batch", do="pass some data")
    kept: dict[str, _Sample] = {name: _Sample(samples, generator) for name in modules}
    training = {module: module.training for module in net.modules()}
    first = next(net.parameters(), torch.empty(0))
    order = torch.randperm(len(data), generator=generator, device=generator.device)[: _INPUTS * samples]
    with ExitStack() as undo:
        for name, sample in kept.items():
            hook = _module(net, name).register_forward_hook(_keep(sample))
            undo.callback(hook.remove)
        for module, mode in training.items():
            undo.callback(setattr, module, "training", mode)
        net.eval()
        for part in order.to(data.device).split(_BATCH):
            x = data[part].to(first.device)
            _run(net, x.to(first.dtype) if x.is_floating_point() else x)
    return {name: sample.rows for name, sample in kept.items() if len(sample.rows)}


def _run(net: nn.Module, x: Tensor) -> None:
    try:
        net(x)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise BadInput(
            "data that the net takes",
            got=f"inputs of shape {tuple(x.shape[1:])} ({str(x.dtype).removeprefix('torch.')}), and "
            f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
            do="pass a batch as for net(data)",
        ) from error


class _Sample:
    """A random sample of rows that come in batches: those with the smallest random keys so far."""

    def __init__(self, size: int, generator: torch.Generator) -> None:
        self.size, self.generator = size, generator
        self.keys, self.rows = torch.empty(0), torch.empty(0)

    def offer(self, rows: Tensor) -> None:
        """`rows` has the units last and any dimensions before; only what is kept is copied."""
        count = rows.shape[:-1].numel()
        keys = torch.rand(count, generator=self.generator, device=self.generator.device).cpu()
        best = keys.argsort()[: self.size]
        places = torch.unravel_index(best.to(rows.device), rows.shape[:-1])
        chosen = rows[places].relu().float().cpu()
        keys = torch.cat((self.keys, keys[best]))
        order = keys.argsort()[: self.size]
        self.rows = torch.cat((self.rows.reshape(-1, rows.shape[-1]), chosen))[order]
        self.keys = keys[order]


def _module(net: nn.Module, name: str) -> nn.Module:
    try:
        return net.get_submodule(name)
    except AttributeError as error:
        raise BadInput("names of modules of the net", got=repr(name), do="see net.named_modules()") from error


def _keep(sample: _Sample) -> Callable[[Any, Any, Any], None]:
    def hook(module: Any, inputs: Any, output: Any) -> None:
        positions = module.weight.dim() - 2  # none for a Linear; behind the channels for a convolution
        sample.offer(output.movedim(-1 - positions, -1))

    return hook
