"""What the tests of the runner share: the tiny claims, and sweeps without their times."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from obverse.claims import load_module
from obverse.claims._registry import PREFIX, forget_users

TINY = Path(__file__).with_name("tiny_claims.py")


@contextmanager
def loaded(path: Path) -> Iterator:
    """A user's file, and none of its claims afterwards: other tests look at all there are."""
    load_module(path)
    try:
        yield sys.modules[PREFIX + path.stem]
    finally:
        forget_users()
        sys.modules.pop(PREFIX + path.stem)
        sys.path[:] = [folder for folder in sys.path if folder != str(path.parent)]


def timeless(value):
    """What must not depend on how a sweep was run: everything but the times."""
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name != "seconds"}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def plain(sweep):
    return timeless(sweep.to_dict())


def wait_for(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
