"""The Vendi score against its definition, and in cases where it is known."""

from __future__ import annotations

from importlib import import_module
from math import exp

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.diversity._vendi import median_distance, vendi

module = import_module("obverse.diversity._vendi")

EXACT = 1e-9  # eigenvalues of matrices of trace 1 in float64, times their number


def plain(points, kernel):
    """exp(−Σ λ ln λ), the kernel entry by entry."""
    x = np.asarray(points, dtype=np.float64)
    matrix = np.array([[kernel(a, b) for b in x] for a in x]) / len(x)
    values = np.linalg.eigvalsh(matrix)
    return float(np.exp(-sum(value * np.log(value) for value in values if value > 1e-14)))


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (7, 7)])  # d × d, n × n, either
def test_cosine_against_the_definition(shape):
    points = torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert vendi(points).score == pytest.approx(plain(points, cosine), rel=EXACT)


def test_rbf_against_the_definition():
    points = torch.randn(15, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = vendi(points, "rbf", bandwidth=1.7)
    wanted = plain(points, lambda a, b: exp(-((a - b) ** 2).sum() / (2 * 1.7**2)))
    assert found.score == pytest.approx(wanted, rel=EXACT)
    distances = [float((a - b).norm()) for i, a in enumerate(points) for b in points[:i]]
    assert vendi(points, "rbf").bandwidth == pytest.approx(sorted(distances)[(len(distances) - 1) // 2])


@pytest.mark.parametrize("kernel", ["cosine", "rbf"])
def test_as_many_as_have_nothing_in_common(kernel):
    points = 100 * torch.eye(9, 20)
    assert vendi(points, kernel, bandwidth=1.0).score == pytest.approx(9, rel=EXACT)


@pytest.mark.parametrize("kernel", ["cosine", "rbf"])
def test_repeating_every_sample_changes_nothing(kernel):
    points = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
    one, many = (vendi(x, kernel, bandwidth=1.0).score for x in (points, points.repeat(3, 1)))
    # float32 points, squared norms from products in float64
    assert many == pytest.approx(one, rel=1e-6)


def test_the_same_again_and_again_is_one():
    assert vendi(torch.ones(50, 3)).score == pytest.approx(1, rel=EXACT)


def test_blocks_do_not_matter(monkeypatch):
    points = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    whole = [vendi(points, kernel, bandwidth=1.0).score for kernel in ("cosine", "rbf")]
    monkeypatch.setattr(module, "BLOCK", 7)
    seen = []
    parts = [
        vendi(
            points, kernel, bandwidth=1.0, progress=lambda done, total, what: seen.append((done, total))
        ).score
        for kernel in ("cosine", "rbf")
    ]
    assert parts == pytest.approx(whole, rel=EXACT)
    assert seen == [(i, 8) for i in range(1, 9)] * 2


def test_the_record_is_plain():
    found = vendi(torch.eye(3))
    assert found.to_dict() == {"score": found.score, "samples": 3, "kernel": "cosine", "bandwidth": None}
    assert str(found) == "Vendi score 3 of 3 (cosine)"


def test_many_points_have_a_bandwidth_from_some():
    points = torch.randn(2500, 2, generator=torch.Generator().manual_seed(0))
    # 834 points; the median distance of two Gaussians in the plane is √(4 ln 2) = 1.665,
    # its standard error about that of 834 independent distances, 0.03
    assert median_distance(points) == pytest.approx(1.665, abs=0.1)


@pytest.mark.parametrize(
    ("points", "settings", "sentence"),
    [
        (torch.tensor([[0.0, 0.0], [1.0, 0.0]]), {}, "not all 0"),
        (torch.ones(4, 2), {"kernel": "rbf"}, "bandwidth"),
        (torch.eye(3), {"kernel": "rbf", "bandwidth": -1.0}, "bandwidth"),
        (torch.eye(3), {"kernel": "linear"}, "kernel"),
        (torch.rand(5001, 2), {"kernel": "rbf"}, "at most 5,000 samples"),
        (torch.full((3, 2), torch.nan), {}, "finite"),
        (torch.ones(1, 2), {}, "two"),
    ],
)
def test_bad_input(points, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        vendi(points, **settings)
