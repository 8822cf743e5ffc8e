"""Perceptual path length: closed forms of a linear generator and of a wave, standard errors, jumps."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from obverse._core.errors import BadInput
from obverse.diversity._smoothness import PathLength, path_length


def matrix_of(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(9), dtype=torch.float32)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_linear_generator_on_straight_paths_has_a_closed_form():
    """z₂ − z₁ ~ N(0, 2I), so the length is 2‖A‖_F² with variance 8‖AᵀA‖_F² a pair; the ratio is 1."""
    matrix = matrix_of(30, 6)
    pairs = 4000
    found = path_length(
        lambda z: z @ matrix.T + 1, 6, pairs=pairs, kind="linear", generator=generator(), batch_size=900
    )
    mean = 2 * float(matrix.square().sum())
    spread = math.sqrt(8 * float((matrix.T @ matrix).square().sum()) / pairs)
    assert found.length == pytest.approx(mean, abs=4 * spread)
    # the standard deviation of 4,000 squares is known to about 3 % (their kurtosis is below 15)
    assert found.error == pytest.approx(spread, rel=0.1)
    # float32 pictures of size 10 differ by 1e-3·10: 1e-6·10/1e-2 each, averaging out over 30 pixels
    assert found.ratio == pytest.approx(1, abs=1e-3)
    assert found.ratio_error < 1e-3
    assert (found.pairs, found.kind) == (pairs, "linear")


def test_the_same_pairs_in_plain_loops():
    matrix = matrix_of(5, 3).double().numpy()

    def decode(z: Tensor) -> Tensor:
        return (z.double() @ torch.from_numpy(matrix).T).sin()

    found = path_length(decode, 3, pairs=7, step=0.01, kind="linear", generator=generator(4), batch_size=7)
    again = generator(4)
    torch.randn(2, 3, generator=again)
    ends = torch.randn(2, 7, 3, generator=again).numpy()
    shares = torch.rand(7, generator=again).numpy() * 0.99
    squares, distances = [], []
    for a, b, t in zip(*ends, shares, strict=True):
        here, there = ((1 - s) * a + s * b for s in (t, t + 0.01))
        change = np.sin(matrix @ there) - np.sin(matrix @ here)
        squares.append(float((change**2).sum()) / 0.01**2)
        distances.append(float(((np.sin(matrix @ b) - np.sin(matrix @ a)) ** 2).sum()))
    # seeds are float32, and a difference over a step of 0.01 loses two digits more
    assert found.length == pytest.approx(np.mean(squares), rel=1e-3)
    assert found.error == pytest.approx(np.std(squares, ddof=1) / math.sqrt(7), rel=1e-3)
    assert found.median == pytest.approx(np.median(squares), rel=1e-3)
    assert found.ends == pytest.approx(np.mean(distances), rel=1e-5)
    ratio = np.mean(squares) / np.mean(distances)
    assert found.ratio == pytest.approx(ratio, rel=1e-3)
    spread = np.std(np.array(squares) - ratio * np.array(distances), ddof=1) / math.sqrt(7)
    assert found.ratio_error == pytest.approx(spread / np.mean(distances), rel=1e-3)


def test_features_are_what_is_measured():
    matrix = matrix_of(30, 6)
    decode = lambda z: z @ matrix.T  # noqa: E731
    plain = path_length(decode, 6, pairs=50, generator=generator())
    doubled = path_length(decode, 6, pairs=50, generator=generator(), features=lambda x: 2 * x)
    first = path_length(decode, 6, pairs=50, generator=generator(), features=lambda x: x[:, :1])
    assert doubled.length == pytest.approx(4 * plain.length, rel=1e-6)
    assert doubled.ratio == pytest.approx(plain.ratio, rel=1e-6)
    assert first.length < plain.length


def test_a_smooth_generator_has_no_jumps():
    matrix = matrix_of(30, 6)
    for decode in (lambda z: z @ matrix.T, lambda z: (z @ matrix.T).sigmoid(), lambda z: (5 * z).sin()):
        found = path_length(decode, 6, pairs=300, generator=generator())
        assert (found.jumped, found.jumping, found.walked) == (0, 0, 128)
        # none of 128: the upper end is where (1 − p)^128 = 0.025
        assert found.interval == pytest.approx((0, 1 - 0.025 ** (1 / 128)))
        assert found.ratio > 1 - 3 * found.ratio_error


def two_pictures(z: Tensor) -> Tensor:
    """It jumps where the first number of the seed changes its sign, and nowhere else."""
    return (z[:, :1] > 0).float().expand(-1, 4)


def test_a_generator_of_two_pictures_jumps_on_every_other_path():
    """P(jump) = ½ of a path, and 1/100 of that of a step: the rest does not move at all."""
    found = path_length(two_pictures, 3, pairs=4000, step=0.01, kind="linear", generator=generator())
    # 1 of 100 of 2,000 jumps fall into the step: 20 ± √20, four of these
    assert found.jumped == pytest.approx(20, abs=18)
    assert (found.length, found.ratio, found.median) == (0, 0, 0)
    again = generator()
    torch.randn(2, 3, generator=again)
    start, end = torch.randn(2, 128, 3, generator=again)
    crossing = int((start[:, 0].sign() != end[:, 0].sign()).sum())
    assert found.jumping == crossing, "of the first 128 paths, those whose ends differ"
    assert found.interval[0] < 0.5 < found.interval[1]


def test_jumps_between_smooth_generators_are_counted_and_leave_the_length_alone():
    """A mixture: the last number chooses, Ax or Ax + b. The path length is that of Ax."""
    matrix, seam = matrix_of(30, 6), matrix_of(30, 1)[:, 0]
    pairs, step = 4000, 0.01

    def mixed(z: Tensor) -> Tensor:
        return z[:, :-1] @ matrix.T + 3 * (z[:, -1:] > 0) * seam

    found = path_length(mixed, 7, pairs=pairs, step=step, kind="linear", generator=generator())
    mean = 2 * float(matrix.square().sum())
    spread = math.sqrt(8 * float((matrix.T @ matrix).square().sum()) / pairs)
    assert found.length == pytest.approx(mean, abs=4 * spread)
    assert found.error == pytest.approx(spread, rel=0.1)  # as above
    assert found.jumped == pytest.approx(20, abs=18)
    assert found.jumping / 128 == pytest.approx(0.5, abs=4 * 0.5 / 128**0.5)
    # with them the mean would be larger by a half or more: 1/200 jumps of 9‖b‖²/step² each
    assert 9 * float(seam.square().sum()) / step / 2 > 0.5 * mean
    finer = path_length(mixed, 7, pairs=pairs, step=step / 10, kind="linear", generator=generator())
    assert finer.length == pytest.approx(found.length, abs=6 * spread), "whatever the step"


def test_steep_is_no_jump():
    """From one picture to the other within a hundredth of a path, little by little."""

    def steep(z: Tensor) -> Tensor:
        return (100 * z[:, :1]).sigmoid().expand(-1, 4)

    found = path_length(steep, 3, pairs=200, generator=generator())
    assert (found.jumped, found.jumping) == (0, 0)
    assert found.ratio > 5


def test_a_generator_that_jumps_everywhere_is_refused():
    """As a table of pictures that a seed is looked up in: no step is without a jump."""

    def hashed(z: Tensor) -> Tensor:
        return ((z.double() * 1e7).sin() * 1e4).frac().abs()

    with pytest.raises(BadInput, match="neighbouring seeds have nothing in common"):
        path_length(hashed, 3, pairs=20, generator=generator())


def test_the_ratio_is_at_least_one_on_curved_paths():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 20), nn.Sigmoid())
    for kind in ("linear", "spherical"):
        found = path_length(net, 8, pairs=2000, kind=kind, generator=generator())
        assert found.ratio > 1 - 3 * found.ratio_error


def test_blocks_are_told_and_the_result_is_plain():
    told: list[tuple[int, int]] = []
    found = path_length(
        lambda z: z,
        3,
        pairs=10,
        batch_size=4,
        generator=generator(),
        progress=lambda done, total, what: told.append((done, total)),
    )
    assert told == [(at, 6) for at in range(1, 7)], "3 for the steps, 3 for whole paths"
    kept = json.loads(json.dumps(found.to_dict()))
    assert PathLength(**{**kept, "interval": tuple(kept["interval"])}) == found
    assert "times a straight path (10 spherical paths); 0 of 10 jump" in str(found)


WRONG = [
    ({"pairs": 1}, "2 pairs or more"),
    ({"step": 0.0}, "a step in"),
    ({"step": 1.0}, "a step in"),
    ({"kind": "round"}, "linear, spherical"),
    ({"features": lambda x: x[:1]}, "finite features of"),
    ({"features": lambda x: x * math.nan}, "finite features of"),
    ({"decode": lambda z: torch.ones(len(z), 4)}, "the generator has collapsed"),
    ({"latent": 0}, "latent size"),
    ({"confidence": 1.0}, "a confidence in"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=[str(at) for at in range(len(WRONG))])
def test_wrong_input_is_refused(options, said):
    with pytest.raises(BadInput, match=said):
        path_length(**{"decode": lambda z: z, "latent": 3, "generator": generator(), **options})
