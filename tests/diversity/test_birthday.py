"""The birthday test on generators whose answer is known: what it counts, keeps, refuses and says."""

from __future__ import annotations

import json
from itertools import combinations
from itertools import count as count_from
from math import comb

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse._core.statistics import clopper_pearson, lower_limit
from obverse.diversity._birthday import birthday_test
from obverse.diversity._bounds import effective_support_bound, support_at_least


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def on_points(count: int):
    """The uniform law on so many points of the plane, with whole coordinates."""

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        number = torch.randint(count, (n,), generator=generator)
        return torch.stack([number % 1000, number // 1000], 1).float()

    return sampler


def diffuse(n: int, generator: torch.Generator) -> torch.Tensor:
    """No two samples are alike: 64 random bits each."""
    return torch.rand(n, 4, generator=generator, dtype=torch.float64)


class Recorder:
    """A sampler that remembers what it gave."""

    def __init__(self, sampler) -> None:
        self.sampler = sampler
        self.given: list[torch.Tensor] = []

    def __call__(self, n: int, generator: torch.Generator) -> torch.Tensor:
        self.given.append(self.sampler(n, generator))
        return self.given[-1]


def equal_pairs(batch: torch.Tensor) -> int:
    rows = [tuple(row) for row in batch.tolist()]
    return sum(one == other for one, other in combinations(rows, 2))


def test_every_number_by_hand():
    sampler = Recorder(on_points(300))
    found = birthday_test(sampler, batch_size=20, batches=12, generator=seeded())
    assert [len(batch) for batch in sampler.given] == [20] * 12
    pairs = [equal_pairs(batch) for batch in sampler.given]
    collisions = sum(count > 0 for count in pairs)
    assert 0 < collisions < 12
    assert (found.collisions, found.batches, found.batch_size) == (collisions, 12, 20)
    assert found.collision_probability == collisions / 12
    assert found.interval == clopper_pearson(collisions, 12, 0.95)
    assert found.support_bound == effective_support_bound(lower_limit(collisions, 12, 0.95), 20)
    assert found.printed_bound >= found.support_bound
    assert found.support_at_least is None
    assert (found.effective.pairs, found.effective.of) == (sum(pairs), 12 * comb(20, 2))
    assert found.samples == 240
    assert found.threshold.origin == "exact"
    assert not found.constant
    assert "effectively at most" in str(found)


def test_the_closest_pairs_are_kept_with_their_pictures():
    sampler = Recorder(lambda n, generator: torch.rand(n, 1, 3, 3, generator=generator))
    found = birthday_test(sampler, batch_size=15, batches=6, threshold=0.3, show=7, generator=seeded())
    true = sorted(
        (float((batch[i].double() - batch[j].double()).norm()), number, i, j)
        for number, batch in enumerate(sampler.given)
        for i, j in combinations(range(15), 2)
    )[:7]
    assert [(pair.batch, pair.first, pair.second) for pair in found.closest] == [one[1:] for one in true]
    np.testing.assert_allclose(
        [pair.distance for pair in found.closest], [one[0] for one in true], rtol=1e-14
    )
    assert found.pictures.shape == (7, 2, 1, 3, 3)
    for picture, (_, number, i, j) in zip(found.pictures, true, strict=True):
        assert torch.equal(picture, sampler.given[number][[i, j]])


def test_no_collision():
    found = birthday_test(diffuse, batch_size=50, batches=10, generator=seeded())
    assert found.collisions == 0
    assert found.support_bound is None
    assert found.printed_bound is None
    assert found.effective.value is None
    assert found.support_at_least == support_at_least(50, 10, 0.95)
    assert str(found).startswith("no collision seen: the support is at least")


def test_one_picture_over_and_over():
    found = birthday_test(lambda n, generator: torch.ones(n, 1, 2, 2), batch_size=10, batches=4)
    assert found.constant
    assert found.collisions == 4
    assert found.effective.value == 1
    assert "the same picture" in str(found)


def test_two_pictures_are_not_constant():
    """Each batch is constant, but not the same as the next."""
    values = iter([0.0, 1.0])
    found = birthday_test(lambda n, generator: torch.full((n, 2), next(values)), batch_size=10, batches=2)
    assert not found.constant


def test_the_batch_grows_until_collisions_appear():
    few = birthday_test(on_points(500), batches=20, generator=seeded())
    many = birthday_test(on_points(50_000), batches=20, generator=seeded())
    assert few.batch_size < many.batch_size
    for found, true in ((few, 500), (many, 50_000)):
        assert found.collisions > 0
        assert found.support_bound >= true  # at these seeds; coverage is measured elsewhere
        assert found.samples > found.batch_size * found.batches  # the trials are counted


def test_without_collisions_it_ends_with_the_budget():
    sampler = Recorder(diffuse)
    found = birthday_test(sampler, batches=10, budget=5000, generator=seeded())
    drawn = sum(map(len, sampler.given))
    assert found.samples == drawn <= 5000
    assert found.batches == 10
    assert found.batch_size * 10 > 5000 / 3  # most of it went into batches that count
    assert found.support_at_least == support_at_least(found.batch_size, 10, 0.95)


def test_the_trial_batches_do_not_count():
    """The size is chosen by what trials show: what counts is drawn afterwards."""
    sampler = Recorder(on_points(1000))
    found = birthday_test(sampler, batches=30, generator=seeded())
    counted = sampler.given[-30:]
    assert {len(batch) for batch in counted} == {found.batch_size}
    assert found.collisions == sum(equal_pairs(batch) > 0 for batch in counted)
    assert len(sampler.given) > 30


def test_a_pool_gives_disjoint_batches():
    """1,000 samples that all differ: no collision, which drawing with replacement would show."""
    pool = torch.arange(1000.0)
    found = birthday_test(pool, batch_size=100, batches=10, generator=seeded())
    assert found.collisions == 0
    with pytest.raises(BadInput, match="samples"):
        birthday_test(pool, batch_size=100, batches=11, generator=seeded())


@pytest.mark.parametrize("batches", [None, 5, 20])
def test_a_pool_is_never_overdrawn(batches):
    for size in (60, 100, 1000, 5000):
        found = birthday_test(torch.arange(float(size)), batches=batches, generator=seeded())
        assert found.samples <= size
        assert found.collisions == 0
        repeating = birthday_test(torch.arange(float(size)) % 50, batches=batches, generator=seeded())
        assert repeating.samples <= size


def test_a_pool_that_repeats_itself():
    kinds = torch.randint(200, (4000,), generator=seeded(5)).float()
    found = birthday_test(kinds, generator=seeded())
    assert found.collisions > 0
    assert 100 < found.support_bound < 2000


def test_features_decide_what_is_the_same():
    whole = birthday_test(diffuse, batch_size=30, batches=5, generator=seeded())
    rounded = birthday_test(
        diffuse, batch_size=30, batches=5, features=lambda x: (4 * x[:, :2]).floor(), generator=seeded()
    )
    assert whole.collisions == 0
    assert rounded.collisions == 5  # 16 cells, 30 samples
    assert rounded.pictures.shape[-1] == 4  # the samples, not their features


def test_near_duplicates_far_from_the_origin():
    """Ten centres 1e4 away with noise of 1e-2: squared distances are rounding noise in float32 products."""
    centres = 1e4 * torch.randn(10, 50, generator=seeded(1))

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        rows = torch.randint(10, (n,), generator=generator)
        return centres[rows] + 0.01 * torch.randn(n, 50, generator=generator)

    strict = birthday_test(sampler, batch_size=8, batches=20, threshold=0.0, generator=seeded())
    near = birthday_test(sampler, batch_size=8, batches=20, threshold=1.0, generator=seeded())
    assert strict.collisions == 0
    assert near.collisions > 10
    kinds = [
        len({int((centres - row).norm(dim=1).argmin()) for row in batch}) < 8
        for batch in (lambda g: [sampler(8, g) for _ in range(20)])(seeded())
    ]
    assert near.collisions == sum(kinds)


def test_a_threshold_from_real_data():
    """Held-out real data pass; a generator with few pictures, blurred, does not."""
    real = torch.rand(2000, 3, generator=seeded(1), dtype=torch.float64)
    fresh = torch.rand(2000, 3, generator=seeded(2), dtype=torch.float64)
    kept = torch.rand(40, 3, generator=seeded(3), dtype=torch.float64)

    def collapsed(n: int, generator: torch.Generator) -> torch.Tensor:
        rows = torch.randint(len(kept), (n,), generator=generator)
        return kept[rows] + 1e-4 * torch.randn(n, 3, generator=generator, dtype=torch.float64)

    honest = birthday_test(fresh, batch_size=40, batches=40, real=real, generator=seeded())
    caught = birthday_test(collapsed, batch_size=40, batches=40, real=real, generator=seeded())
    assert honest.threshold.origin == "calibrated"
    assert honest.threshold.distance > 4e-4
    # 5 % of real batches collide by chance: more than 8 of 40 has probability 5e-5.
    assert honest.collisions <= 8
    assert caught.collisions == 40
    assert 40 <= caught.support_bound < 4000
    assert caught.p_real < 1e-6 < 0.001 < honest.p_real


def test_it_is_the_same_for_the_same_seed():
    one, two = (birthday_test(on_points(2000), batches=10, generator=seeded(4)) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert torch.equal(one.pictures, two.pictures)
    other = birthday_test(on_points(2000), batches=10, generator=seeded(5))
    assert other.to_dict() != one.to_dict()
    state = torch.random.get_rng_state()
    birthday_test(on_points(100), batch_size=10, batches=2, generator=seeded())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_it_is_written_as_json():
    for sampler in (on_points(50), diffuse):
        found = birthday_test(sampler, batch_size=20, batches=4, generator=seeded())
        again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert again["collisions"] == found.collisions
        assert "pictures" not in again


def test_progress_is_told():
    calls: list[tuple[int, int, str]] = []
    birthday_test(on_points(50), batch_size=5, batches=3, progress=lambda *told: calls.append(told))
    assert calls[-1] == (3, 3, "birthday test")


def test_nothing_to_show():
    found = birthday_test(on_points(50), batch_size=20, batches=3, show=0, generator=seeded())
    assert found.closest == ()
    assert len(found.pictures) == 0
    assert found.collisions == 3


def broken_after(count: int):
    calls = count_from(1)

    def sampler(n: int, generator: torch.Generator) -> torch.Tensor:
        return torch.full((n, 2), float("nan") if next(calls) > count else 1.0)

    return sampler


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: birthday_test(torch.rand(1, 3)), "at least two"),
        (lambda: birthday_test(torch.rand(3, 2), batches=5), "samples"),
        (lambda: birthday_test(torch.rand(10, 3), batch_size=6, batches=2), "samples"),
        (lambda: birthday_test(torch.tensor([[1.0], [float("nan")]])), "NaN"),
        (lambda: birthday_test(broken_after(2), batch_size=5, batches=5), "NaN"),
        (lambda: birthday_test([torch.rand(2), torch.rand(3)]), "list"),
        (lambda: birthday_test(diffuse, batch_size=1), "at least two"),
        (lambda: birthday_test(diffuse, batch_size=5, batches=0), "one batch"),
        (lambda: birthday_test(diffuse, batch_size=5, threshold=-1.0), "threshold"),
        (lambda: birthday_test(diffuse, batch_size=5, threshold=float("nan")), "threshold"),
        (lambda: birthday_test(diffuse, batch_size=5, confidence=1.0), "confidence"),
        (lambda: birthday_test(diffuse, budget=1), "budget"),
        (lambda: birthday_test(diffuse, batch_size=5, real=torch.ones(10, 4)), "same"),
        (lambda: birthday_test(diffuse, batch_size=5, real=torch.rand(10, 4), level=2.0), "level"),
        (lambda: birthday_test(diffuse, batch_size=5, features=lambda x: x * float("nan")), "NaN"),
    ],
)
def test_refused(call, said):
    with pytest.raises(BadInput, match=said):
        call()


