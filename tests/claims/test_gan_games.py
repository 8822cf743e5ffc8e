"""What the claims about generators and discriminators rest on: best discriminators, games, mixtures."""

from itertools import product
from math import cos, exp, log, pi, sqrt

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from obverse._core.errors import BadInput
from obverse.claims.gan import _critics as critics
from obverse.claims.gan import _equilibrium as equilibrium
from obverse.claims.gan import _generalization as generalization
from obverse.claims.gan import _matrix_game as matrix_game
from obverse.claims.gan import _mixtures as mixtures


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=seeded(seed), dtype=torch.float64)


# Best discriminators


def test_cells_by_every_vertex():
    counts = critics.cell_counts(5, 12, 20, seeded())
    assert counts.sum(1).tolist() == [12.0] * 20
    for row, found in zip(counts.tolist(), critics.cells_distance(counts).tolist(), strict=True):
        brute = max(
            sum(theta * (count / 12 - 1 / 5) for theta, count in zip(vertex, row, strict=True))
            for vertex in product((0, 1), repeat=5)
        )
        assert found == pytest.approx(brute, abs=1e-12)


def test_cells_are_equally_likely():
    counts = critics.cell_counts(4, 10_000, 10, seeded())
    # four standard errors of a binomial share
    assert (counts.sum(0) / 1e5 - 0.25).abs().max() < 4 * sqrt(0.25 * 0.75 / 1e5)


def test_ball_is_attained_and_not_exceeded():
    points = rand(3, 7, 4) - 0.5
    found = critics.ball_distance(points)
    for row, distance in zip(points.numpy(), found.tolist(), strict=True):
        mean = row.mean(0)
        best = mean / np.linalg.norm(mean)
        assert float((row @ best).mean()) == pytest.approx(distance, abs=1e-12)
        others = np.random.default_rng(0).normal(size=(500, 4))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        assert (others @ mean).max() <= distance + 1e-12


@pytest.mark.parametrize("frequency", [2, 5])
def test_waves_by_a_dense_search(frequency):
    points = rand(4, 6)
    found = critics.waves_distance(points, frequency).tolist()
    for row, distance in zip(points.tolist(), found, strict=True):
        dense = 0.0
        for theta in np.linspace(0, 1, 4001)[1:]:
            turn = 2 * pi * frequency * theta
            mean = sum(cos(turn * x) for x in row) / len(row)
            truth = np.sin(turn) / turn  # the mean of cos over [0, 1]
            dense = max(dense, abs(mean - truth) / 2)
        assert (
            distance <= dense + 1e-6
        )  # of a grid of 4,000: its step moves D by at most 0.01, squared at a top
        assert dense <= distance / cos(pi / 8) + 1e-6


def test_waves_in_blocks_are_the_same(monkeypatch):
    points = rand(3, 5)
    whole = critics.waves_distance(points, 20)
    monkeypatch.setattr(critics, "HELD_ENTRIES", 64)
    assert torch.equal(critics.waves_distance(points, 20), whole)


def brute_arc(points, weights):
    """Every arc from point to point, its ends with it or without, and its complement."""
    best = 0.0
    for first, last in product(range(len(points)), repeat=2):
        length = (points[last] - points[first]) % 1.0
        strictly = [
            weight
            for point, weight in zip(points, weights, strict=True)
            if 0 < (point - points[first]) % 1.0 < length
        ]
        ends = weights[first] + (weights[last] if last != first else 0.0)
        best = max(best, sum(strictly) + ends - length)
        if first == last:
            length, strictly = 1.0, [weight for at, weight in enumerate(weights) if at != first]
        best = max(best, length - sum(strictly))
    return best


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_arcs_by_every_arc(count):
    points, weights = rand(5, count, seed=1), rand(5, count, seed=2)
    weights /= weights.sum(1, keepdim=True)
    for row, weight, found in zip(points, weights, critics.arcs_distance(points, weights), strict=True):
        expected = brute_arc(row.tolist(), weight.tolist())
        assert float(found) == pytest.approx(expected, abs=1e-12)
        order = row.argsort()
        payoff = equilibrium.arcs_payoff(row[order])
        assert float((weight[order] @ payoff).max()) == pytest.approx(expected, abs=1e-12)


def test_parameters_are_those_of_a_net():
    net = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 1))
    assert critics.parameters(8, 5) == sum(weight.numel() for weight in net.parameters())


