"""memorize: every label right by construction, for data of all kinds; run in plain numpy to see it."""

import json
import sys
from dataclasses import replace
from itertools import groupby
from math import ceil, log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from obverse._core.errors import BadInput, ObverseError
from obverse._core.records import read_record, record_text
from obverse.identity._memorize import (
    QUANTILES,
    Memorized,
    NotMemorized,
    choose_width,
    count_parameters,
    export,
    verify,
)
from obverse.identity._memorize import memorize as memorize_by
from obverse.nets._memory import ResidualMemory

MODULE = sys.modules["obverse.identity._memorize"]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def memorize(x, y, **options) -> ResidualMemory:
    """The net of seed 0, unless another generator is given: tests compare one net with another."""
    return memorize_by(x, y, **{"generator": seeded(), **options})


def scores_of(net: ResidualMemory, x) -> np.ndarray:
    """The forward pass without torch."""
    t = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    h = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) - t["centre"]) @ t["projection"].T + t["offset"]
    for u, s, v in zip(t["inner"], t["shift"], t["outer"], strict=True):
        h = h + np.maximum(h @ u.T + s, 0) @ v.T
    return h @ t["head"].T + t["head_bias"]


def leads_of(net: ResidualMemory, x, y) -> np.ndarray:
    """How far the right score is above the best of the others."""
    scores, rows = scores_of(net, x), np.arange(len(x))
    right = scores[rows, y]
    scores[rows, y] = -np.inf
    return right - scores.max(1)


def numbers(net: ResidualMemory, names: str) -> int:
    return sum(net.state_dict()[name].numel() for name in names.split())


def assert_memorized(net: ResidualMemory, x, y) -> None:
    y = np.asarray(y).astype(int)
    assert leads_of(net, x, y).min() > 0
    facts = net.facts
    assert isinstance(facts, Memorized)
    assert facts.errors == 0
    assert facts.parameters == numbers(net, "inner shift outer head head_bias")
    n, r = len(np.unique(np.asarray(x, dtype=np.float64).reshape(len(x), -1) + 0.0, axis=0)), facts.classes
    assert facts.distinct == n
    assert facts.parameters <= 3 * (n * log(n) + r**2)


# --- data of all kinds -----------------------------------------------------------------------------------


