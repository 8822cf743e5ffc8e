"""The comparison against averages by hand, and its standard errors against repetitions."""

import json
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch

from ladder.plain_ladder import (
    GRAPHS,
    SUMMED,
    listed,
    plain_mean,
    plain_pass,
    plain_prior,
    plain_reformulation,
    plain_total,
    student_of,
    teacher_of,
    weights_of,
)
from ladder.test_passes import SOME, said, targets_of
from ladder.test_reformulation import model_by_hand, near
from obverse._core.errors import BadInput
from obverse.ladder._compare import compare, compare_pass, standard_error
from obverse.ladder._gaps import broadness_gap, focus_gap
from obverse.ladder._passes import propagate
from obverse.ladder._regions import tree, windows
from obverse.ladder._student import random_student
from obverse.ladder._teacher import enumerate_teacher, sample_teacher

LOSSY = {"sum": lambda z: z.sum(1), "three": lambda z: z.sum(1) % 3}


def size(matrix, rows=None) -> float:
    return sqrt(
        sum((1 if rows is None else rows[z]) * matrix[z, j] ** 2 for z, j in np.ndindex(*matrix.shape))
    )


def relative(one, other, rows=None) -> float:
    larger = max(size(one, rows), size(other, rows))
    return size(one - other, rows) / larger if larger else 0.0


def over(prior):
    return [1 / one if one > 0 else 0.0 for one in prior]


def check(teacher, student, lowest=None) -> None:
    graph, p = teacher.graph, weights_of(teacher)
    found = (
        compare(teacher, student)
        if lowest is None
        else compare_pass(teacher, student, propagate(teacher, student, lowest), lowest)
    )
    seen, (priors, links) = plain_pass(teacher, student, lowest), model_by_hand(teacher)
    events = {name: listed(teacher, name) for name in graph.order}

    def mean(values, region):
        return plain_mean(values, events[region], p, teacher.sizes[region])

    def total(values, region):
        return plain_total(values, events[region], teacher.sizes[region])

    def same(one, other):
        np.testing.assert_allclose(one.numpy(), other, rtol=near(student), atol=near(student))

    gates = {name: torch.tensor(mean(seen["gate"][name], name)) for name in student.inner}
    bottom = (
        None
        if lowest is None
        else {name: torch.tensor(mean(lowest[name].numpy(), name)) for name in graph.lowest}
    )
    whole = plain_reformulation(graph, priors, links, student, gates, bottom)
    assert found.loss == pytest.approx(seen["loss"], rel=near(student))
    assert found.reformulated_loss == pytest.approx(whole["loss"], rel=near(student))
    assert not found.sampled
    assert list(found.edges) == list(graph.edges)
    assert list(found.regions) == list(student.inner)
    for name, region in found.regions.items():
        happens = np.array([[one > 0] for one in priors[name]])
        same(region.active.brute, mean(seen["active"][name], name))
        same(region.active.reformulated, whole["active"][name] * happens)
        same(region.gradient.brute, total(seen["gradient"][name], name))
        same(region.gradient.reformulated, whole["gradient"][name])
        same(region.gate, gates[name])
        loose = {"abs": 1e4 * near(student)}  # a ratio of two norms, the lower one as small as 1e-3
        if student.norm is None:
            expected = relative(region.active.brute.numpy(), region.active.reformulated.numpy(), priors[name])
            assert region.active.gap.relative == pytest.approx(expected, **loose)
            expected = relative(
                region.gradient.brute.numpy(), region.gradient.reformulated.numpy(), over(priors[name])
            )
            assert region.gradient.gap.relative == pytest.approx(expected, **loose)
        opened = seen["gate"][name] * seen["before"][name]
        expected = relative(
            mean(opened, name), gates[name].numpy() * mean(seen["before"][name], name), priors[name]
        )
        assert region.decorrelation.relative == pytest.approx(expected, **loose)
        gated = total(seen["gate"][name] * seen["arriving"][name], name)
        apart = gates[name].numpy() * total(seen["arriving"][name], name)
        if size(gated) > 1e-9:  # else rounding is measured against the top's gradient
            assert region.decorrelation_back.relative == pytest.approx(
                relative(gated, apart, over(priors[name])), **loose
            )
        assert region.active.error is None
    for (parent, child), edge in found.edges.items():
        shown, above = seen["active"][child], total(seen["gradient"][parent], parent)
        given, message = mean(shown, parent), links[parent, child] @ mean(shown, child)
        same(edge.forward.brute, given)
        same(edge.forward.reformulated, message)
        same(edge.backward.brute, total(seen["gradient"][parent], child))
        same(edge.backward.reformulated, links[parent, child].T @ above)
        weight = seen["step"]["W"][parent, child]
        same(edge.weight.brute, weight)
        same(edge.weight.reformulated, message.T @ above)
        same(edge.recursive.brute, weight)
        same(edge.recursive.reformulated, whole["step"]["W"][parent, child])
        if size(weight) > 1e-9:
            pairs = [(k, j) for k in range(shown.shape[1]) for j in range(above.shape[1])]
            products = np.stack([shown[:, k] * seen["gradient"][parent][:, j] for k, j in pairs], 1)
            alone = np.stack([given[:, k] * above[:, j] for k, j in pairs], 1)
            expected = relative(total(products, parent), alone, over(priors[parent]))
            assert edge.fourth.relative == pytest.approx(expected, abs=1e4 * near(student))
            assert edge.weight.gap.relative == pytest.approx(
                relative(weight, message.T @ above), abs=1e4 * near(student)
            )
        assert edge.broadness == pytest.approx(broadness_gap(teacher, parent, child), abs=SUMMED)
        if lowest is None:
            assert edge.focus == pytest.approx(
                focus_gap(teacher, parent, child, teacher.contents(child)), abs=SUMMED
            )
        else:
            assert edge.focus is None
    assert found.worst == max(edge.weight.gap.relative for edge in found.edges.values())
    assert found.worst_recursive == max(edge.recursive.gap.relative for edge in found.edges.values())


