"""The landscape of linear residual nets beside that of plain ones: the numbers of the figures.

    python -m experiments.identity.landscape [--out FOLDER]      (a minute or two, one thread)

Writes landscape.json: descent from near-zero weights; descent with and without projection; how fast it is,
against what the corrected gradient bound promises; the bound itself, printed and corrected; critical points
from many starts; gradients against depth. All in float64, from the exact risk: no data are drawn.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from math import cos, log, log1p, pi, sin, sqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from obverse._core.files import write_text
from obverse.claims.identity._gradients import expected_squares
from obverse.identity._descent import Descent, critical_point, descend
from obverse.identity._landscape import gradient, gradient_bound, project, risk, spectral_norms

RESULTS = Path(__file__).parent / "results"
NETS = {"residual": True, "plain": False}
SIGNIFICANT = 5  # digits that are kept


def short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{SIGNIFICANT}g}") for value in values]


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def identity(d: int) -> Tensor:
    return torch.eye(d, dtype=torch.float64)


def covariance_with(values: Tensor, generator: torch.Generator) -> Tensor:
    axes, _ = torch.linalg.qr(normal(generator, len(values), len(values)))
    return (axes * values) @ axes.mT


def target_near(d: int, size: float, generator: torch.Generator) -> Tensor:
    """R = exp(G) with ‖G‖ = size: det R > 0, and γ ≤ size."""
    drawn = normal(generator, d, d)
    return torch.linalg.matrix_exp(size * drawn / torch.linalg.matrix_norm(drawn, 2))


def curve(run: Descent, count: int = 80) -> dict[str, Any]:
    """A run at about `count` steps, evenly spread in log(1 + step)."""
    last = len(run.lrs)
    steps = sorted({round((1 + last) ** (at / count) - 1) for at in range(count + 1)})
    return {
        "steps": steps,
        "losses": short([run.losses[step] for step in steps]),
        "gradients": short([run.gradients[step] for step in steps]),
        "norms": short([run.norms[step] for step in steps]),
        "inside": run.inside,
    }


def descents(d: int = 10, spread: float = 0.01, steps: int = 3000) -> list[dict[str, Any]]:
    """Both nets from the same near-zero weights to the same target, at the same fixed rate."""
    generator = torch.Generator().manual_seed(1)
    target = target_near(d, 0.7, generator)
    covariance = covariance_with(torch.linspace(0.5, 1.5, d, dtype=torch.float64), generator)
    found = []
    for layers in (2, 4, 8, 16, 32):
        start = sqrt(spread / d) * normal(generator, layers, d, d)
        rate = 1 / (4 * layers * 1.5)
        for net, residual in NETS.items():
            run = descend(start, target, covariance, lr=rate, steps=steps, residual=residual)
            found.append({"net": net, "layers": layers, "rate": rate, **curve(run)})
    return found


def rotation(angle: float) -> Tensor:
    return torch.tensor([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]], dtype=torch.float64)


def projections(layers: int = 6, turn: float = 0.8) -> list[dict[str, Any]]:
    """R turns the plane by 0.8π. Starts turn the same way or the other, with and without projection."""
    part = turn * pi / layers
    tau = 1.02 * 2 * sin(part / 2)
    found = []
    for way, sense in (("same", 0.5), ("other", -0.5)):
        start = (rotation(sense * part) - identity(2)).expand(layers, 2, 2)
        start = start + 0.01 * normal(torch.Generator().manual_seed(2), layers, 2, 2)
        for projected in (True, False):
            limit = tau if projected else None
            run = descend(start, rotation(turn * pi), identity(2), lr=0.02, steps=400, tau=limit)
            found.append({"start": way, "projected": projected, "tau": tau, **curve(run)})
    return found


def convergence(d: int = 3, steps: int = 100, runs: int = 20) -> list[dict[str, Any]]:
    """Steps a factor e in f − f_opt from A = 0, measured and as the bound promises for the same rate and ‖A‖.

    Each step has a promise of its own: f − f_opt shrinks by 1 − rate·2l(1 − ‖A‖)^{2l−2}σ_min at least.
    """
    generator = torch.Generator().manual_seed(3)
    found = []
    for layers in (2, 4, 8, 16, 32):
        for condition in (1.0, 4.0, 16.0):
            measured, promised = [], []
            for _ in range(runs):
                values = 1 + (condition - 1) * torch.linspace(0, 1, d, dtype=torch.float64)
                covariance = covariance_with(values, generator)
                target = target_near(d, 0.5, generator)
                start = torch.zeros(layers, d, d, dtype=torch.float64)
                run = descend(start, target, covariance, steps=steps)
                # Far from rounding, where backtracking can be trusted.
                last = sum(loss > 1e-16 * run.losses[0] for loss in run.losses) - 1
                promise = sum(
                    log1p(-2 * layers * (1 - norm) ** (2 * layers - 2) * rate)
                    for norm, rate in zip(run.norms[:last], run.lrs[:last], strict=True)
                )
                measured.append(last / log(run.losses[0] / run.losses[last]))
                promised.append(-last / promise)
            found.append(
                {
                    "layers": layers,
                    "condition": condition,
                    "measured": short(measured),
                    "promised": short(promised),
                }
            )
    return found


def bounds(d: int = 3, layers: int = 5, tau: float = 0.2, draws: int = 60) -> list[dict[str, Any]]:
    """Right over left side of eq. 6 at random weights, printed and corrected: a bound stays below 1."""
    generator = torch.Generator().manual_seed(4)
    found = []
    for sigma in (0.1, 0.3, 1.0, 3.0, 10.0):
        sides: dict[str, list[float]] = {"printed": [], "corrected": []}
        for _ in range(draws):
            values = sigma * (1 + 2 * torch.rand(d, generator=generator, dtype=torch.float64))
            values[0] = sigma
            covariance, target = covariance_with(values, generator), normal(generator, d, d)
            noise = 10 ** (2 * float(torch.rand(1, generator=generator)) - 2) * normal(
                generator, layers, d, d
            )
            weights = project(noise - tau * identity(d), tau)
            slope = gradient(weights, target, covariance).square().sum()
            for side in sides:
                bound = gradient_bound(weights, target, covariance, printed=side == "printed")
                sides[side].append(float(bound / slope))
        found.append({"sigma": sigma, **{side: short(shares) for side, shares in sides.items()}})
    return found


def critical_points(starts: int = 120) -> list[dict[str, Any]]:
    """Where polishing ends, from random starts with ‖A‖ < 1 and < 2; each problem is drawn anew.

    ‖R‖ = 0.8 and det R > 0, within reach of both nets with ‖A‖ < 0.95. `excess` is relative to tr(RΣRᵀ), the
    risk of the product 0; `curvature` to 2‖Σ‖.
    """
    found = []
    for (net, residual), largest in product(NETS.items(), (1.0, 2.0)):
        for d, layers in ((2, 2), (2, 3), (3, 3), (3, 4)):
            generator = torch.Generator().manual_seed(5)
            points, excesses, curvatures = [], [], []
            for _ in range(starts):
                target = target_near(d, 0.5, generator)
                target = 0.8 * target / torch.linalg.matrix_norm(target, 2)
                values = 0.3 + 2.7 * torch.rand(d, generator=generator, dtype=torch.float64)
                covariance = covariance_with(values, generator)
                drawn = normal(generator, layers, d, d)
                sizes = torch.rand(layers, generator=generator, dtype=torch.float64) / spectral_norms(drawn)
                start = largest * drawn * sizes[:, None, None]
                point = critical_point(start, target, covariance, residual=residual)
                zero = torch.zeros(1, d, d, dtype=torch.float64)
                excesses.append(point.excess / float(risk(zero, target, covariance, residual=False)))
                curvatures.append(point.curvature / (2 * float(values.max())))
                points.append(point)
            bad = [point.norm for point in points if point.critical and point.kind != "global minimum"]
            found.append(
                {
                    "net": net,
                    "largest_start": largest,
                    "d": d,
                    "layers": layers,
                    "starts": starts,
                    "kinds": dict(Counter(point.kind for point in points)),
                    "not_critical": sum(not point.critical for point in points),
                    "critical_inside": sum(point.critical and point.norm < 1 for point in points),
                    "bad_inside": sum(norm < 1 for norm in bad),  # critical, not global, ‖A‖ < 1
                    "least_norm_of_bad": min(bad, default=None),
                    "norm": short([point.norm for point in points]),
                    "excess": short(excesses),
                    "curvature": short(curvatures),
                    "kind": [point.kind for point in points],
                    "critical": [point.critical for point in points],
                }
            )
    return found


def gradients(d: int = 32, draws: int = 40) -> list[dict[str, Any]]:
    """√(mean over layers of ‖∂f/∂A_i‖²) at weights N(0, s²) against depth: expected, and measured."""
    generator = torch.Generator().manual_seed(6)
    target = target_near(d, 0.7, generator)
    covariance = covariance_with(torch.linspace(0.5, 1.5, d, dtype=torch.float64), generator)
    depths = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
    found = []
    for net, residual in NETS.items():
        for spread in (0.01, 0.1):
            expected, measured = [], []
            for layers in depths:
                deviation = sqrt(spread / d)
                squares = expected_squares(target, covariance, layers, deviation, residual)
                expected.append(sqrt(sum(squares) / layers))
                mean = 0.0
                for _ in range(draws):
                    weights = deviation * normal(generator, layers, d, d)
                    slope = gradient(weights, target, covariance, residual)
                    mean += float(slope.square().sum()) / layers / draws
                measured.append(sqrt(mean))
            found.append(
                {
                    "net": net,
                    "spread": spread,  # s²d
                    "layers": list(depths),
                    "expected": short(expected),
                    "measured": short(measured),
                }
            )
    return found


PARTS: dict[str, Callable[[], Any]] = {
    "descent": descents,
    "projection": projections,
    "convergence": convergence,
    "gradient_bound": bounds,
    "critical_points": critical_points,
    "gradients": gradients,
}


def run(out: Path = RESULTS) -> None:
    torch.set_num_threads(1)
    results = {}
    for name, part in PARTS.items():
        print(name, flush=True)
        results[name] = part()
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "landscape.json", json.dumps(results, allow_nan=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for landscape.json")
    run(parser.parse_args().out)


if __name__ == "__main__":
    main()
