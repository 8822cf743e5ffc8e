"""Seeds: every number of the path matters, and the streams of a run never meet."""

from __future__ import annotations

import torch

from obverse._core.random import BATCHES, EVALUATION, INITIAL, SPLIT, STEPS, derive_generator, derive_seed


def test_the_streams_of_a_run_differ_in_every_part_of_the_path():
    seeds = [derive_seed(seed, stream) for seed in range(20) for stream in (INITIAL, EVALUATION, SPLIT)]
    seeds += [
        derive_seed(seed, stream, n) for seed in range(20) for stream in (BATCHES, STEPS) for n in range(50)
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_same_path_gives_the_same_numbers_forever():
    # Written down once: another value here would change every published result.
    assert derive_seed(0, INITIAL) == 7896617691693857887
    first, second = (torch.rand(5, generator=derive_generator(3, STEPS, 8)) for _ in range(2))
    assert torch.equal(first, second)
