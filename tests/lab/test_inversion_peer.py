"""The peer of experiments/inversion does what it says: its gradient, and where it ends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from experiments.inversion import peer


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tiny_net() -> nn.Sequential:
    generator = torch.Generator().manual_seed(5)
    net = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)).double()
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return net.requires_grad_(False)


def energy(features: nn.Module, x: Tensor, target: Tensor, tv: float, norm: float) -> Tensor:
    """The objective of one image, pixel by pixel as the module's docstring has it."""
    total = (features(x[None])[0] - target).square().sum() / target.square().sum()
    channels, height, width = x.shape
    for c in range(channels):
        for i in range(height):
            for j in range(width):
                here = norm * (2 * x[c, i, j] - 1).abs() ** 6
                if i + 1 < height:
                    here = here + tv * (x[c, i + 1, j] - x[c, i, j]) ** 2
                if j + 1 < width:
                    here = here + tv * (x[c, i, j + 1] - x[c, i, j]) ** 2
                total = total + here / x.numel()
    return total


def test_gradient_is_that_of_the_objective_image_by_image() -> None:
    net, x, originals = tiny_net(), random(3, 2, 4, 5), random(3, 2, 4, 5, seed=1)
    targets = net(originals)
    found = peer.feature_slope(net, x, targets) + peer.regularizer_slope(x, tv=0.7, norm=0.3)
    for image, target, slope in zip(x, targets, found, strict=True):
        leaf = image.clone().requires_grad_()
        (expected,) = torch.autograd.grad(energy(net, leaf, target, tv=0.7, norm=0.3), leaf)
        torch.testing.assert_close(slope, expected)  # float64 rounding: the default 1e-7


@pytest.mark.slow  # hundreds of descents; slopes are checked above
@pytest.mark.parametrize(("method", "rate", "within"), [("adam", 0.003, 0.003), ("momentum", 0.5, 1e-6)])
def test_linear_features_end_at_the_solution_of_the_normal_equations(
    method: str, rate: float, within: float
) -> None:
    """With norm = 0 and linear features the objective is quadratic: one linear system a row."""
    height, width, tv = 3, 4, 0.05
    pixels = height * width
    matrix = torch.eye(pixels, dtype=torch.float64) + 0.2 * random(pixels, pixels)
    target = random(2, pixels, seed=2)
    differences = []
    for i in range(height):
        for j in range(width):
            for other in [(i + 1, j)] * (i + 1 < height) + [(i, j + 1)] * (j + 1 < width):
                row = torch.zeros(height, width, dtype=torch.float64)
                row[i, j], row[other] = -1.0, 1.0
                differences.append(row.flatten())
    rough = torch.stack(differences)
    sizes = target.square().sum(1)
    expected = torch.stack(
        [
            torch.linalg.solve(
                matrix.T @ matrix / size + tv / pixels * rough.T @ rough, matrix.T @ row / size
            )
            for row, size in zip(target, sizes, strict=True)
        ]
    )

    def linear(x: Tensor) -> Tensor:
        return x.flatten(1) @ matrix.T

    generator = torch.Generator().manual_seed(3)
    settings = {"tv": tv, "norm": 0.0, "rate": rate, "method": method, "generator": generator}
    found = peer.invert(linear, target, (1, height, width), 6000, **settings)
    # Adam at a constant rate stops within about its step of the minimum; momentum converges (1e-9 measured).
    torch.testing.assert_close(found.flatten(1), expected, rtol=0, atol=within)
    assert (expected - 0.5).abs().max() > 0.1  # it did not start there


def test_the_first_step_goes_against_the_sign_of_the_slope() -> None:
    """Adam's first step is rate · sign(slope), whatever the slope's size."""
    net, start = tiny_net(), random(2, 2, 4, 4)
    target = net(random(2, 2, 4, 4, seed=1))
    slope = peer.feature_slope(net, start, target) + peer.regularizer_slope(start, 0.1, 0.001)
    assert bool((slope.abs() > 1e-6).all())  # else the next line would be about rounding
    kept = start.clone()
    found = peer.invert(net, target, (2, 4, 4), 1, rate=0.01, start=start)
    torch.testing.assert_close(found, start - 0.01 * slope.sign(), rtol=0, atol=1e-7)  # TINY / |slope|
    assert torch.equal(start, kept)


def test_momentum_is_the_heavy_ball() -> None:
    """Two steps by hand: v ← 0.9 v + slope, x ← x − rate · v."""
    net, start = tiny_net(), random(2, 2, 4, 4)
    target = net(random(2, 2, 4, 4, seed=1))

    def slope(x: Tensor) -> Tensor:
        result: Tensor = peer.feature_slope(net, x, target) + peer.regularizer_slope(x, 0.1, 0.001)
        return result

    first = start - 0.3 * slope(start)
    second = first - 0.3 * (0.9 * slope(start) + slope(first))
    found = peer.invert(net, target, (2, 4, 4), 2, rate=0.3, method="momentum", start=start)
    torch.testing.assert_close(found, second)


def test_images_of_a_batch_do_not_see_each_other() -> None:
    net, start = tiny_net(), random(3, 2, 4, 4)
    target = net(random(3, 2, 4, 4, seed=1))
    together = peer.invert(net, target, (2, 4, 4), 20, start=start)
    alone = [
        peer.invert(net, row[None], (2, 4, 4), 20, start=first[None])
        for row, first in zip(target, start, strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(alone))


def test_every_iteration_is_reported_and_stays_what_it_was() -> None:
    net = tiny_net()
    target = net(random(1, 2, 4, 4, seed=1))
    seen: dict[int, Tensor] = {}

    def run(iterations: int) -> Tensor:
        generator = torch.Generator().manual_seed(7)
        result: Tensor = peer.invert(
            net, target, (2, 4, 4), iterations, generator=generator, on_iteration=seen.__setitem__
        )
        return result

    run(5)
    assert list(seen) == [1, 2, 3, 4, 5]
    kept = dict(seen)
    assert torch.equal(run(3), kept[3])  # a shorter run is the beginning of a longer one


def test_a_target_of_zeros_divides_by_nothing() -> None:
    slope = peer.feature_slope(
        lambda x: 3 * x, random(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, dtype=torch.float64)
    )
    torch.testing.assert_close(slope, 18 * random(1, 1, 2, 2))
