"""Verdicts and sentences: every kind of matrix gets its own, and every threshold moves its own remark."""

from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
import torch

from obverse.weights import LayerAudit, Thresholds, audit
from obverse.weights._structure import Arrangement
from obverse.weights._verdict import Judgement, judge
from obverse.weights.results import Correlations, Decomposition, Entries, Histogram, Interval, Number, Offsets
from weights.made_audits import made_entries, made_parts, made_reversal

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


def remarked(found: LayerAudit | Judgement) -> set[str]:
    return {one.aspect for one in found.findings if one.random_like is False and not one.decides}


UNTOUCHED, SIGNAL, MOSTLY, OTHERWISE = (
    "untouched",
    "signal in a random bulk",
    "mostly signal",
    "structured otherwise",
)
NOTHING = "no direction stands out from noise; the spectrum is like that of random numbers"
# kind, verdict, what the sentence begins with, remarks that must be there
CASES = [
    ("normal", UNTOUCHED, NOTHING, set()),
    ("row-scaled", UNTOUCHED, NOTHING, {"norms"}),
    ("column-scaled", UNTOUCHED, NOTHING, {"norms"}),
    ("low-rank plus noise", SIGNAL, "3 of 100 directions carry the signal, ", {"recovery"}),
    ("strong low-rank plus noise", MOSTLY, "2 of 100 directions carry the signal, 9", {"recovery"}),
    ("one weak spike", SIGNAL, "1 of 100 directions carries the signal, ", set()),
    ("low-rank", MOSTLY, "5 of 100 directions carry everything; the others are empty", set()),
    ("pruned at random", UNTOUCHED, NOTHING, {"entries"}),
    ("int8", UNTOUCHED, NOTHING, {"entries"}),
    (
        "orthogonal",
        OTHERWISE,
        "no direction stands out from noise; the spectrum is not like that of random numbers",
        {"correlations"},
    ),
    ("uniform", UNTOUCHED, NOTHING, {"entries"}),
    ("signs", UNTOUCHED, NOTHING, {"entries"}),
    ("Laplace", UNTOUCHED, NOTHING, {"entries"}),
]


