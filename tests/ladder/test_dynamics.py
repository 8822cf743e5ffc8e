"""Two descents side by side: the same where nothing is lost, each right by itself, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from math import log2

import pytest
import torch
from torch import Tensor, nn

from obverse._core.errors import BadInput
from obverse.ladder._dynamics import entropy, laps, lost_bits, race, recorded
from obverse.ladder._passes import propagate
from obverse.ladder._regions import RegionGraph, grid, tree, windows
from obverse.ladder._student import Student, random_student
from obverse.ladder._summaries import random_table
from obverse.ladder._teacher import Teacher, enumerate_teacher

NETS = {
    "relu": {"bias": False},
    "bias": {},
    "before": {"norm": "before"},
    "after": {"norm": "after"},
    "linear": {"activation": "linear"},
    "softmax": {"loss": "softmax"},
    "relu on top": {"top": "relu"},
}
GRAPHS = {
    "tree": (tree(4), 2),
    "windows": (windows(4, 3), 3),
    "narrow": (windows(5, 2), 2),
    "grid": (grid(2, 4), 2),
}
EXACT = 1e-10  # the promise; rounding of 1,000 steps at a lr that does not oscillate was 1e-12 at most


def full(graph: RegionGraph, values: int, seed: int = 0) -> Teacher:
    """All contents told, uneven probabilities, some of them 0."""
    count = values**graph.inputs
    p = torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).square()
    p[::7] = 0
    return enumerate_teacher(graph, "full", values=values, p=p / p.sum())


def student_of(teacher: Teacher, seed: int = 0, **how) -> Student:
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(2, (teacher.sizes[teacher.graph.top],), generator=generator)
    goal = torch.eye(2, dtype=torch.float64)[label]
    return random_student(teacher.model, 4, generator=generator, targets=goal, **how)


def apart(one: Student, other: Student) -> float:
    pairs = zip(one.parameters().tensors(), other.parameters().tensors(), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


@pytest.mark.parametrize("net", NETS)
def test_both_descents_are_one_where_nothing_is_lost(net):
    teacher = full(tree(4), 2)
    run = race(teacher, student_of(teacher, **NETS[net]), 60, 0.05)
    assert run.largest[-1] <= EXACT
    assert run.loss_inputs[-1] < 0.9 * run.loss_inputs[0]  # it went somewhere
    assert run.loss_events[-1] == pytest.approx(run.loss_inputs[-1], abs=EXACT)
    assert run.loss_carried[-1] == pytest.approx(run.loss_inputs[-1], abs=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_and_stay_one_for_a_thousand_steps(graph, net):
    teacher = full(*GRAPHS[graph])
    assert race(teacher, student_of(teacher, **NETS[net]), 1000, 0.05).largest[-1] <= EXACT


class Net(nn.Module):
    """The locally connected net on four positions, as one would write it in PyTorch."""

    def __init__(self, student: Student):
        super().__init__()
        self.norm = student.norm
        self.left, self.right, self.top = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(8, 2)
        self.scales = nn.ParameterList(nn.Parameter(value.clone()) for value in student.scales.values())
        self.shifts = nn.ParameterList(nn.Parameter(value.clone()) for value in student.shifts.values())
        children = {
            "left": ("1.0", "0.0", "0.1"),
            "right": ("1.1", "0.2", "0.3"),
            "top": ("2.0", "1.0", "1.1"),
        }
        self.double()
        with torch.no_grad():
            for name, (region, *below) in children.items():
                layer = getattr(self, name)
                layer.weight.copy_(torch.cat([student.weights[region, child] for child in below]).T)
                layer.bias.copy_(student.biases[region])

    def forward(self, x: Tensor) -> Tensor:
        hot = nn.functional.one_hot(x.long(), 2).double().flatten(1)
        hidden = []
        for at, (layer, part) in enumerate(((self.left, hot[:, :4]), (self.right, hot[:, 4:]))):
            h = layer(part)
            if self.norm == "before":
                h = self._normed(h, at)
            h = torch.relu(h)
            if self.norm == "after":
                h = self._normed(h, at)
            hidden.append(h)
        return self.top(torch.cat(hidden, 1))

    def _normed(self, h: Tensor, at: int) -> Tensor:
        centred = h - h.mean(0)  # nn.BatchNorm1d refuses eps = 0
        return self.scales[at] * centred / centred.square().mean(0).sqrt() + self.shifts[at]


@pytest.mark.parametrize("norm", [None, "before", "after"])
def test_descent_on_inputs_is_that_of_pytorch(norm):
    """Probabilities of 1, 2 or 3 out of a total: the data set holds an input as often."""
    generator = torch.Generator().manual_seed(3)
    counts = torch.randint(1, 4, (16,), generator=generator)
    teacher = enumerate_teacher(tree(4), "full", p=counts / counts.sum(dtype=torch.float64))
    start = student_of(teacher, seed=4, norm=norm)
    net = Net(start)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = teacher.inputs.repeat_interleave(counts, 0)
    goal = start.targets[teacher.labels].repeat_interleave(counts, 0)
    for _ in range(20):
        optimizer.zero_grad()
        (0.5 * (net(x) - goal).square().sum(1).mean()).backward()
        optimizer.step()
    run = race(teacher, start, 20, 0.1)
    for done in (run.by_inputs, run.by_events):
        # rounding of 20 steps with numbers around 1
        torch.testing.assert_close(
            net.top.weight.detach().T,
            torch.cat([done.weights["2.0", "1.0"], done.weights["2.0", "1.1"]]),
            rtol=0,
            atol=1e-12,
        )
        torch.testing.assert_close(
            net.left.weight.detach().T,
            torch.cat([done.weights["1.0", "0.0"], done.weights["1.0", "0.1"]]),
            rtol=0,
            atol=1e-12,
        )
        torch.testing.assert_close(net.right.bias.detach(), done.biases["1.1"], rtol=0, atol=1e-12)
        if norm:
            torch.testing.assert_close(net.scales[1].detach(), done.scales["1.1"], rtol=0, atol=1e-12)
            torch.testing.assert_close(net.shifts[0].detach(), done.shifts["1.0"], rtol=0, atol=1e-12)


def lossy(seed: int = 0) -> Teacher:
    generator = torch.Generator().manual_seed(seed)
    rules = {"1.0": random_table(9, 3, generator), "1.1": random_table(9, 4, generator)}
    p = torch.rand(81, generator=generator, dtype=torch.float64)
    rules["2.0"] = random_table(12, 2, generator)
    return enumerate_teacher(tree(4), rules, values=3, p=p / p.sum())


def test_descent_on_events_follows_a_loss_of_its_own():
    """F = relu(Σ P F W + b) with dense P as fixed matrices, its square loss weighed by P(z), and autograd."""
    teacher = lossy()
    start = student_of(teacher, seed=1)
    dense = {edge: link.dense() for edge, link in teacher.model.conditionals.items()}
    weights = {edge: value.clone().requires_grad_() for edge, value in start.weights.items()}
    biases = {name: value.clone().requires_grad_() for name, value in start.biases.items()}
    for _ in range(30):
        f = {name: torch.eye(3, dtype=torch.float64) for name in ("0.0", "0.1", "0.2", "0.3")}
        for name, below in (("1.0", ("0.0", "0.1")), ("1.1", ("0.2", "0.3")), ("2.0", ("1.0", "1.1"))):
            raw = sum(dense[name, child] @ f[child] @ weights[name, child] for child in below) + biases[name]
            f[name] = raw if name == "2.0" else torch.relu(raw)
        loss = 0.5 * (teacher.prior("2.0") * (f["2.0"] - start.targets).square().sum(1)).sum()
        own = [*weights.values(), *biases.values()]
        for value, slope in zip(own, torch.autograd.grad(loss, own), strict=True):
            value.data -= 0.1 * slope
    run = race(teacher, start, 30, 0.1)
    ended = replace(
        start,
        weights={edge: value.detach() for edge, value in weights.items()},
        biases={name: value.detach() for name, value in biases.items()},
    )
    assert apart(run.by_events, ended) < 1e-12  # rounding of 30 steps with numbers around 1
    assert apart(run.by_inputs, ended) > 1e-2  # and this is another descent


def test_what_is_written_down():
    teacher = lossy()
    told = []
    run = race(teacher, student_of(teacher), 30, 0.1, records=5, progress=lambda *words: told.append(words))
    assert told == [(step, 30, "training") for step in range(31)]
    seen = list(islice(laps(teacher, student_of(teacher), 0.1), 31))
    assert run.steps == recorded(30, 5)
    assert all(len(getattr(run, name)) == len(run.steps) for name in ("largest", "apart", "loss_carried"))
    assert run.largest[0] == run.apart[0] == 0
    for at, step in enumerate(run.steps):
        lap = seen[step]
        assert run.loss_inputs[at] == lap.loss_inputs == propagate(teacher, lap.by_inputs).loss
        assert run.loss_events[at] == lap.loss_events
        assert run.loss_carried[at] == propagate(teacher, lap.by_events).loss
        assert run.largest[at] == max(apart(one.by_inputs, one.by_events) for one in seen[: step + 1])
    start, end = student_of(teacher), seen[-1]
    moved = sum(
        float((a - b).square().sum())
        for a, b in zip(end.by_inputs.parameters().tensors(), start.parameters().tensors(), strict=True)
    )
    off = sum(
        float((a - b).square().sum())
        for a, b in zip(
            end.by_inputs.parameters().tensors(), end.by_events.parameters().tensors(), strict=True
        )
    )
    assert run.apart[-1] == pytest.approx((off / moved) ** 0.5, rel=1e-12)  # sums in another order
    assert apart(run.by_inputs, end.by_inputs) == apart(run.by_events, end.by_events) == 0
    said = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert said["steps"] == list(run.steps)
    assert "by_inputs" not in said
    assert str(run).startswith("30 steps")


def test_xor_cannot_be_learned_from_events():
    """P(z_β | z_α) has equal rows, so that both labels look the same: at best ½ is answered, a loss of ¼."""
    children = {"a": (), "b": (), "both": ("a", "b"), "label": ("both",)}
    teacher = enumerate_teacher(
        RegionGraph.of(children, {"a": (0,), "b": (1,)}), {"both": "xor", "label": "full"}
    )
    start = random_student(teacher.model, 8, generator=torch.Generator().manual_seed(0))
    run = race(teacher, start, 200, 0.2)
    assert min(run.loss_events) >= 0.25 - 1e-12  # rounding
    assert run.loss_events[-1] < 0.2501
    assert run.loss_inputs[-1] < 0.01


@pytest.mark.parametrize(("steps", "records"), [(1, 1), (1, 100), (7, 3), (1000, 40), (100_000, 10)])
def test_recorded_steps(steps, records):
    found = recorded(steps, records)
    assert found[0] == 0
    assert found[-1] == steps
    assert list(found) == sorted(set(found))
    assert len(found) <= records + 1


def test_entropy_in_bits():
    assert entropy(torch.tensor([0.5, 0.25, 0.25, 0.0])) == 1.5
    assert entropy(torch.tensor([1.0])) == 0


def test_lost_bits_by_counting():
    teacher = lossy(seed=5)
    for region, positions in (("0.1", [1]), ("1.1", [2, 3]), ("2.0", [0, 1, 2, 3])):
        together: dict[tuple[int, ...], float] = {}
        alone: dict[int, float] = {}
        for row, p, event in zip(
            teacher.inputs.tolist(), teacher.p.tolist(), teacher.events[region].tolist(), strict=True
        ):
            content = tuple(row[position] for position in positions)
            together[content] = together.get(content, 0) + p
            alone[event] = alone.get(event, 0) + p
        told = -sum(p * log2(p) for p in alone.values())
        held = -sum(p * log2(p) for p in together.values())
        assert lost_bits(teacher, region) == pytest.approx(held - told, abs=1e-12)  # sums of 81 terms
    assert lost_bits(teacher, "0.1") == 0


def test_nothing_is_lost_by_full_events_and_nearly_all_by_and():
    assert lost_bits(full(tree(4), 2), "2.0") < 1e-12  # rounding
    # of four bits the AND tells H(1/16)
    told = -(1 / 16) * log2(1 / 16) - (15 / 16) * log2(15 / 16)
    assert lost_bits(enumerate_teacher(tree(4), "and"), "2.0") == pytest.approx(4 - told, abs=1e-12)


@pytest.mark.parametrize("lr", [0, -0.1, float("nan"), float("inf"), True, "fast"])
def test_rates_that_are_none(lr):
    teacher = full(tree(4), 2)
    with pytest.raises(BadInput, match="a finite lr > 0"):
        laps(teacher, student_of(teacher), lr)


@pytest.mark.parametrize(("name", "given"), [("steps", 0), ("steps", 1.5), ("records", 0), ("records", True)])
def test_counts_that_are_none(name, given):
    teacher = full(tree(4), 2)
    with pytest.raises(BadInput, match=f"{name} as a whole number ≥ 1"):
        race(teacher, student_of(teacher), **{"steps": 3, "lr": 0.1, name: given})


def test_a_rate_that_leads_nowhere():
    teacher = full(tree(4), 2)
    with pytest.raises(BadInput, match="lower the lr"):
        race(teacher, student_of(teacher, activation="linear"), 1000, 10.0)


def test_a_student_of_other_regions():
    with pytest.raises(BadInput, match="on the teacher's regions"):
        race(full(tree(4), 2), student_of(full(windows(4, 2), 2)), 3, 0.1)
