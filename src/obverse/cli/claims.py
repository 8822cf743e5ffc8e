"""`obverse claims`: the theorems that can be run. Which there are, what one says, whether they hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..claims.claim import Claim
from ..claims.registry import claims as all_claims
from ..claims.registry import find, load_module
from ..claims.runner import run as run_claims
from ..claims.store import FORMAT, NAME
from ..errors import BadInput
from ..files import explained
from ..randomlike.tables import printable
from ..records import record_text
from .claims_settings import checked, predict, set_values
from .claims_table import SHOWN, print_claim, print_list, print_sweep
from .options import check_seed
from .progress import claims_progress

DIFFERS = 3
CRASHED = 1

claims_app = typer.Typer(
    help="Theorems that can be run: what is predicted, what was measured, whether it held.\n\n"
    "Example: obverse claims run 'alm.lemma*' --quick",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
Modules = Annotated[
    list[Path] | None,
    typer.Option(
        "--module",
        metavar="FILE",
        help="Python file with claims of your own, which is run; repeat for more. See examples/my_claims.py.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="The settings that take seconds in place of minutes.")]


@claims_app.command("list")
def list_claims(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN", help="Ids, or patterns: 'alm.lemma*' \\[all]."),
    ] = None,
    module: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """Which claims there are, and what has been found about them so far.

    Example: obverse claims list 'alm.thm*'
    """
    load_modules(module)
    found = find(patterns) if patterns else list(all_claims().values())
    if as_json:
        typer.echo(json.dumps([describe(claim) for claim in found], allow_nan=False))
    else:
        print_list(found)


@claims_app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of the claim, as `list` prints it.")],
    module: Modules = None,
    quick: Quick = False,
) -> None:
    """One claim: its statement and source, what its verdict means, its settings and predictions.

    Example: obverse claims show alm.thm2.3
    """
    load_modules(module)
    found = find([id])
    if len(found) > 1:
        raise BadInput(
            "the id of one claim",
            got=f"{id!r}, which is {len(found)} of them",
            do=f"choose one: {', '.join(claim.id for claim in found[:5])}{', …' * (len(found) > 5)}",
        )
    (claim,) = found
    shown = [f"{predict(claim, setting):.4g}" for setting in claim.settings(quick)[:SHOWN]]
    print_claim(claim, shown, quick)


@claims_app.command()
def run(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Claims to run, or patterns: 'alm.lemma*'. A claim that trains on images runs if its id is "
            "given; patterns pass over it without --long.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All claims but those that train on images.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="With --all or patterns: those that train on images too.")
    ] = False,
    quick: Quick = False,
    seed: Annotated[
        int, typer.Option(metavar="N", show_default=False, help="Seed of everything random \\[0].")
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Processes at work \\[one for each core].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write claims.json and claims.html there, and each setting as soon as it is measured: the "
            "same command goes on where it was cut off. Results of other claims there are replaced "
            "\\[nothing].",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Measure on the Dask cluster with this scheduler: tcp://…"),
    ] = None,
    module: Modules = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a setting wherever a claim has one of that name; repeat for more. What the theorem "
            "does not allow is refused.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with status 3 if a verdict is not the one found so far.")
    ] = False,
) -> None:
    """Run claims: simulate, compare with the prediction, and say whether each held.

    Exit status: 0 done, whatever the verdicts; 1 a claim crashed; 2 something to put right; 3 see --check.

    Example: obverse claims run 'alm.lemma*' --quick --out sweeps/first
    """
    if bool(ids) == everything:
        raise BadInput(
            "ids of claims, or --all",
            got="both" if everything else "neither",
            do="leave one out" if everything else "see: obverse claims list",
        )
    if jobs is not None and (jobs < 1 or cluster is not None):
        raise BadInput(
            "--jobs ≥ 1, or --cluster in its place",
            got=f"--jobs {jobs}{' and --cluster' if cluster is not None else ''}",
            do="correct it" if cluster is None else "leave one out",
        )
    check_seed(seed)
    load_modules(module)
    found = set_values(find(ids or ["*"], long=long), override or [], quick)
    chosen = [checked(claim, quick, overridden=bool(override)) for claim in found]
    if out is not None:
        with explained(out):
            out.mkdir(parents=True, exist_ok=True)
    with claims_progress({claim.id: len(claim.settings(quick)) for claim in chosen}) as on_point:
        sweep = run_claims(
            chosen,
            quick=quick,
            seed=seed,
            jobs=usable_cores() if jobs is None else jobs,
            out=out,
            cluster=cluster,
            on_point=on_point,
        )
    if as_json:
        typer.echo(record_text(sweep, FORMAT), nl=False)
    else:
        print_sweep(sweep)
    if out is not None:
        from ..report import build

        typer.echo(f"page: {build(out / NAME)}", err=as_json)
    crashed = [one for one in sweep if one.verdict == "crashed"]
    for one in crashed:
        typer.echo(f"obverse: {one.id} crashed: {printable(one.sentence)}", err=True)
    differing = [one for one in sweep if one.surprising and one not in crashed]
    if check and differing:
        said = ", ".join(f"{one.id} {one.verdict} (so far: {one.expected})" for one in differing)
        typer.echo(f"obverse: --check: {said}", err=True)
    if crashed:
        raise typer.Exit(CRASHED)
    if check and differing:
        raise typer.Exit(DIFFERS)


def load_modules(paths: Sequence[Path] | None) -> None:
    for path in paths or []:
        load_module(path)


def usable_cores() -> int:
    """Those this process may use: affinity and the quota of a container count."""
    import joblib

    return int(joblib.cpu_count())


def describe(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "title": claim.title,
        "statement": claim.statement,
        "source": claim.source,
        "reading": claim.reading,
        "twin": claim.twin,
        "quantity": claim.quantity,
        "rule": claim.rule.meaning,
        "remark": claim.remark,
        "expected": claim.expected,
        "long": claim.long,
        "settings": [dict(setting) for setting in claim.settings()],
        "quick": [dict(setting) for setting in claim.settings(quick=True)],
    }
