"""All tests at once: what is run with which inputs, what is left out and why, and that it is the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.data import load
from obverse.diversity._birthday import birthday_test
from obverse.diversity._features import Features
from obverse.diversity._measure import Pictures, assess
from obverse.diversity._walk import STEPS, STRIPS
from obverse.diversity.results import Diversity

DATA = load("digits")
TRAIN, REAL = DATA.train_x[:500], DATA.test_x[:300]
MATRIX = torch.randn(64, 5, generator=torch.Generator().manual_seed(3))


def decode(z: Tensor) -> Tensor:
    return (z @ MATRIX.T).sigmoid().reshape(-1, 1, 8, 8)


def sampler(count: int, generator: torch.Generator) -> Tensor:
    return decode(torch.randn(count, 5, generator=generator))


def measure(source: Any = sampler, **options: Any) -> tuple[Diversity, Pictures]:
    small = {"samples": 150, "batch_size": 20, "batches": 10, "paths": 8}
    return assess(source, **small | {"generator": torch.Generator().manual_seed(0)} | options)


def reasons(found: Diversity) -> dict[str, str]:
    return {one.what: one.reason for one in found.skipped}


@pytest.fixture(scope="module")
def whole() -> tuple[Diversity, Pictures]:
    return measure(
        train=TRAIN,
        real=REAL,
        decode=decode,
        latent=5,
        labelled=(TRAIN, DATA.train_y[:500], DATA.classes),
    )


def test_with_everything_nothing_is_left_out(whole):
    found, _ = whole
    assert found.skipped == ()
    assert (found.samples, found.train, found.real, found.pool) == (150, 500, 300, None)
    assert found.shape == (1, 8, 8)
    assert found.features == "pixels"
    assert found.memorization is not None
    assert found.memorization.copied is False
    assert found.quality is not None
    assert found.quality_real is not None
    # half of 300 real pictures against the other half: the samples get as many
    assert (found.quality.samples, found.quality.real) == (150, 150)
    assert (found.quality_real.samples, found.quality_real.real) == (150, 150)
    assert found.quality_real.precision.value > found.quality.precision.value, "noise is not like digits"
    assert found.moments is not None
    assert found.moments.inception_score is not None
    assert found.vendi is not None
    assert found.vendi_real is not None
    assert found.vendi.samples == found.vendi_real.samples == 150
    assert found.dimension is not None
    assert found.dimension_real is not None
    # 5 seeds: the estimate is biased and noisy at 150 points, but far from 64
    assert 3 < found.dimension.value < 7
    assert found.smoothness is not None
    assert found.directions is not None
    assert len(found.directions.strengths) == 5
    assert sum(found.directions.shares or ()) == pytest.approx(1)
    assert [one.label for one in found.labels] == list("0123456789")


def test_the_pictures_belong_to_the_numbers(whole):
    found, pictures = whole
    shape = (1, 8, 8)
    assert pictures.samples is not None
    assert pictures.samples.shape == (2, 12, *shape)
    assert pictures.pairs is not None
    assert pictures.nearest is not None
    for pair, close in zip(pictures.pairs, found.birthday.closest, strict=True):
        distance = float((pair[0].double() - pair[1].double()).norm())
        assert distance == pytest.approx(close.distance, rel=1e-12)
    assert found.memorization is not None
    for pair, close in zip(pictures.nearest, found.memorization.closest, strict=False):
        assert float((pair[0].double() - pair[1].double()).norm()) == pytest.approx(close.distance, rel=1e-12)
        assert torch.equal(pair[1], TRAIN[close.training])
    assert pictures.paths is not None
    assert pictures.paths.shape == (STRIPS, STEPS, *shape)
    assert pictures.directions is not None
    assert pictures.directions.shape == (5, STEPS, *shape)
    # the middle of every strip is the same seed
    assert torch.allclose(pictures.directions[:1, STEPS // 2], pictures.directions[:, STEPS // 2], atol=1e-6)
    assert pictures.labels is not None
    assert pictures.labels.shape == (10, STEPS, *shape)


def test_without_data_it_says_what_it_cannot_say():
    found, pictures = measure(TRAIN)
    assert found.pool == 500
    assert found.birthday.threshold.origin == "exact"
    assert set(reasons(found)) == {
        "copies of training images",
        "precision, recall, density, coverage",
        "FID, KID",
        "two-sample test",
        "Vendi score of real data",
        "dimension of the data",
        "paths between seeds, directions",
    }
    assert "the training set was not given" in reasons(found)["copies of training images"]
    assert "without their generator" in reasons(found)["paths between seeds, directions"]
    assert found.vendi is not None
    assert found.dimension is not None
    assert pictures.nearest is None
    assert pictures.paths is None


def test_a_seed_gives_the_same_numbers_and_another_gives_others():
    def once(seed: int) -> Diversity:
        found = measure(real=REAL, generator=torch.Generator().manual_seed(seed))[0]
        return replace(found, seconds=0.0)

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    measure(train=TRAIN, real=REAL, decode=decode, latent=5)
    assert torch.equal(before, torch.get_rng_state())


def test_the_birthday_test_gets_what_was_asked():
    """The same generator, after the samples for the other tests were drawn."""
    generator = torch.Generator().manual_seed(0)
    sampler(150, generator)
    alone = birthday_test(sampler, 20, 10, 1.5, 0.9, generator, show=12)
    found, _ = measure(threshold=1.5, confidence=0.9)
    assert found.birthday.collisions == alone.collisions > 0
    assert found.birthday.support_bound == alone.support_bound
    assert found.birthday.closest == alone.closest


def test_a_pool_keeps_its_samples_for_the_birthday_test():
    """200 samples, all of which the batches need: the other tests take nothing away."""
    found, _ = measure(TRAIN[:200], samples=200)
    assert found.birthday.samples == 200
    assert found.samples == 200


def test_a_memorizing_generator_is_caught_and_held_out_data_is_not():
    train, other, real = DATA.train_x[:600], DATA.train_x[600:900], DATA.train_x[900:1200]
    noise = 0.02 * torch.randn(300, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    copies, _ = measure(train[:300] + noise, train=train, real=real, samples=300)
    fresh, _ = measure(other, train=train, real=real, samples=300)
    assert copies.memorization is not None
    assert copies.memorization.copied
    assert fresh.memorization is not None
    assert not fresh.memorization.copied


def test_few_pictures_again_and_again_are_counted():
    pool = TRAIN[torch.randint(30, (600,), generator=torch.Generator().manual_seed(1))]
    found, _ = measure(pool, real=REAL, batch_size=10, batches=40)
    bound = found.birthday.support_bound
    assert bound is not None
    assert 30 <= bound < 90  # 95 % bound of 30 equal kinds: within 3× at 40 batches


def test_constant_samples_do_not_end_the_other_tests():
    found, _ = measure(torch.ones(200, 1, 8, 8), train=TRAIN, real=REAL)
    assert found.birthday.constant
    assert "differ" in reasons(found)["dimension of the samples"]
    assert found.quality is not None
    assert found.quality.recall.value == 0


def test_a_collapsed_decode_is_left_out_with_the_reason():
    found, _ = measure(decode=lambda z: torch.ones(len(z), 1, 8, 8), latent=5)
    assert "collapsed" in reasons(found)["paths between seeds"]
    assert "Jacobian of 0" in reasons(found)["directions"]


def test_features_are_what_everything_is_compared_by():
    mean = Features("mean", lambda x: x.flatten(1).mean(1, keepdim=True))
    found, _ = measure(real=REAL, features=mean)
    assert found.features == "mean"
    assert found.moments is not None
    assert found.moments.features == 1
    values = sampler(150, torch.Generator().manual_seed(0)).flatten(1).mean(1)
    assert found.birthday.closest[0].distance < float(values.max() - values.min())


def test_wide_features_skip_fid_with_a_way_out():
    wide = Features("wide", lambda x: x.flatten(1).repeat(1, 17))  # 1,088
    found, _ = measure(real=REAL, features=wide)
    assert "compare by an encoder" in reasons(found)["FID, KID"]


def test_every_part_tells_where_it_is():
    told: dict[str, list[tuple[int, int]]] = {}
    measure(
        train=TRAIN,
        real=REAL,
        decode=decode,
        latent=5,
        labelled=(TRAIN, DATA.train_y[:500], DATA.classes),
        progress=lambda done, total, what: told.setdefault(what, []).append((done, total)),
    )
    assert list(told)[:2] == ["birthday test", "classifier"]
    for what in ("copies of training images", "FID, KID", "Vendi score", "paths between seeds", "directions"):
        done, total = told[what][-1]
        assert done == total, what
    assert all(0 <= done <= total for parts in told.values() for done, total in parts)


def test_points_are_no_pictures_and_are_tested_all_the_same():
    x = torch.rand(300, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, pictures = measure(x.numpy(), real=x[:100])
    assert found.shape == (6,)
    assert pictures.samples is not None
    assert pictures.samples.shape == (2, 12, 6)
    assert isinstance(x.numpy(), np.ndarray)


def test_data_may_be_arrays_files_folders_and_functions(tmp_path):
    np.save(tmp_path / "real.npy", REAL.numpy())
    plain, _ = measure(train=TRAIN, real=REAL)
    for train, real in ((TRAIN.numpy(), REAL.numpy()), (TRAIN, tmp_path / "real.npy")):
        found, _ = measure(train=train, real=real)
        assert replace(found, seconds=0.0) == replace(plain, seconds=0.0)
    found, _ = measure(real=sampler)
    assert found.real == 10_000
    assert found.birthday.threshold.origin == "calibrated"


def test_unreadable_pictures_of_the_data_are_told(tmp_path):
    for number, one in enumerate(TRAIN[:30]):
        Image.fromarray((one[0] * 255).byte().numpy()).save(tmp_path / f"{number}.png")
    (tmp_path / "torn.png").write_bytes(b"\x89PNG\r\n\x1a\n nothing")
    found, _ = measure(train=tmp_path, notes=("first",))
    assert found.train == 30
    assert found.notes == ("first", "1 unreadable picture of the train data: torn.png")


def test_another_scale_is_told_and_the_same_is_not():
    assert measure(train=TRAIN, real=REAL)[0].notes == ()
    bytes_, _ = measure(TRAIN * 255, real=REAL, notes=("first",))
    assert bytes_.notes[0] == "first"
    assert bytes_.notes[1].startswith("The values of the samples run from 0 to 255, those of the real data")


def test_a_decode_that_breaks_does_not_end_the_other_tests():
    def broken(z: Tensor) -> Tensor:
        return decode(z) * float("nan")

    found, _ = measure(decode=broken, latent=5, labelled=(TRAIN, DATA.train_y[:500], DATA.classes))
    assert "finite pictures" in reasons(found)["directions for labels"]


def test_a_mixture_is_told_to_jump():
    """Two generators, by the sign of the last number of a seed."""

    def mixed(z: Tensor) -> Tensor:
        return torch.where(z[:, -1:, None, None] > 0, decode(z[:, :5]), 1 - decode(z[:, :5]))

    found, _ = measure(decode=mixed, latent=6, paths=64)
    assert found.smoothness is not None
    assert found.smoothness.walked == 64
    assert found.smoothness.jumping == pytest.approx(32, abs=4 * 4)  # half of 64 ± √16, four of these
    assert found.smoothness.interval[0] > 0


WRONG = [
    ({"samples": 9}, "at least 10 samples"),
    ({"real": REAL[:, :, :4]}, "real data of the shape of the samples, 1×8×8"),
    ({"train": TRAIN[:5]}, "at least 10 pictures of train data"),
    ({"train": TRAIN * float("nan")}, "finite values in the train data"),
    ({"batch_size": 1}, "at least two samples"),
    ({"confidence": 1.0}, r"a confidence in \(0, 1\)"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_input_is_refused(options, said):
    with pytest.raises(BadInput, match=said):
        measure(**options)
