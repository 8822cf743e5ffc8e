"""`obverse claims`: the theorems that can be run. Which there are, what one says, whether they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import claims
from .._core import BadInput, counted, printable, usable_cores
from ..present import (
    Cluster,
    Column,
    Command,
    Commands,
    Json,
    Module,
    Seed,
    check_seed,
    claims_progress,
    complete,
    echo_page,
    make_folder,
    open_console,
    options,
    print_grid,
    print_json,
    print_result,
    say,
)
from .results import VERDICTS, Sweep, Verdict

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
            "claims.json and claims.html, and each setting as soon as it is measured (the same command "
            "resumes an interrupted run; results of other claims are replaced),"
        ),
    ] = None,
    cluster: Cluster = None,
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

    Exit status: 0 done, whatever the verdicts; 1 a claim crashed; 2 invalid input; 3 see --check.

    Example: obverse claims run 'alm.lemma*' --quick --out sweeps/first
    """
    from ._settings import checked, set_values
    from .page import RESULT

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
    make_folder(out, hold=False)  # the run does, point by point
    with claims_progress({claim.id: len(claim.settings(quick)) for claim in chosen}) as progress:
        sweep = claims.run(
            chosen,
            quick=quick,
            seed=seed,
            jobs=usable_cores() if jobs is None else jobs,
            out=out,
            cluster=cluster,
            progress=progress,
        )
    print_result(
        sweep, RESULT, print_sweep, as_json=as_json, quick="the claims' small settings" if quick else ""
    )
    if out is not None:  # where the run has written what it measured, one by one
        echo_page(RESULT, out / RESULT.name, as_json)
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
        "place": claim.place,
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


COLOURS: dict[Verdict, str] = {
    "held": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "crashed": "bold magenta",
}
SHOWN = 12  # settings of a claim
BEYOND = "beyond the paper"
READINGS = {  # of a statement: the word before a title, and what it means
    "as printed": ("", ""),
    "corrected": ("corrected", "another statement in the place of the printed one"),
    "exact": ("exact", "an equality in place of a bound"),
    BEYOND: ("beyond", f"a statement {BEYOND}"),
}


def print_list(claims: Sequence[Claim]) -> None:
    """What the words mean, then the claims, paper by paper, each on one line; whole where output is piped."""
    from rich.text import Text

    console = open_console()
    say(console, f"{counted(len(claims), 'claim')}; more about one: obverse claims show ID", "bold")
    for line in legend(claims):
        say(console, f"  {line}", "dim")
    wide = max((len(claim.expected) for claim in claims), default=0)
    for title, group in by_paper(claims):
        counts = ", ".join(f"{number} {verdict}" for verdict in VERDICTS if (number := found(group, verdict)))
        console.print()
        say(console, f"{title}: {counts}", "bold")
        ids = max(len(claim.id) for claim in group)
        for claim in group:
            shown = Text(f"  {claim.expected:<{wide}}", COLOURS[claim.expected])
            shown.append(printable(f"  {claim.id:<{ids}}  {marks(claim)}{claim.title}"), "default")
            if console.is_terminal:
                console.print(shown, no_wrap=True, overflow="ellipsis")
            else:
                console.print(shown, soft_wrap=True)


def legend(claims: Sequence[Claim]) -> list[str]:
    """What stands on a line, and those of the words on it that need it."""
    said = ["first the verdict found so far in full settings, then the id, then the title"]
    there = {claim.reading for claim in claims}
    said += [
        f"[{word}]: {meaning}" for reading, (word, meaning) in READINGS.items() if word and reading in there
    ]
    if any(claim.long for claim in claims):
        said.append("[images]: trains on images, and runs by its id, or with --long")
    return said


def marks(claim: Claim) -> str:
    """What is to be known before the title: the reading, where it is not the printed one, and training."""
    words = [READINGS[claim.reading][0], "images" * claim.long]
    return f"[{', '.join(shown)}] " if (shown := [word for word in words if word]) else ""


