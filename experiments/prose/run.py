"""Numbers that the docs state in a sentence, measured: accuracy, near-duplicates, coverage of an interval.

python -m experiments.prose.run    # some minutes; writes results/numbers.json
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product as product_of
from math import pi, sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse._core.errors import ObverseError
from obverse.diversity import intrinsic_dimension
from obverse.identity import Memorized, factorize, memorize
from obverse.ladder import compare, enumerate_teacher, random_student, tree
from obverse.shadow.tab._bench import LAWS, Bench, simulate

RESULTS = Path(__file__).parent / "results" / "numbers.json"
TRIALS = 200
OFFSETS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # in units of the noise
LAYERS = ((100, 5), (100, 50), (500, 20), (2000, 20), (2000, 400))  # m and k


def with_condition(size: int, condition: float, generator: torch.Generator) -> Tensor:
    """A random matrix with det > 0 and singular values from 1 to 1/condition, evenly in their logarithm."""
    one, two = (
        torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))[0]
        for _ in range(2)
    )
    values = torch.logspace(0, -float(torch.tensor(condition).log10()), size, dtype=torch.float64)
    matrix = one @ torch.diag(values) @ two
    if torch.linalg.slogdet(matrix)[0] < 0:
        matrix[0] = -matrix[0]
    return matrix


def factorization() -> dict[str, Any]:
    """The largest ‖product − R‖ / (‖R‖√d), and the digits of the weakest direction at condition 1e12."""
    generator = torch.Generator().manual_seed(0)
    worst, digits = 0.0, []
    for size in (4, 16, 64, 256):
        for condition in (1.0, 1e3, 1e6, 1e9, 1e12):
            for _ in range(3):
                matrix = with_condition(size, condition, generator)
                back = factorize(matrix, layers=64).product
                error = torch.linalg.matrix_norm(back - matrix, 2) / torch.linalg.matrix_norm(matrix, 2)
                worst = max(worst, float(error) / sqrt(size))
                if condition == 1e12:
                    left, values, right = torch.linalg.svd(matrix)
                    found = float(left[:, -1] @ back @ right[-1])
                    off = abs(found - float(values[-1])) / float(values[-1])
                    digits.append(-float(torch.tensor(max(off, 1e-17)).log10()))
    return {"error_over_root_size": worst, "digits_at_condition_1e12": min(digits)}


def near_duplicates() -> dict[str, Any]:
    """The least relative distance of two points with different labels at which all points are still right."""
    least = None
    for power in range(1, 17):
        generator = torch.Generator().manual_seed(power)
        x = torch.randn(200, 20, generator=generator, dtype=torch.float64)
        y = torch.randint(10, (200,), generator=generator)
        x[1] = x[0] * (1 + 10.0**-power)
        y[1] = (y[0] + 1) % 10
        try:
            facts = memorize(x, y, generator=torch.Generator().manual_seed(0)).facts
        except ObverseError:
            break
        assert isinstance(facts, Memorized)
        if facts.errors:
            break
        least = 10.0**-power
    return {"relative_distance": least}


def sphere(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(count, dimension + 1, generator=generator), dim=1)


def torus(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    angles = 2 * pi * torch.rand(count, dimension, generator=generator)
    return torch.cat([angles.cos(), angles.sin()], 1)


def cube(count: int, dimension: int, generator: torch.Generator) -> Tensor:
    return torch.rand(count, dimension, generator=generator)


def coverage() -> dict[str, Any]:
    """How often the 95 % interval of the dimension holds the truth, over trials of 1,000 points."""
    found = {}
    shapes: list[tuple[str, Callable[[int, int, torch.Generator], Tensor], int]] = [
        ("sphere", sphere, 1),
        ("sphere", sphere, 2),
        ("sphere", sphere, 5),
        ("torus", torus, 2),
        ("torus", torus, 5),
        ("cube", cube, 5),
        ("sphere", sphere, 20),
        ("cube", cube, 20),
    ]
    for name, draw, dimension in shapes:
        holds, values = 0, []
        for trial in range(TRIALS):
            points = draw(1000, dimension, torch.Generator().manual_seed(trial))
            result = intrinsic_dimension(points, generator=torch.Generator().manual_seed(0))
            holds += result.low <= dimension <= result.high
            values.append(result.value)
        found[f"{name} {dimension}"] = {"covered": holds / TRIALS, "mean": sum(values) / TRIALS}
        print(name, dimension, found[f"{name} {dimension}"], flush=True)
    return {"trials": TRIALS, "points": 1000, "shapes": found}


def rounding() -> dict[str, Any]:
    """The gap of ΔW where theory is exact, over the square root of the number of inputs."""
    worst = 0.0
    for leaves in (4, 6, 8, 10):
        teacher = enumerate_teacher(tree(leaves, 2), "full")
        for seed in range(3):
            student = random_student(teacher.model, 3, generator=torch.Generator().manual_seed(seed))
            result = compare(teacher, student)
            worst = max(worst, max(result.worst, result.worst_recursive) / sqrt(len(teacher.p)))
    return {"gap_over_root_inputs": worst}


def closed_form() -> dict[str, Any]:
    """How far the closed form of the recovery error is off, by the number of inputs kept, over many settings.

    The largest deviation, as a share of the prediction, among those that are beyond 3 standard errors.
    """
    found = {}
    for kept in (30, 60, 100, 200, 500, 1000):
        worst = 0.0
        for inputs, (hidden, sparsity) in product_of((kept, 2 * kept), LAYERS):
            points = [
                Bench(inputs, hidden, sparsity, kept, offset) for offset in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
            ]
            draws = max(60, min(1500, 2 * 10**8 // (inputs * hidden)))
            errors = torch.stack(
                [
                    simulate(points, LAWS["normal"], torch.Generator().manual_seed(seed))
                    for seed in range(draws)
                ]
            )
            for place, point in enumerate(points):
                mean, spread = float(errors[:, place].mean()), float(errors[:, place].std()) / sqrt(draws)
                off = abs(mean - point.predicted())
                if off > 3 * spread:
                    worst = max(worst, off / point.predicted())
        found[str(kept)] = worst
        print("closed form, t =", kept, worst, flush=True)
    return found


def run() -> None:
    found = {
        "closed_form": closed_form(),
        "factorization": factorization(),
        "near_duplicates": near_duplicates(),
        "ladder": rounding(),
        "dimension": coverage(),
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    run()
