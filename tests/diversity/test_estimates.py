"""A number with its error, and one progress over several passes."""

from __future__ import annotations

from obverse.diversity._estimates import Estimate, one_pass


def test_an_estimate_is_plain():
    assert Estimate(0.5, 0.012).to_dict() == {"value": 0.5, "error": 0.012}
    assert str(Estimate(12.345, 0.678)) == "12.3 ± 0.68"


def test_passes_make_one_progress():
    seen = []
    for number, blocks in enumerate((1, 3, 2)):
        tell = one_pass(lambda done, total, what: seen.append(done / total), number, 3)
        for done in range(1, blocks + 1):
            tell(done, blocks, "points")
    assert seen == sorted(seen)
    assert [round(value, 3) for value in seen] == [0.333, 0.444, 0.555, 0.667, 0.833, 1.0]
    assert one_pass(None, 0, 3) is None
