"""What is measured on a memorizing net, against brute force; what is drawn at random; the record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from obverse._core.errors import BadInput
from obverse.identity._memorize import QUANTILES, NotMemorized, memorize, quantiles
from obverse.identity._recall import (
    NAME,
    Recall,
    nearest_labels,
    random_labels,
    read_recall,
    recall,
)
from obverse.identity._walk import CLASSES, WALKED, walk
from obverse.identity._words import outlook, verdict
from saved import result_text, write_result


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def clusters(points: int, seed: int = 0, classes: int = 3, inputs: int = 6) -> tuple[Tensor, Tensor]:
    """Classes around centres that do not depend on the seed: test inputs are like training points."""
    y = torch.arange(points) % classes
    centres = 2 * torch.randn(classes, inputs, generator=seeded(99))
    return centres[y] + torch.randn(points, inputs, generator=seeded(seed)), y


@pytest.fixture(scope="module")
def made() -> tuple[Any, Recall]:
    return recall(*clusters(80), *clusters(41, seed=1), data="clusters")


# --- random labels ---


def test_equal_points_have_equal_random_labels() -> None:
    x = torch.randn(50, 4, generator=seeded(0)).repeat(3, 1)
    x[0] = 0.0
    x[50] = -0.0  # equals 0, in other bytes
    x[100] = 0.0
    y = random_labels(x, 7, seeded(3))
    assert torch.equal(y[:50], y[50:100])
    assert torch.equal(y[:50], y[100:])
    assert len(y[:50].unique()) == 7, "50 draws of 7 labels leave one out with a chance of 0.3 %"
    assert not torch.equal(random_labels(x, 7, seeded(4)), y), "another seed, other labels"


def test_random_labels_are_even() -> None:
    x = torch.arange(7000).unsqueeze(1)
    counts = random_labels(x, 7, seeded(0)).bincount(minlength=7).double()
    chi_square = float(((counts - 1000).square() / 1000).sum())
    assert chi_square < 29  # 6 degrees of freedom: exceeded once in 16,000 draws; the draw is fixed
    assert len(counts) == 7


def test_random_labels_never_conflict_and_are_what_is_memorized() -> None:
    x = torch.randn(30, 3, generator=seeded(2)).repeat(2, 1)  # every point twice
    y = torch.arange(60) % 4  # equal points, different labels
    with pytest.raises(BadInput, match="one label for equal points"):
        recall(x, y, x, y)
    net, found = recall(x, y, x, y, labels="random", seed=5)
    said = net(x).argmax(1)
    assert torch.equal(said[:30], said[30:])
    assert int((said == y).sum()) < 40, "15 ± 3.4 of 60 by chance"
    assert (found.facts.points, found.facts.distinct, found.facts.errors) == (60, 30, 0)
    assert (found.test_points, found.test_accuracy, found.chance, found.nearest_accuracy) == (
        0,
        None,
        None,
        None,
    )


# --- what is measured ---


def test_the_net_is_the_one_that_memorize_builds_with_this_seed() -> None:
    x, y = clusters(60)
    net, found = recall(x, y, x[:0], y[:0], seed=7)
    other = memorize(x, y, generator=seeded(7))
    assert all(torch.equal(one, two) for one, two in zip(net.parameters(), other.parameters(), strict=True))
    assert found.facts == other.facts
    assert found.test_accuracy is None, "no test inputs"


def test_quantiles_are_numpys() -> None:
    values = torch.randn(1001, generator=seeded(3))
    assert quantiles(values) == tuple(np.quantile(values.numpy(), QUANTILES, method="nearest").tolist())


def test_local_lipschitz_constants_are_norms_of_jacobians(made: tuple[Any, Recall]) -> None:
    net, found = made
    x, _ = clusters(80)
    norms = []
    for point in x.double():
        jacobian = torch.autograd.functional.jacobian(lambda one: net(one.unsqueeze(0))[0], point)
        norms.append(float(np.linalg.norm(jacobian.numpy(), 2)))
    assert found.sampled == 80
    # The same sums in another order, over a few dozen blocks
    assert np.allclose(found.lipschitz, np.quantile(norms, QUANTILES, method="nearest"), rtol=1e-9)
    assert 10**found.log10_bound >= max(norms)


def test_accuracies_by_brute_force(made: tuple[Any, Recall]) -> None:
    net, found = made
    x, y = clusters(80)
    test_x, test_y = clusters(41, seed=1)
    assert found.test_points == 41
    assert found.test_accuracy == float((net(test_x).argmax(1) == test_y).double().mean())
    assert found.chance == 14 / 41
    z, test_z = net.project(x), net.project(test_x)
    nearest = [min(range(80), key=lambda i: float((z[i] - one).square().sum())) for one in test_z]
    expected = y[torch.tensor(nearest)]
    assert torch.equal(nearest_labels(net, x, y, test_x), expected)
    assert found.nearest_accuracy == float((expected == test_y).double().mean())
    assert found.nearest_accuracy > 0.5, "these classes are apart"


def test_drawn_points_are_numbered_as_in_the_data() -> None:
    x, y = clusters(50)
    x, y = x.double(), y.clone()
    x[41], y[41] = x[7] + 1e-7, (y[7] + 1) % 3
    for seed in range(20):
        drawn, found = recall(x, y, x[:0], y[:0], points=45, seed=seed)
        assert (found.asked_points, found.facts.points) == (45, 45)
        if set(found.facts.closest) == {7, 41}:
            break
    else:
        pytest.fail("20 seeds draw both points of the pair with a chance of 1 − 10⁻¹⁴")
    assert int((drawn(x).argmax(1) == y).sum()) >= 45


def test_what_is_refused_is_called_by_its_number() -> None:
    x, y = torch.tensor([[1.0], [0.0], [0.0], [2.0]]), torch.tensor([0, 0, 1, 1])
    with pytest.raises(BadInput, match=r"equal points 1 and 2 \(labels 0, 1\)"):
        recall(x, y, x, y)
    with pytest.raises(BadInput, match=r"equal points 7 and 5 \(labels 0, 1\)"):
        recall(x, y, x, y, numbers=torch.tensor([3, 7, 5, 9]))
    for seed in range(20):  # drawn points keep their numbers
        try:
            recall(x, y, x, y, points=3, seed=seed)
        except BadInput as error:
            assert "equal points 1 and 2 (labels 0, 1)" in str(error)  # noqa: PT017


def test_the_hardest_pair_is_called_by_its_number() -> None:
    x, y = clusters(30)
    numbers = 1000 + torch.arange(30).flip(0)
    plain, named = recall(x, y, x, y)[1].facts.closest, recall(x, y, x, y, numbers=numbers)[1].facts.closest
    assert plain is not None
    assert named == tuple(1029 - one for one in plain)


def test_float32_is_checked_or_refused_with_the_reason(made: tuple[Any, Recall]) -> None:
    found = made[1]
    assert found.float32 is not None
    assert (found.float32.errors, found.float32.dtype, found.float32_refused) == (0, "float32", "")
    x, y = clusters(40)
    x = x.double()
    single, kept = recall(x, y, x, y, dtype="float32")
    assert (single.centre.dtype, kept.dtype, kept.facts.dtype) == (torch.float32, "float32", "float64")
    x[1] = x[0] + 1e-10  # with another label
    net, found = recall(x, y, x, y)
    assert net.centre.dtype == torch.float64
    assert found.float32 is None
    assert "expected points that float32 can distinguish; got points" in found.float32_refused
    with pytest.raises(NotMemorized, match="float32 can distinguish"):
        recall(x, y, x, y, dtype="float32")
    _, found = recall(x, y, x, y, float32=False)
    assert (found.float32, found.float32_refused) == (None, "")


def test_the_same_seed_gives_the_same_numbers_and_no_global_randomness_is_used() -> None:
    x, y = clusters(60)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, two, other = (
        replace(recall(x, y, x, y, points=30, seed=seed)[1], seconds=0.0) for seed in (3, 3, 4)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert one == two
    assert one != replace(other, seed=3)


def test_progress_is_told_from_beginning_to_end() -> None:
    seen: list[tuple[int, int, str]] = []
    x, y = clusters(30)
    recall(x, y, x, y, progress=lambda *said: seen.append(said))
    names = list(dict.fromkeys(what for _, _, what in seen))
    assert names == ["thresholds", "checked points", "test inputs", "nearest points", "done"]
    assert seen[-1] == (30, 30, "done")
    assert all(0 <= done <= total for done, total, _ in seen)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": "mine"}, "labels out of own, random"),
        ({"points": 0}, "from 1 to 30 points"),
        ({"points": 31}, "from 1 to 30 points"),
        ({"points": 1.5}, "from 1 to 30 points"),
        ({"width": 0}, "a width from 1 to 1,000"),
        ({"width": 1001}, "a width from 1 to 1,000"),
        ({"dtype": "float16"}, "a dtype out of float64, float32"),
        ({"dtype": "float32", "float32": False}, "a check of the float32 net"),
        ({"seed": -1}, "a seed from 0"),
        ({"seed": 2**63}, "a seed from 0"),
        ({"classes": 2}, "at least 3 classes"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, Any], said: str) -> None:
    x, y = clusters(30)
    with pytest.raises(BadInput, match=said):
        recall(x, y, x, y, **change)


@pytest.mark.parametrize("points", [1, 2, 3])
def test_few_points(points: int) -> None:
    x, y = clusters(points)
    _, found = recall(x, y, x, y, classes=3)
    assert (found.test_accuracy, found.sampled) == (1.0, points)
    assert found.walk is not None


# --- the walk ---


def test_each_block_moves_its_points_to_their_targets_and_no_other() -> None:
    x, y = clusters(60, classes=4)
    found = walk(x, y + 3, seeded(0))
    assert found is not None
    assert len(found.labels) == WALKED
    assert set(found.labels) <= {3, 4, 5, 6} == set(found.classes)
    positions = np.array(found.positions)
    moved = [point for block in found.moved for point in block]
    assert sorted(moved) == list(range(WALKED)), "each point once"
    assert all(len(block) == 2 for block in found.moved)
    for block, points in enumerate(found.moved):
        before, after = positions[block], positions[block + 1]
        stay = [point for point in range(WALKED) if point not in points]
        assert np.array_equal(after[stay], before[stay]), "to the last bit"
        for point in points:
            target = found.targets[found.classes.index(found.labels[point])]
            # weights of 1/gap ≤ 1e4 times the rounding of numbers of size 1
            assert np.allclose(after[point], target, rtol=0, atol=1e-10)
        # what is shaded in the image holds the points of the block and nothing else
        answers = [
            {i for i, (a, b) in enumerate(before) if u * a + v * b + s > 0} for u, v, s in found.units[block]
        ]
        assert set().union(*answers) == set(points)


def test_the_targets_of_the_walk_are_half_as_far_as_the_nearest_point() -> None:
    found = walk(*clusters(60), seeded(1))
    assert found is not None
    start = np.linalg.norm(found.positions[0], axis=1)
    # one division and one product by the square of the radius
    assert np.allclose(np.linalg.norm(found.targets, axis=1), start.min() / 2, rtol=1e-12)


def test_a_walk_is_of_few_classes_where_there_are_many() -> None:
    x, y = clusters(200, classes=50)
    found = walk(x, y, seeded(2))
    assert found is not None
    assert len(found.classes) == CLASSES
    assert len(found.labels) == WALKED


def test_points_that_the_plane_does_not_tell_apart_have_no_walk() -> None:
    x = torch.zeros(4, 3, dtype=torch.float64)
    x[1, 0] = 1e-300
    x[2:] = 1.0
    assert walk(x, torch.tensor([0, 1, 0, 0]), seeded(0)) is None


# --- the record ---


def test_the_record_is_written_and_read_back(made: tuple[Any, Recall], tmp_path: Path) -> None:
    write_result(made[1], tmp_path / NAME)
    assert read_recall(tmp_path) == made[1]
    assert read_recall(tmp_path / NAME) == made[1]
    assert str(made[1]) == f"{verdict(made[1])} {outlook(made[1])}"
    assert str(made[1]).startswith("80 of 80 points of clusters labelled right (100.00 %) without training")


def broken(found: Recall, **change: Any) -> dict[str, Any]:
    return json.loads(result_text(found)) | change


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("format",), 2, "format 1"),
        (("labels",), "mine", "'own' or 'random'"),
        (("lipschitz",), [1.0], "9 quantiles"),
        (("facts", "margins"), [1.0], "sound facts"),
        (("test_accuracy",), 1.5, "shares from 0 to 1"),
        (("test_accuracy",), None, "all or none"),
        (("test_points",), 0, "all or none"),
        (("seconds",), -1.0, "can be read"),
        (("log10_bound",), 1e300, "can be read"),
        (("facts", "points"), 0, "sound facts"),
        (("facts", "budget"), 0.0, "sound facts"),
        (("facts", "errors"), 81, "sound facts"),
        (("float32", "budget"), 0.0, "sound facts"),
        (("walk", "labels"), [], "fit together"),
        (("walk", "moved"), [[0]], "fit together"),
        (("walk", "targets"), [[0.0, 0.0]], "fit together"),
        (("walk", "classes"), [0, 1, 5], "fit together"),
        (("more",), 1, "no fields but"),
    ],
)
def test_a_record_that_is_not_in_order_is_refused(
    made: tuple[Any, Recall], tmp_path: Path, place: tuple[str, ...], value: Any, said: str
) -> None:
    content = broken(made[1])
    part = content
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    (tmp_path / NAME).write_text(json.dumps(content))
    with pytest.raises(BadInput, match=said):
        read_recall(tmp_path)
