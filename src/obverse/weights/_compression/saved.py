"""A compressed net on disk: model.safetensors and compression.json. What is read is untrusted.

The file says no more than names and ranks: the net that they belong to is given, and no rank is taken that
would make a layer larger than it is there, so that a file cannot ask for memory.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from torch import Tensor, nn

from ..._core import BadInput, explained, load_tensors, load_weights, record_text, save_tensors, write_text
from .._readers.stored import printable
from .compress import copied
from .results import FORMAT, NAME, Compression, LayerCompression, read_compression
from .thin import pays, put, thin_layers, why_not

WEIGHTS = "model.safetensors"
HEADER, A_NAME = 100_000, 2000  # bytes of a file beside its numbers: in all, and for each tensor


def save_compressed(net: nn.Module, result: Compression, folder: Path | str) -> Path:
    """Write a net that `compress` returned, and what it did; returns the folder."""
    folder = Path(folder)
    tensors: dict[str, Tensor] = {}
    for name, value in net.state_dict().items():
        if not isinstance(value, Tensor):
            raise BadInput(
                f"tensors in the state dict, for {name}", got=type(value).__name__, do="leave it out"
            )
        tensors[name] = value.detach().clone()  # tied ones share memory, which the format does not have
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    save_tensors(folder / WEIGHTS, tensors)
    write_text(folder / NAME, record_text(result, FORMAT))
    return folder


def load_compressed(net: nn.Module, folder: Path | str) -> nn.Module:
    """The compressed net in a folder. `net` is the net before compression, with whatever weights: it says
    what the layers are, and stays as it is."""
    folder = Path(folder)
    result = read_compression(folder)
    small = copied(net)
    reasons = why_not(small)
    replaced = {layer.name: layer for layer in result.replaced}
    twice = [name for name, count in Counter(layer.name for layer in result.replaced).items() if count > 1]
    if twice:
        raise BadInput(f"each layer once in {folder / NAME}", got=repr(twice[0][:100]), do="save it again")
    titles = {printable(name) or "weight": name for name in reasons}
    for title, layer in replaced.items():
        name = titles.get(title)
        if name is None or reasons[name] or not _fits(small.get_submodule(name), layer):
            raise BadInput(
                f"a layer {title[:100]!r} of {layer.rows} × {layer.columns} to be replaced by two thin ones "
                f"of rank {layer.rank}, which are smaller",
                got="none in the net",
                do="pass the net that was compressed",
            )
        assert layer.rank is not None
        small = put(small, name, thin_layers(small.get_submodule(name), layer.rank))
    path = folder / WEIGHTS
    _check_size(path, small.state_dict())
    load_weights(small, load_tensors(path), str(path))
    return small


def _fits(module: nn.Module, layer: LayerCompression) -> bool:
    weight: Tensor = module.weight  # type: ignore[assignment]
    rows, columns = weight.flatten(1).shape
    size = rows, columns
    return size == (layer.rows, layer.columns) and layer.rank is not None and pays(layer.rank, rows, columns)


def _check_size(path: Path, own: dict[str, Tensor]) -> None:
    """Before it is read: not larger than the tensors of the net with their names."""
    with explained(path):
        size = path.stat().st_size
    most = HEADER + sum(one.numel() * one.element_size() + A_NAME for one in own.values())
    if size > most:
        raise BadInput(f"at most {most:,} bytes in {path}", got=f"{size:,}", do="restore it")
