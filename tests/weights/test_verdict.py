"""Sentences: every kind of matrix gets its own, and every threshold moves its own finding."""

from dataclasses import fields, replace

import pytest
import torch

from obverse.weights import LayerAudit, Thresholds, audit
from obverse.weights._verdict import Judgement, judge
from obverse.weights.results import Correlations, Finding, Histogram, Number, Offsets
from weights.made_audits import made_entries, made_reversal, made_spectrum

ROWS, COLUMNS = 100, 128
UNUSED = Histogram((0.0, 1.0), (0,))


def smooth(size: int) -> torch.Tensor:
    """A square root of the correlations 0.7^|distance|."""
    distance = (torch.arange(size)[:, None] - torch.arange(size)).abs()
    return torch.linalg.cholesky(0.7**distance)


def made(kind: str, rows: int = ROWS, columns: int = COLUMNS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(map(ord, kind)))

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    noise, uniform = normal(rows, columns), torch.rand(rows, columns, generator=generator)
    half = (torch.arange(rows)[:, None] < rows // 2) == (torch.arange(columns) < columns // 2)
    if kind == "row-scaled":
        return noise * torch.exp(0.5 * normal(rows, 1))
    if kind == "column-scaled":
        return noise * torch.exp(0.5 * normal(1, columns))
    if kind == "column-correlated":
        return noise @ smooth(columns).T
    if kind == "row-correlated":
        return smooth(rows) @ noise
    if kind == "block-diagonal":
        return noise * half
    if kind == "block-variance":
        return noise * torch.where(half, 1.4, 0.7)
    if kind == "low-rank plus noise":
        return noise + 0.3 * normal(rows, 3) @ normal(3, columns)
    if kind == "strong low-rank plus noise":
        return noise + 3 * normal(rows, 2) @ normal(2, columns)
    if kind == "one weak spike":
        left, right = normal(rows, 1), normal(1, columns)
        return noise + 2 * (rows * columns) ** 0.25 * left @ right / left.norm() / right.norm()
    if kind == "low-rank":
        return normal(rows, 5) @ normal(5, columns)
    if kind == "pruned by size":
        return noise * (noise.abs() > 1.2816)  # the outer fifth of a normal law
    if kind == "pruned at random":
        return noise * (uniform < 0.2)
    if kind == "int8":
        step = noise.abs().max() / 127
        return (noise / step).round() * step
    if kind == "orthogonal":
        return torch.linalg.qr(noise.T).Q.T
    if kind == "constant":
        return torch.full((rows, columns), 0.3)
    if kind == "uniform":
        return uniform - 0.5
    if kind == "signs":
        return noise.sign()
    if kind == "Laplace":
        return -noise.sign() * uniform.clamp_min(1e-9).log()
    assert kind == "normal"
    return noise


def looked_at(kind: str, **options) -> LayerAudit:
    return audit({kind: made(kind)}, **options).layers[0]


def off(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.aspect for finding in findings if not finding.random_like}


NOT = "not random-like"
SPIKES = "random-like bulk with spikes"
FINE = "random-like"
# kind, verdict, what the sentence must say, aspects that must be off, aspects that may be
CASES = [
    ("normal", FINE, [], set(), set()),
    (
        "row-scaled",
        NOT,
        ["rows have unequal norms", "by the norms alone"],
        {"norms", "spectrum"},
        {"recovery"},
    ),
    (
        "column-scaled",
        NOT,
        ["columns have unequal norms", "by the norms alone"],
        {"norms", "spectrum"},
        {"recovery"},
    ),
    (
        "column-correlated",
        NOT,
        ["columns are correlated"],
        {"correlations", "spectrum"},
        {"recovery", "norms"},
    ),
    ("row-correlated", NOT, ["rows are correlated"], {"correlations", "spectrum"}, {"recovery", "norms"}),
    (
        "block-diagonal",
        NOT,
        ["blocks have different scales", "50% of the entries are exactly 0"],
        {"blocks"},
        set(),
    ),
    ("block-variance", NOT, ["blocks have different scales"], {"blocks"}, set()),
    ("low-rank plus noise", NOT, ["3 spikes (", "recovery error"], {"recovery"}, set()),
    ("strong low-rank plus noise", NOT, ["2 spikes hold 9"], {"spectrum"}, {"recovery"}),
    ("one weak spike", SPIKES, ["random-like bulk with 1 spike ("], set(), set()),
    ("low-rank", NOT, ["rank 5 of 100"], {"spectrum", "correlations"}, {"norms", "recovery"}),
    ("pruned by size", FINE, ["80% of the entries are exactly 0 (pruned)"], set(), set()),
    ("pruned at random", FINE, ["80% of the entries are exactly 0 (pruned)"], set(), set()),
    ("int8", FINE, ["entries lie on a grid of", "(quantized)"], set(), set()),
    (
        "orthogonal",
        NOT,
        ["off the Marchenko", "rows are more orthogonal"],
        {"spectrum", "correlations"},
        set(),
    ),
    ("uniform", FINE, ["entries are uniform rather than normal"], set(), set()),
    ("signs", FINE, ["entries take only 2 values"], set(), set()),
    ("Laplace", FINE, ["entries are Laplace rather than normal"], set(), set()),
]


@pytest.mark.parametrize(("kind", "verdict", "words", "must", "may"), CASES, ids=[case[0] for case in CASES])
def test_every_kind_of_matrix_gets_its_sentence(kind, verdict, words, must, may):
    layer = looked_at(kind)
    assert layer.verdict == verdict
    assert layer.sentence.startswith({NOT: NOT, SPIKES: "random-like bulk with", FINE: FINE}[verdict])
    for part in words:
        assert part in layer.sentence
    assert must <= off(layer.findings) - {"entries"} <= must | may
    if verdict != NOT and not words:
        assert layer.sentence == "random-like"


def test_a_constant_matrix_is_not_measured():
    layer = looked_at("constant")
    assert layer.verdict == NOT
    assert layer.sentence == "not random-like: all entries are 0.3"
    assert layer.spectrum is None


@pytest.mark.parametrize(("rows", "columns"), [(40, 700), (700, 40)])
@pytest.mark.parametrize("side", ["row", "column"])
def test_the_side_that_is_correlated_is_named_in_any_shape(rows, columns, side):
    """Both sides have the same excess of squared cosines; only one has the outliers."""
    layer = audit({"w": made(f"{side}-correlated", rows, columns)}).layers[0]
    assert f"{side}s are correlated" in layer.sentence
    assert layer.verdict == NOT


@pytest.mark.parametrize(("rows", "columns"), [(40, 700), (700, 40), (64, 64)])
@pytest.mark.parametrize(
    "kind", ["normal", "uniform", "signs", "Laplace", "pruned at random", "one weak spike"]
)
def test_what_is_random_like_is_so_in_any_shape(rows, columns, kind):
    layer = audit({"w": made(kind, rows, columns)}).layers[0]
    assert layer.verdict == (SPIKES if kind == "one weak spike" else FINE)
    assert ("entries" in off(layer.findings)) == (kind not in ("normal", "one weak spike"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("normal", "random-like"),
        ("column-correlated", "columns are correlated"),
        ("row-scaled", "rows have unequal norms"),
        ("low-rank plus noise", "3 spikes ("),
        ("low-rank", "rank at most 5 of 100"),
    ],
)
def test_without_exact_singular_values_the_sentence_is_the_same_in_substance(kind, words):
    layer = looked_at(kind, budget=0)
    assert layer.spectrum.method == "lanczos"
    assert layer.spectrum.error > 0
    assert words in layer.sentence
    assert layer.verdict == (FINE if kind == "normal" else NOT)


def judged(layer: LayerAudit, offsets: Offsets | None = None, **thresholds: float) -> Judgement:
    return judge(
        Thresholds(**thresholds),
        layer.entries,
        offsets,
        layer.spectrum,
        layer.correlations,
        layer.blocks,
        layer.reversal,
        min(layer.rows, layer.columns),
    )


def all_off() -> LayerAudit:
    """Every finding stands, each on its own numbers, well beyond its threshold."""
    certain = {"spread": 0.001, "null": 0.01, "p": 1e-12}
    spectrum = replace(
        made_spectrum(),
        distance=Number(0.2, **certain),
        rescaled=Number(0.2, **certain),
        row_norms=Number(0.5, **certain),
        column_norms=Number(0.05, **certain),
    )
    cosines = tuple(
        Correlations(side, 64, 100, Number(1.5, 0.01, 1.0, 1e-12), Number(0.9), Number(0.1), UNUSED)
        for side in ("rows", "columns")
    )
    return LayerAudit(
        "w",
        "linear",
        100,
        100,
        "not random-like",
        "",
        entries=replace(made_entries(), ks=Number(0.1, **certain)),
        spectrum=spectrum,
        correlations=cosines,
        blocks=Number(0.5, **certain),
        reversal=(made_reversal(2.0),),
    )


OFFSETS = Offsets(100, 0.3, 0.1, Number(3.0, 0.2), 0.2, UNUSED)
ASPECTS = {"entries", "offsets", "spectrum", "norms", "correlations", "blocks", "recovery"}


MOVES = [
    ("normal_distance", 0.11, "entries"),
    ("offset_ratio", 2.9, "offsets"),
    ("spectrum_distance", 0.21, "spectrum"),
    ("norm_spread", 0.51, "norms"),
    ("correlation", 0.51, "correlations"),
    ("block_contrast", 0.51, "blocks"),
    ("recovery_ratio", 1.97, "recovery"),
]


@pytest.mark.parametrize(("name", "value", "aspect"), MOVES)
def test_a_threshold_moves_exactly_its_finding(name, value, aspect):
    layer = all_off()
    assert off(judged(layer, OFFSETS).findings) == ASPECTS
    assert off(judged(layer, OFFSETS, **{name: value}).findings) == ASPECTS - {aspect}


def test_no_threshold_was_forgotten_above():
    elsewhere = {"level", "min_side", "spike_share"}
    assert {field.name for field in fields(Thresholds)} == {name for name, _, _ in MOVES} | elsewhere


def test_norms_are_the_only_cause_when_equal_norms_bring_the_law_back():
    words = "by the norms alone: with equal norms it follows the law"
    layer = all_off()
    assert words not in judged(layer).sentence
    for rescaled in (Number(0.02, 0.001, 0.01, 1e-12), Number(0.2, 0.1, 0.1, 0.2)):  # near, or like chance
        again = replace(layer, spectrum=replace(layer.spectrum, rescaled=rescaled))
        assert words in judged(again).sentence
        assert words not in judged(again, norm_spread=9.0).sentence


def test_the_level_moves_all_findings_that_rest_on_chance():
    found = judged(all_off(), OFFSETS, level=1e-13)
    assert off(found.findings) == {"offsets", "recovery"}  # a plain ratio, and an interval


def test_spikes_are_the_layer_from_their_threshold_on():
    layer = replace(all_off(), spectrum=made_spectrum(spikes=2, spike_share=0.4))
    finding = next(one for one in judged(layer).findings if one.aspect == "spectrum")
    assert finding.random_like
    assert "but for 2 spikes" in finding.sentence
    finding = next(one for one in judged(layer, spike_share=0.39).findings if one.aspect == "spectrum")
    assert not finding.random_like
    assert finding.sentence == "2 spikes hold 40% of the energy"
    one = replace(layer, spectrum=made_spectrum(spikes=1, spike_share=0.8))
    assert "1 spike holds 80% of the energy" in judged(one).sentence


def fine() -> LayerAudit:
    cosines = tuple(
        Correlations(side, 64, 100, Number(1.0, 0.01, 1.0, 0.5), Number(0.4), Number(0.01), UNUSED)
        for side in ("rows", "columns")
    )
    return replace(
        all_off(),
        entries=made_entries(),
        spectrum=made_spectrum(),
        correlations=cosines,
        blocks=Number(0.01, 0.001, 0.01, 0.5),
        reversal=(made_reversal(1.0),),
    )


def test_nothing_found_is_random_like():
    found = judged(fine())
    assert (found.verdict, found.sentence) == ("random-like", "random-like")
    assert len(found.findings) == 6
    assert all(one.random_like and one.sentence for one in found.findings)


def test_entries_and_offsets_are_said_but_do_not_decide():
    layer = replace(fine(), entries=all_off().entries)
    found = judged(layer, OFFSETS)
    assert found.verdict == "random-like"
    assert found.sentence == "random-like; entries are Student t rather than normal (KS 0.100)"
    assert off(found.findings) == {"entries", "offsets"}


def test_entries_that_change_the_recovery_are_said_to():
    entries = replace(
        all_off().entries, kurtosis=Number(50.0), matters_from={"mean": 1, "skew": 1, "kurtosis": 40}
    )
    sentence = judged(replace(fine(), entries=entries)).sentence
    assert "their kurtosis would change the recovery error by 10 % or more" in sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zeros": 0.5}, "50% of the entries are exactly 0 (pruned)"),
        ({"zeros": 0.04}, None),
        ({"distinct": 2}, "entries take only 2 values"),
        ({"distinct": 255, "step": 0.1}, "entries lie on a grid of 255 values (quantized)"),
        ({"distinct": 255}, None),
        ({"zeros": 0.5, "distinct": 16, "step": 0.1}, "(pruned), entries lie on a grid of 16 values"),
    ],
)
def test_pruned_and_quantized_entries_are_told_by_their_values(changes, words):
    finding = judged(replace(fine(), entries=replace(made_entries(), **changes))).findings[0]
    assert finding.aspect == "entries"
    assert finding.random_like == (words is None)
    assert (words or "entries look normal") in finding.sentence