def test_a_trained_discriminator_finds_what_there_is():
    """Points of N(2, 1) in place of N(0, 1): no D finds more than their total variation, 2Φ(1) − 1."""
    points = torch.randn(3, 1000, 1, generator=seeded()) + 2
    found = critics.trained_distance(points, 2, 100, seeded(1))
    truth = 2 * stats.norm.cdf(1) - 1
    error = 0.5 / sqrt(1000) + 0.5 / sqrt(8192)  # standard errors of two means of D ∈ [0, 1], at most
    assert (found <= truth + 4 * error).all()
    assert (found > 0.9 * truth).all()


def test_a_trained_discriminator_finds_little_where_nothing_is():
    few, many = (
        critics.trained_distance(torch.randn(6, size, 3, generator=seeded()), 2, 100, seeded(1)).mean()
        for size in (50, 5000)
    )
    assert float(many) < 0.05 < 0.15 < float(few)  # about 0.02 and 0.2: a factor of ten in √m


def test_training_needs_units_and_steps():
    with pytest.raises(BadInput):
        critics.trained_distance(torch.zeros(1, 2, 3), 0, 10, seeded())


# Sizes


@pytest.mark.parametrize(("p", "m"), [(2, 7), (5, 5), (16, 100), (40, 13)])
def test_the_mean_distance_over_cells(p, m):
    law = stats.binom(m, 1 / p)
    expected = p / 2 * sum(law.pmf(k) * abs(k / m - 1 / p) for k in range(m + 1))
    assert generalization.cells_mean({"p": p, "m": m}) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("p", "epsilon", "lipschitz"), [(1, 0.1, 1.0), (10, 0.4, 1.0), (3, 0.2, 50.0)])
def test_samples_needed_and_the_bound_are_inverse(p, epsilon, lipschitz):
    m = generalization.samples_needed(p, epsilon, lipschitz)

    def chance(size):
        return 2 * (1 + 4 * lipschitz / epsilon) ** p * exp(-(epsilon**2) * size / 8)

    assert chance(m) <= generalization.DELTA < chance(m - 1)
    assert generalization.log_failure(p, m, epsilon, lipschitz) == pytest.approx(log(chance(m)))
    # one sample more or less is what rounding up to whole ones costs
    assert generalization.net_bound(p, m, lipschitz) <= epsilon / 2
    assert generalization.net_bound(p, m - 1, lipschitz) > epsilon / 2


def test_bad_settings_are_refused():
    for check, setting in (
        (generalization.check_sizes, {"p": 0}),
        (generalization.check_sizes, {"epsilon": 1.5}),
        (equilibrium.check_game, {"discriminators": 3}),
        (equilibrium.check_game, {"generators": 0}),
        (equilibrium.check_game, {"sigma": 0.0}),
        (mixtures.check_width, {"sigma": 0.0}),
        (mixtures.check_width, {"law": "comb"}),
        (mixtures.check_width, {"components": 0}),
    ):
        with pytest.raises(BadInput):
            check(setting)


# Games


def test_rock_paper_scissors():
    payoff = torch.tensor([[0.0, 1, -1], [-1, 0, 1], [1, -1, 0]], dtype=torch.float64)
    play = matrix_game.solve(payoff)
    assert play.rows.tolist() == pytest.approx([1 / 3] * 3, abs=1e-9)  # what the linear program promises
    assert play.gap(payoff) == pytest.approx(0, abs=1e-9)
    assert matrix_game.pure_gap(payoff) == 2


def test_the_best_mixture_of_two_by_a_search():
    payoff = rand(2, 6) - 0.5
    value, rows = matrix_game.best_rows(payoff)
    grid = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    worst = (grid[:, None] * payoff[0] + (1 - grid)[:, None] * payoff[1]).amax(1)
    assert value == pytest.approx(float(worst.min()), abs=1e-4)  # the step of the search
    assert float((rows @ payoff).max()) == pytest.approx(value, abs=1e-9)


def test_an_equilibrium_leaves_nothing_to_win():
    payoff = rand(7, 9) - 0.5
    play = matrix_game.solve(payoff)
    assert play.gap(payoff) == pytest.approx(0, abs=1e-9)
    uniform = matrix_game.Play(
        torch.full((7,), 1 / 7, dtype=torch.float64), torch.full((9,), 1 / 9, dtype=torch.float64)
    )
    assert uniform.gap(payoff) > 0.1


def test_the_pure_gap_by_loops():
    payoff = rand(4, 5)
    rows = payoff.tolist()
    expected = min(max(row) for row in rows) - max(min(row[j] for row in rows) for j in range(5))
    assert matrix_game.pure_gap(payoff) == pytest.approx(expected)
    assert matrix_game.pure_gap(torch.tensor([[1.0, 2.0], [3.0, 4.0]])) == 0  # a saddle


