"""What the tests of shadows share."""

import pytest

from obverse.shadow._reversal import _RULES


@pytest.fixture
def rules():
    """The registry of rules as it was, after the test."""
    before = dict(_RULES)
    yield
    _RULES.clear()
    _RULES.update(before)