def opposite(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    half = rng.standard_normal((n // 2, d))
    return np.concatenate([half, -half])


def with_zero(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((n, d))
    x[n // 2] = 0
    return x


def with_constants(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((n, d))
    x[:, 1::2] = 7.3
    x[:, 5::6] = 0
    return x


def with_outlier(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((n, d))
    x[0] *= 1e10
    return x


def on_sphere(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


KINDS = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "scales of columns": lambda rng, n, d: rng.standard_normal((n, d)) * 10 ** rng.uniform(-8, 8, d),
    "large means": lambda rng, n, d: 1e9 + rng.standard_normal((n, d)),
    "cauchy": lambda rng, n, d: rng.standard_cauchy((n, d)),
    "log-normal": lambda rng, n, d: np.exp(4 * rng.standard_normal((n, d))),
    "scales of rows": lambda rng, n, d: rng.standard_normal((n, d)) * np.exp(3 * rng.standard_normal((n, 1))),
    "outlier": with_outlier,
    "constant columns": with_constants,
    "sparse binary": lambda rng, n, d: (rng.random((n, d + 40)) < 0.1).astype(np.uint8),
    "counts": lambda rng, n, d: rng.poisson(0.1, (n, d + 30)),
    "line": lambda rng, n, d: rng.standard_normal((n, 1)) * rng.standard_normal((1, d)) + 3,
    "even line": lambda rng, n, d: np.arange(n)[:, None] * np.ones((1, d)),
    "sphere": on_sphere,
    "grid": lambda rng, n, d: rng.integers(-4, 5, (n, d)),
    "x and −x": opposite,
    "zero": with_zero,
    "1e300": lambda rng, n, d: 1e300 * rng.uniform(-1, 1, (n, d)),
    "1e-300": lambda rng, n, d: 1e-300 * rng.uniform(-1, 1, (n, d)),
    "unit vectors": lambda rng, n, d: np.eye(n),
    "steps": lambda rng, n, d: np.tril(np.ones((n, n))),
}


@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_any_real_data_with_random_labels(kind, d):
    rng = np.random.default_rng(d)
    x = np.unique(KINDS[kind](rng, 150, d), axis=0)
    x = x[rng.permutation(len(x))]
    if kind == "sphere" and d == 1:
        assert len(x) == 2
    y = rng.integers(0, 10, len(x))
    net = memorize(x, y, classes=10)
    assert_memorized(net, x, y)
    # well conditioned or not, no lead is lost to rounding: the gaps are 1e-12 and more here
    assert net.facts.margin > 0.9 * net.facts.ideal_margin


@pytest.mark.parametrize("exponent", [6, 8, 10, 12])
def test_one_outlier_does_not_squeeze_the_others(exponent):
    x = torch.randn(100, 3, generator=seeded(), dtype=torch.float64)
    x[17] *= 10.0**exponent
    y = torch.arange(100) % 7
    assert_memorized(memorize(x, y), x, y)


@pytest.mark.parametrize("noise", [1e-6, 1e-10, 1e-14, 1e-17])
@pytest.mark.parametrize("d", [2, 30])
def test_a_column_of_rounding_noise(noise, d):
    """Mostly what rounding left of 0, now and then 1: neither may drown the other columns."""
    rng = np.random.default_rng(d)
    x = rng.standard_normal((300, d + 1))
    x[:, 0] = np.where(rng.random(300) < 0.04, 1, noise * rng.standard_normal(300))
    y = rng.integers(0, 10, 300)
    assert_memorized(memorize(x, y), x, y)


@pytest.mark.parametrize("size", [1e-4, 1e-6])
@pytest.mark.parametrize(("n", "d"), [(60, 1), (1000, 3), (1000, 30)])
def test_two_tight_clusters(n, d, size):
    rng = np.random.default_rng(0)
    x = size * rng.standard_normal((n, d)) + (rng.random((n, 1)) < 0.5)
    y = rng.integers(0, 10, n)
    net = memorize(x, y)
    assert_memorized(net, x, y)
    assert net.width == choose_width(n, 10)  # no narrower net had to be tried
    # In another order of sums too a point comes near its target: no label is a matter of rounding.
    assert leads_of(net, x, y).min() > 0.9 * net.facts.ideal_margin


@pytest.mark.parametrize("large", [1e20, 1e60, 1e150])
def test_sizes_that_one_move_cannot_bridge_are_refused_as_such(large):
    """1e20 can't be moved onto a target of length 1 by one addition; no pair of points is to blame."""
    with pytest.raises(NotMemorized, match="sizes") as caught:
        memorize([[large], [1.0], [2.0]], [0, 1, 0])
    assert "threshold" not in str(caught.value)


@pytest.mark.parametrize("large", [1e155, 1e170, 1e200, 1e300])
@pytest.mark.parametrize("others", [[0.0, 1.0, 2.0], [0.0, 1e-200, 5.0], [1e19, 1.0, 2.0]])
def test_lengths_whose_squares_overflow(large, others):
    x = [[one] for one in (*others, large)]
    for labels in ([0, 0, 1, 0], [0, 1, 1, 0]):
        try:
            net = memorize(x, labels)
        except NotMemorized:
            continue
        assert_memorized(net, x, labels)
        assert np.isfinite(scores_of(net, x)).all()


def test_small_clusters_of_mixed_labels_are_told_apart():
    """30 of 200 points within 1e-10 of each other: near-duplicates of one label and of others."""
    rng = np.random.default_rng(0)
    for size in (1e-6, 1e-8, 1e-9, 1e-10):
        x = rng.standard_normal((200, 3))
        x[:30] = x[0] + size * rng.standard_normal((30, 3))
        y = rng.integers(0, 3, 200)
        assert_memorized(memorize(x, y), x, y)


@pytest.mark.parametrize(
    ("n", "classes"),
    [
        *((n, classes) for n in (1, 2, 3, 4, 10, 40) for classes in (2, 3, 10, 50)),
        (1, 1000),
        (3, 1000),
        (60, 1000),
    ],
)
@pytest.mark.parametrize("d", [1, 5])
def test_few_points_and_any_number_of_classes(n, classes, d):
    x = torch.randn(n, d, generator=seeded(n), dtype=torch.float64)
    y = torch.randint(classes, (n,), generator=seeded(n + 1))
    net = memorize(x, y, classes=classes)
    assert net.classes == classes
    assert_memorized(net, x, y)


def test_classes_are_counted_if_not_given():
    x = torch.randn(6, 2, generator=seeded())
    assert memorize(x, [0, 0, 0, 0, 0, 0]).classes == 2
    assert memorize(x, [0, 0, 1, 0, 0, 0]).classes == 2
    assert memorize(x, [0, 0, 1, 0, 7, 0]).classes == 8
    assert memorize(x, [0, 0, 1, 0, 7, 0], classes=11).classes == 11


@pytest.mark.parametrize("width", [1, 2, 3, 7, 50])
def test_any_width(width):
    x, y = torch.randn(40, 3, generator=seeded()), torch.randint(4, (40,), generator=seeded(1))
    net = memorize(x, y, width=width)
    assert net.width == width
    assert len(net.inner) == ceil(40 / width)
    assert leads_of(net, x, y.numpy()).min() > 0


# --- what may be given -----------------------------------------------------------------------------------


LABELS = [1, 0, 0, 1, 1, 0, 1, 0]


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        tuple(LABELS),
        [bool(one) for one in LABELS],
        np.array(LABELS),
        np.array(LABELS, dtype=bool),
        torch.tensor(LABELS),
        *(np.array(LABELS, dtype=kind) for kind in ("u1", "i1", "u2", "i4", "u4", "u8", ">i8")),
        *(torch.tensor(LABELS, dtype=kind) for kind in (torch.uint8, torch.int32, torch.bool)),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', type(labels[0]))}",
)
def test_labels_of_all_types(labels):
    x = torch.randn(8, 3, generator=seeded())
    net, expected = memorize(x, labels), memorize(x, torch.tensor(LABELS))
    assert net.facts == expected.facts
    assert torch.equal(net(x), expected(x))


@pytest.mark.parametrize(
    "dtype", ["bool", "u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f4", ">f8", ">i4"]
)
def test_points_of_all_types(dtype):
    x = (np.random.default_rng(0).random((30, 12)) * 2).astype(dtype)
    x = np.unique(x, axis=0)
    y = np.arange(len(x)) % 3
    expected = memorize(x.astype(float), y)
    net = memorize(x, y)
    assert net.facts == expected.facts
    assert_memorized(net, x.astype(float), y)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.uint8, torch.bool, torch.int64]
)
def test_tensors_of_all_types_and_the_net_takes_them(dtype):
    x = (torch.rand(30, 3, 2, 2, generator=seeded()) * 2).to(dtype)
    x = torch.unique(x, dim=0)
    y = torch.arange(len(x)) % 3
    net = memorize(x, y)
    assert torch.equal(net(x).argmax(1), y)
    assert_memorized(net, x.double(), y)


def test_lists_are_read_in_double_precision():
    net = memorize([[1.0], [1.0 + 1e-9], [2.0]], [0, 1, 0])
    assert net(torch.tensor([[1.0], [1.0 + 1e-9], [2.0]], dtype=torch.float64)).argmax(1).tolist() == [
        0,
        1,
        0,
    ]
    assert memorize([[1e299], [0.0]], [0, 1]).facts.errors == 0


def test_arrays_however_they_lie_in_memory():
    x = np.random.default_rng(0).standard_normal((20, 6))
    y = np.arange(20) % 3
    expected = memorize(x, y).state_dict()
    fixed = x.copy()
    fixed.flags.writeable = False
    for same in (
        fixed,
        np.asfortranarray(x),
        x[::-1].copy()[::-1],
        list(x),
        x.tolist(),
        torch.from_numpy(x.T.copy()).T,
    ):
        found = memorize(same, y).state_dict()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_images_are_flattened_and_the_net_takes_images():
    x = (torch.rand(50, 3, 4, 4, generator=seeded()) * 256).to(torch.uint8)
    y = torch.randint(10, (50,), generator=seeded(1))
    net = memorize(x, y)
    assert net.facts.inputs == 48
    assert torch.equal(net(x).argmax(1), y)
    flat = memorize(x.flatten(1), y)
    assert torch.equal(net(x), flat(x))


def test_points_that_carry_gradients_are_read():
    x = torch.randn(8, 3, generator=seeded(), requires_grad=True)
    net = memorize(x, LABELS)
    net(x)[:, 0].sum().backward()
    assert x.grad is not None
    assert not any(parameter.requires_grad for parameter in net.parameters())


ROWS = [[0.0, 1.0], [2.0, 3.0]]
NAN, INFINITE = [[0.0, float("nan")], [2.0, 3.0]], [[0.0, 1.0], [-float("inf"), 3.0]]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)),
        (torch.zeros(2, 0), [0, 1]),
        (torch.tensor(1.0), [0]),
        (torch.tensor([1.0, 2.0]), [0, 1]),
        (torch.tensor(1.0), 0),
        (NAN, [0, 1]),
        (INFINITE, [0, 1]),
        (torch.tensor(ROWS) * 1j, [0, 1]),
        (np.array(ROWS) * 1j, [0, 1]),
        ([[0.0, 1.0], [2.0]], [0, 1]),
        ([["a", "b"], ["c", "d"]], [0, 1]),
        (None, [0, 1]),
        ("points", [0, 1]),
        (ROWS, None),
        (ROWS, ["cat", "dog"]),
        (ROWS, [0]),
        (ROWS, [0, 1, 1]),
        (ROWS, [[0], [1]]),
        (ROWS, 0),
        (ROWS, []),
        (ROWS, [0.0, 1.0]),
        (ROWS, [0j, 1j]),
        (ROWS, [0, -1]),
        (ROWS, [0, 2**62]),
        (ROWS, [0, 10**9]),
    ],
)
def test_what_is_no_data_set_is_refused_in_a_sentence(x, y):
    with pytest.raises(BadInput, match=r"expected .+; got .+; .+"):
        memorize(x, y)
    net = memorize(ROWS, [0, 1])
    with pytest.raises(BadInput, match=r"expected .+; got .+; .+"):
        verify(net, x, y)


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": 1}, {"classes": 0}, {"classes": 2.0}, {"classes": True}, {"classes": "2"},
        {"classes": 10**12},
        {"width": 0}, {"width": -1}, {"width": 2.0}, {"width": True}, {"generator": 3},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(BadInput, match=r"expected .+; got .+; .+"):
        memorize(ROWS, [0, 1], **wrong)