def test_hedge_plays_pure_generators_and_keeps_its_regret():
    payoff = 2 * rand(6, 8) - 1
    for rounds in (1, 10, 100):
        play = matrix_game.hedge(payoff, rounds)
        assert float(play.columns.sum()) == pytest.approx(1)
        counts = play.rows * rounds
        assert counts.tolist() == pytest.approx(counts.round().tolist(), abs=1e-9)
        assert play.gap(payoff) <= sqrt(2 * log(8) / rounds)
    first = int(payoff.mean(1).argmin())  # against even weights
    assert float(matrix_game.hedge(payoff, 1).rows[first]) == 1


def test_the_circle_by_loops():
    payoff, places = equilibrium.circle_payoff(5), 5
    rows = {tuple(row) for row in payoff.T.tolist()}
    expected = set()
    for start, length in product(range(places), range(places + 1)):
        arc = {(start + step) % places for step in range(length)}
        expected.add(tuple(len(arc) / places - (place in arc) for place in range(places)))
    assert len(rows) == len(expected)
    assert sorted(rows) == [pytest.approx(row) for row in sorted(expected)]


def test_random_games_have_value_0():
    payoff = equilibrium.random_payoff(10, seeded())
    assert payoff.mean(0).abs().max() < 1e-12  # the real law itself, as a mixture, is paid for by nobody
    assert torch.allclose(payoff[:, :5], -payoff[:, 5:])
    assert set((payoff - payoff.amin(0)).round(decimals=9).unique().tolist()) == {0.0, 1.0}
    assert abs(matrix_game.best_rows(payoff)[0]) < 1e-9


@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_best_weights_leave_the_longest_spacing(count):
    points = rand(count, seed=count).sort().values
    spacings = torch.cat([points.diff(), (points[0] + 1 - points[-1])[None]])
    value, _ = matrix_game.best_rows(equilibrium.arcs_payoff(points))
    assert value == pytest.approx(float(spacings.max()), abs=1e-9)


def test_the_mean_of_the_longest_spacing():
    points = rand(20_000, 6).sort(1).values
    longest = torch.cat([points.diff(dim=1), points[:, :1] + 1 - points[:, -1:]], 1).amax(1)
    error = float(longest.std()) / sqrt(len(longest))
    assert abs(float(longest.mean()) - equilibrium.longest_spacing({"generators": 6})) < 4 * error


def test_half_lines_against_gaussians():
    centres, sigma = rand(3), 0.1
    x = np.linspace(-0.5, 1.5, 20_001)
    below = np.mean([stats.norm.cdf(x, centre, sigma) for centre in centres.tolist()], axis=0)
    expected = np.abs(below - x.clip(0, 1)).max()
    # A step of 0.002 times the largest slope of the difference, 1/(σ√2π), if the top is no smooth one.
    assert equilibrium.half_lines_gap(centres, sigma) == pytest.approx(expected, abs=0.002 * 4)


def test_arcs_against_wrapped_gaussians():
    """By drawing: many points of the mixture, and the best arc against them."""
    centres, sigma, count = rand(3), 0.1, 200_000
    drawn = centres[torch.randint(3, (count,), generator=seeded())] + sigma * torch.randn(
        count, generator=seeded(1), dtype=torch.float64
    )
    points = (drawn % 1.0)[None]
    expected = float(critics.arcs_distance(points, torch.full_like(points, 1 / count)))
    # Kuiper's statistic of so many points is 1.25/√count on average; 2/√count is exceeded once in 200 times.
    assert equilibrium.wrapped_gap(centres, sigma) == pytest.approx(
        expected, abs=2 / sqrt(count) + 1 / 256**2
    )


# Mixtures of Gaussians


def test_a_histogram_and_its_mixture():
    heights, sigma = torch.tensor([0.5, 2.0, 0.5, 1.0], dtype=torch.float64), 0.05
    edges = [0, 0.25, 0.5, 0.75, 1]

    def difference(x):
        mixed = sum(
            height * (stats.norm.cdf((x - low) / sigma) - stats.norm.cdf((x - high) / sigma))
            for height, low, high in zip(heights.tolist(), edges[:-1], edges[1:], strict=True)
        )
        own = heights.tolist()[int(4 * x)] if 0 <= x < 1 else 0.0
        return abs(own - mixed)

    expected = sum(
        integrate.quad(difference, low, high, limit=200)[0]
        for low, high in zip([-0.5, *edges], [*edges, 1.5], strict=True)
    )
    found = mixtures.histogram_distance(heights, sigma)
    assert found == pytest.approx(expected, rel=mixtures.QUADRATURE)
    assert mixtures.variation(heights) == pytest.approx(0.5 + 1.5 + 1.5 + 0.5 + 1.0)