@pytest.mark.parametrize("rule", LOSSY)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_number_by_hand_on_ladders_that_lose_information(name, rule):
    teacher = teacher_of(name, LOSSY[rule], seed=1)
    check(teacher, student_of(teacher, 2, seed=2))


@pytest.mark.parametrize("kind", SOME, ids=said)
@pytest.mark.parametrize("name", ["dag", "overlap3"])
def test_every_number_by_hand_for_other_students(name, kind):
    teacher = teacher_of(name, LOSSY["sum"], seed=3)
    check(teacher, student_of(teacher, 3, seed=4, targets=targets_of(teacher), **kind))


def test_every_number_by_hand_where_the_lowest_regions_show_any_numbers():
    teacher = teacher_of("overlap", LOSSY["sum"], seed=5)
    generator = torch.Generator().manual_seed(6)
    lowest = {
        name: torch.randn(16, 2, generator=generator, dtype=torch.float64) for name in teacher.graph.lowest
    }
    check(teacher, student_of(teacher, 3, seed=7), lowest)


@pytest.mark.parametrize("kind", SOME, ids=said)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_two_sides_agree_where_events_tell_all(name, kind):
    teacher = teacher_of(name, seed=8)
    found = compare(teacher, student_of(teacher, 3, seed=9, **kind))
    assert found.worst < 1e-12
    assert found.worst_recursive < 1e-12
    assert found.loss == pytest.approx(found.reformulated_loss, rel=1e-12)
    for edge in found.edges.values():
        sides = (edge.forward, edge.backward, edge.weight, edge.recursive)
        assert max(one.gap.relative for one in sides) < 1e-12
        assert edge.broadness == 0
        assert edge.fourth.relative < 1e-12
        assert edge.focus < 1e-12 or name == "dag"  # where a position is read by no child
    for region in found.regions.values():
        gaps = region.active.gap, region.gradient.gap, region.decorrelation, region.decorrelation_back
        assert max(one.relative for one in gaps) < 1e-12


def test_a_dead_net_is_no_disagreement():
    """All gates shut: every gradient is 0 on both sides."""
    teacher = teacher_of("tree4", seed=10)
    student = student_of(teacher, 2, seed=11)
    shut = {name: bias if name == "2.0" else bias - 100 for name, bias in student.biases.items()}
    found = compare(teacher, replace(student, biases=shut))
    assert found.worst_recursive < 1e-12
    assert not found.edges["1.0", "0.0"].weight.brute.any()


