"""Metrics of torchmetrics: the numbers are those of the functions, and the rules torchmetrics' own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("torchmetrics")

from torchmetrics import MetricCollection

from obverse import BadInput, MissingExtra
from obverse.diversity import birthday_test, memorization, of_module, quality
from obverse.integrations.torchmetrics import (
    CopiedShare,
    Coverage,
    Density,
    EffectiveSupport,
    Precision,
    Recall,
)
from training.helpers import ENVIRONMENT

NAMES = {Precision: "precision", Recall: "recall", Density: "density", Coverage: "coverage"}


def images(seed: int, count: int = 60, shift: float = 0.0) -> Tensor:
    return torch.randn(count, 1, 2, 3, generator=torch.Generator().manual_seed(seed)) + shift


SAMPLES, REAL, HELD_OUT = images(0, shift=0.5), images(1, 70), images(2, 50)


def filled(metric: Any, samples: Tensor = SAMPLES, real: Tensor = REAL) -> Any:
    """With all images, in batches of uneven sizes."""
    for part in samples.split(23):
        metric.update(part)
    for part in real.split(31):
        metric.update(part, real=True)
    return metric


def copied(metric: Any) -> Any:
    metric.update(SAMPLES)
    metric.update(REAL[:40], "training")
    metric.update(REAL[40:], kind="training")
    metric.update(HELD_OUT, kind="held_out")
    return metric


def every() -> list[Any]:
    return [
        *(filled(kind()) for kind in NAMES),
        filled(EffectiveSupport(threshold=0.8)),
        copied(CopiedShare()),
    ]


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.__name__)
def test_the_numbers_are_those_of_quality(kind):
    for k in (3, 5):
        expected = quality(SAMPLES, REAL, k)
        metric = filled(kind(k=k))
        found = metric.compute()
        assert (found.shape, found.dtype) == ((), torch.float32)
        assert found.item() == pytest.approx(getattr(expected, NAMES[kind]).value, rel=1e-6)  # float32
        assert metric.result() == expected


def test_what_differs_is_seen():
    """Samples far away, and samples that are the real data."""
    away, same = images(3, shift=100.0), REAL.clone()
    for kind, far in ((Precision, 0.0), (Recall, 0.0), (Density, 0.0), (Coverage, 0.0)):
        assert filled(kind(), away).compute() == far
    for kind in (Precision, Recall, Coverage):
        assert filled(kind(), same).compute() == 1


def test_the_effective_support_is_that_of_the_birthday_test():
    """200 samples of 10 kinds: 1/Σp² is 10, and the estimate's own interval holds it."""
    kinds = torch.randn(10, 6, generator=torch.Generator().manual_seed(0))
    samples = kinds[torch.randint(10, (200,), generator=torch.Generator().manual_seed(1))]
    metric = EffectiveSupport()
    for part in samples.split(64):
        metric.update(part)
    expected = birthday_test(samples, 200, 1, generator=torch.Generator().manual_seed(5)).effective
    assert metric.compute().item() == pytest.approx(expected.value, rel=1e-6)
    found = metric.result()
    assert found.effective == expected
    assert found.effective.low < 10 < found.effective.high


def test_the_threshold_is_calibrated_on_real_data():
    points = images(4, 400)
    metric = filled(EffectiveSupport(), SAMPLES, points)
    assert metric.result().threshold.origin == "calibrated"
    assert metric.result().threshold == birthday_test(SAMPLES, 60, 1, real=points).threshold
    assert filled(EffectiveSupport(threshold=0.8), SAMPLES, points).result().threshold.origin == "given"


def test_no_collision_is_cannot_tell():
    metric = EffectiveSupport()
    metric.update(SAMPLES)
    assert metric.compute().isnan()
    assert metric.result().support_at_least > len(SAMPLES)


