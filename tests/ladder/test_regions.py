"""Region graphs against lists written by hand."""

from itertools import pairwise

import pytest

from obverse._core.errors import BadInput
from obverse.ladder._regions import RegionGraph, grid, tree, windows


def depth(graph: RegionGraph, name: str) -> int:
    """The longest way down, by recursion."""
    return max((1 + depth(graph, child) for child in graph.children[name]), default=0)


def seen(graph: RegionGraph, name: str) -> set[int]:
    """Positions of all regions below, by recursion."""
    if not graph.children[name]:
        return set(graph.positions[name])
    return set().union(*(seen(graph, child) for child in graph.children[name]))


def consistent(graph: RegionGraph) -> None:
    """Order, parents, edges, levels and positions belong together."""
    place = {name: index for index, name in enumerate(graph.order)}
    assert set(place) == set(graph.children)
    assert graph.edges == tuple((name, child) for name in graph.order for child in graph.children[name])
    for parent, child in graph.edges:
        assert place[child] < place[parent]
        assert parent in graph.parents[child]
        assert set(graph.positions[child]) <= set(graph.positions[parent])
    assert sum(map(len, graph.parents.values())) == len(graph.edges)
    assert [name for name in graph.order if not graph.parents[name]] == [graph.top]
    assert set(graph.lowest) == {name for name in graph.order if not graph.children[name]}
    assert graph.level == {name: depth(graph, name) for name in graph.order}
    for name in graph.order:
        assert seen(graph, name) <= set(graph.positions[name])
    assert graph.inputs == 1 + max(max(own) for own in graph.positions.values())


def test_a_binary_tree():
    graph = tree(4)
    assert graph.children == {
        "0.0": (),
        "0.1": (),
        "0.2": (),
        "0.3": (),
        "1.0": ("0.0", "0.1"),
        "1.1": ("0.2", "0.3"),
        "2.0": ("1.0", "1.1"),
    }
    assert graph.positions["1.1"] == (2, 3)
    assert graph.positions["2.0"] == (0, 1, 2, 3)
    assert graph.top == "2.0"
    assert graph.inputs == 4
    consistent(graph)


@pytest.mark.parametrize("branching", [2, 3, 5])
@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 7, 8, 20, 27])
def test_a_tree_has_each_region_under_one_other(leaves, branching):
    graph = tree(leaves, branching)
    consistent(graph)
    assert all(len(graph.parents[name]) == 1 for name in graph.order if name != graph.top)
    assert graph.positions[graph.top] == tuple(range(leaves))
    counts = [leaves]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // branching))  # rounded up: the last region of a level has fewer
    for level, count in enumerate(counts):
        assert list(graph.level.values()).count(level) == count


def test_the_last_region_of_a_level_may_have_one_child():
    graph = tree(3)
    assert graph.children["1.1"] == ("0.2",)
    assert graph.children["2.0"] == ("1.0", "1.1")


def test_overlapping_windows():
    graph = windows(4, 2)
    assert graph.children["1.1"] == ("0.1", "0.2")
    assert graph.children["2.1"] == ("1.1", "1.2")
    assert graph.positions["2.1"] == (1, 2, 3)
    assert graph.parents["1.1"] == ("2.0", "2.1")
    assert [graph.level[name] for name in graph.order].count(1) == 3
    consistent(graph)


@pytest.mark.parametrize(
    ("leaves", "size", "stride"),
    [(1, 2, 1), (2, 5, 2), (5, 3, 2), (7, 3, 2), (9, 4, 3), (6, 3, 1), (10, 2, 2)],
)
def test_windows_cover_every_region_below_without_holes(leaves, size, stride):
    graph = windows(leaves, size, stride)
    consistent(graph)
    levels: dict[int, list[str]] = {}
    for name in graph.order:
        levels.setdefault(int(name.split(".")[0]), []).append(name)
    for below, above in pairwise(levels[level] for level in sorted(levels)):
        assert {child for name in above for child in graph.children[name]} == set(below)
        for index, name in enumerate(above):
            first = index * stride
            assert graph.children[name] == tuple(below[first : first + size])
        # no window that only repeats what the one before it has
        assert all(not set(graph.children[b]) <= set(graph.children[a]) for a, b in pairwise(above))


def test_a_grid_is_like_receptive_fields():
    graph = grid(4, 4)
    assert graph.children["1.0.1"] == ("0.0.2", "0.0.3", "0.1.2", "0.1.3")
    assert graph.positions["1.1.0"] == (8, 9, 12, 13)
    assert graph.children["2.0.0"] == ("1.0.0", "1.0.1", "1.1.0", "1.1.1")
    consistent(graph)


