"""Flags of a training, made from the class of its settings. Not for flags of one command alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from ..._core import NAMES, BadInput
from ...present import CACHE, DATA, KEEP, ROOT, SEED, complete
from .._settings import RENAMED, Settings, read_toml, with_new_names

Flags = Mapping[str, tuple[str, str, str | None]]  # name: (panel, help, metavar)
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
    "batch_size": ("Training", "Points a step.", "N"),
    "unlabelled": ("Training", "Points without labels a step, of those that --train-size leaves out.", "N"),
    "optimizer": ("Training", "sgd or adam.", "WHICH"),
    "lr": ("Training", "Learning rate.", "LR"),
    "momentum": ("Training", "Momentum of SGD; Adam has its own.", "M"),
    "augment": ("Training", "Pad, crop and mirror training images at random.", None),
    "weight_decay": ("Training", "Weight decay.", "D"),
    "milestones": ("Training", "Steps after which the learning rate is divided by ten [none].", "N,N,…"),
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
    "milestones": "steps, e.g. 30000,50000",
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
        # Flags by the names that settings had before still work, and are not shown.
        old_flags = [
            inspect.Parameter(
                old,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[_flag_type(hints[new]) | None, typer.Option(hidden=True)],
            )
            for old, new in RENAMED.items()
            if any(flag.name == new for flag in flags)
        ]

        @functools.wraps(command)
        def wrapper(**arguments: Any) -> None:
            config = arguments.pop("config")
            values = _read_config(config, hints) if config else {}
            for flag in old_flags:
                value, name = arguments.pop(flag.name), RENAMED[flag.name]
                if value is not None and arguments[name] is not None:
                    raise BadInput(f"either --{_spelled(name)} or --{flag.name}", got="both", do="keep one")
                arguments[name] = arguments[name] if value is None else value
            for flag in flags:
                value = arguments.pop(flag.name)
                if value is not None:
                    values[flag.name] = _list(value, flag.name) if is_list(hints[flag.name]) else value
            command(**arguments, values=_with_full_path(values))

        parameters = [*kept, config, *flags, *old_flags]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return wrapper

    return decorate


def is_list(hint: Any) -> bool:
    return get_origin(hint) is tuple


def _flag_type(hint: Any) -> type[Any]:
    kinds = [part for part in (hint, *get_args(hint)) if part in (int, float, bool)]
    return kinds[0] if kinds and not is_list(hint) else str  # see _list


def _spelled(name: str) -> str:
    return name.replace("_", "-")


def _read_config(config: Path, hints: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a TOML file under today's names, so that a flag wins over either name."""
    renamed = {old: new for old, new in RENAMED.items() if new in hints}
    return with_new_names(read_toml(config), renamed, str(config))


def _parameter(name: str, hint: Any, default: Any, about: tuple[str, str, str | None]) -> inspect.Parameter:
    """A keyword that is None unless the flag is given; the real default stands in the help."""
    panel, text, metavar = about
    kind = _flag_type(hint)
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
