"""Directions in seed space: singular vectors of a linear generator, the Jacobian by differences, labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from obverse._core.errors import BadInput
from obverse.diversity._directions import (
    direction_strips,
    label_direction,
    principal_directions,
    regressed_direction,
)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def linear(matrix: Tensor):
    return lambda z: (z @ matrix.T + 1).reshape(len(z), 1, 4, -1)


def curved() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 12), nn.Sigmoid())
    return net.double()


def by_differences(decode, seeds: Tensor, step: float = 1e-6) -> np.ndarray:
    """The mean of JᵀJ from central differences, seed by seed and entry by entry."""
    latent = seeds.shape[1]
    total = np.zeros((latent, latent))
    for seed in seeds:
        columns = []
        for at in range(latent):
            moved = torch.zeros(latent, dtype=seeds.dtype)
            moved[at] = step
            with torch.no_grad():
                change = decode((seed + moved)[None]) - decode((seed - moved)[None])
            columns.append(change.flatten().numpy() / (2 * step))
        jacobian = np.stack(columns, axis=1)
        total += jacobian.T @ jacobian
    return total / len(seeds)


@pytest.mark.parametrize("whole", [True, False])
def test_a_linear_generator_gives_its_right_singular_vectors(whole):
    matrix = drawn(20, 6)
    _, values, vectors = np.linalg.svd(matrix.numpy())
    found = principal_directions(
        linear(matrix), drawn(3, 6, seed=1), 4, whole=whole, generator=torch.Generator().manual_seed(2)
    )
    assert found.strengths.tolist() == pytest.approx(values[:4].tolist(), rel=1e-10)  # float64
    for row, vector in enumerate(found.vectors.numpy()):
        assert abs(vector @ vectors[row]) == pytest.approx(1, abs=1e-10)
        assert vector[np.abs(vector).argmax()] > 0
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-12)
    if whole:
        assert found.total == pytest.approx(np.linalg.norm(matrix.numpy()), rel=1e-12)
        assert found.shares == pytest.approx(values[:4] ** 2 / (values**2).sum())
    else:
        assert found.total is None
        assert found.shares is None


@pytest.mark.parametrize("count", [1, 7])
def test_the_mean_over_seeds_is_that_of_central_differences(count):
    net, seeds = curved(), drawn(count, 5, seed=3)
    values, vectors = np.linalg.eigh(by_differences(net, seeds))
    found = principal_directions(net, seeds, 5)
    # central differences of step 1e-6 round to about 1e-16/1e-6 and cut off (1e-6)²
    assert found.strengths.square().tolist() == pytest.approx(values[::-1].tolist(), abs=1e-8)
    for row, vector in enumerate(found.vectors[:3].numpy()):
        assert abs(vector @ vectors[:, -1 - row]) == pytest.approx(1, abs=1e-6)


def test_subspace_iteration_agrees_in_a_large_seed_space():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(300, 30), nn.Tanh(), nn.Linear(30, 40)).double()
    seeds = drawn(6, 300, seed=4)
    whole = principal_directions(net, seeds, 3, whole=True)
    found = principal_directions(net, seeds, 3, generator=torch.Generator().manual_seed(0), rounds=60)
    assert found.total is None, "300 dimensions are not computed whole"
    # at most rank 30·6: 60 rounds leave (σ₁₂/σ₃)^120 of the error
    assert found.strengths.tolist() == pytest.approx(whole.strengths.tolist(), rel=1e-6)
    assert (found.vectors * whole.vectors).sum(1).abs().tolist() == pytest.approx([1] * 3, abs=1e-4)


def test_convolutions_in_float32_and_blocks_are_told():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(4, 32),
        nn.ReLU(),
        nn.Unflatten(1, (8, 2, 2)),
        nn.ConvTranspose2d(8, 1, 4, 2, 1),
        nn.Sigmoid(),
    )
    told: list[tuple[int, int]] = []
    found = principal_directions(
        net, drawn(9, 4).float(), 2, progress=lambda done, total, what: told.append((done, total))
    )
    assert told[-1][0] == told[-1][1]
    assert found.vectors.dtype == torch.float32
    assert not found.vectors.requires_grad
    assert str(found).startswith("2 directions at 9 seeds")


# --- labels ---


def test_the_label_direction_of_linear_scores_is_exact():
    """Two labels, scores ±w·x/2: ∇ log p(1) = (1 − p)·Aᵀw at every seed, all along Aᵀw."""
    matrix, weights = drawn(8, 5), drawn(8, seed=1)
    seeds = drawn(50, 5, seed=2)
    expected = matrix.T @ weights

    def classify(x: Tensor) -> Tensor:
        score = x.flatten(1) @ weights / 2
        return torch.stack([-score, score], dim=1)

    found = label_direction(lambda z: z @ matrix.T, classify, 1, seeds, batch_size=16)
    assert torch.allclose(found.vector, expected / expected.norm(), atol=1e-12)
    assert found.agreement == 1.0
    other = 1 / (1 + (seeds[1::2] @ expected).exp())  # 1 − p, at the seeds that have not chosen
    assert found.slope == pytest.approx(float(other.mean() * expected.norm()), rel=1e-12)
    assert found.error == pytest.approx(float(other.std() * expected.norm()) / 25**0.5, rel=1e-12)
    opposite = label_direction(lambda z: z @ matrix.T, classify, 0, seeds)
    assert torch.allclose(opposite.vector, -found.vector, atol=1e-12)


def test_the_regression_finds_a_linear_score_and_its_error():
    seeds, weights = drawn(400, 6), drawn(6, seed=1)
    exact = regressed_direction(seeds, seeds @ weights + 3)
    assert torch.allclose(exact.vector, weights / weights.norm(), atol=1e-12)
    assert exact.slope == pytest.approx(float(weights.norm()), rel=1e-12)
    assert exact.agreement > 0.95
    # the slope of y = w·z + noise, drawn again and again: its spread is the standard error that is said
    slopes, errors = [], []
    for seed in range(200):
        noise = drawn(400, seed=100 + seed)
        found = regressed_direction(seeds, seeds @ weights + 2 * noise)
        slopes.append(found.slope)
        errors.append(found.error)
    # a standard deviation of 200 values is known to 1/√400 = 5 %: three of them
    assert np.std(slopes) == pytest.approx(np.mean(errors), rel=0.15)


def test_the_slope_is_that_of_the_seeds_that_have_not_chosen():
    """In numpy: a plane through the even rows, a line through the odd ones, White's error."""
    seeds, noise = drawn(61, 4), drawn(61, seed=1)
    scores = seeds[:, 0] * seeds[:, 1] + seeds[:, 2] + noise
    found = regressed_direction(seeds, scores)
    x, y = seeds.numpy(), scores.numpy()
    plane = np.linalg.lstsq(np.c_[x[::2], np.ones(31)], y[::2], rcond=None)[0][:-1]
    vector = plane / np.linalg.norm(plane)
    assert found.vector.numpy() == pytest.approx(vector, abs=1e-12)
    place = x[1::2] @ vector
    slope, offset = np.polyfit(place, y[1::2], 1)
    assert found.slope == pytest.approx(slope, rel=1e-10)
    left, away = y[1::2] - slope * place - offset, place - place.mean()
    white = sum(a**2 * r**2 for a, r in zip(away, left, strict=True)) / sum(a**2 for a in away) ** 2
    assert found.error == pytest.approx((white * 30 / 28) ** 0.5, rel=1e-10)
    assert found.agreement == np.mean(away * (y[1::2] - y[1::2].mean()) > 0)


