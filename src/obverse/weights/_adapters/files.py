"""The folder of an adapter: which files it has, and the pairs of factors in them. Not for computing.

`lora_A` is rank × inputs and `lora_B` outputs × rank; an embedding has `lora_embedding_A`, rank × rows, and
`lora_embedding_B`, width × rank, whose product is turned.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ..._core import BadInput, NoSuchFile, shape
from .._readers.address import is_address
from .._readers.open import ADAPTER_FILES, CONFIG, fetched_adapter
from .._readers.safetensors import open_safetensors
from .._readers.stored import Stored, finite, printable
from .._readers.torch import open_torch
from .config import AdapterConfig

_FACTOR = re.compile(
    r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?:\.(?P<adapter>(?!bias$|weight$)[^.]+))??(?:\.weight)?"
)
_BESIDE = re.compile(r".*\.lora_(magnitude_vector|B(\.[^.]+)?\.bias).*")
_PREFIX = ("base_model.model.", "base_model.")


@dataclass(frozen=True)
class Factors:
    """One adapted layer: `outputs` (rows × rank) · `inputs` (rank × columns), each read when asked for."""

    name: str
    module: str  # as the base calls it
    kind: str
    rows: int
    columns: int
    rank: int
    start_from: int  # inputs of lora_A, which set the size of its first values; 0 for embeddings
    first: Stored
    second: Stored
    origin: str

    def load(self) -> tuple[Tensor, Tensor]:
        """Both factors in float64, finite."""
        first, second = (
            finite(one.load().detach().float(), f"{self.name} of {self.origin}").double()
            for one in (self.first, self.second)
        )
        first, second = first.flatten(1), second.flatten(1)
        return (first.T, second.T) if self.kind == "embedding" else (second, first)


@dataclass(frozen=True)
class AdapterFile:
    """What the file of weights holds."""

    factors: tuple[Factors, ...]
    magnitudes: int  # vectors of DoRA
    biases: int
    whole: tuple[str, ...]  # weights that are stored as they are, not as a product


def folder_of(source: Path | str) -> Path:
    """The folder with the configuration and the weights, both of which must be there; from a hub, a copy."""
    path = fetched_adapter(source) if is_address(source) else Path(source)
    if not path.exists():
        raise NoSuchFile(path)
    folder = path if path.is_dir() else path.parent
    if not (folder / CONFIG).is_file():
        raise BadInput(
            f"{CONFIG} in {folder}, beside the weights of the adapter",
            got="none",
            do="copy it from where the adapter comes from: without it the scaling is not known",
        )
    weights_file(folder)
    return folder


def weights_file(folder: Path) -> Path:
    """The safetensors where there is one, as PEFT takes them."""
    found = next((folder / name for name in ADAPTER_FILES if (folder / name).is_file()), None)
    if found is None:
        raise BadInput(
            f"{ADAPTER_FILES[0]} in {folder}, beside {CONFIG}",
            got="none",
            do="copy it from where the adapter comes from: the configuration has no weights",
        )
    return found


def open_factors(path: Path, config: AdapterConfig) -> AdapterFile:
    """The pairs of factors in a file, each checked against the other and against its configured rank."""
    try:
        tensors = open_safetensors(path) if path.suffix == ".safetensors" else open_torch(path)
    except OSError as error:
        raise BadInput(f"to read {path}", got=error.strerror or error, do="check the path") from None
    pairs: dict[tuple[str, str], dict[str, Stored]] = {}
    kinds: dict[tuple[str, str], bool] = {}
    others: list[str] = []
    for name, stored in tensors.items():
        match = _FACTOR.fullmatch(name)
        if match is None or len(name) > 1000:
            others.append(name)
            continue
        key = (match["module"], match["adapter"] or "")
        pairs.setdefault(key, {})[match["side"]] = stored
        kinds[key] = bool(match["embedding"])
    if not pairs:
        raise BadInput(
            f"lora_A and lora_B in {path}",
            got=", ".join(printable(name) for name in others[:5]) or "no tensors",
            do="save the adapter again with PEFT (save_pretrained)",
        )
    several = len({adapter for _, adapter in pairs}) > 1
    factors = tuple(
        _factors(module, f" ({adapter})" if several else "", pair, kinds[module, adapter], config, str(path))
        for (module, adapter), pair in pairs.items()
    )
    beside = [match[1] for name in others if (match := _BESIDE.fullmatch(name))]
    whole = tuple(
        printable(plain(name))
        for name in others
        if not _BESIDE.fullmatch(name) and len(tensors[name].shape) > 1
    )
    magnitudes = beside.count("magnitude_vector")
    return AdapterFile(factors, magnitudes, len(beside) - magnitudes, whole)


def plain(name: str) -> str:
    """Without what PEFT puts before the names of the base."""
    prefix = next((one for one in _PREFIX if name.startswith(one)), "")
    return name.removeprefix(prefix)


def _factors(
    module: str, adapter: str, pair: Mapping[str, Stored], embedding: bool, config: AdapterConfig, origin: str
) -> Factors:
    name = printable(plain(module)) + printable(adapter)
    if len(pair) < 2:
        missing = "lora_B" if "A" in pair else "lora_A"
        raise BadInput(f"{missing} of {name} in {origin}", got="none", do="save or download it again")
    first, second = pair["A"], pair["B"]
    for side, one in (("A", first), ("B", second)):
        if not one.floating or len(one.shape) < 2 or 0 in one.shape:
            raise BadInput(
                f"a matrix of floating-point numbers as lora_{side} of {name} in {origin}",
                got=f"{printable(one.dtype)} of shape {shape(one.shape)}",
                do="save it whole: of a model in parts (ZeRO-3, FSDP) the parts have to be gathered first",
            )
    rank = config.rank_of(plain(module))
    if first.shape[0] != rank:
        raise BadInput(
            f"rank {rank} for {name}, as {CONFIG} has it",
            got=f"lora_A of shape {shape(first.shape)} in {origin}",
            do="take the configuration that belongs to these weights",
        )
    if math.prod(second.shape[1:]) != rank:
        raise BadInput(
            f"lora_B of {name} in {origin} with as many columns as lora_A has rows ({rank})",
            got=f"shape {shape(second.shape)}",
            do="merge it into its base with PEFT (merge_and_unload), save that, and audit it",
        )
    across, down = math.prod(first.shape[1:]), second.shape[0]
    kind = "embedding" if embedding else "convolution" if len(first.shape) > 2 else "linear"
    rows, columns = (across, down) if embedding else (down, across)
    start = 0 if embedding else across
    return Factors(name, plain(module), kind, rows, columns, rank, start, first, second, origin)
