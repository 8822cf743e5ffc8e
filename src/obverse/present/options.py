"""The flags that commands share, each written once, and those that are settings, made from their class.

A flag of one name has one meaning, one placeholder and one sentence in every command that has it. Not for
flags that only one command has.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from .._core.choices import NAMES
from .._core.errors import BadInput
from .._core.text import printable
from ..training._settings import Settings, read_toml
from . import complete
from .table import shorten

Flags = Mapping[str, tuple[str, str, str | None]]  # name: (panel, help, metavar)

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
    return typer.Option("--jobs", metavar="N", show_default=False, help=f"Processes at work \\[{default}].")


def resume(what: str) -> Any:
    return typer.Option(
        "--resume", metavar="RUN", help=f"Go on with a {what} that was cut off.", autocompletion=complete.run
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


def choice(text: str, *words: str, metavar: str = "WHICH", panel: str | None = None) -> Any:
    """A flag whose value is one of a few words, which a shell can propose."""
    return typer.Option(
        metavar=metavar,
        show_default=False,
        help=text,
        rich_help_panel=panel,
        autocompletion=complete.one_of(*words),
    )


_FLAGS: Flags = {
    "data": ("Data", f"{DATA}.", "NAME"),
    "data_root": ("Data", f"{ROOT} [{CACHE}].", "DIR"),
    "train_size": ("Data", "Train on so many points, drawn with the seed [all].", "N"),
    "balanced": ("Data", "As many points of each class among those drawn.", None),
    "validation": ("Data", "Hold out so many training points in place of the test set.", "N"),
    "net": ("Net", "mlp, a fully connected ReLU net, or allconv, convolutions and the identity.", "WHICH"),
    "hidden": ("Net", "mlp: widths of the hidden layers.", "N,N,…"),
    "dropout": ("Net", "mlp: dropout probability behind each hidden layer.", "P"),
    "uniform_bias": ("Net", "mlp: one constant bias for each hidden layer.", None),
    "stem": ("Net", "allconv: channels, kernel and stride of the first convolution.", "N,K,S"),
    "widths": ("Net", "allconv: channels of each stage.", "N,N,…"),
    "blocks": ("Net", "allconv: blocks of two convolutions a stage.", "N"),
    "norm": ("Net", "allconv: batch norm behind each convolution.", None),
    "shortcut": ("Net", "allconv: the identity beside each block.", None),
    "init": ("Net", "allconv: start blocks near zero (identity) or keep the signal's size (he).", "WHICH"),
    "epochs": ("Training", "Passes over the training points.", "N"),
    "batch": ("Training", "Points a step.", "N"),
    "unlabelled": ("Training", "Points without labels a step, of those that --train-size leaves out.", "N"),
    "optimizer": ("Training", "sgd or adam.", "WHICH"),
    "rate": ("Training", "Learning rate.", "RATE"),
    "momentum": ("Training", "Momentum of SGD; Adam has its own.", "M"),
    "augment": ("Training", "Pad, crop and mirror training images at random.", None),
    "decay": ("Training", "Weight decay.", "D"),
    "drops": ("Training", "Steps after which the rate is divided by ten [none].", "N,N,…"),
    "weight": ("Shadow", "Weight of the shadows' loss; 0 is plain training [mlp 1, allconv 0].", "W"),
    "layer": ("Shadow", "Layer to generate from: h1, h2, … [the highest hidden one].", "NAME"),
    "keep": ("Shadow", f"{KEEP}.", "P"),
    "smooth": ("Shadow", "3×3 mean smoothing of the shadows.", None),
    "match_norm": ("Shadow", "Give each shadow its original's norm.", None),
    "labels": ("Shadow", "Label of a shadow: given, net or consistency.", "WHICH"),
    "normalize": ("Shadow", "Divide the loss by 1 + weight, which keeps the step size.", None),
    "control": ("Shadow", "In place of shadows: same, noise or shuffled.", "WHICH"),
    "noise": ("Shadow", "Standard deviation of the noise, of the control and for --denoise.", "STD"),
    "denoise": ("Shadow", "Weight of the shadow's own loss: to give x back from x with noise.", "W"),
    "device": ("Run", "auto, cpu, cuda or cuda:N; auto is a GPU where there is one.", "WHICH"),
    "precision": ("Run", "float32, or bf16 or fp16 for products of half the bits.", "WHICH"),
    "seed": ("Run", f"{SEED}.", "N"),
    "evaluate_every": ("Run", "Evaluate every so many epochs.", "N"),
    "checkpoint_every": ("Run", "Save every so many steps [each epoch].", "N"),
}
_LISTS = {
    "hidden": "widths, e.g. 500,500",
    "stem": "channels, kernel and stride, e.g. 16,3,1",
    "widths": "channels, e.g. 64,128,256",
    "drops": "steps, e.g. 30000,50000",
}


def with_settings(
    kind: type[Any] = Settings, texts: Flags = _FLAGS, *, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for every setting and --config; it receives `values`, the settings named there.

    Flags win over the TOML file, the file over the defaults.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(kind)
        own = inspect.signature(command, eval_str=True).parameters
        flags = [
            _parameter(field.name, hints[field.name], field.default, texts[field.name])
            for field in fields(kind)
            if field.name not in without
        ]
        config = inspect.Parameter(
            "config",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Path | None, typer.Option(metavar="FILE", help="Settings from a TOML file; flags win.")
            ],
        )
        kept = [parameter for name, parameter in own.items() if name != "values"]

        @functools.wraps(command)
        def wrapper(**arguments: Any) -> None:
            values = read_toml(arguments["config"]) if arguments["config"] else {}
            arguments.pop("config")
            for flag in flags:
                value = arguments.pop(flag.name)
                if value is not None:
                    values[flag.name] = _list(value, flag.name) if is_list(hints[flag.name]) else value
            command(**arguments, values=_with_full_path(values))

        parameters = [*kept, config, *flags]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return wrapper

    return decorate


def is_list(hint: Any) -> bool:
    return get_origin(hint) is tuple


def _parameter(name: str, hint: Any, default: Any, about: tuple[str, str, str | None]) -> inspect.Parameter:
    """A keyword that is None unless the flag is given; the real default stands in the help."""
    panel, text, metavar = about
    kinds = [part for part in (hint, *get_args(hint)) if part in (int, float, bool)]
    kind = kinds[0] if kinds and not is_list(hint) else str  # see _list
    if default not in (None, ()):
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
        text = (
            f"{text.removesuffix('.')} [{'on' if default is True else 'off' if default is False else shown}]."
        )
    option = typer.Option(
        rich_help_panel=panel,
        help=text.replace("[", "\\["),
        metavar=metavar,
        show_default=False,
        autocompletion=_completion(name, hint),
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _completion(name: str, hint: Any) -> complete.Complete | None:
    """Words that the setting may be, or names of data sets."""
    if name == "data":
        return complete.data
    for part in (hint, *get_args(hint)):
        if get_origin(part) is Literal:
            return complete.one_of(*get_args(part))
    return complete.one_of("auto", "cpu", "cuda") if name == "device" else None


def _with_full_path(values: dict[str, Any]) -> dict[str, Any]:
    """A folder or file of one's own by its full path, so that a run finds it from anywhere."""
    data = values.get("data")
    if isinstance(data, str) and data not in NAMES and Path(data).expanduser().exists():
        return values | {"data": str(Path(data).expanduser().absolute())}
    return values


def _list(text: str, name: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise BadInput(f"--{name} as {_LISTS[name]}", got=repr(text), do="correct it") from None


def numbers(text: str, flag: str) -> tuple[int, ...]:
    """Whole numbers of a flag such as --seeds 0,1,2, or a count: 5 means 0…4."""
    try:
        parts = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        parts = []
    if not parts or min(parts) < 0 or text.strip() == "0":
        raise BadInput(f"{flag} as a count or a list, e.g. 5 or 0,1,2", got=repr(text), do="correct it")
    return tuple(range(parts[0])) if "," not in text else tuple(dict.fromkeys(parts))


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