def test_too_few_classes_for_the_labels_are_refused():
    with pytest.raises(BadInput, match="at least 8 classes"):
        memorize(ROWS, [0, 7], classes=7)
    with pytest.raises(BadInput, match="at least 3 classes"):
        verify(memorize(ROWS, [0, 1]), ROWS, [0, 2])


# --- duplicates ------------------------------------------------------------------------------------------


def test_duplicates_with_one_label_are_stored_once():
    x = torch.randn(30, 4, generator=seeded())
    y = torch.arange(30) % 4
    twice = torch.cat([x, x.flip(0), x[:5]])
    labels = torch.cat([y, y.flip(0), y[:5]])
    net, single = memorize(twice, labels), memorize(x, y)
    assert_memorized(net, twice, labels)
    assert net.facts.points == 65
    assert net.facts.distinct == 30
    assert net.facts.parameters == single.facts.parameters
    assert net.facts.budget == single.facts.budget


def test_all_points_equal():
    net = memorize(torch.full((9, 3), 2.5), [1] * 9)
    assert (net.facts.points, net.facts.distinct, net.facts.blocks) == (9, 1, 1)
    assert_memorized(net, torch.full((9, 3), 2.5), [1] * 9)


def test_all_points_zero():
    assert_memorized(memorize(torch.zeros(4, 3), [0] * 4), torch.zeros(4, 3), [0] * 4)


