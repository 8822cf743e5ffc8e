"""How many threads and cores a computation has. Not for starting processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch and BLAS with one thread: how sums are split, and so their last bits, depends on the number."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def usable_cores() -> int:
    """Those this process may use: affinity and the quota of a container count."""
    import joblib

    return int(joblib.cpu_count())
