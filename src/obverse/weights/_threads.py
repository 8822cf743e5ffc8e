"""Layers side by side: small ones on one thread each, large ones one after the other on all threads.

Threads that share a small matrix spend their time waiting for each other, and beside another busy process
many times that. Not for what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from threadpoolctl import threadpool_limits

from .._core import Progress
from ._readers.stored import Weight
from .results import LayerAudit

SMALL = 2**21  # entries
NARROW = (
    1024  # a shorter side below this keeps one thread busy, not two: twice as many entries are small there
)


def side_by_side(
    weights: Sequence[Weight], measure: Callable[[Weight], LayerAudit], progress: Progress | None = None
) -> tuple[LayerAudit, ...]:
    """The audits of all weights, in their order; `progress` hears of each layer before it is waited for."""
    threads = torch.get_num_threads()
    small = [at for at, weight in enumerate(weights) if _is_small(weight)]
    large = [at for at, weight in enumerate(weights) if not _is_small(weight)]
    found: dict[int, LayerAudit] = {}

    def tell(at: int) -> None:
        if progress:
            progress(len(found), len(weights), weights[at].name)

    if small:
        import scipy.linalg  # noqa: F401  -- its BLAS takes no limit that was set before it was loaded

        with threadpool_limits(1):
            pool = ThreadPoolExecutor(
                min(threads, len(small)), initializer=torch.set_num_threads, initargs=(1,)
            )
            try:
                waiting = [(at, pool.submit(measure, weights[at])) for at in small]
                for at, one in waiting:
                    tell(at)
                    found[at] = one.result()
            finally:
                pool.shutdown(cancel_futures=True)
                torch.set_num_threads(threads)
    for at in large:
        tell(at)
        found[at] = measure(weights[at])
    if progress:
        progress(len(weights), len(weights), "")
    return tuple(found[at] for at in range(len(weights)))


def _is_small(weight: Weight) -> bool:
    most = 2 * SMALL if min(weight.rows, weight.columns) < NARROW else SMALL
    return weight.rows * weight.columns <= most
