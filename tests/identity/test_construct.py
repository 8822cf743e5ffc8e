"""The parts of Theorem 3's net against loops in numpy: scaling, targets, thresholds, the block lemma."""

from math import pi, sin, sqrt

import numpy as np
import pytest
import torch

from obverse.identity import _construct as construct
from obverse.identity._construct import (
    away_from_zero,
    blocks,
    closest_later,
    largest_silent,
    nearest_target,
    plain_scaling,
    random_projection,
    robust_scaling,
    targets,
)
from obverse.nets._memory import ResidualMemory


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def placed(n: int, width: int, seed: int = 0) -> torch.Tensor:
    """Points in descending norm, none near 0."""
    z = torch.randn(n, width, generator=seeded(seed), dtype=torch.float64)
    z[:, 0] += 3
    return z[z.norm(dim=1).argsort(descending=True)]


def half_way(z: torch.Tensor, radius: float) -> torch.Tensor:
    """A threshold for each point between what it must not answer to and its own answer."""
    return (largest_silent(z, closest_later(z)[0], radius) + z.square().sum(1)) / 2


def parts(n: int, width: int, classes: int = 4, seed: int = 0):
    """z, the class of each point, the targets, thresholds and (U, s, V)."""
    z = placed(n, width, seed)
    radius = float(z.norm(dim=1).min()) / 2
    goals = targets(classes, width, radius, seeded(seed + 1))
    y = torch.randint(classes, (n,), generator=seeded(seed + 2))
    t = half_way(z, radius)
    return z, y, goals, t, blocks(z, goals[y], t)


# --- scaling ---------------------------------------------------------------------------------------------


COLUMNS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "large": lambda rng, n: 1e8 * rng.standard_normal(n),
    "small": lambda rng, n: 1e-8 * rng.standard_normal(n),
    "far": lambda rng, n: 1e9 + rng.standard_normal(n),
    "huge": lambda rng, n: 1e300 * rng.uniform(-1, 1, n),
    "tiny": lambda rng, n: 1e-280 * rng.uniform(-1, 1, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
}


BOTH = pytest.mark.parametrize("scaling", [robust_scaling, plain_scaling])


@pytest.mark.parametrize("n", [10, 41, 500, 4096])
@pytest.mark.parametrize("name", COLUMNS)
def test_robust_scaling_is_the_median_and_half_of_nine_tenths(name, n):
    x = COLUMNS[name](np.random.default_rng(n), n)
    centre, scale = (float(found) for found in robust_scaling(torch.from_numpy(x).unsqueeze(1)))
    # within one rank of the quantiles, as there are several ways to count ranks
    assert abs((x < centre).sum() - (x > centre).sum()) <= 1
    ordered = np.sort(x)
    low, high = int(0.05 * (n - 1)), n - 1 - int(0.05 * (n - 1))
    widest = ordered[min(n - 1, high + 1)] / 2 - ordered[max(0, low - 1)] / 2
    narrowest = ordered[high - 1] / 2 - ordered[low + 1] / 2
    assert narrowest <= scale <= widest


@pytest.mark.parametrize("n", [10, 41, 500, 4096])
@pytest.mark.parametrize("name", COLUMNS)
def test_plain_scaling_against_numpy_in_more_digits(name, n):
    x = COLUMNS[name](np.random.default_rng(n), n)
    centre, scale = (float(found) for found in plain_scaling(torch.from_numpy(x).unsqueeze(1)))
    exact = x.astype(np.longdouble)
    mean, deviation = float(exact.mean()), float(exact.std())
    # Relative rounding 1e-16 of the largest number; at 1e9 ± 1 that is 1e-7 of a deviation.
    share = 1e-12 if name != "far" else 1e-5
    assert scale == pytest.approx(deviation, rel=share)
    assert abs(centre - mean) <= share * deviation


def test_robust_scaling_of_many_rows_is_that_of_some():
    """Quantiles of at least 2048 normal numbers: standard errors 1.25/√2048, and 1.5/√2048 of the scale."""
    x = 3 + torch.randn(9001, 2, generator=seeded(), dtype=torch.float64)
    centre, scale = robust_scaling(x)
    assert (centre - 3).abs().max() < 5 * 1.25 / sqrt(2048)
    assert (scale - 1.645).abs().max() < 5 * 1.5 / sqrt(2048)


