"""Does the audit tell the truth? Hundreds of random matrices, and planted parts of known strength."""

from collections import Counter

import pytest
import torch

from obverse.weights import LayerAudit, Thresholds, audit
from obverse.weights._decomposition.marchenko_pastur import threshold_strength
from obverse.weights._structure import Arrangement
from obverse.weights._verdict import judge
from weights.exact_spectra import not_above, not_below

SHAPES = [(32, 32), (64, 64), (40, 300), (300, 40), (32, 128), (128, 128), (150, 200), (100, 36)]
MATRICES = 80
LEVEL = Thresholds().level
# Tests behind a finding; norms and correlations have one for rows and one for columns.
TESTS = {"entries": 1, "norms": 2, "correlations": 2, "blocks": 1}
NO_SIZE_TOO_SMALL = {
    "normal_distance": 1e-12,
    "norm_spread": 1e-12,
    "correlation": 1e-12,
    "block_contrast": 1e-12,
    "recovery_ratio": 1.0,
}


@pytest.fixture(scope="module")
def layers() -> list[LayerAudit]:
    generator = torch.Generator().manual_seed(2024)
    nets = {
        f"{number}": torch.randn(*SHAPES[number % len(SHAPES)], generator=generator) / 30
        for number in range(MATRICES)
    }
    return list(audit(nets))


def alarms(layers: list[LayerAudit], thresholds: Thresholds) -> Counter[str]:
    """How often each remark stands at these thresholds."""
    found: Counter[str] = Counter()
    for layer in layers:
        arranged = Arrangement(layer.norms.rows, layer.norms.columns, layer.correlations, layer.blocks, 0.0)
        judged = judge(thresholds, layer.entries, None, layer.parts, arranged, layer.reversal)
        found.update(one.aspect for one in judged.findings if one.random_like is False)
    return found


def test_normal_matrices_are_untouched(layers):
    """No verdict and no remark is wrong more often than its level allows."""
    found = Counter(one.aspect for layer in layers for one in layer.findings if one.random_like is False)
    for aspect, tests in TESTS.items():
        assert not_above(found[aspect], MATRICES, tests * LEVEL, doubt=0.01), aspect
    assert not_above(found["recovery"], MATRICES, LEVEL, doubt=0.01)
    assert not_above(sum(layer.parts.rank > 0 for layer in layers), MATRICES, LEVEL, doubt=0.01)
    # a direction, a value below the law, the distance to it
    assert not_above(sum(layer.verdict != "untouched" for layer in layers), MATRICES, 3 * LEVEL, doubt=0.01)


def test_over_the_whole_audit_noise_is_noise(layers):
    """Holm: the chance of any false alarm among all layers is 5 % at most."""
    assert all(layer.p <= layer.family_p for layer in layers)
    assert min(layer.family_p for layer in layers) >= 0.05


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_findings_keep_their_level_when_nothing_is_too_small_to_mention(layers, level):
    """With so few matrices a level of 0.001 says little; at 0.05, without sizes of effects, it says more."""
    found = alarms(layers, Thresholds(level=level, **NO_SIZE_TOO_SMALL))
    for aspect, tests in TESTS.items():
        assert not_above(found[aspect], MATRICES, tests * level, doubt=0.01), aspect
    if level == 0.05:  # and the tests are tests: rows and columns share most of a cosine's square
        for aspect in TESTS:
            assert not_below(found[aspect], MATRICES, level / 2, doubt=0.01), aspect


def test_intervals_of_the_recovery_ratio_have_their_coverage(layers):
    """95 % of each are to contain 1; the worst of three is to be above it 7.5 % of the time at most."""
    ratios = [one for layer in layers for one in layer.reversal]
    missed = sum(not one.interval[0] <= 1 <= one.interval[1] for one in ratios)
    assert not_above(missed, len(ratios), 0.05, doubt=0.01)
    found = alarms(layers, Thresholds(**NO_SIZE_TOO_SMALL))
    assert not_above(found["recovery"], MATRICES, 3 * 0.025, doubt=0.01)


def test_small_and_very_rectangular_matrices_are_among_them(layers):
    shapes = {(layer.rows, layer.columns) for layer in layers}
    assert shapes == set(SHAPES)
    assert all(len(layer.findings) == 6 for layer in layers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "columns", "times", "seed"),
    [
        (4000, 4000, 1.2, 1),
        (4000, 4000, 1.2, 2),
        (4500, 4000, 1.2, 3),
        (4000, 4000, 0.8, 4),
        (4000, 4500, 0.8, 5),
    ],
)
def test_a_planted_rank_one_part_in_a_large_layer(rows, columns, times, seed):
    """The whole way, with real matrices; test_spectrum has the rate, from exactly drawn spectra."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=generator).mul_(0.02)
    left = torch.nn.functional.normalize(torch.randn(rows, generator=generator), dim=0)
    right = torch.nn.functional.normalize(torch.randn(columns, generator=generator), dim=0)
    strength = times * threshold_strength(rows, columns, 0.02)
    matrix.addr_(left, right, alpha=strength)
    layer = audit({"w": matrix}, samples=8).layers[0]
    assert layer.parts.method == "krylov"
    if times < 1:
        assert layer.verdict == "untouched"
    else:
        assert layer.verdict == "signal in a random bulk"
        (found,) = layer.parts.directions
        # strengths are in units of the matrix without its profile, whose bulk has the scale given there
        planted = strength / 0.02 * layer.parts.scale
        assert found.strength == pytest.approx(
            planted, rel=0.1
        )  # near the threshold only lifted ones are seen
