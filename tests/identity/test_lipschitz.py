"""How steep a memorizing net is, against autograd's Jacobians and against differences."""

from math import log10

import numpy as np
import pytest
import torch

from obverse._core.errors import BadInput
from obverse.identity._lipschitz import local_lipschitz, log10_lipschitz_bound
from obverse.identity._memorize import memorize
from obverse.nets._memory import ResidualMemory


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def built(n: int = 60, d: int = 6, scales: bool = False) -> tuple[ResidualMemory, torch.Tensor]:
    x = torch.randn(n, d, generator=seeded(), dtype=torch.float64)
    if scales:
        x *= torch.logspace(-8, 8, d, dtype=torch.float64)
    return memorize(x, torch.randint(5, (n,), generator=seeded(1))), x


def by_autograd(net: ResidualMemory, x: torch.Tensor) -> torch.Tensor:
    found = [torch.autograd.functional.jacobian(lambda one: net(one.unsqueeze(0))[0], row) for row in x]
    return torch.stack([torch.linalg.svdvals(one)[0] for one in found])


@pytest.mark.parametrize(
    ("n", "d", "scales"), [(60, 6, False), (60, 6, True), (1, 3, False), (10, 1, False), (80, 2, False)]
)
def test_steepness_is_the_norm_of_autograds_jacobian(n, d, scales):
    net, x = built(n, d, scales)
    spread = x.std(0, correction=0)
    other = x.mean(0) + torch.randn(40, d, generator=seeded(2), dtype=torch.float64) * spread
    for points in (x, other):
        # columns of 1e-8 … 1e8: the projection's condition takes some digits
        torch.testing.assert_close(local_lipschitz(net, points), by_autograd(net, points), rtol=1e-10, atol=0)


def test_steepness_far_from_all_points_where_many_units_answer():
    net, x = built()
    far = 1e3 * x
    answering = (net.project(far) @ net.inner[0].T + net.shift[0] > 0).sum(1)
    assert answering.max() > 1
    # units of many blocks in a row: rounding grows with them
    torch.testing.assert_close(local_lipschitz(net, far), by_autograd(net, far), rtol=1e-8, atol=0)


def test_steepness_is_that_of_differences_in_the_steepest_direction():
    net, x = built()
    found = local_lipschitz(net, x)
    for row, steepness in zip(x[:10], found[:10], strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda one: net(one.unsqueeze(0))[0], row)
        direction = torch.linalg.svd(jacobian).Vh[0]
        step = 1e-9  # stays within the linear piece: gaps are 1e-4 and more
        change = net((row + step * direction).unsqueeze(0)) - net((row - step * direction).unsqueeze(0))
        # scores of size 1 have rounding 1e-16·few, divided by the step
        assert float(change.norm()) / (2 * step) == pytest.approx(float(steepness), rel=1e-3)


@pytest.mark.parametrize("rows", [1, 7, 60, 500])
def test_steepness_in_parts(rows):
    net, x = built()
    torch.testing.assert_close(local_lipschitz(net, x, rows), by_autograd(net, x), rtol=1e-10, atol=0)


def test_steepness_of_images_and_of_other_types():
    x = (torch.rand(30, 1, 3, 3, generator=seeded()) * 256).to(torch.uint8)
    net = memorize(x, torch.arange(30) % 4)
    expected = by_autograd(net, x.double().flatten(1))
    torch.testing.assert_close(local_lipschitz(net, x), expected, rtol=1e-10, atol=0)


def test_a_float32_net_is_differentiated_in_its_own_type():
    net, x = built()
    net = net.to(torch.float32)
    found = local_lipschitz(net, x)
    assert found.dtype == torch.float32
    # float32 rounding through twelve blocks; no unit is so near its threshold that it switches
    torch.testing.assert_close(found, by_autograd(net, x.float()), rtol=1e-3, atol=0)


def test_wrong_inputs_are_refused():
    net, x = built()
    with pytest.raises(BadInput, match="6 numbers each"):
        local_lipschitz(net, x[:, :5])


@pytest.mark.parametrize("scales", [False, True])
def test_the_bound_is_the_product_of_norms(scales):
    net, _ = built(scales=scales)

    def norm(matrix: torch.Tensor) -> float:
        return float(np.linalg.svd(matrix.numpy(), compute_uv=False)[0])

    expected = log10(norm(net.head)) + log10(norm(net.projection))
    for inner, outer in zip(net.inner, net.outer, strict=True):
        expected += log10(1 + norm(outer) * norm(inner))
    assert log10_lipschitz_bound(net) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scales", [False, True])
def test_no_difference_quotient_exceeds_the_bound(scales):
    net, x = built(scales=scales)
    bound = log10_lipschitz_bound(net)
    points = torch.cat([x, x.roll(1, 0) * 1.001, x * 100, torch.zeros_like(x[:1])])
    scores = net(points)
    change, distance = torch.cdist(scores, scores), torch.cdist(points, points)
    quotients = (change / distance)[distance > 0]
    assert float(quotients.max().log10()) <= bound
    assert float(local_lipschitz(net, points).max().log10()) <= bound


def test_the_bound_of_a_net_whose_product_overflows_is_finite():
    net, _ = built(n=1500, d=2)
    bound = log10_lipschitz_bound(net)
    assert 308 < bound < 1e5
