"""What a shell may propose for a value: names that are known and paths that are there. Imports nothing heavy.

Each function takes what has been typed of the word so far and returns the words it may become.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from .._core import NAMES

Complete = Callable[[str], list[str]]
OF_A_RUN = ("config.json", "comparison.json", "search.json")  # one of these is in the directory of a run
RUNS = "runs"  # where runs are made unless --out says another place
ARRAYS = (".npz",)
SAMPLES = (".npz", ".npy")
HUB = "hf://"
WEIGHTS = (
    *(".safetensors", ".pt", ".pth", ".gguf", ".keras", ".h5", ".hdf5", ".onnx", ".npz", ".npy", ".pkl"),
    ".json",
)


def one_of(*words: str) -> Complete:
    """A word out of a few."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def data(incomplete: str) -> list[str]:
    """A data set by name, an .npz file or a folder."""
    return [*one_of(*NAMES)(incomplete), *_paths(incomplete, ARRAYS)]


def split(incomplete: str) -> list[str]:
    """The same for one part of a data set: mnist:train."""
    names = [f"{name}:{part}" for name in NAMES for part in ("train", "test")]
    return [*one_of(*names)(incomplete), *_paths(incomplete, SAMPLES)]


def samples(incomplete: str) -> list[str]:
    return list(_paths(incomplete, SAMPLES))


def model(incomplete: str) -> list[str]:
    """A file of weights, the directory of a run, or the beginning of a repository's name."""
    found = [HUB] if incomplete and HUB.startswith(incomplete) and incomplete != HUB else []
    return list(dict.fromkeys([*run(incomplete), *_paths(incomplete, WEIGHTS), *found]))


def run(incomplete: str) -> list[str]:
    """The directory of a run, comparison or search, or a folder on the way to one."""
    found = list(_paths(incomplete, ()))
    if RUNS.startswith(incomplete):
        found += [one for one in _paths(f"{RUNS}/", ()) if not one.endswith("/")]
    return found


def results(incomplete: str) -> list[str]:
    """The same, or the JSON of any result."""
    return list(dict.fromkeys([*run(incomplete), *_paths(incomplete, (".json",))]))


def claim(incomplete: str) -> list[str]:
    """The id of a claim; ids.txt lists them, as the registry can't be asked without torch."""
    text = files("obverse.claims").joinpath("ids.txt").read_text(encoding="utf-8")
    return one_of(*text.split())(incomplete)


def _paths(incomplete: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Folders and files with these endings that begin so; a folder that is no run ends with a slash."""
    head, slash, tail = incomplete.rpartition("/")
    with suppress(OSError, RuntimeError):  # no such folder, no such user
        folder = Path(head + slash).expanduser() if slash else Path()
        for entry in sorted(folder.iterdir()):
            if not entry.name.startswith(tail) or (entry.name.startswith(".") and not tail):
                continue
            if entry.is_dir():
                is_run = any((entry / name).is_file() for name in OF_A_RUN)
                yield f"{head}{slash}{entry.name}{'' if is_run else '/'}"
            elif entry.suffix in endings:
                yield f"{head}{slash}{entry.name}"
