"""`obverse audit`: is each layer of a net random-like? One model, or one against another."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadInput
from ..files import explained, write_text
from ..randomlike.against import compare_audits
from ..randomlike.audit import audit as measure_layers
from ..randomlike.reading import NAME, audit_text, write_audit
from ..randomlike.results import Audit, Verdict
from ..randomlike.tables import to_csv
from ..randomlike.thresholds import Thresholds
from .audit_table import print_audit, print_comparison
from .subjects import measure, open_other, open_subject

FAILED = 3
FAIL_ON: dict[str, tuple[Verdict, ...]] = {
    "never": (),
    "not-random-like": ("not random-like",),
    "spikes": ("not random-like", "random-like bulk with spikes"),
}
_DEFAULTS = {name: each.default for name, each in inspect.signature(measure_layers).parameters.items()}


def audit(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Weight file (.safetensors, .pt, .npz, .npy, .onnx), folder of shards, run directory, "
            "or an audit.json made before.",
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER",
            help="Say what changed from OTHER to MODEL: anything MODEL can be, or `initial`, "
            "a run's net before training.",
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only layers of such names, e.g. '*.attn.*' \\[all]."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Measure recovery on the layers' own activations too; needs a run directory. `own` is the "
            "test set of the run; or a data set, as for train.",
        ),
    ] = None,
    data_root: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder that holds the data sets \\[that of the run].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write audit.json, audit.csv and audit.html there \\[nothing]."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            show_default=False,
            help="Exit with status 3: `never`, for layers `not-random-like`, or for `spikes` too \\[never].",
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
        typer.Option(metavar="P", help=f"Share of a layer's inputs kept \\[{_DEFAULTS['keep']:g}]."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"Draws of h for each sparsity \\[{_DEFAULTS['samples']:g}]."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time for the exact singular values of one layer; beyond it a density is estimated "
            f"\\[{_DEFAULTS['budget']:g}].",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help=f"Seed of everything random \\[{_DEFAULTS['seed']:g}].")
    ] = None,
) -> None:
    """Is each layer random-like, in the sense that reversibility needs? And where is it not?

    Exit status: 0 done, 2 something to put right, 3 what --fail-on names was found.

    Example: obverse audit model.safetensors --out audits/first --fail-on not-random-like
    """
    if fail_on not in FAIL_ON:
        raise BadInput(f"--fail-on out of {', '.join(FAIL_ON)}", got=repr(fail_on), do="pass one of these")
    if seed is not None and not 0 <= seed < 2**63:
        raise BadInput("--seed from 0 to 2⁶³ − 1", got=seed, do="use a smaller one")
    if budget is not None and not math.isfinite(budget):  # it is written down as JSON
        raise BadInput("--budget in seconds", got=budget, do="use 1e9 to wait for as long as it takes")
    given = {"keep": keep, "samples": samples, "budget": budget, "seed": seed}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    thresholds = parse_thresholds(threshold or [])
    subjects = [open_subject(model, data, data_root)]
    if against is not None:
        subjects.append(open_other(against, model, data, data_root))
    useless = [*(["data"] if data else []), *(["threshold"] if threshold else []), *options]
    if useless and all(isinstance(one.net, Audit) for one in subjects):
        raise BadInput(
            "a model to measure with these settings",
            got=f"{model}, which is measured already",
            do=f"leave out {', '.join(f'--{name}' for name in useless)}",
        )
    if out is not None:
        with explained(out):
            out.mkdir(parents=True, exist_ok=True)
    found, *other = [measure(one, layers, thresholds=thresholds, **options) for one in subjects]
    comparison = compare_audits(other[0], found) if other else None
    if as_json:
        text = json.dumps(comparison.to_dict(), allow_nan=False) + "\n" if comparison else audit_text(found)
        typer.echo(text, nl=False)
    elif comparison:
        print_comparison(comparison)
    else:
        print_audit(found)
    if out is not None:
        typer.echo(f"page: {write_files(out, found, other[0] if other else None)}", err=as_json)
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
    from ..report.page import AGAINST, build

    write_audit(found, out / NAME)
    write_text(out / "audit.csv", to_csv(found))
    if other is not None:
        write_audit(other, out / AGAINST)
    else:  # one that an earlier audit left there is not about this one
        with explained(out):
            (out / AGAINST).unlink(missing_ok=True)
    return build(out / NAME)