@pytest.mark.parametrize(
    ("mean", "std", "ratio", "constant", "words"),
    [
        (0.0, 0.0, 0.0, True, "offsets are all 0"),
        (-0.5, 0.0, 1e9, True, "offsets are nearly constant"),
        (-0.5, 0.1, 5.0, True, "offsets are nearly constant (|mean|/std 5)"),
        (-0.5, 0.2, 2.5, False, "offsets are not constant (|mean|/std 2.5)"),
    ],
)
def test_offsets(mean, std, ratio, constant, words):
    found = judged(fine(), Offsets(10, mean, std, Number(ratio), 0.5, UNUSED)).findings[1]
    assert found.aspect == "offsets"
    assert found.random_like == constant
    assert words in found.sentence


def test_spikes_are_named_beside_other_reasons():
    layer = replace(fine(), spectrum=made_spectrum(spikes=2), reversal=(made_reversal(2.0),))
    assert judged(layer).sentence.endswith("; 2 spikes (4.0% of the energy) beyond the bulk")
    alone = judged(replace(layer, reversal=(made_reversal(1.0),)))
    assert alone.verdict == "random-like bulk with spikes"
    assert alone.sentence == "random-like bulk with 2 spikes (4.0% of the energy)"


def test_many_values_beyond_the_edge_are_a_wide_spectrum_and_no_spikes():
    wide = made_spectrum(spikes=6, spike_share=0.7)  # of 100
    sentence = judged(replace(fine(), spectrum=wide)).sentence
    words = "spectrum off the Marchenko–Pastur law (6 of 100 values beyond its edge hold 70% of the energy)"
    assert words in sentence
    assert "spikes" not in sentence
    few = made_spectrum(spikes=5, spike_share=0.7)
    assert "5 spikes hold 70% of the energy" in judged(replace(fine(), spectrum=few)).sentence


