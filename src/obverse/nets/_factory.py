"""A net from the user's own code: `module:factory`, keyword arguments, weights. It runs that code.

Not for nets of runs: see subjects.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core import BadInput, NoSuchFile, printable

if TYPE_CHECKING:
    from torch import Tensor, nn

Value = int | float | bool | str | tuple[int | float, ...]
NAMED = 3  # tensors in a sentence; the rest is counted
LONGEST = 200  # letters of somebody else's error message


def make_net(path: str, arguments: Mapping[str, Value], seed: int = 0) -> nn.Module:
    """The net that `module:factory` makes, in evaluation mode; what it draws at random follows the seed.

    `factory` may also be a net itself. The working directory is importable, from here on.
    """
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = find_factory(path)
        if isinstance(found, nn.Module):
            if arguments:
                raise BadInput(f"no --arg for {path}", got=next(iter(arguments)), do="it is a net already")
            return found.eval()
        check_arguments(path, found, arguments)
        torch.manual_seed(seed)  # again: what importing has drawn, it draws only once
        with errors_as_sentences(f"{path} to make a net"):
            net = found(**arguments)
    if not isinstance(net, nn.Module):
        raise BadInput(
            f"{path} to return an nn.Module",
            got=f"{type(net).__name__}",
            do="return the net itself from the factory",
        )
    return net.eval()


def find_factory(path: str) -> Callable[..., Any]:
    """What a path such as `mynets:resnet` or `mynets:Net.small` names; importing runs the module."""
    module_name, colon, attribute = path.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module_name.split("."), *attribute.split(".")]):
        raise BadInput(
            "MODEL as module:factory, e.g. mynets:resnet, or the directory of a run",
            got=repr(path),
            do="name a Python module and what in it makes the net",
        )
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        with errors_as_sentences(f"to import {module_name}"):
            found: Any = import_module(module_name)
    except BadInput as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and f"{module_name}.".startswith(f"{missing.name}."):
            raise BadInput(
                f"a Python module {module_name}",
                got="none of that name",
                do=f"go to the folder that holds {module_name.split('.')[0]}.py, or install it",
            ) from missing
        raise
    for part in attribute.split("."):
        names = [name for name in dir(found) if not name.startswith("_")]
        if not hasattr(found, part):
            near = get_close_matches(part, names, n=3)
            raise BadInput(
                f"{attribute} in {module_name}",
                got=f"no {part} there",
                do=f"did you mean {', '.join(near)}?" if near else "check the name behind the colon",
            )
        found = getattr(found, part)
    if not callable(found):
        raise BadInput(
            f"{path} to make a net when it is called",
            got=type(found).__name__,
            do="name a function or class",
        )
    made: Callable[..., Any] = found
    return made


def check_arguments(path: str, factory: Callable[..., Any], arguments: Mapping[str, Value]) -> None:
    """Refuse arguments that are missing or that the factory does not take."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # written in C: it says so itself
        return
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        unknown = [name for name in arguments if name not in parameters]
        if unknown:
            takes = ", ".join(parameters) or "none"
            raise BadInput(f"--arg that {path} takes ({takes})", got=unknown[0], do="check the name")
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    missing = [
        name
        for name, one in parameters.items()
        if one.default is one.empty
        and name not in arguments
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if missing:
        can = all(parameters[name].kind in by_name for name in missing)
        raise BadInput(
            f"a value for {', '.join(missing)} of {path}",
            got="none",
            do=" ".join(f"--arg {name}=…" for name in missing) if can else "write a function around it",
        )


def parse_arguments(words: Sequence[str]) -> dict[str, Value]:
    """NAME=VALUE words as keyword arguments; nothing is evaluated. See `parse_value`."""
    values: dict[str, Value] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier() or name in values:
            raise BadInput("--arg as NAME=VALUE, each name once", got=repr(word), do="e.g. --arg classes=10")
        values[name] = parse_value(text)
    return values


def parse_value(text: str) -> Value:
    """A whole number, a number, true or false, numbers between commas as a tuple, else text; quotes come off.

    >>> [parse_value(text) for text in ("10", "1e-3", "true", "1,28,28", "relu", "'10'")]
    [10, 0.001, True, (1, 28, 28), 'relu', '10']
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if (number := _number(text)) is not None:
        return number
    parts = [_number(part) for part in text.removesuffix(",").split(",")]
    numbers = tuple(part for part in parts if part is not None)
    return numbers if "," in text and len(numbers) == len(parts) else text


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if math.isfinite(value) else None  # "nan" and "inf" are words
    return None


def load_weights_file(net: nn.Module, path: Path) -> None:
    """Copy the weights of a safetensors file into the net: just its own names, shapes and types."""
    from .._core import load_weights, parse_tensors, read_file

    if path.suffix != ".safetensors":
        raise BadInput(
            "weights as FILE.safetensors",
            got=path,
            do="convert them: safetensors.torch.save_file(net.state_dict(), 'net.safetensors')",
        )
    try:
        content = read_file(path, "weights")
    except FileNotFoundError:
        raise NoSuchFile(path) from None
    except OSError as error:
        raise BadInput(f"to read {path}", got=error.strerror or error, do="check the path") from None
    tensors = parse_tensors(content, path)
    check_weights(net.state_dict(), tensors, path)
    load_weights(net, tensors, str(path))


def check_weights(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor], path: Path) -> None:
    """Say in one sentence of bounded length in which names, shapes and types a file differs from the net."""
    missing = [name for name in own if name not in tensors]
    unknown = [name for name in tensors if name not in own]
    other = [
        f"{name} is {_kind(tensor)} in the file and {_kind(own[name])} in the net"
        for name, tensor in tensors.items()
        if name in own and (tensor.shape != own[name].shape or tensor.dtype != own[name].dtype)
    ]
    wrong = [
        f"{title}{_listed(found)}"
        for title, found in (("it lacks ", missing), ("the net has no ", unknown), ("", other))
        if found
    ]
    if wrong:
        raise BadInput(
            f"the {len(own)} tensors of the net in {path}",
            got=", ".join(wrong),
            do="check that MODEL and --arg make the net that was saved",
        )


def _kind(tensor: Tensor) -> str:
    return f"{'×'.join(map(str, tensor.shape)) or 'one number'} {str(tensor.dtype).removeprefix('torch.')}"


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(printable(one)[:LONGEST] for one in found[:NAMED]) + more


@contextmanager
def errors_as_sentences(expected: str) -> Iterator[None]:
    """Whatever somebody else's code raises becomes a sentence; --debug shows where it came from."""
    try:
        yield
    except (Exception, SystemExit) as error:
        said = printable(f"{type(error).__name__}: {error}".replace("\n", " "))
        said = said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"
        raise BadInput(expected, got=said, do="correct it; --debug shows where") from error
