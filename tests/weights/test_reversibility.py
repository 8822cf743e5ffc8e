"""Recovery of one layer: slow loops for every number, simulation for the interval, planted structure."""

from math import log, sqrt

import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest

from obverse._core.errors import BadInput
from obverse.shadow import best_threshold, recovery_error
from obverse.weights import _reversibility as reversibility
from obverse.weights._reversibility import best_multiple, random_hidden, reversals, sparsities


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed))


def alike(rows: int, samples: int, generator: torch.Generator, spread: float = 0.3) -> torch.Tensor:
    """Activations that resemble each other, as those of real data do."""
    common = torch.randn(rows, generator=generator) - 0.5
    return (common + spread * torch.randn(samples, rows, generator=generator)).relu()


# --- the h that are tried ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (5000, 5000, (50, 250, 1000)),
        (5000, 784, (8, 39, 157)),
        (10, 5000, (2,)),
        (64, 64, (2, 3, 13)),
        (2, 2, (2,)),
        (1, 9, (1,)),
    ],
)
def test_sparsities_are_shares_of_the_shorter_side(rows, columns, expected):
    assert sparsities(rows, columns) == expected
    assert all(k <= rows for k in expected)


def test_random_h_has_k_half_normal_entries_in_random_places_and_norm_one():
    h = random_hidden(50, 10, 4000, seeded())
    assert h.shape == (4000, 50)
    assert bool((h >= 0).all())
    assert bool(((h > 0).sum(1) == 10).all())
    torch.testing.assert_close(h.norm(dim=1), torch.ones(4000))
    # each place is taken in 1/5 of the draws: standard error √(0.2·0.8/4000)
    assert float(((h > 0).double().mean(0) - 0.2).abs().max()) < 4.5 * sqrt(0.2 * 0.8 / 4000)
    # Σ|g| / √Σg² for ten normals, by simulation of its own
    g = normal(20000, 10, seed=1).abs()
    sums = g.sum(1) / g.norm(dim=1)
    difference = float(h.sum(1).mean() - sums.mean())
    assert abs(difference) < 4 * float(sums.std()) * sqrt(1 / 4000 + 1 / 20000)


# --- one layer on given h, against loops -------------------------------------------------------------------


