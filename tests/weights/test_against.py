"""Two audits side by side: layers paired by name, changes marked where they exceed chance."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from obverse import BadInput
from obverse.weights._against import CLEAR, compare_audits
from obverse.weights.results import Number
from weights.made_audits import made_audit, made_entries, made_layer, made_parts, unmeasured

BEFORE = made_audit(
    made_layer("h1"), made_layer("h2"), made_layer("old"), unmeasured("out"), model="before.npz"
)
AFTER = made_audit(
    unmeasured("out"),
    made_layer("h1", "signal in a random bulk", ratio=1.5, distance=0.05, rank=4, ks=0.0041),
    made_layer("h2", ratio=1.03, rows=128),
    made_layer("new"),
    model="after.npz",
)


def test_layers_are_paired_by_name_in_the_order_of_the_later_audit():
    found = compare_audits(BEFORE, AFTER)
    assert [one.name for one in found.layers] == ["out", "h1", "h2"]
    assert (found.only_before, found.only_after) == (("old",), ("new",))
    assert (found.before, found.after, found.notes) == ("before.npz", "after.npz", ())


def test_a_change_holds_both_numbers_and_their_combined_error():
    _, first, second = compare_audits(BEFORE, AFTER).layers
    assert (first.verdict_before, first.verdict_after) == ("untouched", "signal in a random bulk")
    assert first.ratio is not None
    assert (first.ratio.before, first.ratio.after) == (1.02, 1.5)
    assert first.ratio.error == pytest.approx(math.sqrt(0.02**2 + 0.02**2))
    assert first.distance is not None
    assert first.distance.error == pytest.approx(math.sqrt(2) * 0.002)
    assert first.rank is not None
    # intervals of 0 to 1 and 4 to 5, 1.96 standard errors to either side
    assert (first.rank.before, first.rank.after) == (0, 4)
    assert first.rank.error == pytest.approx(math.sqrt(2) * 0.5 / 1.96)
    assert first.random_share is not None
    assert (first.random_share.before, first.random_share.after) == (1.0, 0.92)
    assert first.random_share.error == pytest.approx(math.hypot(0.005, 0.01) / 1.96)
    assert (second.shape_before, second.shape_after) == ((64, 100), (128, 100))


def test_the_mark_stands_where_a_change_exceeds_its_error():
    _, first, second = compare_audits(BEFORE, AFTER).layers
    clear = {name: getattr(first, name).clear for name in ("random_share", "rank", "ratio", "distance", "ks")}
    assert clear == {"random_share": True, "rank": True, "ratio": True, "distance": True, "ks": False}
    assert second.ratio is not None
    assert not second.ratio.clear
    assert str(second.ratio) == "1.02 → 1.03"
    assert str(first.ratio) == "1.02 → 1.5*"


def test_lower_bounds_are_counted_without_an_error():
    exact, bound = (made_audit(made_layer(parts=made_parts(rank_is_bound=bound))) for bound in (False, True))
    (change,) = compare_audits(exact, bound).layers
    assert change.rank is not None
    assert change.rank.error is None


def test_without_a_standard_error_there_is_no_mark():
    old, new = (
        made_audit(made_layer(entries=replace(made_entries(), ks=Number(value)))) for value in (0.1, 0.9)
    )
    (change,) = compare_audits(old, new).layers
    assert change.ks is not None
    assert (change.ks.error, change.ks.clear) == (None, False)


def test_what_one_did_not_measure_is_no_change():
    found = compare_audits(made_audit(made_layer("out")), made_audit(unmeasured("out"))).layers[0]
    assert found.ratio is found.distance is found.rank is found.random_share is found.ks is None
    assert str(found) == "out: untouched → not judged, shape 64 × 100 → 10 × 64"


@pytest.mark.slow  # a simulation
def test_marks_by_chance_are_as_rare_as_two_standard_errors_say():
    """Both numbers drawn around the same truth: the share of marks is 2(1 − Φ(2)) = 4.55 %."""
    draw = random.Random(1)
    errors = (0.02, 0.05)
    total, marked = 4000, 0
    for _ in range(total):
        numbers = [Number(draw.gauss(1.0, error), error) for error in errors]
        sides = [made_audit(made_layer(entries=replace(made_entries(), ks=number))) for number in numbers]
        ks = compare_audits(*sides).layers[0].ks
        marked += ks is not None and ks.clear
    expected = math.erfc(CLEAR / math.sqrt(2))
    # 4 binomial standard errors
    assert abs(marked / total - expected) < 4 * math.sqrt(expected * (1 - expected) / total)


def test_the_summary_says_how_many_verdicts_changed_and_how():
    assert compare_audits(BEFORE, AFTER).summary == (
        "3 layers in both: 1 verdict changed (1 untouched → signal in a random bulk); "
        "random share clearly higher in 0, lower in 1; 1 only in base; 1 only in tuned"
    )
    assert compare_audits(AFTER, BEFORE).summary.startswith(
        "3 layers in both: 1 verdict changed (1 signal in a random bulk → untouched); "
        "random share clearly higher in 1, lower in 0"
    )
    same = compare_audits(made_audit(made_layer()), made_audit(made_layer()))
    assert same.summary == "1 layer in both: no verdict changed; random share clearly changed in none"
    assert compare_audits(made_audit(), AFTER).summary == "no layer is in both; 4 only in tuned"


def test_as_text_it_names_every_layer():
    assert str(compare_audits(BEFORE, AFTER)).splitlines()[1:] == [
        "  out: not judged",
        "  h1: untouched → signal in a random bulk, random share 1 → 0.92*, directions 0 → 4*, "
        "ratio 1.02 → 1.5*, bulk 0.002 → 0.042*, KS 0.004 → 0.0041",
        "  h2: untouched, shape 64 × 100 → 128 × 100, random share 1 → 1, directions 0 → 0, "
        "ratio 1.02 → 1.03, bulk 0.002 → 0.002, KS 0.004 → 0.004",
        "  old: only in base",
        "  new: only in tuned",
    ]


def test_different_thresholds_and_settings_are_noted_and_the_seed_is_not():
    before = made_audit(made_layer(), keep=0.5, seed=3)
    after = replace(made_audit(made_layer()), thresholds=before.thresholds | {"level": 0.5})
    assert compare_audits(before, after).notes == (
        "judged by different thresholds: level",
        "measured with different settings: keep",
    )
    assert str(compare_audits(before, after)).endswith("note: measured with different settings: keep")
    assert compare_audits(made_audit(seed=1), made_audit(seed=2)).notes == ()


def test_it_is_plain_json():
    found = compare_audits(BEFORE, AFTER)
    value = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert value["layers"][1]["ratio"] == {
        "before": 1.02, "after": 1.5, "error": pytest.approx(0.02 * math.sqrt(2)),
    }  # fmt: skip
    assert value["only_after"] == ["new"]


def test_layers_of_one_name_cannot_be_paired():
    with pytest.raises(BadInput, match=r"different names in twice, .* got 'h1' more than once"):
        compare_audits(made_audit(made_layer("h1"), made_layer("h1"), model="twice"), AFTER)
