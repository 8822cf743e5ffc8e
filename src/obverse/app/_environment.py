"""What obverse runs on: versions, processor, memory, devices, data, extras. Nothing is printed here."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path

from .._core import Record, usable_cores

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "safetensors")  # whose versions numbers depend on
PURPOSES = {  # metadata say what an extra brings, not what for
    "search": "obverse search",
    "tensorboard": "obverse train --tensorboard",
    "cluster": "obverse claims run --cluster",
    "onnx": "obverse audit of an .onnx file",
    "hub": "obverse audit hf://org/name",
    "gguf": "obverse audit of a .gguf file",
    "keras": "obverse audit of a .keras or .h5 file",
    "metrics": "obverse.diversity.moments, FID and KID and IS, in features of your own",
    "inception": "obverse.diversity.moments in the features of Inception",
    "notebook": "to_frame() of results, and bars of progress in a cell",
    "integrations": "callbacks of Lightning and Hugging Face trainers",
    "docs": "make docs",
    "dev": "make test",
}
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Extra(Record):
    """An extra of the package: what for, what of it is missing, how to get it."""

    name: str
    purpose: str
    missing: tuple[str, ...]
    install: str


@dataclass(frozen=True)
class Environment(Record):
    """Sizes in MiB; None where the system does not say."""

    versions: dict[str, str]
    platform: str
    cores: int  # that this process may use
    threads: int  # that torch uses
    memory: int | None
    memory_free: int | None
    devices: tuple[str, ...]
    data_folder: str
    data_folder_writable: bool
    data_sets: tuple[str, ...]


def versions() -> dict[str, str]:
    """Of obverse, Python and what its numbers depend on; torch with what it was built for."""
    from .. import __version__

    found = {"obverse": __version__, "python": platform.python_version()}
    return found | {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        found = version(name)
    except PackageNotFoundError:
        return "missing"
    return f"{found} ({_build()})" if name == "torch" else found


def _build() -> str:
    """What torch was built for, from the file that it writes down; importing it would take a second."""
    from importlib.util import find_spec

    spec = find_spec("torch")
    place = Path(spec.origin).parent / "version.py" if spec and spec.origin else None
    told: dict[str, str] = {}
    if place is not None and place.is_file():
        for line in place.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            told[name.partition(":")[0].strip()] = value.strip().strip("'\"")
    for kind in ("cuda", "hip", "xpu"):
        if told.get(kind, "None") != "None":
            return f"build for {kind.upper()} {told[kind]}"
    return "build for CPU" if "cuda" in told else "build unknown"


def environment() -> Environment:
    import torch

    from ..data import data_folder, present_sets

    folder = data_folder()
    memory, free = _memory()
    devices = [f"cpu: {_processor()}"]
    if torch.cuda.is_available():
        devices += [
            f"cuda:{number}: {torch.cuda.get_device_name(number)}"
            for number in range(torch.cuda.device_count())
        ]
    return Environment(
        versions=versions(),
        platform=platform.platform(),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        memory=memory,
        memory_free=free,
        devices=tuple(devices),
        data_folder=str(folder),
        data_folder_writable=_writable(folder),
        data_sets=present_sets(),
    )


def _processor() -> str:
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory() -> tuple[int | None, int | None]:
    """In all and free, in MiB."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        whole = page * os.sysconf("SC_PHYS_PAGES") // MEBIBYTE
    except (AttributeError, OSError, ValueError):
        return None, None
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return whole, int(value.split()[0]) // 1024
    except (OSError, ValueError, IndexError):
        pass
    return whole, None


def _writable(folder: Path) -> bool:
    """Whether files can be made there, or the folder itself."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def extras(package: str = "obverse") -> tuple[Extra, ...]:
    """The extras that the installed package offers, by its metadata; none if it is not installed."""
    try:
        names = distribution(package).metadata.get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return ()
    return tuple(
        Extra(
            name,
            PURPOSES.get(name, "not told"),
            tuple(missing(package, name)),
            f"pip install '{package}[{name}]'",
        )
        for name in names
    )


def missing(package: str, extra: str) -> list[str]:
    """Requirements of an extra that are not there, or not in the version it asks for."""
    from packaging.requirements import Requirement

    found = []
    for text in _requires(package):
        one = Requirement(text)
        if (
            one.marker is None
            or one.marker.evaluate({"extra": ""})
            or not one.marker.evaluate({"extra": extra})
        ):
            continue
        try:
            here = version(one.name)
        except PackageNotFoundError:
            found.append(f"{one.name}{one.specifier}")
            continue
        if not one.specifier.contains(here, prereleases=True):
            found.append(f"{one.name}{one.specifier}, {here} is there")
        for inner in one.extras:
            found += missing(one.name, inner)
    return found


@cache
def _requires(package: str) -> tuple[str, ...]:
    return tuple(requires(package) or ())
