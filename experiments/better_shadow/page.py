"""Put the table of variants into docs/better-shadow.md, between its marks: no hand-made numbers.

python -m experiments.better_shadow.page
python -m experiments.better_shadow.page --quick    (what --quick runs left, into their own folder)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from obverse.training._compare import paired_p_value

from .._lab.quick_pages import asked_for_quick, page_of
from .._lab.result_files import read
from .._lab.tables import errors_of, paired, percent, put_between_marks, table
from . import run as better


def improved(folder: Path) -> str:
    tuning = read(folder / "mnist-tuning.json")["entries"]
    final, prices = read(folder / "mnist-final.json"), read(folder / "mnist-costs.json")["entries"]["costs"]
    errors = errors_of(final["entries"])
    rows = []
    for name in errors:
        rate, strength, held = better.choose(tuning, name)
        weight = f"{strength:g}" if strength else "–"
        steps = round(final["settings"]["budget"] / prices[name])
        rows.append([name, f"{rate:g}", weight, str(steps), f"{100 * held:.2f}", percent(errors[name])])
    head = ["variant", "lr", "strength", "steps", "held-out error %", "test error %"]
    best = better.winner(tuning) if all(name in errors for name in better.OURS) else None
    with_shadows = [name for name in errors if name in better.OURS]
    parts = [
        f"## Chosen on MNIST\n\n{better.LABELS:,} labels, 784-500-500-10, batch 100, momentum 0.9; as many "
        f"steps as fit into the processor time of {final['settings']['budget']} steps with dropout. Every "
        "variant had the same 6 trials (3 learning rates × 2 strengths, or 6 learning rates) on "
        f"{better.HELD_OUT:,} held-out points; second batches enter as (L + wL′)/(1 + w), so that a learning "
        "rate is the same step for all. The "
        "test errors are of fresh seeds. "
        "`python -m experiments.better_shadow.run` runs it.",
        table(head, rows),
        "Paired over seeds, two-sided t test, Holm's adjustment within each table:",
        paired([(name, "dropout") for name in errors if name != "dropout"], errors),
        paired([(name, "noise") for name in with_shadows], errors),
    ]
    verdicts = []
    for name in better.UNUSED:
        place = folder / f"{name}-final.json"
        found = errors_of(read(place)["entries"]) if place.exists() else {}
        if best is None or best not in found:
            parts.append(f"## Not used to choose: {name}\n\nNot run.")
            continue
        shown = table(["variant", "test error %"], [[way, percent(values)] for way, values in found.items()])
        compared = paired([(best, "dropout"), (best, "noise"), ("noise", "dropout")], found)
        parts.append(f"## Not used to choose: {name}\n\n{shown}\n\n{compared}")
        verdicts.append(_beats(found, best, "dropout") and _beats(found, best, "noise"))
    if best is not None and verdicts:
        says = (
            f"**{best}** did best on the held-out MNIST points among the variants with a shadow in them. "
            + (
                "It beats both dropout and plain noise on every data set that was not used to choose it, and "
                "is recommended where time is what limits."
                if all(verdicts)
                else "It does not beat both dropout and plain noise on every data set that was not used to "
                "choose it. So there is no recommended default: `weight` and `denoise` stay what the user "
                "asks for."
            )
        )
        parts.insert(0, says)
    return "\n\n".join(parts) + "\n"


def _beats(errors: Mapping[str, list[float]], name: str, other: str) -> bool:
    gap = [a - b for a, b in zip(errors[name], errors[other], strict=True)]
    p = paired_p_value(gap)
    return p is not None and p < 0.05 and sum(gap) < 0


def page(quick: bool = False) -> None:
    place = page_of("better-shadow", quick)
    put_between_marks(place, improved(better.QUICK_FOLDER if quick else better.FOLDER))


if __name__ == "__main__":
    page(asked_for_quick(__doc__))