def test_the_copied_share_is_that_of_memorization():
    expected = memorization(SAMPLES, REAL, HELD_OUT, level=0.1).close
    assert expected is not None
    metric = copied(CopiedShare(level=0.1))
    assert metric.compute().item() == pytest.approx(expected.share, rel=1e-6)
    assert metric.result().close == expected
    copies = CopiedShare()
    copies.update(REAL[:30])
    copies.update(images(9, 30, shift=50.0))
    copies.update(REAL, kind="training")
    copies.update(HELD_OUT, kind="held_out")
    assert copies.compute() == 0.5


def test_features_of_a_net_and_of_a_function():
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.Dropout(0.5)).train()
    expected = quality(of_module(net)(SAMPLES), of_module(net)(REAL))
    assert filled(Recall(net)).result() == expected
    assert filled(Recall(of_module(net))).result() == expected
    assert net.training
    means = filled(Recall(lambda x: x.flatten(1)[:, :2])).result()
    assert means == quality(SAMPLES.flatten(1)[:, :2], REAL.flatten(1)[:, :2])


def test_reset_forgets_samples_and_real_data_only_if_asked_to():
    for metric in every():
        before = metric.compute()
        metric.reset()
        assert metric.update_count == 0
        assert all(not getattr(metric, kind) for kind in metric.kinds)
        again = copied(metric) if isinstance(metric, CopiedShare) else filled(metric)
        assert again.compute() == before
    metric = filled(Recall(reset_real_features=False))
    before = metric.compute()
    for _ in range(2):
        metric.reset()
        metric.update(SAMPLES)
        assert metric.compute() == before


def test_states_of_two_metrics_merge():
    for one, other, whole in zip(every(), every(), every(), strict=True):
        for kind in one.kinds:
            parts = torch.cat(getattr(whole, kind)).split(33)
            setattr(one, kind, list(parts[:1]))
            setattr(other, kind, list(parts[1:]))
        one.merge_state(other)
        assert one.compute() == whole.compute()


def test_pickled_and_cloned_metrics_go_on():
    for metric in every():
        for copy in (pickle.loads(pickle.dumps(metric)), metric.clone()):  # noqa: S301  (our own bytes)
            assert copy.compute() == metric.compute()
            copy.update(images(7, shift=-1.0))
            assert len(torch.cat(copy.samples)) == len(torch.cat(metric.samples)) + 60


def test_half_precision():
    """Half-precision images count as the numbers they are; a state in half precision rounds them."""
    rounded, real = SAMPLES.half(), REAL.half()
    expected = quality(rounded.float(), real.float())
    assert filled(Density(), rounded, real).result() == expected
    state = filled(Density().set_dtype(torch.half))
    assert {one.dtype for one in state.samples + state.real} == {torch.half}
    assert state.result() == expected
    later = filled(Density())
    later.set_dtype(torch.half)
    assert later.result() == expected
    assert later.compute().dtype == torch.float32


def test_a_call_adds_a_batch_and_says_its_own_value():
    """Beside all real data so far; NaN while there is none. Nothing is added twice."""
    for settings in ({}, {"reset_real_features": False}):
        metric = Recall(**settings)
        assert metric(REAL, real=True).isnan()
        assert metric(SAMPLES[:30]) == pytest.approx(quality(SAMPLES[:30], REAL).recall.value, rel=1e-6)
        assert metric(SAMPLES[30:]) == pytest.approx(quality(SAMPLES[30:], REAL).recall.value, rel=1e-6)
        assert metric.result() == quality(SAMPLES, REAL)
        assert metric.update_count == 3
    few = filled(Recall(), SAMPLES[:30])
    with pytest.raises(BadInput, match="k from 1 to 2"):
        few(SAMPLES[30:33])
    assert few.result() == quality(SAMPLES[:33], REAL)


def test_a_collection_with_groups_computes_the_same():
    together = MetricCollection([Precision(), Recall(), Density(), Coverage()], compute_groups=True)
    for part in SAMPLES.split(30):
        together.update(part)
    together.update(REAL, real=True)
    expected = quality(SAMPLES, REAL)
    found = together.compute()
    assert len(together.compute_groups) == 1
    assert {name.lower(): value.item() for name, value in found.items()} == {
        name: pytest.approx(getattr(expected, name).value, rel=1e-6) for name in NAMES.values()
    }


