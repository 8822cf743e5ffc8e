"""The audit of a net: every layer measured against random numbers of its shape, and judged."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import torch
from torch import Tensor, nn

from .._core import BadInput, Interrupted, ObverseError, Progress, counted, one_thread, or_global, versions
from ..shadow import check_keep
from ._activations import own_activations
from ._layer import audit_layer
from ._origin import origin_of
from ._readers.address import is_address
from ._readers.open import WeightSource, open_weights, settled
from ._readers.stored import Weight
from ._resume import header, resumable
from ._settings import Settings
from ._threads import side_by_side
from ._verdict import KEEP, SAMPLES, Thresholds
from .results import Audit, LayerAudit, with_family

QUICK_SAMPLES = 8  # draws of h of a first look


class AuditInterrupted(Interrupted):
    """Stopped by the user (Ctrl-C), between or within layers."""

    def __init__(self, done: int, total: int, record: Path) -> None:
        ObverseError.__init__(
            self,
            f"stopped after {done} of {counted(total, 'layer')}; saved in {record}: the same call or "
            "command goes on from there",
        )


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
    jobs: int | None = None,
    cluster: str | None = None,
    record: Path | str | None = None,
    quick: bool = False,
    generator: torch.Generator | None = None,
    progress: Progress | None = None,
) -> Audit:
    """What in each layer of this net is signal, what is random, and how much of each?

        audit = obverse.audit("model.safetensors")
        print(audit)  # one sentence per layer
        least_random = min(layer.random_share.value for layer in audit.layers if layer.random_share)

    Without `jobs`, small layers are measured side by side on one thread each, large ones one after the other
    on all threads of this process. With `jobs` the numbers are the same to the bit for any number of them and
    for the workers of a cluster; without `jobs` they are those too, up to rounding. Processes open the file
    themselves; they cannot have a net that is in memory.

    Args:
        net: a module, a state dict, the path of a file or folder of weights, or what `open_weights` returns.
        model: its name in the result; by default the class of a module or the name of the file.
        data: a batch of inputs, for modules only: recovery is measured on the layers' own activations too.
        thresholds: from where on a number counts; see `Thresholds`.
        keep: the share of entries kept where recovery is measured, in (0, 1].
        samples: draws of a sparse h for each sparsity.
        exact: True computes all singular values of every layer, False the largest ones and the density of the
            rest; None decides by the size.
        jobs: so many processes measure a layer each, on one thread.
        cluster: the address of a Dask scheduler, whose workers measure a layer each.
        record: a file that each layer is appended to as it is finished. An audit that was interrupted is
            resumed from it: the same call measures only what is not there, and gives the numbers of a call
            that nothing interrupted. The file stays; one of another audit is refused.
        quick: a first look: 8 draws of h at most, and the largest singular values only unless `exact=True`.
        generator: one number is drawn from it (None: torch's global one); with its name that is the seed of
            each layer, whatever other layers there are.
        progress: `progress(done, total, name)` is called at the start, where `done` are the layers of the
            record, and when a layer is finished.

    Returns:
        Audit: its `layers`, in the order of the net, have verdict, shares and numbers; `summary` counts them.
    """
    thresholds = thresholds or Thresholds()
    if quick:
        samples, exact = min(samples, QUICK_SAMPLES), bool(exact)
    _check(keep, samples, jobs, cluster)
    began = time.perf_counter()
    if isinstance(net, str | Path) and is_address(net):
        net = settled(net)
    weights = open_weights(net)
    seed = int(torch.randint(2**31, (1,), generator=or_global(generator)))
    _check_sent(weights, data, jobs, cluster)
    settings = {"seed": seed, "keep": keep, "samples": samples, "exact": exact, "data": data is not None}
    how = Settings(seed, thresholds, keep, samples, exact)
    limits = {name: getattr(thresholds, name) for name in thresholds.__dataclass_fields__}
    path = None if record is None else Path(record)
    head = None if path is None else header(weights, origin_of(weights, data), settings, limits, versions())
    with resumable(path, head, weights) as kept:
        left = {at: weight for at, weight in enumerate(weights) if at not in kept.done}
        _report(progress, weights, kept.done)
        try:
            own = {} if not left else _own_activations(net, data, weights, samples, seed)
            with closing(_measured(left, how, own, jobs, cluster)) as layers:
                for at, layer in layers:
                    kept.add(at, layer, kept.elapsed + time.perf_counter() - began)
                    _report(progress, weights, kept.done)
        except KeyboardInterrupt:
            if path is None:
                raise
            raise AuditInterrupted(len(kept.done), len(weights), path) from None
    return Audit(
        model=model or _name(net),
        layers=with_family([kept.done[at] for at in range(len(weights))]),
        thresholds=limits,
        settings=settings,
        versions=versions(),
        seconds=kept.elapsed + time.perf_counter() - began,
    )


def _measured(
    left: Mapping[int, Weight], how: Settings, own: dict[str, Tensor], jobs: int | None, cluster: str | None
) -> Generator[tuple[int, LayerAudit], None, None]:
    """The audits of these layers, each with its number, as they are finished."""
    if not left:
        return
    if cluster is not None or (jobs or 1) > 1:
        from ._workers import apart

        yield from apart(left, how, jobs or 1, cluster)
        return

    def measure(weight: Weight) -> LayerAudit:
        return audit_layer(weight, how, own=_of(weight, own))

    if jobs is None:
        yield from side_by_side(left, measure)
        return
    import scipy.linalg  # noqa: F401  -- its BLAS takes no limit that was set before it was loaded

    with one_thread():
        for at, weight in left.items():
            yield at, measure(weight)


def _report(progress: Progress | None, weights: Sequence[Weight], done: Mapping[int, LayerAudit]) -> None:
    """How many layers are done, and the name of the first that is not."""
    if progress:
        at = next((at for at in range(len(weights)) if at not in done), None)
        progress(len(done), len(weights), "" if at is None else weights[at].name)


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


def _check_sent(
    weights: Sequence[Weight], data: Tensor | None, jobs: int | None, cluster: str | None
) -> None:
    """Whether other processes can have these weights."""
    if (cluster is None and (jobs or 1) == 1) or (data is None and all(one.source for one in weights)):
        return
    raise BadInput(
        "the path of a file or folder of weights, for processes to open it",
        got="data to run through a net" if data is not None else "weights in memory",
        do="save them as .safetensors, or leave out " + ("jobs" if cluster is None else "the cluster"),
    )


def _check(keep: float, samples: int, jobs: int | None, cluster: str | None) -> None:
    check_keep(keep)
    if jobs is not None and (jobs < 1 or cluster is not None):
        raise BadInput(
            "jobs ≥ 1, or a cluster in their place",
            got=jobs if cluster is None else "both",
            do="use 1 for this process alone" if cluster is None else "leave one out",
        )
    if samples < 2:
        raise BadInput("at least 2 samples", got=samples, do="32 is the default")
