"""`obverse audit`: is each layer of a net random-like? One model, or one against another."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from .._core.errors import BadInput
from .._core.files import explained, write_text
from ..present import complete, options
from ..present.options import GivenSeed, Json, Layers, check_seed
from ..present.output import tell, tell_quick
from ._thresholds import BUDGET, KEEP, SAMPLES, Thresholds
from .results import Audit, Verdict

FAILED = 3
FAIL_ON: dict[str, tuple[Verdict, ...]] = {
    "never": (),
    "not-random-like": ("not random-like",),
    "spikes": ("not random-like", "random-like bulk with spikes"),
}
QUICK: dict[str, Any] = {"samples": 8, "budget": 1.0}


def audit(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Weight file (.safetensors, .pt, .npz, .npy, .onnx), folder of shards, run directory, "
            "or an audit.json made before.",
            autocompletion=complete.model,
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="Say what changed from OTHER to MODEL: anything MODEL can be, or `initial`, "
            "a run's net before training.",
            autocompletion=complete.model,
        ),
    ] = None,
    data: Annotated[
        str | None,
        options.data(
            "none",
            lead="Measure recovery on the layers' own activations too, of a run: `own`, its test set; ",
        ),
    ] = None,
    data_root: Annotated[str | None, options.data_root("that of the run")] = None,
    layers: Layers = None,
    fail_on: Annotated[
        str,
        options.choice(
            "Exit with status 3: `never`, for layers `not-random-like`, or for `spikes` too \\[never].",
            *FAIL_ON,
            metavar="WHEN",
        ),
    ] = "never",
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="From which size on a deviation counts; repeat for more. "
            + ", ".join(f"{field.name}={field.default:g}" for field in fields(Thresholds))
            + ".",
        ),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(metavar="P", help=f"Share of a layer's inputs kept \\[{KEEP:g}]."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"Draws of h for each sparsity \\[{SAMPLES:g}]."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time for the exact singular values of one layer; beyond it a density is estimated "
            f"\\[{BUDGET:g}].",
        ),
    ] = None,
    quick: Annotated[
        bool,
        options.quick(f"{QUICK['samples']} draws of h, {QUICK['budget']:g} second for singular values"),
    ] = False,
    seed: GivenSeed = None,
    out: Annotated[Path | None, options.out("audit.json, audit.csv and audit.html")] = None,
    as_json: Json = False,
) -> None:
    """Is each layer random-like, in the sense that reversibility needs? And where is it not?

    Exit status: 0 done, 2 something to put right, 3 what --fail-on names was found.

    Example: obverse audit model.safetensors --out audits/first --fail-on not-random-like
    """
    if fail_on not in FAIL_ON:
        raise BadInput(f"--fail-on out of {', '.join(FAIL_ON)}", got=repr(fail_on), do="pass one of these")
    from ._against import compare_audits
    from ._reading import audit_text
    from .subject_ import measure, open_other, open_subject
    from .table_ import print_audit, print_comparison

    if seed is not None:
        check_seed(seed)
    if budget is not None and not math.isfinite(budget):  # it is written down as JSON
        raise BadInput("--budget in seconds", got=budget, do="use 1e9 to wait for as long as it takes")
    given = {"keep": keep, "samples": samples, "budget": budget, "seed": seed}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if quick:
        settings = QUICK | settings
    thresholds = parse_thresholds(threshold or [])
    subjects = [open_subject(model, data, data_root)]
    if against is not None:
        subjects.append(open_other(against, model, data, data_root))
    useless = [*(["data"] if data else []), *(["threshold"] if threshold else []), *settings]
    if useless and all(isinstance(one.net, Audit) for one in subjects):
        raise BadInput(
            "a model to measure with these settings",
            got=f"{model}, which is measured already",
            do=f"leave out {', '.join(f'--{name}' for name in useless)}",
        )
    if out is not None:
        with explained(out):
            out.mkdir(parents=True, exist_ok=True)
    found, *other = [measure(one, layers, thresholds=thresholds, **settings) for one in subjects]
    comparison = compare_audits(other[0], found) if other else None
    if quick:
        tell_quick(f"{settings['samples']} draws of h for each sparsity", as_json)
    if as_json:
        text = json.dumps(comparison.to_dict(), allow_nan=False) + "\n" if comparison else audit_text(found)
        typer.echo(text, nl=False)
    elif comparison:
        print_comparison(comparison)
    else:
        print_audit(found)
    if out is not None:
        tell(f"page: {write_files(out, found, other[0] if other else None)}", as_json)
    failing = [layer.name for layer in found.layers if layer.verdict in FAIL_ON[fail_on]]
    if failing:
        typer.echo(f"obverse: --fail-on {fail_on}: {len(failing)} of {len(found.layers)} layers", err=True)
        raise typer.Exit(FAILED)


def parse_thresholds(words: list[str]) -> Thresholds:
    """Thresholds from NAME=VALUE words."""
    kinds: dict[str, Callable[[str], float]] = {
        field.name: int if isinstance(field.default, int) else float for field in fields(Thresholds)
    }
    values: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in kinds:
            raise BadInput(f"--threshold out of {', '.join(kinds)}", got=repr(word), do="write NAME=VALUE")
        try:
            values[name] = kinds[name](text)
        except ValueError:
            values[name] = math.nan
        if not math.isfinite(values[name]):
            kind = "a whole number" if kinds[name] is int else "a number"
            raise BadInput(f"{kind} for the threshold {name}", got=repr(text), do="correct --threshold")
    return Thresholds(**values)


def write_files(out: Path, found: Audit, other: Audit | None) -> Path:
    """audit.json, audit.csv, against.json for what it is compared with, and the page, which is returned."""
    from ..training.page import AGAINST, build
    from ._reading import NAME, write_audit
    from ._tables import to_csv

    write_audit(found, out / NAME)
    write_text(out / "audit.csv", to_csv(found))
    if other is not None:
        write_audit(other, out / AGAINST)
    else:  # one that an earlier audit left there is not about this one
        with explained(out):
            (out / AGAINST).unlink(missing_ok=True)
    return build(out / NAME)