def test_duplicates_with_different_labels_are_refused_with_their_indices():
    x = torch.randn(30, 4, generator=seeded())
    x[21] = x[8]
    y = torch.zeros(30, dtype=torch.int64)
    y[21] = 3
    with pytest.raises(BadInput, match=r"equal points 8 and 21 \(labels 0, 3\)"):
        memorize(x, y)
    with pytest.raises(BadInput, match=r"equal points 0 and 1 \(labels 0, 1\)"):
        memorize([[0.0, 1.0], [-0.0, 1.0]], [0, 1])


def pair(n: int, d: int, distance: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Normal points, two of them `distance` apart with different labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    first, second = (int(one) for one in rng.choice(n, 2, replace=False))
    direction = rng.standard_normal(d)
    x[second] = x[first] + distance * direction / np.linalg.norm(direction)
    y = rng.integers(0, 4, n)
    y[second] = (y[first] + 1) % 4
    return x, y, (first, second)


@pytest.mark.parametrize("distance", [1e-3, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10])
@pytest.mark.parametrize(("n", "d"), [(5, 1), (30, 2), (200, 20)])
def test_near_duplicates_with_different_labels_are_told_apart(n, d, distance):
    for seed in range(3):
        x, y, _ = pair(n, d, distance, seed)
        net = memorize(x, y)
        assert_memorized(net, x, y)
        # rounding 1e-16 over a gap of about 1e-12: a lead loses some thousandths at most
        assert net.facts.margin == pytest.approx(leads_of(net, x, y).min(), rel=0.05)
        assert net.facts.margin > 0.9 * net.facts.ideal_margin
        # room for a threshold: ⟨z_i, z_i − z_j⟩/‖z_i‖² ≤ ‖z_i − z_j‖/‖z_i‖
        assert 0 < net.facts.gap < max(100 * distance, 1.0)


@pytest.mark.parametrize("distance", [1e-6, 1e-9, 1e-12, 1e-15])
def test_near_duplicates_of_one_label_are_no_matter(distance):
    for seed in range(3):
        x, y, (first, second) = pair(100, 3, distance, seed)
        y[second] = y[first]
        net = memorize(x, y)
        assert_memorized(net, x, y)
        assert net.facts.margin > 0.9 * net.facts.ideal_margin


def test_near_duplicates_of_one_label_beside_one_of_another():
    rng = np.random.default_rng(0)
    for near, apart in ((1e-15, 1e-6), (1e-15, 1e-9), (1e-12, 1e-9), (1e-10, 1e-10), (1e-9, 1e-10)):
        x = rng.standard_normal((60, 3))
        x[1:4] = x[0] + near * rng.standard_normal((3, 3))
        x[4] = x[0] + apart * rng.standard_normal(3)
        y = rng.integers(0, 4, 60)
        y[1:4], y[4] = y[0], (y[0] + 1) % 4
        assert_memorized(memorize(x, y), x, y)


def names(error: Exception, first: int, second: int) -> bool:
    return f"points {first} and {second}," in str(error) or f"points {second} and {first}," in str(error)


@pytest.mark.parametrize(("n", "d"), [(5, 1), (5, 2), (40, 3), (300, 20)])
def test_points_that_float64_cannot_tell_apart_are_refused_with_their_indices(n, d):
    for seed in range(3):
        x, y, (first, second) = pair(n, d, 0.0, seed)
        x[first, 0], x[second, 0] = 0.0, 1e-25  # beside numbers of size 1 no double shows it
        with pytest.raises(NotMemorized, match="float64 can distinguish") as caught:
            memorize(x, y)
        assert names(caught.value, first, second)


def test_indices_in_a_refusal_count_duplicates_too():
    x = np.random.default_rng(0).standard_normal((40, 3))
    x[:10] = x[10:20]  # ten duplicates come first
    x[30] = x[25]
    x[25, 0], x[30, 0] = 0.0, 1e-25
    y = np.zeros(40, dtype=int)
    y[30] = 1
    with pytest.raises(NotMemorized) as caught:
        memorize(x, y)
    assert names(caught.value, 25, 30)


def test_whole_numbers_beyond_double_precision_are_refused_with_their_indices():
    with pytest.raises(ObverseError, match="points 0 and 2"):
        memorize(np.array([[2**60], [5], [2**60 + 1]]), [0, 1, 1])


@pytest.mark.parametrize("distance", [1e-13, 1e-14, 3e-15, 1e-15, 3e-16])
@pytest.mark.parametrize(("n", "d"), [(30, 2), (200, 20)])
def test_labels_do_not_depend_on_the_batch_size_however_hard_the_pair(n, d, distance):
    """Products round differently for each number of rows: what was built withstands it, or is refused."""
    for seed in range(8):
        x, y, (first, second) = pair(n, d, distance, seed)
        if (x[first] == x[second]).all():
            continue
        try:
            net = memorize(x, y)
        except NotMemorized as error:
            assert names(error, first, second)  # noqa: PT017
            continue
        hard = torch.from_numpy(x[[first, second, *range(11)]])
        expected = y[[first, second, *range(11)]].tolist()
        for size in (1, 2, 3, 7, 13):
            assert torch.cat([net(part) for part in hard.split(size)]).argmax(1).tolist() == expected


def test_hard_pairs_with_a_distance_of_1e_13_are_still_told_apart():
    built = 0
    for seed in range(10):
        x, y, _ = pair(50, 3, 1e-13, seed)
        try:
            assert_memorized(memorize(x, y), x, y)
            built += 1
        except NotMemorized:
            pass
    assert built >= 8  # a direction across the points' own is lost now and then


# --- how many parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 10, 50])
def test_parameters_stay_within_three_budgets(classes):
    for n in range(1, 301):
        k = choose_width(n, classes)

        def counted(width: int, n: int = n) -> int:
            each = width * width + width + width * width  # U, s, V
            return len(range(0, n, width)) * each + classes * width + classes

        assert count_parameters(n, classes, k) == counted(k)
        most = 3 * (n * log(n) + classes**2)
        allowed = [width for width in range(1, max(1, ceil(log(n))) + 1) if counted(width) <= most]
        assert k == max(allowed)
        while k > 1:  # the narrower nets that are tried when this one fails
            k = (k + 1) // 2
            assert counted(k) <= most


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 21, 55, 144, 300])
@pytest.mark.parametrize("classes", [2, 10])
def test_parameters_are_counted_on_the_net(n, classes):
    x = torch.randn(n, 4, generator=seeded(n))
    y = torch.randint(classes, (n,), generator=seeded(n + 1))
    net = memorize(x, y, classes=classes)
    facts = net.facts
    assert facts.width == net.width == choose_width(n, classes)
    assert facts.blocks == len(net.inner)
    assert facts.parameters == numbers(net, "inner shift outer head head_bias") <= 3 * facts.budget
    assert facts.parameters == count_parameters(n, classes, facts.width)
    assert facts.parameters + facts.projection == sum(tensor.numel() for tensor in net.state_dict().values())
    assert facts.constant == facts.parameters / (n * log(n) + classes**2)


