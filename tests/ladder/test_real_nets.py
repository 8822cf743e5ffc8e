"""Real nets on the ladder: graph, student and events against the net itself, loops and planted clusters."""

from __future__ import annotations

import copy
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from obverse import BadInput
from obverse.ladder._agreement import LITTLE, Share, agreements, share
from obverse.ladder._cluster import event_teacher, find_centres, k_means, nearest, shown, shuffled
from obverse.ladder._compare import Comparison, compare, compare_pass
from obverse.ladder._measure import measure_net
from obverse.ladder._passes import Pass, propagate
from obverse.ladder._real import net_graph, net_student, patches, shared_edges
from obverse.ladder._regions import RegionGraph, tree
from obverse.ladder._student import random_student
from obverse.ladder._teacher import Teacher, enumerate_teacher
from obverse.nets._local import LocalNet, local

SUMMED = 1e-11  # float64: sums of some hundred terms, which grow to some hundred here
PLANS = {
    "apart": ((1, 8, 8), ((2, 2), (2, 2)), (3, 4)),
    "overlapping": ((2, 7, 5), ((3, 2), (2, 1)), (3, 2)),
    "one level": ((1, 4, 4), ((2, 2),), (3,)),
}
ALL = pytest.mark.parametrize(
    ("plan", "shared", "norm", "bias"),
    list(product(PLANS, (False, True), (None, "before", "after"), (True, False))),
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(plan: str, classes: int = 5, seed: int = 0, **settings: object) -> LocalNet:
    """A net of float64 with every number in it random: biases and norms too."""
    shape, windows, nodes = PLANS[plan]
    net = local(shape, classes, windows, nodes, generator=generator(seed), **settings).double()
    for parameter in net.parameters():
        nn.init.normal_(parameter, generator=generator(seed + 1))
    for buffer in net.buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 2, generator=generator(seed + 2))
    return net.eval()


def images(plan: str, count: int = 30, seed: int = 3) -> Tensor:
    return torch.rand(count, *PLANS[plan][0], generator=generator(seed), dtype=torch.float64)


def labels(count: int = 30, classes: int = 5) -> Tensor:
    return torch.arange(count) % classes


def taught(net: LocalNet, x: Tensor, y: Tensor, events: int = 3) -> tuple[Teacher, Pass, dict[str, Tensor]]:
    graph = net_graph(net)
    teacher = event_teacher(x, y, net.output.out_features, graph, find_centres(x, graph, events))
    lowest = patches(x, graph)
    return teacher, propagate(teacher, net_student(net, graph), lowest), lowest


def compared(net: LocalNet, x: Tensor, y: Tensor, events: int = 3) -> tuple[Teacher, Comparison]:
    teacher, seen, lowest = taught(net, x, y, events)
    return teacher, compare_pass(teacher, net_student(net, teacher.graph), seen, lowest)


# The graph


def test_graph_of_a_small_net_by_hand():
    graph = net_graph(local((1, 4, 4), 3, ((2, 2), (2, 1)), (1, 1)))
    assert graph.children["1.0.1"] == ("0.0.1",)
    assert graph.positions["0.0.1"] == (2, 3, 6, 7)
    assert graph.children["2.0.0"] == ("1.0.0", "1.0.1", "1.1.0", "1.1.1")
    assert graph.top == "3.0.0"
    assert graph.children["3.0.0"] == ("2.0.0",)
    assert graph.positions["3.0.0"] == tuple(range(16))
    assert len(graph.order) == 4 + 4 + 1 + 1


@pytest.mark.parametrize("plan", PLANS)
def test_positions_are_the_pixels_that_reach_a_window(plan):
    net, x = made(plan), images(plan, 1)
    for parameter in net.parameters():
        parameter.data.abs_()  # so that every ReLU is open
    graph = net_graph(net)
    seen = net.seen(x.requires_grad_())
    for name in graph.order:
        level, row, column = map(int, name.split("."))
        if level:
            (slope,) = torch.autograd.grad(seen[level - 1].raw[0, :, row, column].sum(), x, retain_graph=True)
            reached = slope[0].abs().sum(0).flatten().nonzero().flatten().tolist()
            assert tuple(reached) == graph.positions[name]


# The student


