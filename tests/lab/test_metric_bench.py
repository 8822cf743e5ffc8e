"""The bench: its metrics are those of their packages, its faults what they say, its rule holds its level."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from experiments.metric_bench import bench, faults, measures, spaces
from experiments.metric_bench.summary import decided, of_null, quantile, summary
from obverse.diversity import quality
from obverse.diversity._moments import frechet_distance

SOURCE = torch.Generator().manual_seed(0)
A, B = torch.randn(120, 6, generator=SOURCE), 1.2 * torch.randn(120, 6, generator=SOURCE) + 0.3


@pytest.fixture(scope="module")
def digits() -> spaces.Space:
    return spaces.open_space("digits", size=60)


def test_precision_recall_density_and_coverage_are_those_of_prdc():
    from prdc import compute_prdc

    theirs = compute_prdc(real_features=A.numpy(), fake_features=B.numpy(), nearest_k=measures.K)
    ours = quality(B, A, measures.K)
    for name, value in theirs.items():  # no distance is on a border here: < and ≤ are the same
        assert getattr(ours, name).value == pytest.approx(value, abs=1e-9)


@pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning")  # of its imports
def test_the_vendi_score_is_that_of_its_package():
    from vendi_score import vendi

    unit = torch.nn.functional.normalize(A, dim=1).double().numpy()
    assert measures.vendi_score(A) == pytest.approx(vendi.score_X(unit, normalize=False), rel=1e-5)
    assert measures.vendi_score(A) == pytest.approx(vendi.score_K(unit @ unit.T), rel=1e-5)


def test_fid_and_kid_are_those_of_torchmetrics():
    from torchmetrics.image.kid import maximum_mean_discrepancy, poly_mmd

    assert measures.frechet(B, A) == pytest.approx(frechet_distance(B, A), rel=1e-6)
    both = torch.cat([A, B]).double()
    kernels = [measures.polynomial(x.double(), y.double()) for x, y in ((A, A), (A, B), (B, B))]
    assert measures.unbiased(measures.polynomial(both, both), len(A)) == pytest.approx(
        float(maximum_mean_discrepancy(*kernels)), rel=1e-9
    )
    assert float(poly_mmd(A.double(), B.double())) == pytest.approx(
        measures.unbiased(measures.polynomial(both, both), len(A)), rel=1e-9
    )


def test_the_inception_score_is_that_of_one_split():
    logits = torch.randn(50, 4, generator=SOURCE)
    p = logits.double().softmax(1)
    divergence = (p * (p / p.mean(0)).log()).sum(1)  # KL[p(y|x) ‖ p(y)] by its definition
    assert measures.inception_score(logits) == pytest.approx(float(divergence.mean().exp()), rel=1e-9)


def test_clipped_density_and_coverage_by_their_definition():
    draw = measures.Draw(B, B, A, A, A, A, None, SOURCE)
    found = dict(measures.clipped(draw))
    own = [sorted(float((a - b).norm()) for b in A)[measures.K] for a in A]  # the point itself comes first
    middle = sorted(own)[(len(own) - 1) // 2]
    density = coverage = 0.0
    for b in B:
        inside = sum(float((a - b).norm()) <= min(r, middle) for a, r in zip(A, own, strict=True))
        density += min(1.0, inside / measures.K) / len(B)
    for a, r in zip(A, own, strict=True):
        coverage += min(1.0, sum(float((a - b).norm()) <= r for b in B) / measures.K) / len(A)
    assert found["clipped density, number"][0] == pytest.approx(-density, abs=1e-6)
    assert found["clipped coverage, number"][0] == pytest.approx(-coverage, abs=1e-6)


def test_the_permutation_test_deals_rows_anew():
    """Against the unbiased MMD of each dealing, one by one, with the same random numbers."""
    both = torch.cat([A[:20], B[:15]]).double()
    kernel = measures.polynomial(both, both)
    value, p = measures.permuted(kernel, 20, torch.Generator().manual_seed(1))
    assert value == pytest.approx(measures.unbiased(kernel, 20), rel=1e-9)
    again = torch.Generator().manual_seed(1)
    as_far = 0
    for _ in range(measures.OTHERS):
        first = torch.randperm(35, generator=again)[:20]
        rest = torch.tensor([row for row in range(35) if row not in first.tolist()])
        order = torch.cat([first, rest])
        as_far += measures.unbiased(kernel[order][:, order], 20) >= value
    assert p == (1 + as_far) / (1 + measures.OTHERS)


def test_a_number_decides_above_the_quantile_that_one_in_twenty_exceeds():
    random = np.random.default_rng(0)
    beyond = [float(random.random()) > quantile(random.random(99).tolist()) for _ in range(4000)]
    # exactly 5 in 100, whatever the distribution; three standard errors
    assert np.mean(beyond) == pytest.approx(0.05, abs=3 * (0.05 * 0.95 / 4000) ** 0.5)


def test_each_kind_of_rule_is_counted_as_it_decides():
    null = [
        {"fault": "null", "draw": at, "found": {"a": [at, None], "b below real": [0, 1.0], "c": [0, at / 40]}}
        for at in range(40)
    ]
    a, b, c = (of_null(name, null) for name in ("a", "b below real", "c"))
    assert (a["kind"], b["kind"], c["kind"]) == ("number", "comparison", "p")
    assert (a["threshold"], a["alarms"], a["draws"]) == (19, 20, 20)
    assert (c["alarms"], c["draws"]) == (3, 40)  # p of 0, 1/40 and 2/40
    assert decided("a", {"found": {"a": [20, None]}}, a)
    assert not decided("b below real", {"found": {"b below real": [0, 1.0]}}, b)


@pytest.mark.parametrize("fault", faults.FAULTS)
def test_faults_are_of_the_size_asked_for(digits, fault):
    source = torch.Generator().manual_seed(3)
    dealt = spaces.deal(digits, source)
    strength = faults.strengths(digits, fault)[-1]
    made = faults.make(digits, fault, strength, dealt, source)
    assert made.shape == (60, 1, 8, 8)
    training = {tuple(image.flatten().tolist()) for image in digits.images[dealt.training]}
    equal = sum(tuple(image.flatten().tolist()) in training for image in made)
    assert equal == (6 if fault == "exact copies" else 0)
    if fault == "few images":
        assert len({tuple(image.flatten().tolist()) for image in made}) <= strength


def test_missing_kinds_are_missing(digits):
    source = torch.Generator().manual_seed(4)
    dealt = spaces.deal(digits, source)
    real = {
        tuple(image.flatten().tolist()): int(label)
        for image, label in zip(digits.images, digits.labels, strict=True)
    }
    made = faults.make(digits, "missing classes", 0.5, dealt, source)
    assert len({real[tuple(image.flatten().tolist())] for image in made}) == 5


def test_a_run_is_resumed_and_counted(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "FAULTS", {"null": faults.FAULTS["null"], "noise": faults.FAULTS["noise"]})
    monkeypatch.setattr(bench, "strengths", lambda space, fault: (0.5,))
    monkeypatch.setitem(bench.DRAWS, "digits", 2)
    assert bench.run(digits, tmp_path, 0.0, nulls=2) == 4
    assert bench.run(digits, tmp_path, float("inf"), nulls=2) == 0
    lines = bench.lines(tmp_path / "digits.jsonl")
    done = [(line["fault"], line["draw"]) for line in lines]
    assert done == [("null", 0), ("noise", 0), ("noise", 1), ("null", 1)]
    text = (tmp_path / "digits.jsonl").read_text()
    (tmp_path / "digits.jsonl").write_text("".join(text.splitlines(keepends=True)[:2]))
    assert bench.run(digits, tmp_path, float("inf"), nulls=2) == 0
    again = bench.lines(tmp_path / "digits.jsonl")
    assert [line["found"] for line in again] == [line["found"] for line in lines]
    counted = json.loads(json.dumps(summary("digits", 60, lines)))
    (noise,) = counted["faults"]
    assert (noise["draws"], noise["found"]["two-sample test"]) == (2, [2, 2])
    (first, *others) = [dict(line) for line in lines]
    group = measures.GROUPS.keys() - {"Vendi"}
    kept = {name: first["found"][name] for name in first["found"] if not name.startswith("Vendi")}
    cut = {**first, "groups": [name for name in first["groups"] if name in group], "found": kept}
    (tmp_path / "digits.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [cut, *others]))
    assert bench.run(digits, tmp_path, float("inf"), nulls=2) == 0
    assert bench.lines(tmp_path / "digits.jsonl")[0]["found"] == first["found"], "whichever come first"


def test_what_all_blocks_take_follows_from_those_that_were_timed():
    from experiments.metric_bench.page import scale_text, seconds_said

    settings = {"queries": 100, "reference": 1000, "width": 5, "block": 30}
    blocks = [{"processor": 60.0, "seconds": 90.0, "own": 1e8, "peak": 3e9}] * 2
    said = scale_text({"settings": settings, "blocks": blocks})
    assert (
        "a block of 30 took 60 s of one core (90 s beside other work), so that all 4 take about 4 min" in said
    )
    assert "0.10 GB at the highest, 3.00 GB with what is mapped" in said
    assert (seconds_said(None), seconds_said(1e-6), seconds_said(0.25)) == ("–", "–", "0.25")
