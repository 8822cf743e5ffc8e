"""Every public result is a value: frozen, with to_dict, a short str and a repr of one line."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, is_dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from claims.sample_sweeps import sample_sweep
from diversity.sample_diversity import sample_diversity
from ladder.sample_ladders import sample_ladder
from obverse._core import Record
from obverse.diversity import (
    birthday_test,
    discrepancy,
    intrinsic_dimension,
    memorization,
    moments,
    path_length,
    quality,
    quality_test,
    vendi,
)
from obverse.identity import critical_point, descend, factorize, memorize
from obverse.integrations import Watch
from obverse.ladder import enumerate_teacher, race, random_student, tree
from obverse.weights import Decision, ablate, compare_audits, compress, decompose, difference
from shadow.sample_surveys import sample_survey
from training.sample_searches import sample_search
from weights.sample_adapters import sample_adapter
from weights.sample_audits import before_training, sample_audit

ROOMS = (
    "data",
    "nets",
    "shadow",
    "weights",
    "diversity",
    "generative",
    "identity",
    "ladder",
    "training",
    "claims",
    "integrations",
)
LONGEST_REPR, LONGEST_STR = 120, 4000  # letters; a str may be a table


def points(seed: int) -> torch.Tensor:
    return torch.randn(60, 3, generator=torch.Generator().manual_seed(seed))


def raced() -> Record:
    teacher = enumerate_teacher(tree(4), "majority")
    return race(teacher, random_student(teacher.model, 3), 5, 0.1)


def pool(count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(50, (count, 1), generator=generator).float()


def compared() -> Record:
    audit = sample_audit()
    return compare_audits(before_training(audit), audit)


def ablated() -> Any:
    return ablate(
        nn.Sequential(nn.Linear(40, 40)), torch.randn(8, 40), treatments=["signal only"], curve=False
    )


def changed() -> Any:
    base = torch.randn(40, 40)
    return difference({"a.weight": base + torch.randn(40, 40) / 10}, {"a.weight": base})


def history() -> Any:
    watch = Watch(nn.Sequential(nn.Linear(40, 40), nn.ReLU()), inputs=torch.rand(5, 40), at_most=1.0)
    watch(1)
    return watch.history


EYE = torch.eye(2, dtype=torch.float64)
MAKERS: dict[str, Callable[[], Any]] = {
    "shadow.Survey": sample_survey,
    "weights.Ablation": ablated,
    "weights.AdapterAudit": sample_adapter,
    "weights.Audit": sample_audit,
    "weights.Comparison": compared,
    "weights.Compression": lambda: compress(nn.Sequential(nn.Linear(40, 40)))[1],
    "weights.Decision": lambda: Decision("lora", "peft", "lora.json", "{}", (), ("a",), {"a": 4}),
    "weights.Decomposition": lambda: decompose(torch.randn(40, 40)).summary,
    "weights.Difference": changed,
    "weights.LayerAblation": lambda: ablated().layers[0],
    "weights.LayerAudit": lambda: sample_audit().layers[0],
    "weights.LayerDifference": lambda: changed().layers[0],
    "weights.Lineage": lambda: changed().lineage,
    "weights.Number": lambda: sample_audit().layers[0].entries.kurtosis,
    "diversity.Birthday": lambda: sample_diversity().birthday,
    "diversity.BirthdayTest": lambda: birthday_test(pool, 10, 5),
    "diversity.Dimension": lambda: intrinsic_dimension(points(0)),
    "diversity.Discrepancy": lambda: discrepancy(points(0), points(1)),
    "diversity.Diversity": sample_diversity,
    "diversity.Memorization": lambda: memorization(points(0), points(1), points(2)),
    "diversity.Moments": lambda: moments(points(0), points(1)),
    "diversity.PathLength": lambda: path_length(torch.sin, 3, pairs=16),
    "diversity.Quality": lambda: quality(points(0), points(1)),
    "diversity.QualityTest": lambda: quality_test(points(0), points(1), points(2)),
    "diversity.Vendi": lambda: vendi(points(0)),
    "identity.CriticalPoint": lambda: critical_point(torch.zeros(3, 2, 2, dtype=torch.float64), 2 * EYE, EYE),
    "identity.Descent": lambda: descend(torch.zeros(3, 2, 2, dtype=torch.float64), 2 * EYE, EYE, steps=3),
    "identity.Factorization": lambda: factorize(2 * EYE, 3),
    "identity.Memorized": lambda: memorize(points(0), torch.arange(60) % 3).facts,
    "ladder.Race": raced,
    "claims.Judged": lambda: sample_sweep().outcomes[0].points[0],
    "claims.Outcome": lambda: sample_sweep().outcomes[0],
    "claims.Sweep": sample_sweep,
    "integrations.History": history,
    "integrations.LayerPoint": lambda: history().points[0].layers[0],
    "integrations.Point": lambda: history().points[0],
    # behind the commands, and read back from files
    "ladder.Ladder": partial(sample_ladder, "exact"),
    "training.SearchResult": sample_search,
}


def public_records() -> list[str]:
    found = []
    for room in ROOMS:
        module = importlib.import_module(f"obverse.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, Record):
                found.append(f"{room}.{name}")
    return found


def test_every_public_record_has_a_sample_here():
    assert set(public_records()) <= MAKERS.keys()


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_is_a_value(name):
    record = MAKERS[name]()
    assert is_dataclass(record)
    with pytest.raises(FrozenInstanceError):
        setattr(record, fields(record)[0].name, None)
    assert json.loads(json.dumps(record.to_dict(), allow_nan=False)).keys() == record.to_dict().keys()
    assert repr(record).startswith(f"{type(record).__name__}(")
    assert repr(record).endswith(")")
    assert "\n" not in repr(record)
    assert len(repr(record)) <= LONGEST_REPR
    assert 0 < len(str(record)) <= LONGEST_STR


def test_results_with_tensors_have_a_short_repr_too():
    teacher = enumerate_teacher(tree(8), "majority")
    for value in (teacher, teacher.model, random_student(teacher.model, 4)):
        assert "\n" not in repr(value)
        assert len(repr(value)) <= LONGEST_REPR