def test_a_comparison_as_numbers_and_as_a_sentence():
    teacher = teacher_of("tree3", "xor", seed=12)
    found = compare(teacher, student_of(teacher, 2, seed=13))
    plain = json.loads(json.dumps(found.to_dict()))
    assert [(one["parent"], one["child"]) for one in plain["edges"]] == list(teacher.graph.edges)
    assert plain["edges"][0]["broadness"] == found.edges[teacher.graph.edges[0]].broadness
    assert plain["edges"][-1]["recursive"] == found.edges[teacher.graph.edges[-1]].recursive.gap.relative
    assert [one["region"] for one in plain["regions"]] == list(found.regions)
    assert plain["sampled"] is False
    assert f"{found.worst:.2g}" in str(found)
    assert f"{found.worst_recursive:.2g}" in str(found)
    assert str(len(found.edges)) in str(found)


# Drawn inputs


GRAPH = windows(3, 2)
BIASED = torch.tensor([0.3, 0.6, 0.8], dtype=torch.float64)


def draw(count, generator):
    return (torch.rand(count, 3, generator=generator, dtype=torch.float64) < BIASED).long()


def exact():
    p = torch.ones(1, dtype=torch.float64)
    for bit in BIASED:
        p = torch.kron(p, torch.stack([1 - bit, bit]))
    return enumerate_teacher(GRAPH, "majority", p=p)


def sample(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return sample_teacher(GRAPH, "majority", count=count, draw=draw, generator=generator)


def entries(comparison):
    """(brute, error) of every message that has a standard error, by name."""
    for edge, one in comparison.edges.items():
        for kind in ("forward", "backward", "weight"):
            yield (*edge, kind), getattr(one, kind)
    for name, one in comparison.regions.items():
        for kind in ("active", "gradient"):
            yield (name, kind), getattr(one, kind)


def test_a_sample_of_one_of_each_input_is_the_enumeration():
    """Every input once: the same frequencies, so the same numbers, exact or sampled."""
    teacher = enumerate_teacher(GRAPH, "majority")
    whole = sample_teacher(
        GRAPH,
        "majority",
        count=8,
        draw=lambda count, generator: teacher.inputs.long(),
        generator=torch.Generator(),
    )
    student = student_of(teacher, 3, seed=1, norm="before")
    one, other = compare(teacher, student), compare(whole, student)
    assert other.sampled
    for (_, sides), (_, again) in zip(entries(one), entries(other), strict=True):
        torch.testing.assert_close(sides.brute, again.brute, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(sides.reformulated, again.reformulated, rtol=1e-12, atol=1e-12)
        assert sides.error is None
        assert again.error is None  # batch norm: every input depends on all


def test_standard_errors_are_those_of_textbooks():
    """s/√n with n − 1 below the sum of squares, over the inputs of an event or over all."""
    teacher = sample(25, 3)
    student = student_of(exact(), 2, seed=2)
    found, seen = compare(teacher, student), plain_pass(teacher, student)

    def error(values):
        return np.std(values, ddof=1) / sqrt(len(values)) if len(values) > 1 else np.inf

    for (parent, child), edge in found.edges.items():
        shown, pull = seen["active"][child], 25 * seen["gradient"][parent]  # g itself: p is 1/25
        above, below = np.array(listed(teacher, parent)), np.array(listed(teacher, child))
        for z, k in np.ndindex(*edge.forward.error.shape):
            expected = error(shown[above == z, k])
            assert float(edge.forward.error[z, k]) == pytest.approx(expected, rel=1e-9, abs=1e-8)
        for z, j in np.ndindex(*edge.backward.error.shape):
            assert float(edge.backward.error[z, j]) == pytest.approx(
                error((below == z) * pull[:, j]), rel=1e-9
            )
        for k, j in np.ndindex(*edge.weight.error.shape):
            assert float(edge.weight.error[k, j]) == pytest.approx(error(shown[:, k] * pull[:, j]), rel=1e-9)
        assert torch.equal(edge.recursive.error, edge.weight.error)


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "loss"), [("relu", "square"), ("linear", "softmax")])
def test_standard_errors_are_those_of_repetitions(activation, loss):
    """The stated errors against the spread over 150 samples of 300, and the mean against enumeration.

    The spread of 150 is itself off by 1/√300 = 6 % (one standard deviation), more where a number hangs on few
    inputs: 35 % for each entry, 7 % on average.
    """
    student = student_of(exact(), 2, seed=3, activation=activation, loss=loss)
    truth = dict(entries(compare(exact(), student)))
    seen: dict = {}
    for seed in range(150):
        for key, sides in entries(compare(sample(300, seed), student)):
            seen.setdefault(key, []).append((sides.brute, sides.error))
    ratios, apart = [], []
    for key, pairs in seen.items():
        found = torch.stack([brute for brute, _ in pairs])
        stated = torch.stack([error for _, error in pairs]).square().mean(0).sqrt()
        spread = found.std(0)
        live = spread > 1e-9
        assert bool((stated[~live] < 3e-8).all()), key  # rounding of a difference of squares
        ratios.append((stated / spread)[live])
        apart.append(((found.mean(0) - truth[key].brute) / (spread / sqrt(150)))[live])
    ratio, far = torch.cat(ratios), torch.cat(apart)
    assert len(ratio) > 30
    assert float(ratio.min()) > 0.65
    assert float(ratio.max()) < 1.35
    assert float(ratio.mean()) == pytest.approx(1, abs=0.07)
    # E[v | z] from a sample is a ratio of two averages, whose bias is no larger than 1/300 of its spread
    assert float(far.abs().max()) < 5


