"""The flags of `obverse audit`, and its steps in order."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..._core import BadInput, explained, write_text
from ...present import (
    Cluster,
    GivenSeed,
    Json,
    Layers,
    check_seed,
    complete,
    echo_quick,
    make_folder,
    options,
    print_result,
    write_result,
)
from .._decisions.kinds import FILES
from .._difference.results import NAME as DIFFERENCE
from .._difference.results import TABLE, Difference, difference_text
from .._difference.results import to_csv as difference_csv
from .._verdict import KEEP, SAMPLES, Thresholds
from ..results import AGAINST, RECORD, Audit, Verdict, to_csv, write_audit
from ._decide import (
    Decide,
    Format,
    MaxRank,
    Prefer,
    Top,
    decide_on_change,
    deciding,
    decision_on,
    print_decision,
    write_decision,
)
from ._difference import measure_difference, print_difference
from ._subject import RECORD_AGAINST, check_flags, is_adapter, measure, open_other, open_subject
from ._tables import BY, print_audit, print_comparison

if TYPE_CHECKING:
    from .._decisions.results import Decision

FAILED = 3
FAIL_ON: dict[str, tuple[Verdict, ...]] = {
    "never": (),
    "structured": ("structured otherwise",),
    "mostly-signal": ("structured otherwise", "mostly signal"),
    "signal": ("structured otherwise", "mostly signal", "signal in a random bulk"),
}
QUICK: dict[str, Any] = {"samples": 8, "exact": False}


def audit(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Weight file (.safetensors, .pt, .gguf, .keras, .h5, .onnx, .npz, a model.json of "
            "TensorFlow.js, …), folder of shards or of a PEFT adapter, hf://org/name\\[@revision]\\[/file], "
            "run directory, or an audit.json made before.",
            autocompletion=complete.model,
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Say what changed from BASE to MODEL (tuned): anything MODEL can be, or `initial`, "
            "a run's net before training.",
            autocompletion=complete.model,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Of a PEFT adapter: measure its updates on the weights that it was trained on.",
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
    by: Annotated[
        str,
        options.choice(
            "One line of the table for each `layer`, each `block` of the net, or each `type` of matrix "
            "\\[layer].",
            *BY,
            metavar="WHAT",
        ),
    ] = "layer",
    fail_on: Annotated[
        str,
        options.choice(
            "Exit with status 3: `never`; for layers `structured` otherwise than by a signal in random "
            "numbers; for `mostly-signal` too; or for any `signal` \\[never].",
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
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Compute all singular values of large layers too (1,536 rows and columns or more).",
        ),
    ] = False,
    quick: Annotated[
        bool,
        options.quick(f"{QUICK['samples']} draws of h, the largest singular values only"),
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Instead: does the net need each layer's signal and bulk? MODEL is then a run, or "
            "module:factory ([bold]this runs your code[/bold]) with --data.",
        ),
    ] = False,
    decide: Decide = None,
    format: Format = None,
    top: Top = None,
    prefer: Prefer = None,
    max_rank: MaxRank = None,
    jobs: Annotated[int | None, options.jobs("this one, on all its threads")] = None,
    cluster: Cluster = None,
    seed: GivenSeed = None,
    out: Annotated[
        Path | None,
        options.out(
            "audit.json, audit.csv and audit.html, until then each layer as soon as it is measured (the same "
            "command resumes an interrupted audit),"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """What in each layer is signal, what is like random numbers, and how much of each?

    Exit status: 0 done, 2 invalid input, 3 what --fail-on names was found.

    Example: obverse audit model.safetensors --out audits/first --fail-on structured
    """
    options.check_choice("--fail-on", fail_on, FAIL_ON)
    options.check_choice("--by", by, BY)

    def on_adapter() -> None:
        from .._adapters.command import run_adapter

        flags: dict[str, Any] = {"against": against, "data": data, "threshold": threshold, "exact": exact}
        flags |= {"quick": quick, "ablate": ablate, "by": by != "layer", "fail-on": fail_on != "never"}
        unused = {"keep": keep, "samples": samples, "decide": decide, "format": format, "top": top}
        unused |= {"prefer": prefer, "max-rank": max_rank, "jobs": jobs, "cluster": cluster}
        flags |= {name: value is not None for name, value in unused.items()}
        flags["data-root"] = data_root
        check_flags([name for name, value in flags.items() if value], base, model)
        run_adapter(model, base, layers, seed=seed, out=out, as_json=as_json)

    if base is not None or is_adapter(model):
        on_adapter()
        return
    choose = deciding(decide, format, top, prefer, max_rank)
    if by != "layer" and (ablate or decide or against is not None):
        raise BadInput("--by for the table of one audit", got="another table", do="leave --by out")
    if ablate:
        from .._ablation.command import run_ablation

        own = (against, threshold, exact or None, keep, samples, jobs, cluster, decide)
        if fail_on != "never" or own != (None,) * len(own):
            raise BadInput(
                "--ablate with --data, --data-root, --layers, --quick, --seed, --out or --json",
                got="a flag of the audit's own tests",
                do="leave it out",
            )
        run_ablation(model, data, data_root, layers, quick=quick, seed=seed, out=out, as_json=as_json)
        return
    if choose and as_json:
        raise BadInput(
            "--decide without --json", got="--json", do="leave it out: --decide prints a file of its own"
        )
    from .._against import compare_audits
    from .._readers.open import AdapterOnHub
    from ..page import RESULT

    if seed is not None:
        check_seed(seed)
    if exact and quick:
        raise BadInput("--exact or --quick", got="both", do="leave one out")
    if jobs is not None and (jobs < 1 or cluster is not None):
        raise BadInput(
            "--jobs ≥ 1, or --cluster in its place",
            got=f"--jobs {jobs}{' and --cluster' if cluster is not None else ''}",
            do="correct it" if cluster is None else "leave one out",
        )
    given = {"keep": keep, "samples": samples, "exact": exact or None, "jobs": jobs, "cluster": cluster}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if quick:
        settings = QUICK | settings
    thresholds = parse_thresholds(threshold or [])
    try:
        subjects = [open_subject(model, data, data_root)]
    except AdapterOnHub:
        on_adapter()
        return
    if against is not None:
        subjects.append(open_other(against, model, data, data_root))
    measuring = {"data": data, "threshold": threshold, "seed": None if seed is None else str(seed)}
    useless = [*(name for name, value in measuring.items() if value), *settings]
    if useless and all(isinstance(one.net, Audit) for one in subjects):
        raise BadInput(
            "a model to measure with these settings",
            got=f"{model}, which is measured already",
            do=f"leave out {', '.join(f'--{name}' for name in useless)}",
        )
    if choose and len(subjects) > 1:
        if (
            fail_on != "never"
            or data
            or quick
            or any(one is not None for one in (keep, samples, jobs, cluster))
        ):
            raise BadInput(
                "--decide with --against, --layers, --threshold, --exact, --max-rank, --seed or --out",
                got="a flag of the audit's own tests",
                do="leave it out: the difference alone is measured",
            )
        level, exactly = thresholds.level, settings.get("exact")
        after, before = subjects
        decide_on_change(choose, after, before, layers, out, seed=seed or 0, alpha=level, exact=exactly)
        return
    make_folder(out)
    settings |= {"thresholds": thresholds, "seed": seed or 0}
    records = () if out is None else (out / RECORD, out / RECORD_AGAINST)
    found, *others = [
        measure(one, layers, record=record, **settings)
        for one, record in zip_longest(subjects, records[: len(subjects)])
    ]
    other = others[0] if others else None
    comparison = None if other is None else compare_audits(other, found)
    change: Difference | None = None
    if len(subjects) > 1:
        exactly = settings.get("exact")
        change = measure_difference(
            *subjects[:2], pattern=layers, seed=seed or 0, alpha=thresholds.level, exact=exactly
        )
    small = f"{settings['samples']} draws of h for each sparsity" if quick else ""
    decision = decision_on(found, choose)
    if choose:
        if quick:
            echo_quick(small, True)
    elif comparison is None:
        print_result(found, RESULT, partial(print_audit, by=by), as_json=as_json, quick=small)
    else:
        if quick:
            echo_quick(small, as_json)
        if as_json:
            more = {} if change is None else {"difference": change.to_dict()}
            typer.echo(json.dumps(comparison.to_dict() | more, allow_nan=False))
        else:
            if change is not None:
                print_difference(change)
            print_comparison(comparison)
    if out is not None:
        write_result(
            found,
            RESULT,
            out,
            as_json=as_json or choose is not None,
            files=partial(write_beside, found, other, change, decision),
            beside=("audit.csv", AGAINST, DIFFERENCE, TABLE, *FILES),
        )
        for record in records:  # now that it is all there
            with explained(record):
                record.unlink(missing_ok=True)
    if decision is not None:
        print_decision(decision)
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


def write_beside(
    found: Audit,
    other: Audit | None,
    change: Difference | None,
    decision: Decision | BadInput | None,
    out: Path,
) -> tuple[str, ...]:
    """audit.csv, against.json for what it is compared with, what changed from there, and the decision."""
    if decision is not None and not isinstance(decision, BadInput):
        write_decision(decision, out)
    if other is not None:
        write_audit(other, out / AGAINST)
    if change is not None:
        write_text(out / TABLE, difference_csv(change))
        write_text(out / DIFFERENCE, difference_text(change))
    with explained(out):  # what lies there otherwise is not about this audit
        for name in (AGAINST,) * (other is None) + (DIFFERENCE, TABLE) * (change is None):
            (out / name).unlink(missing_ok=True)
    write_text(out / "audit.csv", to_csv(found))
    return ()