@pytest.mark.parametrize(("kind", "verdict", "words", "remarks"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("exact", [True, False])
def test_every_kind_of_matrix_gets_its_verdict_from_all_singular_values_and_from_few(
    kind, verdict, words, remarks, exact
):
    layer = looked_at(kind, exact=exact, samples=8)
    assert layer.verdict == layer.parts.grade == verdict
    if kind == "low-rank" and not exact:  # that the others are empty, all singular values tell
        words = "5 of 100 directions carry more than 99.9999"
    assert layer.sentence.startswith(words)
    assert layer.parts.method == ("exact" if exact else "krylov")
    assert remarks <= remarked(layer)
    assert layer.off == (() if verdict == UNTOUCHED else ("parts",))


@pytest.mark.parametrize("kind", ["row-correlated", "column-correlated", "block-diagonal"])
def test_structure_of_high_rank_is_not_called_untouched(kind):
    layer = looked_at(kind, samples=8)
    assert layer.verdict not in (UNTOUCHED, "cannot tell")
    assert layer.p < 1e-6


def test_blocks_are_a_structure_that_the_spectrum_may_not_show():
    layer = looked_at("block-variance", samples=8)
    assert "blocks" in remarked(layer)
    assert "blocks have different scales" in layer.sentence
    assert layer.verdict == OTHERWISE


def test_a_constant_matrix_is_one_direction():
    layer = looked_at("constant")
    assert layer.verdict == MOSTLY
    assert (
        layer.sentence == "1 of 100 directions carries everything; the others are empty: all entries are 0.3"
    )
    assert layer.random_share.value == 0


@dataclass(frozen=True)
class Measured:
    entries: Entries
    parts: Decomposition
    arranged: Arrangement
    reversal: tuple[Any, ...]

    def judged(
        self,
        offsets: Offsets | None = None,
        mean_share: float = 0.0,
        dead: Any = ((0, 1), (0, 1)),
        **thresholds: float,
    ) -> Judgement:
        measured = (self.entries, offsets, self.parts, self.arranged, self.reversal)
        return judge(Thresholds(**thresholds), *measured, dead, mean_share)


def cosines(times: float, largest: float, p: float) -> tuple[Correlations, Correlations]:
    rows, columns = (
        Correlations(side, 64, 100, Number(times, 0.01, 1.0, p), Number(largest), Number(0.1), UNUSED)
        for side in ("rows", "columns")
    )
    return rows, columns


def all_off() -> Measured:
    """Every remark stands, each on its own numbers, well beyond its threshold."""
    certain = {"spread": 0.001, "null": 0.01, "p": 1e-12}
    arranged = Arrangement(
        Number(0.5, **certain),
        Number(0.05, **certain),
        cosines(1.5, 0.9, 1e-12),
        Number(0.5, **certain),
        0.0,
    )
    entries = replace(made_entries(), ks=Number(0.1, **certain))
    return Measured(entries, made_parts(), arranged, (made_reversal(2.0),))


def fine() -> Measured:
    chance = Number(0.01, 0.001, 0.01, 0.5)
    arranged = Arrangement(chance, chance, cosines(1.0, 0.4, 0.5), chance, 0.0)
    return Measured(made_entries(), made_parts(), arranged, (made_reversal(1.0),))


OFFSETS = Offsets(100, 0.3, 0.1, Number(3.0, 0.2), 0.2, UNUSED)
ASPECTS = {"entries", "offsets", "norms", "correlations", "blocks", "recovery"}
MOVES = [
    ("normal_distance", 0.11, "entries"),
    ("offset_ratio", 2.9, "offsets"),
    ("norm_spread", 0.51, "norms"),
    ("correlation", 0.51, "correlations"),
    ("block_contrast", 0.51, "blocks"),
    ("recovery_ratio", 1.97, "recovery"),
]


@pytest.mark.parametrize(("name", "value", "aspect"), MOVES)
def test_a_threshold_moves_exactly_its_remark(name, value, aspect):
    assert remarked(all_off().judged(OFFSETS)) == ASPECTS
    assert remarked(all_off().judged(OFFSETS, **{name: value})) == ASPECTS - {aspect}


def test_no_threshold_was_forgotten_above():
    elsewhere = {"level", "min_side"}
    assert {field.name for field in fields(Thresholds)} == {name for name, _, _ in MOVES} | elsewhere


def test_the_level_moves_all_remarks_that_rest_on_chance():
    found = all_off().judged(OFFSETS, level=1e-13)
    assert remarked(found) == {"offsets", "recovery"}  # a plain ratio, and an interval


def test_remarks_do_not_decide():
    for measured in (all_off(), fine()):
        found = measured.judged(OFFSETS, block_contrast=9.0)
        assert found.verdict == UNTOUCHED
        assert found.sentence.startswith(NOTHING)
        assert [one.aspect for one in found.findings if one.decides] == ["parts"]
    assert remarked(fine().judged()) == set()
    assert fine().judged().sentence == NOTHING


@pytest.mark.parametrize("grade", [SIGNAL, MOSTLY, OTHERWISE, "cannot tell"])
def test_the_verdict_is_the_grade_of_the_parts(grade):
    found = replace(fine(), parts=made_parts(grade)).judged()
    assert found.verdict == grade
    assert found.sentence == made_parts(grade).sentence
    (deciding,) = (one for one in found.findings if one.decides)
    assert deciding.random_like is (None if grade == "cannot tell" else False)


def test_entries_that_change_the_recovery_are_said_to():
    entries = replace(
        all_off().entries, kurtosis=Number(50.0), matters_from={"mean": 1, "skew": 1, "kurtosis": 40}
    )
    sentence = replace(fine(), entries=entries).judged().sentence
    assert "their kurtosis would change the recovery error by 10 % or more" in sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zeros": 0.5}, "50.0\u00a0% of the entries are exactly 0"),
        ({"zeros": 0.9999}, "more than 99.9\u00a0% of the entries are exactly 0"),
        ({"zeros": 0.04}, None),
        ({"distinct": 2}, "entries take only 2 values"),
        ({"distinct": 255, "step": 0.1}, "entries lie on a grid of 255 values"),
        ({"distinct": 255}, None),
        ({"zeros": 0.5, "distinct": 16, "step": 0.1}, "exactly 0, entries lie on a grid of 16 values"),
    ],
)
def test_pruned_and_quantized_entries_are_told_by_their_values(changes, words):
    found = replace(fine(), entries=replace(made_entries(), **changes)).judged()
    (finding,) = (one for one in found.findings if one.aspect == "entries")
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
    found = fine().judged(Offsets(10, mean, std, Number(ratio), 0.5, UNUSED))
    (finding,) = (one for one in found.findings if one.aspect == "offsets")
    assert finding.random_like == constant
    assert words in finding.sentence