@ALL
def test_the_student_is_the_net(plan, shared, norm, bias):
    net, x, y = made(plan, shared=shared, norm=norm, bias=bias), images(plan), labels()
    teacher, seen, _ = taught(net, x, y, len(x))
    with torch.no_grad():
        scores = net(x)
    assert (seen.active[teacher.graph.top] - scores).abs().max() < SUMMED * scores.abs().max()
    assert seen.loss == pytest.approx(F.cross_entropy(scores, y).item(), rel=SUMMED)


@pytest.mark.parametrize(("plan", "shared", "bias"), list(product(PLANS, (False, True), (True, False))))
def test_gradients_are_those_of_the_net(plan, shared, bias):
    net, x, y = made(plan, shared=shared, bias=bias), images(plan), labels()
    teacher, step, _ = taught(net, x, y, len(x))
    graph, seen = teacher.graph, net.seen(x)
    raws = [one.raw for one in seen]
    loss = -F.cross_entropy(seen[-1].active.flatten(1), y)
    by_net = torch.autograd.grad(loss, [*raws, *(level.weight for level in net.levels), net.output.weight])
    for name in step.gradient:
        level, row, column = map(int, name.split("."))
        expected = by_net[level - 1][:, :, row, column]
        torch.testing.assert_close(step.gradient[name], expected, atol=SUMMED, rtol=SUMMED)
        torch.testing.assert_close(
            step.active[name], seen[level - 1].active[:, :, row, column].detach(), atol=SUMMED, rtol=SUMMED
        )
    # the step of a weight is the sum of those of the edges that have it
    together: dict[str, Tensor] = {}
    for edge, key in shared_edges(net, graph).items():
        together[key] = together.get(key, 0) + step.step.weights[edge]
    for depth, of_net in enumerate(net.levels, start=1):
        slope = by_net[len(raws) + depth - 1]
        for copy_ in range(len(slope)):
            row, column = divmod(copy_, of_net.windows.columns)
            places = [slope[copy_].flatten(1)] if depth == 1 else slope[copy_].flatten(2).unbind(2)
            for place, part in enumerate(places):
                key = f"{depth}.{place}" if shared else f"{depth}.{row}.{column}.{place}"
                torch.testing.assert_close(together[key], part.T, atol=SUMMED, rtol=SUMMED)
    last = by_net[-1].unflatten(1, (net.levels[-1].nodes, -1))
    for place, child in enumerate(graph.children[graph.top]):
        found = step.step.weights[graph.top, child]
        torch.testing.assert_close(found, last[:, :, place].T, atol=SUMMED, rtol=SUMMED)


