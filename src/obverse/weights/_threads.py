"""Layers side by side: small ones on one thread each, large ones one after the other on all threads.

Threads that share a small matrix spend their time waiting for each other, and beside another busy process
many times that. Not for what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from threadpoolctl import threadpool_limits

from ._readers.stored import Weight
from .results import LayerAudit

SMALL = 2**21  # entries
NARROW = (
    1024  # a shorter side below this keeps one thread busy, not two: twice as many entries are small there
)


def side_by_side(
    weights: Mapping[int, Weight], measure: Callable[[Weight], LayerAudit]
) -> Generator[tuple[int, LayerAudit], None, None]:
    """The audits of all weights, each with its number, as they are finished."""
    threads = torch.get_num_threads()
    small = {at: weight for at, weight in weights.items() if _is_small(weight)}
    if small:
        import scipy.linalg  # noqa: F401  -- its BLAS takes no limit that was set before it was loaded

        with threadpool_limits(1):
            pool = ThreadPoolExecutor(
                min(threads, len(small)), initializer=torch.set_num_threads, initargs=(1,)
            )
            try:
                waiting = {pool.submit(measure, weight): at for at, weight in small.items()}
                for one in as_completed(waiting):
                    yield waiting[one], one.result()
            finally:
                pool.shutdown(cancel_futures=True)
                torch.set_num_threads(threads)
    for at, weight in weights.items():
        if at not in small:
            yield at, measure(weight)


def _is_small(weight: Weight) -> bool:
    most = 2 * SMALL if min(weight.rows, weight.columns) < NARROW else SMALL
    return weight.rows * weight.columns <= most
