"""Several layers down and up: the law of what is drawn, the offsets against brute force, bad stacks."""

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.alm._hidden import draw_hidden
from obverse.claims.alm._offset_search import one_offset
from obverse.claims.alm._stack import (
    Stack,
    aligned_offset,
    calibrate,
    misalignment,
    search_offsets,
    worst_entry,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(seed: int = 0) -> tuple[Stack, list[torch.Tensor]]:
    random = generator(seed)
    stack = Stack.draw((120, 60, 20), (120, 40, 5), random)
    return stack, stack.generate(draw_hidden(30, 20, 5, "equal", random), random)


def test_each_layer_is_generated_by_equation_14() -> None:
    stack, layers = small()
    for below, above, weight, kept in zip(layers, layers[1:], stack.weights, (120, 40), strict=False):
        for sample in range(3):
            whole = 2 / kept * torch.clamp(torch.mv(weight, above[sample]), min=0)
            live = below[sample] > 0
            # float32 sums of up to 60 terms
            torch.testing.assert_close(below[sample][live], whole[live], rtol=1e-4, atol=1e-6)
    assert (layers[0] > 0).equal(layers[1] @ stack.weights[0].T > 0)  # n0 = k0: no mask


def test_a_layer_keeps_its_share_and_its_norm() -> None:
    random = generator(1)
    stack = Stack.draw((3000, 50), (1200, 10), random)
    layers = stack.generate(draw_hidden(200, 50, 10, "half-normal", random), random)
    alive = (layers[0] > 0).double()
    # k/2 of n are not zero: 600,000 draws of probability 0.2, 5 standard errors
    assert abs(float(alive.mean()) - 0.2) < 5 * (0.16 / 600_000) ** 0.5
    # ‖x‖² is 2/k · ‖h‖² on average, with a relative variance of 6/k a draw; draws share W: 5 standard errors
    assert abs(float(layers[0].square().sum(1).mean()) * 600 - 1) < 5 * (6 / 1200 / 10) ** 0.5


def test_inference_is_the_feedforward_net() -> None:
    stack, layers = small()
    offsets = (0.01, 0.2)
    one = torch.relu(layers[0].double() @ stack.weights[0].double() - 0.01)
    two = torch.relu(one @ stack.weights[1].double() - 0.2)
    torch.testing.assert_close(stack.infer(layers[0], offsets).double(), two, rtol=1e-4, atol=1e-5)


def test_dropping_half_keeps_the_mean_and_doubles_the_second_moment() -> None:
    stack = Stack((torch.ones(40_000, 1),), (40_000, 1))
    below = torch.full((1, 40_000), 0.5)
    kept = float(stack.estimate(1, below, generator(2)))
    # 2·½ of 20,000, of standard deviation √40,000 · 0.5
    assert abs(kept - 20_000) < 5 * 100
    assert kept != 20_000


def test_one_offset_beats_every_offset_of_a_fine_grid() -> None:
    for seed in range(5):
        random = generator(seed)
        truth = torch.rand(60, generator=random) * (torch.rand(60, generator=random) < 0.3)
        estimate = truth + 0.4 * torch.randn(60, generator=random)

        offsets = torch.cat([torch.tensor([one_offset(estimate, truth)]), torch.linspace(-3, 3, 6001)])
        errors = torch.relu(estimate.double() - offsets.double()[:, None]) - truth.double()
        found, *others = errors.square().sum(1).tolist()
        lowest = min(others)
        assert found <= lowest + 1e-6  # the grid's own step of 1e-3, squared
        assert found >= lowest - 1e-3


def test_one_offset_may_be_negative() -> None:
    estimate = torch.tensor([0.1, 0.2, -0.1])
    assert one_offset(estimate, torch.full((3,), 2.0)) == pytest.approx(-2 + 0.2 / 3)


def test_aligned_offset_is_the_best_of_the_entries() -> None:
    for seed in range(5):
        random = generator(seed)
        target = torch.randn(80, generator=random)
        estimate = target.clamp(min=0) + 0.5 * torch.randn(80, generator=random)

        def cosine(offset: float, estimate: torch.Tensor = estimate, target: torch.Tensor = target) -> float:
            found = torch.relu(estimate.double() - offset)
            return float(found @ target.double() / found.norm().clamp(min=1e-12))

        best = max(cosine(float(entry)) for entry in estimate)
        assert cosine(aligned_offset(estimate, target)) == pytest.approx(best, rel=1e-6)


def test_calibrated_offsets_are_best_layer_by_layer() -> None:
    stack, layers = small()
    offsets = calibrate(stack, layers)

    def error(offset: float) -> float:
        return float((stack.infer(layers[0], (offset,)) - layers[1]).square().sum())

    step = 0.05 * float(layers[1].std())
    assert error(offsets[0]) <= min(error(offsets[0] - step), error(offsets[0] + step))
    aligned = calibrate(stack, layers, direction=True)
    assert misalignment(stack.infer(layers[0], aligned), layers[2]) < misalignment(
        stack.infer(layers[0], offsets), layers[2]
    )


def test_searched_offsets_are_the_best_of_all_combinations() -> None:
    stack, layers = small()
    steps = (-0.5, 0.5, 1.5)
    found = search_offsets(stack, layers, steps)
    first = (stack.estimate(1, layers[0]) - layers[1]).square().mean().sqrt()
    errors = []
    for one in steps:
        below = torch.relu(stack.estimate(1, layers[0]) - one * first)
        estimate = below @ stack.weights[1]
        second = (estimate - layers[2]).square().mean().sqrt()
        errors += [worst_entry(torch.relu(estimate - two * second), layers[2]) for two in steps]
    assert worst_entry(stack.infer(layers[0], found), layers[2]) == pytest.approx(min(errors), rel=1e-4)


def test_misalignment_is_the_error_after_the_best_factor() -> None:
    random = generator(3)
    truth, found = torch.rand(4, 9, generator=random), torch.rand(4, 9, generator=random)
    errors = [
        float((factor * found - truth).square().sum() / truth.square().sum())
        for factor in torch.linspace(0, 3, 3001)
    ]
    assert misalignment(found, truth) == pytest.approx(min(errors), abs=1e-5)
    assert misalignment(torch.zeros(2), torch.ones(2)) == 1


@pytest.mark.parametrize(
    ("widths", "sparsities", "sentence"),
    [
        ((10, 5), (11, 2), "1 ≤ k_0 ≤ n_0"),
        ((10, 5), (10, 0), "1 ≤ k_1 ≤ n_1"),
        ((10, 5), (10,), "a width n_j and a sparsity k_j"),
        ((10,), (10,), "at least one layer"),
    ],
)
def test_bad_stacks_are_refused(widths: tuple[int, ...], sparsities: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        Stack.draw(widths, sparsities, generator())


def test_an_empty_top_is_refused() -> None:
    stack, _ = small()
    with pytest.raises(BadInput, match="support"):
        stack.generate(torch.zeros(1, 20), generator())
