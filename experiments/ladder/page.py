"""Put the tables of the ladder into docs/ladder.md, and draw its figures.

python -m experiments.ladder.page
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._lab.places import DOCS, FIGURES
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .figures import draw_dynamics, draw_overfitting, draw_real, draw_selectivity, draw_sgd
from .tables import RESULTS, tables

GAPS = ("focus", "broadness", "decorrelation", "fourth", "forward", "backward", "weight", "recursive")
NETS = ("digits-unshared", "digits-shared", "mnist-unshared", "mnist-shared")


def gaps_table(entries: dict[str, Any]) -> str:
    """By teacher; where every gap is rounding, the largest of them."""
    rows = []
    for name, found in entries.items():
        largest = max(found[f"{gap} worst"] for gap in GAPS)
        if largest < 1e-9:
            rows.append([name, *["0"] * (len(GAPS) - 1), f"{largest:.0e}".replace("e-", "e−")])
        else:
            rows.append([name, *(f"{found[gap]:.2f}" for gap in GAPS)])
    head = ["teacher", "focus", "broadness", "decorrelation", "fourth", "up", "down", "ΔW", "ΔW, recursion"]
    return table(head, rows)


def real_table(found: dict[str, Any]) -> str:
    """Shares of ΔW by level, at the first and the last stage, by number of events."""
    rows = []
    for net in NETS:
        own = [one for one in found["explained"] if one["net"] == net and one["images"] == "clustered"]
        stages = sorted({one["epochs"] for one in own})
        for epochs in (stages[0], stages[-1]):
            for events in (2, 8, 32):
                (told,) = _of(own, epochs, events, "pixels")
                (dealt,) = _of(own, epochs, events, "dealt at random")
                rows.append(
                    [
                        net.replace("-", ", ").replace("mnist", "MNIST"),
                        f"{epochs}",
                        f"{events}",
                        *(_pair(told["weight"][at], dealt["weight"][at]) for at in range(3)),
                        " / ".join(_share(told["backward"][at][0]) for at in (1, 2)),
                        " / ".join(_share(told["recursive"][at][0]) for at in range(3)),
                    ]
                )
    head = ["net", "epochs", "events", "ΔW above the pixels", "ΔW at level 2", "ΔW at the top"]
    return table([*head, "down to level 1 / 2", "recursion, by level"], rows)


def _of(rows: list[dict[str, Any]], epochs: int, events: int, kind: str) -> list[dict[str, Any]]:
    return [one for one in rows if (one["epochs"], one["events"], one["kind"]) == (epochs, events, kind)]


def _share(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if value > -10 else "< −10"


def _pair(told: list[float], dealt: list[float]) -> str:
    return f"{_share(told[0])} ± {told[1]:.2f} ({_share(dealt[0])})"


def read_real() -> dict[str, Any]:
    return read(RESULTS / "real" / "summary.json")


def draw(folder: Path = FIGURES) -> None:
    draw_dynamics(read(RESULTS / "dynamics.json")["entries"], folder / "ladder-dynamics.png")
    draw_selectivity(read(RESULTS / "selectivity.json"), "plain", folder / "ladder-selectivity.png")
    draw_overfitting(read(RESULTS / "overfitting.json"), folder / "ladder-overfitting.png")
    draw_sgd(read(RESULTS / "sgd.json"), folder / "ladder-sgd.png")
    draw_real(read_real(), folder / "ladder-real.png")


def text() -> str:
    """All tables, each with a sentence."""
    found = tables()
    parts = (
        "**Gaps by what regions tell**: means over edges or regions, medians over 20 students. A row of "
        "zeros is exact, its last number the largest gap. Pairs and threes: trees that take two or three "
        "regions together; windows: of three, overlapping.\n\n"
        + gaps_table(read(RESULTS / "gaps.json")["entries"]),
        "**Two trainings, nothing lost**: the largest difference of any parameter in 1,000 steps.\n\n"
        + found["exact"],
        "**Two trainings, as information is lost** (graded: the teacher's events are merged into fewer):\n\n"
        + found["drift"],
        "**Selectivity of gradients for events that the student is never told**: share of the variance of "
        "g_j(x) that z explains.\n\n" + found["selectivity of gradients"],
        "**Selectivity of activations**:\n\n" + found["selectivity of activations"],
        "**The paper's sign criterion**, g_j(z = a) > 0 > g_j(z ≠ a) for some a: share of nodes, beside the "
        "same with events shuffled. With batch norm before the ReLU every gradient has mean 0, so with two "
        "events it holds for all nodes and says nothing:\n\n" + found["signs"],
        "**Over-fitting by a spurious event**, by number of samples:\n\n" + found["over-fitting by samples"],
        "The same at 64 samples, by how many contents the true event has:\n\n"
        + found["over-fitting by contents"],
        "**SGD from the batch's own P̃**: where events sum up, the step from events is off by:\n\n"
        + found["a batch's own P"],
        *(
            f"**Batch size, compared at equal {key}**:\n\n" + found[f"batch size at equal {key}"]
            for key in ("steps", "epochs", "loss")
        ),
        "**A doubling of the batch**, paired over seeds:\n\n" + found["doublings"],
        "**Real nets**: the share of ΔW that events explain, edge by edge, and through the whole recursion; "
        "in brackets the control, events dealt to the images at random.\n\n" + real_table(read_real()),
    )
    return "\n" + "\n\n".join(part.strip() for part in parts) + "\n\n"


def page() -> None:
    draw()
    put_between_marks(DOCS / "ladder.md", text())


if __name__ == "__main__":
    page()
