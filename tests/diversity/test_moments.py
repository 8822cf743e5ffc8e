"""FID, KID and the inception score through torchmetrics, against numpy, scipy and plain loops."""

from __future__ import annotations

import sys
from urllib.error import URLError

import numpy as np
import pytest
import torch
from scipy.linalg import sqrtm
from torch import nn

from obverse._core.errors import BadInput, MissingExtra
from obverse.diversity._moments import frechet_distance, inception, inception_score, kernel_distance, moments

pytest.importorskip("torchmetrics")


def normal(count, width, seed):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def plain_fid(samples, real):
    a, b = samples.double().numpy(), real.double().numpy()
    one, other = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = sqrtm(one @ other)
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(one + other - 2 * root.real))


def plain_kid(samples, real):
    """The unbiased estimate, pair by pair."""
    a, b = samples.double().numpy(), real.double().numpy()

    def kernel(x, y):
        return (x @ y / len(x) + 1) ** 3

    n = len(a)
    own = sum(kernel(a[i], a[j]) + kernel(b[i], b[j]) for i in range(n) for j in range(n) if i != j)
    cross = sum(kernel(x, y) for x in a for y in b)
    return own / (n * (n - 1)) - 2 * cross / n**2


@pytest.mark.parametrize(("shift", "offset"), [(0.0, 0.0), (0.7, 0.0), (0.3, 1e4)])
def test_fid_against_scipy(shift, offset):
    samples, real = 1.3 * normal(200, 6, 1) + shift + offset, normal(150, 6, 2) + offset
    # float64, and a root of a product of covariances; `offset` shows that large means cost no digits
    assert frechet_distance(samples, real) == pytest.approx(plain_fid(samples, real), rel=1e-7)


def test_fid_of_two_gaussians_is_known():
    """N(0, I) and N(m, 4I) in 3 dimensions: ‖m‖² + 3(1 − 2)²; 40,000 samples err by about 1 %."""
    found = frechet_distance(2 * normal(40_000, 3, 1) + torch.tensor([1.0, 0.0, 2.0]), normal(40_000, 3, 2))
    assert found == pytest.approx(8, rel=0.04)


def test_fid_of_a_set_with_itself_is_0():
    points = normal(50, 5, 0)
    assert frechet_distance(points, points) == pytest.approx(0, abs=1e-6)


def test_fid_of_some_rows():
    samples, real = normal(60, 4, 1), normal(50, 4, 2)
    some, half = torch.arange(0, 60, 2), torch.arange(25)
    found = frechet_distance(samples, real, some, half)
    assert found == pytest.approx(plain_fid(samples[some], real[half]), rel=1e-7)