def test_the_more_values_are_taken_off_the_closer_the_rest_must_be():
    certain = {"spread": 0.001, "null": 0.01, "p": 1e-12}
    for spikes, distance, off in [(0, 0.029, False), (0, 0.031, True), (20, 0.017, False), (20, 0.019, True)]:
        spectrum = made_spectrum(spikes=spikes, spike_share=0.3, distance=0.0)
        spectrum = replace(spectrum, distance=Number(distance, **certain))
        assert (judged(replace(fine(), spectrum=spectrum)).verdict == "not random-like") == off


def test_where_the_density_is_too_coarse_it_cannot_be_told():
    def estimated(distance: float, p: float, error: float, **changes) -> Judgement:
        spectrum = made_spectrum(method="lanczos", error=error, critical=0.012, **changes)
        spectrum = replace(spectrum, distance=Number(distance, 0.002, 0.008, p))
        return judged(replace(fine(), spectrum=spectrum))

    fits = estimated(0.01, 1.0, 0.015)
    assert fits.verdict == "random-like"
    assert fits.sentence == "random-like, as far as a density of its singular values shows"
    unsure = estimated(0.02, 0.5, 0.015, spikes=2)
    assert unsure.verdict == "cannot tell"
    words = (
        "cannot tell at this resolution: the spectrum is 0.005 to 0.035 away from the Marchenko–Pastur law"
    )
    assert unsure.sentence.startswith(words)
    assert "at least 2 spikes (4.0% of the energy)" in unsure.sentence
    assert [one.random_like for one in unsure.findings if one.aspect == "spectrum"] == [None]
    off = estimated(0.1, 1e-9, 0.015, spikes=2)
    assert off.verdict == "not random-like"
    assert "(distance 0.100, at least 0.085, at least 2 values beyond its edge)" in off.sentence
    spiked = estimated(0.01, 1.0, 0.01, spikes=2)
    assert spiked.sentence.startswith(
        "random-like bulk with at least 2 spikes (4.0% of the energy), as far as"
    )


