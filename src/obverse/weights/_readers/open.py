"""Opens the weights in a file or a folder, whatever wrote it, or of a net in memory.

Files are not trusted: nothing in them is run, what they promise is checked against their size before memory
is set aside, and every refusal names the file and the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from ..._core import MAX_JSON, BadInput, NoSuchFile, as_tensor
from .address import is_address, is_safe
from .arrays import named_weights, open_pickle
from .gguf import open_gguf, split_names
from .hub import SAFETENSORS, pinned
from .keras import open_keras
from .layout import weights_in
from .llama2c import checkpoint_in, open_llama2c, remark_on
from .module import weights_of
from .numpy import open_npy, open_npz, pickle_in
from .onnx import external_files, open_onnx
from .remote import fetched, open_remote
from .safetensors import is_safetensors, open_safetensors, open_shards, shard_names
from .stored import Stored, Weight, printable
from .tfjs import is_tfjs, open_tfjs, shards_of
from .torch import is_torch, open_torch

_INDEX = ".safetensors.index.json"
_MODEL = "model.json"
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def _open_npy(path: Path) -> tuple[Weight, ...]:
    start = pickle_in(path)
    return weights_in(open_npy(path), str(path)) if start is None else open_pickle(path, start)


def _open_checkpoint(path: Path) -> tuple[Weight, ...]:
    """Of torch, of llama2.c, or a pickle of arrays: their names say little."""
    if is_torch(path):
        return weights_in(open_torch(path), str(path))
    if checkpoint_in(path):
        return weights_in(open_llama2c(path), str(path))
    return open_pickle(path)


def _named(read: Callable[[Path], dict[str, Stored]]) -> Callable[[Path], tuple[Weight, ...]]:
    return lambda path: named_weights(read(path), str(path))


_READERS: dict[str, Callable[[Path], tuple[Weight, ...]]] = {
    ".safetensors": _named(open_safetensors),
    **dict.fromkeys(_PICKLES, _open_checkpoint),
    ".gguf": open_gguf,
    **dict.fromkeys((".keras", ".h5", ".hdf5"), open_keras),
    _MODEL: open_tfjs,
    ".onnx": open_onnx,
    ".npz": _named(open_npz),
    ".npy": _open_npy,
    _INDEX: _named(open_shards),
}
SUFFIXES = tuple(_READERS)
_RUN = ("model.safetensors", "config.json", "metrics.jsonl")
_NAMED = 20  # files that a refusal lists
CONFIG, ADAPTER_FILES = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")


class AdapterOnHub(BadInput):
    """A repository holds an adapter: only its files say so, and they are asked for when it is opened."""


# Everything that has weights: what `open_weights` and `audit` take.
WeightSource = nn.Module | Mapping[str, Tensor] | Path | str | Sequence[Weight]


def open_weights(source: WeightSource) -> tuple[Weight, ...]:
    """The matrices of a module, of a state dict, or of a file or folder given by its path or hf:// name.

    A file is .safetensors, .pt (or another of torch.save's), .gguf, .keras, .h5, TensorFlow.js' model.json,
    .onnx, .npz, .npy or .pkl; a folder holds one or shards. Only names and shapes are read here; each
    `Weight.load` reads its own tensor. What `open_weights` returned comes back as it is.

        for weight in open_weights("model.safetensors"):
            print(weight.name, weight.load().shape)

    Args:
        source: a module, a state dict, a path, a name that begins with hf://, or weights that are open.

    Returns:
        tuple: a `Weight` for each matrix, in the order of the file; nothing in a file is run.
    """
    if isinstance(source, Mapping):
        source = {name: as_tensor(one, name) if _is_array(one) else one for name, one in source.items()}
    if isinstance(source, nn.Module | Mapping):
        return weights_of(source)
    if isinstance(source, Path | str) and is_address(source):
        return _open_hub(source)
    if isinstance(source, Path | str):
        return found_at(str(Path(source).absolute()), _open_path(Path(source)))
    if isinstance(source, Sequence):
        weights = tuple(weight for weight in source if isinstance(weight, Weight))
        if len(weights) == len(source):
            return weights
    raise BadInput(
        "an nn.Module, a state dict, a path, or what open_weights returns",
        got=type(source).__name__,
        do="pass the net or the path of its file; a matrix alone is for obverse.weights.decompose"
        if isinstance(source, Tensor) or _is_array(source)
        else "pass the net or the path of its file",
    )


def _is_array(value: object) -> bool:
    """Of NumPy, JAX and the like, without importing any."""
    return hasattr(value, "__array__") and hasattr(value, "dtype") and not isinstance(value, Tensor)


def settled(source: Path | str) -> str:
    """A name that means the same from now on: of a repository, hf://org/name@commit/file; a path as it is."""
    return str(pinned(source, SUFFIXES)) if is_address(source) else str(source)


def _open_hub(source: Path | str) -> tuple[Weight, ...]:
    address = pinned(source, SUFFIXES)
    if address.path.rpartition("/")[2] in ADAPTER_FILES:
        raise AdapterOnHub(
            "the weights of a model",
            got=f"a PEFT adapter, {address}",
            do="use obverse audit, or obverse.weights.audit_adapter: they audit its updates",
        )
    if address.path.endswith(SAFETENSORS):
        return found_at(str(address), open_remote(address))
    file = fetched(address)
    folder = address.path.rpartition("/")[0]
    for name in _beside(file):
        fetched(replace(address, path=f"{folder}/{name}" if folder else name))
    return found_at(str(address), _open_file(file))


def fetched_adapter(source: Path | str) -> Path:
    """The folder with both files of an adapter on a hub, in the cache of the library: fetched if need be."""
    address = pinned(source, ADAPTER_FILES)
    folder = address.path.rpartition("/")[0]
    fetched(replace(address, path=f"{folder}/{CONFIG}" if folder else CONFIG), limit=MAX_JSON)
    return fetched(address).parent


def _beside(path: Path) -> list[str]:
    """The other files that a split or sharded model is in, by their names in its folder."""
    names = shards_of(path) if _suffix(path) == _MODEL else set[str]()
    names |= set(split_names(path)) - {path.name} if _suffix(path) == ".gguf" else set()
    return sorted(name for name in names if is_safe(name))


def found_at(source: str, weights: Sequence[Weight]) -> tuple[Weight, ...]:
    """Weights that know where they can be opened again, by another process."""
    return tuple(replace(one, source=source, place=place) for place, one in enumerate(weights))


def files_of(source: str) -> tuple[Path, ...]:
    """The files that the weights of a source are in; of an address none, as it names a commit."""
    if is_address(source):
        return ()
    path = Path(source)
    path = file_in(path) if path.is_dir() else path
    if path.name.endswith(_INDEX):
        return (path, *(path.parent / name for name in sorted(shard_names(path))))
    if others := _beside(path):
        return (path, *(path.parent / name for name in others))
    return (path, *sorted(external_files(path))) if _suffix(path) == ".onnx" else (path,)


def is_adapter(path: Path) -> bool:
    """The folder of a PEFT adapter, which has no whole model beside it, or one of its files."""
    if path.name in (CONFIG, *ADAPTER_FILES):
        return path.is_file()
    return any((path / name).is_file() for name in (CONFIG, *ADAPTER_FILES)) and not any(
        (path / name).is_file() for name in ("model.safetensors", f"model{_INDEX}")
    )


def _open_path(path: Path) -> tuple[Weight, ...]:
    if is_adapter(path):
        raise BadInput(
            "the weights of a model",
            got=f"a PEFT adapter, {path}",
            do="use obverse audit FOLDER, or obverse.weights.audit_adapter(folder): they audit its updates",
        )
    try:
        if path.is_dir():
            path = file_in(path)
        return _open_file(path)
    except OSError as error:
        raise BadInput(f"to read {path}", got=error.strerror or error, do="check the path") from None


def _open_file(path: Path) -> tuple[Weight, ...]:
    if not path.exists():
        raise NoSuchFile(path)
    if not path.is_file():
        raise BadInput(f"a file of weights as {path}", got="something else", do="check the path")
    suffix = _suffix(path) or _by_content(path)
    if suffix is None:
        raise BadInput(
            f"a name that ends in {', '.join(SUFFIXES)}",
            got=path,
            do="rename or convert the file",
        )
    if path.stat().st_size == 0:
        raise BadInput(f"weights in {path}", got="an empty file", do="download or save it again")
    return _READERS[suffix](path)


def _suffix(path: Path) -> str | None:
    """How its name ends, if that says what it is; a model.json need not be one, nor be called so."""
    name = path.name.lower()
    if name.endswith(".json") and not name.endswith(_INDEX):
        return _MODEL if is_tfjs(path) else None
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)