def test_kid_is_the_mean_over_disjoint_blocks():
    samples, real = normal(200, 4, 1) + 0.3, normal(240, 4, 2)
    found, blocks = kernel_distance(samples, real, seeded())
    random = seeded()
    mine, theirs = torch.randperm(200, generator=random), torch.randperm(240, generator=random)
    parts = [plain_kid(samples[mine[i : i + 20]], real[theirs[i : i + 20]]) for i in range(0, 200, 20)]
    assert blocks == 10
    assert found.value == pytest.approx(np.mean(parts), rel=1e-9)
    assert found.error == pytest.approx(np.std(parts, ddof=1) / 10**0.5, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_kid_has_an_honest_error(shift):
    """Over 60 trials it spreads as its error says (a spread is known to 1/√118 = 9 %: four of these)."""
    found = [
        kernel_distance(normal(200, 4, seed) + shift, normal(200, 4, 900 + seed), seeded())[0]
        for seed in range(60)
    ]
    values = np.array([one.value for one in found])
    error = np.sqrt(np.mean([one.error**2 for one in found]))
    assert np.std(values, ddof=1) / error == pytest.approx(1, abs=0.37)
    if shift == 0:  # no bias: within four standard errors of 0
        assert abs(values.mean()) < 4 * error / 60**0.5


def test_large_sets_have_more_blocks():
    _, blocks = kernel_distance(normal(12_500, 2, 1), normal(13_000, 2, 2), seeded())
    assert blocks == 13


def test_inception_score_against_the_definition():
    logits = 3 * normal(1000, 5, 0)
    found = inception_score(logits, seeded())
    probability = torch.softmax(logits.double(), 1).numpy()
    whole = np.exp((probability * np.log(probability / probability.mean(0))).sum(1).mean())
    # splits of 100 see their own mean: the score is lower by about (classes − 1)/2n = 2 %
    assert found.value == pytest.approx(whole, rel=0.05)
    assert 0 < found.error < 0.1


def test_inception_score_of_sure_and_even_classes_is_their_number():
    logits = 1e4 * torch.eye(4).repeat(500, 1)  # softmax is 0 and 1 exactly in float64
    # splits are drawn: in one of 200 samples classes are even to about √(3/200), and that counts in squares
    assert inception_score(logits, seeded()).value == pytest.approx(4, rel=0.02)
    assert inception_score(torch.ones(100, 4), seeded()).value == pytest.approx(1, abs=1e-12)


def test_samples_of_the_same_distribution_are_at_the_floor():
    found = [moments(normal(300, 8, seed), normal(600, 8, 700 + seed)) for seed in range(20)]
    above = np.array([one.at_floor - one.floor for one in found])
    # four standard errors of the mean
    assert abs(above.mean()) < 4 * above.std(ddof=1) / 20**0.5
    assert all(one.floor > 0.05 for one in found)  # the bias is there
    worse = moments(normal(300, 8, 1) + 0.3, normal(600, 8, 2))
    assert worse.at_floor - worse.floor > 4 * above.std(ddof=1)
    assert worse.size == 300


def test_nothing_depends_on_the_global_state_nor_touches_it():
    samples, real, logits = normal(100, 4, 1), normal(100, 4, 2), normal(100, 3, 3)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = moments(samples, real, logits=logits, generator=seeded(5))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert moments(samples, real, logits=logits, generator=seeded(5)) == one
    assert moments(samples, real, logits=logits, generator=seeded(6)) != one


def test_the_record_is_plain_and_steps_are_told():
    seen = []
    found = moments(
        normal(50, 3, 1), normal(50, 3, 2), progress=lambda done, total, what: seen.append((done, total))
    )
    assert found.inception_score is None
    assert found.to_dict()["kid"]["value"] == found.kid.value
    assert str(found).startswith("FID ")
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("samples", "real", "logits", "sentence"),
    [
        (torch.rand(30, 3), torch.rand(30, 4), None, "as many features"),
        (torch.rand(30, 5000), torch.rand(30, 5000), None, "at most 4,096"),
        (torch.rand(19, 3), torch.rand(30, 3), None, "at least 20"),
        (torch.full((30, 3), torch.nan), torch.rand(30, 3), None, "finite"),
        (torch.rand(30, 3), torch.ones(30, 3), None, "differ"),
        (torch.rand(30, 3), torch.rand(30, 3), torch.rand(30, 1), "two classes"),
        (torch.rand(30, 3), torch.rand(30, 3), torch.rand(10, 3), "two classes"),
    ],
)
def test_bad_input(samples, real, logits, sentence):
    with pytest.raises(BadInput, match=sentence):
        moments(samples, real, logits=logits)


def test_without_torchmetrics_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    with pytest.raises(MissingExtra, match=r"obverse\[metrics\]"):
        frechet_distance(torch.rand(30, 3), torch.rand(30, 3))


def test_without_torch_fidelity_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_fidelity", None)
    with pytest.raises(MissingExtra, match=r"obverse\[inception\]"):
        inception()


class FakeInception(nn.Module):
    """Means of the colours, in the place of a net whose weights come from the network."""

    def __init__(self, name, features_list):
        super().__init__()
        self.wanted = features_list

    def forward(self, images):
        assert images.dtype == torch.uint8
        assert images.shape[1:] == (3, 4, 4)
        return images.double().mean((2, 3)) + (self.wanted == ["logits_unbiased"])


def test_real_inception_gets_bytes_of_three_colours(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_fidelity", sys)
    monkeypatch.setattr("torchmetrics.image.fid.NoTrainInceptionV3", FakeInception)
    grey = torch.full((2, 1, 4, 4), 0.5)
    grey[1] = 1
    assert inception()(grey).tolist() == [[128.0] * 3, [255.0] * 3]
    assert inception(logits=True)(grey)[1].tolist() == [256.0] * 3
    for wrong in (2 * grey, -grey, torch.rand(2, 2, 4, 4), torch.rand(2, 16)):
        with pytest.raises(BadInput, match="for Inception"):
            inception()(wrong)


def test_without_a_network_the_reason_is_given(monkeypatch):
    def unreachable(name, features_list):
        raise URLError("no route to host")

    monkeypatch.setitem(sys.modules, "torch_fidelity", sys)
    monkeypatch.setattr("torchmetrics.image.fid.NoTrainInceptionV3", unreachable)
    with pytest.raises(BadInput, match="no route to host"):
        inception()
