"""What `obverse audit` can be pointed at: weights, runs with data, audits made before. Not for printing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._core.errors import BadInput
from ..data import Dataset, load
from ..present.progress import layer_progress
from ..present.table import shorten
from ..shadow.subject_ import OWN
from ..training import RunRecord, initial_net, load_trained, read_run
from ._audit import audit
from ._readers.open import open_weights
from ._reading import NAME, read_audit
from ._tables import printable
from .results import Audit

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ._readers.module import Weight

INITIAL = "initial"


@dataclass(frozen=True)
class Subject:
    """What is to be audited, opened but not measured; an audit that is read needs no measuring."""

    name: str
    net: nn.Module | tuple[Weight, ...] | Audit
    data: Tensor | None = None


def open_subject(path: Path, data: str | None, data_root: str | None) -> Subject:
    """An audit, the net of a run with its data, or weights."""
    if is_audit(path):
        return Subject(str(path), read_audit(path))
    if data is None:
        return Subject(str(path), open_weights(path))
    run, own = open_run(path, data_root)
    net = load_trained(run.settings, own, path / "model.safetensors")
    return Subject(str(path), net, inputs(run, own, data, data_root))


def open_other(against: str, model: Path, data: str | None, data_root: str | None) -> Subject:
    """The same for what it is compared with."""
    if against != INITIAL or Path(against).exists():
        return open_subject(Path(against), data, data_root)
    run, own = open_run(model, data_root, "--against initial")
    x = None if data is None else inputs(run, own, data, data_root)
    return Subject(f"{model} before training", initial_net(run.settings, own).eval(), x)


def is_audit(path: Path) -> bool:
    """A JSON file other than the index of a folder of shards, or a directory with an audit and no weights."""
    if path.is_dir():
        return (path / NAME).is_file() and not any(path.glob("*.safetensors*"))
    return path.suffix == ".json" and not path.name.endswith(".index.json")


def open_run(path: Path, data_root: str | None, flag: str = "--data") -> tuple[RunRecord, Dataset]:
    """A run, and the data it was trained on: they say what shape its net has."""
    if not (path / "config.json").is_file():
        raise BadInput(
            f"the directory of a run for {flag}: weights alone cannot be run",
            got=path,
            do="leave it out, or use Python: obverse.audit(net, data=x)",
        )
    run = read_run(path)
    return run, load(run.settings.data, data_root or run.settings.data_root)


def inputs(run: RunRecord, own: Dataset, name: str, data_root: str | None) -> Tensor:
    """The test set of the run, or of another data set of the same shape."""
    if name in (OWN, own.name, run.settings.data):
        return own.test_x
    other = load(name, data_root or run.settings.data_root)
    if other.input_shape != own.input_shape:
        raise BadInput(
            f"inputs of shape {own.input_shape}, as {run.path} takes them",
            got=f"{other.input_shape} in {name}",
            do="use --data own",
        )
    return other.test_x


def measure(subject: Subject, pattern: str | None, **options: Any) -> Audit:
    """The audit of the layers whose names match the pattern."""
    net = subject.net
    if isinstance(net, Audit):
        return matching(net, pattern)
    if isinstance(net, tuple):
        names = select([one.name for one in net], pattern)
        net = tuple(one for one in net if one.name in names)
    with layer_progress(Path(subject.name).name) as on_layer:
        found = audit(net, model=subject.name, data=subject.data, on_layer=on_layer, **options)
    return matching(found, pattern)


def matching(whole: Audit, pattern: str | None) -> Audit:
    names = select([layer.name for layer in whole.layers], pattern)
    return replace(whole, layers=tuple(layer for layer in whole.layers if layer.name in names))


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
