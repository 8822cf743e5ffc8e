"""Put the tables of generators into docs/generators.md, and draw its figures.

python -m experiments.generators.page
"""

from __future__ import annotations

from typing import Any

from .._lab.places import DOCS
from .._lab.result_files import error, mean, read
from .._lab.tables import put_between_marks, table
from ..gan_equilibrium.run import MEMBERS, draw_figure
from ..gan_equilibrium.run import RESULTS as EQUILIBRIA
from .figure import draw
from .run import OUT


def page() -> None:
    found = read(OUT / "generators.json")
    official, timing = read(OUT / "vae.json")["entries"]["official"], read(OUT / "timing.json")["entries"]
    put_between_marks(DOCS / "generators.md", text(found, official, timing))
    draw(found["entries"], DOCS / "figures" / "generators.png")
    draw_figure(read(EQUILIBRIA / "equilibrium.json")["entries"], DOCS / "figures" / "gan-equilibrium.png")


def text(found: dict[str, Any], official: dict[str, Any], timing: dict[str, Any]) -> str:
    entries, settings = found["entries"], found["settings"]
    wrong = settings["feature_net"]["error"]
    head = (
        f"{settings['samples']:,} samples of each, compared with {settings['samples']:,} held-out pictures; "
        f"all trained on the same {settings['training_pictures']:,}. Features: the 64 numbers before the "
        f"last layer of a small CNN that knows neither (error {100 * wrong:.1f} %). Dimension, AuthPct, C_T "
        "and copies are measured in pixels, all else in features unless it says so."
    )
    played = read(EQUILIBRIA / "equilibrium.json")["entries"]
    parts = [
        head,
        support(entries),
        marks(entries),
        training(timing),
        nats(official),
        EQUILIBRIUM,
        game(played),
    ]
    return "\n\n".join(parts) + "\n"


EQUILIBRIUM = "## Do more generators come closer to an equilibrium?"


def game(entries: dict[str, Any]) -> str:
    rows = []
    for name in MEMBERS:
        runs = [one for key, one in entries.items() if key.startswith(f"{name}, ")]
        each = [[run[key] for run in runs] for key in ("critic", "generator", "gap")]
        rows.append([name, *(f"{mean(values):.2f} ± {error(values):.2f}" for values in each)])
    return table(["T", "fresh critic", "fresh generator", "gap"], rows)


def nats(official: dict[str, Any]) -> str:
    return (
        f"The VAE, 784-400-20, on all 60,000 training pictures and the official test set: bound "
        f"{official['test_elbo']:.2f} nats a picture on grey pixels (reconstruction "
        f"{official['test_reconstruction']:.2f}, KL {official['test_kl']:.2f}), "
        f"{official['test_elbo_binarized']:.2f} on pixels drawn as 0 or 1; log p(x) of 1,000 of those by "
        f"importance sampling with 1,000 draws: {official['log_likelihood_binarized']:.2f} ± "
        f"{official['log_likelihood_error']:.2f}."
    ).replace(" -", " −")


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
        "Vendi",
        "dimension",
        "AuthPct %",
    ]
    return table(["", *head, "C_T", "p (copied)"], rows)


def training(timing: dict[str, Any]) -> str:
    rows = [
        [name, f"{one['train']:,.0f}" if one["train"] else "–", f"{one['per_1000']:.2g}"]
        for name, one in timing.items()
    ]
    return table(["", "seconds to train", "seconds per 1,000 samples"], rows)


if __name__ == "__main__":
    page()
