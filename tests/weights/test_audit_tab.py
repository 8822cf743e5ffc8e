"""The Audit tab against the audit."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from obverse import audit
from obverse._core.errors import BadInput
from obverse.present.fields import Fields
from obverse.weights import tab as audit_tab
from obverse.weights.tab import audit_answer, shared


def ask(subject, **changes):
    return audit_answer(subject, Fields({"layer": "h1", "keep": 1.0} | changes))


@pytest.mark.parametrize("layer", ["h1", "h2", "h3"])
def test_it_says_what_the_audit_says(subject, layer):
    expected = next(one for one in audit(subject.net).layers if one.name == layer)
    found = ask(subject, layer=layer)
    assert (found["verdict"], found["sentence"]) == (expected.verdict, expected.sentence)
    worst = expected.worst()
    assert found["ratio"] == (None if worst is None else worst.ratio.value)


def test_pictures_are_svg_that_refers_to_what_is_shared(subject):
    known = {one.get("id") for one in ElementTree.fromstring(shared()).iter()}
    pictures = [cell["picture"] for cell in ask(subject)["cells"] if cell["picture"]]
    assert len(pictures) >= 5
    for picture in pictures:
        for one in ElementTree.fromstring(picture).iter():
            target = one.get("href")
            assert target is None or target.removeprefix("#") in known
            assert one.get("style") is None  # which the page's policy would not let through


def test_keeping_less_is_recovered_worse(subject):
    assert ask(subject, keep=0.25)["recovery"] > ask(subject)["recovery"]


def test_a_layer_too_large_to_wait_for_is_not_begun(subject, monkeypatch):
    monkeypatch.setattr(audit_tab, "LARGEST", 100)
    found = ask(subject)
    assert found["verdict"] == "not judged"
    assert "use obverse audit" in found["sentence"]
    assert found["ratio"] is None


@pytest.mark.parametrize("wrong", [{"layer": "h9"}, {"keep": 0}, {"keep": None}])
def test_what_is_out_of_bounds_is_refused(subject, wrong):
    with pytest.raises(BadInput):
        ask(subject, **wrong)
