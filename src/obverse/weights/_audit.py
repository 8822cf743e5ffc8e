"""The audit of a net: every layer measured against random numbers of its shape, and judged."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from .._core import BadInput, Progress, or_global, versions
from ..shadow import check_keep
from ._activations import own_activations
from ._layer import audit_layer
from ._readers.address import is_address
from ._readers.open import WeightSource, open_weights, settled
from ._readers.stored import Weight
from ._threads import side_by_side
from ._verdict import KEEP, SAMPLES, Thresholds
from .results import Audit, LayerAudit, with_family


@torch.no_grad()
def audit(
    net: WeightSource,
    *,
    model: str = "",
    data: Tensor | None = None,
    thresholds: Thresholds | None = None,
    keep: float = KEEP,
    samples: int = SAMPLES,
    exact: bool | None = None,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Audit:
    """What in each layer of this net is signal, what is random, and how much of each?

    `net` is a module, a state dict, the path of a file or folder of weights, or what `open_weights` returns.
    `model` names it in the result; without it that is the class of a module or the name of the
    file. With `data` (a batch of inputs, modules only) recovery is measured on the layers' own activations
    too. `exact=True` computes all singular values of every layer, False the largest ones and the density of
    the rest; None decides by the size.
    Small layers are measured side by side, on one thread each. One number is drawn from `generator` (None:
    torch's global one); with its name that is the seed of each layer, whatever other layers there are.
    `progress(done, total, name)` hears of the progress.
    """
    thresholds = thresholds or Thresholds()
    _check(keep, samples)
    began = time.perf_counter()
    if isinstance(net, str | Path) and is_address(net):
        net = settled(net)
    weights = open_weights(net)
    seed = int(torch.randint(2**31, (1,), generator=or_global(generator)))
    own = _own_activations(net, data, weights, samples, seed)

    def measure(weight: Weight) -> LayerAudit:
        return audit_layer(
            weight,
            thresholds,
            own=_of(weight, own),
            keep=keep,
            samples=samples,
            exact=exact,
            generator=torch.Generator().manual_seed(zlib.crc32(f"{seed}/{weight.name}".encode())),
        )

    layers = with_family(side_by_side(weights, measure, progress))
    return Audit(
        model=model or _name(net),
        layers=layers,
        thresholds={name: getattr(thresholds, name) for name in thresholds.__dataclass_fields__},
        settings={"seed": seed, "keep": keep, "samples": samples, "exact": exact, "data": data is not None},
        versions=versions(),
        seconds=time.perf_counter() - began,
    )


def _name(net: WeightSource) -> str:
    if isinstance(net, nn.Module):
        return type(net).__name__
    if is_address(net):
        return str(net)
    return Path(net).name if isinstance(net, Path | str) else "weights"


def _of(weight: Weight, own: dict[str, Tensor]) -> Tensor | None:
    found = None if weight.module is None else own.get(weight.module)
    return None if found is None else found[:, weight.first_output : weight.first_output + weight.rows]


def _own_activations(
    net: object, data: Tensor | None, weights: Sequence[Weight], samples: int, seed: int
) -> dict[str, Tensor]:
    if data is None:
        return {}
    if not isinstance(net, nn.Module):
        raise BadInput(
            "an nn.Module to run the data through", got="weights alone", do="pass the net, or leave data out"
        )
    modules = [weight.module for weight in weights if weight.module is not None]
    generator = torch.Generator().manual_seed(seed)
    return own_activations(net, data, modules, samples=samples, generator=generator)


def _check(keep: float, samples: int) -> None:
    check_keep(keep)
    if samples < 2:
        raise BadInput("at least 2 samples", got=samples, do="32 is the default")
