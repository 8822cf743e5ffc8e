"""What a claim must bring along, and the conditions that settings must meet."""

from __future__ import annotations

import pytest
import torch

from obverse import BadInput
from obverse.claims._claim import Claim, grid, per_trial
from obverse.claims._rules import Equal
from obverse.claims.alm._conditions import check_hidden, check_keep, check_layer
from obverse.claims.alm._hidden import LAWS, draw_hidden


def measure(setting, generator):
    return [1.0]


def make(**changes):
    fields = {
        "id": "test.one",
        "title": "one",
        "statement": "One is one.",
        "source": "nowhere",
        "grid": grid(m=3),
        "predict": lambda setting: 1.0,
        "measure": measure,
        "rule": Equal(),
        "quantity": "one",
        "axis": "m",
    }
    return Claim(**(fields | changes))


def test_the_grid_is_every_combination():
    assert grid(m=2, t=(1, 2), law=("a", "b")) == (
        {"m": 2, "t": 1, "law": "a"},
        {"m": 2, "t": 1, "law": "b"},
        {"m": 2, "t": 2, "law": "a"},
        {"m": 2, "t": 2, "law": "b"},
    )


def test_the_quick_grid_is_the_full_one_unless_given():
    assert make().settings(quick=True) == make().grid
    assert make(quick=grid(m=1)).settings(quick=True) == grid(m=1)
    assert make(quick=grid(m=1)).settings() == grid(m=3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"id": "with space"}, "an id of letters"),
        ({"id": "../escape"}, "an id of letters"),
        ({"grid": ()}, "at least one setting"),
        ({"axis": "t"}, "'t' in every setting"),
        ({"series": "k"}, "'k' in every setting"),
        ({"quick": grid(t=1)}, "'m' in every setting"),
    ],
)
def test_what_a_claim_refuses(changes, sentence):
    with pytest.raises(BadInput, match=sentence):
        make(**changes)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"k": 11, "m": 10}, r"k ≤ m: .*eq\. 8.*got k = 11, m = 10"),
        ({"k": 0, "m": 10}, "support must not be empty"),
        ({"t": 20, "n": 10}, r"ρ = t/n in \(0, 1\]"),
        ({"t": 0, "n": 10}, "t > 0"),
        ({"n": -1}, "n > 0"),
        ({"m": "many"}, "m > 0"),
        ({"m": float("nan")}, "m > 0"),
    ],
)
def test_a_setting_that_violates_a_condition_is_told_which(setting, sentence):
    with pytest.raises(BadInput, match=sentence):
        check_layer(setting)


def test_settings_at_the_edge_are_fine():
    check_layer({"k": 10, "m": 10, "t": 5, "n": 5})
    check_keep(1.0)


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.1, float("nan")])
def test_keep(keep):
    with pytest.raises(BadInput, match=r"ρ in \(0, 1\]"):
        check_keep(keep)


def test_hidden_vectors_are_not_negative_and_not_empty():
    check_hidden(torch.tensor([0.0, 1.0]))
    with pytest.raises(BadInput, match="h ≥ 0"):
        check_hidden(torch.tensor([1.0, -1.0]))
    for empty in (torch.zeros(3), torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.zeros(0)):
        with pytest.raises(BadInput, match="support"):
            check_hidden(empty)


@pytest.mark.parametrize("law", LAWS)
def test_hidden_vectors_are_sparse_and_of_norm_one(law):
    h = draw_hidden(200, 30, 4, law, torch.Generator().manual_seed(0))
    assert h.shape == (200, 30)
    assert (h >= 0).all()
    assert ((h > 0).sum(1) == 4).all()
    assert torch.allclose(h.norm(dim=1), torch.ones(200, dtype=torch.float64), atol=1e-12)
    # each coordinate is active in 4/30 of the rows: 26.7 ± 4.8 of 200, five standard deviations
    counts = (h > 0).sum(0).double()
    assert (counts - 200 * 4 / 30).abs().max() < 5 * (200 * 4 / 30 * 26 / 30) ** 0.5


def test_a_law_of_h_that_there_is_not():
    with pytest.raises(BadInput, match="half-normal, uniform, equal"):
        draw_hidden(1, 3, 1, "cauchy", torch.Generator())


def test_a_twin_shares_what_is_not_changed():
    printed = make(twin="test.two", expected="failed", remark="why")
    corrected = printed.other(reading="corrected", title="two")
    assert (corrected.id, corrected.twin) == ("test.two", "test.one")
    assert (corrected.expected, corrected.remark) == ("held", "")
    assert corrected.measure is printed.measure
    assert corrected.grid == printed.grid


def test_a_claim_of_the_same_family_shares_what_is_not_changed():
    first = make(twin="test.two", expected="failed", remark="why", place="“there”, §1")
    second = first.also(id="test.three", title="three")
    assert (second.id, second.title, second.twin) == ("test.three", "three", "")
    assert (second.expected, second.remark, second.place) == ("held", "", "")
    assert (second.measure, second.grid, second.rule) == (first.measure, first.grid, first.rule)


def test_a_prediction_is_a_number_or_a_function():
    assert make(predict=2).predicted({"n": 3}) == 2.0
    assert make(predict=lambda setting: 2 * setting["n"]).predicted({"n": 3}) == 6.0


def whole(setting):
    if setting["n"] < 1:
        raise BadInput("n ≥ 1", got=setting["n"], do="raise n")


def test_nothing_is_predicted_outside_the_domain():
    claim = make(predict=2.0, domain=whole)
    assert claim.predicted({"n": 1}) == 2.0
    for refuse in (claim.check, claim.predicted):
        with pytest.raises(BadInput, match="expected n ≥ 1; got 0"):
            refuse({"n": 0})
    make().check({"n": 0})  # without one, every setting


def test_a_trial_is_done_as_often_as_the_setting_says():
    """With one generator: the numbers of a loop written out."""

    @per_trial
    def measure(setting, generator):
        return setting["n"] * torch.rand(2, generator=generator, dtype=torch.float64).sum()

    by_hand = 3 * torch.rand(4, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64).sum(1)
    found = measure({"n": 3, "trials": 4}, torch.Generator().manual_seed(1))
    assert found == by_hand.tolist()
    assert measure.__name__ == "measure"
