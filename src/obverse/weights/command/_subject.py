"""What `obverse audit` was given, opened and measured: an audit made before, a run, or weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..._core import BadInput, NetRun, NoSuchFile, named, run_access
from ...present import audit_progress, select
from ...shadow import OWN
from .._readers.address import is_address, parse_address, spoken
from ..results import NAME, Audit, read_audit

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ...data import Dataset
    from .._readers.module import Weight

INITIAL = "initial"
RECORD_AGAINST = "against.jsonl"  # beside the record of the audit: of what it is compared with


@dataclass(frozen=True)
class Subject:
    """What is to be audited, opened but not measured; an audit that is read needs no measuring."""

    name: str
    net: nn.Module | tuple[Weight, ...] | Audit
    data: Tensor | None = None


def open_subject(source: str, data: str | None, data_root: str | None) -> Subject:
    """An audit, the net of a run with its data, or weights."""
    from .._readers.open import open_weights, remarks

    if is_address(source):
        return open_repository(source, data)
    path = Path(source)
    if is_audit(path):
        return Subject(str(path), read_audit(path))
    if data is None:
        file = taken(path)
        weights = open_weights(file)
        for remark in remarks(file):
            typer.echo(f"{named(file.name)}: {remark}", err=True)
        return Subject(str(file), weights)
    run, own = open_run(path, data_root)
    return Subject(str(path), run.trained(own), inputs(path, run, own, data, data_root))


def open_repository(source: str, data: str | None) -> Subject:
    """The weights of a repository; commit and file are said, as they are what the audit is about."""
    from .._readers.open import open_weights, settled

    if data is not None:
        raise _no_run(source, "--data")
    whole = settled(source)
    if whole != source:
        found = parse_address(whole)
        said = f"{named(found.path)} of commit {found.revision[:12]} is audited"
        typer.echo(f"{named(source)}: {said}", err=True)
    return Subject(whole, open_weights(whole))


def taken(path: Path) -> Path:
    """A file or a run as it is; of another folder the file in it, which is said, as nobody has named it."""
    from .._readers.open import file_in, is_run

    if not path.is_dir() or is_run(path):
        return path
    file = file_in(path)
    typer.echo(f"{named(str(path))}: {named(file.name)} is audited", err=True)
    return file


def open_other(against: str, model: str, data: str | None, data_root: str | None) -> Subject:
    """The same for what it is compared with."""
    if against != INITIAL or Path(against).exists():
        return open_subject(against, data, data_root)
    path = Path(model)
    if is_address(model):
        raise _no_run(model, "--against initial")
    run, own = open_run(path, data_root, "--against initial")
    x = None if data is None else inputs(path, run, own, data, data_root)
    return Subject(f"{path} before training", run.initial(own).eval(), x)


def is_adapter(model: str) -> bool:
    """Whether this is a PEFT adapter on disk."""
    from .._readers.open import is_adapter as is_one

    return is_one(Path(model))


def check_flags(useless: list[str], base: str | None, model: str) -> None:
    """An adapter has a table of its own, and nothing else has a base."""
    if base is not None and not is_address(model) and not is_adapter(model):
        raise BadInput(
            "the folder of a PEFT adapter for --base",
            got=model,
            do="leave --base out; --against says what changed between two models",
        )
    if useless:
        raise BadInput(
            "--base, --layers, --seed, --out or --json for an adapter",
            got=", ".join(f"--{name}" for name in useless),
            do="leave it out" if "against" not in useless else "name the base with --base",
        )


def is_audit(path: Path) -> bool:
    """A JSON file that isn't itself weights or their index, or a directory with an audit and no weights."""
    from .._readers.open import SUFFIXES
    from .._readers.tfjs import is_tfjs

    if path.is_dir():
        others = [one.name.lower() for one in path.iterdir()] if (path / NAME).is_file() else []
        return bool(others) and not any(name.endswith(SUFFIXES) for name in others)
    return path.suffix == ".json" and not path.name.endswith(".index.json") and not is_tfjs(path)


def open_run(path: Path, data_root: str | None, flag: str = "--data") -> tuple[NetRun, Dataset]:
    """A run, and the data it was trained on: they say what shape its net has."""
    from ...data import load

    if not path.exists():
        raise NoSuchFile(path)
    if not (path / "config.json").is_file():
        raise _no_run(path, flag)
    run = run_access().open_net(path)
    return run, load(run.data, data_root or run.data_root)


def _no_run(source: str | Path, flag: str) -> BadInput:
    return BadInput(
        f"the directory of a run for {flag}: weights alone cannot be run",
        got=source,
        do="leave it out, or use Python: obverse.audit(net, data=x)",
    )


def inputs(path: Path, run: NetRun, own: Dataset, name: str, data_root: str | None) -> Tensor:
    """The test set of the run, or of another data set of the same shape."""
    from ...data import load

    if name in (OWN, own.name, run.data):
        return own.test_x
    other = load(name, data_root or run.data_root)
    if other.input_shape != own.input_shape:
        raise BadInput(
            f"inputs of shape {own.input_shape}, as {path} takes them",
            got=f"{other.input_shape} in {name}",
            do="use --data own",
        )
    return other.test_x


def measure(
    subject: Subject, pattern: str | None, *, seed: int, record: Path | None = None, **options: Any
) -> Audit:
    """The audit of the layers whose names match the pattern; its settings have the seed that was given.

    Layers are kept in `record` as they are finished.
    """
    import torch

    from .._audit import audit as measured

    net = subject.net
    if isinstance(net, Audit):
        return matching(net, pattern)
    if isinstance(net, tuple):
        names = select([one.name for one in net], pattern)
        net = tuple(one for one in net if one.name in names)
    if record is not None:
        options["record"] = record
    title = spoken(subject.name) if is_address(subject.name) else Path(subject.name).name
    with audit_progress(title) as progress:
        found = measured(
            net,
            model=subject.name,
            data=subject.data,
            generator=torch.Generator().manual_seed(seed),
            progress=progress,
            **options,
        )
    return matching(replace(found, settings=found.settings | {"seed": seed}), pattern)


def matching(whole: Audit, pattern: str | None) -> Audit:
    names = select([layer.name for layer in whole.layers], pattern)
    return replace(whole, layers=tuple(layer for layer in whole.layers if layer.name in names))