def test_one_outlier_does_not_matter_to_robust_scaling():
    x = torch.randn(100, 1, generator=seeded(), dtype=torch.float64)
    before = robust_scaling(x)
    x[int(x.argmax())] = 1e200
    assert all(
        torch.equal(found, expected) for found, expected in zip(robust_scaling(x), before, strict=True)
    )


@BOTH
def test_columns_that_hardly_ever_vary_have_their_standard_deviation(scaling):
    rng = np.random.default_rng(0)
    x = np.zeros((300, 200))
    for column in range(200):  # more than are taken at a time
        x[rng.choice(300, 1 + column % 14, replace=False), column] = rng.uniform(1, 2) * 10.0 ** (
            column - 100
        )
    x[:, 150] = rng.standard_normal(300)  # an ordinary one among them
    x[:, 151] = 4.0  # and a constant one
    centre, scale = scaling(torch.from_numpy(x))
    rare = [column for column in range(200) if column not in (150, 151)]
    exact = x.astype(np.longdouble).std(0).astype(float)
    np.testing.assert_allclose(scale.numpy()[rare], exact[rare], rtol=1e-12)  # rounding in sums of 300
    assert (float(centre[151]), float(scale[151])) == (4.0, 1.0)
    assert 0.5 < float(scale[150]) < 2


@BOTH
@pytest.mark.parametrize("value", [0.0, 7.3, -1e300, 1e-280, 0.1])
def test_a_constant_column_has_scale_one(scaling, value):
    centre, scale = scaling(torch.full((50, 1), value, dtype=torch.float64))
    assert float(centre) == pytest.approx(value, rel=1e-14)
    assert float(scale) == 1.0


@BOTH
def test_scales_have_an_inverse(scaling):
    """Numbers so small that they count as nothing."""
    x = torch.tensor([[0.0, 1e-310], [5e-324, 0.0], [1e-300, 3e-310]], dtype=torch.float64)
    _, scale = scaling(x)
    assert (scale > 0).all()
    assert torch.isfinite(1 / scale).all()


@BOTH
@pytest.mark.parametrize("n", [1, 2, 3])
def test_scaling_of_few_points(scaling, n):
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]], dtype=torch.float64)[:n]
    centre, scale = scaling(x)
    assert x[:, 0].min() <= centre[0] <= x[:, 0].max()
    expected = 1.0 if n == 1 else float((x[:, 0].max() - x[:, 0].min()) / 2)
    if n == 3 and scaling is plain_scaling:
        expected = sqrt(26 / 3)  # (1, 3, 8) about 4
    assert float(scale[0]) == pytest.approx(expected, rel=1e-12)
    assert (float(centre[1]), float(scale[1])) == (5.0, 1.0)


@BOTH
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.float32])
def test_scaling_takes_all_types_and_answers_in_float64(scaling, dtype):
    x = (torch.rand(40, 3, generator=seeded()) * 200).to(dtype)
    x[:, 1] = 0
    x[0, 1] = 1
    before = x.clone()
    for found, expected in zip(scaling(x), scaling(x.double()), strict=True):
        assert found.dtype == torch.float64
        assert torch.equal(found, expected)
    assert torch.equal(x, before)


# --- first layer -----------------------------------------------------------------------------------------


def test_random_projection_keeps_lengths_on_average():
    v = torch.tensor([3.0, 0.0, -4.0], dtype=torch.float64)
    generator, draws, width = seeded(), 2000, 4
    lengths = torch.stack([(random_projection(3, width, generator) @ v).square().sum() for _ in range(draws)])
    # ‖Pv‖² is ‖v‖²·χ²_k/k: standard deviation ‖v‖²·√(2/k), its mean over the draws five standard errors wide
    assert abs(float(lengths.mean()) - 25) < 5 * 25 * sqrt(2 / width) / sqrt(draws)
    assert random_projection(3, 5, generator).shape == (5, 3)


