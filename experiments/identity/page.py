"""Put the tables of near-identity nets into docs/identity.md, and draw its figures.

python -m experiments.identity.page
"""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import torch

from obverse.identity import choose_width
from obverse.identity._walk import walk

from .._lab.places import BENCHMARKS, DOCS, FIGURES
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from ..allconv import run as contest
from .figures import draw_allconv, draw_block, draw_factors, draw_landscape, draw_sizes

RESULTS = Path(__file__).parent / "results"
TITLES = {"digits": "digits", "mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}


def sizes_table(sizes: dict[str, Any]) -> str:
    rows = []
    for one in sizes.values():
        chosen = choose_width(one["points"], 10)
        if one["width"] not in (1, 2, 4, chosen):
            continue
        start = [f"{one['points']:,}", f"{one['width']}" + (" (chosen)" if one["width"] == chosen else "")]
        if "refused" in one:
            rows.append([*start, one["refused"], *["–"] * 7])
            continue
        rows.append(
            [
                *start,
                f"{one['parameters']:,}",
                f"{one['parameters'] / (one['points'] * log(one['points'])):.2f}",
                f"{one['errors']}",
                f"{one['margins'][0]:.3f}",
                f"{one['gap']:.0e}".replace("e-0", "e−").replace("e-", "e−"),
                "yes" if one["float32"] == "exact" else "no",
                f"{one['steepness']['median']:,.0f}",
                f"10^{one['log10_bound']:,.0f}",
            ]
        )
    head = ["points", "width k", "parameters", "÷ n ln n", "errors", "margin", "room", "float32", "steepness"]
    return table([*head, "its bound"], rows)


def tests_table(tests: dict[str, Any]) -> str:
    rows = [
        [
            TITLES[one["data"]],
            f"{one['points']:,}",
            f"{one['errors']}",
            *(f"{100 * one[name]:.1f}" for name in ("test_accuracy", "nearest_accuracy", "chance")),
            f"{100 * (one['chance'] * (1 - one['chance']) / one['test_points']) ** 0.5:.1f}",
        ]
        for one in tests.values()
    ]
    return table(
        [
            "true labels of",
            "points",
            "errors",
            "test %",
            "nearest point %",
            "largest class %",
            "± s.e. of chance",
        ],
        rows,
    )


def contest_table(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{one['points']:,}",
            f"{one['memorize']['seconds']:.1f} s",
            f"{100 * one['memorize']['right']:.2f} %",
            f"{one['sgd']['seconds']:.0f} s ({one['sgd']['epochs']} epochs)",
            f"{100 * one['sgd']['right']:.2f} %",
            f"{one['memorize']['numbers']:,} / {one['sgd']['numbers']:,}",
        ]
        for one in found["details"]["contests"]
    ]
    return table(
        ["random labels", "built in", "right", "trained for", "right", "numbers, built / trained"], rows
    )


def critical_table(found: dict[str, Any]) -> str:
    rows = [
        [
            run["net"],
            f"{run['d']} × {run['layers']}",
            f"{run['largest_start']:g}",
            f"{run['starts'] - run['not_critical']}",
            f"{run['critical_inside']}",
            f"{run['bad_inside']}",
            "–" if run["least_norm_of_bad"] is None else f"{run['least_norm_of_bad']:.2g}",
            ", ".join(f"{count} {kind}" for kind, count in sorted(run["kinds"].items())),
        ]
        for run in found["critical_points"]
    ]
    head = [
        "net",
        "d × layers",
        "starts up to ‖A‖",
        "critical points",
        "inside ‖A‖ < 1",
        "of these not minima",
    ]
    return table([*head, "least ‖A‖ of such anywhere", "kinds"], rows)


def allconv_table(found: dict[str, Any]) -> str:
    rows = []
    for one in found["variants"]:
        finals = [run["test_error"] for run in one["runs"]]
        mean, error = one["test_error"], one["test_error_se"]
        rows.append(
            [
                one["variant"],
                f"{one['parameters']:,}",
                f"{one['rate']:g}",
                f"{100 * mean:.2f}" + ("" if error is None else f" ± {100 * error:.2f}"),
                ", ".join(f"{100 * final:.2f}" for final in finals),
            ]
        )
    return table(["net", "parameters", "lr", "test error %, mean ± s.e.", "seeds"], rows)


def page() -> None:
    memorized, landscape, allconv = (
        read(RESULTS / "memorize.json"),
        read(RESULTS / "landscape.json"),
        read(contest.RESULTS),
    )
    contests = read(BENCHMARKS / "memorize_sgd.json")
    draw_factors(read(RESULTS / "factors.json"), FIGURES / "identity-factors.png")
    draw_landscape(landscape, FIGURES / "identity-landscape.png")
    draw_sizes(memorized["sizes"], FIGURES / "identity-sizes.png")
    draw_allconv(allconv, FIGURES / "identity-allconv.png")
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(24, 2, generator=generator), torch.arange(24) % 4
    walked = walk(x, y, generator)
    assert walked is not None
    draw_block(walked, FIGURES / "identity-block.png")
    parts = (
        "**Critical points**, Levenberg–Marquardt on ∇f from random starts, 120 a row. A saddle "
        "has a Hessian with a negative eigenvalue; other points are flat, as A = 0 in a plain net of three "
        "layers or more, or did not converge:\n\n" + critical_table(landscape),
        "**How small, how tight, how steep**: CIFAR-10 with random labels, the width that `memorize` chooses "
        "and smaller ones. Room: of the hardest threshold ÷ ‖z‖². Steepness: ‖Jacobian‖ at 500 training "
        "points, median, beside the bound from the norms of the weights.\n\n"
        + sizes_table(memorized["sizes"])
        + "\n![sizes](figures/identity-sizes.png)\n",
        "**New points**: all training points with their true labels, then the test set.\n\n"
        + tests_table(memorized["tests"]),
        "**Against training**: random labels of CIFAR-10, SGD on an MLP of as many numbers, up to "
        f"{contests['details']['limit_seconds']:g} seconds:\n\n" + contest_table(contests),
        "**All-convolutional nets**, CIFAR-10, the small setting:\n\n" + allconv_table(allconv),
    )
    put_between_marks(DOCS / "identity.md", "\n" + "\n\n".join(part.strip() for part in parts) + "\n\n")


if __name__ == "__main__":
    page()