# --- what is said of the net -----------------------------------------------------------------------------


def test_every_fact_against_a_value_computed_separately():
    x, y, (first, second) = pair(80, 6, 1e-4)
    x[70], y[70] = x[3], y[3]  # one duplicate
    net = memorize(x, y, classes=5)
    facts = net.facts
    assert (facts.points, facts.distinct, facts.classes, facts.inputs) == (80, 79, 5, 6)
    assert facts.width == 5  # ⌈ln 79⌉
    assert facts.blocks == 16
    assert facts.parameters == 16 * (25 + 5 + 25) + 5 * 5 + 5
    assert facts.projection == 5 * 6 + 5 + 6
    assert facts.budget == pytest.approx(79 * log(79) + 25, rel=1e-15)
    assert facts.errors == 0
    assert facts.dtype == "float64"
    # gaps of 1e-6 and more: rounding over gaps is 1e-10
    assert facts.margin == pytest.approx(leads_of(net, x, y).min(), rel=1e-8)

    head = net.head.numpy()
    radius = 1 / np.linalg.norm(head, axis=1).max()  # rows of the head are q/radius²
    q = head * radius**2
    ideal = min(((q[i] - q[j]) ** 2).sum() / (2 * radius**2) for i in range(5) for j in range(i))
    assert facts.ideal_margin == pytest.approx(ideal, rel=1e-12)

    rows = np.delete(np.arange(80), 70)
    z = (x[rows] - net.centre.numpy()) @ net.projection.numpy().T + net.offset.numpy()
    order = np.argsort(-np.linalg.norm(z, axis=1))
    rooms = {}
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            rooms[int(rows[i]), int(rows[j])] = 1 - (z[i] @ z[j]) / (z[i] @ z[i])
    hardest = min(rooms, key=rooms.get)
    assert set(hardest) == {first, second}
    assert facts.closest == hardest
    assert facts.gap == pytest.approx(
        rooms[hardest], rel=1e-6
    )  # 1e-16 of a number near 1, over a gap of 1e-5

    leads = np.sort(leads_of(net, x, y))
    expected = [leads[round(share * 79)] for share in QUANTILES]
    np.testing.assert_allclose(facts.margins, expected, rtol=1e-8)
    assert (QUANTILES[0], QUANTILES[-1]) == (0, 1)