def test_away_from_zero_goes_as_far_as_told_and_chooses_well():
    z = torch.randn(50, 3, generator=seeded(), dtype=torch.float64)
    chosen = [away_from_zero(z, 1.1, seeded(seed)) for seed in range(50)]
    single = [away_from_zero(z, 1.1, seeded(seed), tries=1) for seed in range(50)]
    for offset in chosen + single:
        assert float(offset.norm()) == pytest.approx(1.1, rel=1e-12)

    def smallest(offset):
        return np.linalg.norm(z.numpy() + offset.numpy(), axis=1).min()

    # The best of 16 falls below the median of one draw with chance 2⁻¹⁶, one of 50 such with 8e-4.
    assert min(map(smallest, chosen)) > np.median([smallest(offset) for offset in single])


@pytest.mark.parametrize("width", [1, 2, 3, 8])
@pytest.mark.parametrize("classes", [2, 3, 10, 50])
def test_targets_are_short_and_apart(width, classes):
    found = targets(classes, width, 0.7, seeded()).numpy()
    assert found.shape == (classes, width)
    assert np.linalg.norm(found, axis=1).max() == pytest.approx(0.7, rel=1e-12)
    closest = min(np.linalg.norm(found[i] - found[j]) for i in range(classes) for j in range(i))
    if width == 1:
        assert closest == pytest.approx(2 * 0.7 / (classes - 1), rel=1e-9)  # evenly on the segment
    elif width == 2:
        assert closest == pytest.approx(
            2 * 0.7 * sin(pi / classes), rel=1e-9
        )  # the side of a regular polygon
    else:
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.7, rtol=1e-12)
        rng, single = np.random.default_rng(0), []
        for _ in range(20):
            q = rng.standard_normal((classes, width))
            q *= 0.7 / np.linalg.norm(q, axis=1, keepdims=True)
            single.append(min(np.linalg.norm(q[i] - q[j]) for i in range(classes) for j in range(i)))
        assert closest > np.median(single)  # the best of many sets against one


@pytest.mark.parametrize("classes", [1000, 1001])
def test_targets_of_many_classes_are_distinct(classes):
    found = targets(classes, 5, 1.0, seeded())
    assert found.shape == (classes, 5)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(classes, dtype=torch.float64))
    assert float(torch.nn.functional.pdist(found).min()) > 1e-3  # about r^{−2/(k−1)}: 0.02


# --- thresholds ------------------------------------------------------------------------------------------


def by_loop(z: torch.Tensor) -> tuple[list[float], list[int]]:
    rows, values, indices = z.numpy(), [], []
    for i in range(len(rows)):
        best, which = -np.inf, i
        for j in range(i + 1, len(rows)):
            if rows[i] @ rows[j] > best:
                best, which = rows[i] @ rows[j], j
        values.append(best)
        indices.append(which)
    return values, indices


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 40])
@pytest.mark.parametrize("entries", [1, 33, 40, 68, 85, 200, 2**25])
def test_closest_later_is_found_by_looking_at_all_pairs(n, entries, monkeypatch):
    """With few entries at a time, chunks of 1, 2, 4, 5, … rows: boundaries fall everywhere."""
    monkeypatch.setattr(construct, "ENTRIES", entries)
    z = placed(n, 3)
    value, index = closest_later(z)
    values, indices = by_loop(z)
    np.testing.assert_allclose(value.numpy(), values, rtol=1e-13)  # three products, in another order
    assert index.tolist() == indices


def test_closest_later_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(construct, "ENTRIES", 80)
    told: list[int] = []
    z = placed(40, 3)
    value, index = closest_later(z, told.append)
    assert told == list(range(2, 41, 2))
    for found, expected in zip((value, index), closest_later(z), strict=True):
        assert torch.equal(found, expected)


def test_closest_later_where_all_products_are_negative():
    z = torch.tensor([[3.0, 0.0], [-1.0, 2.5], [-1.0, -2.0]], dtype=torch.float64)
    value, index = closest_later(z)
    assert value.tolist() == [-3.0, -4.0, -torch.inf]
    assert index.tolist() == [1, 2, 2]


@pytest.mark.parametrize(("n", "width"), [(1, 1), (1, 4), (5, 1), (60, 2), (60, 5)])
def test_thresholds_lie_between_what_must_be_silent_and_what_must_answer(n, width):
    z, _, goals, t, _ = parts(n, width)
    rows, q = z.numpy(), goals.numpy()
    for i in range(n):
        assert t[i] < rows[i] @ rows[i]
        for j in range(i + 1, n):
            assert rows[i] @ rows[j] < t[i]
        for target in q:
            assert rows[i] @ target < t[i]


