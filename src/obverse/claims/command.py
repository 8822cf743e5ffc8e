"""`obverse claims`: the theorems that can be run. Which there are, what one says, whether they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import claims
from .._core.errors import BadInput
from .._core.files import explained
from .._core.records import record_text
from ..app._environment import usable_cores
from ..present import complete, options
from ..present.options import Json, Module, Seed, check_seed
from ..present.output import print_json, tell, tell_quick
from ..present.progress import claims_progress
from ..present.usage import Command, Commands
from ..weights._tables import printable

if TYPE_CHECKING:
    from ._claim import Claim

DIFFERS = 3
CRASHED = 1

claims_app = typer.Typer(
    cls=Commands,
    help="Theorems that can be run: what is predicted, what was measured, whether it held.\n\n"
    "Example: obverse claims run 'alm.lemma*' --quick",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
Quick = Annotated[bool, options.quick("for each claim, in its small settings")]


@claims_app.command("list", cls=Command)
def list_claims(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN", help="Ids, or patterns: 'alm.lemma*' \\[all].", autocompletion=complete.claim
        ),
    ] = None,
    module: Module = None,
    as_json: Json = False,
) -> None:
    """Which claims there are, and what has been found about them so far.

    Example: obverse claims list 'alm.thm*'
    """
    from .table_ import print_list

    load_modules(module)
    found = claims.find(patterns) if patterns else list(claims.claims().values())
    if as_json:
        print_json({"claims": [describe(claim) for claim in found]})
    else:
        print_list(found)


@claims_app.command(cls=Command)
def show(
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Of the claim, as `list` prints it.", autocompletion=complete.claim
        ),
    ],
    module: Module = None,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """One claim: its statement and source, what its verdict means, its settings and predictions.

    Example: obverse claims show alm.thm2.3
    """
    from ._settings import predict
    from .table_ import SHOWN, print_claim

    load_modules(module)
    found = claims.find([id])
    if len(found) > 1:
        raise BadInput(
            "the id of one claim",
            got=f"{id!r}, which is {len(found)} of them",
            do=f"choose one: {', '.join(claim.id for claim in found[:5])}{', …' * (len(found) > 5)}",
        )
    (claim,) = found
    if as_json:
        predictions = [
            {"setting": dict(setting), "predicted": predict(claim, setting)}
            for setting in claim.settings(quick)
        ]
        print_json({**describe(claim), "predictions": predictions})
        return
    shown = [f"{predict(claim, setting):.4g}" for setting in claim.settings(quick)[:SHOWN]]
    print_claim(claim, shown, quick)


@claims_app.command(cls=Command)
def run(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Claims to run, or patterns: 'alm.lemma*'. A claim that trains on images runs if its id is "
            "given; patterns pass over it without --long.",
            autocompletion=complete.claim,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All claims but those that train on images.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="With --all or patterns: those that train on images too.")
    ] = False,
    quick: Quick = False,
    seed: Seed = 0,
    jobs: Annotated[int | None, options.jobs("one for each core")] = None,
    out: Annotated[
        Path | None,
        options.out(
            "claims.json and claims.html, and each setting as soon as it is measured (the same command goes "
            "on where it was cut off; results of other claims are replaced),"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Measure on the Dask cluster of the scheduler at this address, e.g. tcp://host:8786.",
        ),
    ] = None,
    module: Module = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a setting wherever a claim has one of that name; repeat for more. What the theorem "
            "does not allow is refused.",
        ),
    ] = None,
    as_json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with status 3 if a verdict is not the one found so far.")
    ] = False,
) -> None:
    """Run claims: simulate, compare with the prediction, and say whether each held.

    Exit status: 0 done, whatever the verdicts; 1 a claim crashed; 2 something to put right; 3 see --check.

    Example: obverse claims run 'alm.lemma*' --quick --out sweeps/first
    """
    from ._settings import checked, set_values
    from ._store import FORMAT, NAME
    from .table_ import print_sweep

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
    found = set_values(claims.find(ids or ["*"], long=long), override or [], quick)
    chosen = [checked(claim, quick, overridden=bool(override)) for claim in found]
    if out is not None:
        with explained(out):
            out.mkdir(parents=True, exist_ok=True)
    with claims_progress({claim.id: len(claim.settings(quick)) for claim in chosen}) as on_point:
        sweep = claims.run(
            chosen,
            quick=quick,
            seed=seed,
            jobs=usable_cores() if jobs is None else jobs,
            out=out,
            cluster=cluster,
            on_point=on_point,
        )
    if quick:
        tell_quick("the claims' small settings", as_json)
    if as_json:
        typer.echo(record_text(sweep, FORMAT), nl=False)
    else:
        print_sweep(sweep)
    if out is not None:
        from ..present import build

        tell(f"page: {build(out / NAME)}", as_json)
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
        claims.load_module(path)


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
