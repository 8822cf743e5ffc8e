from __future__ import annotations

from collections.abc import Iterator

import pytest

from .helpers import SEVERAL, Crasher


@pytest.fixture(scope="session")
def jobs() -> Iterator[Crasher]:
    crasher = Crasher()
    yield crasher
    crasher.close()


@pytest.fixture(scope="session")
def several() -> Iterator[Crasher]:
    crasher = Crasher(SEVERAL)
    yield crasher
    crasher.close()