class Other:
    """`gather` of a process that has `mine`, beside one whose tensors come in the same order."""

    def __init__(self, theirs: list[Tensor]) -> None:
        self.theirs = iter(theirs)

    def __call__(self, mine: Tensor, group: Any = None) -> list[Tensor]:
        return [mine, next(self.theirs)]


def test_processes_are_put_together_and_each_keeps_its_own():
    one = Recall(dist_sync_fn=None, distributed_available_fn=lambda: True)
    one.update(SAMPLES[:20])
    one.update(REAL, real=True)
    theirs = [torch.tensor([6, 0]), SAMPLES[20:].flatten(1), torch.zeros(0, 6)]
    one.dist_sync_fn = Other(theirs)
    assert one.compute().item() == pytest.approx(quality(SAMPLES, REAL).recall.value, rel=1e-6)
    assert torch.equal(torch.cat(one.samples), SAMPLES[:20].flatten(1))
    # a process that has seen nothing of a kind says so in the shape that the other has
    empty = Recall(distributed_available_fn=lambda: True)
    empty.update(SAMPLES)
    seen: list[tuple[int, ...]] = []

    def gather(mine: Tensor, group: Any = None) -> list[Tensor]:
        seen.append(tuple(mine.shape))
        return [mine, [torch.tensor([0, 6]), torch.zeros(0, 6), REAL.flatten(1)][len(seen) - 1]]

    empty.dist_sync_fn = gather
    assert empty.result() == quality(SAMPLES, REAL)
    assert seen == [(2,), (60, 6), (0, 6)]


SCRIPT = """
import sys, torch, torch.distributed as dist
from integrations.test_torchmetrics import SAMPLES, REAL
from obverse.integrations.torchmetrics import Recall
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
metric = Recall()
metric.update(SAMPLES[:17] if rank else SAMPLES[17:])
if rank:
    metric.update(REAL, real=True)
print(repr(metric.compute().item()), len(metric.samples[0]), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.slow  # two processes that import torch
def test_two_real_processes(tmp_path):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(rank), (tmp_path / "meet").as_uri()],
            env=ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ends = [one.communicate(timeout=120) for one in running]
    assert [one.returncode for one in running] == [0, 0], ends
    expected = filled(Recall()).compute().item()
    assert [out.split() for out, _ in ends] == [[repr(expected), "43"], [repr(expected), "17"]]


def test_they_draw_without_a_display():
    for metric in every():
        figure, axes = metric.plot()
        assert axes.get_ylabel() or axes.get_title() or axes.lines
        figure.clf()
    metric = filled(Recall())
    figure, axes = metric.plot([metric.compute(), torch.tensor(0.5)])
    assert len(axes.lines) >= 1
    figure.clf()


def test_mistakes_get_a_sentence():
    metric = Recall()
    metric.update(SAMPLES)
    with pytest.raises(BadInput, match=r"real images before compute\(\); got none; .*real=True"):
        metric.compute()
    with pytest.raises(BadInput, match="a kind out of samples, training, held_out"):
        CopiedShare().update(SAMPLES, kind="test")
    unfinished = CopiedShare()
    unfinished.update(SAMPLES)
    unfinished.update(REAL, kind="training")
    with pytest.raises(BadInput, match="held-out images before"):
        unfinished.compute()
    with pytest.raises(BadInput, match="features as a net"):
        Recall(features=3)
    with pytest.raises(BadInput, match="tensor of images"):
        metric.update([1, 2])
    with pytest.raises(BadInput, match="finite values"):
        metric.update(SAMPLES / 0)
    with pytest.raises(ValueError, match="nonsense"):
        Recall(nonsense=1)
    metric.update(SAMPLES[:0])  # an empty batch is nothing
    assert len(metric.samples) == 1


def test_without_torchmetrics_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "obverse.integrations.torchmetrics")
    with pytest.raises(MissingExtra, match=r"obverse\[metrics\]"):
        __import__("obverse.integrations.torchmetrics")
