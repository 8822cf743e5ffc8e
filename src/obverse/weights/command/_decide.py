"""The flags of `--decide`, and where a decision goes: to standard output, and into the folder of an audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..._core import BadInput, write_text
from ...present import layer_progress, make_folder, options, select
from .._decisions.kinds import FORMATS, PREFER, TOP
from .._difference.results import Difference
from ..results import Audit
from ._subject import Subject

if TYPE_CHECKING:
    from .._decisions.results import Decision

Deciding = Callable[[Audit | Difference], "Decision"]

Decide = Annotated[
    str | None,
    options.choice(
        "Print a file to paste instead of the table: layers and ranks for `lora`, or ranks for `compress`. "
        "An audit.json made before will do. With --against, the ranks of what changed.",
        *FORMATS,
        metavar="WHAT",
    ),
]
Format = Annotated[
    str | None,
    options.choice(
        "Of --decide lora: `peft`, fields of a LoraConfig as JSON; `axolotl`, unfrozen_parameters as "
        "YAML \\[peft].",
        *(name for names in FORMATS.values() for name in names),
        metavar="FORMAT",
    ),
]
Top = Annotated[
    float | None,
    typer.Option(
        metavar="PERCENT", help=f"Of --format axolotl: layers of each kind that are trained \\[{TOP:g}]."
    ),
]
Prefer = Annotated[
    str | None,
    options.choice(
        "Of --format axolotl: first the layers with most `signal`, or the most `random` ones \\[signal].",
        *PREFER,
        metavar="WHICH",
    ),
]
MaxRank = Annotated[
    int | None,
    typer.Option(metavar="N", help="Of --format peft: no rank is larger \\[none]."),
]


def deciding(
    kind: str | None, format: str | None, top: float | None, prefer: str | None, max_rank: int | None
) -> Deciding | None:
    """What turns the audit into a decision, where one is asked for; a wrong flag is told before measuring."""
    given = {"--format": format, "--top": top, "--prefer": prefer, "--max-rank": max_rank}
    if kind is None:
        if useless := [flag for flag, value in given.items() if value is not None]:
            raise BadInput("--decide lora or compress", got=f"{useless[0]} alone", do="add --decide")
        return None
    from .._decisions.decide import check, decide

    check(kind, format, top=top, prefer=prefer, max_rank=max_rank)
    return lambda found: decide(found, kind, format=format, top=top, prefer=prefer, max_rank=max_rank)


def decision_on(found: Audit | Difference, choose: Deciding | None) -> Decision | BadInput | None:
    """Where there is nothing to choose, that is said last: the audit is written all the same."""
    if choose is None:
        return None
    try:
        return choose(found)
    except BadInput as error:
        return error


def decide_on_change(
    choose: Deciding,
    tuned: Subject,
    base: Subject,
    pattern: str | None,
    out: Path | None,
    *,
    seed: int,
    alpha: float,
    exact: bool | None,
) -> None:
    """Of what changed from base to tuned: the difference alone is measured, neither of the two is audited."""
    if isinstance(tuned.net, Audit) or isinstance(base.net, Audit):
        one = tuned if isinstance(tuned.net, Audit) else base
        raise BadInput(
            "weights on both sides, for --decide with --against",
            got=f"{one.name}, an audit, which holds none",
            do="name the files of weights",
        )
    import torch

    from .._difference.difference import difference
    from .._readers.open import open_weights

    make_folder(out)
    weights = open_weights(tuned.net)
    names = select([one.name for one in weights], pattern)
    weights = tuple(one for one in weights if one.name in names)
    with layer_progress(f"{Path(tuned.name).name} − {Path(base.name).name}") as progress:
        found = difference(
            weights,
            open_weights(base.net),
            names=(tuned.name, base.name),
            alpha=alpha,
            exact=exact,
            generator=torch.Generator().manual_seed(seed),
            progress=progress,
        )
    decision = choose(found)
    if out is not None:
        write_decision(decision, out)
    print_decision(decision)


def write_decision(decision: Decision, out: Path) -> None:
    """The file; beside JSON, which has no room for them, a text with the notes."""
    write_text(out / decision.file, decision.text)
    if decision.file.endswith(".json"):
        write_text((out / decision.file).with_suffix(".txt"), "\n".join(decision.notes) + "\n")


def print_decision(decision: Decision | BadInput) -> None:
    """The file alone on standard output, so that it can be redirected; the notes of JSON beside it."""
    if isinstance(decision, BadInput):
        raise decision
    if decision.file.endswith(".json"):
        for note in decision.notes:
            typer.echo(note, err=True)
    typer.echo(decision.text, nl=False)
