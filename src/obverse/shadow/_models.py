"""What `obverse shadow` can be pointed at: a factory with weights or a run, and inputs. Not for measuring."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from .. import data as sets
from .._core import BadInput, NoSuchFile, printable, run_access
from ..nets import errors_as_sentences, load_weights_file, make_net, parse_arguments

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..data import Dataset

OWN = "own"


@dataclass(frozen=True)
class Scaling:
    """x ↦ (x − mean) / std, a number for all channels or one each."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def apply(self, x: Tensor) -> Tensor:
        mean, std = (x.new_tensor(one).reshape(-1, *[1] * (x.dim() - 2)) for one in (self.mean, self.std))
        return (x - mean) / std

    def undo(self, x: Tensor) -> Tensor:
        mean, std = (x.new_tensor(one).reshape(-1, *[1] * (x.dim() - 2)) for one in (self.mean, self.std))
        return x * std + mean


def open_net(
    model: str, data: str | None, data_root: str | None, weights: Path | None, words: list[str], seed: int
) -> tuple[str, nn.Module, Dataset]:
    """(what it is called, the net, the data), for a run or for a factory."""
    arguments = parse_arguments(words)
    path = Path(model)
    if path.is_dir():
        if weights is not None or words:
            raise BadInput(
                "a run, which has its own net and weights, or a factory with --weights and --arg",
                got=f"the directory {model} and {'--weights' if weights is not None else '--arg'}",
                do="leave them out",
            )
        return open_run_net(path, data, data_root)
    if ":" not in model and not path.exists():
        raise NoSuchFile(model, "a net of your own is named module:factory, e.g. mynets:resnet")
    if data is None and ":" in model:  # without a colon it is no factory either, which is said below
        raise BadInput(
            "--data", got="none", do="name a data set of the inputs that the net takes, e.g. mnist"
        )
    net = make_net(model, arguments, seed)
    assert data is not None
    if weights is not None:
        load_weights_file(net, weights)
    return model, net, sets.load(data, data_root)


def open_run_net(path: Path, data: str | None, data_root: str | None) -> tuple[str, nn.Module, Dataset]:
    """The trained net of a run, and its own data or other data of the same shape."""
    run = run_access().open_net(path)
    root = data_root or run.data_root
    own = sets.load(run.data, root)
    net = run.trained(own)
    name = path.name or path.absolute().name
    if data in (None, OWN, own.name, run.data):
        return name, net, own
    other = sets.load(data, root)
    if other.input_shape != own.input_shape:
        raise BadInput(
            f"inputs of shape {own.input_shape}, as {path} takes them",
            got=f"{other.input_shape} in {data}",
            do="leave out --data",
        )
    return name, net, other


def parse_scaling(words: tuple[str, str] | None, input_shape: tuple[int, ...]) -> Scaling:
    """MEAN and STD of --normalize: one number, or one for each channel."""
    if words is None:
        return Scaling()
    mean, std = (_numbers(text) for text in words)
    fits = all(len(one) in (1, input_shape[0]) for one in (mean, std))
    if not fits or min(std) <= 0:
        raise BadInput(
            f"--normalize MEAN STD as one number or {input_shape[0]} between commas, STD > 0",
            got=f"{words[0]} {words[1]}",
            do="e.g. --normalize 0.5 0.25",
        )
    return Scaling(mean, std)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    return found if all(map(isfinite, found)) else ()


def check_runs(net: nn.Module, x: Tensor, name: str) -> None:
    """Run the net once: what it raises is about its own code and these inputs, not about shadows."""
    import torch

    with (
        torch.no_grad(),
        errors_as_sentences(f"{printable(name)} to take inputs of shape {'×'.join(map(str, x.shape[1:]))}"),
    ):
        found: object = net(x.clone())
    if not isinstance(found, torch.Tensor):
        raise BadInput(
            f"{printable(name)} to return one tensor",
            got=type(found).__name__,
            do="wrap it in a module that does",
        )