def test_targets_leave_half_the_room_at_most():
    """Units are silent on targets half as long as the shortest point: of a single point ½ is left."""
    facts = memorize(ROWS[:1], [1]).facts
    assert facts.gap == pytest.approx(0.5, rel=1e-12)
    assert facts.closest == (0, 0)
    assert memorize(np.eye(40), np.arange(40) % 3).facts.gap <= 0.5


def test_targets_are_half_as_long_as_the_shortest_point_and_every_point_ends_on_its_own():
    x, y, _ = pair(80, 6, 1e-2)
    net = memorize(x, y)
    z = (x - net.centre.numpy()) @ net.projection.numpy().T + net.offset.numpy()
    radius = 1 / np.linalg.norm(net.head.numpy(), axis=1).max()
    assert radius == pytest.approx(np.linalg.norm(z, axis=1).min() / 2, rel=1e-10)
    h = net.project(torch.from_numpy(x))
    for index in range(len(net.inner)):
        h = net.block(h, index)
    np.testing.assert_allclose(h.numpy(), (net.head.numpy() * radius**2)[y], atol=1e-9)  # gaps of 1e-4


def test_each_block_moves_its_own_points_and_leaves_all_others_bit_for_bit():
    x, y, _ = pair(83, 4, 1e-3)
    net = memorize(x, y)
    h = net.project(torch.from_numpy(x))
    order = h.norm(dim=1).argsort(descending=True).tolist()
    for index in range(len(net.inner)):
        after = net.block(h, index)
        own = order[index * net.width : (index + 1) * net.width]
        others = [i for i in range(83) if i not in own]
        assert torch.equal(after[others], h[others])
        assert (after[own] != h[own]).any(1).all()
        h = after


def test_facts_are_json_and_come_back(tmp_path):
    x, y, _ = pair(20, 3, 0.1)
    facts = memorize(x, y).facts
    found = json.loads(json.dumps(facts.to_dict(), allow_nan=False))
    assert found["points"] == 20
    assert found["closest"] == list(facts.closest)
    (tmp_path / "facts.json").write_text(record_text(facts, 1))
    assert read_record(tmp_path / "facts.json", Memorized, "memorized data set", 1) == facts


def test_facts_in_a_sentence():
    x, y, _ = pair(1200, 20, 0.1)
    net = memorize(x, y)
    text = str(net.facts)
    assert text.startswith(
        "1,200 of 1,200 points labelled right (100.00 %) by 150 blocks of width 8: 20,436 parameters"
    )
    assert f"{20436 / (1200 * log(1200) + 16):.2f}·(n ln n + r²)" in text
    assert f"margin {net.facts.margin:.3g}" in text


def test_verify_counts_what_is_wrong():
    x, y, _ = pair(60, 4, 0.1)
    net = memorize(x, y)
    assert verify(net, x, y) == replace(net.facts, gap=None, closest=None)  # known to whom builds it
    wrong = y.copy()
    wrong[[3, 14, 15]] = (wrong[[3, 14, 15]] + 1) % 4
    found = verify(net, x, wrong)
    assert found.errors == 3
    assert found.margin == pytest.approx(leads_of(net, x, wrong).min(), rel=1e-9)
    assert found.margin < 0
    assert str(found).startswith("57 of 60 points labelled right (95.00 %)")