@pytest.mark.parametrize(
    ("height", "width", "size", "stride"),
    [(1, 1, 2, 2), (1, 5, 2, 2), (3, 3, 2, 1), (5, 4, 3, 2), (2, 7, 3, 3), (6, 6, 3, 1)],
)
def test_a_grid_covers_the_image(height, width, size, stride):
    graph = grid(height, width, size, stride)
    consistent(graph)
    assert graph.positions[graph.top] == tuple(range(height * width))
    assert graph.inputs == height * width
    for name in graph.order:
        level, row, column = map(int, name.split("."))
        if level == 1:
            wanted = {
                r * width + c
                for r in range(row * stride, min(row * stride + size, height))
                for c in range(column * stride, min(column * stride + size, width))
            }
            assert set(graph.positions[name]) == wanted


def test_a_region_may_cover_more_than_its_children_and_children_may_skip_levels():
    graph = RegionGraph.of(
        {"top": ["m", "c"], "m": ["a", "b"], "a": [], "b": [], "c": []},
        {"a": [0], "b": [1], "c": [2], "m": [0, 1, 5]},
    )
    assert graph.positions["m"] == (0, 1, 5)
    assert graph.positions["top"] == (0, 1, 2, 5)
    assert graph.level == {"a": 0, "b": 0, "c": 0, "m": 1, "top": 2}
    assert graph.inputs == 6
    consistent(graph)


def test_the_order_of_names_does_not_matter():
    children = {"top": ["m", "c"], "m": ["a", "b"], "a": [], "b": [], "c": []}
    positions = {"a": [0], "b": [1], "c": [2]}
    turned = RegionGraph.of(dict(reversed(children.items())), positions)
    assert turned == RegionGraph.of(children, positions)
    consistent(turned)


LEAVES = {"a": [0], "b": [1]}


@pytest.mark.parametrize(
    ("children", "positions", "said"),
    [
        ({"t": ["a", "x"], "a": []}, {"a": [0]}, "children of 't' that are regions; got x"),
        ({"t": ["a", "a"], "a": []}, {"a": [0]}, "each child of 't' once"),
        ({"t": ["a"], "a": ["b"], "b": ["a"]}, {}, "without a cycle"),
        ({"t": ["t"]}, {"t": [0]}, "without a cycle"),
        (
            {"t": ["a", "b"], "a": [], "b": []},
            {**LEAVES, "t": [0]},
            r"'t' to cover its children; .* \[0\] without \[1\]",
        ),
        ({"t": ["a"], "a": []}, {}, "input positions for 'a'"),
        ({"t": ["a"], "a": []}, {"a": []}, "input positions for 'a'"),
        ({"a": [], "b": []}, LEAVES, "one top region; got a, b"),
        ({}, {}, "one top region; got no region"),
        ({"t": "ab", "a": [], "b": []}, LEAVES, "children"),  # a text is no list of names
        ({"t": None, "a": []}, {"a": [0]}, "children"),
        ({"t": [["a"]], "a": []}, {"a": [0]}, "children"),
        ([("t", "a")], {"a": [0]}, "mapping"),
        ({"t": ["a"], "a": []}, {"a": 0}, "positions"),
        ({"t": ["a"], "a": []}, {"a": "0"}, "positions"),
        ({"t": ["a"], "a": []}, {"a": None}, "positions"),
        ({"t": ["a"], "a": []}, {"a": [-1]}, "positions"),
        ({"t": ["a"], "a": []}, {"a": [0.5]}, "positions"),
        ({"t": ["a"], "a": []}, {"a": [True]}, "positions"),
        ({"t": ["a"], "a": []}, {"a": [float("nan")]}, "positions"),
        ({"t": ["a"], "a": []}, {"a": [0], "zz": [1]}, "zz"),
        ({"t": ["a"], "a": []}, [0], "mapping"),
    ],
)
def test_a_graph_that_is_none_is_refused_by_name(children, positions, said):
    with pytest.raises(BadInput, match=said):
        RegionGraph.of(children, positions)


@pytest.mark.parametrize(
    "made",
    [
        lambda: tree(0),
        lambda: tree(-3),
        lambda: tree(4, 1),
        lambda: tree(True),
        lambda: tree(4.0),
        lambda: tree("4"),
        lambda: tree(None),
        lambda: tree(float("nan")),
        lambda: windows(4, 2, 0),
        lambda: windows(4, 2, 3),
        lambda: windows(4, 1, 1),
        lambda: windows(4, 2, True),
        lambda: windows(4, 2.0),
        lambda: grid(0, 3),
        lambda: grid(3, 0),
        lambda: grid(2, 2, 1, 1),
        lambda: grid(2, 2, 2, 3),
        lambda: grid(2.5, 2),
        lambda: grid(True, True),
        lambda: grid(2, "2"),
    ],
)
def test_counts_that_are_none_are_refused(made):
    with pytest.raises(BadInput):
        made()
