"""EventModel.of against sums by hand, and against the model of a teacher that was enumerated."""

import numpy as np
import pytest
import torch

from ladder.plain_ladder import GRAPHS, SUMMED, listed, plain_conditional, plain_prior, teacher_of, weights_of
from obverse._core.errors import BadInput
from obverse.ladder._model import EventModel
from obverse.ladder._regions import RegionGraph, tree

EYE = [[1.0, 0.0], [0.0, 1.0]]
PAIR = {("1.0", "0.0"): EYE, ("1.0", "0.1"): [[0.5, 0.5], [0.5, 0.5]]}


def test_priors_follow_from_the_top():
    graph = tree(4)
    generator = torch.Generator().manual_seed(0)
    sizes = {"2.0": 3, "1.0": 4, "1.1": 2, "0.0": 2, "0.1": 3, "0.2": 2, "0.3": 5}
    matrices = {}
    for parent, child in graph.edges:
        drawn = torch.rand(sizes[parent], sizes[child], generator=generator, dtype=torch.float64)
        matrices[parent, child] = drawn / drawn.sum(1, keepdim=True)
    top = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    model = EventModel.of(graph, top, matrices)
    assert model.sizes == sizes
    middle = [
        sum(float(top[a]) * float(matrices["2.0", "1.1"][a, b]) for a in range(3))
        for b in range(sizes["1.1"])
    ]
    low = [
        sum(middle[a] * float(matrices["1.1", "0.3"][a, b]) for a in range(2)) for b in range(sizes["0.3"])
    ]
    assert model.priors["1.1"].tolist() == pytest.approx(middle, abs=SUMMED)
    assert model.priors["0.3"].tolist() == pytest.approx(low, abs=SUMMED)
    for edge in graph.edges:
        assert torch.equal(model.conditionals[edge].dense(), matrices[edge])


@pytest.mark.parametrize("rule", ["full", "table"])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_model_of_a_teacher_is_the_frequency_of_its_events(name, rule):
    """Lossy too, under any p with zeros; `EventModel.of` builds the same from dense matrices."""
    graph, _ = GRAPHS[name]
    table = {region: (lambda z: z.sum(1) % 2) for region in graph.order if graph.children[region]}
    teacher = teacher_of(name, table if rule == "table" else "full", seed=5)
    p, model = weights_of(teacher), teacher.model
    for region in graph.order:
        expected = plain_prior(listed(teacher, region), p, teacher.sizes[region])
        np.testing.assert_allclose(model.priors[region].numpy(), expected, atol=SUMMED)
    dense = {}
    for parent, child in graph.edges:
        shape = teacher.sizes[parent], teacher.sizes[child]
        dense[parent, child] = plain_conditional(listed(teacher, parent), listed(teacher, child), p, shape)
        found = model.conditionals[parent, child].dense().numpy()
        np.testing.assert_allclose(found, dense[parent, child], atol=SUMMED)
    # rows of events that never happen can be anything for a model that is given
    for matrix in dense.values():
        matrix[matrix.sum(1) == 0, 0] = 1
    again = EventModel.of(graph, model.priors[graph.top], dense)
    assert again.sizes == model.sizes
    for region in graph.order:
        np.testing.assert_allclose(again.priors[region].numpy(), model.priors[region].numpy(), atol=SUMMED)


def test_a_child_of_two_parents_must_be_as_likely_from_both():
    graph = RegionGraph.of(
        {"t": ["m", "n"], "m": ["a"], "n": ["a"], "a": []},
        {"a": [0]},
    )
    rest = {("t", "m"): EYE, ("t", "n"): EYE}
    EventModel.of(graph, [0.5, 0.5], {**rest, ("m", "a"): EYE, ("n", "a"): EYE[::-1]})
    with pytest.raises(BadInput, match=r"the same P\(z\) of 'a' from each of its parents"):
        EventModel.of(graph, [0.4, 0.6], {**rest, ("m", "a"): EYE, ("n", "a"): EYE[::-1]})
    with pytest.raises(BadInput, match=r"the same P\(z\) of 'a'"):
        EventModel.of(graph, [0.5, 0.5], {**rest, ("m", "a"): EYE, ("n", "a"): [[1.0], [1.0]]})


@pytest.mark.parametrize(
    ("top", "matrices", "said"),
    [
        ([0.5, 0.6], PAIR, "sum to one"),
        ([1.5, -0.5], PAIR, "probabilities"),
        ([float("nan"), 1.0], PAIR, "probabilities"),
        ([float("inf"), 0.0], PAIR, "finite"),
        ([[0.5, 0.5]], PAIR, "probabilities"),
        ([], PAIR, "probabilities"),
        ("ab", PAIR, "probabilities"),
        (None, PAIR, "probabilities"),
        ([0.5, 0.5], {}, "one matrix P for each edge"),
        ([0.5, 0.5], {**PAIR, ("1.0", "0.7"): EYE}, "one matrix P for each edge"),
        ([0.5, 0.5], {("1.0", "0.0"): EYE}, "one matrix P for each edge"),
        ([0.5, 0.25, 0.25], PAIR, "with 3 rows, one an event of '1.0'; got 2"),
        ([0.5, 0.5], {**PAIR, ("1.0", "0.0"): [[0.5, 0.4], [0.5, 0.5]]}, r"rows of P of \('1.0', '0.0'\)"),
        ([0.5, 0.5], {**PAIR, ("1.0", "0.0"): [[float("nan"), 1], [0.5, 0.5]]}, r"P of \('1.0', '0.0'\)"),
        ([0.5, 0.5], {**PAIR, ("1.0", "0.0"): "x"}, r"P of \('1.0', '0.0'\)"),
    ],
)
def test_a_model_that_is_none_is_refused(top, matrices, said):
    with pytest.raises(BadInput, match=said):
        EventModel.of(tree(2), top, matrices)
