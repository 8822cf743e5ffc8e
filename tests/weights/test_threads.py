"""Layers side by side: what is found does not depend on how many are measured at once."""

from dataclasses import replace

import pytest
import torch

from obverse.weights import audit


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_one_thread_and_two_find_the_same(threads):
    generator = torch.Generator().manual_seed(3)
    net = {f"h{at}": torch.randn(40, 48 + at, generator=generator) for at in range(4)}
    found = []
    for count in (1, 2):
        threads(count)
        again = torch.Generator().manual_seed(0)
        found.append([replace(layer, seconds=0.0) for layer in audit(net, samples=2, generator=again)])
        assert torch.get_num_threads() == count  # as it was before
    assert found[0] == found[1]