def loop_response(matrix: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """ĥ before threshold and ReLU, for α = 2/(n s²), in float64 one unit at a time."""
    matrix, h = matrix.double(), h.double()
    n = matrix.shape[1]
    alpha = 2 / (n * float((matrix**2).mean()))
    x = torch.stack([sum(h[:, i, None] * matrix[i] for i in range(len(matrix)))][0].unbind())
    x = torch.where(x > 0, alpha * x, 0.0)
    return torch.stack([(x * row).sum(1) for row in matrix], dim=1)


def mean_error(response: torch.Tensor, h: torch.Tensor, threshold: torch.Tensor | float) -> float:
    """Mean over rows of ‖r(ĥ − θ) − h‖² / ‖h‖²."""
    errors = ((response - threshold).clamp(min=0) - h).square().sum(1) / h.square().sum(1)
    return float(errors.mean())


def test_every_number_of_a_layer_on_data_is_what_a_loop_finds():
    matrix, bias = 0.3 * normal(30, 50) + 0.02, 0.2 * normal(30, seed=1) - 0.3
    h = alike(30, 12, seeded(2), spread=1.0) * torch.arange(1, 13)[:, None]  # of different sizes
    h[4] = 0  # silent: left out
    *_, found = reversals(matrix, bias, own=h, generator=seeded(3))
    h = h[h.any(1)].double()
    sizes = h.norm(dim=1, keepdim=True)
    response = loop_response(matrix, h)
    best = minimize_scalar(
        lambda c: mean_error(response, h, c * sizes), bounds=(0, 1), method="bounded", options={"xatol": 1e-9}
    )
    assert (found.source, found.samples, found.kept) == ("data", 11, 50.0)
    # the layer is run in float32: sums of 50 products, each rounded to 6e-8
    assert found.layer.error.value == pytest.approx(best.fun, rel=1e-5)
    assert found.layer.threshold == pytest.approx(best.x, abs=1e-5)
    deviations = (response - h).abs().amax(1) / sizes[:, 0]
    assert found.layer.deviation.value == pytest.approx(float(deviations.mean()), rel=1e-5)
    assert found.layer.deviation.spread == pytest.approx(float(deviations.std()) / sqrt(11), rel=1e-4)
    assert found.own_bias is not None
    assert found.own_bias.value == pytest.approx(mean_error(response, h, -bias.double()), rel=1e-5)
    assert found.sparsity == pytest.approx(float((h > 0).sum(1).double().mean()))
    assert found.peak == pytest.approx(float((h.amax(1) / sizes[:, 0]).mean()), rel=1e-6)
    assert found.peak_bound == pytest.approx(sqrt(log(found.sparsity) / found.sparsity))
    assert found.sparse_enough is (found.sparsity < 50)
    assert found.dense_enough is (found.sparsity**2 > 50)
    assert found.ratio.value == pytest.approx(found.layer.error.value / found.shuffled.error.value, rel=1e-6)
    threshold = best_threshold(h, 50, 50, shared=True)
    assert found.predicted.threshold == pytest.approx(float((threshold / sizes[:, 0]).mean()), rel=1e-6)
    predicted = float(recovery_error(h, 50, threshold, 50).mean())
    assert found.predicted.error.value == pytest.approx(predicted, rel=1e-6)
    assert found.predicted.deviation.value == pytest.approx(sqrt(2 / 50) * sqrt(2 * log(30)))


@pytest.mark.parametrize("seed", range(6))
def test_the_best_multiple_is_exact(seed):
    generator = seeded(seed)
    h = random_hidden(40, 8, 5, generator)
    response = h + 0.3 * torch.randn(5, 40, generator=generator)
    for profile in (
        torch.ones(40),
        torch.randn(40, generator=generator),
        torch.rand(40, generator=generator).round() - 0.3,  # units wake up and fall silent
        torch.zeros(40),
    ):

        def error(c: float, profile: torch.Tensor = profile) -> float:
            return float(((response - c * profile).clamp(min=0) - h).double().square().sum())

        found = best_multiple(response, h, profile)
        assert found >= 0
        oracle = min(map(error, torch.linspace(0, 20, 4001).tolist()))
        # the grid can only be above the minimum; both sums are float32 inside
        assert error(found) <= oracle * (1 + 1e-6)


def test_own_bias_on_random_h_is_free_in_size_but_not_in_sign():
    matrix = normal(60, 90)
    for one in reversals(matrix, torch.full((60,), -0.7), generator=seeded(1)):
        assert one.own_bias is not None
        assert one.own_bias.value == pytest.approx(one.layer.error.value, rel=1e-6)
    larger = reversals(matrix, torch.full((60,), 0.7), generator=seeded(1))
    none = reversals(matrix, torch.zeros(60), generator=seeded(1))
    without = reversals(matrix, None, generator=seeded(1))
    for one, zero, missing in zip(larger, none, without, strict=True):
        assert one.own_bias == zero.own_bias
        assert zero.own_bias is not None
        assert zero.own_bias.value > zero.layer.error.value
        assert missing.own_bias is None
        assert missing.layer == zero.layer


# --- random matrices: prediction, interval ---------------------------------------------------------------


def laplace(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.distributions.Laplace(0, 1).icdf(torch.rand(*shape, generator=seeded(seed)).clamp(1e-6))


LAWS = {  # entries, and their excess kurtosis
    "normal": (normal, 0.0),
    "signs": (lambda *shape, seed: normal(*shape, seed=seed).sign(), -2.0),
    "uniform": (lambda *shape, seed: torch.rand(*shape, generator=seeded(seed)) - 0.5, -1.2),
    "Laplace": (laplace, 3.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("keep", [1.0, 0.5])
def test_random_entries_of_any_law_recover_as_predicted(law, keep):
    make, kurtosis = LAWS[law]
    found = [
        reversals(make(200, 1200, seed=seed), None, keep=keep, generator=seeded(seed)) for seed in range(6)
    ]
    for at in zip(*found, strict=True):
        predicted = torch.tensor([one.predicted.error.value for one in at])
        # tails change Var ĥ_i by (2/t)κh_i², where t is that of inputs which are not dropped independently
        # of size; active or not, that is at most 2κ/t of ‖h‖²
        tails = 2 * abs(kurtosis) / at[0].kept
        for which in ("layer", "shuffled"):
            errors = torch.tensor([getattr(one, which).error.value for one in at])
            standard_error = float((errors - predicted).std()) / sqrt(len(at))
            # 3 %: the normal approximation of ĥ at t ≥ 500 (theory §1); 4: Student's t with 5 degrees at 1 %
            allowed = 0.03 * float(predicted.mean()) + 4 * standard_error + tails
            assert abs(float((errors - predicted).mean())) < allowed
        logs = torch.tensor([log(one.ratio.value) for one in at])
        assert abs(float(logs.mean())) < 4 * float(logs.std()) / sqrt(len(at))
        # the largest of 200 normals: its mean is below √(2 ln m) by some 10 % (extreme-value theory)
        ratio = at[0].layer.deviation.value / at[0].predicted.deviation.value
        assert 0.8 < ratio < 1.1


def misses(shape: tuple[int, int], layers: int) -> torch.Tensor:
    """How often 1 lay outside the interval, for each sparsity and for data, on Gaussian layers."""
    generator = seeded(sum(shape))
    outside = []
    for _ in range(layers):
        own = alike(shape[0], 32, generator)
        found = reversals(torch.randn(*shape, generator=generator), None, own=own, generator=generator)
        outside.append([not one.interval[0] <= 1 <= one.interval[1] for one in found])
    return torch.tensor(outside).sum(0)


def check_coverage(shape: tuple[int, int], layers: int) -> None:
    for count in misses(shape, layers).tolist():
        # a rate of 5 % fails this with a chance of 0.1 %
        assert binomtest(count, layers, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(64, 64), (40, 500)])
def test_the_interval_covers_one_for_small_gaussian_layers(shape):
    check_coverage(shape, 40)


@pytest.mark.slow
def test_the_interval_covers_one_by_a_single_shuffle(monkeypatch):
    monkeypatch.setattr(reversibility, "_SMALL", 0)
    check_coverage((200, 200), 30)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(64, 64), (100, 300), (300, 100), (40, 500), (32, 32)])
def test_the_interval_covers_one_for_95_percent_of_small_gaussian_layers(shape):
    check_coverage(shape, 200)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(520, 520), (1000, 270), (270, 1000)])