def test_normal_densities_and_their_mixture():
    centres, widths, weights = (
        torch.tensor(row, dtype=torch.float64) for row in ([-1, 2], [1, 0.5], [0.3, 0.7])
    )

    def at(x, more):
        return sum(
            weight * stats.norm.pdf(x, centre, sqrt(width**2 + more))
            for centre, width, weight in zip(centres.tolist(), widths.tolist(), weights.tolist(), strict=True)
        )

    expected, _ = integrate.quad(lambda x: abs(at(x, 0) - at(x, 0.09)), -9, 9, limit=400, points=[-1, 0, 2])
    assert mixtures.bells_distance(centres, widths, weights, 0.3) == pytest.approx(
        expected, rel=mixtures.QUADRATURE
    )


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.0])
def test_closed_forms(sigma):
    normal, _ = integrate.quad(
        lambda x: abs(stats.norm.pdf(x) - stats.norm.pdf(x, 0, sqrt(1 + sigma**2))), 0, 12, limit=400
    )
    assert mixtures.closed_form({"density": "normal", "sigma": sigma}) == pytest.approx(2 * normal, rel=1e-6)
    outside, _ = integrate.quad(lambda x: stats.norm.cdf(-x / sigma) + stats.norm.cdf((x - 1) / sigma), 0, 1)
    assert mixtures.closed_form({"density": "uniform", "sigma": sigma}) == pytest.approx(
        2 * outside, rel=1e-6
    )


@pytest.mark.parametrize("law", ["atoms", "cantor"])
def test_the_wasserstein_distance_by_quantiles(law):
    places, weights = mixtures.draw_law(law, seeded())
    assert float(weights.sum()) == pytest.approx(1)
    # A Gaussian as its quantiles: the mean of their sizes is E|Z| to 2e-4.
    quantiles = torch.special.ndtri((torch.arange(2000, dtype=torch.float64) + 0.5) / 2000)
    sigma = 0.05
    mixed = (places[:, None] + sigma * quantiles).flatten()
    expected = stats.wasserstein_distance(
        places.numpy(), mixed.numpy(), weights.numpy(), weights.repeat_interleave(2000).numpy()
    )
    found = mixtures.wasserstein(places, weights, sigma)
    assert found == pytest.approx(expected, rel=mixtures.QUADRATURE)


def test_the_cantor_set():
    x = torch.tensor([0, 0.25, 0.75, 2 / 3 + 1e-9, 0.5, 0.4, 0.12, -0.1, 1.1], dtype=torch.float64)
    # 1/4 = 0.0202…, 3/4 = 0.2020… of base 3; near 2/3 digits go on at random
    inside = mixtures.in_cantor_set(x).tolist()
    assert inside[:3] == [True, True, True]
    assert inside[4:] == [False] * 5
    places, _ = mixtures.draw_law("cantor", seeded())
    for place in places.tolist():  # digits 0 and 2 as far as the level goes, and then its middle
        for _ in range(mixtures.LEVEL):
            place *= 3
            assert int(place) in (0, 2)
            place -= int(place)


def test_the_arcsine_density():
    """Against a histogram of the same masses: near a pole p lies above the mixture, and only masses count."""
    edges = torch.linspace(0, 1, 501, dtype=torch.float64)
    heights = (2 / pi * edges.sqrt().clamp(max=1).asin()).diff() * 500
    expected = mixtures.histogram_distance(heights, 0.1)
    found = mixtures.measure_arcsine({"sigma": 0.1, "trials": 3}, seeded())
    assert found == pytest.approx(
        [expected] * 3, rel=0.02
    )  # strata of 400, a cell at a pole holds 1 % of the mass


@pytest.mark.parametrize("power", [0.2, 1.0])
def test_finite_mixtures_by_quadrature(power):
    setting = {"components": 30, "power": power, "trials": 1}
    found = np.mean([mixtures.measure_finite(setting, seeded(seed)) for seed in range(60)])
    generator, sigma = np.random.default_rng(0), 0.5 * 30**-power
    x = np.linspace(-6, 6, 4001)  # a fifth of the smaller σ or less
    expected = []
    for _ in range(60):
        mixed = stats.norm.pdf((x[:, None] - generator.normal(size=30)) / sigma).mean(1) / sigma
        expected.append(np.abs(mixed - stats.norm.pdf(x)).sum() * (x[1] - x[0]))
    error = np.std(expected) / sqrt(60)
    assert abs(found - np.mean(expected)) < 4 * sqrt(2) * error