def test_silence_is_the_worst_of_later_points_and_targets():
    z = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    # ⟨z_0, z_1⟩ = 12; for the others the targets decide: 3·1 and 2·1
    assert largest_silent(z, closest_later(z)[0], 1.0).tolist() == [12.0, 3.0, 2.0]
    assert largest_silent(z, closest_later(z)[0], 4.0).tolist() == [16.0, 12.0, 8.0]


# --- the block lemma -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "width"), [(60, 5), (61, 5), (64, 5), (12, 12), (7, 12), (40, 2), (9, 1), (1, 3)]
)
def test_each_block_moves_its_points_onto_their_targets_and_no_other(n, width):
    z, y, goals, _, (inner, shift, outer) = parts(n, width)
    assert len(inner) == len(range(0, n, width))
    net = ResidualMemory(
        {
            "centre": torch.zeros(width, dtype=torch.float64),
            "projection": torch.eye(width, dtype=torch.float64),
            "offset": torch.zeros(width, dtype=torch.float64),
            "inner": inner, "shift": shift, "outer": outer,
            "head": goals, "head_bias": torch.zeros(len(goals), dtype=torch.float64),
        }
    )  # fmt: skip
    h = net.project(z)
    assert torch.equal(h, z)
    for index in range(len(inner)):
        own = range(index * width, min(n, (index + 1) * width))
        others = [i for i in range(n) if i not in own]
        after = net.block(h, index)
        assert torch.equal(after[others], h[others])  # bit for bit
        # Gaps are 1e-5 and more here: rounding 1e-16, divided by the gap once for each of the block's units
        torch.testing.assert_close(after[own], goals[y[own]], rtol=0, atol=1e-8)
        for i in own:
            moved = z[i].numpy() + outer[index].numpy() @ np.maximum(
                inner[index].numpy() @ z[i].numpy() + shift[index].numpy(), 0
            )
            np.testing.assert_allclose(moved, goals[y[i]].numpy(), atol=1e-8)
        h = after
    torch.testing.assert_close(h, goals[y], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("n", "width"), [(60, 5), (61, 5), (7, 12)])
def test_answers_are_triangular_and_rows_of_u_are_the_points(n, width):
    z, _, _, t, (inner, shift, outer) = parts(n, width)
    rows = inner.reshape(-1, width)
    assert torch.equal(rows[:n], z)
    assert not rows[n:].any()  # units of weight 0 fill the last block
    assert torch.equal(shift.reshape(-1)[:n], -t)
    for block in range(len(inner)):
        for unit in range(width):
            i = block * width + unit
            for point in range(width):
                j = block * width + point
                if i < n and j < n:
                    answer = max(0.0, float(z[i].numpy() @ z[j].numpy() - t[i].numpy()))
                    assert answer > 0 if i == j else answer == 0 or j < i
    spare = n - len(inner) * width
    if spare:
        assert not outer[-1, :, spare:].any()


def test_targets_are_never_moved_by_a_block():
    _, _, goals, _, (inner, shift, _) = parts(60, 5)
    for q in goals.numpy():
        for u, s in zip(inner.numpy(), shift.numpy(), strict=True):
            assert not np.maximum(u @ q + s, 0).any()


# --- class scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_largest_score_is_that_of_the_nearest_target(width):
    goals = targets(7, width, 0.7, seeded())
    head, bias = nearest_target(goals)
    h = torch.randn(500, width, generator=seeded(1), dtype=torch.float64).numpy()
    scores = h @ head.numpy().T + bias.numpy()
    nearest = [min(range(7), key=lambda j: float(((one - goals[j].numpy()) ** 2).sum())) for one in h]
    assert scores.argmax(1).tolist() == nearest
    # a lead is half the difference of squared distances, in radii
    squares = ((h[:, None] - goals.numpy()) ** 2).sum(2) / (2 * 0.7**2)
    lead = scores[:, 0] - scores[:, 1]
    np.testing.assert_allclose(
        lead, squares[:, 1] - squares[:, 0], atol=1e-12
    )  # rounding of numbers up to 50
