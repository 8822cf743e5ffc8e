from __future__ import annotations

from collections.abc import Iterator

import pytest

from .helpers import Crasher


@pytest.fixture(scope="session")
def jobs() -> Iterator[Crasher]:
    crasher = Crasher()
    yield crasher
    crasher.close()