def test_the_interval_covers_one_where_a_single_shuffle_has_to_do(shape):
    assert shape[0] * shape[1] > reversibility._SMALL
    check_coverage(shape, 150)


def test_p_belongs_to_the_interval():
    for seed in range(20):
        for one in reversals(normal(48, 64, seed=seed), None, samples=8, generator=seeded(seed)):
            assert one.ratio.p is not None
            assert (one.ratio.p < 0.05) is not (one.interval[0] <= 1 <= one.interval[1])


# --- structure ------------------------------------------------------------------------------------------


def orthogonal(m: int, n: int) -> torch.Tensor:
    return torch.linalg.qr(normal(n, m))[0].T


# Above 1 the structure disturbs recovery. Orthogonal rows help it: half of x is linear in h and comes back
# without noise, so about half of the error is left.
@pytest.mark.parametrize(
    ("matrix", "low", "high"),
    [
        (orthogonal(150, 300), 0.3, 0.75),
        (orthogonal(200, 200), 0.3, 0.75),
        (normal(150, 300) + normal(1, 300, seed=1), 2, 1e9),  # rows correlated ½
        (normal(150, 300) * (normal(150, 1, seed=1) / 2).exp(), 1.2, 1e9),  # rows of different size
        (normal(150, 300) * (normal(1, 300, seed=1) / 2).exp(), 1.2, 1e9),  # columns of different size
        (normal(150, 15) @ normal(15, 300, seed=1), 2, 1e9),  # low rank
    ],
    ids=["orthogonal", "square orthogonal", "correlated", "row scales", "column scales", "low rank"],
)
def test_structure_shows_in_the_ratio(matrix, low, high):
    found = reversals(matrix, None, generator=seeded())
    assert all(low < one.ratio.value < high for one in found)
    densest = found[-1]  # at k = 2 so small a layer's shuffles differ too much to be sure
    assert not densest.interval[0] <= 1 <= densest.interval[1]
    assert densest.ratio.p is not None
    assert densest.ratio.p < 0.001


