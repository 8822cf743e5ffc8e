"""The closed forms of the claims about lossy ladders, against numbers by hand."""

from fractions import Fraction
from itertools import product
from math import comb

import pytest
import torch

from obverse.claims.ladder import _conditions as conditions
from obverse.claims.ladder import _lossy as lossy

SUMMARIES = {
    "and": all,
    "or": any,
    "xor": lambda bits: sum(bits) % 2 == 1,
    "majority": lambda bits: 2 * sum(bits) > len(bits),
}


@pytest.mark.parametrize("rule", SUMMARIES)
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 5)])
def test_broadness_in_fractions(rule, bits, chance):
    """1 − Σ P(z_β | z_α)² averaged over z_α, every input counted."""
    joint = dict.fromkeys(product((0, 1), (0, 1)), Fraction(0))
    for x in product((0, 1), repeat=bits):
        weight = chance ** sum(x) * (1 - chance) ** (bits - sum(x))
        joint[int(SUMMARIES[rule](x)), x[0]] += weight
    expected = sum(
        joint[a, b] * (1 - joint[a, b] / (joint[a, 0] + joint[a, 1])) for a, b in joint if joint[a, b]
    )
    found = lossy.broadness({"rule": rule, "bits": bits, "chance": float(chance)})
    assert found == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("bits", [2, 3, 5, 9])
def test_broadness_of_even_bits_as_it_is_stated(bits):
    even = {"bits": bits, "chance": 0.5}
    stated = (2 ** (bits - 1) - 1) / (2**bits - 1)
    assert lossy.broadness({**even, "rule": "and"}) == pytest.approx(stated, rel=1e-12)
    assert lossy.broadness({**even, "rule": "or"}) == pytest.approx(stated, rel=1e-12)
    assert lossy.broadness({**even, "rule": "xor"}) == pytest.approx(0.5, rel=1e-12)
    if bits % 2:
        lean = comb(bits - 1, (bits - 1) // 2) / 2**bits
        assert lossy.broadness({**even, "rule": "majority"}) == pytest.approx(0.5 - 2 * lean**2, rel=1e-12)


@pytest.mark.parametrize("bits", [2, 3, 4, 7])
def test_what_and_takes_from_the_fourth_condition_in_fractions(bits):
    total = Fraction(0)
    for event in (False, True):
        inputs = [x for x in product((0, 1), repeat=bits) if all(x) == event]
        chance = Fraction(len(inputs), 2**bits)
        first = Fraction(sum(x[0] for x in inputs), len(inputs))
        every = Fraction(sum(map(sum, inputs)), len(inputs))
        total += chance * (Fraction(sum(x[0] * sum(x) for x in inputs), len(inputs)) - first * every)
    assert conditions.fourth_of_and({"bits": bits}) == pytest.approx(float(total), rel=1e-12)
    assert bits != 2 or total == Fraction(1, 12)


def test_the_law_of_bits():
    p = lossy.bits_law(torch.tensor([0.25, 0.5], dtype=torch.float64))
    assert p.tolist() == [0.375, 0.375, 0.125, 0.125]


def test_a_distance_of_laws():
    """P(x | given, also) against P(x | given): halves that `also` tells apart are ½ away from their mean."""
    given, also = torch.zeros(2, dtype=torch.long), torch.tensor([0, 1])
    even = torch.tensor([0.5, 0.5], dtype=torch.float64)
    assert lossy.total_variation(given, also, torch.tensor([0, 1]), even) == pytest.approx(0.5)
    assert lossy.total_variation(given, also, torch.tensor([0, 0]), even) == 0
