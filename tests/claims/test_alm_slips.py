"""The slips and their corrections, by enumeration and by formulas derived another way."""

from math import comb, pi, sqrt

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.claims.alm import _slips as slips


@pytest.mark.parametrize("keep", [0.2, 0.5, 1.0])
def test_only_the_corrected_law_of_the_mask_sums_to_one(keep: float) -> None:
    def total(law) -> float:
        return sum(comb(4, ones) * law({"n": 4, "ones": ones, "keep": keep}) for ones in range(5))

    assert total(slips.pattern) == pytest.approx(1)
    assert total(slips.pattern_printed) == pytest.approx((1 + keep) ** 4)


def test_patterns_are_counted_as_masks_fall() -> None:
    shares = [
        slips.measure_pattern(
            {"n": 2, "ones": ones, "keep": 0.5, "trials": 20, "batch": 500}, torch.Generator().manual_seed(0)
        )
        for ones in range(3)
    ]
    for share in shares:  # each has probability ¼
        assert abs(float(share.mean()) - 0.25) < 5 * sqrt(0.25 * 0.75 / 10_000)  # standard errors
    # the same masks: (0, 1), the fourth pattern, takes the rest
    assert float(torch.stack(shares).sum(0).mean()) < 1


def test_nonzeros_are_bounded_by_what_is_kept() -> None:
    setting = {"n": 30, "m": 4, "k": 2, "t": 30, "trials": 200}
    found = slips.measure_nonzeros(setting, torch.Generator().manual_seed(0))
    assert float(found.max()) < 30
    assert abs(float(found.mean()) - 15) < 5 * sqrt(30 / 4 / 200)  # Bin(30, ½)


def test_error_scales_as_h_does() -> None:
    def at(size: float) -> torch.Tensor:
        setting = {"n": 20, "m": 5, "k": 2, "t": 10, "size": size, "trials": 10}
        return torch.as_tensor(slips.measure_error(setting, torch.Generator().manual_seed(0)))

    assert torch.allclose(at(7.0), 7 * at(1.0))


@pytest.mark.parametrize(("relu", "expected"), [("sgn(x)·(x ≥ 0)", 50 / sqrt(2 * pi)), ("x·(x ≥ 0)", 1.0)])
def test_a_step_forgets_the_size(relu: str, expected: float) -> None:
    setting = {"n": 100, "m": 5, "k": 3, "t": 50, "relu": relu, "trials": 400}
    found = slips.measure_recovered(setting, torch.Generator().manual_seed(0))
    assert abs(float(found.mean()) - expected) < 5 * float(found.std()) / 20  # standard errors


def test_mask_keeps_its_share() -> None:
    for rho, kept in (("k/n", 20), ("1 − k/n", 80)):
        setting = {"n": 100, "k": 20, "rho": rho, "trials": 300}
        found = slips.measure_kept(setting, torch.Generator().manual_seed(0))
        assert abs(float(found.mean()) - kept) < 5 * sqrt(100 * 0.2 * 0.8 / 300)  # binomial


def test_bad_settings_name_the_condition() -> None:
    mask = {"n": 4, "ones": 2, "keep": 0.5, "trials": 1, "batch": 1}
    for change, sentence in (({"keep": 1.5}, r"ρ in \(0, 1\]"), ({"ones": 5}, "between 0 and n ones")):
        for predict in (slips.pattern, slips.pattern_printed):
            with pytest.raises(BadInput, match=sentence):
                predict(mask | change)
        with pytest.raises(BadInput, match=sentence):
            slips.measure_pattern(mask | change, torch.Generator())
    layer = {"n": 10, "m": 4, "k": 2, "t": 20, "size": 1.0, "relu": "x·(x ≥ 0)", "trials": 1, "rho": "k/n"}
    for predict in (slips.kept, slips.kept_half, slips.error_printed, slips.error_corrected, slips.unchanged):
        with pytest.raises(BadInput, match="ρ = t/n"):
            predict(layer)
    for measure in (slips.measure_nonzeros, slips.measure_error, slips.measure_recovered):
        with pytest.raises(BadInput, match="ρ = t/n"):
            measure(layer, torch.Generator())
    with pytest.raises(BadInput, match="n > 0"):
        slips.measure_kept(layer | {"n": 0}, torch.Generator())