def test_values_below_the_bulk_are_told():
    found = judged(replace(fine(), spectrum=made_spectrum(below=4, null_directions=3)))
    assert found.verdict == "random-like bulk with spikes"
    assert found.sentence == "random-like bulk with 4 singular values below it (3 of them 0)"


def test_the_mean_and_dead_rows_are_remarks():
    layer = replace(fine(), entries=replace(made_entries(), mean=Number(0.02, 0.001, 0.0, 1e-9)))
    found = judged(replace(layer, spectrum=made_spectrum(mean_share=0.04)))
    assert found.verdict == "random-like"
    assert found.sentence == "random-like; the mean of the entries is 0.20 of their standard deviation"
    whole = judged(replace(layer, spectrum=made_spectrum(mean_share=0.8)))
    assert whole.sentence == "not random-like: the mean of the entries holds 80% of the energy"
    assert all(one.decides for one in whole.findings if one.aspect == "mean")


def test_an_uncertain_ratio_above_its_threshold_is_said_beside_the_verdict():
    layer = replace(fine(), reversal=(replace(made_reversal(1.35), interval=(1.07, 1.71)),))
    words = "recovery error 1.35 × that of its shuffled entries (1.07 to 1.71): too uncertain to say"
    assert judged(layer).sentence == f"random-like; {words} that it is above 1.2"