def test_verify_on_other_points_speaks_of_those():
    x, y, _ = pair(60, 4, 0.1)
    net = memorize(x, y)
    found = verify(net, np.concatenate([x[:10], x[:3]]), np.concatenate([y[:10], y[:3]]))
    assert (found.points, found.distinct, found.errors) == (13, 10, 0)
    assert found.margin == pytest.approx(leads_of(net, x[:10], y[:10]).min(), rel=1e-9)
    with pytest.raises(BadInput, match="4 numbers each"):
        verify(net, x[:, :3], y)


def test_verify_says_so_when_scores_are_no_numbers():
    x, y, _ = pair(20, 3, 0.1)
    net = memorize(x * 1e250, y).to(torch.float32)
    found = verify(net, x * 1e250, y)  # infinite in float32
    assert found.errors > 0
    json.dumps(found.to_dict(), allow_nan=False)


# --- float32 ---------------------------------------------------------------------------------------------


def test_export_to_float32_is_checked_and_leaves_the_net_alone():
    x, y, _ = pair(200, 20, 0.5)
    net = memorize(x, y)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    copy = export(net, x, y)
    assert {tensor.dtype for tensor in copy.state_dict().values()} == {torch.float32}
    assert copy(torch.from_numpy(x)).argmax(1).tolist() == y.tolist()
    assert copy(torch.from_numpy(x).float()).dtype == torch.float32
    assert copy.facts.dtype == "float32"
    assert copy.facts.errors == 0
    assert 0 < copy.facts.margin < net.facts.ideal_margin * 1.01  # float32 rounding, over gaps of 1e-2
    assert copy.facts.closest == net.facts.closest
    after = net.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert net.facts.dtype == "float64"


@pytest.mark.parametrize("distance", [1e-9, 1e-12])
def test_export_is_refused_where_float32_sees_one_point(distance):
    x, y, (first, second) = pair(60, 5, distance)
    net = memorize(x, y)
    with pytest.raises(NotMemorized, match="float32") as caught:
        export(net, x, y)
    assert names(caught.value, first, second)
    assert "keep the net in float64" in str(caught.value)
    assert leads_of(net, x, y).min() > 0


def test_export_of_what_float32_cannot_hold_is_refused():
    x, y, _ = pair(30, 3, 0.5)
    for size in (1e250, 1e-250):
        with pytest.raises(ObverseError):
            export(memorize(x * size, y), x * size, y)


def test_export_counts_the_labels_that_would_be_wrong():
    x, y, _ = pair(60, 5, 1e-10)
    net = memorize(x, y)
    copy = memorize(x, y).to(torch.float32)
    wrong = int((copy(torch.from_numpy(x)).argmax(1).numpy() != y).sum())
    assert wrong > 0
    with pytest.raises(NotMemorized, match=f"{wrong} of 60"):
        export(net, x, y)


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.bool])
def test_export_to_what_is_no_real_float_is_refused(dtype):
    with pytest.raises(BadInput):
        export(memorize(ROWS, [0, 1]), ROWS, [0, 1], dtype)


# --- randomness, batches, order --------------------------------------------------------------------------


def test_a_net_comes_from_its_generator_alone():
    x, y, _ = pair(60, 4, 0.1)
    state, other = torch.get_rng_state(), np.random.get_state()[1].copy()
    nets = [memorize(x, y, generator=generator) for generator in (seeded(5), seeded(5), seeded(6))]
    assert torch.equal(torch.get_rng_state(), state)
    assert (np.random.get_state()[1] == other).all()
    first, same, different = (net.state_dict() for net in nets)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["projection"], different["projection"])
    generator = seeded(5)
    memorize(x, y, generator=generator)
    again = memorize(x, y, generator=generator).state_dict()  # the stream goes on
    assert not torch.equal(first["projection"], again["projection"])


def test_the_data_are_left_as_they_were():
    x, y, _ = pair(60, 4, 0.1)
    points, labels = torch.from_numpy(x), torch.from_numpy(y)
    before = points.clone(), labels.clone()
    net = memorize(points, labels)
    net(points)
    assert torch.equal(points, before[0])
    assert torch.equal(labels, before[1])
    points.zero_()  # nor does the net hold on to them
    assert leads_of(net, before[0], y).min() > 0


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_of_any_size(size):
    x, y, _ = pair(60, 4, 1e-6)
    net = memorize(x, y)
    points = torch.from_numpy(x)
    found = torch.cat([net(part) for part in points.split(size)])
    # gaps of 1e-8: rounding 1e-16 over the gap, in scores up to 1
    torch.testing.assert_close(found, net(points), rtol=0, atol=1e-5)
    assert found.argmax(1).tolist() == y.tolist()


