from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from .helpers import Crasher


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny nets gain nothing from threads, and bits are compared with processes that have one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def jobs() -> Iterator[Crasher]:
    crasher = Crasher()
    yield crasher
    crasher.close()
