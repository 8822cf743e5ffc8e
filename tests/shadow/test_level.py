"""The level of the way down: against a fine grid, in ten passes, and never to the price of alike shadows."""

from dataclasses import replace

import pytest
import torch

from obverse import Shadow
from obverse.nets import small_cnn, small_resnet
from obverse.shadow import relative_error
from obverse.shadow._level import PASSES, Level, WayDown, calibrate_level, found_again


def ray(bend=0.0, share=1.0, seed=0):
    """h(x) = A x, bent; what comes down is x with noise, at another scale."""
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(12, 20, generator=draw, dtype=torch.float64)
    x = torch.rand(32, 12, generator=draw, dtype=torch.float64)
    noise = torch.rand(32, 12, generator=draw, dtype=torch.float64)
    passes: list[int] = []

    def infer(z):
        passes.append(len(z))
        return (z @ matrix - bend).relu()

    h = (x @ matrix - bend).relu()
    down = 37.0 * (share * x + (1 - share) * noise)
    way = WayDown(infer, down, h, x, torch.relu, torch.zeros((), dtype=torch.float64), False)
    return way, passes


@pytest.mark.parametrize("bend", [0.0, 0.5])
@pytest.mark.parametrize("share", [1.0, 0.8])
def test_it_is_as_good_as_a_fine_grid(bend, share):
    way, passes = ray(bend, share)
    found = calibrate_level((way,), replace(way, theory=True))
    assert len([rows for rows in passes if rows > 1]) <= PASSES
    assert len([rows for rows in passes if rows == 1]) == 2
    reached = way.look(found).error
    grid = min(way.look(Level(0.0005 * 1.02**k)).error for k in range(400))
    assert reached <= 1.02 * grid + 1e-4  # steps of 3 % of the factor are not taken: 0.0009 of ‖h‖² at most


@pytest.mark.parametrize("make", [small_cnn, small_resnet])
def test_ten_passes_for_a_layer_of_a_net(make):
    torch.manual_seed(0)
    net = make((1, 8, 8), classes=10).eval()
    shadow = Shadow(net)
    x = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    shadow.calibrate(x)
    runs: list[int] = []
    infer = shadow.graph.infer

    def counted(x, nodes):
        runs.append(len(x))
        return infer(x, nodes)

    object.__setattr__(shadow.graph, "infer", counted)
    for name in shadow.layers:
        runs.clear()
        shadow.level(name)
        assert len([rows for rows in runs if rows > 1]) <= PASSES + 1, name  # and one for h itself


def test_a_level_that_makes_shadows_alike_is_not_taken():
    """h has a large part that all inputs share, and what comes down is mostly wrong: the error is least where
    shadows are alike."""
    way, _ = ray(share=0.35)
    common = torch.full((12, 20), 6.0, dtype=torch.float64)

    def infer(z):
        return (z @ common[:, :1] * 0 + 30) + way.infer(z)

    odd = replace(way, infer=infer, h=way.h + 30)
    found = calibrate_level((odd,), replace(odd, theory=True))
    look, plain = odd.look(found), odd.look(Level())
    assert look.found >= plain.found - 1
    natural = odd.natural()
    assert natural is not None
    assert found.theory or found.factor >= 0.1 * natural * (1 - 1e-12)
    assert relative_error(look.recovered, odd.h) <= plain.error


def test_found_again_is_the_nearest_row():
    h = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert found_again(h, h) == 3
    assert found_again(h.roll(1, 0), h) == 0
    assert found_again(h[:1].expand(3, 2), h) == 1
    assert found_again(torch.full((3, 2), 0.5), h) == 0  # a tie finds nothing
    assert found_again(torch.full((3, 2), float("nan")), h) == 0


def test_nothing_that_comes_down_leaves_the_net_uncalibrated():
    way, _ = ray()
    nothing = replace(way, down=torch.zeros_like(way.down))
    assert calibrate_level((nothing,), replace(nothing, theory=True)) == Level(theory=True)