def test_verify_in_parts_is_verify_at_once(monkeypatch):
    x, y, _ = pair(50, 4, 0.1)
    net = memorize(x, y)
    whole = verify(net, x, y)
    monkeypatch.setattr(MODULE, "ROWS", 7)
    parts = verify(net, x, y)
    assert parts.errors == whole.errors == 0
    assert parts.margin == pytest.approx(whole.margin, rel=1e-9)
    small = memorize(x, y)
    assert_memorized(small, x, y)


def test_points_in_any_order():
    x, y, (first, second) = pair(100, 4, 1e-5)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(100)
        net = memorize(x[order], y[order])
        assert_memorized(net, x[order], y[order])
        assert_memorized(net, x, y)
        assert {int(order[one]) for one in net.facts.closest} == {first, second}


def test_progress_is_told_in_order(monkeypatch):
    monkeypatch.setattr(MODULE, "ROWS", 7)
    x, y, _ = pair(50, 4, 0.1)
    told: list[tuple[int, int, str]] = []
    net = memorize(x, y, progress=lambda *said: told.append(said))
    assert [tensor.sum() for tensor in net.state_dict().values()] == [
        tensor.sum() for tensor in memorize(x, y).state_dict().values()
    ]
    phases = [(name, list(group)) for name, group in groupby(told, key=lambda said: said[2])]
    assert len(phases) >= 2
    for _, group in phases:
        done, total = [one[0] for one in group], {one[1] for one in group}
        assert len(total) == 1
        assert done == sorted(set(done))
        assert all(type(one) is int and 0 <= one <= min(total) for one in done)
        assert done[-1] == min(total) == 50
    assert [name for name, _ in phases] == ["thresholds", "checked points"]
    _, group = phases[-1]
    assert [one[0] for one in group] == [7, 14, 21, 28, 35, 42, 49, 50]
    told.clear()
    verify(net, x, y, progress=lambda *said: told.append(said))
    assert told == group


# --- random small data sets ------------------------------------------------------------------------------


@st.composite
def small_data(draw, element, largest: int = 14):
    d = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[element] * d), min_size=1, max_size=largest))
    labels = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    return rows, labels


def conflicts(rows, labels) -> list[tuple[int, int]]:
    return [
        (rows.index(row), index) for index, row in enumerate(rows) if labels[rows.index(row)] != labels[index]
    ]


@given(small_data(st.integers(-2, 2)))
@settings(max_examples=80)
def test_small_whole_numbers_are_memorized_or_contradict_each_other(data):
    rows, labels = data
    found = conflicts(rows, labels)
    if found:
        with pytest.raises(BadInput, match=f"equal points {found[0][0]} and {found[0][1]} "):
            memorize(rows, labels)
    else:
        assert_memorized(memorize(rows, labels), np.array(rows), labels)


@given(small_data(st.integers(-3, 3).map(lambda whole: 1 + whole * 1e-9)))
@settings(max_examples=60)
def test_near_ties_are_memorized(data):
    """All numbers within 3e-9 of 1, or equal: the scale is the data's own."""
    rows, labels = data
    if not conflicts(rows, labels):
        assert_memorized(memorize(rows, labels), np.array(rows), labels)


@given(small_data(st.sampled_from([0.0, 1e-9, 1e-5, -1e-5, 1.0, -1.0, 1 + 1e-9, 1e3])))
@settings(max_examples=80)
def test_numbers_of_many_sizes_are_memorized(data):
    rows, labels = data
    if not conflicts(rows, labels):
        assert_memorized(memorize(rows, labels), np.array(rows), labels)


@given(small_data(st.floats(allow_nan=False, allow_infinity=False)))
@settings(max_examples=80)
def test_any_doubles_are_memorized_or_refused_in_a_sentence(data):
    rows, labels = data
    try:
        net = memorize(rows, labels)
    except ObverseError as error:
        assert "; got " in str(error)  # noqa: PT017
    else:
        assert not conflicts(rows, labels)
        x = np.array(rows)
        assert scores_of(net, x).argmax(1).tolist() == labels
        assert net.facts.errors == 0


# --- 50,000 points ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fifty_thousand_points_with_random_labels():
    n, r = 50_000, 10
    x = torch.randn(n, 64, generator=seeded())
    y = torch.randint(r, (n,), generator=seeded(1))
    net = memorize(x, y)
    facts = net.facts
    assert (facts.points, facts.distinct, facts.errors) == (n, n, 0)
    assert facts.parameters == numbers(net, "inner shift outer head head_bias") <= 3 * (n * log(n) + r**2)
    order = np.random.default_rng(0).permutation(n)[:2000]
    points = x[order].double().numpy()
    assert leads_of(net, points, y[order].numpy()).min() >= 0.9 * facts.margin
    found = torch.cat([net(part) for part in x.split(4096)])
    assert torch.equal(found.argmax(1), y)
    copy = export(net, x, y)
    assert copy.facts.errors == 0