def test_the_mean_has_its_own_name_and_its_share_of_the_energy():
    layer = replace(fine(), entries=replace(made_entries(), mean=Number(0.02, 0.001, 0.0, 1e-9)))
    found = layer.judged(mean_share=0.04)
    assert found.verdict == SIGNAL
    assert found.sentence.startswith(
        "the mean of the entries (0.200 standard deviations) holds 4.0\u00a0% of the energy and was taken "
        "off first; without it, no direction"
    )
    assert found.parts.random_share == Interval(*(pytest.approx(one * 0.96) for one in (1.0, 0.99, 1.0)))
    whole = layer.judged(mean_share=0.8)
    assert whole.verdict == MOSTLY
    assert whole.sentence.startswith(
        "the mean of the entries (0.200 standard deviations) holds 80.0\u00a0% of the energy"
    )
    assert whole.sentence.count("the mean") == 1


def test_dead_rows_are_counted():
    words = "3 of 64 rows are all 0 and left out, 1 of 9 columns is all 0 and left out"
    assert fine().judged(dead=((3, 64), (1, 9))).sentence.endswith(words)


def test_recovery_is_remarked_at_the_worst_random_h():
    data = made_reversal(3.0, source="data")
    assert remarked(replace(fine(), reversal=(made_reversal(1.0), data)).judged()) == set()
    both = replace(fine(), reversal=(made_reversal(1.0), made_reversal(1.5))).judged()
    assert "recovery error 1.50 × that of its shuffled entries (1.46 to 1.54)" in both.sentence
    better = replace(fine(), reversal=(made_reversal(0.5),)).judged()
    assert "recovers better than random" in better.findings[-1].sentence
    assert replace(fine(), reversal=()).judged().findings[-1].random_like is None
    unsure = replace(made_reversal(1.35), interval=(1.07, 1.71))
    found = replace(fine(), reversal=(unsure,)).judged().findings[-1]
    assert found.random_like is None
    assert "(1.07 to 1.71): too uncertain to say that it is above 1.2" in found.sentence


def test_smaller_and_larger_cosines_are_named():
    def said(pair: tuple[Correlations, Correlations]) -> str:
        found = replace(fine(), arranged=replace(fine().arranged, cosines=pair)).judged()
        return next(one.sentence for one in found.findings if one.aspect == "correlations")

    assert "more orthogonal than chance (rms cosine × 0.50)" in said(cosines(0.5, 0.1, 1e-9))
    rows, columns = cosines(1.4, 0.45, 1e-9)
    named = said((rows, replace(columns, largest=Number(0.8))))
    assert "columns are correlated (rms cosine × 1.40, largest 0.80)" in named
    assert "as uncorrelated as those of random entries" in said(cosines(1.05, 0.4, 1e-9))


@pytest.mark.parametrize(("rows", "columns"), [(40, 700), (700, 40)])
@pytest.mark.parametrize("kind", ["normal", "signs", "Laplace", "pruned at random", "one weak spike"])
def test_noise_is_untouched_in_any_shape(rows, columns, kind):
    layer = audit({"w": made(kind, rows, columns)}, samples=8).layers[0]
    assert layer.verdict == (SIGNAL if kind == "one weak spike" else UNTOUCHED)
    assert ("entries" in remarked(layer)) == (kind not in ("normal", "one weak spike"))