def _by_content(path: Path) -> str | None:
    """What a file is whose name does not say it: where its first bytes leave no doubt."""
    with path.open("rb") as file:
        head = file.read(8)
    if head[:4] == b"GGUF":
        return ".gguf"
    if head == b"\x89HDF\r\n\x1a\n":
        return ".h5"
    if is_safetensors(path):
        return ".safetensors"
    return ".bin" if checkpoint_in(path) else None


def remarks(path: Path) -> list[str]:
    """What of a file is passed over, though it is there."""
    if not path.is_file() or (_suffix(path) or ".bin") not in _PICKLES:
        return []
    found = remark_on(path)
    return [found] if found else []


def is_run(folder: Path) -> bool:
    """Whether training wrote it, and its model is there: that is the one that is meant."""
    return all((folder / name).is_file() for name in _RUN)


def file_in(folder: Path) -> Path:
    """The one model in a folder: model.safetensors of a run, or the only file or set of shards that is there.

    Where several could be meant none is taken: an audit of the wrong file looks like one of the right file.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise BadInput(f"to read {folder}", got=error.strerror or error, do="check the path") from None
    if is_run(folder):
        return folder / _RUN[0]
    indices = [path for path in files if path.name.endswith(_INDEX)]
    shards = {name for index in indices for name in shard_names(index)}
    shards |= {name for path in files if _suffix(path) == _MODEL for name in shards_of(path)}
    shards |= {name for path in files if path.suffix == ".gguf" for name in split_names(path)[1:]}
    found = [path for path in files if _suffix(path) and path.name not in shards]
    if not found:  # none by its name: then by what is in them
        found = [path for path in files if path.stat().st_size and _by_content(path)]
    if len(found) == 1:
        return found[0]
    raise BadInput(
        f"one file of weights in {folder}",
        got=_listed([printable(path.name) for path in found]) or "none",
        do="name the file to audit",
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