def test_errors_are_in_units_of_the_stated_one():
    """|sampled − exact| ÷ error over 40 samples: about 1 in the mean square, 95 % below 2."""
    student = student_of(exact(), 2, seed=4)
    truth = dict(entries(compare(exact(), student)))
    units = []
    for seed in range(40):
        for key, sides in entries(compare(sample(1000, 100 + seed), student)):
            live = sides.error > 1e-9
            units.append(((sides.brute - truth[key].brute) / sides.error)[live])
    found = torch.cat(units)
    # entries of one sample hang together: as if there were some hundred independent ones
    assert float(found.square().mean()) == pytest.approx(1, abs=0.25)
    assert float((found.abs() <= 2).double().mean()) == pytest.approx(0.9545, abs=0.03)


@pytest.mark.slow
def test_more_draws_are_nearer_by_the_root():
    student = student_of(exact(), 2, seed=5)
    truth = compare(exact(), student)

    def off(count, seed):
        found = compare(sample(count, seed), student)
        return sum(
            float((found.edges[e].weight.brute - truth.edges[e].weight.brute).square().sum())
            for e in found.edges
        )

    few = sum(off(200, seed) for seed in range(30))
    many = sum(off(3200, 1000 + seed) for seed in range(30))
    # 16 times as many; each sum has 30 terms that scatter by about √2 of their mean
    assert 16 / 2.5 < few / many < 16 * 2.5


def test_an_event_seen_once_has_no_standard_error():
    teacher = sample_teacher(
        tree(2),
        count=3,
        draw=lambda count, generator: torch.tensor([[0, 0], [0, 0], [1, 1]]),
        generator=torch.Generator(),
    )
    student = random_student(teacher.model, 1, generator=torch.Generator().manual_seed(0))
    error = compare(teacher, student).regions["1.0"].active.error
    assert bool(error[1].isinf().all())
    assert bool(error[0].isfinite().all())


@pytest.mark.parametrize("norm", [None, pytest.param("before", marks=pytest.mark.slow)])
def test_the_jackknife_is_the_spread_of_repetitions(norm):
    """For a number without a formula, with batch norm too: 60 samples, of which 8 are jackknifed.

    The spread of 60 is off by 9 %, a jackknife of 20 groups by 16 %, the mean of 8 by 6 %: 3 standard
    deviations are a third.
    """
    student = student_of(exact(), 2, seed=6, norm=norm)

    def statistic(comparison):
        return comparison.edges["2.0", "1.0"].recursive.gap.relative

    values = torch.tensor([statistic(compare(sample(600, seed), student)) for seed in range(60)])
    stated = torch.tensor([standard_error(sample(600, seed), student, statistic) for seed in range(8)])
    assert float(stated.square().mean().sqrt() / values.std()) == pytest.approx(1, abs=0.34)


