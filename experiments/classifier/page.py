"""Put the table of accuracies into docs/training.md, between its marks.

    python -m experiments.classifier.page

Nothing is computed from anything but the result file.
"""

from __future__ import annotations

from obverse._core.statistics import mean_and_se

from .._lab.places import DOCS
from .._lab.result_files import read
from .._lab.tables import put_between_marks, table
from .run import DATA, FOLDER, METHODS

CLEAR = 2.0  # standard errors of a difference that is more than chance


def text(entries: dict[str, dict[str, float]]) -> str:
    found = {
        data: {
            method: [one for key, one in entries.items() if key.startswith(f"{data}|{method}|")]
            for method in METHODS
        }
        for data in DATA
    }
    rows, better, worse = [], [], []
    for data, by_method in found.items():
        accuracy = {method: [one["accuracy"] for one in runs] for method, runs in by_method.items()}
        ours, theirs = accuracy["ShadowClassifier"], accuracy["MLPClassifier"]
        mean, se = mean_and_se([a - b for a, b in zip(ours, theirs, strict=True)])
        assert se is not None
        better += [data] * (mean > CLEAR * se)
        worse += [data] * (mean < -CLEAR * se)
        shown = (spell(*mean_and_se(accuracy[method])) for method in METHODS)
        rows.append([data, *shown, f"{mean:+.3f} ± {se:.3f}"])
    head = ["data set", *METHODS, "first − second"]
    said = (
        f"By more than {CLEAR:g} standard errors of the difference `ShadowClassifier` is better than "
        f"`MLPClassifier` on {listed(better)}, and worse on {listed(worse)}."
    )
    return f"{table(head, rows)}\n\n{said}\n"


def spell(mean: float, se: float | None) -> str:
    return f"{mean:.3f}" if se is None else f"{mean:.3f} ± {se:.3f}"


def listed(names: list[str]) -> str:
    if not names:
        return "none"
    return names[0] if len(names) == 1 else f"{'; '.join(names[:-1])} and {names[-1]}"


def page() -> None:
    put_between_marks(DOCS / "training.md", text(read(FOLDER / "accuracy.json")["entries"]))


if __name__ == "__main__":
    page()