@pytest.mark.parametrize("plan", PLANS)
def test_patches_are_the_pixels_of_their_region_channel_by_channel(plan):
    x = images(plan, 4)
    graph = net_graph(made(plan))
    width = x.shape[3]
    for name, found in patches(x, graph).items():
        pixels = [(at // width, at % width) for at in graph.positions[name]]
        for number in range(4):
            expected = [x[number, channel, r, c].item() for channel in range(x.shape[1]) for r, c in pixels]
            assert found[number].tolist() == expected


# Events


def planted(count: int = 90) -> tuple[Tensor, Tensor]:
    """Images 1 × 4 × 4 of three kinds, each with little noise."""
    kinds = torch.rand(3, 1, 4, 4, generator=generator(1), dtype=torch.float64)
    kind = torch.arange(count) % 3
    noise = 0.01 * torch.randn(count, 1, 4, 4, generator=generator(2), dtype=torch.float64)
    return kinds[kind] + noise, kind


def test_planted_kinds_are_found_in_every_region():
    x, kind = planted()
    graph = net_graph(local((1, 4, 4), 3, ((2, 2),), (2,)))
    teacher = event_teacher(x, kind, 3, graph, find_centres(x, graph, 3))
    for name in graph.order:
        found = torch.stack([teacher.events[name], kind], 1).unique(dim=0)
        assert len(found) == 3, "one event for each kind"
    other, other_kind = planted(30)
    again = event_teacher(other, other_kind, 3, graph, find_centres(x, graph, 3))
    for name in graph.order:
        pairs = torch.stack([again.events[name], other_kind], 1).unique(dim=0)
        assert torch.equal(pairs, torch.stack([teacher.events[name], kind], 1).unique(dim=0))
    assert teacher.sampled
    assert torch.equal(teacher.p, torch.full((90,), 1 / 90, dtype=torch.float64))
    assert torch.equal(teacher.labels, kind)


def test_nearest_is_the_nearest():
    rows = torch.randn(50, 3, generator=generator(), dtype=torch.float64)
    centres = torch.randn(7, 3, generator=generator(1), dtype=torch.float64)
    distances = ((rows.numpy()[:, None] - centres.numpy()[None]) ** 2).sum(2)
    assert nearest(rows, centres).tolist() == distances.argmin(1).tolist()


def test_few_distinct_rows_are_each_an_event():
    rows = torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    assert k_means(rows, 2).tolist() == k_means(rows, 5).tolist() == [[0.0, 1.0], [2.0, 1.0]]
    assert k_means(rows, 1).tolist() == [pytest.approx([2 / 3, 1])]


def test_a_dark_corner_has_one_event_and_is_no_trouble():
    x = images("apart")
    x[:, :, :2, :2] = 0
    teacher, found = compared(made("apart"), x, labels())
    assert teacher.sizes["0.0.0"] == teacher.sizes["1.0.0"] == 1
    edges, levels = agreements(found, teacher.model)
    assert edges["1.0.0", "0.0.0"].weight.explained is None, "pixels that are 0 get no step"
    assert edges["2.0.0", "1.0.0"].forward.explained is None
    assert all(one.weight.whole > 0 for one in levels.values())


def test_centres_are_repeatable_and_those_of_the_same_pixels_the_same():
    x = images("apart")
    graph = net_graph(made("apart"))
    before = torch.get_rng_state()
    first, again = (find_centres(x, graph, 4, seed=5) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert set(first) == set(graph.order) - {graph.top}
    for name, own in first.items():
        assert torch.equal(own, again[name])
        assert own.shape == (4, len(graph.positions[name]))
    assert torch.equal(first["0.1.2"], first["1.1.2"])
    told = []
    find_centres(x, graph, 2, progress=lambda *words: told.append(words))
    assert told[0] == (0, 36, graph.order[0])
    assert len(told) == 36


def test_shuffling_keeps_how_often_and_takes_what_goes_together():
    x, kind = planted(300)
    graph = net_graph(local((1, 4, 4), 3, ((2, 2),), (2,)))
    teacher = event_teacher(x, kind, 3, graph, find_centres(x, graph, 3))
    dealt = shuffled(teacher, generator())
    for name in graph.order:
        assert torch.equal(teacher.prior(name), dealt.prior(name))
    assert torch.equal(dealt.labels, kind)
    assert torch.equal(dealt.events["0.1.0"], dealt.events["1.1.0"]), "the same pixels"
    assert not torch.equal(dealt.events["1.0.0"], dealt.events["1.1.0"])
    assert torch.equal(teacher.conditional("2.0.0", "1.0.0").dense().max(1).values, torch.ones(3).double())
    # 100 each: a share of a third has a standard error of √(2/9/100) = 0.047, five of them
    assert (dealt.conditional("2.0.0", "1.0.0").dense() - 1 / 3).abs().max() < 0.24
    again = shuffled(teacher, generator())
    assert all(torch.equal(again.events[name], dealt.events[name]) for name in graph.order)


WRONG = [
    ({"events": 0}, "from 1 to 30 events"),
    ({"events": 31}, "from 1 to 30 events"),
    ({"events": 2.0}, "from 1 to 30 events"),
    ({"x": torch.zeros(30, 8, 8)}, "images × channels"),
    ({"x": torch.zeros(0, 1, 8, 8)}, "at least one image"),
    ({"x": torch.zeros(30, 1, 8, 8, dtype=torch.long)}, "images × channels"),
    ({"x": torch.zeros(30, 1, 7, 8)}, "images of 64 pixels; got 7 × 8"),
    ({"x": torch.full((30, 1, 8, 8), torch.nan)}, "finite pixels"),
    ({"y": labels(29)}, "a label for each of 30 images"),
    ({"y": labels().double()}, "a label for each of 30 images"),
    ({"y": labels() + 1}, "labels from 0 to 4; got 5"),
    ({"y": labels() - 1}, "labels from 0 to 4"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_makes_no_events_is_refused(changed, said):
    graph = net_graph(made("apart"))
    x, y, events = (
        changed.get(name, usual) for name, usual in (("x", images("apart")), ("y", labels()), ("events", 3))
    )
    with pytest.raises(BadInput, match=said):
        event_teacher(x, y, 5, graph, find_centres(x, graph, events))


def test_centres_of_another_graph_are_refused():
    x = images("apart")
    graph, other = net_graph(made("apart")), net_graph(made("one level"))
    with pytest.raises(BadInput, match="centres of all regions but the top"):
        event_teacher(x, labels(), 5, graph, find_centres(x, other, 2))


# How much is explained


def by_hand(
    teacher: Teacher, seen: Pass, lowest: dict[str, Tensor], parent: str, child: str
) -> dict[str, tuple]:
    """(off, whole, own) of every message over an edge, image by image and event by event; own for ΔW only."""
    f = (lowest[child] if child in lowest else seen.active[child]).numpy()
    g = seen.gradient[parent].numpy() * len(f)  # without p = 1/N
    above, below = teacher.events[parent].numpy(), teacher.events[child].numpy()
    n = len(f)
    rows = {
        name: {z: np.flatnonzero(events == z) for z in set(events)}
        for name, events in (("a", above), ("b", below))
    }
    mean_f = {z: f[own].mean(0) for z, own in rows["b"].items()}
    mean_g = {z: g[own].mean(0) for z, own in rows["a"].items()}
    forward, backward = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    step = np.zeros((f.shape[1], g.shape[1]))
    for z, own in rows["a"].items():
        message = np.mean([mean_f[below[i]] for i in own], axis=0)
        forward[0] += len(own) / n * np.sum((f[own].mean(0) - message) ** 2)
        forward[1] += len(own) / n * np.sum((f[own].mean(0) - f.mean(0)) ** 2)
        step += len(own) / n * np.outer(message, mean_g[z])
    for own in rows["b"].values():
        message = np.mean([mean_g[above[i]] for i in own], axis=0)
        backward[0] += len(own) / n * np.sum((g[own].mean(0) - message) ** 2)
        backward[1] += len(own) / n * np.sum((g[own].mean(0) - g.mean(0)) ** 2)
    true = sum(np.outer(f[i], g[i]) for i in range(n)) / n
    nothing = np.outer(f.mean(0), g.mean(0))
    weight = np.sum((true - step) ** 2), np.sum((true - nothing) ** 2), np.sum(true**2)
    return {"forward": tuple(forward), "backward": tuple(backward), "weight": weight}


@pytest.mark.parametrize("plan", PLANS)
def test_shares_are_what_loops_over_images_give(plan):
    net, x, y = made(plan), images(plan), labels()
    teacher, seen, lowest = taught(net, x, y)
    found = compare_pass(teacher, net_student(net, teacher.graph), seen, lowest)
    edges, levels = agreements(found, teacher.model)
    sums: dict[tuple[int, str], list[float]] = {}
    for (parent, child), one in edges.items():
        for message, (off, whole, square) in by_hand(teacher, seen, lowest, parent, child).items():
            own = getattr(one, message)
            assert own.own == pytest.approx(square, rel=1e-9, abs=SUMMED * own.size)
            assert own.off == pytest.approx(off, rel=1e-9, abs=SUMMED * own.size)
            assert own.whole == pytest.approx(whole, rel=1e-9, abs=SUMMED * own.size)
            if whole <= LITTLE * square:  # or 0: a window whose ReLUs are all closed
                assert own.explained is None
            else:
                assert own.explained == pytest.approx(1 - off / whole, abs=1e-9)
            total = sums.setdefault((teacher.graph.level[parent], message), [0.0, 0.0, 0.0])
            for at, part in enumerate((off, whole, square)):
                total[at] += part
    for (level, message), (off, whole, square) in sums.items():
        told = None if whole <= LITTLE * square else pytest.approx(1 - off / whole, abs=1e-9)
        assert getattr(levels[level], message).explained == told


def test_shared_steps_are_added_up_before_they_are_compared():
    net, x, y = made("overlapping", shared=True), images("overlapping"), labels()
    teacher, found = compared(net, x, y)
    shared = shared_edges(net, teacher.graph)
    _, levels = agreements(found, teacher.model, shared)
    off = whole = off_recursive = 0.0
    for key in {key for edge, key in shared.items() if teacher.graph.level[edge[0]] == 2}:
        group = [edge for edge in shared if shared[edge] == key]
        assert len(group) == 2 * 1, "as many as there are windows at level 2"
        true = sum(found.edges[edge].weight.brute for edge in group)
        nothing = sum(
            torch.outer(
                teacher.prior(edge[0]) @ found.edges[edge].forward.brute,
                found.regions[edge[0]].gradient.brute.sum(0),
            )
            for edge in group
        )
        off += float((true - sum(found.edges[edge].weight.reformulated for edge in group)).square().sum())
        off_recursive += float(
            (true - sum(found.edges[edge].recursive.reformulated for edge in group)).square().sum()
        )
        whole += float((true - nothing).square().sum())
    assert levels[2].weight.explained == pytest.approx(1 - off / whole, abs=1e-9)
    assert levels[2].recursive.explained == pytest.approx(1 - off_recursive / whole, abs=1e-9)
    apart = agreements(found, teacher.model)[1]
    assert apart[2].forward == levels[2].forward
    assert apart[2].weight.explained != pytest.approx(levels[2].weight.explained, abs=1e-6)


@pytest.mark.parametrize(("plan", "norm"), list(product(PLANS, (None, "before", "after"))))
def test_where_every_image_is_an_event_all_is_explained(plan, norm):
    """The events tell all of the image in every region, and the label of the whole: the theory is exact."""
    count = 12
    net = made(plan, classes=count, norm=norm)
    teacher, found = compared(net, images(plan, count), torch.arange(count), events=count)
    assert set(teacher.sizes.values()) == {count}
    edges, levels = agreements(found, teacher.model)
    for one in [*edges.values(), *levels.values()]:
        for each in (one.forward, one.backward, one.weight, one.recursive):
            assert (
                each.explained is None or each.explained > 1 - 1e-9
            )  # squares of SUMMED, over shares > 1e-6
    assert all(one.recursive.gap.relative < 100 * SUMMED for one in found.edges.values())


def test_a_single_event_explains_nothing_of_a_step():
    net = made("apart")
    teacher, found = compared(net, images("apart"), labels(), events=1)
    _, levels = agreements(found, teacher.model)
    for one in levels.values():
        assert one.weight.off == pytest.approx(one.weight.whole, rel=1e-9)
    assert levels[3].forward.explained == pytest.approx(0, abs=1e-9), "labels say nothing through one event"


def test_share_of_numbers_by_hand():
    brute = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)
    nothing = torch.zeros(2, 2, dtype=torch.float64)
    rows = torch.tensor([0.5, 2.0], dtype=torch.float64)
    found = share(brute, brute + 1, nothing, rows)
    assert (found.off, found.whole) == (0.5 * 2 + 2.0 * 2, 0.5 * 5 + 2.0 * 34)
    assert found.explained == pytest.approx(1 - 5 / 70.5)
    assert share(brute, 10 * brute, nothing).explained < 0
    assert share(brute, nothing, brute).explained is None
    # what is no more than the rounding of larger numbers is nothing to explain
    assert share(1e-14 * brute, nothing, nothing).explained == 0
    assert share(1e-14 * brute, nothing, nothing, size=1.0).explained is None
    assert (Share(1, 2, 3) + Share(1, 2, 3)).explained == 0.5
    # nor is a part in a hundred of the average's own square
    assert (found.own, share(brute, brute + 1, nothing).own) == (0, 39)
    assert Share(5, 1.01, 100, 100).explained < 0
    assert Share(5, 0.99, 100, 100).explained is None
    assert (Share(5, 0.99, 100, 100) + Share(0, 2, 100, 100)).explained == pytest.approx(1 - 5 / 2.99)


def test_an_exact_teacher_with_batch_norm_is_explained():
    teacher = enumerate_teacher(tree(4))
    student = random_student(teacher.model, 2, generator=generator(), norm="before")
    edges, levels = agreements(compare(teacher, student), teacher.model)
    told = [value for one in edges.values() for value in (one.weight.explained, one.recursive.explained)]
    assert all(value is None or value > 1 - 1e-9 for value in told)
    assert sorted(levels) == [1, 2]


# The whole measurement


@pytest.fixture(scope="module")
def trained() -> tuple[LocalNet, LocalNet, Tensor, Tensor]:
    """A net before and after a short training on planted kinds, with noise."""
    x, y = planted(120)
    x = x + 0.2 * torch.randn(x.shape, generator=generator(7), dtype=torch.float64)
    net = local((1, 4, 4), 3, ((2, 2),), (4,), generator=generator()).double()
    start = copy.deepcopy(net).eval()
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    for _ in range(20):
        loss = F.cross_entropy(net(x[:80]), y[:80])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return start, net.eval(), x, y


def test_a_net_is_measured_under_all_conditions(trained):
    start, net, x, y = trained
    told: list[tuple[int, int, str]] = []
    found = measure_net(
        net,
        (x[:80], y[:80]),
        (x[80:], y[80:]),
        events=3,
        sweep=(2, 3, 6),
        start=start,
        seed=4,
        subject="planted",
        settings={"events": 3},
        progress=lambda *words: told.append(words),
    )
    conditions = {(one.net, one.images, one.shuffled, one.events) for one in found.measured}
    assert conditions == set(
        product(("start", "trained"), ("clustered", "held out"), (False, True), (2, 3, 6))
    )
    assert len(found.measured) == len(conditions)
    assert told == [
        (0, 3, "2 events a region"),
        (1, 3, "3 events a region"),
        (2, 3, "6 events a region"),
        (3, 3, "done"),
    ]
    (own,) = (
        one
        for one in found.measured
        if (one.net, one.images, one.shuffled, one.events) == ("trained", "clustered", False, 3)
    )
    assert own.levels == found.levels, "the details are those of the clustered images after training"
    assert (own.loss, own.reformulated_loss) == (found.loss, found.reformulated_loss)
    with torch.no_grad():
        assert found.loss == pytest.approx(F.cross_entropy(net(x[:80]), y[:80]).item(), rel=1e-9)
        assert found.accuracy == (net(x[80:]).argmax(1) == y[80:]).double().mean().item()
    assert (found.kind, found.subject, found.inputs, found.edges_total) == ("net", "planted", 80, 8)
    assert [(level.level, level.regions, level.edges, level.events) for level in found.levels] == [
        (1, 4, 4, 3),
        (2, 1, 4, 3),
    ]
    for one in found.measured:  # three kinds explain most of the start's step, random events next to nothing
        if one.net == "start" and one.images == "clustered" and one.events == 3:
            value = one.levels[1].explained.weight
            assert value > 0.7 if not one.shuffled else value < 0.3


def test_without_a_start_there_is_only_the_net(trained):
    _, net, x, y = trained
    found = measure_net(net, (x[:80], y[:80]), (x[80:], y[80:]), events=2)
    assert {(one.net, one.events) for one in found.measured} == {("trained", 2)}
    assert found.settings == {}


def test_the_same_measurement_twice(trained):
    _, net, x, y = trained
    one, two = (
        measure_net(net, (x[:80], y[:80]), (x[80:], y[80:]), events=3, seed=1).to_dict() for _ in range(2)
    )
    assert one | {"seconds": 0} == two | {"seconds": 0}


def test_images_that_do_not_fit_are_refused(trained):
    _, net, x, y = trained
    for pictures, names in ((x[:, :, :2], y), (x, y[:-1]), (x[:0], y[:0])):
        with pytest.raises(BadInput, match=r"images of shape \(1, 4, 4\) and as many labels"):
            measure_net(net, (x, y), (pictures, names), events=2)
        with pytest.raises(BadInput, match=r"images of shape \(1, 4, 4\) and as many labels"):
            measure_net(net, (pictures, names), (x, y), events=2)


def test_what_a_region_shows_follows_its_positions():
    graph = RegionGraph.of({"a": (), "b": (), "t": ("a", "b")}, {"a": [0, 3], "b": [1]})
    x = torch.arange(8.0).reshape(1, 2, 2, 2)
    assert shown(x, graph, "a").tolist() == [[0.0, 3.0, 4.0, 7.0]]
    assert shown(x, graph, "t").tolist() == [[0.0, 1.0, 3.0, 4.0, 5.0, 7.0]]