def test_the_jackknife_of_a_mean_is_the_textbook_error():
    """The loss of a net without batch norm is a mean: the jackknife gives the error of the group means."""
    student = student_of(exact(), 2, seed=7)
    teacher = sample(400, 1)
    stated = standard_error(teacher, student, lambda comparison: comparison.loss, groups=20)
    active = plain_pass(teacher, student)["active"][GRAPH.top]
    labels = listed(teacher, GRAPH.top)
    losses = [sum((active[i][j] - (labels[i] == j)) ** 2 for j in range(2)) / 2 for i in range(400)]
    means = [np.mean(losses[group::20]) for group in range(20)]
    assert stated == pytest.approx(
        np.std(means, ddof=1) / sqrt(20), rel=1e-9
    )  # division by sums of 380 terms


@pytest.mark.parametrize("groups", [0, 1, 31, True, 2.5, "4", None])
def test_groups_that_are_none_are_refused(groups):
    teacher = sample(30, 0)
    student = student_of(exact(), 2)
    with pytest.raises(BadInput):
        standard_error(teacher, student, lambda comparison: comparison.loss, groups=groups)


def test_an_enumeration_has_no_standard_error():
    with pytest.raises(BadInput, match="every input enumerated"):
        standard_error(exact(), student_of(exact(), 2), lambda comparison: comparison.loss)


def test_plain_prior_is_used_for_weights_of_rows():
    """Rows are weighted by how often they happen: a rare event's gap counts as little as it comes."""
    p = torch.tensor([0.999, 0.0005, 0.0005, 0.0], dtype=torch.float64)
    teacher = enumerate_teacher(tree(2), lambda z: (z.sum(1) > 0).long(), p=p)
    student = student_of(teacher, 1, seed=8, top="relu")
    found = compare(teacher, student).regions["1.0"]
    prior = plain_prior(listed(teacher, "1.0"), weights_of(teacher), 2)
    expected = relative(found.active.brute.numpy(), found.active.reformulated.numpy(), prior)
    assert found.active.gap.relative == pytest.approx(expected, abs=SUMMED)


def test_standard_errors_are_given_for_equal_weights_without_batch_norm_only():
    teacher = sample_teacher(GRAPH, "majority", count=50, generator=torch.Generator().manual_seed(1))
    plain, normed = student_of(teacher, 3, seed=1), student_of(teacher, 3, seed=1, norm="before")
    p = torch.rand(50, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert all(sides.error is not None for _, sides in entries(compare(teacher, plain)))
    assert all(sides.error is None for _, sides in entries(compare(teacher, normed)))
    assert all(sides.error is None for _, sides in entries(compare(teacher.weighted(p / p.sum()), plain)))


@pytest.mark.slow
def test_a_sample_shows_no_more_focus_gap_than_by_chance_where_there_is_none():
    """Independent inputs on a tree have focus; 30 samples, so the two means differ by less than 5 errors."""
    graph, differences = tree(8), []
    for seed in range(30):
        teacher = sample_teacher(graph, "xor", count=300, generator=torch.Generator().manual_seed(seed))
        edge = compare(teacher, student_of(teacher, 2, seed=1)).edges["3.0", "2.0"]
        assert edge.focus > 0.01  # what would be taken for a gap
        differences.append(edge.focus - edge.focus_chance)
    found = np.array(differences)
    assert abs(found.mean()) <= 5 * found.std(ddof=1) / np.sqrt(len(found))


def test_a_focus_gap_stands_out_in_a_sample():
    """The first bit is copied to the last: the top tells of x_β what z_β does not."""

    def draw(count, generator):
        bits = torch.randint(2, (count, 4), generator=generator)
        bits[:, 3] = bits[:, 0]
        return bits

    teacher = sample_teacher(
        tree(4),
        {"1.0": "and", "1.1": "and"},
        count=2000,
        draw=draw,
        generator=torch.Generator().manual_seed(0),
    )
    edge = compare(teacher, student_of(teacher, 2, seed=1)).edges["2.0", "1.0"]
    assert edge.focus > 5 * edge.focus_chance