def test_missing_rank_comes_first():
    layer = replace(fine(), spectrum=made_spectrum(null_directions=6, spikes=3, spike_share=0.9))
    assert judged(layer).sentence == "not random-like: rank 94 of 100"
    few = judged(replace(layer, spectrum=made_spectrum(null_directions=5, below=5)))
    assert few.sentence == "random-like bulk with 5 singular values below it (5 of them 0)"


def test_recovery_is_judged_by_the_worst_random_h():
    data = made_reversal(3.0, source="data")
    assert judged(replace(fine(), reversal=(made_reversal(1.0), data))).verdict == "random-like"
    both = judged(replace(fine(), reversal=(made_reversal(1.0), made_reversal(1.5))))
    assert "recovery error 1.50 × that of its shuffled entries (1.46 to 1.54)" in both.sentence
    better = judged(replace(fine(), reversal=(made_reversal(0.5),)))
    assert better.verdict == "random-like"
    assert "recovers better than random" in better.findings[-1].sentence
    assert judged(replace(fine(), reversal=())).findings[-1].random_like


def test_an_uncertain_ratio_is_no_finding():
    wide = replace(made_reversal(2.0), interval=(1.1, 3.6))
    assert judged(replace(fine(), reversal=(wide,))).verdict == "random-like"


def test_the_same_judgement_for_smaller_and_larger_cosines():
    def cosines(times: float, largest: float) -> tuple[Correlations, ...]:
        return tuple(
            Correlations(side, 64, 100, Number(times, 0.01, 1.0, 1e-9), Number(largest), Number(0.1), UNUSED)
            for side in ("rows", "columns")
        )

    assert (
        "more orthogonal than chance (rms cosine × 0.50)"
        in judged(replace(fine(), correlations=cosines(0.5, 0.1))).sentence
    )
    rows, columns = cosines(1.4, 0.45)
    named = judged(replace(fine(), correlations=(rows, replace(columns, largest=Number(0.8))))).sentence
    assert "columns are correlated (rms cosine × 1.40, largest 0.80)" in named
    assert judged(replace(fine(), correlations=cosines(1.05, 0.4))).verdict == "random-like"