def test_noise_has_no_direction():
    """Scores that know nothing of the seeds, 64 numbers a seed: the slope is a few errors, of either sign."""
    ratios, shares = [], []
    for seed in range(40):
        found = regressed_direction(drawn(2000, 64, seed=seed), drawn(2000, seed=1000 + seed))
        ratios.append(found.slope / found.error)
        shares.append(found.agreement)
    # 40 normal ratios: one beyond 4 has the chance 0.0025; their mean is 0 ± 1/√40
    assert max(map(abs, ratios)) < 4
    assert abs(np.mean(ratios)) < 4 / 40**0.5
    # shares of 1,000 seeds are ½ ± 0.016, and their mean ± 0.016/√40
    assert np.mean(shares) == pytest.approx(0.5, abs=4 * 0.016 / 40**0.5)


def test_gradients_of_noise_have_no_direction():
    """sin(1000·w·z) goes up at one seed and down at the next: gradients of either sign along w."""
    ratios = []
    for seed in range(40):
        weights = 1000 * drawn(64, seed=500 + seed)

        def classify(x: Tensor, weights: Tensor = weights) -> Tensor:
            score = (x @ weights).sin()
            return torch.stack([-score, score], dim=1)

        found = label_direction(lambda z: z, classify, 1, drawn(200, 64, seed=seed))
        ratios.append(found.slope / found.error)
    assert max(map(abs, ratios)) < 4  # as above
    assert abs(np.mean(ratios)) < 4 / 40**0.5