def test_a_sampler_that_repeats_its_batches_is_refused():
    kept = diffuse(5000, seeded())
    with pytest.raises(BadInput, match="the same 50 times"):
        birthday_test(lambda n, generator: kept[:n])
    with pytest.raises(BadInput, match="the same 3 times"):
        birthday_test(lambda n, generator: kept[:n], 10, 3)
    birthday_test(on_points(1), 10, 3)  # one picture over and over is another matter


def test_small_pools_and_little_real_data():
    assert birthday_test(diffuse(2, seeded())).batch_size == 2
    assert birthday_test(diffuse(7, seeded())).batches == 3
    found = birthday_test(diffuse, real=diffuse(50, seeded(1)))
    assert found.batch_size <= 11  # C(11, 2) = 55 ≤ 0.05·C(50, 2) < C(12, 2)
    assert found.threshold.level <= 0.05
    with pytest.raises(BadInput, match="50 points, good for batches of 11"):
        birthday_test(diffuse, 12, 5, real=diffuse(50, seeded(1)))


def test_real_data_of_another_shape_is_refused():
    with pytest.raises(BadInput, match="samples of 3 values, as the real data; got 4"):
        birthday_test(diffuse, real=torch.rand(50, 3, generator=seeded()))


def test_samples_that_differ_in_their_last_digits_are_different():
    found = birthday_test(1 + 1e-12 * torch.arange(200, dtype=torch.float64))
    assert found.collisions == 0


def test_a_threshold_that_is_given_needs_no_calibration():
    points = diffuse(200, seeded())
    found = birthday_test(points, 10, 5, threshold=0.1, real=diffuse(200, seeded(1)), generator=seeded())
    assert found.threshold.origin == "given"
    assert found.to_dict() == birthday_test(points, 10, 5, threshold=0.1, generator=seeded()).to_dict()