def test_a_mean_of_the_entries_shows_beside_normal_ones_and_not_in_the_ratio():
    """Shuffling keeps the mean: the ratio is about the order of the entries alone."""
    *_, dense = reversals(normal(200, 400) + 0.5, None, generator=seeded())
    assert dense.interval[0] <= 1 <= dense.interval[1]
    assert dense.layer.error.value > 2 * dense.gaussian.error.value
    assert dense.shuffled.error.value > 2 * dense.gaussian.error.value


# --- edges ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 7), (7, 1), (3, 2)])
def test_tiny_layers_have_finite_numbers(shape):
    for matrix in (normal(*shape), torch.ones(*shape), torch.zeros(*shape)):
        for one in reversals(matrix, torch.zeros(shape[0]), own=torch.ones(3, shape[0]), generator=seeded()):
            numbers = [one.ratio.value, *one.interval, one.ratio.p, one.peak, one.peak_bound]
            for measured in (one.layer, one.shuffled, one.gaussian, one.predicted):
                numbers += [measured.error.value, measured.deviation.value, measured.threshold]
                assert measured.error.value <= 1 + 1e-6  # silence costs 1, and is always possible
            assert torch.tensor(numbers).isfinite().all()


def test_a_layer_of_zeros_gives_nothing_back_like_its_controls():
    for one in reversals(torch.zeros(40, 50), None, generator=seeded()):
        for measured in (one.layer, one.shuffled, one.gaussian):
            assert measured.error.value == pytest.approx(1, abs=1e-6)
        assert one.ratio.value == pytest.approx(1, abs=1e-6)
        assert one.interval == pytest.approx((1, 1), abs=1e-6)


def test_a_constant_layer_is_its_own_shuffle():
    for one in reversals(torch.full((40, 50), -0.3), None, generator=seeded()):
        assert one.ratio.value == pytest.approx(1, abs=1e-6)
        assert one.interval[0] <= 1 <= one.interval[1]


@pytest.mark.parametrize("size", [1e-35, 1e-3, 1e35])
def test_the_scale_of_the_weights_does_not_matter(size):
    plain = reversals(normal(40, 60), None, generator=seeded())
    scaled = reversals(size * normal(40, 60), None, generator=seeded())
    for one, other in zip(plain, scaled, strict=True):
        # float32 rounding, which moves a few units across the threshold
        assert other.layer.error.value == pytest.approx(one.layer.error.value, rel=1e-4)
        assert other.ratio.value == pytest.approx(one.ratio.value, rel=1e-3)


def test_silent_data_says_nothing_and_the_generator_everything():
    matrix = normal(40, 60)
    one_active = torch.zeros(5, 40)
    one_active[0, 3] = 1
    plain = reversals(matrix, None, generator=seeded(5))
    assert reversals(matrix, None, own=torch.zeros(5, 40), generator=seeded(5)) == plain
    assert reversals(matrix, None, own=one_active, generator=seeded(5)) == plain
    assert reversals(matrix, None, generator=seeded(6)) != plain
    assert [one.source for one in plain] == ["random"] * len(sparsities(40, 60))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda w: reversals(w[0], None, generator=seeded()),
            r"expected a matrix of .*shape \(6,\); flatten",
        ),
        (lambda w: reversals(w.long(), None, generator=seeded()), "got torch.int64 of shape"),
        (lambda w: reversals(w[:, :0], None, generator=seeded()), r"got torch.float32 of shape \(5, 0\)"),
        (lambda w: reversals(w * torch.nan, None, generator=seeded()), "expected finite weights; got NaN or"),
        (lambda w: reversals(w, w[0], generator=seeded()), r"expected 5 offsets; got shape \(6,\); pass"),
        (lambda w: reversals(w, None, samples=1, generator=seeded()), "expected at least 2 samples; got 1"),
        (lambda w: reversals(w, None, keep=0, generator=seeded()), r"expected keep in \(0, 1\]; got 0"),
        (
            lambda w: reversals(w, None, own=w, generator=seeded()),
            r"≥ 0 of shape draws × 5; got shape \(5, 6\)",
        ),
        (lambda w: reversals(w, None, own=w[:, 1:], generator=seeded()), "expected finite activations ≥ 0"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(BadInput, match=sentence):
        call(normal(5, 6))
