"""Put the tables of experiments/results/generators into docs/generators.md, and draw its figure.

python experiments/make_generators_page.py
"""

from __future__ import annotations

import json
from typing import Any

from generators_figure import draw
from ladder_results import RESULTS
from make_results import DOCS, put_between_marks, table


def main() -> None:
    found = json.loads((RESULTS / "generators" / "generators.json").read_text(encoding="utf-8"))
    put_between_marks(DOCS / "generators.md", page(found))
    draw(found["entries"], DOCS / "figures" / "generators.png")


def page(found: dict[str, Any]) -> str:
    entries, settings = found["entries"], found["settings"]
    error = settings["feature_net"]["test_error"]
    head = (
        f"{settings['samples']:,} samples of each, compared with the 10,000 test pictures. Features: the 64 "
        "numbers before the last layer of a small CNN trained here on the labels (test error "
        f"{100 * error:.2f} %)."
    )
    return "\n\n".join([head, support(entries), marks(entries), training(entries)]) + "\n"


def count(value: float | None) -> str:
    """Three digits: no bound is known better."""
    return "–" if value is None else f"{float(f'{value:.3g}'):,.0f}"


def chance(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 1e−6" if value < 1e-6 else f"{value:.2g}".replace("e-0", "e−")


def support(entries: dict[str, Any]) -> str:
    rows = []
    for name, one in entries.items():
        row = [name]
        for test in (one["birthday"], one["birthday_features"]):
            bound = test["support_bound"]
            said = (
                f"≤ {count(bound)}" if bound is not None else f"support ≥ {count(test['support_at_least'])}"
            )
            row += [
                f"{test['collisions']} of {test['batches']} × {test['batch_size']:,}",
                said,
                count(test["effective"]["value"]),
                chance(test["p_real"]),
            ]
        rows.append(row)
    head = ["collisions", "N_eff, 95 %", "by counts", "p"]
    return table(["", *(f"{each} (pixels)" for each in head), *(f"{each} (features)" for each in head)], rows)


def estimate(one: dict[str, Any], digits: int = 3) -> str:
    return f"{one['value']:.{digits}f} ± {one['error']:.{digits}f}"


def marks(entries: dict[str, Any]) -> str:
    rows = []
    for name, one in entries.items():
        quality, moments, memory = one["quality"], one["moments"], one["memorization"]
        rows.append(
            [
                name,
                *(estimate(quality[each]) for each in ("precision", "recall", "density", "coverage")),
                f"{moments['fid']:.2f}",
                f"{moments['kid']['value']:.3g}",
                f"{one['vendi']['score']:.2f}",
                f"{one['dimension_pixels']['value']:.1f}",
                f"{100 * memory['authentic']['share']:.1f}",
                f"{memory['copying']['value']:.1f}" if memory["copying"] else "–",
                chance(memory["sides"]["p"]),
            ]
        )
    head = [
        "precision",
        "recall",
        "density",
        "coverage",
        "FID",
        "KID",
        "Vendi",
        "dimension (pixels)",
        "AuthPct",
    ]
    return table(["", *head, "C_T", "p (copied)"], rows)


def training(entries: dict[str, Any]) -> str:
    rows = [
        [name, f"{one['seconds']:,.0f}" if one["seconds"] else "–", f"{one['per_1000']:.2g}"]
        for name, one in entries.items()
    ]
    return table(["", "seconds to train", "seconds per 1,000 samples"], rows)


if __name__ == "__main__":
    main()
