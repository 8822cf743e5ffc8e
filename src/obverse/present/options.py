"""The flags that commands share, each written once, and those that are settings, made from their class.

A flag of one name has one meaning, one placeholder and one sentence in every command that has it. Of flags
that only one command has, there are the forms alone, and the checks of their values.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from .._core import BadInput, printable
from . import complete
from .table import shorten

DATA = "digits, mnist, fashion-mnist, cifar10, cifar100, a folder of images, an .npz"
ROOT = "Folder that holds the data sets"
CACHE = "OBVERSE_DATA, else the user's cache"
SEED = "Seed of everything random"
KEEP = "Share of entries kept at each generated layer"

Seed = Annotated[int, typer.Option("--seed", metavar="N", show_default=False, help=f"{SEED} \\[0].")]
GivenSeed = Annotated[int | None, typer.Option("--seed", metavar="N", help=f"{SEED} \\[0].")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and all else to standard error.")
]
DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=f"{DATA}.", autocompletion=complete.data)]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run or comparison directory.", autocompletion=complete.run)
]
Layers = Annotated[
    str | None,
    typer.Option("--layers", metavar="PATTERN", help="Only layers of such names, e.g. 'stage2.*' \\[all]."),
]
Report = Annotated[
    bool, typer.Option("--report/--no-report", show_default=False, help="Write the page at the end \\[yes].")
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="FILE.safetensors",
        help="Weights of the net, all of them and no others \\[random ones].",
    ),
]
FactoryArguments = Annotated[
    list[str] | None,
    typer.Option(
        "--arg",
        metavar="NAME=VALUE",
        help="Keyword argument of the factory: a number, true, false, numbers between commas, or text; "
        "repeat for more.",
    ),
]
Normalize = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--normalize",
        metavar="MEAN STD",
        help="Give the net (pixel − MEAN) / STD, pixels from 0 to 1: one number each, or one a channel "
        "between commas.",
    ),
]
Module = Annotated[
    list[Path] | None,
    typer.Option(
        "--module",
        metavar="FILE",
        help="Python file with claims of your own, which is run; repeat for more. See examples/my_claims.py.",
    ),
]


def out(what: str, metavar: str = "DIR") -> Any:
    """--out of a command that writes only if it is asked to."""
    return typer.Option("--out", metavar=metavar, help=f"Write {what} there \\[nothing].")


def out_at(what: str, default: str, metavar: str = "DIR") -> Any:
    """--out of a command that always writes."""
    return typer.Option("--out", metavar=metavar, help=f"Write {what} there \\[{default}].")


def quick(what: str) -> Any:
    """--quick, and what is smaller then."""
    return typer.Option("--quick", help=f"A first look that takes seconds: {what}.")


def jobs(default: str) -> Any:
    return typer.Option(
        "--jobs", metavar="N", show_default=False, help=f"Number of worker processes \\[{default}]."
    )


Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Measure on the Dask cluster of the scheduler at this address, e.g. tcp://host:8786.",
    ),
]


def resume(what: str) -> Any:
    return typer.Option(
        "--resume", metavar="RUN", help=f"Resume an interrupted {what}.", autocompletion=complete.run
    )


def data(default: str, panel: str | None = None, lead: str = "") -> Any:
    return typer.Option(
        "--data",
        metavar="NAME",
        help=f"{lead}{DATA} \\[{default}].",
        rich_help_panel=panel,
        autocompletion=complete.data,
    )


def data_root(default: str = CACHE, panel: str | None = None) -> Any:
    return typer.Option("--data-root", metavar="DIR", help=f"{ROOT} \\[{default}].", rich_help_panel=panel)


def value(text: str, metavar: str = "N", panel: str | None = None) -> Any:
    """A flag with a value, whose default is said in the text."""
    return typer.Option(metavar=metavar, show_default=False, help=text, rich_help_panel=panel)


def choice(text: str, *words: str, metavar: str = "WHICH", panel: str | None = None) -> Any:
    """A flag whose value is one of a few words, which a shell can propose."""
    return typer.Option(
        metavar=metavar,
        show_default=False,
        help=text,
        rich_help_panel=panel,
        autocompletion=complete.one_of(*words),
    )


def numbers(text: str, flag: str) -> tuple[int, ...]:
    """Whole numbers of a flag such as --seeds 0,1,2, or a count: 5 means 0…4."""
    try:
        parts = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        parts = []
    if not parts or min(parts) < 0 or text.strip() == "0":
        raise BadInput(f"{flag} as a count or a list, e.g. 5 or 0,1,2", got=repr(text), do="correct it")
    return tuple(range(parts[0])) if "," not in text else tuple(dict.fromkeys(parts))


def counts(text: str, flag: str) -> tuple[int, ...]:
    """Whole numbers ≥ 1 of a flag such as --nodes 8,16."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise BadInput(f"{flag} as whole numbers ≥ 1, e.g. 8,16", got=repr(text), do="correct it")
    return found


def check_choice(flag: str, value: str, words: Iterable[str]) -> None:
    if value not in (words := tuple(words)):
        raise BadInput(f"{flag} out of {', '.join(words)}", got=repr(value), do="pass one of these")


def check_least(flag: str, value: int, least: int) -> None:
    if value < least:
        raise BadInput(f"{flag} ≥ {least}", got=value, do="correct it")


def check_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise BadInput("--seed from 0 to 2⁶³ − 1", got=seed, do="use another")


def select(names: list[str], pattern: str | None) -> set[str]:
    """Those names that match; an error when none does."""
    found = {name for name in names if pattern is None or fnmatchcase(name, pattern)}
    if pattern is not None and not found:
        some = [shorten(printable(name), 40) for name in names[:5]]
        raise BadInput(
            "--layers to match at least one layer",
            got=repr(pattern),
            do=f"names are {', '.join(some)}{', …' if len(names) > 5 else ''}",
        )
    return found
