"""diversity.json: written and read back as it is; what is out of order is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from obverse._core.errors import BadInput
from obverse.diversity._measure import assess
from obverse.diversity._verdict import outlook
from obverse.diversity.results import Diversity, numbers, read_diversity
from saved import result_text, write_result


@pytest.fixture(scope="module")
def found() -> Diversity:
    x = torch.rand(120, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    source = torch.Generator().manual_seed(0)  # with a collision, and no fault by chance
    return assess(x, train=x[:40], real=x[40:80], samples=50, batch_size=5, batches=4, generator=source)[0]


def test_it_is_read_back_as_it_was_written(found, tmp_path):
    write_result(found, tmp_path / "diversity.json")
    assert read_diversity(tmp_path) == found
    assert read_diversity(tmp_path / "diversity.json") == found


def test_it_says_its_verdict_first_then_what_has_to_be_said_at_once(found):
    first, *others = str(found).splitlines()
    assert first == "the samples: No fault found at these sizes: 120 samples, 7 tests (95 %)."
    assert others == outlook(found)
    assert others[0].startswith("These sizes would have shown in 8 of 10 cases: ")
    assert others[-1].startswith(("It copies", "No sign of copying"))


def test_numbers_are_found_however_deep(found):
    assert found.birthday.threshold.distance in numbers(found)
    assert found.quality is not None
    assert found.quality.recall.error in numbers(found)
    assert True not in [one for one in numbers(found.birthday) if isinstance(one, bool)]


def change(found: Diversity, **changes: object) -> str:
    return result_text(replace(found, **changes))  # type: ignore[arg-type]


def spoil(text: str, path: tuple[str, ...], value: object) -> str:
    whole = json.loads(text)
    inner = whole
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return json.dumps(whole)


WRONG = [
    (("seconds",), -1.0, "a time that can be read"),
    (("birthday", "batch_size"), 1, "batches of at least two samples"),
    (("birthday", "batches"), 0, "batches of at least two samples"),
    (("birthday", "collisions"), 5, "collisions in as many batches"),
    (("birthday", "confidence"), 1.0, r"a confidence in \(0, 1\)"),
    (("birthday", "support_bound"), None, "a bound, or how many"),
    (("birthday", "effective", "dispersion"), 1e308, "finite numbers"),
    (("quality", "precision", "value"), 2.0, "shares from 0 to 1"),
    (("shape",), [], "a shape"),
    (("shape",), [0], "a shape"),
    (("subject",), 3, "a text"),
    (("nothing",), 3, "no fields but"),
    (("format",), 2, "format 1"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG, ids=[".".join(path) for path, _, _ in WRONG])
def test_what_is_out_of_order_is_refused(found, tmp_path, path, value, said):
    (tmp_path / "diversity.json").write_text(spoil(result_text(found), path, value))
    with pytest.raises(BadInput, match=said):
        read_diversity(tmp_path)


def test_too_many_labels_are_refused(found, tmp_path):
    from obverse.diversity.results import MOST_LABELS, LabelFound

    label = LabelFound("a", 1.0, 0.1, 0.9)
    (tmp_path / "diversity.json").write_text(change(found, labels=(label,) * (MOST_LABELS + 1)))
    with pytest.raises(BadInput, match="at most 100 labels"):
        read_diversity(Path(tmp_path))