def found(claims: Sequence[Claim], verdict: Verdict) -> int:
    return sum(claim.expected == verdict for claim in claims)


def by_paper(claims: Sequence[Claim]) -> list[tuple[str, list[Claim]]]:
    """The claims of each paper under its name, and then those of a user's file."""
    from ._registry import paper_of

    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(paper_of(claim), []).append(claim)
    return list(groups.items())


def print_claim(claim: Claim, predictions: Sequence[str], quick: bool) -> None:
    """All of a claim but its measurement; `predictions` are those of the settings to show, from the first."""
    console = open_console()
    say(console, f"{claim.id}: {claim.title}", "bold")
    say(console, claim.statement)
    console.print()
    for name, text in (
        ("source", claim.source),
        ("printed there", claim.place),
        ("reading", claim.reading),
        ("twin", f"{claim.twin}, to be read beside it" if claim.twin else ""),
        ("measured", claim.quantity),
        ("held means", claim.rule.meaning),
        ("found so far", claim.expected),
        ("remark", claim.remark),
        ("long", "trains on images: runs by its id, or with --long" if claim.long else ""),
    ):
        if text:
            say(console, f"{name}: {text}")
    settings = claim.settings(quick)
    same = _same(settings)
    varied = [name for name in dict.fromkeys(name for one in settings for name in one) if name not in same]
    kind = "quick" if quick else "full"
    fixed = f", all with {', '.join(f'{name} = {value}' for name, value in same.items())}" if same else ""
    fewer = f" ({len(claim.quick)} with --quick)" if claim.quick and not quick else ""
    say(console, f"{kind} run: {counted(len(settings), 'setting')}{fewer}{fixed}")
    console.print()
    shown = settings[: len(predictions)]
    columns = [Column(name, tuple(str(one.get(name, "–")) for one in shown)) for name in varied]
    predicted = Column("predicted", tuple(predictions), claim.quantity)
    print_grid(console, [*columns, predicted], "")
    if len(settings) > len(shown):
        say(console, f"… and {counted(len(settings) - len(shown), 'more setting')}")


def print_sweep(sweep: Sweep) -> None:
    """The table of verdicts and the summary."""
    console = open_console()
    outcomes = sweep.outcomes
    columns = [
        Column("claim", tuple(one.id for one in outcomes), left=True, whole=True),
        _readings([one.reading for one in outcomes]),
        Column(
            "verdict",
            tuple(one.verdict for one in outcomes),
            marked=frozenset(at for at, one in enumerate(outcomes) if one.surprising),
            left=True,
            styles=tuple(COLOURS[one.verdict] for one in outcomes),
        ),
        Column("seconds", tuple(f"{one.seconds:.1f}" for one in outcomes), "of computing", drop=2),
        Column("what was found", tuple(one.sentence for one in outcomes), left=True, folded=True),
    ]
    print_grid(
        console, columns, "another verdict than the one found so far, which `obverse claims list` shows"
    )
    say(console, summary(sweep), "bold")


def summary(sweep: Sweep) -> str:
    """How many of each verdict, and what the numbers rest on, in one line."""
    counts = ", ".join(f"{sweep.count(each)} {each}" for each in VERDICTS if sweep.count(each))
    surprises = sum(one.surprising for one in sweep)
    differing = f" ({surprises} not as found so far)" if surprises else ""
    kind = "quick" if sweep.quick else "full"
    return (
        f"{counted(len(sweep.outcomes), 'claim')}: {counts}{differing}; "
        f"{kind} settings, seed {sweep.seed}, {sweep.seconds:.1f} seconds"
    )


def _readings(readings: Sequence[str]) -> Column:
    short = tuple("beyond" if one == BEYOND else one for one in readings)
    meaning = f"“beyond” is a statement {BEYOND}" if BEYOND in readings else ""
    return Column("reading", short, meaning, drop=1, left=True)


def _same(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all settings have in common, where there are several."""
    if len(settings) < 2:
        return {}
    first, *others = settings
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
