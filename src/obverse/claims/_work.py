"""One measurement at one setting: its identity, and doing it, here or on another machine. Not for judging it.

A measurement's randomness comes from its identity (which function, which setting, which seed), never from
the order or the place it is done in: the same numbers to the bit, however a sweep is run.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from math import isfinite
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from .._core import MAX_ITEMS, BadInput, ObverseError, derive_generator
from ._claim import Measure
from ._registry import forget_users, load_source
from ._sources import obverse_sources
from .results import Measured, Setting

MAX_CRASH = 4000  # letters of a crash that are kept
_LOADING = threading.Lock()  # a worker of a cluster may do several measurements at once, in threads


@dataclass(frozen=True)
class Task:
    """A measurement to be done, as it is sent to a worker."""

    key: str  # of everything that its numbers depend on: where they are kept
    seed: int  # of its generator
    version: str  # of obverse
    module: str
    function: str
    setting: dict[str, Any]
    source: tuple[str, str, str] | None  # a user's module, which the worker does not have: see load_source
    measure: (
        Measure | None
    )  # itself, where it stands in the program being run and has no module to be found in


def make_task(measure: Measure, setting: Setting, seed: int) -> Task:
    """The task of a claim's `measure` at a setting."""
    from .. import __version__

    module = sys.modules.get(str(getattr(measure, "__module__", "")))
    function = str(getattr(measure, "__qualname__", ""))
    if module is None or _found(module, function) is not measure:
        raise BadInput(
            "a measure that is found by its name at the top level of its module",
            got=f"{function or measure!r}",
            do="use def there; of two files of one name, the later hides the earlier",
        )
    # "obverse.claims." as the numbers that are published were made under the names of modules
    key = getattr(measure, "key", None)
    name = f"{module.__name__}.{function}" if key is None else f"obverse.claims.{key}"
    identity = json.dumps([name, _canonical(setting), seed])
    source = module.__dict__.get("__claims_source__")
    return Task(
        key=_digest(json.dumps([identity, _code(module, measure), _packages()])).hex(),
        seed=int.from_bytes(_digest(identity), "big"),
        version=__version__,
        module=module.__name__,
        function=function,
        setting=dict(setting),
        source=source,
        measure=measure if module.__name__ == "__main__" else None,
    )


def perform(task: Task) -> Measured:
    """Do a task. Whatever goes wrong in it is part of the answer."""
    started = time.perf_counter()
    values: tuple[float, ...] = ()
    crash = ""
    try:
        measure = task.measure or _measure(task)
        values = _values(measure(dict(task.setting), derive_generator(task.seed)))
    except (Exception, SystemExit) as error:
        crash = explain(error)
    return Measured(task.key, task.setting, values, time.perf_counter() - started, crash)


def explain(error: BaseException) -> str:
    """A sentence as it is; of any other exception where it came from, without the folders of this machine."""
    if isinstance(error, ObverseError):
        text = str(error)
    else:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        lines = [
            f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames
        ]
        text = "\n".join([*lines, "".join(traceback.format_exception_only(error)).strip()])
    return text.encode("utf-8", "replace").decode()[-MAX_CRASH:]


def _measure(task: Task) -> Measure:
    from .. import __version__

    if task.version != __version__:
        raise BadInput(
            f"obverse {task.version} where it is measured, as here",
            got=__version__,
            do="install the same version on every machine",
        )
    if task.source is None:
        found = _found(import_module(task.module), task.function)
    else:
        with _LOADING:
            module = sys.modules.get(task.module)
            if module is None or module.__dict__.get("__claims_source__") != task.source:
                forget_users()  # who may have given their claims the same ids
                load_source(*task.source)
            found = _found(sys.modules[task.module], task.function)
    measure: Measure = found
    return measure


def _found(module: ModuleType, function: str) -> Any:
    try:
        return attrgetter(function)(module)
    except AttributeError:
        return None


def _packages() -> str:
    return f"torch {torch.__version__} numpy {np.__version__}"


@cache
def _code(module: ModuleType, measure: Measure) -> str:
    """A digest of the code that a measurement runs: its module's, and that of obverse which this imports."""
    sources = obverse_sources()
    if module.__name__ in sources.files:
        return sources.digest(module.__name__, sources.text(module.__name__))
    source = module.__dict__.get("__claims_source__")
    if source:
        return sources.digest(module.__name__, source[1])
    try:
        return sources.digest(module.__name__, inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        pass
    try:  # a notebook is no file, but its functions have a source; what they use may stand in any cell
        return sources.digest_all() + _digest(inspect.getsource(measure)).hex()
    except (OSError, TypeError):
        raise BadInput(
            "a measure whose source can be read", got=measure.__qualname__, do="put it in a file"
        ) from None


def _canonical(setting: Setting) -> str:
    for name, value in setting.items():
        for one in value if isinstance(value, tuple | list) else (value,):
            if not isinstance(one, bool | int | float | str) or (
                isinstance(one, float) and not isfinite(one)
            ):
                raise BadInput(
                    f"a finite number, a text, true or false for {name!r} in a setting",
                    got=repr(one),
                    do="convert it",
                )
    return json.dumps(dict(setting), sort_keys=True)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _values(given: Any) -> tuple[float, ...]:
    values = torch.as_tensor(given, dtype=torch.float64).flatten()
    if not 0 < len(values) <= MAX_ITEMS:
        raise BadInput(
            f"1 to {MAX_ITEMS:,} trials from a measure",
            got=f"{len(values):,}",
            do="return one number per trial",
        )
    wrong = int((~values.isfinite()).sum())
    if wrong:
        raise BadInput(
            "finite numbers from a measure",
            got=f"{wrong} of {len(values)} not",
            do="look for 0/0 or overflow",
        )
    return tuple(values.tolist())