def test_regression_and_gradient_agree_on_gaussian_seeds():
    """Stein: E[z f(z)] = E[∇f(z)] for Gaussian z."""
    net = curved()

    def scores(x: Tensor) -> Tensor:
        return torch.stack([x[:, :6].sum(1), x[:, 6:].sum(1)], dim=1)

    seeds = drawn(20_000, 5, seed=5)
    steep = label_direction(net, scores, 0, seeds, batch_size=5000)
    with torch.no_grad():
        regressed = regressed_direction(seeds, scores(net(seeds)).log_softmax(1)[:, 0])
    # each of 5 entries is known to about 1/√20,000 of the spread, which is below the slope itself
    assert float(steep.vector @ regressed.vector) > 0.999
    assert regressed.slope == pytest.approx(steep.slope, rel=0.03)


def test_strips_go_from_one_side_to_the_other():
    matrix = drawn(8, 5)
    seeds, direction = drawn(2, 5, seed=1), drawn(5, seed=2)
    found = direction_strips(linear(matrix), seeds, direction, reach=2.0, steps=5)
    assert found.shape == (2, 5, 1, 4, 2)
    unit = direction / direction.norm()
    for row in range(2):
        for step, place in enumerate((-2, -1, 0, 1, 2)):
            expected = linear(matrix)((seeds[row] + place * unit)[None])[0]
            assert torch.allclose(found[row, step], expected)


SEEDS = drawn(4, 5)
MATRIX = drawn(8, 5, seed=1)
WRONG = [
    (lambda: principal_directions(linear(MATRIX), SEEDS, 0), "from 1 to 5 directions"),
    (lambda: principal_directions(linear(MATRIX), SEEDS, 6), "from 1 to 5 directions"),
    (lambda: principal_directions(linear(MATRIX), SEEDS[:0], 1), "at least 1 row"),
    (lambda: principal_directions(lambda z: (z @ MATRIX.T).round(), SEEDS, 1), "Jacobian of 0"),
    (lambda: principal_directions(lambda z: z - z.mean(0) + 1, SEEDS, 1), "whatever stands beside"),
    (lambda: principal_directions(linear(MATRIX), SEEDS, 1, whole=False, rounds=0), "at least 1 round"),
    (lambda: label_direction(linear(MATRIX), lambda x: x.flatten(1), 8, SEEDS), "more than 8 labels"),
    (lambda: label_direction(linear(MATRIX), lambda x: x.flatten(1)[:1], 0, SEEDS), "scores of 4"),
    (lambda: label_direction(linear(MATRIX), lambda x: x.flatten(1) * 0, 0, SEEDS), "gradient of 0"),
    (lambda: label_direction(linear(MATRIX), lambda x: x.flatten(1), 0, SEEDS[:3]), "at least 4 rows"),
    (lambda: regressed_direction(SEEDS, drawn(4)), "at least 14 seeds"),
    (lambda: regressed_direction(SEEDS, drawn(3)), "4 finite scores"),
    (lambda: regressed_direction(drawn(14, 5), torch.zeros(14)), "change with the seed"),
    (lambda: direction_strips(linear(MATRIX), SEEDS, drawn(4)), "a direction of 5 numbers"),
    (lambda: direction_strips(linear(MATRIX), SEEDS, torch.zeros(5)), "not all 0"),
    (lambda: direction_strips(linear(MATRIX), SEEDS, drawn(5), steps=1), "at least 2 steps"),
]


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[str(at) for at in range(len(WRONG))])
def test_wrong_input_is_refused(call, said):
    with pytest.raises(BadInput, match=said):
        call()
